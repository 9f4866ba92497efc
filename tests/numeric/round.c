/* Rounding of one number against slow and obvious references: neighbours searched for in the list of a format's values,
 * decisions made in exact double arithmetic. The probability of every stochastic mode is measured exactly, by a search
 * for the random integer at which it starts to round up. */
#include "config.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "helper.h"
#include "numeric/code.h"

enum { MAX_VALUES = 1 << 15 };

/* The finite magnitudes of a format in order. */
static double values[MAX_VALUES];
static size_t n_values;

static void list_values(const struct format *f)
{
  n_values = 0;
  uint32_t n_codes = f->family == FORMAT_UINT ? 1u << f->total_bits : 1u << (f->total_bits - 1);
  for (uint32_t c = 0; c < n_codes; c++)
    if (isfinite(format_value(f, c)))
      values[n_values++] = (double)format_value(f, c);
}

/* Index of the largest value <= a. */
static size_t index_below(double a)
{
  size_t lo = 0, hi = n_values;
  while (hi - lo > 1) {
    size_t mid = (lo + hi) / 2;
    *(values[mid] <= a ? &lo : &hi) = mid;
  }
  return lo;
}

/* Saturating, of a finite x. The place in the list is the code, so its parity is the significand's where there is one.
 */
static float reference(const struct format *f, enum rounding mode, float x)
{
  double a = fabs((double)x), max = values[n_values - 1];
  bool negative = signbit(x), up = false;
  size_t i = index_below(a);
  double result = values[i];
  if (a < max && a > values[i]) {
    double twice = 2 * (a - values[i]), gap = values[i + 1] - values[i];
    bool odd = i & 1;
    bool significand_odd = f->family == FORMAT_FLOAT && f->frac_bits == 0 ? i > 0 : odd;
    switch (mode) {
    case ROUND_RNE:
      up = twice > gap || (twice == gap && significand_odd);
      break;
    case ROUND_RNE_CODE:
      up = twice > gap || (twice == gap && odd);
      break;
    case ROUND_RNA:
      up = twice >= gap;
      break;
    case ROUND_RU:
      up = !negative;
      break;
    case ROUND_RD:
      up = negative;
      break;
    case ROUND_RO:
      up = !significand_odd;
      break;
    default:
      break;
    }
    result = values[i + up];
  }
  if (result == 0 && (f->family != FORMAT_FLOAT || !f->has_neg_zero))
    return 0;
  return (float)(negative ? -result : result);
}

/* Random bit patterns, half of them with exponents about the format's range; every value and midpoint, and their
 * neighbours. */
static float input(size_t k, uint64_t *state)
{
  size_t n_special = n_values * 6;
  if (k < n_special) {
    size_t i = k / 6;
    double next = i + 1 < n_values ? values[i + 1] : 2 * values[i] - (i ? values[i - 1] : 0);
    float v = (float)(k % 2 ? (values[i] + next) / 2 : values[i]);
    return k % 6 / 2 == 0 ? v : nextafterf(v, k % 6 / 2 == 1 ? INFINITY : -INFINITY);
  }
  uint32_t u = (uint32_t)test_random(state);
  int top = ilogb(values[n_values - 1]), bottom = ilogb(values[1]) - 3;
  if (k % 2) {
    int e = bottom + (int)(test_random(state) % (uint64_t)(top - bottom + 3)) + 127;
    u = (u & 0x807fffff) | (uint32_t)(e < 0 ? 0 : e > 254 ? 254 : e) << 23;
  }
  return float_of(u);
}

static const char *const formats[] = {
    "fp16",    "bf16",   "e4m3", "e5m2", "e4m3fnuz", "e5m2fnuz", "e4m3b11fnuz", "e3m2",        "e2m3",    "e2m1",
    "e4m3fin", "e4m2",   "e4m1", "e4m0", "e4m3ieee", "e3m4ieee", "e5m1ieee",    "e6m1",        "e2m0",    "e7m0fnuz",
    "e5m10",   "e6m9fn", "int2", "int3", "int8",     "int16",    "q(8,4)sym",   "q(12,30)sym", "ternary",
};

static void test_deterministic(void)
{
  static const enum rounding modes[] = {ROUND_RNE, ROUND_RNE_CODE, ROUND_RNA, ROUND_RTZ, ROUND_RU, ROUND_RD, ROUND_RO};
  for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
    const struct format *f = find_format(formats[i]);
    list_values(f);
    size_t n = n_values * 6 + 20000, n_bad = 0;
    for (size_t m = 0; m < sizeof modes / sizeof *modes; m++) {
      struct spec s = spec_default(f, modes[m]);
      struct kernel_plan p;
      uint64_t state = 99;
      kernel_plan_init(&p, &s, f, 1);
      for (size_t k = 0; k < n; k++) {
        float x = input(k, &state);
        if (!isfinite(x))
          continue;
        for (int sign = 0; sign < 2; sign++, x = -x) {
          float got = kernel_round_one(&p, x, 0), want = reference(f, modes[m], x);
          if (!same(got, want) && n_bad++ < 3)
            tap_note("%s(%a) is %a, not %a", rounding_name(modes[m]), (double)x, (double)got, (double)want);
        }
      }
    }
    is_int(n_bad, 0, "%s: seven modes of %zu numbers are what the list of values says", f->name, 2 * n);
  }
}

/* P(up) in 2^-k: 2^k - the least random integer that rounds up. The modes are monotone in it. */
static uint64_t probability(const struct kernel_plan *p, float x, float lo, float hi)
{
  uint64_t from = 0, to = 1ull << p->k_bits; /* the threshold is in [from, to] */
  while (from < to) {
    uint64_t r = (from + to) / 2;
    float y = kernel_round_one(p, x, (uint32_t)r);
    if (y != lo && y != hi)
      tap_bail("%g rounds to %g, not to %g or %g", (double)x, (double)y, (double)lo, (double)hi);
    if (y == hi)
      to = r;
    else
      from = r + 1;
  }
  return (1ull << p->k_bits) - from;
}

/* P(up) by the definition of each mode (NUMERICS section 3), of the fraction d = num / 2^n_bits, in 2^-k. */
static uint64_t defined(enum rounding mode, uint64_t num, int n_bits, int k, double eps)
{
  double d = ldexp((double)num, k - n_bits); /* exact: num < 2^24 */
  double one = ldexp(1, k);
  switch (mode) {
  case ROUND_SR_FF:
    return (uint64_t)floor(d);
  case ROUND_SR_F:
    return (uint64_t)floor(d + 0.5);
  case ROUND_SR_EQ:
    return num ? 1ull << (k - 1) : 0;
  case ROUND_SR_EPS:
    return num ? (uint64_t)fmin(d + eps * one, one) : 0;
  case ROUND_SIGNED_SR_EPS:
    return num ? (uint64_t)fmax(d - eps * one, 0) : 0;
  default:
    return (uint64_t)nearbyint(d);
  }
}

static void test_probabilities(void)
{
  static const struct {
    enum rounding mode;
    int bits, k; /* asked for, and compared */
  } cases[] = {
      {ROUND_SR, 32, 32},    {ROUND_SR, 16, 16},     {ROUND_SR, 8, 8},
      {ROUND_SR_FF, 1, 1},   {ROUND_SR_FF, 3, 3},    {ROUND_SR_FF, 8, 8},
      {ROUND_SR_FF, 23, 23}, {ROUND_SR_FF, 32, 32},  {ROUND_SR_F, 1, 1},
      {ROUND_SR_F, 3, 3},    {ROUND_SR_F, 8, 8},     {ROUND_SR_F, 31, 31},
      {ROUND_SR_F, 32, 32},  {ROUND_SR_C, 1, 1},     {ROUND_SR_C, 3, 3},
      {ROUND_SR_C, 8, 8},    {ROUND_SR_C, 13, 13},   {ROUND_SR_C, 32, 32},
      {ROUND_SR_EQ, 32, 1},  {ROUND_SR_EPS, 32, 32}, {ROUND_SIGNED_SR_EPS, 32, 32},
      {ROUND_QR, 32, 32},
  };
  static const char *const names[] = {"e4m3", "bf16", "int8", "e4m0"};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    int n_bad = 0, n = 0;
    for (size_t f = 0; f < sizeof names / sizeof *names; f++) {
      struct spec s = spec_default(find_format(names[f]), cases[c].mode);
      struct kernel_plan p;
      s.random_bits = cases[c].bits;
      s.eps = 0.0625f;
      kernel_plan_init(&p, &s, s.format, 1);
      float lo = 1, hi = s.format->family == FORMAT_INT ? 2 : 1 + ldexpf(1, -s.format->frac_bits);
      int n_bits = 23 - (s.format->family == FORMAT_INT ? 0 : s.format->frac_bits);
      uint64_t state = 5;
      for (int k = 0; k < 400; k++, n++) {
        uint64_t num = k < 3 ? (uint64_t)k : test_random(&state) % (1ull << n_bits);
        float x = (float)(1 + (double)num * 0x1p-23);
        uint64_t want = defined(cases[c].mode, num, n_bits, cases[c].k, 0.0625);
        n_bad += probability(&p, x, lo, hi) != want || probability(&p, -x, -lo, -hi) != want;
      }
    }
    is_int(n_bad, 0, "%s with %d bits: P(up) of %d numbers is the defined one", rounding_name(cases[c].mode),
           cases[c].bits, n);
  }
}

/* Mean over all fractions of N bits of P(up) - d, in 2^-(k+1): NUMERICS section 3, "fewest-bits facts". */
static void test_mean_bias(void)
{
  enum { N = 10 };
  static const enum rounding modes[] = {ROUND_SR_FF, ROUND_SR_F, ROUND_SR_C};
  for (int k = 1; k <= 12; k++)
    for (int m = 0; m < 3; m++) {
      struct spec s = spec_default(find_format("e4m3"), modes[m]);
      struct kernel_plan p;
      double bias = 0, want = 0;
      s.random_bits = k;
      kernel_plan_init(&p, &s, s.format, 1);
      for (int j = 0; j < 1 << N; j++)
        bias += ldexp((double)probability(&p, (float)(1 + j * 0x1p-13), 1, 1.125f), -k) - ldexp(j, -N);
      if (k < N && modes[m] == ROUND_SR_FF)
        want = -(1 - ldexp(1, k - N)) / 2 * ldexp(1, -k);
      else if (k < N && modes[m] == ROUND_SR_F)
        want = ldexp(1, k - N) * ldexp(1, -k - 1);
      is_close(ldexp(bias, -N), want, 1e-15, "%s with %d bits: mean bias over fractions of %d bits",
               rounding_name(modes[m]), k, N);
    }
}

/* Deep below the smallest value P(up) is the fraction to the nearest 2^-k; the dead zone of few bits is as stated. */
static void test_far_below(void)
{
  struct spec s = spec_default(find_format("e4m3"), ROUND_SR);
  struct kernel_plan p;
  kernel_plan_init(&p, &s, s.format, 1);
  is_int(probability(&p, 0x1p-9f * 0x1p-31f, 0, 0x1p-9f), 2, "2^-31 quanta go up twice in 2^32");
  is_int(probability(&p, 0x1p-9f * 0x1p-32f, 0, 0x1p-9f), 1, "2^-32 quanta once");
  is_int(probability(&p, 0x1p-149f, 0, 0x1p-9f), 0, "the smallest fp32 never");
  s.random_bits = 8;
  kernel_plan_init(&p, &s, s.format, 1);
  is_int(probability(&p, 0x1p-9f * 0x1p-9f, 0, 0x1p-9f), 0, "with 8 bits, 2^-9 quanta never (a tie to even)");
  is_int(probability(&p, 0x1.01p-9f * 0x1p-9f, 0, 0x1p-9f), 1, "and a little more once in 2^8");
  s = spec_default(find_format("e4m3"), ROUND_RU);
  kernel_plan_init(&p, &s, s.format, 1);
  is_close((double)kernel_round_one(&p, 0x1p-149f, 0), 0x1p-9, 0, "ru takes the smallest fp32 up");
}

static bool has_nan_result(const struct format *f)
{
  return f->family == FORMAT_FLOAT && f->kind != FLOAT_FIN;
}

/* NaN, zeros, Inf, overflow (NUMERICS section 2) in every mode. */
static void test_special(void)
{
  static const uint32_t nans[] = {0x7f800001, 0x7fbfffff, 0x7fc00000, 0x7fffffff, 0xff800001, 0xffffffff};
  for (size_t i = 0; i < format_count(); i++) {
    const struct format *f = format_at(i);
    int n_nan = 0, n_zero = 0, n_inf = 0, n_over = 0;
    if (f->family == FORMAT_BLOCK || f->family == FORMAT_BINARY)
      continue;
    for (int m = 0; m < ROUND_COUNT; m++)
      for (int sat = 0; sat < 2; sat++)
        for (int k = 0; k < 3; k++) {
          uint32_t r = k == 0 ? 0 : k == 1 ? 0x7fffffff : 0xffffffff;
          struct spec s = spec_default(f, (enum rounding)m);
          struct kernel_plan p;
          s.no_saturate = !sat;
          kernel_plan_init(&p, &s, f, 1);
          if (p.k_bits < 32)
            r &= (1u << p.k_bits) - 1;
          for (size_t j = 0; j < sizeof nans / sizeof *nans; j++)
            n_nan += !isnan(kernel_round_one(&p, float_of(nans[j]), r));
          float zero = kernel_round_one(&p, -0.0f, r);
          bool keeps = f->family == FORMAT_FLOAT && f->has_neg_zero;
          n_zero += zero != 0 || !!signbit(zero) != keeps || !same(kernel_round_one(&p, 0.0f, r), 0.0f);
          float top =
              f->family == FORMAT_FLOAT ? (float)f->max_finite : ldexpf((float)f->code_max, -f->fixed_frac_bits);
          float inf = kernel_round_one(&p, INFINITY, r);
          bool to_max = sat || !has_nan_result(f);
          n_inf += to_max ? inf != top : f->has_inf ? inf != INFINITY : !isnan(inf);
          if (f->max_finite > 3.4e38 || f->family != FORMAT_FLOAT)
            continue;
          float over = kernel_round_one(&p, -FLT_MAX, r);
          bool stays = m == ROUND_RTZ || m == ROUND_RO || m == ROUND_RU;
          if (!spec_is_stochastic(&s) || (double)FLT_MAX > 4 * f->max_finite)
            n_over += to_max || stays ? over != -top : f->has_inf ? over != -INFINITY : !isnan(over);
        }
    ok(!n_nan && !n_zero && !n_inf && !n_over, "%s: NaN, zeros, Inf and overflow in all modes", f->name);
  }
}

static void test_flush(void)
{
  struct spec s = spec_default(find_format("e4m3"), ROUND_RNE);
  struct kernel_plan p;
  s.flush = true;
  kernel_plan_init(&p, &s, s.format, 1);
  ok(same(kernel_round_one(&p, -0x1.8p-7f, 0), -0.0f), "flush: a subnormal result becomes zero with its sign");
  is_close((double)kernel_round_one(&p, 0x1p-6f, 0), 0x1p-6, 0, "the smallest normal stays");
  is_close((double)kernel_round_one(&p, 0x1.fp-7f, 0), 0x1p-6, 0, "and what rounds to it");
}

/* Scaled values are divided in fp32, correctly rounded, and multiplied in fp32. */
static void test_scale(void)
{
  uint64_t state = 3;
  int n_bad = 0;
  struct spec s = spec_default(find_format("int8"), ROUND_RNE);
  for (int k = 0; k < 100000; k++) {
    float scale = ldexpf(1 + (float)(test_random(&state) >> 40) * 0x1p-24f, (int)(test_random(&state) % 80) - 40);
    float x = scale * ((float)(test_random(&state) >> 40) * 0x1p-15f - 256);
    struct kernel_plan p;
    kernel_plan_init(&p, &s, s.format, scale);
    float q = nearbyintf(x / scale);
    q = (q > 127 ? 127 : q < -127 ? -127 : q) + 0.0f;
    n_bad += !same(kernel_round_one(&p, x, 0), q * scale);
  }
  is_int(n_bad, 0, "int8 under random scales");
}

static void test_binary(void)
{
  struct spec s = spec_default(find_format("binary"), ROUND_RNE);
  struct kernel_plan p;
  kernel_plan_init(&p, &s, s.format, 0.5f);
  ok(kernel_round_one(&p, 1e-30f, 0) == 0.5f && kernel_round_one(&p, -3, 0) == -0.5f &&
         kernel_round_one(&p, -0.0f, 0) == 0.5f && isnan(kernel_round_one(&p, NAN, 0)),
     "binary: the sign, of zeros +1, times the scale");
  s.rounding = ROUND_SR;
  kernel_plan_init(&p, &s, s.format, 1);
  is_int(probability(&p, 0.5f, -1, 1), 3ull << 30, "stochastic: P(+1) of 0.5 is 3/4");
  is_int(probability(&p, -0.75f, -1, 1), 1ull << 29, "of -0.75 1/8");
  is_int(probability(&p, 2, -1, 1), 1ull << 32, "of 2 it is 1");
  is_int(probability(&p, -2, -1, 1), 0, "of -2 it is 0");
}

int main(void)
{
  test_deterministic();
  test_probabilities();
  test_mean_bias();
  test_far_below();
  test_special();
  test_flush();
  test_scale();
  test_binary();
  return tap_done();
}
