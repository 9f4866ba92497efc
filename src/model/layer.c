/* The table of layer kinds, and what their init() functions share: options, parameters, initial weights. */
#include "config.h"

#include "model/layer.h"

#include <math.h>
#include <stdio.h>

#include "base/mem.h"
#include "model/names.h"

const struct layer_type *const layer_types[] = {
    &linear_type,
    &conv2d_type,
    &relu_type,
    &gelu_type,
    &silu_type,
    &maxpool2d_type,
    &avgpool2d_type,
    &batch_norm1d_type,
    &batch_norm2d_type,
    &dropout_type,
    &flatten_type,
    &add_type,
    NULL,
};

size_t shape_size(const struct shape *s)
{
  size_t n = 1;
  for (int i = 0; i < s->rank; i++)
    n *= s->dim[i];
  return n;
}

struct shape shape_flat(size_t n)
{
  return (struct shape){.rank = 1, .dim = {n}};
}

bool shape_equal(const struct shape *a, const struct shape *b)
{
  bool same = a->rank == b->rank;
  for (int i = 0; same && i < a->rank; i++)
    same = a->dim[i] == b->dim[i];
  return same;
}

struct row_range layer_part(size_t rows, size_t n, size_t i)
{
  return (struct row_range){rows * i / n, rows * (i + 1) / n};
}

size_t layer_n_parts(size_t rows)
{
  return rows < LAYER_PARTS ? rows : LAYER_PARTS;
}

const struct layer_type *layer_type_find(const char *name, struct err *e)
{
  const char *names[sizeof layer_types / sizeof *layer_types] = {0};
  for (int i = 0; layer_types[i]; i++)
    names[i] = layer_types[i]->name;
  int i = names_find("layer kind", name, names, e);
  return i < 0 ? NULL : layer_types[i];
}

int layer_check_options(const struct layer_type *t, const struct layer_desc *d, struct err *e)
{
  for (int i = 0; i < d->n_options; i++)
    if (names_find("option", d->option[i].key, t->options, e) < 0)
      return err_prefix(e, "%s (%s)", d->name, t->name);
  return 0;
}

int layer_size_option(const struct layer *l, const struct layer_setup *s, const char *key, size_t otherwise,
                      size_t *out, struct err *e)
{
  double v = desc_option(s->desc, key, NAN);
  if (isnan(v) && otherwise == 0)
    return err_set(e, "%s: %s needs the option \"%s\"", l->name, l->type->name, key);
  if (isnan(v))
    v = (double)otherwise;
  if (!(v >= 1 && v <= 2147483647.0) || v != floor(v))
    return err_set(e, "%s: %s = %g: must be a whole number from 1 to 2147483647", l->name, key, v);
  *out = (size_t)v;
  return 0;
}

int layer_real_option(const struct layer *l, const struct layer_setup *s, const char *key, double otherwise,
                      double least, double most, double *out, struct err *e)
{
  *out = desc_option(s->desc, key, otherwise);
  if (*out >= least && *out <= most)
    return 0;
  return err_set(e, "%s: %s = %g: must be a number from %g to %g", l->name, key, *out, least, most);
}

int layer_image_input(const struct layer *l, const struct layer_setup *s, struct err *e)
{
  const struct shape *in = &l->in[0];
  if (in->rank == 3)
    return 0;
  return err_set(e, "%s takes images (channels, height, width) but %s gives %zu values%s", l->name, s->input_name[0],
                 shape_size(in),
                 l->input[0] < 0 ? "; say in the model file how they lie, as in inputs = { 1, 28, 28 }" : "");
}

static void add_param(struct layer *l, const struct layer_setup *s, const char *leaf, int rank, const size_t *shape,
                      bool decays, bool trained)
{
  struct param p = {.rank = rank, .layer = l->index, .decays = decays, .trained = trained, .n = 1};
  snprintf(p.name, sizeof p.name, "%s.%s", l->name, leaf);
  for (int i = 0; i < rank; i++) {
    p.shape[i] = shape[i];
    p.n *= shape[i];
  }
  p.tensor = l->tensor + 1 + (uint32_t)l->n_params++;
  *s->params = mem_realloc(*s->params, (*s->n_params + 1) * sizeof p);
  (*s->params)[(*s->n_params)++] = p;
}

void layer_add_param(struct layer *l, const struct layer_setup *s, const char *leaf, int rank, const size_t *shape,
                     bool decays)
{
  add_param(l, s, leaf, rank, shape, decays, true);
}

void layer_add_buffer(struct layer *l, const struct layer_setup *s, const char *leaf, size_t n)
{
  add_param(l, s, leaf, 1, &n, false, false);
}

void param_init_uniform(struct param *p, uint64_t seed, double bound)
{
  struct rng r;
  rng_init(&r, rng_derive(seed, RNG_INIT, p->tensor, 0, 0), 0);
  for (size_t i = 0; i < p->n; i++)
    p->w[i] = (float)((2 * rng_uniform(&r) - 1) * bound);
}
