/* Update rules: fused loops over the parameters, one table row each. The result does not depend on the number of
 * threads: every weight is its own computation. */
#ifndef TRAIN_OPTIMIZER_H
#define TRAIN_OPTIMIZER_H

#include "model/graph.h"

#define OPTIMIZER_MOMENTS 2

/* Hyper-parameters of one step, all from knobs. */
struct optimizer_args {
  float lr, momentum, beta1, beta2, eps, weight_decay;
  bool nesterov;
  uint64_t t; /* steps of this optimizer, this one included: 1, 2, ... */
};

struct optimizer_type {
  const char *name, *help;
  int n_moments;
  /* n values; wd is the weight decay of this parameter; m[i] the moments, as many as n_moments. */
  void (*update)(const struct optimizer_args *a, float wd, size_t n, const float *restrict g, float *restrict w,
                 float *const m[OPTIMIZER_MOMENTS]);
};
extern const struct optimizer_type optimizer_table[]; /* ends with a row without a name */
extern const char *const optimizer_names[];           /* NULL-terminated */

/* The optimizer of one run: moments, and what the sites `update` and `state` carry from step to step. */
struct optimizer {
  const struct optimizer_type *type;
  size_t n_weights, n_params;
  uint64_t t;                           /* steps done */
  float *moment[OPTIMIZER_MOMENTS];     /* n_weights each, in the layout of the weights; NULL beyond n_moments */
  struct quant_state *state;            /* n_params x OPTIMIZER_SITES */
};
enum { OPTIMIZER_SITES = 1 + OPTIMIZER_MOMENTS }; /* the weight, then the moments */

/* Empty moments. On failure *o is as it was. */
int optimizer_init(struct optimizer *o, const char *name, struct graph *g, struct err *e) ERR_MUST_CHECK;
void optimizer_done(struct optimizer *o);

/* Where the random numbers of the sites come from. */
struct optimizer_rng {
  uint64_t seed, step;
};

/* One step from the graph's gradients. Then weights pass through the site `update`, moments through `state`. */
void optimizer_step(struct optimizer *o, struct graph *g, const struct optimizer_args *a,
                    const struct site_specs *sites, const struct optimizer_rng *rng, struct pool *pool);

size_t optimizer_bytes(const struct optimizer *o);

#endif
