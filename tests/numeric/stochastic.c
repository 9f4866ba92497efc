/* The random numbers that rounding takes, and what comes of them: the stream against its definition, unbiasedness and
 * variance f(1-f)d^2 for every format and every kernel at fixed seeds. |z| < 5 for some 2000 binomial counts: false
 * alarm 1 in 800 if the seeds were drawn anew. */
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "helper.h"
#include "numeric/code.h"
#include "numeric/kernel_simd.h"
#include "numeric/random.h"

enum { DRAWS = 1 << 14 };

static struct kernel_plan sr_plan(const char *format, int random_bits)
{
  struct spec s = spec_default(find_format(format), ROUND_SR);
  struct kernel_plan p;
  s.random_bits = random_bits;
  kernel_plan_init(&p, &s, s.format, 1);
  p.key = rng_derive(1, RNG_SITE, 2, 3, 4);
  p.step = 0x123456789abcull;
  return p;
}

/* Element by element from the definition: block i / (128/w) of the counter, bits in the order of memory. */
static uint32_t word_of(const struct kernel_plan *p, uint64_t element)
{
  uint64_t per_block = 128 / (uint64_t)p->draw_bits, block = element / per_block;
  uint32_t counter[4] = {(uint32_t)block, (uint32_t)(block >> 32), (uint32_t)p->step, (uint32_t)(p->step >> 32)},
           out[4];
  philox4x32(counter, p->key.k, 7, out);
  unsigned bit = (unsigned)(element % per_block) * (unsigned)p->draw_bits;
  uint64_t word = out[bit / 32] >> bit % 32;
  return (uint32_t)(word & ((1ull << p->draw_bits) - 1));
}

static void test_stream(void)
{
  static const int widths[] = {32, 16, 8};
  static const uint64_t starts[] = {0, 1, 7, 15, 16, 1003, 0xfffffffd, 0x3ffffffffull, 0xffffffffffff0001ull};
  uint32_t out[RANDOM_BUFFER];
  for (int w = 0; w < 3; w++) {
    struct kernel_plan p = sr_plan("e4m3", widths[w]);
    int n_bad = 0;
    for (size_t s = 0; s < sizeof starts / sizeof *starts; s++)
      for (size_t n = 1; n <= RANDOM_BUFFER; n += s % 2 ? 51 : 255) {
        random_fill(&p, starts[s], n, out);
        for (size_t i = 0; i < n; i++)
          n_bad += out[i] != word_of(&p, starts[s] + i);
      }
    is_int(n_bad, 0, "%d random bits an element: the stream is the one defined", widths[w]);
  }
  is_int(RNG_SITE_ROUNDS, 7, "by Philox4x32-7");
}

/* Philox4x32-7, counter and key all zero, and the digits of pi: known answers of Random123's kat_vectors. */
static void test_known_answers(void)
{
  static const struct {
    uint32_t counter[4], key[2], want[4];
  } kat[] = {
      {{0, 0, 0, 0}, {0, 0}, {0x5f6fb709, 0x0d893f64, 0x4f121f81, 0x4f730a48}},
      {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
       {0xffffffff, 0xffffffff},
       {0x5207ddc2, 0x45165e59, 0x4d8ee751, 0x8c52f662}},
      {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
       {0xa4093822, 0x299f31d0},
       {0x4dfccaba, 0x190a87f0, 0xc47362ba, 0xb6b5242a}},
  };
  for (size_t i = 0; i < sizeof kat / sizeof *kat; i++) {
    uint32_t out[4];
    philox4x32(kat[i].counter, kat[i].key, RNG_SITE_ROUNDS, out);
    ok(memcmp(out, kat[i].want, sizeof out) == 0, "Philox4x32-7: known answer %zu", i + 1);
  }
}

/* Values at which a format is tried: places between neighbours in all parts of its range. */
static size_t places(const struct format *f, float *x, float *lo, float *hi)
{
  static const double fractions[] = {0.5, 0.03125, 0.8125, 0.3};
  size_t n = 0;
  double top = f->family == FORMAT_FLOAT ? f->max_finite : ldexp(f->code_max, -f->fixed_frac_bits);
  double bottom = f->family == FORMAT_FLOAT ? f->min_subnormal : ldexp(1, -f->fixed_frac_bits);
  double wanted[] = {bottom * 0.5, bottom * 1.5, sqrt(bottom * top), top * 0.6,
                     f->family == FORMAT_FLOAT ? f->min_normal * 1.1 : top * 0.3};
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
    /* neighbours of the place, by the deterministic modes, whose own test is round.c */
    struct spec s = spec_default(f, ROUND_RD);
    struct kernel_plan p;
    kernel_plan_init(&p, &s, f, 1);
    float a = kernel_round_one(&p, (float)wanted[i], 0);
    s.rounding = ROUND_RU;
    kernel_plan_init(&p, &s, f, 1);
    float b = kernel_round_one(&p, nextafterf(a, INFINITY), 0);
    if (b <= a)
      continue;
    for (size_t k = 0; k < 4; k++) {
      x[n] = (float)((double)a + fractions[k] * ((double)b - (double)a));
      lo[n] = a;
      hi[n++] = b;
    }
  }
  for (size_t i = 0, m = n; f->family != FORMAT_UINT && i < m; i += 3, n++) { /* and negative ones */
    x[n] = -x[i];
    lo[n] = -hi[i];
    hi[n] = -lo[i];
  }
  return n;
}

struct outcome {
  double z_max;
  int n_off, n_stuck, n_variance;
};

/* DRAWS copies of x through one kernel: all results are neighbours, both occur as often as they should, and the
 * variance that the kernel reports is theirs. resolution: of P(up). */
static void try_place(const struct kernel_plan *p, kernel_fn *kernel, float x, float lo, float hi, double resolution,
                      uint64_t element0, struct outcome *out)
{
  static float in[DRAWS], y[DRAWS];
  struct kernel_sums sums = {0};
  double f = ((double)x - (double)lo) / ((double)hi - (double)lo), d = (double)hi - (double)lo;
  f = nearbyint(f / resolution) * resolution;
  long n_up = 0;
  for (int i = 0; i < DRAWS; i++)
    in[i] = x;
  kernel(p, in, y, DRAWS, element0, 0, &sums);
  for (int i = 0; i < DRAWS; i++) {
    n_up += y[i] == hi;
    out->n_off += y[i] != hi && y[i] != lo;
  }
  double z = ((double)n_up - DRAWS * f) / sqrt(DRAWS * f * (1 - f));
  out->z_max = fmax(out->z_max, fabs(z));
  out->n_stuck += n_up == 0 || n_up == DRAWS;
  double var = (double)kernel_lane_sum(sums.var) / DRAWS;
  if (d > 0x1p-55 && d < 0x1p55) /* else its square leaves fp32, in which the sums are */
    out->n_variance += fabs(var - f * (1 - f) * d * d) > 1e-4 * d * d * f * (1 - f);
}

static void test_unbiased(void)
{
  static const char *const isas[] = {"scalar", "avx2", "avx512"};
  static const int widths[] = {32, 16, 8};
  static float x[64], lo[64], hi[64];
  for (int k = 0; k < 3; k++)
    for (int w = 0; w < 3; w++) {
      double z_max = 0;
      int n_places = 0;
      struct outcome total = {0};
      for (size_t i = 0; i < format_count(); i++) {
        const struct format *f = format_at(i);
        struct outcome o = {0};
        if (f->family == FORMAT_BLOCK || f->family == FORMAT_BINARY || f->frac_bits == 23)
          continue;
        struct kernel_plan p = sr_plan(f->name, widths[w]);
        kernel_fn *kernel = kernel_pick_isa(isas[k], &p);
        if (!kernel)
          continue;
        size_t n = places(f, x, lo, hi);
        for (size_t j = 0; j < n; j++, n_places++)
          try_place(&p, kernel, x[j], lo[j], hi[j], ldexp(1, -widths[w]), (uint64_t)n_places * DRAWS + 3, &o);
        if (o.z_max >= 5 || o.n_off || o.n_stuck || o.n_variance)
          tap_note("%s: z %.2f, %d off the grid, %d stuck, %d wrong variances", f->name, o.z_max, o.n_off, o.n_stuck,
                   o.n_variance);
        z_max = fmax(z_max, o.z_max);
        total.n_off += o.n_off;
        total.n_stuck += o.n_stuck;
        total.n_variance += o.n_variance;
      }
      if (!n_places) {
        tap_skip("%s: not on this processor", isas[k]);
        continue;
      }
      ok(z_max < 5 && !total.n_off, "%s, %d bits: unbiased at %d places (largest z %.2f)", isas[k], widths[w], n_places,
         z_max);
      is_int(total.n_stuck, 0, "%s, %d bits: never rounds to nearest in silence", isas[k], widths[w]);
      is_int(total.n_variance, 0, "%s, %d bits: variance is f(1-f)d^2", isas[k], widths[w]);
    }
}

/* Whole tensors, scales and all: the mean of many draws, and the variance that is reported, for formats whose scale
 * comes from the data, blocks too. Not uintN: its zero point is rounded, so that an end of the range may be clipped. */
static void test_tensors(void)
{
  enum { ROWS = 3, COLS = 96, REPEATS = 400, SIZE = ROWS * COLS };
  static float x[SIZE], y[SIZE];
  static double sum[SIZE], sq[SIZE];
  uint64_t state = 77;
  for (int i = 0; i < SIZE; i++)
    x[i] = (float)(((double)(test_random(&state) >> 11) * 0x1p-53 - 0.5) * ldexp(1, (int)(test_random(&state) % 6)));
  for (size_t k = 0; k < format_count(); k++) {
    const struct format *f = format_at(k);
    struct spec s = spec_default(f, ROUND_SR);
    if (spec_is_identity(&s) || f->family == FORMAT_FIXED || f->family == FORMAT_UINT)
      continue;
    memset(sum, 0, sizeof sum);
    memset(sq, 0, sizeof sq);
    float row_var[ROWS];
    struct quant_sums sums = {.row_var = row_var};
    for (int r = 0; r < REPEATS; r++) {
      struct quant_rng rng = {.key = rng_derive(5, RNG_SITE, 1, 2, 3), .step = (uint64_t)r};
      quantize(&s, x, ROWS, COLS, &rng, y, &sums, NULL, NULL, NULL);
      for (int i = 0; i < SIZE; i++) {
        sum[i] += (double)y[i];
        sq[i] += ((double)y[i] - (double)x[i]) * ((double)y[i] - (double)x[i]);
      }
    }
    double bias = 0, var = 0, reported = 0;
    for (int i = 0; i < SIZE; i++) {
      bias += sum[i] / REPEATS - (double)x[i];
      var += sq[i] / REPEATS;
    }
    for (int r = 0; r < ROWS; r++)
      reported += (double)row_var[r];
    double z = bias / sqrt(reported / REPEATS);
    /* the error of the empirical variance is below sqrt(2/REPEATS) of it were all elements equal; they are 288 */
    ok(fabs(z) < 5 && fabs(var / reported - 1) < 0.05,
       "%s: tensor unbiased (z %.2f), variance %.4g reported, %.4g found", f->name, z, reported, var);
  }
}

/* Draws differ by key, step, element, row and column; the same numbers give the same draw. */
static void test_independence(void)
{
  enum { SIZE = 4096 };
  static float x[SIZE], y[6][SIZE];
  struct spec s = spec_default(find_format("e4m3"), ROUND_SR);
  struct quant_rng rng[6];
  for (int i = 0; i < SIZE; i++)
    x[i] = 1.0625f; /* half way */
  for (int k = 0; k < 6; k++)
    rng[k] = (struct quant_rng){.key = rng_derive(1, RNG_SITE, 1, 1, 1), .step = 4};
  rng[1].key = rng_derive(1, RNG_SITE, 1, 2, 1);
  rng[2].key = rng_derive(1, RNG_SITE, 1, 1, 2);
  rng[3].step = 5;
  rng[4].first_element = SIZE;
  for (int k = 0; k < 6; k++)
    quantize(&s, x, 64, 64, &rng[k], y[k], NULL, NULL, NULL, NULL);
  for (int k = 1; k < 5; k++) {
    int n_same = 0;
    for (int i = 0; i < SIZE; i++)
      n_same += y[0][i] == y[k][i];
    /* binomial, 1/2: 5 standard deviations are 160 */
    ok(abs(n_same - SIZE / 2) < 160, "another %s: another draw",
       (const char *[]){"", "site", "draw", "step", "element"}[k]);
  }
  ok(memcmp(y[0], y[5], sizeof y[0]) == 0, "the same numbers: the same draw");
  int n_same = 0;
  for (int r = 0; r < 64; r++)
    for (int c = 0; c < r; c++)
      n_same += y[0][r * 64 + c] == y[0][c * 64 + r];
  ok(abs(n_same - 1008) < 113, "by rows and by columns: another draw");
}

/* R2: each place of a row has the marginal of SR over shifts, and within one tensor the mean error is far below SR's.
 */
static void test_quasi_random(void)
{
  enum { SIZE = 1 << 16 };
  static float x[SIZE], y[SIZE];
  struct spec s = spec_default(find_format("e4m3"), ROUND_QR);
  double worst = 0;
  for (int i = 0; i < SIZE; i++)
    x[i] = 1.0375f; /* f = 0.3 */
  for (uint64_t k = 0; k < 20; k++) {
    struct quant_rng rng = {.key = rng_derive(k, RNG_SITE, 1, 1, 1)};
    double sum = 0;
    quantize(&s, x, 256, 256, &rng, y, NULL, NULL, NULL, NULL);
    for (int i = 0; i < SIZE; i++)
      sum += (double)(y[i] - x[i]) / 0.125;
    worst = fmax(worst, fabs(sum / SIZE));
  }
  long n_up = 0;
  for (uint64_t step = 0; step < 20000; step++) {
    struct quant_rng rng = {.key = rng_derive(1, RNG_SITE, 1, 1, 1), .step = step};
    quantize(&s, x, 1, 1, &rng, y, NULL, NULL, NULL, NULL);
    n_up += y[0] > x[0];
  }
  double z = ((double)n_up - 20000 * 0.3) / sqrt(20000 * 0.3 * 0.7);
  ok(fabs(z) < 5, "quasi-random: over steps every element is unbiased (z %.2f)", z);
  ok(worst < 3e-4, "quasi-random: mean error %.2g ulp in 2^16 elements; SR's would be %.2g", worst, sqrt(0.21 / SIZE));
}

int main(void)
{
  test_stream();
  test_known_answers();
  test_unbiased();
  test_tensors();
  test_independence();
  test_quasi_random();
  return tap_done();
}
