/* Wraps text and words the facts of a knob. */
#include "config.h"

#include "cmd_text.h"

#include <stdio.h>
#include <string.h>

void text_wrap(struct str *out, int at, int indent, const char *text)
{
  bool first = true;
  for (const char *p = text; *p;) {
    size_t n = strcspn(p, " ");
    if (!first && at + 1 + (int)n > TEXT_COLUMNS) {
      str_addf(out, "\n%*s", indent, "");
      at = indent;
      first = true;
    }
    if (at < indent) {
      str_addf(out, "%*s", indent - at, "");
      at = indent;
    }
    if (!first) {
      str_addc(out, ' ');
      at++;
    }
    str_addn(out, p, n);
    at += (int)n;
    first = false;
    p += n;
    while (*p == ' ')
      p++;
  }
  str_addc(out, '\n');
}

void text_option_name(const char *knob, char *out, size_t n_bytes)
{
  str_copy(out, n_bytes, knob);
  for (char *c = out; *c; c++)
    if (*c == '_')
      *c = '-';
}

const char *text_knob_arg(const struct knob *k)
{
  static const char *const arg[] = {
      [KNOB_INT] = "N", [KNOB_REAL] = "X", [KNOB_BOOL] = "true|false", [KNOB_ENUM] = "NAME", [KNOB_TEXT] = "TEXT"};
  return arg[k->type];
}

static void add_range(const struct knob *k, struct str *out)
{
  char lo[32], hi[32];
  if (k->type == KNOB_INT) {
    snprintf(lo, sizeof lo, "%.0f", k->min);
    snprintf(hi, sizeof hi, "%.0f", k->max);
  } else {
    str_double(k->min, lo);
    str_double(k->max, hi);
  }
  if (k->min_open)
    str_addf(out, "above %s, at most %s", lo, hi);
  else
    str_addf(out, "%s to %s", lo, hi);
  if (k->unit && *k->unit)
    str_addf(out, " %s", k->unit);
}

void text_knob_allowed(enum knob_id id, struct str *out)
{
  const struct knob *k = &knob_table[id];
  struct knob_ref ref = {.id = id};
  const char *const *choice = knob_choices(&ref);
  if (k->type == KNOB_INT || k->type == KNOB_REAL)
    add_range(k, out);
  else if (k->type == KNOB_BOOL)
    str_add(out, "true or false");
  else if (choice) {
    str_add(out, k->type == KNOB_TEXT ? "such as " : "");
    for (size_t i = 0; choice[i]; i++)
      str_addf(out, "%s%s", i ? ", " : "", choice[i]);
  }
  if (k->default_text && *k->default_text)
    str_addf(out, "%s%s by default", out->n ? "; " : "", k->default_text);
}
