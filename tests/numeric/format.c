/* The table of formats against the facts of NUMERICS section 1, names and aliases, and what is no format. */
#include "config.h"

#include <math.h>
#include <stdio.h>

#include "helper.h"
#include "numeric/code.h"

/* Every row of the table of NUMERICS section 1 that is a format here. */
static const struct {
  const char *name;
  int exp_bits, frac_bits, bias, emin, emax;
  double max_finite, min_normal, min_subnormal;
  bool inf, nan, neg_zero;
} facts[] = {
    {"fp32", 8, 23, 127, -126, 127, 3.4028234663852886e38, 0x1p-126, 0x1p-149, true, true, true},
    {"fp16", 5, 10, 15, -14, 15, 65504, 0x1p-14, 0x1p-24, true, true, true},
    {"bf16", 8, 7, 127, -126, 127, 3.3895313892515355e38, 0x1p-126, 0x1p-133, true, true, true},
    {"tf32", 8, 10, 127, -126, 127, 3.4011621342146535e38, 0x1p-126, 0x1p-136, true, true, true},
    {"e4m3", 4, 3, 7, -6, 8, 448, 0x1p-6, 0x1p-9, false, true, true},
    {"e5m2", 5, 2, 15, -14, 15, 57344, 0x1p-14, 0x1p-16, true, true, true},
    {"e4m3fnuz", 4, 3, 8, -7, 7, 240, 0x1p-7, 0x1p-10, false, true, false},
    {"e5m2fnuz", 5, 2, 16, -15, 15, 57344, 0x1p-15, 0x1p-17, false, true, false},
    {"e4m3b11fnuz", 4, 3, 11, -10, 4, 30, 0x1p-10, 0x1p-13, false, true, false},
    {"e4m3ieee", 4, 3, 7, -6, 7, 240, 0x1p-6, 0x1p-9, true, true, true},
    {"e3m4ieee", 3, 4, 3, -2, 3, 15.5, 0x1p-2, 0x1p-6, true, true, true},
    {"e3m2", 3, 2, 3, -2, 4, 28, 0.25, 0.0625, false, false, true},
    {"e2m3", 2, 3, 1, 0, 2, 7.5, 1, 0.125, false, false, true},
    {"e2m1", 2, 1, 1, 0, 2, 6, 1, 0.5, false, false, true},
    {"e4m3fin", 4, 3, 7, -6, 8, 480, 0x1p-6, 0x1p-9, false, false, true},
    {"e4m2", 4, 2, 7, -6, 8, 448, 0x1p-6, 0x1p-8, false, false, true},
    {"e4m1", 4, 1, 7, -6, 8, 384, 0x1p-6, 0x1p-7, false, false, true},
    {"e4m0", 4, 0, 7, -6, 8, 256, 0x1p-6, 0x1p-6, false, false, true},
    {"e4m2ieee", 4, 2, 7, -6, 7, 224, 0x1p-6, 0x1p-8, true, true, true},
    {"e4m1ieee", 4, 1, 7, -6, 7, 192, 0x1p-6, 0x1p-7, true, true, true},
    {"e5m1ieee", 5, 1, 15, -14, 15, 49152, 0x1p-14, 0x1p-15, true, true, true},
};

static void test_facts(void)
{
  for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
    const struct format *f = find_format(facts[i].name);
    ok(f->exp_bits == facts[i].exp_bits && f->frac_bits == facts[i].frac_bits && f->bias == facts[i].bias &&
           f->emin == facts[i].emin && f->emax == facts[i].emax && f->max_finite == facts[i].max_finite &&
           f->min_normal == facts[i].min_normal && f->min_subnormal == facts[i].min_subnormal &&
           f->has_inf == facts[i].inf && f->has_nan == facts[i].nan && f->has_neg_zero == facts[i].neg_zero &&
           f->total_bits == 1 + f->exp_bits + f->frac_bits,
       "%s: parameters", facts[i].name);
    is_str(f->name, facts[i].name, "%s: its name is canonical", facts[i].name);
  }
}

/* The largest finite code and the number of NaN and Inf codes agree with the parameters. */
static void test_codes(void)
{
  for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
    const struct format *f = find_format(facts[i].name);
    if (f->total_bits > 16)
      continue;
    float max = 0, min = INFINITY;
    bool inf = false, nan = false, neg_zero = false;
    for (uint32_t c = 0; c < 1u << f->total_bits; c++) {
      float v = format_value(f, c);
      inf |= isinf(v);
      nan |= isnan(v);
      neg_zero |= v == 0 && signbit(v);
      max = isfinite(v) && v > max ? v : max;
      min = v > 0 && v < min ? v : min;
    }
    ok((double)max == f->max_finite && (double)min == f->min_subnormal && inf == f->has_inf && nan == f->has_nan &&
           neg_zero == f->has_neg_zero,
       "%s: codes agree with the parameters", f->name);
  }
}

static void test_names(void)
{
  static const char *const same_as[][2] = {
      {"binary16", "fp16"},      {"bfloat16", "bf16"},          {"ocp_e4m3", "e4m3"},     {"ocp_e5m2", "e5m2"},
      {"e4m3fn", "e4m3"},        {"e4m3_fin", "e4m3fin"},       {"e4m2_fin", "e4m2"},     {"e4m0_fin", "e4m0"},
      {"e4m2fin", "e4m2"},       {"e5m1_ieee", "e5m1ieee"},     {"ocp_e2m1", "e2m1"},     {"e8m7ieee", "bf16"},
      {"E4M3", "e4m3"},          {"float8_e4m3fn", "e4m3"},     {"e5m10ieee", "fp16"},    {"e8m23", "fp32"},
      {"mxfp4_e2m1", "mxfp4"},   {"mxfp8_e4m3", "mxfp8e4m3"},   {"mxint8_sym", "mxint8"}, {"mxint8_full", "mxint8full"},
      {"nvfp4_te_f32", "nvfp4"}, {"nvfp4_exact", "nvfp4exact"}, {"q(8, 4)", "q(8,4)"},    {"e3m2fin", "e3m2"},
  };
  static const char *const nothing[] = {"",      "e4",      "e4m",   "m3",     "e1m3",  "e9m3",    "e4m24",  "e8m3fin",
                                        "e4m3x", "int1",    "int17", "int",    "int8x", "uint1",   "q(1,0)", "q(8,4",
                                        "q(8)",  "e4m3fnu", "fp8",   "e004m3", "mxfp5", "e4m3fnfn"};
  for (size_t i = 0; i < sizeof same_as / sizeof *same_as; i++)
    ok(find_format(same_as[i][0]) == find_format(same_as[i][1]), "%s is %s", same_as[i][0], same_as[i][1]);
  for (size_t i = 0; i < sizeof nothing / sizeof *nothing; i++) {
    struct err e = {{0}};
    ok(!format_find(nothing[i], &e) && e.msg[0], "'%s' is no format, and a message says so", nothing[i]);
  }
  char longer[200];
  memset(longer, 'e', sizeof longer);
  longer[199] = '\0';
  struct err e;
  ok(!format_find(longer, &e), "nor is a long word");
  (void)!format_find("e4m4x", &e);
  ok(strstr(e.msg, "did you mean"), "a near miss is named");
}

/* All eXmY by rule: names find themselves, and so many of them are no trouble. */
static void test_all_by_rule(void)
{
  static const char *const kinds[] = {"ieee", "fn", "fin", "fnuz"};
  int n_bad = 0, n = 0;
  for (int e = 2; e <= 7; e++)
    for (int m = 0; m <= 23; m++)
      for (int k = 0; k < 4; k++, n++) {
        char name[32];
        snprintf(name, sizeof name, "e%dm%d%s", e, m, kinds[k]);
        const struct format *f = find_format(name);
        n_bad += find_format(f->name) != f || f->exp_bits != e || f->frac_bits != m || f->kind != (enum float_kind)k;
      }
  is_int(n_bad, 0, "%d formats by rule", n);
}

static void test_integers(void)
{
  for (int b = 2; b <= 16; b++) {
    char name[16];
    snprintf(name, sizeof name, "int%d", b);
    const struct format *s = find_format(name);
    snprintf(name, sizeof name, "uint%d", b);
    const struct format *u = find_format(name);
    ok(s->code_max == (1 << (b - 1)) - 1 && s->code_min == -s->code_max && u->code_min == 0 &&
           u->code_max == (1 << b) - 1 && s->total_bits == b && u->total_bits == b,
       "int%d and uint%d: codes", b, b);
  }
  const struct format *q = find_format("q(8,4)");
  ok(q->code_min == -128 && q->code_max == 127 && q->fixed_frac_bits == 4, "q(8,4) is -8 to 7.9375");
}

static void test_list(void)
{
  int n_bad = 0;
  for (size_t i = 0; i < format_count(); i++)
    n_bad += find_format(format_at(i)->name) != format_at(i);
  is_int(n_bad, 0, "every listed format is found by its name");
  ok(!format_at(format_count()), "and there are no more");
}

int main(void)
{
  test_facts();
  test_codes();
  test_names();
  test_all_by_rule();
  test_integers();
  test_list();
  return tap_done();
}
