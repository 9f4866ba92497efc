/* Layers of vision networks in double precision, written as their definitions read: what the fast ones are compared
 * with. One network is a list of steps over arrays of samples; plain_loss() runs it forward. */
#ifndef TESTS_MODEL_PLAIN_H
#define TESTS_MODEL_PLAIN_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "model/desc.h"

enum { PLAIN_SAMPLES = 6, PLAIN_VALUES = 400, PLAIN_LAYERS = 24 };

struct plain_shape {
  size_t c, h, w;
};
/* One sample's values; batches are arrays of them. */
typedef double plain_values[PLAIN_SAMPLES][PLAIN_VALUES];

static inline double plain_at(const double *x, struct plain_shape s, size_t c, long y, long v)
{
  return y < 0 || v < 0 || y >= (long)s.h || v >= (long)s.w ? 0 : x[(c * s.h + (size_t)y) * s.w + (size_t)v];
}

static inline size_t plain_option(const struct layer_desc *d, const char *key, double otherwise)
{
  return (size_t)desc_option(d, key, otherwise);
}

/* w: out x channels x kernel x kernel, then the biases. Returns the weights used. */
static inline const double *plain_conv(const struct layer_desc *d, const double *w, const double *x,
                                       struct plain_shape s, double *y, struct plain_shape *o)
{
  size_t out = plain_option(d, "out", 0), k = plain_option(d, "kernel", 0), step = plain_option(d, "stride", 1);
  long pad = (long)plain_option(d, "padding", 0);
  const double *bias = w + out * s.c * k * k;
  *o = (struct plain_shape){out, (s.h + 2 * (size_t)pad - k) / step + 1, (s.w + 2 * (size_t)pad - k) / step + 1};
  for (size_t f = 0; f < out; f++)
    for (size_t oy = 0; oy < o->h; oy++)
      for (size_t ox = 0; ox < o->w; ox++) {
        double sum = plain_option(d, "bias", 1) ? bias[f] : 0;
        for (size_t c = 0; c < s.c; c++)
          for (size_t ky = 0; ky < k; ky++)
            for (size_t kx = 0; kx < k; kx++)
              sum += w[((f * s.c + c) * k + ky) * k + kx] *
                     plain_at(x, s, c, (long)(oy * step + ky) - pad, (long)(ox * step + kx) - pad);
        y[(f * o->h + oy) * o->w + ox] = sum;
      }
  return bias + (plain_option(d, "bias", 1) ? out : 0);
}

static inline const double *plain_linear(const struct layer_desc *d, const double *w, const double *x,
                                         struct plain_shape s, double *y, struct plain_shape *o)
{
  size_t out = plain_option(d, "out", 0), n = s.c * s.h * s.w;
  *o = (struct plain_shape){out, 1, 1};
  for (size_t k = 0; k < out; k++) {
    y[k] = w[out * n + k];
    for (size_t j = 0; j < n; j++)
      y[k] += w[k * n + j] * x[j];
  }
  return w + out * n + out;
}

static inline void plain_pool(const struct layer_desc *d, const double *x, struct plain_shape s, double *y,
                              struct plain_shape *o)
{
  int max = strcmp(d->kind, "maxpool2d") == 0;
  size_t kh = plain_option(d, "kernel", (double)s.h), kw = plain_option(d, "kernel", (double)s.w);
  size_t step = plain_option(d, "stride", (double)kh);
  *o = (struct plain_shape){s.c, (s.h - kh) / step + 1, (s.w - kw) / step + 1};
  for (size_t c = 0; c < s.c; c++)
    for (size_t oy = 0; oy < o->h; oy++)
      for (size_t ox = 0; ox < o->w; ox++) {
        double best = -INFINITY, sum = 0;
        for (size_t ky = 0; ky < kh; ky++)
          for (size_t kx = 0; kx < kw; kx++) {
            double v = plain_at(x, s, c, (long)(oy * step + ky), (long)(ox * step + kx));
            best = v > best ? v : best;
            sum += v;
          }
        y[(c * o->h + oy) * o->w + ox] = max ? best : sum / (double)(kh * kw);
      }
}

/* w: scale, shift, then the running statistics, which training does not read. */
static inline const double *plain_norm(const double *w, plain_values x, struct plain_shape s, size_t b, plain_values y)
{
  size_t channels = s.h * s.w == 1 ? s.c * s.h * s.w : s.c, n = s.h * s.w;
  for (size_t c = 0; c < channels; c++) {
    double mean = 0, var = 0;
    for (size_t i = 0; i < b; i++)
      for (size_t p = 0; p < n; p++)
        mean += x[i][c * n + p] / (double)(b * n);
    for (size_t i = 0; i < b; i++)
      for (size_t p = 0; p < n; p++)
        var += pow(x[i][c * n + p] - mean, 2) / (double)(b * n);
    for (size_t i = 0; i < b; i++)
      for (size_t p = 0; p < n; p++)
        y[i][c * n + p] = (x[i][c * n + p] - mean) / sqrt(var + 1e-5) * w[c] + w[channels + c];
  }
  return w + 4 * channels;
}

static inline double plain_curve(const struct layer_desc *d, double x)
{
  if (strcmp(d->kind, "relu") == 0)
    return x > 0 ? x : 0;
  if (strcmp(d->kind, "silu") == 0)
    return x / (1 + exp(-x));
  if (strcmp(d->kind, "gelu") == 0 && desc_option(d, "tanh", 0) != 0)
    return x / 2 * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * pow(x, 3))));
  if (strcmp(d->kind, "gelu") == 0)
    return x * (1 + erf(x / sqrt(2))) / 2;
  return x; /* flatten */
}

static inline double plain_cross_entropy(plain_values y, const int32_t *t, size_t b, size_t n)
{
  double loss = 0;
  for (size_t i = 0; i < b; i++) {
    double sum = 0;
    for (size_t k = 0; k < n; k++)
      sum += exp(y[i][k]);
    loss += (log(sum) - y[i][t[i]]) / (double)b;
  }
  return loss;
}

/* Mean loss of b samples x under the network d with all its weights, in the order of the graph's. */
static inline double plain_loss(const struct model_desc *d, const double *w, const float *x, const int32_t *t, size_t b)
{
  static plain_values y[PLAIN_LAYERS + 1]; /* y[0]: the input */
  struct plain_shape s[PLAIN_LAYERS + 1] = {{d->n_inputs, 1, 1}};
  if (d->input_rank == 3)
    s[0] = (struct plain_shape){d->input_shape[0], d->input_shape[1], d->input_shape[2]};
  for (size_t i = 0; i < b; i++)
    for (size_t j = 0; j < d->n_inputs; j++)
      y[0][i][j] = x[i * d->n_inputs + j];
  for (int l = 0; l < d->n_layers; l++) {
    const struct layer_desc *o = &d->layer[l];
    int from = o->input + 1;
    const double *next = w;
    s[l + 1] = s[from];
    if (strncmp(o->kind, "batch_norm", 10) == 0)
      next = plain_norm(w, y[from], s[from], b, y[l + 1]);
    for (size_t i = 0; i < b; i++) {
      if (strcmp(o->kind, "conv2d") == 0)
        next = plain_conv(o, w, y[from][i], s[from], y[l + 1][i], &s[l + 1]);
      else if (strcmp(o->kind, "linear") == 0)
        next = plain_linear(o, w, y[from][i], s[from], y[l + 1][i], &s[l + 1]);
      else if (strstr(o->kind, "pool2d"))
        plain_pool(o, y[from][i], s[from], y[l + 1][i], &s[l + 1]);
      else if (strcmp(o->kind, "add") == 0)
        for (size_t j = 0; j < PLAIN_VALUES; j++)
          y[l + 1][i][j] = y[from][i][j] + y[(int)desc_option(o, "other", 0) + 1][i][j];
      else if (strncmp(o->kind, "batch_norm", 10) != 0)
        for (size_t j = 0; j < PLAIN_VALUES; j++)
          y[l + 1][i][j] = plain_curve(o, y[from][i][j]);
    }
    w = next;
  }
  return plain_cross_entropy(y[d->n_layers], t, b, d->n_outputs);
}

#endif
