/* The graph: built from a description, then one forward and one backward pass over its layers. */
#include "config.h"

#include "model/graph.h"

#include <assert.h>
#include <string.h>

#include "base/mem.h"
#include "model/graph_impl.h"
#include "tensor/vec.h"

/* Numbers in random counters: sixteen a layer, the first for its activations, the next for its parameters. Inserting
 * a layer changes those after it, as it must: it is another model. */
#define TENSORS_A_LAYER 16

/* The layer that decides how many values come out of layer `i`: a ReLU passes on what a linear layer made. */
static const char *source_name(const struct graph *g, int i)
{
  while (i >= 0 && g->layer[i].n_params == 0 && g->layer[i].n_inputs == 1 && g->layer[i].n_out == g->layer[i].n_in)
    i = g->layer[i].input[0];
  return i < 0 ? "the data" : g->layer[i].name;
}

static struct shape model_input(const struct model_desc *d)
{
  struct shape s = {.rank = d->input_rank};
  memcpy(s.dim, d->input_shape, sizeof s.dim);
  return d->input_rank ? s : shape_flat(d->n_inputs);
}

static int find_inputs(struct graph *g, struct layer *l, const struct layer_desc *d, struct err *e)
{
  double other = l->type->n_inputs > 1 ? desc_option(d, "other", -2) : -1;
  l->n_inputs = l->type->n_inputs;
  l->input[0] = d->input;
  l->input[1] = other >= -1 && other < l->index ? (int)other : -2;
  for (int k = 0; k < l->n_inputs; k++) {
    int from = l->input[k];
    if (from < -1 || from >= l->index)
      return err_set(e, "%s: its input %d is not a layer before it", l->name, k + 1);
    l->in[k] = from < 0 ? model_input(&g->desc) : g->layer[from].out;
  }
  return 0;
}

static int add_layer(struct graph *g, int index, struct err *e)
{
  const struct layer_desc *d = &g->desc.layer[index];
  struct layer *l = &g->layer[index];
  l->index = index;
  l->name = d->name;
  l->tensor = (uint32_t)index * TENSORS_A_LAYER;
  for (int i = 0; i < index; i++)
    if (strcmp(g->layer[i].name, l->name) == 0)
      return err_set(e, "two layers are named \"%s\"", l->name);
  l->type = layer_type_find(d->kind, e);
  if (!l->type)
    return err_prefix(e, "%s", l->name);
  if (layer_check_options(l->type, d, e) || find_inputs(g, l, d, e))
    return -1;
  const char *from[LAYER_INPUTS];
  for (int k = 0; k < l->n_inputs; k++)
    from[k] = source_name(g, l->input[k]);
  l->n_in = shape_size(&l->in[0]);
  struct layer_setup s = {d, from, &g->param, &g->n_params};
  if (l->type->init(l, &s, e))
    return -1;
  l->n_out = shape_size(&l->out);
  return 0;
}

static int build_layers(struct graph *g, struct err *e)
{
  const struct model_desc *d = &g->desc;
  if (d->n_layers < 1)
    return err_set(e, "it has no layers");
  if (d->n_inputs < 1 || d->n_outputs < 1)
    return err_set(e, "%zu inputs and %zu outputs: both must be at least 1", d->n_inputs, d->n_outputs);
  struct shape in = model_input(d);
  if (d->input_rank < 0 || d->input_rank > LAYER_RANK || shape_size(&in) != d->n_inputs)
    return err_set(e, "the shape of its input does not hold %zu values", d->n_inputs);
  g->n_layers = d->n_layers;
  g->layer = mem_alloc((size_t)d->n_layers * sizeof *g->layer);
  for (int i = 0; i < d->n_layers; i++)
    if (add_layer(g, i, e))
      return -1;
  const struct layer *last = &g->layer[g->n_layers - 1];
  if (last->n_out != d->n_outputs)
    return err_set(e, "%s gives %zu values but the model has %zu outputs", last->name, last->n_out, d->n_outputs);
  if (g->n_params == 0)
    return err_set(e, "none of its layers has weights to train");
  g->loss = loss_type_find(d->loss[0] ? d->loss : loss_types[0]->name, e);
  return g->loss ? 0 : -1;
}

/* One block of weights and one of gradients, parameters one behind the other in the order of the layers. */
static int place_params(struct graph *g, struct err *e)
{
  for (size_t i = 0; i < g->n_params; i++) {
    struct param *p = &g->param[i];
    p->offset = g->n_weights;
    if (p->n > SIZE_MAX / 16 - g->n_weights)
      return err_set(e, "it has more weights than memory can address");
    g->n_weights += p->n;
    if (!g->layer[p->layer].param)
      g->layer[p->layer].param = p;
  }
  g->weights = mem_buffer(g->n_weights * sizeof(float), "weights", e);
  g->gradients = g->weights ? mem_buffer(g->n_weights * sizeof(float), "gradients", e) : NULL;
  if (!g->gradients)
    return -1;
  for (size_t i = 0; i < g->n_params; i++) {
    g->param[i].w = g->weights + g->param[i].offset;
    g->param[i].g = g->gradients + g->param[i].offset;
  }
  return 0;
}

static int place_copies(struct graph *g, struct err *e)
{
  size_t n = 0, scratch_w = 0, scratch_parts = 0;
  for (int i = 0; i < g->n_layers; i++) {
    const struct layer *l = &g->layer[i];
    n += l->n_weight_copy;
    scratch_w = l->scratch_w > scratch_w ? l->scratch_w : scratch_w;
    scratch_parts = l->scratch_parts > scratch_parts ? l->scratch_parts : scratch_parts;
  }
  n = (n + 15) / 16 * 16; /* to cache lines */
  scratch_w = (scratch_w + 15) / 16 * 16;
  g->copies_bytes = (n + scratch_w + scratch_parts) * sizeof(float);
  g->copies = mem_buffer(g->copies_bytes, "quantized weights", e);
  if (!g->copies)
    return -1;
  float *at = g->copies;
  for (int i = 0; i < g->n_layers; i++) {
    g->layer[i].copy.q = at;
    at += g->layer[i].n_weight_copy;
  }
  g->scratch_w = g->copies + n;
  g->scratch_parts = g->scratch_w + scratch_w;
  return 0;
}

static int graph_init(struct graph *g, uint64_t seed, size_t max_rows, struct err *e)
{
  if (build_layers(g, e) || plan_make(g, e) || place_params(g, e) || place_copies(g, e) ||
      graph_reserve(g, max_rows ? max_rows : 1, e))
    return -1;
  for (int i = 0; i < g->n_layers; i++)
    if (g->layer[i].type->init_weights)
      g->layer[i].type->init_weights(&g->layer[i], seed);
  return 0;
}

struct graph *graph_create(const struct model_desc *d, uint64_t seed, size_t max_rows, struct err *e)
{
  struct graph *g = mem_alloc(sizeof *g);
  desc_copy(&g->desc, d);
  if (graph_init(g, seed, max_rows, e)) {
    err_prefix(e, "model %s", d->name[0] ? d->name : "(no name)");
    graph_free(g);
    return NULL;
  }
  return g;
}

void graph_free(struct graph *g)
{
  if (!g)
    return;
  for (int i = 0; i < g->n_layers; i++) {
    for (int s = 0; s < SITE_COUNT; s++)
      quant_state_done(&g->layer[i].state[s]);
    mem_free(g->layer[i].own);
  }
  buffers_done(&g->buf);
  plan_done(&g->plan);
  mem_buffer_free(g->weights);
  mem_buffer_free(g->gradients);
  mem_buffer_free(g->copies);
  mem_free(g->param);
  mem_free(g->layer);
  desc_done(&g->desc);
  mem_free(g);
}

int graph_reserve(struct graph *g, size_t max_rows, struct err *e)
{
  struct graph_buffers b;
  if (max_rows <= g->buf.max_rows)
    return 0;
  if (buffers_create(g, max_rows, &b, e))
    return -1;
  buffers_done(&g->buf);
  b.scratch.w = g->scratch_w;
  b.scratch.parts = g->scratch_parts;
  g->buf = b;
  g->rows = 0;
  buffers_bind(g);
  return 0;
}

struct loss_result graph_forward(struct graph *g, const struct pass *p, const float *x, const int32_t *labels,
                                 size_t rows)
{
  assert(rows <= g->buf.max_rows);
  struct layer_call c = {p, rows, &g->buf.scratch};
  for (int i = 0; i < g->n_layers; i++) {
    struct layer *l = &g->layer[i];
    for (int k = 0; k < l->n_inputs; k++)
      if (l->input[k] < 0)
        l->x[k] = x;
    l->type->forward(l, &c);
  }
  struct layer *last = &g->layer[g->n_layers - 1];
  float *dy = p->evaluate ? NULL : g->buf.dy + g->plan.dy_at[last->index] * g->buf.max_rows;
  g->loss->apply(p->pool, last->y, labels, rows, last->n_out, g->buf.row_loss, g->buf.row_correct, dy);
  struct loss_result r = {0};
  for (size_t i = 0; i < rows; i++) {
    r.loss += g->buf.row_loss[i];
    r.n_correct += g->buf.row_correct[i];
  }
  if (rows)
    r.loss /= (double)rows;
  g->x = x;
  g->rows = rows;
  g->last_loss = r.loss;
  g->went_back = false;
  return r;
}

/* Layer by layer, so that the estimate of the variance has each layer's part without another pass over the gradient. */
static void find_norm2(struct graph *g, struct pool *pool, bool with_sums)
{
  g->norm2 = 0;
  for (int i = 0; i < g->n_layers; i++) {
    struct layer *l = &g->layer[i];
    double norm2 = 0;
    for (int k = 0; k < l->n_params; k++)
      if (l->param[k].trained)
        norm2 += vec_sum_sq(pool, l->param[k].g, l->param[k].n);
    if (with_sums)
      l->sums.norm2_mean = norm2;
    g->norm2 += norm2;
  }
  g->norm2_known = true;
}

void graph_backward(struct graph *g, const struct pass *p)
{
  struct layer_call c = {p, g->rows, &g->buf.scratch};
  for (int i = g->n_layers - 1; i >= 0; i--)
    if (g->layer[i].dy)
      g->layer[i].type->backward(&g->layer[i], &c);
  g->x = NULL;
  g->went_back = true;
  g->norm2_known = false;
  if (p->want_sums)
    find_norm2(g, p->pool, true);
}

double graph_gradient_norm2(struct graph *g, struct pool *pool)
{
  if (!g->norm2_known)
    find_norm2(g, pool, false);
  return g->norm2;
}

const float *graph_output(const struct graph *g)
{
  return g->layer[g->n_layers - 1].y;
}

void graph_weights_changed(struct graph *g)
{
  for (int i = 0; i < g->n_layers; i++)
    g->layer[i].copy.valid = false;
}

void graph_commit(struct graph *g)
{
  for (int i = 0; i < g->n_layers; i++)
    if (g->layer[i].type->commit)
      g->layer[i].type->commit(&g->layer[i]);
}
