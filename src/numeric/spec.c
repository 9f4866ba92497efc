/* Specs: names of their parts, defaults by format, and checks. */
#include "config.h"

#include "numeric/spec.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"

static const struct {
  const char *name;
  bool stochastic;
  const char *help;
} roundings[ROUND_COUNT] = {
#define ROUNDING(id, name, stochastic, help) {name, stochastic, help},
#include "numeric/round.def"
#undef ROUNDING
};

static const struct {
  const char *alias, *name;
} rounding_aliases[] = {
    {"rne_754", "rne"},     {"nearest", "rne"},       {"stochastic", "sr"},
    {"sr_equal", "sr_eq"},  {"sr_epsilon", "sr_eps"}, {"signed_sr_epsilon", "signed_sr_eps"},
    {"quasi_random", "qr"},
};

const char *const granularity_names[GRAIN_COUNT + 1] = {"tensor", "row", "column", "block", NULL};
const char *const scale_rule_names[SCALE_RULES + 1] = {"none",  "absmax", "pow2", "fixed", "delayed", "absmean",
                                                       "floor", "rceil",  "even", "nvfp4", NULL};

const char *rounding_name(enum rounding r)
{
  return roundings[r].name;
}

const char *rounding_help(enum rounding r)
{
  return roundings[r].help;
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

static enum scale_rule rule_by_name(const char *name)
{
  int i = 0;
  while (strcmp(scale_rule_names[i], name))
    i++;
  return (enum scale_rule)i;
}

static enum scale_rule default_rule(const struct format *f, bool stochastic)
{
  switch (f->family) {
  case FORMAT_BLOCK:
    return rule_by_name(f->scale_rule);
  case FORMAT_FLOAT:
    return f->total_bits <= 8 ? SCALE_POW2 : SCALE_NONE;
  case FORMAT_FIXED:
    return SCALE_NONE;
  case FORMAT_TERNARY: /* stochastic: TernGrad, which absmax keeps unbiased */
  case FORMAT_BINARY:
    return stochastic ? SCALE_ABSMAX : SCALE_ABSMEAN;
  default:
    return SCALE_ABSMAX;
  }
}

struct spec spec_default(const struct format *f, enum rounding r)
{
  bool is_block = f->family == FORMAT_BLOCK;
  return (struct spec){
      .format = f,
      .rounding = r,
      .granularity = is_block ? GRAIN_BLOCK : GRAIN_TENSOR,
      .scale = default_rule(f, roundings[r].stochastic),
      .block = is_block ? f->block : 0,
      .random_bits = 32,
      .fixed_scale = 1,
  };
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

static float clip_of(const struct spec *s)
{
  return s->clip > 0 ? s->clip : 1;
}

bool spec_equal(const struct spec *a, const struct spec *b)
{
  return a->format == b->format && a->rounding == b->rounding && a->granularity == b->granularity &&
         a->scale == b->scale && a->block == b->block && a->random_bits == b->random_bits &&
         a->no_saturate == b->no_saturate && a->flush == b->flush && a->fixed_scale == b->fixed_scale &&
         a->eps == b->eps && clip_of(a) == clip_of(b) && a->zero_point == b->zero_point && a->feedback == b->feedback;
}

static int check_block_format(const struct spec *s, struct err *e)
{
  const struct format *f = s->format;
  bool nvfp4 = strncmp(f->name, "nvfp4", 5) == 0;
  if (s->granularity != GRAIN_BLOCK || s->block != f->block)
    return err_set(e, "format %s has a scale for each block of %d: granularity must be block and block %d", f->name,
                   f->block, f->block);
  if (nvfp4 != (s->scale == SCALE_NVFP4) || s->scale < SCALE_FLOOR)
    return err_set(e, "scale = %s: format %s takes %s", scale_rule_names[s->scale], f->name,
                   nvfp4 ? "nvfp4" : "floor, rceil or even");
  return 0;
}

static int check_scale(const struct spec *s, struct err *e)
{
  const struct format *f = s->format;
  const char *rule = scale_rule_names[s->scale];
  if (f->family == FORMAT_BLOCK)
    return check_block_format(s, e);
  if (s->scale >= SCALE_FLOOR)
    return err_set(e, "scale = %s is for block formats; format %s takes none, absmax, pow2, fixed, delayed or absmean",
                   rule, f->name);
  if (s->scale == SCALE_DELAYED && (s->granularity != GRAIN_TENSOR || f->family == FORMAT_UINT))
    return err_set(e,
                   "scale = delayed keeps one history a tensor: granularity must be tensor, and the format not uintN");
  if (s->scale == SCALE_ABSMEAN && (s->granularity == GRAIN_COLUMN || f->family == FORMAT_UINT))
    return err_set(e, "scale = absmean does not go with granularity column, nor with uintN");
  if (s->granularity == GRAIN_COLUMN && f->family == FORMAT_UINT)
    return err_set(e, "granularity = column: uintN takes tensor, row or block");
  if (s->granularity == GRAIN_BLOCK && (s->block < 1 || s->block > 1 << 20))
    return err_set(e, "block = %d: must be 1 to 1048576 elements", s->block);
  if (s->scale == SCALE_FIXED && !(s->fixed_scale >= 0x1p-126f && s->fixed_scale <= 0x1p126f))
    return err_set(e, "fixed_scale = %g: must be 2^-126 to 2^126", (double)s->fixed_scale);
  if (f->family == FORMAT_UINT ? s->zero_point < f->code_min || s->zero_point > f->code_max : s->zero_point != 0)
    return err_set(e, "zero_point = %d: format %s takes %d to %d", s->zero_point, f->name,
                   f->family == FORMAT_UINT ? f->code_min : 0, f->family == FORMAT_UINT ? f->code_max : 0);
  return 0;
}

static bool takes_any_k(enum rounding r)
{
  return r == ROUND_SR_FF || r == ROUND_SR_F || r == ROUND_SR_C;
}

static bool bits_fit(enum rounding r, int bits)
{
  return bits == 32 || bits == 16 || bits == 8 || (takes_any_k(r) && bits >= 1 && bits < 32);
}

int spec_check(const struct spec *s, struct err *e)
{
  if (check_scale(s, e))
    return -1;
  if (!bits_fit(s->rounding, s->random_bits))
    return err_set(e, "random_bits = %d: rounding %s takes %s", s->random_bits, rounding_name(s->rounding),
                   takes_any_k(s->rounding) ? "1 to 32" : "32, 16 or 8 (sr_ff, sr_f and sr_c take 1 to 32)");
  if (s->format->family == FORMAT_BINARY && !spec_is_stochastic(s) && s->rounding != ROUND_RNE)
    return err_set(e, "format binary takes rounding rne (the sign) or a stochastic one, not %s",
                   rounding_name(s->rounding));
  if (!(s->eps >= 0 && s->eps <= 1))
    return err_set(e, "eps = %g: must be 0 to 1 ulp", (double)s->eps);
  if (!(s->clip >= 0 && s->clip <= 1))
    return err_set(e, "clip = %g: must be above 0, and at most 1", (double)s->clip);
  return 0;
}
