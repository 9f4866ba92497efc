/* Networks of vision layers in fp32: loss and gradients against definitions in double and their central differences,
 * values of an independent program, messages, memory. */
#include "config.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "helper.h"
#include "model/layer.h"
#include "fixture_vision.h"
#include "plain.h"
#include "tensor/gemm.h"

/* A layer with its options: name, value, ..., NULL. */
static struct layer_desc *put(struct model_desc *d, const char *kind, ...)
{
  struct layer_desc *l = desc_add_layer(d, kind, NULL);
  va_list ap;
  va_start(ap, kind);
  for (const char *key; (key = va_arg(ap, const char *));)
    desc_set_option(l, key, va_arg(ap, double));
  va_end(ap);
  return l;
}

static struct model_desc images(const char *name, size_t c, size_t h, size_t w, size_t n_outputs)
{
  struct model_desc d = {.loss = "cross_entropy", .n_outputs = n_outputs, .n_inputs = c * h * w};
  strcpy(d.name, name);
  d.input_rank = 3;
  d.input_shape[0] = c;
  d.input_shape[1] = h;
  d.input_shape[2] = w;
  return d;
}

/* Strides, padding, overlapping windows, both curves. */
static struct model_desc smooth_net(void)
{
  struct model_desc d = images("smooth", 2, 9, 8, 4);
  put(&d, "conv2d", "out", 3.0, "kernel", 3.0, "stride", 2.0, "padding", 1.0, NULL);
  put(&d, "gelu", NULL);
  put(&d, "conv2d", "out", 4.0, "kernel", 2.0, "padding", 2.0, NULL);
  put(&d, "gelu", "tanh", 1.0, NULL);
  put(&d, "avgpool2d", "kernel", 3.0, "stride", 2.0, NULL);
  put(&d, "conv2d", "out", 5.0, "kernel", 1.0, NULL);
  put(&d, "silu", NULL);
  put(&d, "maxpool2d", "kernel", 2.0, "stride", 1.0, NULL);
  put(&d, "flatten", NULL);
  put(&d, "linear", "out", 4.0, NULL);
  return d;
}

/* A residual block with a projection beside it, as in ResNet: branches meet, so gradients are added. */
static struct model_desc residual_net(void)
{
  struct model_desc d = images("residual", 1, 8, 8, 3);
  put(&d, "conv2d", "out", 3.0, "kernel", 3.0, "padding", 1.0, "bias", 0.0, NULL);
  put(&d, "batch_norm2d", NULL);
  put(&d, "relu", NULL);
  put(&d, "maxpool2d", "kernel", 2.0, NULL); /* 3 */
  put(&d, "conv2d", "out", 4.0, "kernel", 3.0, "stride", 2.0, "padding", 1.0, "bias", 0.0, NULL);
  put(&d, "batch_norm2d", NULL); /* 5 */
  put(&d, "conv2d", "out", 4.0, "kernel", 1.0, "stride", 2.0, NULL)->input = 3;
  put(&d, "add", "other", 5.0, NULL);
  put(&d, "relu", NULL); /* 8 */
  put(&d, "conv2d", "out", 4.0, "kernel", 1.0, NULL);
  put(&d, "add", "other", 8.0, NULL);
  put(&d, "avgpool2d", NULL);
  put(&d, "linear", "out", 6.0, NULL);
  put(&d, "batch_norm1d", NULL);
  put(&d, "linear", "out", 3.0, NULL);
  return d;
}

/* Pooling of windows side by side in its fast form, behind a ReLU that works in place. */
static struct model_desc pool_net(void)
{
  struct model_desc d = images("pool", 1, 9, 10, 3);
  put(&d, "conv2d", "out", 4.0, "kernel", 4.0, NULL);
  put(&d, "maxpool2d", "kernel", 2.0, NULL);
  put(&d, "relu", NULL);
  put(&d, "avgpool2d", "kernel", 2.0, "stride", 1.0, NULL);
  put(&d, "linear", "out", 3.0, NULL);
  return d;
}

/* Every kind as the second reader of a layer's output: it adds to a gradient that is there. */
static struct model_desc shared_net(void)
{
  struct model_desc d = images("shared", 1, 6, 6, 3);
  put(&d, "conv2d", "out", 2.0, "kernel", 3.0, "padding", 1.0, NULL);
  put(&d, "batch_norm2d", NULL);
  put(&d, "add", "other", 0.0, NULL); /* 2 */
  put(&d, "gelu", NULL);
  put(&d, "add", "other", 2.0, NULL); /* 4 */
  put(&d, "conv2d", "out", 2.0, "kernel", 3.0, "padding", 1.0, NULL);
  put(&d, "add", "other", 4.0, NULL); /* 6 */
  put(&d, "maxpool2d", "kernel", 2.0, NULL);
  put(&d, "conv2d", "out", 2.0, "kernel", 2.0, "stride", 2.0, NULL)->input = 6;
  put(&d, "add", "other", 7.0, NULL); /* 9 */
  put(&d, "maxpool2d", "kernel", 2.0, "stride", 1.0, NULL);
  put(&d, "avgpool2d", "kernel", 2.0, "stride", 1.0, NULL)->input = 9;
  put(&d, "add", "other", 10.0, NULL); /* 12 */
  put(&d, "conv2d", "out", 2.0, "kernel", 1.0, NULL);
  put(&d, "add", "other", 12.0, NULL); /* 14 */
  put(&d, "flatten", NULL);
  put(&d, "linear", "out", 8.0, NULL)->input = 14;
  put(&d, "add", "other", 15.0, NULL); /* 17 */
  put(&d, "batch_norm1d", NULL);
  put(&d, "add", "other", 17.0, NULL);
  put(&d, "linear", "out", 3.0, NULL);
  return d;
}

static void check_differences(struct model_desc d)
{
  enum { B = PLAIN_SAMPLES };
  struct graph *g = helper_graph(&d, B);
  struct site_specs s = helper_fp32();
  struct pass p = helper_pass(&s, B);
  float *x = helper_normal(B * d.n_inputs, 1);
  int32_t *t = helper_labels(B, (uint32_t)d.n_outputs);
  size_t n = graph_n_weights(g);
  double *w = mem_alloc(n * sizeof *w), worst = 0, size = 0;
  for (size_t i = 0; i < graph_n_params(g); i++) /* biases and scales away from their plain initial values */
    for (size_t k = 0; k < graph_param(g, i)->n; k++)
      graph_param(g, i)->w[k] += 0.3f * (float)sin(1.3 * (double)(k + 5 * i));
  for (size_t i = 0; i < n; i++)
    w[i] = graph_weights(g)[i];
  struct loss_result r = graph_forward(g, &p, x, t, B);
  graph_backward(g, &p);
  is_close(r.loss, plain_loss(&d, w, x, t, B), 2e-6, "%s: loss as by the definitions in double", d.name);
  for (size_t i = 0; i < n; i++) {
    double h = 1e-6, w0 = w[i];
    w[i] = w0 + h;
    double up = plain_loss(&d, w, x, t, B);
    w[i] = w0 - h;
    double slope = (up - plain_loss(&d, w, x, t, B)) / (2 * h);
    w[i] = w0;
    worst = fmax(worst, fabs(slope - graph_gradients(g)[i]));
    size = fmax(size, fabs(slope));
  }
  ok(size > 0.01 && worst < 3e-6 * fmax(1, size),
     "%s: gradient against central differences: within %.2g of values up to %.2g", d.name, worst, size);
  mem_free(w);
  mem_free(x);
  mem_free(t);
  graph_free(g);
  desc_done(&d);
}

/* A slope that central differences of the model cannot tell from nothing: far tails, where exp() overflows. */
static void check_tails(void)
{
  static const char *const kinds[] = {"gelu", "silu", "gelu"};
  static const float at[] = {-200, -90, -30, 30, 90, 200};
  int n_wrong = 0;
  for (int kind = 0; kind < 3; kind++)
    for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
      struct model_desc d = {.loss = "cross_entropy", .n_inputs = 1, .n_outputs = 2};
      put(&d, "linear", "out", 1.0, NULL);
      put(&d, kinds[kind], NULL);
      if (kind == 2)
        desc_set_option(&d.layer[1], "tanh", 1);
      put(&d, "linear", "out", 2.0, NULL);
      struct graph *g = helper_graph(&d, 1);
      struct site_specs s = helper_fp32();
      struct pass p = helper_pass(&s, 1);
      int32_t t = 0;
      float one = 1,
            *w = graph_weights(g); /* y = f(at), logits 0.01 f and 0: the gradient at the bias is f' (p0-1)/100 */
      memcpy(w, (float[]){at[i], 0, 0.01f, 0, 0, 0}, 6 * sizeof *w);
      graph_forward(g, &p, &one, &t, 1);
      graph_backward(g, &p);
      double f = at[i] > 0 ? at[i] : 0, slope = at[i] > 0, p0 = 1 / (1 + exp(-0.01 * f));
      n_wrong += !(fabs(graph_gradients(g)[1] - slope * (p0 - 1) * 0.01) < 1e-7);
      graph_free(g);
      desc_done(&d);
    }
  is_int(n_wrong, 0, "far from 0 gelu and silu are a line, without NaN");
}

/* fixture_vision.py: a network in small, by an independent program. */
static void check_fixture(void)
{
  enum { B = 3, N = sizeof vision_grad / sizeof *vision_grad };
  struct model_desc d = images("fixture", 1, 12, 12, 3);
  put(&d, "conv2d", "out", 3.0, "kernel", 3.0, NULL);
  put(&d, "relu", NULL);
  put(&d, "maxpool2d", "kernel", 2.0, NULL);
  put(&d, "conv2d", "out", 4.0, "kernel", 3.0, "padding", 1.0, "stride", 2.0, "bias", 0.0, NULL);
  put(&d, "batch_norm2d", NULL);
  put(&d, "gelu", NULL);
  put(&d, "avgpool2d", "kernel", 3.0, NULL);
  put(&d, "linear", "out", 3.0, NULL);
  struct graph *g = helper_graph(&d, B);
  struct site_specs s = helper_fp32();
  struct pass p = helper_pass(&s, B);
  static float x[B * 144];
  int32_t t[] = {2, 0, 1};
  for (int i = 0; i < B * 144; i++)
    x[i] = (float)cos(2.3 * i);
  is_int(graph_n_weights(g), N, "as many weights");
  for (int i = 0; i < N; i++)
    graph_weights(g)[i] = (float)(0.6 * sin(1.7 * (i + 1)));
  struct loss_result r = graph_forward(g, &p, x, t, B);
  graph_backward(g, &p);
  graph_commit(g);
  is_close(r.loss, vision_loss, 1e-6, "loss as of the independent program");
  double worst = 0;
  for (int i = 0; i < N; i++)
    worst = fmax(worst, fabs(graph_gradients(g)[i] - vision_grad[i]));
  ok(worst < 2e-6, "gradients as of the independent program: within %.2g", worst);
  worst = 0;
  float *running = graph_param(g, 5)->w; /* 4 means, 4 variances */
  for (int i = 0; i < 8; i++)
    worst = fmax(worst, fabs(running[i] - vision_running[i]));
  ok(worst < 2e-6, "running statistics as of the independent program: within %.2g", worst);
  for (int i = 0; i < 4; i++)
    running[4 + i] = 0.5f + 0.5f * (float)i;
  p.evaluate = true;
  is_close(graph_forward(g, &p, x, t, B).loss, vision_eval_loss, 1e-6,
           "loss in evaluation as of the independent program");
  graph_free(g);
  desc_done(&d);
}

static void refused(const struct model_desc *d, const char *want, const char *what)
{
  struct err e = {""};
  struct graph *g = graph_create(d, 1, 4, &e);
  ok(!g && strstr(e.msg, want), "%s: \"%s\"", what, e.msg);
  graph_free(g);
}

static void check_messages(void)
{
  struct model_desc d = images("m", 1, 8, 8, 3);
  put(&d, "conv2d", "out", 4.0, "kernel", 9.0, NULL);
  put(&d, "maxpool2d", "kernel", 2.0, NULL);
  put(&d, "linear", "out", 3.0, NULL);
  refused(&d, "conv2d1: its kernel of 9 x 9 is larger than the 8 x 8 images that the data gives", "a large kernel");
  desc_set_option(&d.layer[0], "kernel", 3);
  desc_set_option(&d.layer[0], "in", 3);
  refused(&d, "conv2d1 takes 3 channels but the data gives 1", "channels that do not fit");
  desc_set_option(&d.layer[0], "in", 1);
  desc_set_option(&d.layer[0], "padding", 0.5);
  refused(&d, "conv2d1: padding = 0.5: must be a whole number", "half a pixel of padding");
  desc_set_option(&d.layer[0], "padding", -1);
  refused(&d, "conv2d1: padding = -1: must be", "negative padding");
  desc_set_option(&d.layer[0], "padding", 0);
  desc_set_option(&d.layer[0], "stride", 0);
  refused(&d, "conv2d1: stride = 0: must be", "no stride");
  desc_set_option(&d.layer[0], "stride", 1);
  desc_set_option(&d.layer[1], "kernel", 7);
  refused(&d, "maxpool2d2: its kernel of 7 x 7 is larger than the 6 x 6 images that conv2d1 gives", "a large pool");
  desc_set_option(&d.layer[1], "kernel", 2);
  desc_set_option(&d.layer[2], "in", 30);
  refused(&d, "linear3 takes 30 values but maxpool2d2 gives 36", "a linear layer behind images");
  desc_set_option(&d.layer[2], "in", 36);
  d.input_shape[1] = 7;
  refused(&d, "the shape of its input does not hold 64 values", "a shape that contradicts itself");
  d.input_rank = 0;
  refused(&d, "conv2d1 takes images (channels, height, width) but the data gives 64 values; say in the model file",
          "images without a shape");
  desc_done(&d);

  d = images("m", 1, 8, 8, 3);
  put(&d, "linear", "out", 36.0, NULL);
  put(&d, "conv2d", "out", 3.0, "kernel", 1.0, NULL);
  refused(&d, "conv2d2 takes images (channels, height, width) but linear1 gives 36 values",
          "a list of values to conv2d");
  strcpy(d.layer[1].kind, "batch_norm2d");
  d.layer[1].n_options = 0;
  refused(&d, "conv2d2 takes images", "a list of values to batch_norm2d");
  strcpy(d.layer[1].kind, "dropout");
  desc_set_option(&d.layer[1], "p", 1.5);
  refused(&d, "p = 1.5: must be a number from 0 to 1", "a probability above 1");
  desc_done(&d);

  d = images("m", 2, 4, 4, 2);
  put(&d, "batch_norm1d", NULL);
  refused(&d, "batch_norm1d1 takes a list of values but the data gives an image: use batch_norm2d",
          "images to batch_norm1d");
  desc_done(&d);

  d = images("m", 1, 4, 4, 3);
  put(&d, "conv2d", "out", 4.0, "kernel", 1.0, NULL);
  put(&d, "maxpool2d", "kernel", 2.0, NULL);
  put(&d, "conv2d", "out", 1.0, "kernel", 1.0, NULL)->input = 0;
  put(&d, "add", "other", 1.0, NULL);
  put(&d, "linear", "out", 3.0, NULL);
  refused(&d, "add4 adds 4 x 2 x 2 of maxpool2d2 to 1 x 4 x 4 of conv2d3", "as many values of another shape");
  desc_done(&d);
}

/* The largest memory there is, each allocation failing in turn; and none inside a step. */
static void check_memory(void)
{
  struct model_desc d = residual_net();
  uint64_t before = mem_counts().live_bytes;
  struct err e;
  int n_failed = 0;
  for (uint64_t nth = 1; nth < 20; nth++) {
    mem_fail_nth(nth);
    struct graph *g = graph_create(&d, 1, 8, &e);
    mem_fail_nth(0);
    n_failed += !g;
    graph_free(g);
    if (g)
      break;
  }
  ok(n_failed >= 5, "each of %d allocations may fail", n_failed);
  is_int(mem_counts().live_bytes, before, "and nothing is leaked");
  struct graph *g = helper_graph(&d, 8);
  struct site_specs s = helper_paper("e4m3");
  struct pass p = helper_pass(&s, 8);
  p.want_sums = true;
  float *x = helper_normal(8 * d.n_inputs, 3);
  int32_t *t = helper_labels(8, 3);
  uint64_t n = 0;
  for (int step = 0; step < 2; step++) {
    n = mem_counts().n_allocs;
    graph_forward(g, &p, x, t, 8);
    graph_backward(g, &p);
    graph_commit(g);
    graph_weights_changed(g);
  }
  is_int(mem_counts().n_allocs, n, "a step allocates nothing");
  mem_free(x);
  mem_free(t);
  graph_free(g);
  desc_done(&d);
}

int main(void)
{
  gemm_init();
  check_fixture();
  check_differences(smooth_net());
  check_differences(residual_net());
  check_differences(pool_net());
  check_differences(shared_net());
  check_tails();
  check_messages();
  check_memory();
  return tap_done();
}
