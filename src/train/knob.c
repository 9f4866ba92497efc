/* The table of knobs: finding one by name, and parsing a value given as text. */
#include "config.h"

#include "train/knob.h"

#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "data/dataset.h"
#include "train/optimizer.h"
#include "train/recipe.h"
#include "train/schedule.h"

const struct knob knob_table[KNOB_COUNT] = {
#define KNOB(id, knob_name, knob_type, knob_when, text, ...)                                                           \
  {.name = (knob_name), .type = (knob_type), .when = (knob_when), .default_text = (text), __VA_ARGS__},
#include "train/knob.def"
#undef KNOB
};

const char *const knob_rounding_names[] = {
#define ROUNDING(id, name, ...) name,
#include "numeric/round.def"
#undef ROUNDING
    NULL,
};

/* -- names */

#define SITE_PREFIX "site."
#define KNOB_NAME 64

static void normalise(const char *name, char out[KNOB_NAME])
{
  str_copy(out, KNOB_NAME, name);
  for (char *p = out; *p; p++)
    if (*p == '-')
      *p = '_';
}

static int find_site_knob(const char *name, struct knob_ref *out, struct err *e)
{
  char site[KNOB_NAME];
  str_copy(site, sizeof site, name + strlen(SITE_PREFIX));
  char *field = strchr(site, '.');
  if (field)
    *field++ = '\0';
  enum site at;
  if (site_find(site, &at, e))
    return -1;
  for (int i = 0; field && spec_fields[i]; i++)
    if (strcmp(spec_fields[i], field) == 0) {
      *out = (struct knob_ref){.id = KNOB_COUNT, .site = at, .field = spec_fields[i]};
      return 0;
    }
  struct str all = {0};
  for (int i = 0; spec_fields[i]; i++)
    str_addf(&all, "%s%s", i ? ", " : "", spec_fields[i]);
  const char *near = field ? str_nearest(field, spec_fields) : NULL;
  if (near)
    err_set(e, "unknown knob \"%s\": did you mean \"site.%s.%s\"? site.%s has %s", name, site, near, site, all.s);
  else
    err_set(e, "unknown knob \"%s\": site.%s has %s", name, site, all.s);
  str_done(&all);
  return -1;
}

int knob_find(const char *name, struct knob_ref *out, struct err *e)
{
  char word[KNOB_NAME];
  const char *names[KNOB_COUNT + 1] = {NULL};
  normalise(name, word);
  if (str_starts(word, SITE_PREFIX))
    return find_site_knob(word, out, e);
  for (int i = 0; i < KNOB_COUNT; i++) {
    names[i] = knob_table[i].name;
    if (strcmp(names[i], word) == 0) {
      *out = (struct knob_ref){.id = (enum knob_id)i};
      return 0;
    }
  }
  const char *near = str_nearest(word, names);
  if (near)
    return err_set(e, "unknown knob \"%s\": did you mean \"%s\"?", name, near);
  struct str all = {0};
  for (int i = 0; i < KNOB_COUNT; i++)
    str_addf(&all, "%s ", names[i]);
  err_set(e, "unknown knob \"%s\"; there are: %sand site.SITE.FIELD", name, all.s);
  str_done(&all);
  return -1;
}

void knob_ref_name(const struct knob_ref *k, char *out, size_t n_bytes)
{
  if (k->id < KNOB_COUNT)
    str_copy(out, n_bytes, knob_table[k->id].name);
  else
    snprintf(out, n_bytes, SITE_PREFIX "%s.%s", site_names[k->site], k->field);
}

/* -- values */

/* Numbers are written with a point whatever the user's locale is: a journal is read elsewhere. */
static locale_t c_locale;
static pthread_once_t c_locale_once = PTHREAD_ONCE_INIT;

static void make_c_locale(void)
{
  c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  if (!c_locale)
    die("no C locale");
}

static bool parse_double(const char *text, double *out)
{
  char *end;
  pthread_once(&c_locale_once, make_c_locale);
  *out = strtod_l(text, &end, c_locale);
  return end != text && *end == '\0' && isfinite(*out);
}

static void range_text(const struct knob *k, char *out, size_t n_bytes)
{
  char lo[32], hi[32];
  bool whole = k->type == KNOB_INT;
  snprintf(lo, sizeof lo, whole ? "%.0f" : "%g", k->min);
  snprintf(hi, sizeof hi, whole ? "%.0f" : "%g", k->max);
  if (k->min_open)
    snprintf(out, n_bytes, "above %s, at most %s", lo, hi);
  else
    snprintf(out, n_bytes, "%s to %s", lo, hi);
}

static int refuse(const struct knob *k, const char *text, const char *kind, struct err *e)
{
  char range[80];
  range_text(k, range, sizeof range);
  return err_set(e, "%s = %.100s: must be %s%s", k->name, text, kind, range);
}

static bool in_range(const struct knob *k, double v)
{
  return (k->min_open ? v > k->min : v >= k->min) && v <= k->max;
}

/* "1e3" and "128.0" are whole numbers too: Lua writes them so. */
static int parse_int(const struct knob *k, const char *text, struct knob_value *out, struct err *e)
{
  double v;
  if (!parse_double(text, &v) || v != floor(v))
    return refuse(k, text, "a whole number, ", e);
  if (!in_range(k, v))
    return refuse(k, text, "", e);
  out->i = (int64_t)v; /* exact: all ranges end at 2^53 or below */
  snprintf(out->text, sizeof out->text, "%" PRId64, out->i);
  return 0;
}

static int parse_real(const struct knob *k, const char *text, struct knob_value *out, struct err *e)
{
  char shortest[32];
  if (!parse_double(text, &out->r))
    return refuse(k, text, "a number, ", e);
  if (!in_range(k, out->r))
    return refuse(k, text, "", e);
  str_copy(out->text, sizeof out->text, str_double(out->r, shortest));
  return 0;
}

static int parse_bool(const struct knob *k, const char *text, struct knob_value *out, struct err *e)
{
  static const char *const words[][2] = {{"false", "true"}, {"0", "1"}, {"no", "yes"}, {"off", "on"}};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    for (int v = 0; v < 2; v++)
      if (strcmp(text, words[i][v]) == 0) {
        out->b = v;
        str_copy(out->text, sizeof out->text, words[0][v]);
        return 0;
      }
  return err_set(e, "%s = %.100s: must be true or false", k->name, text);
}

static int parse_enum(const struct knob *k, const char *text, struct knob_value *out, struct err *e)
{
  enum rounding mode;
  if (k == &knob_table[KNOB_ROUNDING]) { /* it has aliases */
    if (rounding_find(text, &mode, e))
      return err_prefix(e, "%s = %.100s", k->name, text);
    str_copy(out->text, sizeof out->text, rounding_name(mode));
    return 0;
  }
  struct str all = {0};
  for (int i = 0; k->choices[i]; i++) {
    if (strcmp(k->choices[i], text) == 0) {
      str_copy(out->text, sizeof out->text, text);
      str_done(&all);
      return 0;
    }
    str_addf(&all, "%s%s", i ? ", " : "", k->choices[i]);
  }
  const char *near = str_nearest(text, k->choices);
  err_set(e, "%s = %.100s: %s%s%smust be one of %s", k->name, text, near ? "did you mean " : "", near ? near : "",
          near ? "? It " : "", all.s);
  str_done(&all);
  return -1;
}

static int parse_text(const struct knob *k, const char *text, struct knob_value *out, struct err *e)
{
  if (!*text)
    return err_set(e, "%s: must not be empty", k->name);
  if (!str_copy(out->text, sizeof out->text, text))
    return err_set(e, "%s: longer than %zu bytes", k->name, sizeof out->text - 1);
  if (k != &knob_table[KNOB_FORMAT])
    return 0;
  const struct format *f = format_find(text, e);
  if (!f)
    return err_prefix(e, "%s = %.100s", k->name, text);
  str_copy(out->text, sizeof out->text, f->name);
  return 0;
}

/* Fields of a spec: text, except where programs expect a number. */
static enum knob_type site_field_type(const char *field)
{
  static const struct {
    const char *field;
    enum knob_type type;
  } types[] = {{"block", KNOB_INT},        {"random_bits", KNOB_INT}, {"saturate", KNOB_BOOL},
               {"fixed_scale", KNOB_REAL}, {"eps", KNOB_REAL},        {"clip", KNOB_REAL},
               {"zero_point", KNOB_INT},   {"error_feedback", KNOB_BOOL}};
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (strcmp(types[i].field, field) == 0)
      return types[i].type;
  return KNOB_TEXT;
}

void knob_site_value(const char *field, const char *text, struct knob_value *out)
{
  *out = (struct knob_value){.type = site_field_type(field)};
  str_copy(out->text, sizeof out->text, text);
  double v = 0;
  if (out->type == KNOB_BOOL)
    out->b = strcmp(text, "true") == 0;
  else if (out->type != KNOB_TEXT && parse_double(text, &v) && out->type == KNOB_INT)
    out->i = (int64_t)v;
  else if (out->type == KNOB_REAL)
    out->r = v;
}

/* A field is checked against the plainest spec here, and together with its neighbours when it is set. */
static int parse_site(const struct knob_ref *ref, const char *text, struct knob_value *out, struct err *e)
{
  char name[KNOB_NAME];
  knob_ref_name(ref, name, sizeof name);
  enum rounding mode;
  const struct format *f;
  knob_site_value(ref->field, text, out);
  if (strcmp(ref->field, "format") == 0) {
    f = format_find(text, e);
    if (!f)
      return err_prefix(e, "%s = %.100s", name, text);
    str_copy(out->text, sizeof out->text, f->name);
  } else if (strcmp(ref->field, "rounding") == 0) {
    if (rounding_find(text, &mode, e))
      return err_prefix(e, "%s = %.100s", name, text);
    str_copy(out->text, sizeof out->text, rounding_name(mode));
  } else if (!*text) {
    return err_set(e, "%s: must not be empty", name);
  }
  return 0;
}

int knob_parse(const struct knob_ref *ref, const char *text, struct knob_value *out, struct err *e)
{
  static int (*const parse[])(const struct knob *, const char *, struct knob_value *, struct err *) = {
      [KNOB_INT] = parse_int,   [KNOB_REAL] = parse_real, [KNOB_BOOL] = parse_bool,
      [KNOB_ENUM] = parse_enum, [KNOB_TEXT] = parse_text,
  };
  if (ref->id == KNOB_COUNT)
    return parse_site(ref, text, out, e);
  const struct knob *k = &knob_table[ref->id];
  struct knob_value v = {.type = k->type};
  if (parse[k->type](k, text, &v, e))
    return -1;
  *out = v;
  return 0;
}

/* -- choices */

static const char **format_names;
static pthread_once_t format_names_once = PTHREAD_ONCE_INIT;

static void list_formats(void)
{
  size_t n = format_count();
  format_names = mem_alloc((n + 1) * sizeof *format_names); /* for the life of the process */
  for (size_t i = 0; i < n; i++)
    format_names[i] = format_at(i)->name;
}

const char *const *knob_choices(const struct knob_ref *ref)
{
  static const char *const bools[] = {"true", "false", NULL};
  static const char *const subnormals[] = {"full", "flush", NULL};
  const char *field = ref->id == KNOB_COUNT ? ref->field : "";
  if (ref->id == KNOB_FORMAT || strcmp(field, "format") == 0) {
    pthread_once(&format_names_once, list_formats);
    return format_names;
  }
  if (ref->id < KNOB_COUNT)
    return knob_table[ref->id].type == KNOB_BOOL ? bools : knob_table[ref->id].choices;
  const struct {
    const char *field;
    const char *const *choices;
  } list[] = {{"rounding", knob_rounding_names},
              {"granularity", granularity_names},
              {"scale", scale_rule_names},
              {"saturate", bools},
              {"error_feedback", bools},
              {"subnormals", subnormals}};
  for (size_t i = 0; i < sizeof list / sizeof *list; i++)
    if (strcmp(list[i].field, field) == 0)
      return list[i].choices;
  return NULL;
}
