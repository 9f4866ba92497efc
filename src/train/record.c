/* Runs as JSON, both ways. */
#include "config.h"

#include "train/record.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "io/jsonl.h"

/* -- writing */

void record_value(struct str *out, const struct knob_value *v)
{
  bool number = (v->type == KNOB_INT && strcmp(v->text, "mixed") != 0) || v->type == KNOB_REAL;
  if (number || v->type == KNOB_BOOL)
    str_add(out, v->text);
  else
    json_quote(out, v->text);
}

static void add_key(struct str *out, bool first, const char *key)
{
  str_add(out, first ? "" : ", ");
  json_quote(out, key);
  str_add(out, ": ");
}

void record_knobs(struct str *out, const struct knobs *k)
{
  str_addc(out, '{');
  for (int i = 0; i < KNOB_COUNT; i++) {
    add_key(out, i == 0, knob_table[i].name);
    record_value(out, &k->at[i]);
  }
  str_addc(out, '}');
}

void record_sites(struct str *out, const struct site_specs *s)
{
  str_addc(out, '{');
  for (int i = 0; i < SITE_COUNT; i++) {
    add_key(out, i == 0, site_names[i]);
    str_addc(out, '{');
    for (int f = 0; spec_fields[f]; f++) {
      char text[256];
      struct knob_value v;
      if (spec_get(&s->at[i], spec_fields[f], text, sizeof text))
        die("spec field \"%s\" has no value", spec_fields[f]);
      knob_site_value(spec_fields[f], text, &v);
      add_key(out, f == 0, spec_fields[f]);
      record_value(out, &v);
    }
    str_addc(out, '}');
  }
  str_addc(out, '}');
}

static void record_layer(struct str *out, const struct layer_desc *l)
{
  char number[32];
  str_add(out, "{\"kind\": ");
  json_quote(out, l->kind);
  str_add(out, ", \"name\": ");
  json_quote(out, l->name);
  str_addf(out, ", \"input\": %d, \"options\": {", l->input);
  for (int i = 0; i < l->n_options; i++) {
    add_key(out, i == 0, l->option[i].key);
    str_add(out, str_double(l->option[i].value, number));
  }
  str_add(out, "}}");
}

void record_model(struct str *out, const struct model_desc *d)
{
  str_add(out, "{\"name\": ");
  json_quote(out, d->name);
  str_add(out, ", \"loss\": ");
  json_quote(out, d->loss);
  str_addf(out, ", \"inputs\": %zu, \"outputs\": %zu", d->n_inputs, d->n_outputs);
  for (int i = 0; i < d->input_rank; i++)
    str_addf(out, "%s%zu%s", i ? ", " : ", \"input_shape\": [", d->input_shape[i], i + 1 < d->input_rank ? "" : "]");
  str_add(out, ", \"layers\": [");
  for (int i = 0; i < d->n_layers; i++) {
    str_add(out, i ? ", " : "");
    record_layer(out, &d->layer[i]);
  }
  str_add(out, "]}");
}

/* -- reading */

int record_int(const json_t *o, const char *key, uint64_t *out, struct err *e)
{
  const json_t *v = json_object_get(o, key);
  if (!json_is_integer(v) || json_integer_value(v) < 0)
    return err_set(e, "\"%s\" is missing or not a whole number", key);
  *out = (uint64_t)json_integer_value(v);
  return 0;
}

int record_real(const json_t *o, const char *key, double *out, struct err *e)
{
  static const struct {
    const char *text;
    double value;
  } special[] = {{"NaN", NAN}, {"Infinity", INFINITY}, {"-Infinity", -INFINITY}};
  const json_t *v = json_object_get(o, key);
  if (json_is_number(v)) {
    *out = json_number_value(v);
    return 0;
  }
  for (size_t i = 0; json_is_string(v) && i < sizeof special / sizeof *special; i++)
    if (strcmp(json_string_value(v), special[i].text) == 0) {
      *out = special[i].value;
      return 0;
    }
  return err_set(e, "\"%s\" is missing or not a number", key);
}

const char *record_text(const json_t *o, const char *key, struct err *e)
{
  const char *s = json_string_value(json_object_get(o, key));
  if (!s)
    err_set(e, "\"%s\" is missing or not a string", key);
  return s;
}

int record_value_text(const json_t *v, char *out, size_t n_bytes, struct err *e)
{
  char number[32];
  if (json_is_integer(v)) {
    snprintf(out, n_bytes, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
    return 0;
  }
  const char *text = json_is_string(v)    ? json_string_value(v)
                     : json_is_real(v)    ? str_double(json_real_value(v), number)
                     : json_is_boolean(v) ? (json_is_true(v) ? "true" : "false")
                                          : NULL;
  if (!text || !str_copy(out, n_bytes, text))
    return err_set(e, "a value is no number, string or boolean, or is too long");
  return 0;
}

/* Fields of a spec depend on one another (block before granularity, rounding before random_bits), so those that are
 * refused are tried again until nothing changes; then all must be as written. */
static int read_spec(const json_t *o, const char *site, struct spec *out, struct err *e)
{
  const char *format = record_text(o, "format", e);
  const struct format *f = format ? format_find(format, e) : NULL;
  if (!f)
    return err_prefix(e, "site %s", site);
  struct spec s = spec_default(f, ROUND_RNE);
  char text[256], got[256];
  for (int pass = 0; pass < 3; pass++)
    for (int i = 0; spec_fields[i]; i++) {
      const json_t *v = json_object_get(o, spec_fields[i]);
      if (strcmp(spec_fields[i], "format") == 0)
        continue;
      if (!v || record_value_text(v, text, sizeof text, e))
        return err_set(e, "site %s: \"%s\" is missing or no value", site, spec_fields[i]);
      if (spec_set(&s, spec_fields[i], text, e) && pass == 2)
        return err_prefix(e, "site %s", site);
    }
  for (int i = 0; spec_fields[i]; i++) {
    if (record_value_text(json_object_get(o, spec_fields[i]), text, sizeof text, e) ||
        spec_get(&s, spec_fields[i], got, sizeof got))
      return err_prefix(e, "site %s, %s", site, spec_fields[i]);
    if (strcmp(text, got) != 0 && strcmp(spec_fields[i], "format") != 0)
      return err_set(e, "site %s: %s = %s does not fit the rest of the spec", site, spec_fields[i], text);
  }
  *out = s;
  return 0;
}

static int read_sites(const json_t *sites, struct site_specs *out, struct err *e)
{
  for (int i = 0; i < SITE_COUNT; i++) {
    const json_t *o = json_object_get(sites, site_names[i]);
    if (!json_is_object(o))
      return err_set(e, "site %s is missing", site_names[i]);
    if (read_spec(o, site_names[i], &out->at[i], e))
      return -1;
  }
  return 0;
}

int record_read_knobs(const json_t *knobs, const json_t *sites, struct knobs *k, struct err *e)
{
  struct knobs new;
  knobs_defaults(&new);
  if (!json_is_object(knobs) || !json_is_object(sites))
    return err_set(e, "\"knobs\" or \"sites\" is missing");
  if (read_sites(sites, &new.sites, e))
    return -1;
  for (int i = 0; i < KNOB_COUNT; i++) {
    char text[256];
    bool derived = i == KNOB_BITS || i == KNOB_FORMAT || i == KNOB_ROUNDING;
    const json_t *v = json_object_get(knobs, knob_table[i].name);
    if (!v || derived)
      continue; /* a knob that a later version added has its default */
    if (record_value_text(v, text, sizeof text, e) ||
        knob_parse(&(struct knob_ref){.id = (enum knob_id)i}, text, &new.at[i], e))
      return err_prefix(e, "knob %s", knob_table[i].name);
  }
  new.sites.share_act = new.at[KNOB_SHARE_ACT].b;
  new.sites.share_weight = new.at[KNOB_SHARE_WEIGHT].b;
  knobs_refresh(&new);
  *k = new;
  return 0;
}

static int read_layer(const json_t *o, struct model_desc *d, struct err *e)
{
  const char *kind = record_text(o, "kind", e), *name = kind ? record_text(o, "name", e) : NULL, *key;
  const json_t *input = json_object_get(o, "input");
  json_t *v;
  if (!name)
    return -1;
  if (!json_is_integer(input) || json_integer_value(input) < -1 || json_integer_value(input) >= d->n_layers)
    return err_set(e, "layer \"%s\": \"input\" is no layer before it", name);
  if (strlen(kind) >= DESC_NAME || strlen(name) >= DESC_NAME)
    return err_set(e, "layer \"%s\": the name is too long", name);
  struct layer_desc *l = desc_add_layer(d, kind, name);
  l->input = (int)json_integer_value(input);
  json_object_foreach(json_object_get(o, "options"), key, v)
  {
    double value;
    if (l->n_options == DESC_OPTIONS || strlen(key) >= DESC_NAME ||
        record_real(json_object_get(o, "options"), key, &value, e))
      return err_set(e, "layer \"%s\": option \"%.40s\" is wrong", name, key);
    desc_set_option(l, key, value);
  }
  return 0;
}

/* Absent where the input is a flat list of values. */
static int read_input_shape(const json_t *shape, struct model_desc *d, struct err *e)
{
  size_t rank = json_array_size(shape);
  if (rank > DESC_RANK)
    return err_set(e, "\"input_shape\" has more than %d dimensions", DESC_RANK);
  for (size_t i = 0; i < rank; i++) {
    json_int_t n = json_integer_value(json_array_get(shape, i));
    if (n < 1 || n > INT32_MAX)
      return err_set(e, "\"input_shape\" is wrong");
    d->input_shape[i] = (size_t)n;
  }
  d->input_rank = (int)rank;
  return 0;
}

int record_read_model(const json_t *model, struct model_desc *d, struct err *e)
{
  uint64_t n_inputs = 0, n_outputs = 0;
  const json_t *layers = json_object_get(model, "layers");
  memset(d, 0, sizeof *d);
  const char *name = record_text(model, "name", e), *loss = name ? record_text(model, "loss", e) : NULL;
  if (!loss || record_int(model, "inputs", &n_inputs, e) || record_int(model, "outputs", &n_outputs, e) ||
      read_input_shape(json_object_get(model, "input_shape"), d, e))
    return err_prefix(e, "model");
  str_copy(d->name, sizeof d->name, name);
  str_copy(d->loss, sizeof d->loss, loss);
  d->n_inputs = (size_t)n_inputs;
  d->n_outputs = (size_t)n_outputs;
  for (size_t i = 0; i < json_array_size(layers); i++)
    if (read_layer(json_array_get(layers, i), d, e)) {
      desc_done(d);
      return err_prefix(e, "model");
    }
  return 0;
}
