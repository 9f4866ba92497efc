/* Softmax cross-entropy. Stable for any finite logits; a NaN or +Inf among them makes the row's loss and
 * gradient NaN, never a wrong number. */
#include "config.h"

#include "model/loss.h"

#include <math.h>

#include "model/names.h"

struct loss_job {
  const float *y;
  const int32_t *labels;
  size_t n;
  double *row_loss;
  uint8_t *row_correct;
  float *g;
};

/* l = log(sum_k exp(y_k - max)) - (y_t - max);  dl/dy = softmax(y) - onehot(t). Returns l; g may be NULL. */
static double cross_entropy_row(const float *y, size_t n, size_t t, float *g, uint8_t *correct)
{
  size_t best = 0;
  for (size_t k = 1; k < n; k++)
    if (y[k] > y[best])
      best = k;
  float max = y[best];
  double sum = 0;
  for (size_t k = 0; k < n; k++) {
    float e = expf(y[k] - max);
    sum += e;
    if (g)
      g[k] = e;
  }
  if (g) {
    float scale = (float)(1 / sum);
    for (size_t k = 0; k < n; k++)
      g[k] *= scale;
    g[t] -= 1;
  }
  double loss = log(sum) - ((double)y[t] - max);
  *correct = best == t && !isnan(loss);
  return loss;
}

static void cross_entropy_part(void *ctx, size_t begin, size_t end, int worker)
{
  const struct loss_job *j = ctx;
  (void)worker;
  for (size_t r = begin; r < end; r++)
    j->row_loss[r] = cross_entropy_row(j->y + r * j->n, j->n, (size_t)j->labels[r], j->g ? j->g + r * j->n : NULL,
                                       &j->row_correct[r]);
}

static void cross_entropy(struct pool *pool, const float *y, const int32_t *labels, size_t rows, size_t n,
                          double *row_loss, uint8_t *row_correct, float *g)
{
  struct loss_job j = {y, labels, n, row_loss, row_correct, g};
  size_t grain = 2048 / n + 1; /* some 10 us of exponentials */
  pool_for(pool, rows, grain, cross_entropy_part, &j);
}

static const struct loss_type cross_entropy_type = {"cross_entropy", "softmax and negative log-likelihood of the label",
                                                    cross_entropy};

const struct loss_type *const loss_types[] = {&cross_entropy_type, NULL};

const struct loss_type *loss_type_find(const char *name, struct err *e)
{
  const char *names[sizeof loss_types / sizeof *loss_types] = {0};
  for (int i = 0; loss_types[i]; i++)
    names[i] = loss_types[i]->name;
  int i = names_find("loss", name, names, e);
  return i < 0 ? NULL : loss_types[i];
}
