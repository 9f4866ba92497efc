/* Single fields of a spec by name, in text: one table row each. */
#include "config.h"

#include "numeric/spec.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"

enum field_type { FIELD_FORMAT, FIELD_ROUNDING, FIELD_CHOICE, FIELD_FLAG, FIELD_INT, FIELD_REAL };

static const char *const truth[] = {"false", "true", NULL};
static const char *const not_truth[] = {"true", "false", NULL};
static const char *const subnormal_words[] = {"full", "flush", NULL};

static const struct field {
  const char *name;
  enum field_type type;
  size_t offset;
  const char *const *words; /* choices and flags, by value */
  double min, max;          /* numbers */
} fields[] = {
    {"format", FIELD_FORMAT, offsetof(struct spec, format), NULL, 0, 0},
    {"rounding", FIELD_ROUNDING, offsetof(struct spec, rounding), NULL, 0, 0},
    {"granularity", FIELD_CHOICE, offsetof(struct spec, granularity), granularity_names, 0, 0},
    {"scale", FIELD_CHOICE, offsetof(struct spec, scale), scale_rule_names, 0, 0},
    {"block", FIELD_INT, offsetof(struct spec, block), NULL, 0, 1 << 20},
    {"random_bits", FIELD_INT, offsetof(struct spec, random_bits), NULL, 1, 32},
    {"saturate", FIELD_FLAG, offsetof(struct spec, no_saturate), not_truth, 0, 0},
    {"subnormals", FIELD_FLAG, offsetof(struct spec, flush), subnormal_words, 0, 0},
    {"fixed_scale", FIELD_REAL, offsetof(struct spec, fixed_scale), NULL, 0x1p-126, 0x1p126},
    {"eps", FIELD_REAL, offsetof(struct spec, eps), NULL, 0, 1},
    {"clip", FIELD_REAL, offsetof(struct spec, clip), NULL, 0, 1},
    {"zero_point", FIELD_INT, offsetof(struct spec, zero_point), NULL, 0, 65535},
    {"error_feedback", FIELD_FLAG, offsetof(struct spec, feedback), truth, 0, 0},
};
enum { N_FIELDS = sizeof fields / sizeof *fields };

const char *const spec_fields[] = {"format",      "rounding",   "granularity",    "scale",       "block",
                                   "random_bits", "saturate",   "subnormals",     "fixed_scale", "eps",
                                   "clip",        "zero_point", "error_feedback", NULL};
_Static_assert(sizeof spec_fields / sizeof *spec_fields == N_FIELDS + 1, "spec_fields lists the fields in their order");

static const struct field *find_field(const char *name)
{
  for (size_t i = 0; i < N_FIELDS; i++)
    if (strcmp(fields[i].name, name) == 0)
      return &fields[i];
  return NULL;
}

static int find_word(const char *const *words, const char *field, const char *value, struct err *e)
{
  struct str all = {0};
  for (int i = 0; words[i]; i++) {
    if (strcasecmp(words[i], value) == 0) {
      str_done(&all);
      return i;
    }
    str_addf(&all, "%s%s", i ? ", " : "", words[i]);
  }
  const char *near = str_nearest(value, words);
  err_set(e, "%s = %.40s: allowed are %s%s%s%s", field, value, all.s, near ? "; did you mean '" : "", near ? near : "",
          near ? "'?" : "");
  str_done(&all);
  return -1;
}

static int set_number(void *at, const struct field *f, const char *value, struct err *e)
{
  char *end;
  double v = strtod(value, &end);
  if (end == value || *end)
    return err_set(e, "%s = %.40s: must be a number", f->name, value);
  if (!(v >= f->min && v <= f->max))
    return err_set(e, "%s = %.40s: must be %g to %g", f->name, value, f->min, f->max);
  if (f->type == FIELD_INT && v != floor(v))
    return err_set(e, "%s = %.40s: must be a whole number", f->name, value);
  if (f->type == FIELD_INT)
    *(int *)at = (int)v;
  else
    *(float *)at = (float)v;
  return 0;
}

static int set_format(struct spec *s, const char *value, struct err *e)
{
  const struct format *f = format_find(value, e);
  if (!f)
    return -1;
  struct spec d = spec_default(f, s->rounding);
  s->format = f;
  s->granularity = d.granularity;
  s->scale = d.scale;
  s->block = d.block;
  s->zero_point = 0;
  return 0;
}

/* Scaling that was the old rounding's default becomes the new one's (ternary and binary: absmean, absmax). */
static int set_rounding(struct spec *s, const char *value, struct err *e)
{
  struct spec old = spec_default(s->format, s->rounding);
  if (rounding_find(value, &s->rounding, e))
    return -1;
  if (s->scale == old.scale)
    s->scale = spec_default(s->format, s->rounding).scale;
  bool any_k = s->rounding == ROUND_SR_FF || s->rounding == ROUND_SR_F || s->rounding == ROUND_SR_C;
  if (!any_k && s->random_bits != 16 && s->random_bits != 8)
    s->random_bits = 32;
  return 0;
}

static int set_field(struct spec *s, const struct field *f, const char *value, struct err *e)
{
  void *at = (char *)s + f->offset;
  if (f->type == FIELD_FORMAT)
    return set_format(s, value, e);
  if (f->type == FIELD_ROUNDING)
    return set_rounding(s, value, e);
  if (f->type == FIELD_INT || f->type == FIELD_REAL)
    return set_number(at, f, value, e);
  int i = find_word(f->words, f->name, value, e);
  if (i < 0)
    return -1;
  if (f->type == FIELD_FLAG)
    *(bool *)at = i;
  else if (f->words == scale_rule_names)
    s->scale = (enum scale_rule)i;
  else
    s->granularity = (enum granularity)i;
  if (s->granularity == GRAIN_BLOCK && s->block == 0)
    s->block = 32;
  return 0;
}

int spec_set(struct spec *s, const char *field, const char *value, struct err *e)
{
  struct spec new = *s;
  const struct field *f = find_field(field);
  if (!f)
    return find_word(spec_fields, "field", field, e), -1;
  if (set_field(&new, f, value, e) || spec_check(&new, e))
    return -1;
  *s = new;
  return 0;
}

int spec_get(const struct spec *s, const char *field, char *out, size_t n_bytes)
{
  const struct field *f = find_field(field);
  if (!f)
    return -1;
  const void *at = (const char *)s + f->offset;
  char number[32];
  const char *text = number;
  switch (f->type) {
  case FIELD_FORMAT:
    text = s->format->name;
    break;
  case FIELD_ROUNDING:
    text = rounding_name(s->rounding);
    break;
  case FIELD_CHOICE:
    text = f->words[f->words == scale_rule_names ? (int)s->scale : (int)s->granularity];
    break;
  case FIELD_FLAG:
    text = f->words[*(const bool *)at];
    break;
  case FIELD_INT:
    snprintf(number, sizeof number, "%d", *(const int *)at);
    break;
  case FIELD_REAL:
    str_float(f->offset == offsetof(struct spec, clip) && s->clip == 0 ? 1 : *(const float *)at, number);
    break;
  }
  str_copy(out, n_bytes, text);
  return 0;
}
