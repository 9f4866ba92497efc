/* The linear layer, Y = X W^T + bias, with every quantization site of forward and backward:
 *
 *   Y  = act(X) weight(W)^T + bias
 *   dW = gweight(G)^T bact(X) / b      db = sum(G) / b, of the unquantized G
 *   dX = gact(G) bweight(W)
 *
 * act, bact, gweight and gact draw independently; bweight is weight's very draw with share_weight, bact is act's with
 * share_act. X is kept unquantized between the passes. */
#include "config.h"

#include <math.h>

#include "model/layer.h"
#include "tensor/gemm.h"
#include "tensor/vec.h"

static int linear_init(struct layer *l, const struct layer_setup *s, struct err *e)
{
  size_t given = shape_size(&l->in[0]), in, out;
  if (layer_size_option(l, s, "in", given, &in, e) || layer_size_option(l, s, "out", 0, &out, e))
    return -1;
  if (in != given)
    return err_set(e, "%s takes %zu values but %s gives %zu", l->name, in, s->input_name[0], given);
  bool bias = desc_option(s->desc, "bias", 1) != 0;
  l->out = shape_flat(out);
  l->scratch_x = in;
  l->scratch_g = out;
  l->scratch_w = l->n_weight_copy = in * out;
  l->scratch_rows = 1;
  layer_add_param(l, s, "weight", 2, (size_t[]){out, in}, true);
  if (bias)
    layer_add_param(l, s, "bias", 1, &out, false);
  return 0;
}

static void linear_init_weights(struct layer *l, uint64_t seed)
{
  for (int i = 0; i < l->n_params; i++)
    param_init_uniform(&l->param[i], seed, 1 / sqrt((double)l->n_in));
}

static void linear_forward(struct layer *l, const struct layer_call *c)
{
  const struct pass *p = c->pass;
  const float *x = layer_quantize(l, c, SITE_ACT, l->x[0], l->n_in, c->scratch->x, NULL);
  const float *w = layer_weight(l, c, &l->param[0], l->n_out, l->n_in);
  gemm(p->pool, GEMM_NT, c->rows, l->n_out, l->n_in, 1, x, w, 0, l->y);
  if (l->n_params > 1)
    vec_add_bias(p->pool, l->y, c->rows, l->n_out, l->param[1].w);
}

/* The parts of THEORY section 10 from the row sums: one row a sample, so ||g_i||^2 = ||G_i||^2 ||X_i||^2, and
 * ||G_i||^2 more for the bias. Double, in row order. */
static void linear_sums(struct layer *l, const struct layer_call *c)
{
  const struct scratch *r = c->scratch;
  double b2 = (double)c->pass->global_batch * (double)c->pass->global_batch;
  double bias = l->n_params > 1 ? 1 : 0, norm2 = 0, a = 0, g = 0, ag = 0;
  for (size_t i = 0; i < c->rows; i++) {
    double x_sq = r->x_sq[i], g_sq = r->g_sq[i], e = r->x_var[i], h = r->g_var[i];
    norm2 += g_sq * (x_sq + bias);
    a += g_sq * e;
    g += x_sq * h;
    ag += e * h;
  }
  struct layer_sums *s = &l->sums;
  if (!c->pass->accumulate)
    *s = (struct layer_sums){0};
  s->norm2_samples += norm2;
  s->quant_a += a / b2;
  s->quant_g += g / b2;
  s->quant_ag += ag / b2;
}

static void linear_backward(struct layer *l, const struct layer_call *c)
{
  const struct pass *p = c->pass;
  const struct scratch *s = c->scratch;
  struct quant_sums x_sums = {s->x_sq, s->x_var}, g_sums = {s->g_sq, s->g_var};
  float b_inv = 1.0f / (float)p->global_batch, beta = p->accumulate ? 1 : 0;

  const float *x = layer_quantize_saved(l, c, l->x[0], l->n_in, s->x, p->want_sums ? &x_sums : NULL);
  const float *g = layer_quantize(l, c, SITE_GWEIGHT, l->dy, l->n_out, s->g, p->want_sums ? &g_sums : NULL);
  gemm(p->pool, GEMM_TN, l->n_out, l->n_in, c->rows, b_inv, g, x, beta, l->param[0].g);
  if (l->n_params > 1)
    vec_sum_rows(p->pool, l->dy, c->rows, l->n_out, b_inv, beta, l->param[1].g);
  if (p->want_sums)
    linear_sums(l, c);
  if (!l->dx[0])
    return;
  const float *w = layer_weight_back(l, c, &l->param[0], l->n_out, l->n_in);
  g = layer_quantize(l, c, SITE_GACT, l->dy, l->n_out, s->g, NULL);
  gemm(p->pool, GEMM_NN, c->rows, l->n_in, l->n_out, 1, g, w, l->dx_add[0] ? 1 : 0, l->dx[0]);
}

const struct layer_type linear_type = {
    .name = "linear",
    .help = "Y = X W^T + bias",
    .options = (const char *const[]){"in", "out", "bias", NULL},
    .n_inputs = 1,
    .has_sites = true,
    .init = linear_init,
    .init_weights = linear_init_weights,
    .forward = linear_forward,
    .backward = linear_backward,
};
