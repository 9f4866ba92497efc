/* The table of recipes, and the three knobs that turn several sites of one at a time. */
#include "config.h"

#include "train/recipe.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "model/names.h"

const struct recipe recipe_table[] = {
#define RECIPE(name, help, ...) {name, help, {__VA_ARGS__}},
#include "train/recipe.def"
#undef RECIPE
    {NULL, NULL, {{NULL, NULL}}},
};

const char *const recipe_names[] = {
#define RECIPE(name, ...) name,
#include "train/recipe.def"
#undef RECIPE
    NULL,
};

/* What `bits` and `format` turn: all operands but the forward activation, which the paper leaves alone. */
static const enum site wide_sites[] = {SITE_WEIGHT, SITE_BACT, SITE_BWEIGHT, SITE_GWEIGHT, SITE_GACT};
static const enum site backward_sites[] = {SITE_BACT, SITE_GWEIGHT, SITE_GACT};
enum {
  N_WIDE = sizeof wide_sites / sizeof *wide_sites,
  N_BACKWARD = sizeof backward_sites / sizeof *backward_sites,
};

/* The float formats of the paper's sweep, and bf16 above them. */
static const struct {
  int bits;
  const char *format;
} float_widths[] = {{16, "bf16"}, {8, "e4m3fin"}, {7, "e4m2"}, {6, "e4m1"}, {5, "e4m0"}, {4, "e2m1"}};

#define INT_WIDTH_MIN 2
#define INT_WIDTH_MAX 16

int recipe_apply(const char *name, struct site_specs *out, struct err *e)
{
  int i = names_find("recipe", name, recipe_names, e);
  if (i < 0)
    return -1;
  struct site_specs s = {.share_act = false, .share_weight = true};
  for (int site = 0; site < SITE_COUNT; site++) {
    const char *format = recipe_table[i].at[site].format, *rounding = recipe_table[i].at[site].rounding;
    enum rounding mode = ROUND_RNE;
    const struct format *f = format_find(format ? format : "fp32", e);
    if (!f || (rounding && rounding_find(rounding, &mode, e)))
      return err_prefix(e, "recipe %s, site %s", name, site_names[site]);
    s.at[site] = spec_default(f, mode);
  }
  *out = s;
  return 0;
}

/* Takes another format. A scaling that is the old format's default becomes the new one's; any other stays. */
static int change_format(struct spec *s, const struct format *f, struct err *e)
{
  struct spec was = spec_default(s->format, s->rounding), is = spec_default(f, s->rounding), new = *s;
  new.format = f;
  if (s->granularity == was.granularity && s->scale == was.scale && s->block == was.block) {
    new.granularity = is.granularity;
    new.scale = is.scale;
    new.block = is.block;
  }
  if (spec_check(&new, e))
    return -1;
  *s = new;
  return 0;
}

static const struct format *float_of_width(int bits, struct err *e)
{
  for (size_t i = 0; i < sizeof float_widths / sizeof *float_widths; i++)
    if (float_widths[i].bits == bits)
      return format_find(float_widths[i].format, e);
  struct str all = {0};
  for (size_t i = 0; i < sizeof float_widths / sizeof *float_widths; i++)
    str_addf(&all, "%s%d (%s)", i ? ", " : "", float_widths[i].bits, float_widths[i].format);
  err_set(e, "bits = %d: the float formats here are of %s", bits, all.s);
  str_done(&all);
  return NULL;
}

static const struct format *int_of_width(int bits, struct err *e)
{
  char name[16];
  if (bits < INT_WIDTH_MIN || bits > INT_WIDTH_MAX) {
    err_set(e, "bits = %d: integer formats are of %d to %d bits", bits, INT_WIDTH_MIN, INT_WIDTH_MAX);
    return NULL;
  }
  snprintf(name, sizeof name, "int%d", bits);
  return format_find(name, e);
}

static const struct format *format_of_width(const struct format *now, int bits, struct err *e)
{
  if (now->family == FORMAT_FLOAT)
    return float_of_width(bits, e);
  if (now->family == FORMAT_INT)
    return int_of_width(bits, e);
  err_set(e, "bits = %d: format %s comes in one width; set format instead", bits, now->name);
  return NULL;
}

static int none_quantized(const char *knob, const char *value, struct err *e)
{
  return err_set(e,
                 "%s = %s: no site that it acts on is quantized; set recipe first (paper, int8, fp8, ...), or single "
                 "sites as in site.gweight.format",
                 knob, value);
}

int recipe_set_bits(struct site_specs *s, int bits, struct err *e)
{
  struct site_specs new = *s;
  int n = 0;
  for (int i = 0; i < N_WIDE; i++) {
    struct spec *at = &new.at[wide_sites[i]];
    if (spec_is_identity(at))
      continue;
    n++;
    if (at->format->total_bits == bits && at->format->family != FORMAT_BLOCK)
      continue;
    const struct format *f = format_of_width(at->format, bits, e);
    if (!f || change_format(at, f, e))
      return -1;
  }
  char text[16];
  snprintf(text, sizeof text, "%d", bits);
  if (n == 0)
    return none_quantized("bits", text, e);
  *s = new;
  return 0;
}

int recipe_set_format(struct site_specs *s, const char *format, struct err *e)
{
  struct site_specs new = *s;
  const struct format *f = format_find(format, e);
  int n = 0;
  if (!f)
    return -1;
  struct spec plain = spec_default(f, ROUND_RNE);
  if (spec_is_identity(&plain))
    return err_set(e, "format = %s: would leave nothing quantized; set recipe = fp32, or single sites", f->name);
  for (int i = 0; i < N_WIDE; i++) {
    struct spec *at = &new.at[wide_sites[i]];
    if (spec_is_identity(at))
      continue;
    n++;
    if (at->format != f && spec_set(at, "format", f->name, e))
      return -1;
  }
  if (n == 0)
    return none_quantized("format", f->name, e);
  *s = new;
  return 0;
}

int recipe_set_rounding(struct site_specs *s, const char *rounding, struct err *e)
{
  struct site_specs new = *s;
  int n = 0;
  for (int i = 0; i < N_BACKWARD; i++) {
    struct spec *at = &new.at[backward_sites[i]];
    if (spec_is_identity(at))
      continue;
    n++;
    if (spec_set(at, "rounding", rounding, e))
      return -1;
  }
  if (n == 0)
    return none_quantized("rounding", rounding, e);
  *s = new;
  return 0;
}

/* The one format of the quantized ones among the wide sites; NULL and *mixed where they differ or there is none. */
static const struct format *common_format(const struct site_specs *s, bool *mixed)
{
  const struct format *f = NULL;
  *mixed = false;
  for (int i = 0; i < N_WIDE; i++) {
    const struct spec *at = &s->at[wide_sites[i]];
    if (spec_is_identity(at))
      continue;
    if (f && at->format != f) {
      *mixed = true;
      return NULL;
    }
    f = at->format;
  }
  return f;
}

int recipe_bits(const struct site_specs *s)
{
  int bits = 0;
  for (int i = 0; i < N_WIDE; i++) {
    const struct spec *at = &s->at[wide_sites[i]];
    if (spec_is_identity(at))
      continue;
    if (bits && bits != at->format->total_bits)
      return 0;
    bits = at->format->total_bits;
  }
  return bits ? bits : 32;
}

const char *recipe_format(const struct site_specs *s)
{
  bool mixed;
  const struct format *f = common_format(s, &mixed);
  return mixed ? "mixed" : f ? f->name : "fp32";
}

const char *recipe_rounding(const struct site_specs *s)
{
  int mode = -1;
  for (int i = 0; i < N_BACKWARD; i++) {
    const struct spec *at = &s->at[backward_sites[i]];
    if (spec_is_identity(at))
      continue;
    if (mode >= 0 && (int)at->rounding != mode)
      return "mixed";
    mode = (int)at->rounding;
  }
  return rounding_name(mode < 0 ? ROUND_RNE : (enum rounding)mode);
}
