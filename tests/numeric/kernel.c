/* Every SIMD kernel that this CPU runs equals the scalar reference bit for bit: outputs, sums, and what lies outside
 * the run. The random integers are checked against Philox itself, and stochastic rounding against its probability.
 *
 * BITDIAL_TEST_FULL=1 in the environment takes ten million random numbers for each format and mode, half of them random
 * bit patterns, instead of 8192; that takes minutes. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "numeric/kernel_simd.h"
#include "../tap/tap.h"

static const char *const isas[] = {"avx2", "avx512"};
enum { N_ISAS = 2, GUARD = 32 };

static bool isa_runs[N_ISAS];

static uint64_t state = 88172645463325252ull;
static uint64_t next_u64(void) /* xorshift64 (Marsaglia 2003): test inputs alone */
{
  state ^= state << 13;
  state ^= state >> 7;
  return state ^= state << 17;
}

static float float_of(uint32_t u)
{
  float x;
  memcpy(&x, &u, 4);
  return x;
}

static uint32_t bits_of(float x)
{
  uint32_t u;
  memcpy(&u, &x, 4);
  return u;
}

static const struct format *format_named(const char *name)
{
  struct err e;
  const struct format *f = format_find(name, &e);
  if (!f)
    tap_bail("%s", e.msg);
  return f;
}

/* A plan with its own key and step. */
static struct kernel_plan plan_of(const char *format, enum rounding mode, int random_bits, float scale)
{
  const struct format *f = format_named(format);
  struct spec s = spec_default(f, mode);
  struct kernel_plan p;
  if (random_bits)
    s.random_bits = random_bits;
  kernel_plan_init(&p, &s, f, scale);
  p.key = rng_derive(7, RNG_SITE, 1, 2, 3);
  p.step = 5 + (9ull << 32);
  return p;
}

/* ---- inputs ---- */

static const uint32_t special[] = {
    0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007fffff, 0x807fffff, 0x00800000, 0x80800000, 0x7f7fffff,
    0xff7fffff, 0x7f800000, 0xff800000, 0x7f800001, 0xff800001, 0x7fbfffff, 0x7fc00000, 0xffc00000, 0x7fc12345,
    0x7fffffff, 0xffffffff, 0x7f7f8000, 0x7f7f7fff, 0x3f800000, 0xbf800000, 0x3f000000, 0x3effffff, 0x3f000001,
    0x43e00000, 0x43e80000, 0x43e80001, 0x43f00000, 0x42fe0000, 0x42ff0000, 0x43000000, 0x7effffff, 0x2f800000,
};

/* Where all_short: every value of fp16 and of bf16. Special patterns, random patterns, and random ones where the grid
 * is fine. */
static size_t make_inputs(float **out, bool all_short, size_t n_random, float scale)
{
  size_t n = 2 * 65536 + sizeof special / sizeof *special + 2 * n_random, at = 0;
  float *x = mem_alloc((n + 1) * sizeof *x);
  for (uint32_t u = 0; all_short && u < 65536; u++) {
    uint32_t e = u >> 10 & 31, m = u & 1023;
    float v = e == 31 ? 0 : ldexpf((float)(e ? m + 1024 : m), (int)(e ? e : 1) - 25);
    x[at++] = e == 31 ? float_of((u & 0x8000) << 16 | 0x7f800000 | m << 13) : (u & 0x8000 ? -v : v);
  }
  for (uint32_t u = 0; all_short && u < 65536; u++)
    x[at++] = float_of(u << 16);
  for (size_t i = 0; i < sizeof special / sizeof *special; i++)
    x[at++] = float_of(special[i]);
  for (size_t i = 0; i < n_random; i++)
    x[at++] = float_of((uint32_t)(next_u64() >> 20));
  for (size_t i = 0; i < n_random; i++) {
    uint64_t r = next_u64();
    x[at++] = scale * ldexpf((float)((int32_t)(r >> 32) | 1), -31 - 30 + (int)(r & 63) % 42);
  }
  *out = x;
  return at;
}

/* ---- comparing ---- */

static bool same_float(float a, float b)
{
  return memcmp(&a, &b, 4) == 0;
}

static long n_bad;

static void differs(const char *what, const struct kernel_plan *p, size_t i, float x, float want, float got)
{
  if (n_bad++ < 10)
    tap_note("%s[%zu]: x %a (%08x) scale %a: scalar %a (%08x), got %a (%08x)", what, i, (double)x, bits_of(x),
             (double)p->scale, (double)want, bits_of(want), (double)got, bits_of(got));
}

static void compare_sums(const struct kernel_plan *p, const struct kernel_sums *a, const struct kernel_sums *b)
{
  for (size_t i = 0; i < KERNEL_LANES; i++) { /* which NaN a sum holds is nobody's promise */
    if (!same_float(a->sq[i], b->sq[i]) && !(isnan(a->sq[i]) && isnan(b->sq[i])))
      differs("sq", p, i, 0, a->sq[i], b->sq[i]);
    if (!same_float(a->var[i], b->var[i]))
      differs("var", p, i, 0, a->var[i], b->var[i]);
  }
}

/* One kernel on n elements, with and without sums, the scalar result known. */
static void compare_run(const char *isa, kernel_fn *k, const struct kernel_plan *p, const float *x, const float *want,
                        const struct kernel_sums *want_sums, size_t n, uint64_t element0, unsigned lane0)
{
  float *y = mem_alloc((n + 2 * GUARD) * sizeof *y);
  for (int with_sums = 0; with_sums < 2; with_sums++) {
    struct kernel_sums s = {0};
    memset(y, 0xee, (n + 2 * GUARD) * sizeof *y);
    k(p, x, y + GUARD, n, element0, lane0, with_sums ? &s : NULL);
    for (size_t i = 0; i < n; i++)
      if (!same_float(want[i], y[GUARD + i]))
        differs(isa, p, i, x[i], want[i], y[GUARD + i]);
    for (size_t i = 0; i < GUARD; i++)
      if (bits_of(y[i]) != 0xeeeeeeee || bits_of(y[GUARD + n + i]) != 0xeeeeeeee)
        differs("outside the run", p, i, 0, 0, y[i]);
    if (with_sums)
      compare_sums(p, want_sums, &s);
  }
  mem_free(y);
}

/* Returns how many ISAs had a kernel. */
static int compare_plan(const struct kernel_plan *p, const float *x, size_t n, uint64_t element0, unsigned lane0)
{
  kernel_fn *k[N_ISAS];
  int found = 0;
  for (int i = 0; i < N_ISAS; i++)
    found += (k[i] = isa_runs[i] ? kernel_pick_isa(isas[i], p) : NULL) != NULL;
  if (!found)
    return 0;
  float *want = mem_alloc((n + 1) * sizeof *want);
  struct kernel_sums sums = {0};
  kernel_scalar(p, x, want, n, element0, lane0, &sums);
  for (int i = 0; i < N_ISAS; i++)
    if (k[i])
      compare_run(isas[i], k[i], p, x, want, &sums, n, element0, lane0);
  mem_free(want);
  return found;
}

/* ---- the tests ---- */

static const struct {
  enum rounding mode;
  int bits;
} modes[] = {{ROUND_RNE, 0}, {ROUND_SR, 32}, {ROUND_SR, 16}, {ROUND_SR, 8}, {ROUND_SR_C, 16}, {ROUND_SR_C, 8}};
enum { N_MODES = sizeof modes / sizeof *modes };

/* Beside those of the format table: the paper's, and grids at the edges of what kernels take. */
static const char *const more_formats[] = {"e5m1ieee",  "e2m5",     "e3m4",      "e6m9ieee", "e7m0", "e8m1ieee",
                                           "e8m22ieee", "q(16,15)", "q(6,9)sym", "int9",     "int14"};

static void test_format(const char *name, size_t n_random)
{
  static const float scales[] = {1, 0.25f, 0.0123f, 3.7e5f, 0x1p-30f, 1e-12f, 0x1p70f, 0x1.fffffep-61f, 0x1p-120f};
  const struct format *f = format_named(name);
  int n_kernels = 0;
  n_bad = 0;
  for (size_t s = 0; s < sizeof scales / sizeof *scales; s++) {
    float *x;
    size_t n = make_inputs(&x, s < 3, s == 0 ? n_random : 4096, scales[s]);
    for (int m = 0; m < (s == 0 ? N_MODES : 4); m++) /* sr_c is sr there */
      for (int variant = 0; variant < (s == 0 && f->family == FORMAT_FLOAT ? 3 : 1); variant++) {
        struct spec spec = spec_default(f, modes[m].mode);
        struct kernel_plan p = plan_of(name, modes[m].mode, modes[m].bits, scales[s]), q;
        spec.random_bits = modes[m].bits;
        spec.no_saturate = variant == 1;
        spec.flush = variant == 2;
        kernel_plan_init(&q, &spec, f, scales[s]);
        p.overflow = q.overflow;
        p.flush_below = q.flush_below;
        p.zero_point = f->family == FORMAT_UINT ? (float)(f->code_max / 3) : 0;
        n_kernels += compare_plan(&p, x, n, 3 + 1000003 * s, (unsigned)s);
      }
    mem_free(x);
  }
  int runs = isa_runs[0] + isa_runs[1];
  /* of the nine scales at least the first four are within every kernel's reach */
  bool float_between = f->family == FORMAT_FLOAT && f->emin < -62 && f->emin > -126;
  bool covered = f->family != FORMAT_BINARY && f->frac_bits < 23 && !float_between;
  ok(n_bad == 0, "%s: equal to scalar (%d kernels and scales)", name, n_kernels);
  ok(!covered || n_kernels >= 4 * 4 * runs, "%s: kernels were there to compare", name);
}

static void test_formats(size_t n_random)
{
  for (size_t i = 0; i < format_count(); i++)
    if (format_at(i)->family != FORMAT_BLOCK)
      test_format(format_at(i)->name, n_random);
  for (size_t i = 0; i < sizeof more_formats / sizeof *more_formats; i++)
    test_format(more_formats[i], n_random);
}

/* Lengths 0 to 300, odd starts in memory, in the stream (also where a block's low word wraps) and in the lanes. */
static void test_runs(void)
{
  static const char *const formats[] = {"e4m3", "int8", "bf16", "fp16", "uint8"};
  static const uint64_t starts[] = {0,
                                    5,
                                    127,
                                    (1ull << 34) - 37,
                                    (1ull << 35) - 101,
                                    (1ull << 36) - 150,
                                    (1ull << 34) + 7,
                                    (1ull << 50) + 3,
                                    UINT64_MAX / 2};
  float x[400];
  for (size_t f = 0; f < sizeof formats / sizeof *formats; f++) {
    n_bad = 0;
    int n_runs = 0;
    for (int m = 0; m < 4; m++)
      for (int pow2 = 0; pow2 < 2; pow2++)
        for (size_t s = 0; s < sizeof starts / sizeof *starts; s++)
          for (size_t n = 0; n <= 300; n += 1 + n / 20) {
            struct kernel_plan p = plan_of(formats[f], modes[m].mode, modes[m].bits, pow2 ? 0.5f : 0.37f);
            for (size_t i = 0; i < 400; i++)
              x[i] = ldexpf((float)(int32_t)(next_u64() >> 32), -31 + (int)i % 9);
            n_runs += compare_plan(&p, x + n % 17, n, starts[s] + n % 3, (unsigned)(n % 16));
          }
    ok(n_bad == 0 && n_runs > 0, "%s: %d runs of all shapes", formats[f], n_runs);
  }
}

/* Long aligned runs may be written past the caches; and y may be x. */
static void test_long_and_in_place(void)
{
  struct err e;
  size_t n = (1 << 20) + 77;
  float *x = mem_buffer(n * 4, "x", &e), *y = mem_buffer(n * 4, "y", &e), *want = mem_buffer(n * 4, "want", &e);
  if (!x || !y || !want)
    tap_bail("%s", e.msg);
  for (size_t i = 0; i < n; i++)
    x[i] = ldexpf((float)(int32_t)(next_u64() >> 32), -30);
  for (int isa = 0; isa < N_ISAS; isa++)
    for (int m = 0; m < 4 && isa_runs[isa]; m++)
      for (int f = 0; f < 2; f++) {
        struct kernel_plan p = plan_of(f ? "int8" : "e4m3", modes[m].mode, modes[m].bits, f ? 0.017f : 0.0078125f);
        kernel_scalar(&p, x, want, n, 0, 0, NULL);
        kernel_pick_isa(isas[isa], &p)(&p, x, y, n, 0, 0, NULL);
        ok(memcmp(y, want, n * 4) == 0, "%s: a long run, %s %d", isas[isa], f ? "int8" : "e4m3", modes[m].bits);
        memcpy(y, x, n * 4);
        kernel_pick_isa(isas[isa], &p)(&p, y, y, n, 0, 0, NULL);
        ok(memcmp(y, want, n * 4) == 0, "%s: in place, %s %d", isas[isa], f ? "int8" : "e4m3", modes[m].bits);
      }
  mem_buffer_free(x);
  mem_buffer_free(y);
  mem_buffer_free(want);
}

/* The random integer of element i, from the generator's definition alone. */
static uint32_t random_of(const struct kernel_plan *p, uint64_t i, unsigned bits)
{
  uint64_t block = i / (128 / bits);
  uint32_t c[4] = {(uint32_t)block, (uint32_t)(block >> 32), (uint32_t)p->step, (uint32_t)(p->step >> 32)}, w[4];
  philox4x32(c, p->key.k, RNG_SITE_ROUNDS, w);
  unsigned bit = (unsigned)(i % (128 / bits)) * bits;
  return (w[bit / 32] >> (bit % 32)) & (bits == 32 ? UINT32_MAX : (1u << bits) - 1);
}

static kernel_fn *kernel_of(int isa, const struct kernel_plan *p)
{
  return isa < 0 ? kernel_scalar : isa_runs[isa] ? kernel_pick_isa(isas[isa], p) : NULL;
}

/* x between 0 and 1 on the integers goes up where its fraction + the stream's integer reaches 1: bit for bit. */
static void test_stream(void)
{
  enum { N = 5000 };
  static float x[N], y[N];
  const uint64_t start = (1ull << 34) - 2501;
  for (int i = 0; i < N; i++)
    x[i] = (float)(next_u64() >> 40 | 1) * 0x1p-24f;
  for (int isa = -1; isa < N_ISAS; isa++)
    for (int m = 1; m < 4; m++) {
      struct kernel_plan p = plan_of("int8", ROUND_SR, modes[m].bits, 1);
      kernel_fn *k = kernel_of(isa, &p);
      if (!k)
        continue;
      int bad = 0;
      k(&p, x, y, N, start, 0, NULL);
      for (size_t i = 0; i < N; i++) {
        double kept = nearbyint(ldexp((double)x[i], modes[m].bits)); /* ties to even */
        bool up = kept + random_of(&p, start + i, (unsigned)modes[m].bits) >= ldexp(1, modes[m].bits);
        bad += y[i] != (float)up;
      }
      is_int(bad, 0, "%s: %d-bit rounding by the stream's own integers", isa < 0 ? "scalar" : isas[isa], modes[m].bits);
    }
}

/* The mean of N roundings of one value is that value, |z| < 5 (false alarm 6e-7 each, about 60 checks), and both
 * neighbours occur: a kernel that rounds to nearest is off by hundreds of standard deviations. The values have no more
 * bits below the quantum than the fewest random bits, so the expectation is exact. */
static void test_unbiased(void)
{
  enum { N = 65536 };
  static float x[N], y[N];
  static const struct {
    const char *format;
    float scale, x, quantum;
  } cases[] = {{"int8", 1, 5 + 0x35p-8f, 1},          {"int8", 0.75f, -0.75f * (9 + 0x81p-8f), 0.75f},
               {"e4m3", 0.5f, 1 + 0x13p-11f, 0.125f}, {"e4m3", 1, -0x47p-17f, 0x1p-9f},
               {"e5m2", 1, 3 + 0x4dp-9f, 0.5f},       {"bf16", 1, -(1 + 0x59p-15f), 0x1p-7f},
               {"fp16", 1, 1 + 0x2p-13f, 0x1p-10f}};
  for (int isa = -1; isa < N_ISAS; isa++)
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
      for (int m = 1; m < 4; m++) {
        struct kernel_plan p = plan_of(cases[c].format, ROUND_SR, modes[m].bits, cases[c].scale);
        kernel_fn *k = kernel_of(isa, &p);
        if (!k)
          continue;
        double sum = 0, lo = INFINITY, hi = -INFINITY;
        for (int i = 0; i < N; i++)
          x[i] = cases[c].x;
        k(&p, x, y, N, 12345, 0, NULL);
        for (int i = 0; i < N; i++) {
          sum += (double)y[i] - (double)x[i];
          lo = fmin(lo, (double)y[i]);
          hi = fmax(hi, (double)y[i]);
        }
        double f = (fabs((double)x[0]) - fmin(fabs(lo), fabs(hi))) / (double)cases[c].quantum;
        double z = sum / ((double)cases[c].quantum * sqrt(N * f * (1 - f)));
        ok(fabs(z) < 5 && fabs(hi - lo - (double)cases[c].quantum) < 1e-9,
           "%s %s %d bits: unbiased, z = %.2f, %g and %g", isa < 0 ? "scalar" : isas[isa], cases[c].format,
           modes[m].bits, z, lo, hi);
      }
}

static void test_absmax(void)
{
  float x[300];
  for (int isa = 0; isa < N_ISAS; isa++) {
    int bad = 0;
    for (size_t n = 0; n <= 280 && isa_runs[isa]; n++)
      for (int kind = 0; kind < 4; kind++) {
        for (size_t i = 0; i < 300; i++)
          x[i] = ldexpf((float)(int32_t)(next_u64() >> 32), -150 + (int)(next_u64() % 250));
        if (n && kind == 1)
          x[next_u64() % n] = float_of(0xff800001);
        if (n && kind == 2)
          x[next_u64() % n] = -INFINITY;
        if (kind == 3)
          x[n] = INFINITY; /* outside */
        bool got = false, want = false;
        float a = kernel_absmax_isa(isas[isa], x + n % 3, n - n % 3 % (n + 1), &got);
        float b = kernel_absmax_scalar(x + n % 3, n - n % 3 % (n + 1), &want);
        bad += a != b || got != want;
      }
    if (isa_runs[isa])
      is_int(bad, 0, "%s: absmax and what is not finite", isas[isa]);
  }
}

int main(void)
{
  struct kernel_plan p = plan_of("int8", ROUND_RNE, 0, 1);
  for (int i = 0; i < N_ISAS; i++) {
    isa_runs[i] = kernel_pick_isa(isas[i], &p) != NULL;
    if (!isa_runs[i])
      tap_skip("this CPU has no %s", isas[i]);
  }
  ok(kernel_pick_isa("sse9", &p) == NULL, "an unknown instruction set has no kernels");
  test_formats(getenv("BITDIAL_TEST_FULL") ? 5000000 : 4096);
  test_runs();
  test_long_and_in_place();
  test_stream();
  test_unbiased();
  test_absmax();
  return tap_done();
}
