/* The backward pass of the convolution: dW and the bias's gradient summed in parts of the batch, then dX.
 *
 * The parts are LAYER_PARTS, whatever the number of threads, and are added in their order: the gradient depends on the
 * batch alone. Sums are made transposed (values under the window x channels out), the faster product of the two: its
 * longer side is the one that BLAS packs in pieces. */
#include "config.h"

#include <string.h>

#include "model/conv2d.h"
#include "tensor/gemm.h"
#include "tensor/vec.h"

struct grad_job {
  const struct layer *l;
  const struct layer_call *c;
  const float *x, *g; /* as quantized */
  size_t n_parts;
  /* the probe's; measure_every 0: nothing is wanted */
  size_t measure_every; /* groups */
  bool x_varies, g_varies;
  struct conv2d_sample sum[LAYER_PARTS];
  size_t n_measured[LAYER_PARTS];
};

/* Gradient of sample i, into area->grad or added to what is there. */
static void sample_product(const struct grad_job *j, size_t i, bool add, const struct conv2d_area *area)
{
  const struct conv2d *k = j->l->own;
  const float *u = conv2d_unfold(k, j->x + i * j->l->n_in, area->unfolded);
  const float *g = j->g + i * j->l->n_out, *dy = j->l->dy + i * j->l->n_out;
  gemm(NULL, GEMM_NT, k->size, k->out, k->positions, 1, u, g, add ? 1 : 0, area->grad);
  float *bias = area->grad + k->size * k->out;
  for (size_t o = 0; o < k->out; o++, dy += k->positions) {
    float lane[16] = {0}, sum = 0;
    size_t p = 0;
    for (; p + 16 <= k->positions; p += 16)
      for (size_t n = 0; n < 16; n++)
        lane[n] += dy[p + n];
    for (; p < k->positions; p++)
      sum += dy[p];
    for (size_t n = 0; n < 16; n++)
      sum += lane[n];
    bias[o] = add ? bias[o] + sum : sum;
  }
}

/* Sample i, whose gradient is alone in area->grad. */
static void measure(struct grad_job *j, size_t part, size_t i, const struct conv2d_area *area)
{
  const struct layer *l = j->l;
  const struct conv2d *k = l->own;
  struct conv2d_sample s = {0};
  bool has_bias = l->n_params > 1;
  if (j->x_varies || j->g_varies)
    conv2d_rounding(k, l->x[0] + i * l->n_in, j->x_varies ? j->x + i * l->n_in : NULL, l->dy + i * l->n_out,
                    j->g_varies ? j->g + i * l->n_out : NULL, area->map, &s);
  s.norm2 = vec_sum_sq(NULL, area->grad, has_bias ? k->n_grad : k->size * k->out);
  j->sum[part].norm2 += s.norm2;
  j->sum[part].a += s.a;
  j->sum[part].g += s.g;
  j->sum[part].ag += s.ag;
  j->n_measured[part]++;
}

static void grad_parts(void *ctx, size_t begin, size_t end, int worker)
{
  struct grad_job *j = ctx;
  const struct conv2d *k = j->l->own;
  struct conv2d_area area = conv2d_area(k, j->c->scratch, worker);
  for (size_t part = begin; part < end; part++) {
    struct row_range r = layer_part(j->c->rows, j->n_parts, part);
    float *sum = conv2d_part(k, j->c->scratch, part);
    size_t group = 0;
    for (size_t i = r.begin; i < r.end; i += k->group, group++) {
      for (size_t n = i; n < r.end && n < i + k->group; n++) {
        sample_product(j, n, n > i, &area);
        if (n == i && j->measure_every && group % j->measure_every == 0)
          measure(j, part, i, &area);
      }
      if (group == 0)
        memcpy(sum, area.grad, k->n_grad * sizeof *sum);
      else
        vec_add(NULL, sum, area.grad, k->n_grad, sum);
    }
  }
}

struct join_job {
  const struct layer *l;
  const struct scratch *scratch;
  size_t n_parts;
  float alpha, beta;
};

enum { JOIN_COLS = 64 };

/* Rows [begin, end) of the summed gradients, one value under the window each, go to their columns of dW; the row behind
 * the last is the bias's. */
static void join_rows(void *ctx, size_t begin, size_t end, int worker)
{
  const struct join_job *j = ctx;
  const struct conv2d *k = j->l->own;
  (void)worker;
  for (size_t row = begin; row < end; row++)
    for (size_t o0 = 0; o0 < k->out; o0 += JOIN_COLS) {
      float sum[JOIN_COLS] = {0};
      size_t n = k->out - o0 < JOIN_COLS ? k->out - o0 : JOIN_COLS;
      for (size_t part = 0; part < j->n_parts; part++) {
        const float *from = conv2d_part(k, j->scratch, part) + row * k->out + o0;
        for (size_t o = 0; o < n; o++)
          sum[o] += from[o];
      }
      bool bias = row == k->size;
      float *to = bias ? j->l->param[1].g + o0 : j->l->param[0].g + o0 * k->size + row;
      for (size_t o = 0; o < n; o++, to += bias ? 1 : k->size)
        *to = j->alpha * sum[o] + (j->beta != 0 ? j->beta * *to : 0);
    }
}

struct input_job {
  const struct layer *l;
  const struct layer_call *c;
  const float *g, *w;
};

static void input_samples(void *ctx, size_t begin, size_t end, int worker)
{
  const struct input_job *j = ctx;
  const struct layer *l = j->l;
  const struct conv2d *k = l->own;
  struct conv2d_area area = conv2d_area(k, j->c->scratch, worker);
  for (size_t i = begin; i < end; i++) {
    float *dx = l->dx[0] + i * l->n_in;
    const float *g = j->g + i * l->n_out;
    if (window_is_plain(&k->win)) {
      gemm(NULL, GEMM_TN, k->size, k->positions, k->out, 1, j->w, g, l->dx_add[0] ? 1 : 0, dx);
      continue;
    }
    gemm(NULL, GEMM_TN, k->size, k->positions, k->out, 1, j->w, g, 0, area.unfolded);
    if (!l->dx_add[0])
      memset(dx, 0, l->n_in * sizeof *dx);
    fold_add(&k->win, area.unfolded, dx);
  }
}

/* Rounding is measured on so many of the groups that it costs some percent of the products: it reads every value of X
 * and G twice, a product does `size` multiplications with each value of G. */
#define MEASURE_COST 40

static void plan_measuring(struct grad_job *j)
{
  const struct layer *l = j->l;
  const struct conv2d *k = l->own;
  const struct site_specs *s = j->c->pass->sites;
  j->x_varies = spec_is_stochastic(&s->at[s->share_act ? SITE_ACT : SITE_BACT]);
  j->g_varies = spec_is_stochastic(&s->at[SITE_GWEIGHT]);
  j->measure_every = 1;
  if (j->x_varies || j->g_varies)
    j->measure_every += MEASURE_COST * (l->n_in + l->n_out) / (k->out * k->size * k->positions * k->group);
}

/* The sums of the whole batch from the samples measured. The squared norm of a rounded gradient is on average that of
 * the exact one plus its rounding variance: X and G are rounded independently. */
static void fill_sums(struct layer *l, const struct layer_call *c, const struct grad_job *j)
{
  struct conv2d_sample all = {0};
  size_t n = 0;
  for (size_t i = 0; i < j->n_parts; i++) {
    all.norm2 += j->sum[i].norm2;
    all.a += j->sum[i].a;
    all.g += j->sum[i].g;
    all.ag += j->sum[i].ag;
    n += j->n_measured[i];
  }
  double scale = n ? (double)c->rows / (double)n : 0;
  double b2 = (double)c->pass->global_batch * (double)c->pass->global_batch;
  struct layer_sums *s = &l->sums;
  if (!c->pass->accumulate)
    *s = (struct layer_sums){0};
  s->norm2_samples += scale * (all.norm2 - (all.a + all.g + all.ag));
  s->quant_a += scale * all.a / b2;
  s->quant_g += scale * all.g / b2;
  s->quant_ag += scale * all.ag / b2;
}

void conv2d_backward(struct layer *l, const struct layer_call *c)
{
  const struct pass *p = c->pass;
  const struct conv2d *k = l->own;
  struct grad_job j = {.l = l, .c = c, .n_parts = layer_n_parts(c->rows)};
  if (p->want_sums)
    plan_measuring(&j);
  j.x = layer_quantize_saved(l, c, l->x[0], l->n_in, c->scratch->x, NULL);
  j.g = layer_quantize(l, c, SITE_GWEIGHT, l->dy, l->n_out, c->scratch->g, NULL);
  pool_for(p->pool, j.n_parts, 1, grad_parts, &j);
  struct join_job join = {l, c->scratch, j.n_parts, 1.0f / (float)p->global_batch, p->accumulate ? 1 : 0};
  pool_for(p->pool, k->size + (l->n_params > 1), 1 + 1024 / k->out, join_rows, &join);
  if (p->want_sums)
    fill_sums(l, c, &j);
  if (!l->dx[0])
    return;
  struct input_job in = {l, c, NULL, layer_weight_back(l, c, &l->param[0], k->out, k->size)};
  in.g = layer_quantize(l, c, SITE_GACT, l->dy, l->n_out, c->scratch->g, NULL);
  pool_for(p->pool, c->rows, (c->rows + LAYER_PARTS - 1) / LAYER_PARTS, input_samples, &in);
}
