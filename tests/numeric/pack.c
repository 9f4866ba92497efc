/* Packing: what unpack() gives is what quantize() gives, to the bit, for every format, rounding, granularity and odd
 * shape; codes and values are each other's inverse; sizes are what the widths say; NaN and Inf are told. */
#include "config.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "helper.h"
#include "numeric/code.h"
#include "numeric/pack.h"

enum { ROWS = 5, COLS = 77, N = ROWS * COLS };

static float x[N];

static void fill(float size, bool with_zero_block)
{
  uint64_t state = 0x1234567;
  for (int i = 0; i < N; i++) {
    double u = (double)(test_random(&state) >> 11) * 0x1p-53;
    x[i] = (float)(ldexp(u - 0.5, (int)(test_random(&state) % 12) - 10) * (double)size);
  }
  for (int i = 0; with_zero_block && i < 32; i++)
    x[COLS + i] = i % 2 ? -0.0f : 0.0f;
}

/* Number of elements of unpack(pack(x)) that are not those of quantize(x). */
static int round_trip(const struct spec *s, size_t rows, size_t cols)
{
  static uint8_t packed[N * 12];
  static float y[N], z[N];
  float sq[2][COLS], var[2][COLS];
  struct quant_rng rng = {.key = rng_derive(7, RNG_SITE, 1, 2, 3), .step = 9, .first_element = 1003};
  struct quant_sums sums[2] = {{sq[0], var[0]}, {sq[1], var[1]}};
  struct err e;
  if (spec_check(s, &e))
    tap_bail("%s %s: %s", s->format->name, rounding_name(s->rounding), e.msg);
  size_t n_bytes = pack_bytes(s, rows, cols);
  memset(packed, 0xA5, sizeof packed);
  quantize(s, x, rows, cols, &rng, y, &sums[0], NULL, NULL, NULL);
  if (pack(s, x, rows, cols, &rng, packed, &sums[1], NULL, NULL, NULL))
    return -1;
  unpack(s, packed, rows, cols, z, NULL);
  int n_bad = memcmp(sq[0], sq[1], rows * sizeof(float)) || memcmp(var[0], var[1], rows * sizeof(float));
  for (size_t i = 0; i < rows * cols; i++)
    n_bad += !same(y[i], z[i]);
  for (size_t i = n_bytes; i < sizeof packed; i++)
    n_bad += packed[i] != 0xA5;
  return n_bad;
}

static int all_granularities(const struct format *f, enum rounding r)
{
  int n_bad = 0;
  struct spec s = spec_default(f, r);
  n_bad += round_trip(&s, ROWS, COLS) + round_trip(&s, 1, 1) + round_trip(&s, COLS, ROWS);
  if (f->family == FORMAT_BLOCK || s.scale == SCALE_NONE)
    return n_bad;
  static const int blocks[] = {0, 1, 10, 32, 100};
  for (size_t b = 0; b < sizeof blocks / sizeof *blocks; b++)
    for (int rule = SCALE_ABSMAX; rule <= SCALE_FIXED; rule++) {
      s.granularity = blocks[b] ? GRAIN_BLOCK : GRAIN_ROW;
      s.block = blocks[b];
      s.scale = (enum scale_rule)rule;
      s.fixed_scale = 0.37f;
      n_bad += round_trip(&s, ROWS, COLS);
    }
  return n_bad;
}

static void test_round_trips(void)
{
  static const float sizes[] = {1, 1e-30f, 3e-38f, 1e-43f, FLT_MAX};
  for (size_t i = 0; i < format_count() + 3; i++) {
    static const char *const more[] = {"e3m4ieee", "e6m1", "e2m5fn"};
    const struct format *f = i < format_count() ? format_at(i) : find_format(more[i - format_count()]);
    if (f->total_bits > 16)
      continue;
    int n_bad = 0;
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
      fill(sizes[k], k % 2);
      n_bad += all_granularities(f, ROUND_RNE) + all_granularities(f, ROUND_SR);
    }
    is_int(n_bad, 0, "%s: unpacked equals quantized", f->name);
  }
}

static void test_codes(void)
{
  for (size_t i = 0; i < format_count(); i++) {
    const struct format *f = format_at(i);
    if (f->total_bits > 16 || f->family == FORMAT_BLOCK)
      continue;
    uint32_t n_codes = 1u << f->total_bits, bad = 0, again;
    for (uint32_t c = 0; c < n_codes; c++) {
      float v = format_value(f, c);
      if (!format_code_used(f, c))
        continue;
      if (format_code(f, v, &again) || (again != c && !isnan(v)) || (isnan(v) && !isnan(format_value(f, again))))
        bad++;
    }
    is_int(bad, 0, "%s: every code comes back from its value", f->name);
  }
  /* values of NUMERICS section 1 */
  is_close((double)format_value(find_format("e4m3"), 0x7e), 448, 0, "e4m3 0x7e is 448");
  ok(isnan(format_value(find_format("e4m3"), 0xff)), "e4m3 0xff is NaN");
  is_close((double)format_value(find_format("e5m2"), 0x7b), 57344, 0, "e5m2 0x7b is 57344");
  is_close((double)format_value(find_format("e2m1"), 0x7), 6, 0, "e2m1 0x7 is 6");
  is_close((double)format_value(find_format("e4m3fnuz"), 0x01), 0x1p-10, 0, "e4m3fnuz 0x01 is 2^-10");
  is_close((double)format_value(find_format("bf16"), 0x3f80), 1, 0, "bf16 0x3f80 is 1");
  is_close((double)format_value(find_format("int8"), 0x81), -127, 0, "int8 0x81 is -127");
}

static void test_sizes(void)
{
  static const struct {
    const char *format;
    size_t n_bytes; /* of 4 rows of 64: codes, 8 bytes of the tensor, scales */
  } cases[] = {
      {"e4m3", 256 + 8},       {"int4", 128 + 8},          {"e3m2", 192 + 8},
      {"int3", 96 + 8},        {"binary", 32 + 8},         {"mxfp4", 128 + 8 + 8},
      {"nvfp4", 128 + 8 + 16}, {"mxfp8e4m3", 256 + 8 + 8}, {"bf16", 512 + 8},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct spec s = spec_default(find_format(cases[i].format), ROUND_RNE);
    is_int(pack_bytes(&s, 4, 64), cases[i].n_bytes, "%s: bytes of 4 rows of 64", cases[i].format);
  }
}

static void test_non_finite(void)
{
  static uint8_t packed[N * 12];
  static const float bad[] = {NAN, INFINITY, -INFINITY};
  static const char *const formats[] = {"e4m3", "e5m2", "int8", "uint4", "mxfp4", "nvfp4", "nvfp4exact", "binary"};
  int n_missed = 0;
  for (size_t f = 0; f < sizeof formats / sizeof *formats; f++)
    for (size_t k = 0; k < 3; k++) {
      struct spec s = spec_default(find_format(formats[f]), ROUND_RNE);
      fill(1, false);
      n_missed += pack(&s, x, ROWS, COLS, NULL, packed, NULL, NULL, NULL, NULL) != 0;
      x[3 * COLS + 5] = bad[k];
      n_missed += pack(&s, x, ROWS, COLS, NULL, packed, NULL, NULL, NULL, NULL) != -1;
    }
  is_int(n_missed, 0, "a NaN or Inf is told, and nothing else is");
}

int main(void)
{
  test_codes();
  test_sizes();
  test_round_trips();
  test_non_finite();
  return tap_done();
}
