/* The driver against a plain one written here: scales by group, order of elements and sums, threads, draws, what is
 * kept from step to step, shapes and places in memory that are odd. */
#include "config.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "helper.h"

enum { ROWS = 37, COLS = 101, N = ROWS * COLS };

static float x[N], y[N], z[N];

static void fill(void)
{
  uint64_t state = 42;
  for (int i = 0; i < N; i++)
    x[i] = (float)(((double)(test_random(&state) >> 11) * 0x1p-53 - 0.5) *
                   ldexp(1, (int)(test_random(&state) % 10) - i % COLS / 20));
}

static struct quant_rng rng_of(uint64_t step)
{
  return (struct quant_rng){.key = rng_derive(11, RNG_SITE, 1, 2, 3), .step = step, .first_element = 5};
}

static struct spec make_spec(const char *format, enum rounding r)
{
  return spec_default(find_format(format), r);
}

static void check(const struct spec *s)
{
  struct err e;
  if (spec_check(s, &e))
    tap_bail("%s", e.msg);
}

/* -- groups */

/* Group number of an element. */
static size_t group_of(const struct spec *s, size_t r, size_t c)
{
  switch (s->granularity) {
  case GRAIN_ROW:
    return r;
  case GRAIN_COLUMN:
    return c;
  case GRAIN_BLOCK:
    return r * COLS + c / (size_t)s->block;
  default:
    return 0;
  }
}

/* Scales by the definitions, in double; absmax over the group by looking at every element for each. */
static float plain_scale(const struct spec *s, size_t group)
{
  const struct format *f = s->format;
  double absmax = 0, max = f->family == FORMAT_FLOAT ? f->max_finite : f->code_max;
  for (size_t i = 0; i < N; i++)
    if (group_of(s, i / COLS, i % COLS) == group)
      absmax = fmax(absmax, fabs((double)x[i]));
  if (s->clip > 0)
    absmax = (double)((float)absmax * s->clip);
  if (absmax == 0)
    return 1;
  if (s->scale == SCALE_ABSMAX)
    return (float)absmax / (float)max;
  double scale = 1;
  while (scale * max < absmax)
    scale *= 2;
  while (scale / 2 * max >= absmax)
    scale /= 2;
  return (float)scale;
}

static void test_granularity(const char *format, enum granularity g, int block, enum scale_rule rule, float clip)
{
  struct spec s = make_spec(format, ROUND_RNE);
  int n_bad = 0;
  s.granularity = g;
  s.block = block;
  s.scale = rule;
  s.clip = clip;
  check(&s);
  quantize(&s, x, ROWS, COLS, NULL, y, NULL, NULL, NULL, NULL);
  for (size_t i = 0; i < N; i++) {
    struct kernel_plan p;
    kernel_plan_init(&p, &s, s.format, plain_scale(&s, group_of(&s, i / COLS, i % COLS)));
    n_bad += !same(y[i], kernel_round_one(&p, x[i], 0));
  }
  is_int(n_bad, 0, "%s, %s scale by %s %d, clip %g", format, scale_rule_names[rule], granularity_names[g], block,
         (double)clip);
}

static void test_granularities(void)
{
  static const enum scale_rule rules[] = {SCALE_ABSMAX, SCALE_POW2};
  for (int k = 0; k < 2; k++)
    for (int r = 0; r < 2; r++) {
      const char *format = k ? "int4" : "e4m3";
      test_granularity(format, GRAIN_TENSOR, 0, rules[r], 0);
      test_granularity(format, GRAIN_ROW, 0, rules[r], 0);
      test_granularity(format, GRAIN_COLUMN, 0, rules[r], 0);
      test_granularity(format, GRAIN_BLOCK, 16, rules[r], 0);
      test_granularity(format, GRAIN_BLOCK, 7, rules[r], 0.75f);
    }
}

/* uintN: scale and zero point from the range, which holds 0. */
static void test_affine(void)
{
  static const float shifts[] = {0, 100, -100, 0.3f};
  for (size_t k = 0; k < 4; k++) {
    struct spec s = make_spec("uint8", ROUND_RNE);
    static float a[N];
    double lo = 0, hi = 0;
    for (int i = 0; i < N; i++) {
      a[i] = x[i] + shifts[k];
      lo = fmin(lo, (double)a[i]);
      hi = fmax(hi, (double)a[i]);
    }
    float scale = (float)((hi - lo) / 255);
    double zero = fmin(255, nearbyint(-lo / (double)scale));
    int n_bad = 0;
    quantize(&s, a, ROWS, COLS, NULL, y, NULL, NULL, NULL, NULL);
    for (int i = 0; i < N; i++) {
      double q = fmin(255, fmax(0, nearbyint((double)(a[i] / scale)) + zero)) - zero;
      n_bad += y[i] != (float)q * scale;
    }
    is_int(n_bad, 0, "uint8 of numbers about %g", (double)shifts[k]);
  }
}

static void test_ternary(void)
{
  struct spec s = make_spec("ternary", ROUND_RNE);
  double mean = 0;
  int n_bad = 0;
  for (int i = 0; i < N; i++)
    mean += fabs((double)x[i]) / N;
  quantize(&s, x, ROWS, COLS, NULL, y, NULL, NULL, NULL, NULL);
  for (int i = 0; i < N; i++) {
    double want = fmin(1, fmax(-1, nearbyint((double)x[i] / mean))) * mean;
    n_bad += fabs((double)y[i] - want) > 1e-6 * mean;
  }
  is_int(n_bad, 0, "ternary: -1, 0, 1 times the mean of |x| (BitNet b1.58)");
  s = make_spec("binary", ROUND_RNE);
  quantize(&s, x, ROWS, COLS, NULL, y, NULL, NULL, NULL, NULL);
  n_bad = 0;
  for (int i = 0; i < N; i++)
    n_bad += fabs((double)y[i] - (x[i] >= 0 ? mean : -mean)) > 1e-6 * mean;
  is_int(n_bad, 0, "binary: the sign times the mean of |x| (XNOR-Net)");
}

/* -- sums */

static void test_sums(void)
{
  float sq[ROWS], var[ROWS], alone[ROWS];
  struct quant_sums sums = {sq, var};
  struct quant_rng rng = rng_of(1);
  static const char *const formats[] = {"e4m3", "int8", "mxfp4", "nvfp4", "nvfp4exact", "bf16"};
  for (size_t k = 0; k < sizeof formats / sizeof *formats; k++) {
    struct spec s = make_spec(formats[k], ROUND_SR);
    double worst = 0;
    quantize(&s, x, ROWS, COLS, &rng, y, &sums, NULL, NULL, NULL);
    for (int r = 0; r < ROWS; r++) {
      double want = 0;
      for (int c = 0; c < COLS; c++)
        want += (double)x[r * COLS + c] * (double)x[r * COLS + c];
      worst = fmax(worst, fabs((double)sq[r] / want - 1));
    }
    ok(worst < 1e-6, "%s: sums of squares (%.1g)", formats[k], worst);
    quantize_row_sq(x, ROWS, COLS, alone, NULL);
    if (k == 0)
      ok(memcmp(alone, sq, sizeof sq) == 0, "the same without quantization, to the bit");
  }
  struct spec s = make_spec("e4m3", ROUND_RNE);
  quantize(&s, x, ROWS, COLS, NULL, y, &sums, NULL, NULL, NULL);
  double total = 0;
  for (int r = 0; r < ROWS; r++)
    total += fabs((double)var[r]);
  ok(total == 0, "deterministic rounding has no variance");
}

/* Var = (x - lo)(hi - x), neighbours by rd and ru, columns and blocks too. */
static void test_variance(void)
{
  for (int g = 0; g < GRAIN_COUNT; g++) {
    struct spec s = make_spec("int4", ROUND_SR);
    static float lo[N], hi[N];
    float var[ROWS];
    struct quant_sums sums = {.row_var = var};
    struct quant_rng rng = rng_of(1);
    double worst = 0;
    s.granularity = (enum granularity)g;
    s.block = 10;
    quantize(&s, x, ROWS, COLS, &rng, y, &sums, NULL, NULL, NULL);
    s.rounding = ROUND_RD;
    quantize(&s, x, ROWS, COLS, NULL, lo, NULL, NULL, NULL, NULL);
    s.rounding = ROUND_RU;
    quantize(&s, x, ROWS, COLS, NULL, hi, NULL, NULL, NULL, NULL);
    for (int r = 0; r < ROWS; r++) {
      double want = 0;
      for (int i = r * COLS; i < (r + 1) * COLS; i++)
        want += ((double)x[i] - (double)lo[i]) * ((double)hi[i] - (double)x[i]);
      worst = fmax(worst, fabs((double)var[r] / want - 1));
    }
    ok(worst < 1e-4, "variance by row under scales by %s (%.1g)", granularity_names[g], worst);
  }
}

/* -- threads, order, draws */

static void test_threads(void)
{
  enum { R = 300, C = 333 };
  struct err e;
  struct pool *pool = pool_create(3, &e);
  float *big = mem_buffer(R * C * sizeof *big, "test", &e), *one = mem_buffer(R * C * sizeof *big, "test", &e),
        *many = mem_buffer(R * C * sizeof *big, "test", &e);
  uint64_t state = 8;
  if (!pool || !big || !one || !many)
    tap_bail("%s", e.msg);
  for (int i = 0; i < R * C; i++)
    big[i] = (float)((double)(test_random(&state) >> 11) * 0x1p-53 - 0.5);
  for (size_t k = 0; k < format_count(); k++) {
    struct spec s = spec_default(format_at(k), ROUND_SR);
    static float sq[2][R], var[2][R];
    struct quant_rng rng = rng_of(2);
    struct quant_info info[2];
    int n_bad = 0;
    for (int want = 0; want < 2; want++) {
      struct quant_sums sums[2] = {{sq[0], var[0]}, {sq[1], var[1]}};
      quantize(&s, big, R, C, &rng, one, want ? &sums[0] : NULL, NULL, NULL, &info[0]);
      quantize(&s, big, R, C, &rng, many, want ? &sums[1] : NULL, NULL, pool, &info[1]);
      n_bad += memcmp(one, many, R * C * sizeof *one) != 0 || memcmp(sq[0], sq[1], sizeof sq[0]) ||
               memcmp(var[0], var[1], sizeof var[0]) || info[0].absmax != info[1].absmax ||
               info[0].scale != info[1].scale;
    }
    is_int(n_bad, 0, "%s: three threads give the bits of one", s.format->name);
  }
  mem_buffer_free(big);
  mem_buffer_free(one);
  mem_buffer_free(many);
  pool_free(pool);
}

/* A batch in two halves is the batch; y may be x; the place in memory does not matter. */
static void test_parts(void)
{
  static const char *const formats[] = {"e4m3", "int8", "bf16", "mxfp4"};
  for (size_t k = 0; k < 4; k++) {
    struct spec s = make_spec(formats[k], ROUND_SR);
    struct quant_rng rng = rng_of(3);
    static float shifted[N + 3];
    if (s.format->family != FORMAT_BLOCK)
      s.scale = SCALE_FIXED;
    s.fixed_scale = 0.037f;
    quantize(&s, x, ROWS, COLS, &rng, y, NULL, NULL, NULL, NULL);
    quantize(&s, x, 20, COLS, &rng, z, NULL, NULL, NULL, NULL);
    struct quant_rng rest = rng;
    rest.first_element += 20 * COLS;
    quantize(&s, x + 20 * COLS, ROWS - 20, COLS, &rest, z + 20 * COLS, NULL, NULL, NULL, NULL);
    ok(memcmp(y, z, sizeof y) == 0, "%s: two parts of a batch are the batch", formats[k]);
    memcpy(z, x, sizeof z);
    quantize(&s, z, ROWS, COLS, &rng, z, NULL, NULL, NULL, NULL);
    ok(memcmp(y, z, sizeof y) == 0, "%s: in place", formats[k]);
    for (int by = 1; by < 4; by++) {
      memcpy(shifted + by, x, sizeof x);
      quantize(&s, shifted + by, ROWS, COLS, &rng, shifted + by, NULL, NULL, NULL, NULL);
      ok(memcmp(y, shifted + by, sizeof y) == 0, "%s: %d floats from an aligned place", formats[k], by);
    }
  }
}

static void test_two_draws(void)
{
  static float a[N], b[N];
  for (size_t k = 0; k < format_count(); k++) {
    struct spec s = spec_default(format_at(k), ROUND_SR);
    struct quant_rng rng[2] = {rng_of(1), rng_of(1)};
    float var[2][ROWS];
    struct quant_sums sums[2] = {{.row_var = var[0]}, {.row_var = var[1]}};
    rng[1].key = rng_derive(11, RNG_SITE, 1, 2, 4);
    quantize_two(&s, x, ROWS, COLS, rng, (float *const[]){a, b}, &sums[0], NULL, NULL, NULL);
    quantize(&s, x, ROWS, COLS, &rng[0], y, &sums[1], NULL, NULL, NULL);
    quantize(&s, x, ROWS, COLS, &rng[1], z, NULL, NULL, NULL, NULL);
    ok(memcmp(a, y, sizeof y) == 0 && memcmp(b, z, sizeof z) == 0 && memcmp(var[0], var[1], sizeof var[0]) == 0,
       "%s: two draws of one read are the two draws", s.format->name);
  }
}

/* -- from step to step */

static void test_delayed(void)
{
  struct spec s = make_spec("int8", ROUND_RNE);
  struct quant_state st = {0};
  struct quant_info info;
  float v[1];
  int n_bad = 0;
  s.scale = SCALE_DELAYED;
  check(&s);
  for (int step = 0; step < 100; step++) {
    v[0] = (float)(100 + step * 37 % 50);
    float want = 0;
    for (int back = 1; back <= 16 && back <= step; back++)
      want = fmaxf(want, (float)(100 + (step - back) * 37 % 50));
    if (step == 0)
      want = v[0];
    quantize(&s, v, 1, 1, NULL, y, NULL, &st, NULL, &info);
    n_bad += info.scale != want / 127;
  }
  is_int(n_bad, 0, "delayed scale: the largest absmax of the 16 steps before");
  quant_state_done(&st);
}

/* sum y = sum x - r_T with |r_T| at most half a quantum, however small the x. */
static void test_feedback(void)
{
  struct spec s = make_spec("int4", ROUND_RNE);
  struct quant_state st = {0};
  double in[COLS] = {0}, out[COLS] = {0}, worst = 0;
  s.scale = SCALE_FIXED;
  s.feedback = true;
  check(&s);
  for (int step = 0; step < 1000; step++) {
    float v[COLS];
    for (int c = 0; c < COLS; c++)
      v[c] = (float)(c - COLS / 2) * 0.0371f + (step % 3 ? 0.01f : -0.015f);
    quantize(&s, v, 1, COLS, NULL, y, NULL, &st, NULL, NULL);
    for (int c = 0; c < COLS; c++) {
      in[c] += (double)v[c];
      out[c] += (double)y[c];
    }
  }
  for (int c = 0; c < COLS; c++)
    worst = fmax(worst, fabs(in[c] - out[c]));
  ok(worst < 0.51, "error feedback: after 1000 steps the sums differ by %.3f of a quantum at most", worst);
  quant_state_done(&st);
}

static void test_info_and_bad_numbers(void)
{
  struct spec s = make_spec("int8", ROUND_RNE);
  struct quant_info info;
  float v[5] = {1, -4, NAN, INFINITY, 0.5f};
  quantize(&s, v, 1, 5, NULL, y, NULL, NULL, NULL, &info);
  ok(info.non_finite && info.absmax == 4 && info.scale == 4.0f / 127, "absmax is that of the finite elements");
  ok(isnan(y[2]) && y[3] == 4 && y[1] == -4, "NaN stays, Inf saturates, the rest is as without them");
  float nothing[3] = {0, -0.0f, 0};
  quantize(&s, nothing, 1, 3, NULL, y, NULL, NULL, NULL, &info);
  ok(info.scale == 1 && same(y[0], 0.0f) && same(y[1], 0.0f), "zeros have the scale 1, and integers one zero");
  quantize(&s, v, 1, 2, NULL, y, NULL, NULL, NULL, &info);
  ok(!info.non_finite, "finite numbers are not told as others");
}

/* Huge and tiny tensors in every format: finite, and no element further off than a quantum of its largest. */
static void test_extremes(void)
{
  static const float sizes[] = {FLT_MAX, 0x1p127f, 0x1p-126f, 0x1p-140f, 0x1p-149f};
  for (size_t k = 0; k < format_count(); k++) {
    int n_bad = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
      for (int m = 0; m < 2; m++) {
        struct spec s = spec_default(format_at(k), m ? ROUND_SR : ROUND_RNE);
        struct quant_rng rng = rng_of(i);
        float v[40], top = 0;
        for (int c = 0; c < 40; c++)
          v[c] = sizes[i] * ((float)(c % 7 - 3) / 3);
        quantize(&s, v, 1, 40, &rng, y, NULL, NULL, NULL, NULL);
        for (int c = 0; c < 40; c++) {
          n_bad += !isfinite(y[c]);
          top = fmaxf(top, fabsf(y[c]));
        }
        /* scaled formats reach their absmax, to a quantum of theirs: at most a factor of 2 */
        bool scaled = s.scale != SCALE_NONE && s.scale < SCALE_ABSMEAN;
        n_bad += scaled && sizes[i] > 0x1p-120f && (top < sizes[i] * 0.49f || (double)top > 2.001 * (double)sizes[i]);
      }
    is_int(n_bad, 0, "%s: huge and tiny tensors", format_at(k)->name);
  }
}

/* Scales by column at the ends of fp32: what is finite stays so, columns of zeros stay zeros, NaN stays NaN. */
static void test_column_extremes(void)
{
  static const char *const formats[] = {"int8", "binary", "ternary", "e4m3"};
  const float in[2][4] = {{FLT_MAX, 0, NAN, 3}, {-FLT_MAX, -0.0f, 0, 0}};
  for (size_t k = 0; k < sizeof formats / sizeof *formats; k++) {
    struct spec s = make_spec(formats[k], ROUND_RNE);
    float out[2][4];
    s.scale = SCALE_ABSMAX;
    s.granularity = GRAIN_COLUMN;
    quantize(&s, in[0], 2, 4, NULL, out[0], NULL, NULL, NULL, NULL);
    is_close((double)out[0][0], FLT_MAX, 1e-6 * (double)FLT_MAX, "%s by column: the largest float", formats[k]);
    ok(out[1][0] == -out[0][0], "%s by column: and its opposite", formats[k]);
    ok(out[0][1] == 0 && out[1][1] == 0 && out[1][2] == 0, "%s by column: zeros", formats[k]);
    ok(isnan(out[0][2]), "%s by column: NaN", formats[k]);
  }
  struct spec s = make_spec("binary", ROUND_RNE);
  const float bad[2] = {NAN, 0};
  float out[2];
  quantize(&s, bad, 1, 2, NULL, out, NULL, NULL, NULL, NULL);
  ok(isnan(out[0]) && out[1] == 0, "binary, nothing finite but zero: NaN stays");
}

static void test_empty(void)
{
  struct spec s = make_spec("e4m3", ROUND_SR);
  struct quant_rng rng = rng_of(1);
  float sq[3] = {7, 7, 7}, var[3] = {7, 7, 7};
  struct quant_sums sums = {sq, var};
  struct quant_info info;
  quantize(&s, NULL, 0, 5, &rng, NULL, &sums, NULL, NULL, &info);
  quantize(&s, NULL, 3, 0, &rng, NULL, &sums, NULL, NULL, &info);
  ok(sq[0] == 0 && var[2] == 0 && info.absmax == 0 && !info.non_finite, "empty matrices");
  int n_bad = 0;
  for (size_t n = 1; n < 80; n++) { /* nothing is written beyond the end */
    for (size_t i = 0; i < 100; i++)
      y[i] = 12345;
    quantize(&s, x, 1, n, &rng, y, NULL, NULL, NULL, NULL);
    for (size_t i = n; i < 100; i++)
      n_bad += y[i] != 12345;
  }
  is_int(n_bad, 0, "odd lengths stay within themselves");
}

int main(void)
{
  fill();
  test_granularities();
  test_affine();
  test_ternary();
  test_sums();
  test_variance();
  test_threads();
  test_parts();
  test_two_draws();
  test_delayed();
  test_feedback();
  test_info_and_bad_numbers();
  test_extremes();
  test_column_extremes();
  test_empty();
  return tap_done();
}
