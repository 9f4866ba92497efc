/* Model descriptions as plain data: making, copying, freeing them. */
#include "config.h"

#include "model/desc.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

struct layer_desc *desc_add_layer(struct model_desc *d, const char *kind, const char *name)
{
  d->layer = mem_realloc(d->layer, (size_t)(d->n_layers + 1) * sizeof *d->layer);
  struct layer_desc *l = &d->layer[d->n_layers];
  memset(l, 0, sizeof *l);
  str_copy(l->kind, sizeof l->kind, kind);
  if (name && *name)
    str_copy(l->name, sizeof l->name, name);
  else
    snprintf(l->name, sizeof l->name, "%.20s%d", kind, d->n_layers + 1);
  l->input = d->n_layers - 1;
  d->n_layers++;
  return l;
}

void desc_set_option(struct layer_desc *l, const char *key, double value)
{
  for (int i = 0; i < l->n_options; i++)
    if (strcmp(l->option[i].key, key) == 0) {
      l->option[i].value = value;
      return;
    }
  if (l->n_options == DESC_OPTIONS)
    die("layer \"%s\" has more than %d options", l->name, DESC_OPTIONS);
  struct desc_option *o = &l->option[l->n_options++];
  str_copy(o->key, sizeof o->key, key);
  o->value = value;
}

double desc_option(const struct layer_desc *l, const char *key, double otherwise)
{
  for (int i = 0; i < l->n_options; i++)
    if (strcmp(l->option[i].key, key) == 0)
      return l->option[i].value;
  return otherwise;
}

void desc_add_knob_default(struct model_desc *d, const char *knob, const char *value)
{
  d->knob_default = mem_realloc(d->knob_default, (size_t)(d->n_knob_defaults + 1) * sizeof *d->knob_default);
  str_copy(d->knob_default[d->n_knob_defaults].knob, sizeof d->knob_default->knob, knob);
  str_copy(d->knob_default[d->n_knob_defaults].value, sizeof d->knob_default->value, value);
  d->n_knob_defaults++;
}

void desc_copy(struct model_desc *to, const struct model_desc *from)
{
  *to = *from;
  to->layer = NULL;
  to->knob_default = NULL;
  if (from->n_layers) {
    to->layer = mem_alloc((size_t)from->n_layers * sizeof *to->layer);
    memcpy(to->layer, from->layer, (size_t)from->n_layers * sizeof *to->layer);
  }
  if (from->n_knob_defaults) {
    to->knob_default = mem_alloc((size_t)from->n_knob_defaults * sizeof *to->knob_default);
    memcpy(to->knob_default, from->knob_default, (size_t)from->n_knob_defaults * sizeof *to->knob_default);
  }
}

void desc_done(struct model_desc *d)
{
  mem_free(d->layer);
  mem_free(d->knob_default);
  memset(d, 0, sizeof *d);
}
