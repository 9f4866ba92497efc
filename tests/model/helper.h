/* What the model's tests share: descriptions, passes and filled arrays. */
#ifndef TESTS_MODEL_HELPER_H
#define TESTS_MODEL_HELPER_H

#include "model/graph.h"

#include <stdlib.h>
#include <string.h>

#include "../tap/tap.h"
#include "base/mem.h"

/* n_in - widths... with ReLU between, one linear layer a width; the last has n_out. Caller desc_done()s. */
static inline struct model_desc helper_mlp(const char *name, const size_t *width, int n_widths)
{
  struct model_desc d = {.n_inputs = width[0], .n_outputs = width[n_widths - 1]};
  strcpy(d.name, name);
  strcpy(d.loss, "cross_entropy");
  for (int i = 1; i < n_widths; i++) {
    char fc[16] = {'f', 'c', (char)('0' + i)};
    struct layer_desc *l = desc_add_layer(&d, "linear", fc);
    desc_set_option(l, "out", (double)width[i]);
    if (i + 1 < n_widths)
      desc_add_layer(&d, "relu", NULL);
  }
  return d;
}

static inline struct graph *helper_graph(const struct model_desc *d, size_t rows)
{
  struct err e;
  struct graph *g = graph_create(d, 1, rows, &e);
  if (!g)
    tap_bail("%s", e.msg);
  return g;
}

static inline struct spec helper_spec(const char *format, enum rounding r)
{
  struct err e;
  const struct format *f = format_find(format, &e);
  if (!f)
    tap_bail("%s", e.msg);
  return spec_default(f, r);
}

static inline struct site_specs helper_fp32(void)
{
  struct site_specs s = {.share_weight = true};
  for (int i = 0; i < SITE_COUNT; i++)
    s.at[i] = helper_spec("fp32", ROUND_RNE);
  return s;
}

/* The recipe of the paper: forward activations untouched, weights to nearest, three independent stochastic draws. */
static inline struct site_specs helper_paper(const char *format)
{
  struct site_specs s = helper_fp32();
  s.at[SITE_WEIGHT] = s.at[SITE_BWEIGHT] = helper_spec(format, ROUND_RNE);
  s.at[SITE_BACT] = s.at[SITE_GWEIGHT] = s.at[SITE_GACT] = helper_spec(format, ROUND_SR);
  return s;
}

static inline struct pass helper_pass(const struct site_specs *s, size_t b)
{
  return (struct pass){.sites = s, .seed = 5, .step = 3, .stream = RNG_SITE, .global_batch = b};
}

static inline float *helper_normal(size_t n, uint32_t id)
{
  float *x = mem_alloc(n * sizeof *x);
  struct rng r;
  rng_init(&r, rng_derive(11, RNG_USER, id, 0, 0), 0);
  for (size_t i = 0; i < n; i++)
    x[i] = (float)rng_normal(&r);
  return x;
}

static inline int32_t *helper_labels(size_t n, uint32_t n_classes)
{
  int32_t *t = mem_alloc(n * sizeof *t);
  struct rng r;
  rng_init(&r, rng_derive(12, RNG_USER, 0, 0, 0), 0);
  for (size_t i = 0; i < n; i++)
    t[i] = (int32_t)rng_below(&r, n_classes);
  return t;
}

#endif
