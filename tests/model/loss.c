/* Softmax cross-entropy: closed forms, extreme logits, NaN, threads. */
#include "config.h"

#include "model/loss.h"

#include <math.h>

#include "helper.h"

static const struct loss_type *ce;

static double one(const float *y, int n, int32_t t, float *g, uint8_t *correct)
{
  double loss;
  ce->apply(NULL, y, &t, 1, (size_t)n, &loss, correct, g);
  return loss;
}

static void check_extremes(void)
{
  float g[3];
  uint8_t c;
  is_close(one((float[]){0, 0, 0}, 3, 1, g, &c), log(3), 1e-7, "even logits: log 3");
  ok(fabsf(g[0] - 1 / 3.f) < 1e-7f && fabsf(g[1] + 2 / 3.f) < 1e-7f, "softmax minus one-hot");
  is_close(one((float[]){1e30f, 0, -1e30f}, 3, 0, g, &c), 0, 0, "huge logits do not overflow");
  ok(g[0] == 0 && g[1] == 0 && g[2] == 0 && c == 1, "gradient 0, correct");
  is_close(one((float[]){1e4f, 0, 0}, 3, 1, g, &c), 1e4, 0, "a sure mistake costs the margin");
  ok(g[0] == 1 && g[1] == -1 && c == 0, "and pulls with full force");
  is_close(one((float[]){-1000, -1001, -1002}, 3, 0, NULL, &c), log(1 + exp(-1) + exp(-2)), 1e-6,
           "very negative logits, no gradient asked");
  is_close(one((float[]){0, 20, 0}, 3, 1, g, &c), log1p(2 * exp(-20)), 1e-12, "a small loss keeps its digits");
  ok(isnan(one((float[]){0, NAN, 0}, 3, 0, g, &c)) && isnan(g[0]) && !c, "NaN logit: NaN loss and gradient");
  ok(isnan(one((float[]){NAN, 0, 0}, 3, 0, g, &c)) && !c, "NaN as the first");
  ok(isnan(one((float[]){INFINITY, 0, 0}, 3, 0, g, &c)) && !c, "Inf logit: NaN");
  is_close(one((float[]){-INFINITY, 0, 0}, 3, 0, g, &c), INFINITY, 0, "a true class of probability 0: Inf");
}

static void check_threads(void)
{
  enum { ROWS = 3000, N = 10 };
  float *y = helper_normal(ROWS * N, 1), *g = mem_alloc(2 * ROWS * N * sizeof *g);
  int32_t *t = helper_labels(ROWS, N);
  double *loss = mem_alloc(2 * ROWS * sizeof *loss), worst = 0;
  uint8_t *c = mem_alloc(2 * ROWS);
  struct err e;
  struct pool *pool = pool_create(3, &e);
  ce->apply(NULL, y, t, ROWS, N, loss, c, g);
  ce->apply(pool, y, t, ROWS, N, loss + ROWS, c + ROWS, g + ROWS * N);
  ok(memcmp(loss, loss + ROWS, ROWS * sizeof *loss) == 0 && memcmp(c, c + ROWS, ROWS) == 0 &&
         memcmp(g, g + ROWS * N, ROWS * N * sizeof *g) == 0,
     "the same on 3 threads");
  for (int i = 0; i < ROWS; i++) {
    double sum = 0;
    for (int k = 0; k < N; k++)
      sum += exp(y[i * N + k]);
    worst = fmax(worst, fabs(loss[i] - (log(sum) - y[i * N + t[i]])));
    for (int k = 0; k < N; k++)
      worst = fmax(worst, fabs(g[i * N + k] - (exp(y[i * N + k]) / sum - (k == t[i]))));
  }
  ok(worst < 5e-7, "losses and gradients of %d rows within %.2g", ROWS, worst);
  pool_free(pool);
  mem_free(y);
  mem_free(g);
  mem_free(t);
  mem_free(loss);
  mem_free(c);
}

int main(void)
{
  struct err e;
  ce = loss_type_find("cross_entropy", &e);
  if (!ce)
    tap_bail("%s", e.msg);
  check_extremes();
  check_threads();
  ok(!loss_type_find("cross_entrop", &e) && strstr(e.msg, "did you mean"), "near miss: \"%s\"", e.msg);
  return tap_done();
}
