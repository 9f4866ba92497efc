/* Capturing and restoring a run's state. */
#include "config.h"

#include "train/state.h"

#include <string.h>

#include "base/mem.h"
#include "train/run_impl.h"

void quant_states_copy(struct quant_state *to, const struct quant_state *from, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    memcpy(to[i].history, from[i].history, sizeof to[i].history);
    to[i].n_history = from[i].n_history;
    if (to[i].n_residual != from[i].n_residual) {
      mem_free(to[i].residual);
      to[i].residual = from[i].n_residual ? mem_alloc(from[i].n_residual * sizeof(float)) : NULL;
      to[i].n_residual = from[i].n_residual;
    }
    if (to[i].n_residual)
      memcpy(to[i].residual, from[i].residual, to[i].n_residual * sizeof(float));
  }
}

void quant_states_gather(struct quant_state *to, struct graph *g)
{
  for (int l = 0; l < graph_n_layers(g); l++)
    for (int s = 0; s < SITE_COUNT; s++)
      quant_states_copy(&to[l * SITE_COUNT + s], graph_quant_state(g, l, (enum site)s), 1);
}

void quant_states_scatter(const struct quant_state *from, struct graph *g)
{
  for (int l = 0; l < graph_n_layers(g); l++)
    for (int s = 0; s < SITE_COUNT; s++)
      quant_states_copy(graph_quant_state(g, l, (enum site)s), &from[l * SITE_COUNT + s], 1);
}

static size_t block_bytes(const struct run *r)
{
  return (size_t)(1 + r->optimizer.type->n_moments) * graph_n_weights(r->graph) * sizeof(float);
}

static size_t residual_bytes(const struct quant_state *q, size_t n)
{
  size_t bytes = 0;
  for (size_t i = 0; i < n; i++)
    bytes += q[i].n_residual * sizeof(float);
  return bytes;
}

size_t state_bytes(struct run *r)
{
  quant_states_gather(r->before, r->graph); /* between two steps it is free */
  return sizeof(struct state) + block_bytes(r) + residual_bytes(r->before, r->n_before) +
         residual_bytes(r->optimizer.state, r->optimizer.n_params * OPTIMIZER_SITES);
}

int state_init(struct run *r, const struct optimizer_type *o, struct state *out, struct err *e)
{
  size_t n_bytes = (size_t)(1 + o->n_moments) * graph_n_weights(r->graph) * sizeof(float);
  memset(out, 0, sizeof *out);
  float *block = mem_buffer(n_bytes, "a copy of the run's state", e);
  if (!block)
    return -1;
  *out = (struct state){
      .at = r->at,
      .knobs = r->knobs,
      .optimizer = o,
      .block = block,
      .n_bytes = n_bytes,
      .n_model_state = r->n_before,
      .n_optimizer_state = r->optimizer.n_params * OPTIMIZER_SITES,
  };
  memcpy(out->metric, r->metric, sizeof out->metric);
  out->model_state = mem_alloc(out->n_model_state * sizeof *out->model_state);
  out->optimizer_state = mem_alloc(out->n_optimizer_state * sizeof *out->optimizer_state);
  return 0;
}

int state_capture(struct run *r, struct state *out, struct err *e)
{
  const struct optimizer *o = &r->optimizer;
  size_t n = graph_n_weights(r->graph);
  if (state_init(r, o->type, out, e))
    return -1;
  out->n_bytes = state_bytes(r);
  out->optimizer_t = o->t;
  memcpy(out->block, graph_weights(r->graph), n * sizeof *out->block);
  for (int i = 0; i < o->type->n_moments; i++)
    memcpy(out->block + (size_t)(1 + i) * n, o->moment[i], n * sizeof *out->block);
  quant_states_gather(out->model_state, r->graph);
  quant_states_copy(out->optimizer_state, o->state, out->n_optimizer_state);
  return 0;
}

int state_prepare(struct run *r, const struct state *s, struct optimizer *fresh, struct err *e)
{
  memset(fresh, 0, sizeof *fresh);
  if (run_make_room(r, &s->knobs, e))
    return -1;
  return s->optimizer == r->optimizer.type ? 0 : optimizer_init(fresh, s->optimizer->name, r->graph, e);
}

void state_commit(struct run *r, const struct state *s, struct optimizer *fresh)
{
  struct optimizer *o = &r->optimizer;
  size_t n = graph_n_weights(r->graph);
  if (fresh->type) {
    optimizer_done(o);
    *o = *fresh;
    memset(fresh, 0, sizeof *fresh);
  }
  memcpy(graph_weights(r->graph), s->block, n * sizeof *s->block);
  for (int i = 0; i < o->type->n_moments; i++)
    memcpy(o->moment[i], s->block + (size_t)(1 + i) * n, n * sizeof *s->block);
  o->t = s->optimizer_t;
  quant_states_scatter(s->model_state, r->graph);
  quant_states_copy(o->state, s->optimizer_state, s->n_optimizer_state);
  r->at = s->at;
  r->knobs = r->next = s->knobs;
  memcpy(r->metric, s->metric, sizeof r->metric);
  changes_clear(&r->queue);
  sampler_seek(r->sampler, r->at.examples);
  graph_weights_changed(r->graph);
  r->evaluated = false;
}

int state_restore(struct run *r, const struct state *s, struct err *e)
{
  struct optimizer fresh;
  if (state_prepare(r, s, &fresh, e))
    return -1;
  state_commit(r, s, &fresh);
  return 0;
}

void state_done(struct state *s)
{
  for (size_t i = 0; s->model_state && i < s->n_model_state; i++)
    quant_state_done(&s->model_state[i]);
  for (size_t i = 0; s->optimizer_state && i < s->n_optimizer_state; i++)
    quant_state_done(&s->optimizer_state[i]);
  mem_free(s->model_state);
  mem_free(s->optimizer_state);
  mem_buffer_free(s->block);
  memset(s, 0, sizeof *s);
}
