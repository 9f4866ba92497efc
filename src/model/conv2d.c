/* Two-dimensional convolution (cross-correlation, as everywhere in this field): its shape and its forward pass.
 *
 * Sample by sample the image is unfolded into U (values under the window x positions), and the three products of a
 * linear layer run on it, Y_i = act(W) U_i, dW = sum_i G_i U_i^T / b, dU_i = W^T G_i, folded back into dX_i. One
 * image's U stays in a core's cache, where that of a batch would go through memory three times; threads take samples.
 *
 * Sites quantize X and G as they lie, before unfolding: one draw for each of their values. A value meets up to kernel^2
 * positions, and drawing for each would cost as many times as much, stand for no machine (the tensor is rounded once,
 * when it is stored), and not let the saved activation be packed. What that does to the gradient's variance: nothing,
 * see conv2d_probe.c. */
#include "config.h"

#include "model/conv2d.h"

#include <math.h>

#include "base/mem.h"
#include "tensor/gemm.h"

/* Positions whose product is summed before it joins the part's sum: adding costs as much as some tens of them. */
#define GROUP_POSITIONS 256

static size_t in_lines(size_t n)
{
  return (n + 15) / 16 * 16;
}

static int set_window(struct layer *l, const struct layer_setup *s, struct conv2d *k, struct err *e)
{
  double padding;
  struct window *w = &k->win;
  w->channels = l->in[0].dim[0];
  w->height = l->in[0].dim[1];
  w->width = l->in[0].dim[2];
  size_t in;
  if (layer_size_option(l, s, "in", w->channels, &in, e) || layer_size_option(l, s, "out", 0, &k->out, e) ||
      layer_size_option(l, s, "kernel", 0, &w->kernel, e) || layer_size_option(l, s, "stride", 1, &w->stride, e) ||
      layer_real_option(l, s, "padding", 0, 0, 65535, &padding, e))
    return -1;
  if (padding != floor(padding))
    return err_set(e, "%s: padding = %g: must be a whole number", l->name, padding);
  if (in != w->channels)
    return err_set(e, "%s takes %zu channels but %s gives %zu", l->name, in, s->input_name[0], w->channels);
  w->padding = (size_t)padding;
  if (!window_fit(w))
    return err_set(e, "%s: its kernel of %zu x %zu is larger than the %zu x %zu images that %s gives, padded by %zu",
                   l->name, w->kernel, w->kernel, w->height, w->width, s->input_name[0], w->padding);
  return 0;
}

static int conv2d_init(struct layer *l, const struct layer_setup *s, struct err *e)
{
  struct conv2d *k = l->own = mem_alloc(sizeof *k);
  if (layer_image_input(l, s, e) || set_window(l, s, k, e))
    return -1;
  const struct window *w = &k->win;
  k->positions = window_positions(w);
  k->size = window_size(w);
  k->group = (GROUP_POSITIONS + k->positions - 1) / k->positions;
  k->n_grad = k->size * k->out + k->out;
  k->n_map = in_lines(w->height * w->width > k->positions ? w->height * w->width : k->positions);
  k->n_worker = in_lines(k->size * k->positions) + in_lines(k->n_grad) + 4 * k->n_map;
  l->out = (struct shape){.rank = 3, .dim = {k->out, w->out_height, w->out_width}};
  l->scratch_x = l->n_in;
  l->scratch_g = shape_size(&l->out);
  l->scratch_w = l->n_weight_copy = k->out * k->size;
  l->scratch_rows = 1;
  l->scratch_parts = LAYER_PARTS * (k->n_worker + in_lines(k->n_grad));
  layer_add_param(l, s, "weight", 4, (size_t[]){k->out, w->channels, w->kernel, w->kernel}, true);
  if (desc_option(s->desc, "bias", 1) != 0)
    layer_add_param(l, s, "bias", 1, &k->out, false);
  return 0;
}

static void conv2d_init_weights(struct layer *l, uint64_t seed)
{
  const struct conv2d *k = l->own;
  for (int i = 0; i < l->n_params; i++)
    param_init_uniform(&l->param[i], seed, 1 / sqrt((double)k->size));
}

struct conv2d_area conv2d_area(const struct conv2d *k, const struct scratch *s, int worker)
{
  float *at = s->parts + (size_t)worker * k->n_worker;
  struct conv2d_area a = {.unfolded = at};
  a.grad = at + in_lines(k->size * k->positions);
  for (size_t i = 0; i < 4; i++)
    a.map[i] = a.grad + in_lines(k->n_grad) + i * k->n_map;
  return a;
}

float *conv2d_part(const struct conv2d *k, const struct scratch *s, size_t part)
{
  return s->parts + LAYER_PARTS * k->n_worker + part * in_lines(k->n_grad);
}

const float *conv2d_unfold(const struct conv2d *k, const float *image, float *room)
{
  if (window_is_plain(&k->win))
    return image;
  unfold(&k->win, image, room);
  return room;
}

struct forward_job {
  const struct layer *l;
  const struct layer_call *c;
  const float *x, *w, *bias;
};

static void forward_samples(void *ctx, size_t begin, size_t end, int worker)
{
  const struct forward_job *j = ctx;
  const struct conv2d *k = j->l->own;
  struct conv2d_area area = conv2d_area(k, j->c->scratch, worker);
  for (size_t i = begin; i < end; i++) {
    const float *u = conv2d_unfold(k, j->x + i * j->l->n_in, area.unfolded);
    float *y = j->l->y + i * j->l->n_out;
    if (j->bias)
      for (size_t o = 0; o < k->out; o++)
        for (size_t p = 0; p < k->positions; p++)
          y[o * k->positions + p] = j->bias[o];
    gemm(NULL, GEMM_NN, k->out, k->positions, k->size, 1, j->w, u, j->bias ? 1 : 0, y);
  }
}

static void conv2d_forward(struct layer *l, const struct layer_call *c)
{
  const struct conv2d *k = l->own;
  struct forward_job j = {l, c, NULL, NULL, l->n_params > 1 ? l->param[1].w : NULL};
  j.x = layer_quantize(l, c, SITE_ACT, l->x[0], l->n_in, c->scratch->x, NULL);
  j.w = layer_weight(l, c, &l->param[0], k->out, k->size);
  /* never more ranges than there are areas */
  pool_for(c->pass->pool, c->rows, (c->rows + LAYER_PARTS - 1) / LAYER_PARTS, forward_samples, &j);
}

const struct layer_type conv2d_type = {
    .name = "conv2d",
    .help = "convolution of images with a square kernel, plus bias",
    .options = (const char *const[]){"out", "kernel", "stride", "padding", "bias", "in", NULL},
    .n_inputs = 1,
    .has_sites = true,
    .init = conv2d_init,
    .init_weights = conv2d_init_weights,
    .forward = conv2d_forward,
    .backward = conv2d_backward,
};
