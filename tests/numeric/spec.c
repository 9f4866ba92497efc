/* Specs: defaults by format, fields by name in text, what does not fit together. */
#include "config.h"

#include "helper.h"

static void test_defaults(void)
{
  static const struct {
    const char *format;
    enum rounding rounding;
    enum scale_rule scale;
    enum granularity granularity;
  } cases[] = {
      {"fp32", ROUND_RNE, SCALE_NONE, GRAIN_TENSOR},     {"fp16", ROUND_SR, SCALE_NONE, GRAIN_TENSOR},
      {"bf16", ROUND_SR, SCALE_NONE, GRAIN_TENSOR},      {"tf32", ROUND_RNE, SCALE_NONE, GRAIN_TENSOR},
      {"e4m3", ROUND_SR, SCALE_POW2, GRAIN_TENSOR},      {"e4m0", ROUND_SR, SCALE_POW2, GRAIN_TENSOR},
      {"int8", ROUND_SR, SCALE_ABSMAX, GRAIN_TENSOR},    {"uint8", ROUND_RNE, SCALE_ABSMAX, GRAIN_TENSOR},
      {"q(8,4)", ROUND_SR, SCALE_NONE, GRAIN_TENSOR},    {"ternary", ROUND_RNE, SCALE_ABSMEAN, GRAIN_TENSOR},
      {"ternary", ROUND_SR, SCALE_ABSMAX, GRAIN_TENSOR}, {"mxfp4", ROUND_SR, SCALE_RCEIL, GRAIN_BLOCK},
      {"nvfp4", ROUND_SR, SCALE_NVFP4, GRAIN_BLOCK},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct spec s = spec_default(find_format(cases[i].format), cases[i].rounding);
    struct err e;
    ok(s.scale == cases[i].scale && s.granularity == cases[i].granularity && s.random_bits == 32 && !s.no_saturate,
       "%s %s: default scaling", cases[i].format, rounding_name(cases[i].rounding));
    ok(spec_check(&s, &e) == 0, "%s: the default passes the check", cases[i].format);
  }
}

static void is_field(const struct spec *s, const char *field, const char *want)
{
  char text[64];
  if (spec_get(s, field, text, sizeof text))
    tap_bail("no field %s", field);
  is_str(text, want, "%s is %s", field, want);
}

static void set(struct spec *s, const char *field, const char *value)
{
  struct err e;
  if (spec_set(s, field, value, &e))
    tap_bail("%s", e.msg);
}

static void test_fields(void)
{
  struct spec s = spec_default(find_format("fp32"), ROUND_RNE);
  set(&s, "format", "ocp_e4m3");
  is_field(&s, "format", "e4m3");
  is_field(&s, "scale", "pow2");
  set(&s, "rounding", "SR_FF");
  set(&s, "random_bits", "3");
  is_field(&s, "rounding", "sr_ff");
  is_field(&s, "random_bits", "3");
  set(&s, "rounding", "sr");
  is_field(&s, "random_bits", "32");
  set(&s, "random_bits", "16");
  set(&s, "rounding", "sr_c");
  is_field(&s, "random_bits", "16");
  set(&s, "granularity", "block");
  is_field(&s, "block", "32");
  set(&s, "saturate", "false");
  is_field(&s, "saturate", "false");
  set(&s, "subnormals", "flush");
  is_field(&s, "subnormals", "flush");
  set(&s, "scale", "fixed");
  set(&s, "fixed_scale", "0.1");
  is_field(&s, "fixed_scale", "0.1");
  is_field(&s, "clip", "1");
  set(&s, "clip", "0.5");
  is_field(&s, "clip", "0.5");
  set(&s, "error_feedback", "true");
  is_field(&s, "error_feedback", "true");
  set(&s, "format", "mxfp4");
  is_field(&s, "granularity", "block");
  is_field(&s, "scale", "rceil");
  is_field(&s, "rounding", "sr_c");
  set(&s, "format", "int8");
  is_field(&s, "granularity", "tensor");
}

/* Ternary and binary: the scale follows the rounding as long as it is the default. */
static void test_scale_follows(void)
{
  struct spec s = spec_default(find_format("ternary"), ROUND_RNE);
  is_field(&s, "scale", "absmean");
  set(&s, "rounding", "sr");
  is_field(&s, "scale", "absmax");
  set(&s, "scale", "fixed");
  set(&s, "rounding", "rne");
  is_field(&s, "scale", "fixed");
}

/* Every field of every listed format's default comes back from its own text. */
static void test_round_trip(void)
{
  int n_bad = 0;
  for (size_t i = 0; i < format_count(); i++)
    for (int r = 0; r < ROUND_COUNT; r++) {
      struct spec s = spec_default(format_at(i), (enum rounding)r), t = spec_default(find_format("fp32"), ROUND_RNE);
      struct err e;
      if (spec_check(&s, &e))
        continue; /* binary takes few modes */
      for (int k = 0; spec_fields[k]; k++) {
        char text[64];
        n_bad += spec_get(&s, spec_fields[k], text, sizeof text) || spec_set(&t, spec_fields[k], text, &e);
      }
      s.clip = t.clip; /* 0 and 1 are the same */
      n_bad += !spec_equal(&s, &t);
    }
  is_int(n_bad, 0, "defaults of all formats and modes come back from text");
}

static void test_wrong(void)
{
  static const char *const cases[][5] = {
      /* format, rounding, field, value, in the message */
      {"fp32", "rne", "format", "e4m9x", "e4m9x"},
      {"fp32", "rne", "colour", "1", "colour"},
      {"fp32", "rne", "rounding", "sx", "allowed are"},
      {"fp32", "rne", "scale", "floor", "block formats"},
      {"fp32", "rne", "scale", "absmx", "absmax"},
      {"mxfp4", "sr", "granularity", "row", "block of 32"},
      {"mxfp4", "sr", "scale", "absmax", "floor, rceil or even"},
      {"mxfp4", "sr", "block", "16", "32"},
      {"nvfp4", "sr", "scale", "floor", "nvfp4"},
      {"e4m3", "sr", "random_bits", "5", "32, 16 or 8"},
      {"e4m3", "sr_f", "random_bits", "33", "1 to 32"},
      {"e4m3", "sr_f", "random_bits", "0", "1 to 32"},
      {"e4m3", "sr_f", "random_bits", "1.5", "whole"},
      {"e4m3", "sr_f", "random_bits", "x", "number"},
      {"e4m3", "sr", "fixed_scale", "-1", "must be"},
      {"e4m3", "sr", "fixed_scale", "nan", "must be"},
      {"e4m3", "sr", "clip", "2", "0 to 1"},
      {"e4m3", "sr", "eps", "7", "0 to 1"},
      {"e4m3", "sr", "saturate", "maybe", "true"},
      {"int8", "sr", "zero_point", "3", "int8"},
      {"uint4", "sr", "zero_point", "16", "0 to 15"},
      {"uint8", "sr", "scale", "delayed", "delayed"},
      {"uint8", "rne", "granularity", "column", "uintN"},
      {"binary", "rne", "rounding", "ru", "binary"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    enum rounding r;
    struct err e = {{0}};
    if (rounding_find(cases[i][1], &r, &e))
      tap_bail("%s", e.msg);
    struct spec s = spec_default(find_format(cases[i][0]), r), before = s;
    bool failed = spec_set(&s, cases[i][2], cases[i][3], &e) == -1;
    if (!ok(failed && strstr(e.msg, cases[i][4]) && spec_equal(&s, &before), "%s %s: %s = %s is refused with \"%s\"",
            cases[i][0], cases[i][1], cases[i][2], cases[i][3], cases[i][4]))
      tap_note("message: %s", e.msg);
  }
}

static void test_identity(void)
{
  struct spec s = spec_default(find_format("fp32"), ROUND_SR);
  ok(spec_is_identity(&s) && spec_is_stochastic(&s), "fp32 passes values unchanged");
  s.flush = true;
  ok(!spec_is_identity(&s), "but not with subnormals to zero");
  s = spec_default(find_format("bf16"), ROUND_RO);
  ok(!spec_is_identity(&s) && !spec_is_stochastic(&s), "bf16 does not");
}

int main(void)
{
  test_defaults();
  test_fields();
  test_scale_follows();
  test_round_trip();
  test_wrong();
  test_identity();
  return tap_done();
}
