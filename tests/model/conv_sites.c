/* The quantization sites of a convolution: against its definition on quantized operands, bit for bit; draws, threads,
 * micro-batches; the gradient's variance over draws against the closed form with unfolded rows. */
#include "config.h"

#include <math.h>
#include <stdio.h>

#include "helper.h"
#include "model/layer.h"
#include "plain.h"
#include "tensor/gemm.h"

enum { NB = 16, MOST = 150, MAX = 400 };
#define TENSOR(layer, param) ((uint32_t)((layer)*16 + (param)))

static struct layer_desc *conv(struct model_desc *d, double out, double kernel, double stride, double padding)
{
  struct layer_desc *l = desc_add_layer(d, "conv2d", NULL);
  desc_set_option(l, "out", out);
  desc_set_option(l, "kernel", kernel);
  desc_set_option(l, "stride", stride);
  desc_set_option(l, "padding", padding);
  return l;
}

static struct model_desc images(size_t c, size_t h, size_t w, size_t n_outputs)
{
  struct model_desc d = {.name = "m", .loss = "cross_entropy", .n_inputs = c * h * w, .n_outputs = n_outputs};
  d.input_rank = 3;
  memcpy(d.input_shape, (size_t[]){c, h, w}, sizeof d.input_shape);
  return d;
}

/* 2 x 8 x 8, to 3 x 8 x 8, to 4 x 4 x 4, to 5 logits. */
static struct model_desc three_layers(void)
{
  struct model_desc d = images(2, 8, 8, 5);
  conv(&d, 3, 3, 1, 1);
  desc_add_layer(&d, "relu", NULL);
  conv(&d, 4, 3, 2, 1);
  desc_add_layer(&d, "relu", NULL);
  conv(&d, 5, 4, 1, 0);
  return d;
}

/* q(x) at a site: a key and a call. */
static void site(const struct pass *p, enum site s, uint32_t tensor, const float *x, size_t rows, size_t cols,
                 float *out)
{
  bool weight = s == SITE_WEIGHT || s == SITE_BWEIGHT;
  struct quant_rng r = {rng_derive(p->seed, p->stream, tensor, s, p->draw), p->step, weight ? 0 : p->first_slot * cols};
  quantize(&p->sites->at[s], x, rows, cols, &r, out, NULL, NULL, NULL, NULL);
}

/* One convolution of the naive network. Sums are in double; operands are on coarse grids under scales that are powers
 * of two, so that sums in fp32 are exact too, whatever their order. */
struct naive {
  int layer;
  const struct layer_desc *desc;
  struct plain_shape in, out;
  size_t n_in, n_out, n_w;
  float x[NB * MAX], y[NB * MAX], g[NB * MAX], dx[NB * MAX], dw[MAX], db[16];
};

static void naive_forward(struct naive *n, const struct pass *p, const float *w, const float *bias)
{
  static float xq[NB * MAX], wq[MAX];
  static double xd[MAX], wd[MAX + 16], yd[MAX];
  size_t out = plain_option(n->desc, "out", 0);
  site(p, SITE_ACT, TENSOR(n->layer, 0), n->x, NB, n->n_in, xq);
  site(p, SITE_WEIGHT, TENSOR(n->layer, 1), w, out, n->n_w / out, wq);
  for (size_t i = 0; i < n->n_w; i++)
    wd[i] = wq[i];
  for (size_t i = 0; i < out; i++)
    wd[n->n_w + i] = bias[i];
  for (size_t i = 0; i < NB; i++) {
    for (size_t j = 0; j < n->n_in; j++)
      xd[j] = xq[i * n->n_in + j];
    plain_conv(n->desc, wd, xd, n->in, yd, &n->out);
    for (size_t j = 0; j < n->n_out; j++)
      n->y[i * n->n_out + j] = (float)yd[j];
  }
}

/* dw += G at (f, oy, ox) times what lies under the window there; dx += the other way round. */
static void naive_position(struct naive *n, size_t f, size_t oy, size_t ox, double gw, double ga, const float *x,
                           const float *w, double *dw, double *dx)
{
  size_t k = plain_option(n->desc, "kernel", 0), stride = plain_option(n->desc, "stride", 1);
  long pad = (long)plain_option(n->desc, "padding", 0);
  for (size_t c = 0; c < n->in.c; c++)
    for (size_t ky = 0; ky < k; ky++)
      for (size_t kx = 0; kx < k; kx++) {
        long y = (long)(oy * stride + ky) - pad, v = (long)(ox * stride + kx) - pad;
        if (y < 0 || v < 0 || y >= (long)n->in.h || v >= (long)n->in.w)
          continue;
        size_t at = (c * n->in.h + (size_t)y) * n->in.w + (size_t)v, to = ((f * n->in.c + c) * k + ky) * k + kx;
        dw[to] += gw * x[at];
        dx[at] += ga * w[to];
      }
}

static void naive_backward(struct naive *n, const struct pass *p, const float *w)
{
  static float xq[NB * MAX], wq[MAX], gw[NB * MAX], ga[NB * MAX];
  static double dw[MAX], dx[MAX];
  const struct site_specs *s = p->sites;
  size_t out = plain_option(n->desc, "out", 0), positions = n->out.h * n->out.w;
  double db[16] = {0};
  site(p, s->share_act ? SITE_ACT : SITE_BACT, TENSOR(n->layer, 0), n->x, NB, n->n_in, xq);
  site(p, SITE_GWEIGHT, TENSOR(n->layer, 0), n->g, NB, n->n_out, gw);
  site(p, SITE_GACT, TENSOR(n->layer, 0), n->g, NB, n->n_out, ga);
  site(p, s->share_weight ? SITE_WEIGHT : SITE_BWEIGHT, TENSOR(n->layer, 1), w, out, n->n_w / out, wq);
  memset(dw, 0, sizeof dw);
  for (size_t i = 0; i < NB; i++) {
    memset(dx, 0, sizeof dx);
    for (size_t j = 0; j < n->n_out; j++) {
      size_t f = j / positions, at = i * n->n_out + j;
      naive_position(n, f, j % positions / n->out.w, j % n->out.w, gw[at], ga[at], xq + i * n->n_in, wq, dw, dx);
      db[f] += n->g[at] / NB;
    }
    for (size_t j = 0; j < n->n_in; j++)
      n->dx[i * n->n_in + j] = (float)dx[j];
  }
  for (size_t i = 0; i < n->n_w; i++)
    n->dw[i] = (float)(dw[i] / NB);
  for (size_t f = 0; f < out; f++)
    n->db[f] = (float)db[f];
}

static void softmax_gradient(const float *y, size_t n, size_t t, float *g)
{
  float max = y[0];
  double sum = 0;
  for (size_t k = 0; k < n; k++)
    max = y[k] > max ? y[k] : max;
  for (size_t k = 0; k < n; k++)
    sum += g[k] = expf(y[k] - max);
  for (size_t k = 0; k < n; k++)
    g[k] = g[k] * (float)(1 / sum) - (k == t ? 1.0f : 0.0f);
}

static struct naive net[3];

static void naive_step(const struct model_desc *d, struct graph *g, const struct pass *p, const float *x,
                       const int32_t *t)
{
  struct plain_shape in = {2, 8, 8};
  for (int l = 0; l < 3; l++) {
    struct naive *n = &net[l];
    const struct param *w = graph_param(g, 2 * (size_t)l);
    *n = (struct naive){.layer = 2 * l, .desc = &d->layer[2 * l], .in = in, .n_w = w->n};
    n->n_in = in.c * in.h * in.w;
    n->n_out = (size_t[]){192, 64, 5}[l];
    for (size_t i = 0; i < NB * n->n_in; i++)
      n->x[i] = l == 0 ? x[i] : net[l - 1].y[i] > 0 ? net[l - 1].y[i] : 0;
    naive_forward(n, p, w->w, graph_param(g, 2 * (size_t)l + 1)->w);
    in = n->out;
  }
  for (size_t i = 0; i < NB; i++)
    softmax_gradient(net[2].y + i * 5, 5, (size_t)t[i], net[2].g + i * 5);
  for (int l = 2; l >= 0; l--) {
    naive_backward(&net[l], p, graph_param(g, 2 * (size_t)l)->w);
    for (size_t i = 0; l > 0 && i < NB * net[l].n_in; i++)
      net[l - 1].g[i] = net[l].x[i] > 0 ? net[l].dx[i] : 0;
  }
}

struct fixture {
  struct model_desc d;
  struct graph *g;
  float *x;
  int32_t *t;
};

static struct fixture fixture(void)
{
  struct fixture f = {.d = three_layers()};
  f.g = helper_graph(&f.d, MOST);
  f.x = helper_normal(MOST * f.d.n_inputs, 4);
  f.t = helper_labels(MOST, 5);
  for (size_t i = 1; i < 6; i += 2) /* biases that add exactly */
    for (size_t k = 0; k < graph_param(f.g, i)->n; k++)
      graph_param(f.g, i)->w[k] = ldexpf(rintf(ldexpf(graph_param(f.g, i)->w[k], 6)), -6);
  return f;
}

static void fixture_done(struct fixture *f)
{
  graph_free(f->g);
  desc_done(&f->d);
  mem_free(f->x);
  mem_free(f->t);
}

static void compare(struct fixture *f, const struct pass *p, const char *what)
{
  graph_weights_changed(f->g);
  graph_forward(f->g, p, f->x, f->t, NB);
  naive_step(&f->d, f->g, p, f->x, f->t);
  bool same_y = memcmp(net[2].y, graph_output(f->g), NB * 5 * sizeof(float)) == 0, same_g = true;
  graph_backward(f->g, p);
  double worst = 0;
  for (size_t l = 0; l < 3; l++) {
    const struct param *w = graph_param(f->g, 2 * l), *b = graph_param(f->g, 2 * l + 1);
    same_g = same_g && memcmp(net[l].dw, w->g, w->n * sizeof(float)) == 0;
    for (size_t k = 0; k < b->n; k++)
      worst = fmax(worst, fabs(net[l].db[k] - b->g[k]));
  }
  ok(same_y && same_g && worst < 1e-6, "%s: outputs%s and gradients%s bit for bit, biases within %.1g", what,
     same_y ? "" : " NOT", same_g ? "" : " NOT", worst);
}

static void check_naive(void)
{
  struct fixture f = fixture();
  struct site_specs s = helper_fp32();
  struct pass p = helper_pass(&s, NB);
  for (int share = 0; share < 4; share++) {
    for (int i = SITE_ACT; i <= SITE_GACT; i++)
      s.at[i] = helper_spec(i % 2 ? "e2m1" : "e3m1", ROUND_SR);
    s.share_act = share & 1;
    s.share_weight = share & 2;
    char what[80];
    snprintf(what, sizeof what, "all six stochastic, share_act %d share_weight %d", s.share_act, s.share_weight);
    p.step++;
    compare(&f, &p, what);
    p.draw = 9;
    p.stream = RNG_PROBE;
    compare(&f, &p, "the same in a probe's draw");
    p.draw = 0;
    p.stream = RNG_SITE;
    p.first_slot = 100;
    compare(&f, &p, "the same at another slot");
    p.first_slot = 0;
  }
  fixture_done(&f);
}

/* Sums of a convolution do not depend on the number of threads, inexact as they are. */
static void check_threads(void)
{
  struct fixture f = fixture();
  struct site_specs s = helper_paper("e4m3");
  size_t n = graph_n_weights(f.g), rows[] = {3, 16, 50};
  float *first = mem_alloc(n * sizeof *first);
  for (size_t b = 0; b < 3; b++) {
    struct layer_sums sums = {0};
    bool same = true, same_sums = true, same_without = true;
    for (int run = 0; run < 8; run++) {
      struct pass p = helper_pass(&s, rows[b]);
      struct err e;
      p.pool = pool_create(run / 2 * 2 + 1, &e); /* 1, 3, 5, 7 */
      if (!p.pool)
        tap_bail("%s", e.msg);
      p.want_sums = run % 2 == 0;
      graph_forward(f.g, &p, f.x, f.t, rows[b]);
      graph_backward(f.g, &p);
      if (run == 0) {
        memcpy(first, graph_gradients(f.g), n * sizeof *first);
        sums = *graph_layer_sums(f.g, 2);
      }
      bool *which = run % 2 ? &same_without : &same;
      *which = *which && memcmp(first, graph_gradients(f.g), n * sizeof *first) == 0;
      same_sums = same_sums && memcmp(&sums, graph_layer_sums(f.g, 2), sizeof sums) == 0;
      pool_free(p.pool);
    }
    ok(same, "batch %zu: gradients on 3, 5 and 7 threads are those on one", rows[b]);
    ok(same_without, "batch %zu: and those without sums", rows[b]);
    ok(same_sums && sums.quant_a > 0, "batch %zu: so are the sums", rows[b]);
  }
  mem_free(first);
  fixture_done(&f);
}

/* Samples are summed in groups and parts: the gradient of a batch is the mean of those of its samples, one by one. */
static void check_batches(void)
{
  struct fixture f = fixture();
  struct site_specs s = helper_fp32();
  size_t n = graph_n_weights(f.g), rows[] = {17, 50, MOST};
  double *mean = mem_alloc(n * sizeof *mean);
  for (size_t b = 0; b < 3; b++) {
    struct pass p = helper_pass(&s, 1);
    double worst = 0, size = 0;
    for (size_t i = 0; i < rows[b]; i++) {
      graph_forward(f.g, &p, f.x + i * f.d.n_inputs, f.t + i, 1);
      graph_backward(f.g, &p);
      for (size_t k = 0; k < n; k++)
        mean[k] = (i ? mean[k] : 0) + graph_gradients(f.g)[k] / (double)rows[b];
    }
    p.global_batch = rows[b];
    graph_forward(f.g, &p, f.x, f.t, rows[b]);
    graph_backward(f.g, &p);
    for (size_t k = 0; k < n; k++) {
      worst = fmax(worst, fabs(mean[k] - graph_gradients(f.g)[k]));
      size = fmax(size, fabs(mean[k]));
    }
    ok(worst < 1e-6 && size > 0.01, "batch %zu: the mean of its samples' gradients, within %.2g of values up to %.2g",
       rows[b], worst, size);
  }
  mem_free(mean);
  fixture_done(&f);
}

static void check_accumulation(void)
{
  struct fixture f = fixture();
  struct site_specs s = helper_fp32();
  s.at[SITE_BACT] = s.at[SITE_GWEIGHT] = s.at[SITE_GACT] = helper_spec("bf16", ROUND_SR); /* no scale: one grid */
  struct pass p = helper_pass(&s, NB);
  p.want_sums = true;
  size_t n = graph_n_weights(f.g);
  float *whole = mem_alloc(n * sizeof *whole);
  graph_forward(f.g, &p, f.x, f.t, NB);
  graph_backward(f.g, &p);
  memcpy(whole, graph_gradients(f.g), n * sizeof *whole);
  struct layer_sums sums = *graph_layer_sums(f.g, 2);
  for (size_t at = 0; at < NB; at += at ? 6 : 4) { /* parts of 4, 6, 6 */
    p.first_slot = at;
    p.accumulate = at > 0;
    graph_forward(f.g, &p, f.x + at * f.d.n_inputs, f.t + at, at ? 6 : 4);
    graph_backward(f.g, &p);
  }
  double worst = 0;
  for (size_t i = 0; i < n; i++)
    worst = fmax(worst, fabs(whole[i] - graph_gradients(f.g)[i]));
  ok(worst < 1e-6, "three micro-batches give the gradient of the batch, draws included: within %.2g", worst);
  const struct layer_sums *got = graph_layer_sums(f.g, 2);
  is_close(got->norm2_samples, sums.norm2_samples, 1e-5 * sums.norm2_samples, "and the sum of per-sample norms");
  is_close(got->quant_a, sums.quant_a, 1e-4 * sums.quant_a, "and the rounding variance");
  is_close(got->norm2_mean, sums.norm2_mean, 1e-5 * sums.norm2_mean, "and the norm of the mean");
  mem_free(whole);
  fixture_done(&f);
}

/* One convolution whose outputs are the logits, so that its G is known: 2 x 6 x 5 to 3 channels. */
struct single {
  struct model_desc d;
  struct graph *g;
  float *x, *dy;
  int32_t *t;
  size_t b, n_in, n_out, n_w, positions;
  struct plain_shape in, out;
};

static struct single single(size_t b, double stride, double padding)
{
  struct single s = {.d = images(2, 6, 5, 0), .b = b, .in = {2, 6, 5}};
  struct layer_desc *l = conv(&s.d, 3, 3, stride, padding);
  static double zero[MAX], y[MAX];
  plain_conv(l, zero, zero, s.in, y, &s.out);
  s.positions = s.out.h * s.out.w;
  s.n_in = s.d.n_inputs;
  s.n_out = s.d.n_outputs = 3 * s.positions;
  s.n_w = 3 * 2 * 9;
  s.g = helper_graph(&s.d, b);
  s.x = helper_normal(b * s.n_in, 6);
  s.t = helper_labels(b, (uint32_t)s.n_out);
  s.dy = mem_alloc(b * s.n_out * sizeof *s.dy);
  struct site_specs fp32 = helper_fp32();
  struct pass p = helper_pass(&fp32, b);
  graph_forward(s.g, &p, s.x, s.t, b);
  for (size_t i = 0; i < b; i++)
    softmax_gradient(graph_output(s.g) + i * s.n_out, s.n_out, (size_t)s.t[i], s.dy + i * s.n_out);
  return s;
}

static void single_done(struct single *s)
{
  graph_free(s->g);
  desc_done(&s->d);
  mem_free(s->x);
  mem_free(s->dy);
  mem_free(s->t);
}

/* f(1-f) d^2 (THEORY section 0) of a value on a uniform grid. */
static double variance(double x, double step)
{
  double f = x / step - floor(x / step);
  return f * (1 - f) * step * step;
}

static double absmax(const float *x, size_t n)
{
  double m = 0;
  for (size_t i = 0; i < n; i++)
    m = fmax(m, fabs(x[i]));
  return m;
}

/* The closed form of THEORY section 10 with the rows of the unfolded image, times b^2, of one position of a sample. */
static void add_position(const struct single *s, size_t i, size_t p, double x_step, double g_step, double term[3])
{
  const struct layer_desc *d = &s->d.layer[0];
  size_t stride = plain_option(d, "stride", 1);
  long pad = (long)plain_option(d, "padding", 0);
  double g_sq = 0, h = 0, x_sq = 0, e = 0, image[MAX];
  for (size_t j = 0; j < s->n_in; j++)
    image[j] = s->x[i * s->n_in + j];
  for (size_t f = 0; f < 3; f++) {
    double g = s->dy[i * s->n_out + f * s->positions + p];
    g_sq += g * g;
    h += variance(g, g_step);
  }
  for (size_t c = 0; c < 2; c++)
    for (long k = 0; k < 9; k++) {
      double v = plain_at(image, s->in, c, (long)(p / s->out.w * stride) + k / 3 - pad,
                          (long)(p % s->out.w * stride) + k % 3 - pad);
      x_sq += v * v;
      e += variance(v, x_step);
    }
  term[0] += g_sq * e;
  term[1] += x_sq * h;
  term[2] += e * h;
}

/* Exact per-sample gradients, in double: the sum of their squared norms, weights and bias. */
static double exact_norms(const struct single *s)
{
  double sum = 0;
  static struct naive n;
  n = (struct naive){.desc = &s->d.layer[0], .in = s->in, .out = s->out};
  for (size_t i = 0; i < s->b; i++) {
    double dw[MAX] = {0}, dx[MAX], db[3] = {0};
    float w[MAX] = {0};
    for (size_t j = 0; j < s->n_out; j++) {
      double g = s->dy[i * s->n_out + j];
      naive_position(&n, j / s->positions, j % s->positions / s->out.w, j % s->out.w, g, 0, s->x + i * s->n_in, w, dw,
                     dx);
      db[j / s->positions] += g;
    }
    for (size_t k = 0; k < s->n_w; k++)
      sum += dw[k] * dw[k];
    for (size_t k = 0; k < 3; k++)
      sum += db[k] * db[k];
  }
  return sum;
}

/* Over many draws: dW is unbiased and varies as the closed form of independent draws for each unfolded value says,
 * although draws are shared; the streaming estimate has that value as its mean. */
static void check_moments(double stride, double padding)
{
  enum { B = 12, DRAWS = 20000 };
  struct single f = single(B, stride, padding);
  struct site_specs s = helper_fp32();
  struct pass p = helper_pass(&s, B);
  static double exact[MAX], mean[MAX], sq[MAX];
  double want[3] = {0}, got[3] = {0}, norms = 0, norms_sq = 0, total = 0, worst = 0;
  graph_forward(f.g, &p, f.x, f.t, B);
  graph_backward(f.g, &p);
  for (size_t k = 0; k < f.n_w; k++) {
    exact[k] = graph_gradients(f.g)[k];
    mean[k] = sq[k] = 0;
  }
  s.at[SITE_BACT] = s.at[SITE_GWEIGHT] = helper_spec("int3", ROUND_SR); /* steps of absmax / 3 */
  for (size_t i = 0; i < B; i++)
    for (size_t q = 0; q < f.positions; q++)
      add_position(&f, i, q, absmax(f.x, B * f.n_in) / 3, absmax(f.dy, B * f.n_out) / 3, want);
  p.stream = RNG_PROBE;
  p.want_sums = true;
  for (uint32_t r = 0; r < DRAWS; r++) {
    p.draw = r;
    graph_forward(f.g, &p, f.x, f.t, B);
    graph_backward(f.g, &p);
    const struct layer_sums *u = graph_layer_sums(f.g, 0);
    got[0] += u->quant_a / DRAWS;
    got[1] += u->quant_g / DRAWS;
    got[2] += u->quant_ag / DRAWS;
    norms += u->norm2_samples / DRAWS;
    norms_sq += u->norm2_samples * u->norm2_samples / DRAWS;
    for (size_t k = 0; k < f.n_w; k++) {
      double err = graph_gradients(f.g)[k] - exact[k];
      mean[k] += err / DRAWS;
      sq[k] += err * err / DRAWS;
    }
  }
  double all = (want[0] + want[1] + want[2]) / B / B, brute = exact_norms(&f);
  for (size_t k = 0; k < f.n_w; k++) {
    total += sq[k];
    worst = fmax(worst, fabs(mean[k]) / sqrt(sq[k] / DRAWS));
  }
  tap_note("stride %g, padding %g: T_A %.4g, T_G %.4g, T_AG %.4g of %.4g", stride, padding, want[0] / B / B,
           want[1] / B / B, want[2] / B / B, all);
  ok(worst < 5, "dW is unbiased over %d draws: largest z %.2f", DRAWS, worst); /* 54 elements: false alarm 3e-5 */
  ok(fabs(total / all - 1) < 0.02, "its variance is the closed form of unfolded rows: ratio %.4f", total / all);
  for (int i = 0; i < 3; i++)
    is_close(got[i] * B * B / want[i], 1, 0.01, "the mean estimate of %s over its closed form",
             ((const char *[]){"T_A", "T_G", "T_AG"})[i]);
  double sigma = sqrt((norms_sq - norms * norms) / DRAWS);
  ok(fabs(norms - brute) < 5 * sigma && sigma < 0.01 * brute,
     "sum of squared per-sample norms: %.6g, exact %.6g, z %.2f", norms, brute, (norms - brute) / sigma);
  single_done(&f);
}

/* With many samples one in so many is measured, the first of each group: turning the batch in its place measures each
 * sample once, and the mean is exact. */
static void check_sampling(void)
{
  enum { B = 64, TURNS = 4 };
  struct single f = single(B, 1, 0);
  struct site_specs s = helper_fp32();
  struct pass p = helper_pass(&s, B);
  double brute = exact_norms(&f), sum = 0, least = INFINITY, most = 0;
  float *x = mem_alloc(B * f.n_in * sizeof *x);
  int32_t t[B];
  p.want_sums = true;
  for (size_t turn = 0; turn < TURNS; turn++) {
    for (size_t i = 0; i < B; i++) {
      memcpy(x + i * f.n_in, f.x + (i + turn) % B * f.n_in, f.n_in * sizeof *x);
      t[i] = f.t[(i + turn) % B];
    }
    graph_forward(f.g, &p, x, t, B);
    graph_backward(f.g, &p);
    double v = graph_layer_sums(f.g, 0)->norm2_samples;
    sum += v / TURNS;
    least = fmin(least, v);
    most = fmax(most, v);
  }
  is_close(sum, brute, 1e-5 * brute, "a quarter of the samples is measured, each as often as the others");
  ok(least < most && most < 2 * least, "and one step's estimate is near: %.4g to %.4g around %.4g", least, most, brute);
  mem_free(x);
  single_done(&f);
}

int main(void)
{
  gemm_init();
  check_naive();
  check_threads();
  check_batches();
  check_accumulation();
  check_moments(1, 1);
  check_moments(2, 0);
  check_sampling();
  return tap_done();
}
