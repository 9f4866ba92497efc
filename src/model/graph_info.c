/* What a graph tells about itself: parameters, layers, sums, memory, and where numbers went wrong. */
#include "config.h"

#include <math.h>

#include "model/graph_impl.h"
#include "tensor/vec.h"

size_t graph_n_params(const struct graph *g)
{
  return g->n_params;
}

struct param *graph_param(struct graph *g, size_t i)
{
  return &g->param[i];
}

size_t graph_n_weights(const struct graph *g)
{
  return g->n_weights;
}

float *graph_weights(struct graph *g)
{
  return g->weights;
}

float *graph_gradients(struct graph *g)
{
  return g->gradients;
}

int graph_n_layers(const struct graph *g)
{
  return g->n_layers;
}

const char *graph_layer_name(const struct graph *g, int layer)
{
  return g->layer[layer].name;
}

const char *graph_layer_kind(const struct graph *g, int layer)
{
  return g->layer[layer].type->name;
}

const struct layer_sums *graph_layer_sums(const struct graph *g, int layer)
{
  return &g->layer[layer].sums;
}

struct quant_state *graph_quant_state(struct graph *g, int layer, enum site site)
{
  return &g->layer[layer].state[site];
}

struct graph_memory graph_memory(const struct graph *g)
{
  size_t block = g->n_weights * sizeof(float);
  return (struct graph_memory){
      .weights = block,
      .gradients = block,
      .activations = g->buf.y_bytes + g->buf.dy_bytes,
      .scratch = g->buf.rows_bytes + g->copies_bytes,
  };
}

static bool fault_at(const struct graph *g, int layer, const char *site, struct graph_fault *out)
{
  *out = (struct graph_fault){layer, g->layer[layer].name, site};
  return true;
}

/* Forward: what enters a product, layer by layer; what leaves the last one shows in the loss. */
static bool fault_forward(const struct graph *g, struct graph_fault *out)
{
  for (int i = 0; i < g->n_layers; i++) {
    const struct layer *l = &g->layer[i];
    if (!l->type->has_sites)
      continue;
    const float *x = l->input[0] < 0 ? g->x : l->x[0];
    if (x && !vec_all_finite(x, g->rows * l->n_in))
      return fault_at(g, i, site_names[SITE_ACT], out);
    for (int k = 0; k < l->n_params; k++)
      if (!vec_all_finite(l->param[k].w, l->param[k].n))
        return fault_at(g, i, site_names[SITE_WEIGHT], out);
    if (l->weight && l->weight != l->param[0].w && !vec_all_finite(l->weight, l->n_weight_copy))
      return fault_at(g, i, site_names[SITE_WEIGHT], out);
  }
  const struct layer *last = &g->layer[g->n_layers - 1];
  if (!isfinite(g->last_loss) || !vec_all_finite(last->y, g->rows * last->n_out))
    return fault_at(g, last->index, "loss", out);
  return false;
}

/* Backward: gradients of activations are overwritten as the pass goes on, but a bias gradient is the plain sum of G, so
 * it tells whether the G that came in was finite; if it was, the product dW went wrong here, else the dX of the layer
 * behind it did. */
static bool fault_backward(const struct graph *g, struct graph_fault *out)
{
  int behind = -1;
  for (int i = g->n_layers - 1; i >= 0; i--) {
    const struct layer *l = &g->layer[i];
    if (l->n_params == 0)
      continue;
    bool g_finite = l->n_params < 2 || vec_all_finite(l->param[1].g, l->param[1].n);
    if (!g_finite && behind >= 0)
      return fault_at(g, behind, site_names[SITE_GACT], out);
    if (!g_finite || !vec_all_finite(l->param[0].g, l->param[0].n))
      return fault_at(g, i, site_names[SITE_GWEIGHT], out);
    behind = i;
  }
  return false;
}

bool graph_find_fault(struct graph *g, struct graph_fault *out)
{
  return fault_forward(g, out) || (g->went_back && fault_backward(g, out));
}
