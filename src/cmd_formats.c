/* bitdial formats: a table of all, or one format as a page of at most 80 columns that can be projected. All numbers are
 * made from the format's codes, the same ones that packing uses. */
#include "config.h"

#include "cmd_formats.h"

#include <langinfo.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "cmd_text.h"
#include "numeric/code.h"
#include "numeric/spec.h"

enum { OPT_JSON, OPT_NO_UNICODE };

const struct cmd_option formats_options[] = {
    [OPT_JSON] = {"json", NULL, "print JSON, one object a line"},
    [OPT_NO_UNICODE] = {"no-unicode", NULL, "draw with ASCII alone"},
    {0},
};

const char formats_details[] = "Any eXmY is a format, with ieee, fn, fin or fnuz behind it where wanted; so are int2 "
                               "to int16, uint2 to uint16 and "
                               "q(WL,FL), fixed point of WL bits of which FL are behind the point.";

enum { LINE_WIDTH = 72, MAX_LISTED_BITS = 8 };

static const char *const kind_help[] = {
    [FLOAT_IEEE] = "the top exponent is Inf and NaN",
    [FLOAT_FN] = "no Inf; only the all-ones code is NaN",
    [FLOAT_FIN] = "every code is finite; always saturates",
    [FLOAT_FNUZ] = "no Inf, no -0, whose code is NaN",
};

/* The elements' format. */
static const struct format *grid_of(const struct format *f)
{
  return f->element ? f->element : f;
}

static double largest(const struct format *f)
{
  const struct format *g = grid_of(f);
  return g->family == FORMAT_FLOAT ? g->max_finite : ldexp(g->code_max, -g->fixed_frac_bits);
}

/* Distance of 0 and the value next to it. */
static double smallest(const struct format *f)
{
  const struct format *g = grid_of(f);
  return g->family == FORMAT_FLOAT ? g->min_subnormal : ldexp(1, -g->fixed_frac_bits);
}

/* "448", "0.0019531", "3.39e+38": at most six significant digits. */
static const char *short_number(double v, char out[32])
{
  snprintf(out, 32, "%.6g", v);
  return out;
}

/* "2^-9" where it is a power of two, else the number. */
static const char *power_of_two(double v, char out[32])
{
  int e;
  if (frexp(v, &e) == 0.5)
    snprintf(out, 32, "2^%d", e - 1);
  else
    short_number(v, out);
  return out;
}

static void specials(const struct format *f, char out[32])
{
  const struct format *g = grid_of(f);
  snprintf(out, 32, "%s%s%s", g->has_inf ? "Inf " : "", g->has_nan ? "NaN " : "", g->has_neg_zero ? "-0" : "");
  size_t n = strlen(out);
  if (n && out[n - 1] == ' ')
    out[n - 1] = '\0';
  if (!*out)
    strcpy(out, "none");
}

static void default_scale(const struct format *f, char *out, size_t n_bytes)
{
  struct spec s = spec_default(f, ROUND_RNE);
  if (s.scale == SCALE_NONE)
    snprintf(out, n_bytes, "none");
  else if (s.granularity == GRAIN_BLOCK)
    snprintf(out, n_bytes, "%s, block of %d", scale_rule_names[s.scale], s.block);
  else
    snprintf(out, n_bytes, "%s, %s", scale_rule_names[s.scale], granularity_names[s.granularity]);
}

static void list_row(struct str *out, const struct format *f)
{
  char max[32], min[32], special[32], scale[32], bits[16];
  snprintf(bits, sizeof bits, "%d", f->total_bits);
  if (f->family == FORMAT_BLOCK)
    snprintf(bits, sizeof bits, "%.4g", f->total_bits + 8.0 / f->block);
  specials(f, special);
  default_scale(f, scale, sizeof scale);
  str_addf(out, "%-11s %-7s %5s %11s %8s  %-10s %s\n", f->name, format_family_name(f->family), bits,
           short_number(largest(f), max), power_of_two(smallest(f), min), special, scale);
}

static void list_all(struct str *out)
{
  str_addf(out, "%-11s %-7s %5s %11s %8s  %-10s %s\n", "format", "family", "bits", "largest", "smallest", "special",
           "default scale");
  for (size_t i = 0; i < format_count(); i++)
    list_row(out, format_at(i));
  str_addc(out, '\n');
  text_wrap(out, 0, 0,
            "largest and smallest are magnitudes at scale 1, bits those of an element with its share of the "
            "block's scale.");
  text_wrap(out, 0, 0, formats_details);
}

/* -- one format */

static void parameter(struct str *out, const char *name, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static void parameter(struct str *out, const char *name, const char *fmt, ...)
{
  va_list ap;
  str_addf(out, "  %-18s ", name);
  va_start(ap, fmt);
  str_vaddf(out, fmt, ap);
  va_end(ap);
  str_addc(out, '\n');
}

static void parameters(struct str *out, const struct format *f)
{
  const struct format *g = grid_of(f);
  char a[32], b[32], text[48];
  if (f->element) {
    parameter(out, "elements", "%s, %d under one scale", g->name, f->block);
    parameter(out, "bits an element", "%.4g with its share of the scale", f->total_bits + 8.0 / f->block);
  } else {
    parameter(out, "bits", "%d", f->total_bits);
  }
  if (g->family == FORMAT_FLOAT) {
    parameter(out, "sign, exp, frac", "1, %d, %d (precision %d)", g->exp_bits, g->frac_bits, g->frac_bits + 1);
    parameter(out, "kind", "%s", kind_help[g->kind]);
    parameter(out, "exponents", "%d to %d, bias %d", g->emin, g->emax, g->bias);
    parameter(out, "largest", "%s", short_number(g->max_finite, a));
    parameter(out, "smallest normal", "%s = %s", power_of_two(g->min_normal, b), short_number(g->min_normal, a));
    if (g->frac_bits)
      parameter(out, "smallest", "%s = %s", power_of_two(g->min_subnormal, b), short_number(g->min_subnormal, a));
    else
      parameter(out, "subnormals", "none: 0, then %s", power_of_two(g->min_normal, b));
    specials(f, text);
    parameter(out, "special", "%s", text);
  } else if (g->family == FORMAT_BINARY) {
    parameter(out, "values", "-1 and 1");
  } else {
    double step = ldexp(1, -g->fixed_frac_bits);
    parameter(out, "codes", "%d to %d", g->code_min, g->code_max);
    if (g->fixed_frac_bits)
      parameter(out, "values", "%s to %s, step %s", short_number(g->code_min * step, a),
                short_number(g->code_max * step, b), power_of_two(step, text));
    if (g->family == FORMAT_UINT)
      parameter(out, "value", "scale * (code - zero point)");
  }
  default_scale(f, text, sizeof text);
  parameter(out, "default scale", "%s", text);
}

/* The finite values that are not negative, in their order; caller mem_free()s. */
static float *magnitudes(const struct format *g, size_t *n)
{
  size_t n_codes = (size_t)1 << (g->family == FORMAT_UINT ? g->total_bits : g->total_bits > 1 ? g->total_bits - 1 : 1);
  float *v = mem_alloc(n_codes * sizeof *v);
  *n = 0;
  for (uint32_t c = 0; c < n_codes; c++) {
    float x = format_value(g, c);
    if (isfinite(x) && x >= 0)
      v[(*n)++] = x;
  }
  return v;
}

/* Text of a value: exact, or to four digits where `brief`. */
static const char *value_text(float v, bool brief, char out[32])
{
  if (!brief)
    return str_float(v, out);
  snprintf(out, 32, "%.4g", (double)v);
  return out;
}

static int widest(const float *v, size_t n, bool brief)
{
  int width = 0;
  for (size_t i = 0; i < n; i++) {
    char text[32];
    int w = (int)strlen(value_text(v[i], brief, text));
    width = w > width ? w : width;
  }
  return width;
}

static void row_label(struct str *out, const struct format *g, size_t row)
{
  char text[16] = "";
  if (g->family == FORMAT_FLOAT)
    snprintf(text, sizeof text, row == 0 ? "0" : "2^%d", (int)row - g->bias);
  str_addf(out, "  %-5s", text);
}

/* Floats: a row an exponent, so that the doubling of the step can be seen; the first row is zero and the subnormals.
 * Others: rows of a full line. */
static void values(struct str *out, const struct format *g, const float *v, size_t n)
{
  enum { LABEL = 7 };
  size_t a_row = g->family == FORMAT_FLOAT ? (size_t)1 << g->frac_bits : 16;
  bool brief = g->family == FORMAT_FLOAT && (size_t)(widest(v, n, false) + 1) * a_row > TEXT_COLUMNS - LABEL;
  int width = widest(v, n, brief) + 1;
  size_t fits = (size_t)((TEXT_COLUMNS - LABEL) / width);
  str_addf(out, "\nvalues%s (%zu", brief ? " to four digits" : "", n);
  if (g->family == FORMAT_FLOAT || g->code_min == -g->code_max)
    str_add(out, ", and their negatives");
  else if (g->code_min < 0)
    str_addf(out, ", their negatives and %g", ldexp(g->code_min, -g->fixed_frac_bits));
  str_add(out, "):\n");
  for (size_t i = 0; i < n; i++) {
    char text[32];
    if (i % a_row == 0)
      row_label(out, g, i / a_row);
    else if (i % a_row % fits == 0)
      str_addf(out, "\n%*s", LABEL, "");
    str_addf(out, " %*s", width - 1, value_text(v[i], brief, text));
    if (i % a_row == a_row - 1 || i == n - 1)
      str_addc(out, '\n');
  }
}

/* One axis from 0 to `top`: a tick where a value falls, a block where several do. */
static void number_line(struct str *out, const float *v, size_t n, double top, bool unicode)
{
  int count[LINE_WIDTH] = {0};
  for (size_t i = 0; i < n; i++)
    if ((double)v[i] <= top)
      count[(int)lrint((double)v[i] / top * (LINE_WIDTH - 1))]++;
  str_add(out, "  ");
  for (int c = 0; c < LINE_WIDTH; c++)
    str_add(out, count[c] > 1 ? unicode ? "█" : "#" : count[c] ? unicode ? "┼" : "+" : unicode ? "─" : "-");
  char a[32], b[32];
  short_number(top / 2, a);
  short_number(top, b);
  int mid = LINE_WIDTH / 2 - (int)strlen(a) / 2, end = LINE_WIDTH - (int)strlen(b);
  str_addf(out, "\n  0%*s%s%*s\n", mid - 1, "", a, end - mid - (int)strlen(a) + (int)strlen(b), b);
}

static void number_lines(struct str *out, const struct format *g, const float *v, size_t n, bool unicode)
{
  str_add(out, "\nnumber line, 0 to the largest:\n");
  number_line(out, v, n, (double)v[n - 1], unicode);
  double near = g->min_normal * 4;
  if (g->family == FORMAT_FLOAT && near < (double)v[n - 1] / 8) {
    str_add(out, "\nnear zero, 0 to 4 times the smallest normal:\n");
    number_line(out, v, n, near, unicode);
    str_addf(out, "  %s one value   %s several\n", unicode ? "┼" : "+", unicode ? "█" : "#");
  }
}

static void one_format(struct str *out, const struct format *f, bool unicode)
{
  const struct format *g = grid_of(f);
  str_addf(out, "%s (%s)\n", f->name, format_family_name(f->family));
  parameters(out, f);
  if (g->total_bits > 16 || g->family == FORMAT_BINARY)
    return;
  size_t n;
  float *v = magnitudes(g, &n);
  if (g->total_bits <= MAX_LISTED_BITS)
    values(out, g, v, n);
  number_lines(out, g, v, n, unicode);
  mem_free(v);
}

/* -- JSON */

static void json_number(struct str *out, const char *name, double v)
{
  char text[32];
  str_addf(out, ", \"%s\": %s", name, str_double(v, text));
}

static void json_format(struct str *out, const struct format *f)
{
  const struct format *g = grid_of(f);
  str_addf(out, "{\"name\": \"%s\", \"family\": \"%s\", \"bits\": %d", f->name, format_family_name(f->family),
           f->total_bits);
  if (f->element)
    str_addf(out, ", \"element\": \"%s\", \"block\": %d, \"scale_rule\": \"%s\"", g->name, f->block, f->scale_rule);
  if (g->family == FORMAT_FLOAT) {
    static const char *const kinds[] = {"ieee", "fn", "fin", "fnuz"};
    str_addf(out, ", \"exp_bits\": %d, \"frac_bits\": %d, \"kind\": \"%s\", \"bias\": %d, \"emin\": %d, \"emax\": %d",
             g->exp_bits, g->frac_bits, kinds[g->kind], g->bias, g->emin, g->emax);
    json_number(out, "max", g->max_finite);
    json_number(out, "min_normal", g->min_normal);
    json_number(out, "min_subnormal", g->min_subnormal);
    str_addf(out, ", \"inf\": %s, \"nan\": %s, \"neg_zero\": %s", g->has_inf ? "true" : "false",
             g->has_nan ? "true" : "false", g->has_neg_zero ? "true" : "false");
  } else {
    str_addf(out, ", \"code_min\": %d, \"code_max\": %d", g->code_min, g->code_max);
    json_number(out, "step", ldexp(1, -g->fixed_frac_bits));
  }
  char scale[32];
  default_scale(f, scale, sizeof scale);
  str_addf(out, ", \"default_scale\": \"%s\"}\n", scale);
}

int cmd_formats(int argc, char **argv)
{
  const struct command *c = command_find("formats");
  struct cmd_args a;
  struct err e;
  int status = cmd_parse(c, argc, argv, &a);
  if (status >= 0)
    return status;
  struct str out = {0};
  bool unicode = !a.value[OPT_NO_UNICODE] && strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
  const struct format *f = a.n_rest ? format_find(a.rest[0], &e) : NULL;
  if (a.n_rest && !f) {
    status = cmd_usage_error(c, &e);
  } else if (a.value[OPT_JSON]) {
    for (size_t i = 0; i < (f ? 1 : format_count()); i++)
      json_format(&out, f ? f : format_at(i));
  } else if (f) {
    one_format(&out, f, unicode);
  } else {
    list_all(&out);
  }
  cmd_args_done(&a);
  return status >= 0 ? status : cmd_print(&out);
}
