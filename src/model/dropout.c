/* Dropout (Srivastava et al. 2014): in training each value is dropped with probability p, the others are scaled by
 * 1/(1-p), so that the mean stays; evaluation passes values unchanged.
 *
 * The mask is a function of (seed, step, layer, slot, element) alone: it is drawn again in the backward pass rather
 * than kept, and the repeated draws of a probe see the mask of the step, so that what they differ by is rounding. */
#include "config.h"

#include <math.h>

#include "base/mem.h"
#include "model/layer.h"
#include "tensor/vec.h"

struct dropout {
  double p;
  uint32_t below; /* dropped where the random integer is below this */
};

static int dropout_init(struct layer *l, const struct layer_setup *s, struct err *e)
{
  struct dropout *d = l->own = mem_alloc(sizeof *d);
  if (layer_real_option(l, s, "p", 0.5, 0, 1, &d->p, e))
    return -1;
  d->below = (uint32_t)fmin(rint(ldexp(d->p, 32)), 4294967295.0);
  l->out = l->in[0];
  return 0;
}

struct dropout_job {
  struct rng_key key;
  uint64_t step, first_element;
  uint32_t below;
  float scale;
  bool add;
  const float *x;
  float *y;
};

enum { BLOCK = 4 }; /* values of one Philox block */

/* Values [begin, end) of the batch; element e of the step takes word e mod 4 of block e / 4. */
static void dropout_part(void *ctx, size_t begin, size_t end, int worker)
{
  const struct dropout_job *j = ctx;
  (void)worker;
  uint32_t word[BLOCK];
  for (size_t i = begin; i < end;) {
    uint64_t element = j->first_element + i, block = element / BLOCK;
    uint32_t counter[4] = {(uint32_t)block, (uint32_t)(block >> 32), (uint32_t)j->step, (uint32_t)(j->step >> 32)};
    philox4x32(counter, j->key.k, RNG_SITE_ROUNDS, word);
    for (size_t k = element % BLOCK; k < BLOCK && i < end; k++, i++) {
      float v = word[k] < j->below ? 0 : j->scale * j->x[i];
      j->y[i] = j->add ? j->y[i] + v : v;
    }
  }
}

/* Some 10 us of random numbers. */
#define GRAIN 4096

static void apply(const struct layer *l, const struct layer_call *c, const float *x, bool add, float *y)
{
  const struct pass *p = c->pass;
  const struct dropout *d = l->own;
  struct dropout_job j = {
      .key = rng_derive(p->seed, RNG_DROPOUT, l->tensor, 0, 0),
      .step = p->step,
      .first_element = (uint64_t)p->first_slot * l->n_out,
      .below = d->below,
      .scale = d->p < 1 ? (float)(1 / (1 - d->p)) : 0,
      .add = add,
      .x = x,
      .y = y,
  };
  pool_for(p->pool, c->rows * l->n_out, GRAIN, dropout_part, &j);
}

static void dropout_forward(struct layer *l, const struct layer_call *c)
{
  if (c->pass->evaluate)
    vec_copy(c->pass->pool, l->x[0], c->rows * l->n_out, l->y);
  else
    apply(l, c, l->x[0], false, l->y);
}

static void dropout_backward(struct layer *l, const struct layer_call *c)
{
  if (l->dx[0])
    apply(l, c, l->dy, l->dx_add[0], l->dx[0]);
}

const struct layer_type dropout_type = {
    .name = "dropout",
    .help = "drops values with probability p in training",
    .options = (const char *const[]){"p", NULL},
    .n_inputs = 1,
    .in_place = true,
    .init = dropout_init,
    .forward = dropout_forward,
    .backward = dropout_backward,
};
