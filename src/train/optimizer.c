/* SGD and AdamW, with the definitions of PyTorch's torch.optim. */
#include "config.h"

#include "train/optimizer.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "model/names.h"

/* Weights a thread takes at least. */
#define GRAIN 4096

/* A moment without subnormals. Where no gradient comes any more (a ReLU that is dead for good) a moment decays by a
 * constant factor; rounding to nearest keeps it at a few units of 2^-149 for ever: 0.9 times 4 of them is 4 again,
 * and each such product costs a hundred times another. No weight feels what is dropped: it is below 2^-126. */
static inline float settle(float moment)
{
  return fabsf(moment) < FLT_MIN ? 0 : moment;
}

/* torch.optim.SGD, dampening 0: d = g + wd w; m = mu m + d; w -= lr (nesterov ? d + mu m : m). */
static void update_sgd(const struct optimizer_args *a, float wd, size_t n, const float *restrict g, float *restrict w,
                       float *const moment[OPTIMIZER_MOMENTS])
{
  float *restrict m = moment[0];
  const float lr = a->lr, mu = a->momentum;
  const float keep = a->nesterov ? mu : 1, add = a->nesterov ? 1 : 0;
  for (size_t i = 0; i < n; i++) {
    float d = g[i] + wd * w[i];
    float v = settle(mu * m[i] + d);
    m[i] = v;
    w[i] -= lr * (keep * v + add * d);
  }
}

/* Loshchilov and Hutter 2019, as torch.optim.AdamW: w *= 1 - lr wd; m = b1 m + (1-b1) g; v = b2 v + (1-b2) g^2;
 * w -= lr/(1-b1^t) m / (sqrt(v/(1-b2^t)) + eps). */
static void update_adamw(const struct optimizer_args *a, float wd, size_t n, const float *restrict g, float *restrict w,
                         float *const moment[OPTIMIZER_MOMENTS])
{
  float *restrict m = moment[0], *restrict v = moment[1];
  const float b1 = a->beta1, b2 = a->beta2, eps = a->eps;
  const float shrink = 1 - a->lr * wd;
  const float rate = (float)(a->lr / (1 - pow(a->beta1, (double)a->t)));
  const float root = (float)(1 / sqrt(1 - pow(a->beta2, (double)a->t)));
  for (size_t i = 0; i < n; i++) {
    float mi = settle(b1 * m[i] + (1 - b1) * g[i]);
    float vi = settle(b2 * v[i] + (1 - b2) * (g[i] * g[i]));
    m[i] = mi;
    v[i] = vi;
    w[i] = shrink * w[i] - rate * mi / (sqrtf(vi) * root + eps);
  }
}

#define OPTIMIZERS(ROW)                                                                                                \
  ROW("sgd", "stochastic gradient descent with momentum", 1, update_sgd)                                               \
  ROW("adamw", "Adam with decoupled weight decay", 2, update_adamw)

#define ROW(name, help, n_moments, update) {name, help, n_moments, update},
const struct optimizer_type optimizer_table[] = {OPTIMIZERS(ROW){NULL, NULL, 0, NULL}};
#undef ROW
#define ROW(name, help, n_moments, update) name,
const char *const optimizer_names[] = {OPTIMIZERS(ROW) NULL};
#undef ROW

int optimizer_init(struct optimizer *o, const char *name, struct graph *g, struct err *e)
{
  int row = names_find("optimizer", name, optimizer_names, e);
  if (row < 0)
    return -1;
  struct optimizer new = {
      .type = &optimizer_table[row], .n_weights = graph_n_weights(g), .n_params = graph_n_params(g)};
  for (int i = 0; i < new.type->n_moments; i++) {
    new.moment[i] = mem_buffer(new.n_weights * sizeof(float), "the optimizer's moments", e);
    if (!new.moment[i]) {
      optimizer_done(&new);
      return -1;
    }
  }
  new.state = mem_alloc(new.n_params * OPTIMIZER_SITES * sizeof *new.state);
  *o = new;
  return 0;
}

void optimizer_done(struct optimizer *o)
{
  for (int i = 0; i < OPTIMIZER_MOMENTS; i++)
    mem_buffer_free(o->moment[i]);
  for (size_t i = 0; o->state && i < o->n_params * OPTIMIZER_SITES; i++)
    quant_state_done(&o->state[i]);
  mem_free(o->state);
  memset(o, 0, sizeof *o);
}

size_t optimizer_bytes(const struct optimizer *o)
{
  return (o->type ? (size_t)o->type->n_moments : 0) * o->n_weights * sizeof(float);
}

struct update_job {
  const struct optimizer *o;
  const struct optimizer_args *args;
  const struct param *param;
  float wd;
};

static void update_range(void *ctx, size_t begin, size_t end, int worker)
{
  const struct update_job *j = ctx;
  float *m[OPTIMIZER_MOMENTS] = {NULL};
  (void)worker;
  for (int i = 0; i < j->o->type->n_moments; i++)
    m[i] = j->o->moment[i] + j->param->offset + begin;
  j->o->type->update(j->args, j->wd, end - begin, j->param->g + begin, j->param->w + begin, m);
}

/* A parameter through a site, in place; its rows are those of its shape. */
static void through_site(const struct spec *s, enum site site, uint32_t draw, const struct param *p, float *x,
                         struct quant_state *state, const struct optimizer_rng *rng, struct pool *pool)
{
  if (spec_is_identity(s))
    return;
  struct quant_rng q = {.key = rng_derive(rng->seed, RNG_SITE, p->tensor, (uint32_t)site, draw), .step = rng->step};
  size_t rows = p->rank > 1 ? p->shape[0] : 1;
  quantize(s, x, rows, p->n / rows, &q, x, NULL, state, pool, NULL);
}

void optimizer_step(struct optimizer *o, struct graph *g, const struct optimizer_args *a,
                    const struct site_specs *sites, const struct optimizer_rng *rng, struct pool *pool)
{
  struct optimizer_args args = *a;
  args.t = ++o->t;
  for (size_t k = 0; k < o->n_params; k++) {
    const struct param *p = graph_param(g, k);
    if (!p->trained)
      continue;
    struct update_job j = {o, &args, p, p->decays ? a->weight_decay : 0};
    struct quant_state *state = o->state + k * OPTIMIZER_SITES;
    pool_for(pool, p->n, GRAIN, update_range, &j);
    through_site(&sites->at[SITE_UPDATE], SITE_UPDATE, 0, p, p->w, &state[0], rng, pool);
    for (int i = 0; i < o->type->n_moments; i++)
      through_site(&sites->at[SITE_STATE], SITE_STATE, (uint32_t)i, p, o->moment[i] + p->offset, &state[1 + i], rng,
                   pool);
  }
  graph_commit(g);
  graph_weights_changed(g);
}
