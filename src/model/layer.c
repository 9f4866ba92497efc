/* The table of layer kinds, and what their init() functions share: options, parameters, initial weights. */
#include "config.h"

#include "model/layer.h"

#include <math.h>
#include <stdio.h>

#include "base/mem.h"
#include "model/names.h"

const struct layer_type *const layer_types[] = {&linear_type, &relu_type, &add_type, NULL};

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

void layer_add_param(struct layer *l, const struct layer_setup *s, const char *leaf, int rank, const size_t *shape,
                     bool decays)
{
  struct param p = {.rank = rank, .layer = l->index, .decays = decays, .n = 1};
  snprintf(p.name, sizeof p.name, "%s.%s", l->name, leaf);
  for (int i = 0; i < rank; i++) {
    p.shape[i] = shape[i];
    p.n *= shape[i];
  }
  p.tensor = l->tensor + 1 + (uint32_t)l->n_params++;
  *s->params = mem_realloc(*s->params, (*s->n_params + 1) * sizeof p);
  (*s->params)[(*s->n_params)++] = p;
}

void param_init_uniform(struct param *p, uint64_t seed, double bound)
{
  struct rng r;
  rng_init(&r, rng_derive(seed, RNG_INIT, p->tensor, 0, 0), 0);
  for (size_t i = 0; i < p->n; i++)
    p->w[i] = (float)((2 * rng_uniform(&r) - 1) * bound);
}
