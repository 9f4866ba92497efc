/* Specs: names of their parts, defaults by format, checks, and reading and writing of single fields. */
#include "config.h"

#include "numeric/spec.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"

static const struct {
  const char *name, *alias;
  bool stochastic;
} roundings[ROUND_COUNT] = {
#define ROUNDING(id, name, stochastic, help) {name, "", stochastic},
#include "numeric/round.def"
#undef ROUNDING
};

static const struct {
  const char *alias, *name;
} rounding_aliases[] = {{"rne_754", "rne"}, {"rtn", "rne"}, {"nearest", "rne"}, {"stochastic", "sr"}};

const char *const granularity_names[GRAIN_COUNT + 1] = {"tensor", "row", "column", "block", NULL};
const char *const scale_rule_names[SCALE_RULES + 1] = {"none",  "absmax", "pow2", "fixed", "delayed",
                                                       "floor", "rceil",  "even", "nvfp4", NULL};
const char *const spec_fields[] = {"format",      "rounding",   "granularity", "scale", "block", "random_bits",
                                   "saturate",    "subnormals", "fixed_scale", "eps",   "clip",  NULL};

const char *rounding_name(enum rounding r)
{
  return roundings[r].name;
}

int rounding_find(const char *name, enum rounding *out, struct err *e)
{
  for (size_t i = 0; i < sizeof rounding_aliases / sizeof *rounding_aliases; i++)
    if (strcasecmp(name, rounding_aliases[i].alias) == 0)
      name = rounding_aliases[i].name;
  const char *words[ROUND_COUNT + 1] = {0};
  struct str all = {0};
  for (int i = 0; i < ROUND_COUNT; i++) {
    if (strcasecmp(name, roundings[i].name) == 0) {
      *out = (enum rounding)i;
      str_done(&all);
      return 0;
    }
    words[i] = roundings[i].name;
    str_addf(&all, "%s%s", i ? " " : "", words[i]);
  }
  const char *near = str_nearest(name, words);
  err_set(e, "unknown rounding mode '%.40s'%s%s%s: allowed are %s", name, near ? "; did you mean '" : "",
          near ? near : "", near ? "'?" : "", all.s);
  str_done(&all);
  return -1;
}

static enum scale_rule block_rule(const struct format *f)
{
  for (int i = 0; i < SCALE_RULES; i++)
    if (strcmp(scale_rule_names[i], f->scale_rule) == 0)
      return (enum scale_rule)i;
  return SCALE_FLOOR;
}

static void default_scaling(struct spec *s)
{
  const struct format *f = s->format;
  s->granularity = GRAIN_TENSOR;
  s->block = 0;
  s->scale = SCALE_NONE;
  if (f->family == FORMAT_BLOCK) {
    s->granularity = GRAIN_BLOCK;
    s->block = f->block;
    s->scale = block_rule(f);
  } else if (f->family == FORMAT_FLOAT) {
    s->scale = f->total_bits <= 8 ? SCALE_POW2 : SCALE_NONE;
  } else if (f->family != FORMAT_FIXED) {
    s->scale = SCALE_ABSMAX;
  }
}

struct spec spec_default(const struct format *f, enum rounding r)
{
  struct spec s = {.format = f, .rounding = r, .random_bits = 32, .fixed_scale = 1};
  default_scaling(&s);
  return s;
}

bool spec_is_identity(const struct spec *s)
{
  const struct format *f = s->format;
  return f->family == FORMAT_FLOAT && f->exp_bits == 8 && f->frac_bits == 23 && s->scale == SCALE_NONE && !s->flush;
}

bool spec_is_stochastic(const struct spec *s)
{
  return roundings[s->rounding].stochastic;
}

bool spec_equal(const struct spec *a, const struct spec *b)
{
  return a->format == b->format && a->rounding == b->rounding && a->granularity == b->granularity &&
         a->scale == b->scale && a->block == b->block && a->random_bits == b->random_bits &&
         a->no_saturate == b->no_saturate && a->flush == b->flush && a->fixed_scale == b->fixed_scale &&
         a->eps == b->eps && a->clip == b->clip;
}

int spec_check(const struct spec *s, struct err *e)
{
  bool is_block = s->format->family == FORMAT_BLOCK, block_scale = s->scale >= SCALE_FLOOR;
  if (is_block != block_scale)
    return err_set(e, "scale '%s' does not fit format %s: block formats take floor, rceil, even or nvfp4, others none, "
                      "absmax, pow2, fixed or delayed",
                   scale_rule_names[s->scale], s->format->name);
  if (is_block && s->granularity != GRAIN_BLOCK)
    return err_set(e, "format %s has a scale for each block of %d: granularity must be 'block'", s->format->name,
                   s->format->block);
  if (s->granularity == GRAIN_COLUMN)
    return err_set(e, "granularity 'column' is not supported: allowed are tensor, row, block");
  if (s->granularity == GRAIN_BLOCK && s->block < 1)
    return err_set(e, "granularity 'block' needs block >= 1, not %d", s->block);
  if (s->random_bits < 1 || s->random_bits > 32)
    return err_set(e, "random_bits = %d: must be 1 to 32", s->random_bits);
  if (s->rounding == ROUND_SR && s->random_bits != 32 && s->random_bits != 16 && s->random_bits != 8)
    return err_set(e, "random_bits = %d: rounding 'sr' takes 32, 16 or 8; the k-bit modes sr_ff, sr_f, sr_c take 1 to 32",
                   s->random_bits);
  return 0;
}

static int find_name(const char *const *names, const char *field, const char *value, struct err *e)
{
  struct str all = {0};
  for (int i = 0; names[i]; i++) {
    if (strcmp(names[i], value) == 0) {
      str_done(&all);
      return i;
    }
    str_addf(&all, "%s%s", i ? ", " : "", names[i]);
  }
  err_set(e, "%s = '%.40s': allowed are %s", field, value, all.s);
  str_done(&all);
  return -1;
}

static int parse_number(const char *field, const char *text, double lo, double hi, double *out, struct err *e)
{
  char *end;
  *out = strtod(text, &end);
  if (end == text || *end)
    return err_set(e, "%s = '%.40s': must be a number", field, text);
  if (!(*out >= lo && *out <= hi))
    return err_set(e, "%s = %.40s: must be %g to %g", field, text, lo, hi);
  return 0;
}

static const char *const saturate_words[] = {"false", "true", NULL};
static const char *const subnormal_words[] = {"full", "flush", NULL};

static int set_named(struct spec *s, const char *field, const char *value, struct err *e)
{
  if (strcmp(field, "rounding") == 0)
    return rounding_find(value, &s->rounding, e);
  bool grain = strcmp(field, "granularity") == 0, scale = strcmp(field, "scale") == 0;
  bool saturate = strcmp(field, "saturate") == 0;
  int i = find_name(grain ? granularity_names : scale ? scale_rule_names : saturate ? saturate_words : subnormal_words,
                    field, value, e);
  if (i < 0)
    return -1;
  if (grain)
    s->granularity = (enum granularity)i;
  else if (scale)
    s->scale = (enum scale_rule)i;
  else if (saturate)
    s->no_saturate = !i;
  else
    s->flush = i;
  return 0;
}

static int set_number(struct spec *s, const char *field, const char *value, struct err *e)
{
  static const struct {
    const char *field;
    double lo, hi;
  } range[] = {{"block", 0, 1 << 20}, {"random_bits", 1, 32}, {"fixed_scale", 1e-30, 1e30}, {"eps", 0, 1}, {"clip", 0, 1}};
  for (size_t i = 0; i < sizeof range / sizeof *range; i++) {
    double v;
    if (strcmp(field, range[i].field))
      continue;
    if (parse_number(field, value, range[i].lo, range[i].hi, &v, e))
      return -1;
    if (i < 2 && v != floor(v))
      return err_set(e, "%s = %.40s: must be a whole number", field, value);
    *(i == 0 ? &s->block : &s->random_bits) = i < 2 ? (int)v : i == 0 ? s->block : s->random_bits;
    if (i >= 2)
      *(i == 2 ? &s->fixed_scale : i == 3 ? &s->eps : &s->clip) = (float)v;
    return 0;
  }
  return err_set(e, "unknown field '%.40s'", field);
}

int spec_set(struct spec *s, const char *field, const char *value, struct err *e)
{
  struct spec new = *s;
  if (find_name(spec_fields, "field", field, e) < 0)
    return -1;
  if (strcmp(field, "format") == 0) {
    new.format = format_find(value, e);
    if (!new.format)
      return -1;
    default_scaling(&new);
  } else if (strstr("rounding granularity scale saturate subnormals", field)) {
    if (set_named(&new, field, value, e))
      return -1;
  } else if (set_number(&new, field, value, e)) {
    return -1;
  }
  if (spec_check(&new, e))
    return -1;
  *s = new;
  return 0;
}

int spec_get(const struct spec *s, const char *field, char *out, size_t n)
{
  char num[32];
  static const char *const number_fields[] = {"fixed_scale", "eps", "clip"};
  const float numbers[] = {s->fixed_scale, s->eps, s->clip};
  for (int i = 0; i < 3; i++)
    if (strcmp(field, number_fields[i]) == 0)
      return snprintf(out, n, "%s", str_float(numbers[i], num)) < 0;
  if (strcmp(field, "block") == 0 || strcmp(field, "random_bits") == 0)
    return snprintf(out, n, "%d", *field == 'b' ? s->block : s->random_bits) < 0;
  const char *text = strcmp(field, "format") == 0        ? s->format->name
                     : strcmp(field, "rounding") == 0    ? rounding_name(s->rounding)
                     : strcmp(field, "granularity") == 0 ? granularity_names[s->granularity]
                     : strcmp(field, "scale") == 0       ? scale_rule_names[s->scale]
                     : strcmp(field, "saturate") == 0    ? saturate_words[!s->no_saturate]
                     : strcmp(field, "subnormals") == 0  ? subnormal_words[s->flush]
                                                         : NULL;
  if (!text)
    return -1;
  str_copy(out, n, text);
  return 0;
}
