/* The whole state of a run at a step, in memory: what a snapshot holds, and what a step that fails puts back. */
#ifndef TRAIN_STATE_H
#define TRAIN_STATE_H

#include "train/knob.h"
#include "train/optimizer.h"
#include "train/run.h"

/* Counters: all that is not arrays. */
struct counters {
  uint64_t step, examples; /* done and seen; examples is the sampler's position too */
  uint64_t lr_batch;       /* batch at which lr was set last (train/schedule.h) */
};

struct state {
  struct counters at;
  struct knobs knobs;
  double metric[METRIC_COUNT]; /* last values, to show */
  const struct optimizer_type *optimizer;
  uint64_t optimizer_t;
  float *block;  /* weights, then the moments one behind the other; n_weights each */
  size_t n_bytes; /* of block and residuals */
  struct quant_state *model_state;     /* n_layers x SITE_COUNT */
  struct quant_state *optimizer_state; /* n_params x OPTIMIZER_SITES */
  size_t n_model_state, n_optimizer_state;
};

/* A copy of the run's state; *out is overwritten. On failure *out is empty. */
int state_capture(struct run *r, struct state *out, struct err *e) ERR_MUST_CHECK;
/* Makes an empty one for the run's model and that optimizer, to be filled. On failure *out is empty. */
int state_init(struct run *r, const struct optimizer_type *o, struct state *out, struct err *e) ERR_MUST_CHECK;
/* Putting a state into its run, in two steps: the first allocates what that state's batch and optimizer need and can
 * fail, the second cannot. What is queued is dropped. */
int state_prepare(struct run *r, const struct state *s, struct optimizer *fresh, struct err *e) ERR_MUST_CHECK;
void state_commit(struct run *r, const struct state *s, struct optimizer *fresh);
int state_restore(struct run *r, const struct state *s, struct err *e) ERR_MUST_CHECK; /* both */
void state_done(struct state *s);
size_t state_bytes(struct run *r); /* what a capture takes */

/* Copies scale histories and residuals; `to` may hold some already. */
void quant_states_copy(struct quant_state *to, const struct quant_state *from, size_t n);
/* Those of the model's sites, one array of layers x SITE_COUNT: gathered from the graph, and put back. */
void quant_states_gather(struct quant_state *to, struct graph *g);
void quant_states_scatter(const struct quant_state *from, struct graph *g);

#endif
