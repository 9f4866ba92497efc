/* Kernels that find the scales of MX blocks themselves: equal bit for bit to the scale of each block by scale.c and the
 * scalar kernel under it; and they stop before what they leave to the caller. */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "helper.h"
#include "numeric/kernel_simd.h"
#include "numeric/scale.h"

enum { BLOCK = 32, N_BLOCKS = 400, N = BLOCK * N_BLOCKS };

static float x[N], want[N], got[N + BLOCK];

/* Exponents of a block lie together; blocks of zeros, of a single number, and with ties for every rule come in too. */
static void fill(uint64_t *state)
{
  for (int i = 0; i < N; i++) {
    uint64_t r = test_random(state);
    int kind = i / BLOCK % 8, exponent = 127 + i / BLOCK % 41 - 20 - (int)(r >> 40) % (kind == 1 ? 30 : 6);
    uint32_t u = (uint32_t)(r & 0x807fffff) | (uint32_t)exponent << 23;
    if (kind == 2 || (kind == 3 && i % BLOCK != 17))
      u &= 0x80000000;
    if (kind == 4) /* few significand bits: absmax on the grid, on ties and just beside */
      u = (u & 0xfff00000) | (uint32_t)((r >> 30) % 3);
    x[i] = float_of(u);
  }
}

static void reference(const struct spec *s, const struct kernel_plan *plan, uint64_t element0)
{
  for (size_t b = 0; b < N; b += BLOCK) {
    struct kernel_plan p = *plan;
    struct scale_input in;
    bool bad = false;
    scale_look(s, x + b, BLOCK, &in, &bad);
    kernel_plan_set_scale(&p, scale_of_group(s, s->format->element, &in).scale);
    kernel_scalar(&p, x + b, want + b, BLOCK, element0 + b, 0, NULL);
  }
}

static struct kernel_plan plan_of(const struct spec *s)
{
  struct kernel_plan p;
  kernel_plan_init(&p, s, s->format->element, 1);
  p.key = rng_derive(11, RNG_SITE, 1, 2, 3);
  p.step = 77;
  return p;
}

static struct spec spec_of(const char *format, enum scale_rule rule, int random_bits)
{
  struct spec s = spec_default(find_format(format), random_bits ? ROUND_SR : ROUND_RNE);
  s.scale = rule;
  if (random_bits)
    s.random_bits = random_bits;
  return s;
}

/* Calls until all is done; a kernel may stop where the generator's low word wraps. */
static size_t all_blocks(kernel_blocks_fn *k, const struct kernel_plan *p, enum scale_rule rule, uint64_t element0)
{
  size_t at = 0;
  for (int calls = 0; at < N && calls < 4; calls++)
    at += k(p, rule, x + at, got + at, N - at, element0 + at);
  return at;
}

static void test_equal(const char *format)
{
  static const enum scale_rule rules[] = {SCALE_FLOOR, SCALE_RCEIL, SCALE_EVEN};
  static const int bits[] = {0, 32, 16, 8};
  static const uint64_t starts[] = {0, 48, (1ull << 34) - N / 2, (1ull << 35) - 64, (1ull << 36) - 160};
  uint64_t state = 5;
  for (int r = 0; r < 3; r++) {
    int bad = 0, overrun = 0;
    size_t done = 0;
    for (int m = 0; m < 4; m++)
      for (size_t e = 0; e < sizeof starts / sizeof *starts; e++) {
        struct spec s = spec_of(format, rules[r], bits[m]);
        struct kernel_plan p = plan_of(&s);
        kernel_blocks_fn *k = kernel_pick_blocks(&p, rules[r], BLOCK);
        if (!k)
          continue;
        fill(&state);
        memset(got, 0xee, sizeof got);
        reference(&s, &p, starts[e]);
        done += all_blocks(k, &p, rules[r], starts[e]);
        for (int i = 0; i < N; i++)
          bad += bits_of(want[i]) != bits_of(got[i]);
        for (int i = N; i < N + BLOCK; i++)
          overrun += bits_of(got[i]) != 0xeeeeeeee;
      }
    is_int(done, 20 * N, "%s %s: every block done", format, scale_rule_names[rules[r]]);
    is_int(bad + overrun, 0, "%s %s: equal to scalar", format, scale_rule_names[rules[r]]);
  }
}

/* What is not finite, and scales near the ends of fp32, stop the kernel at that block. */
static void test_stops(void)
{
  static const float odd[] = {INFINITY, -INFINITY, NAN, 0x1p-100f, 0x1p120f, 0x1p-140f};
  struct spec s = spec_of("mxfp4", SCALE_RCEIL, 32);
  struct kernel_plan p = plan_of(&s);
  kernel_blocks_fn *k = kernel_pick_blocks(&p, SCALE_RCEIL, BLOCK);
  uint64_t state = 9;
  for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
    fill(&state);
    for (int j = 0; j < BLOCK && fabsf(odd[i]) < 1; j++)
      x[5 * BLOCK + j] = 0;
    x[5 * BLOCK + 19] = odd[i];
    memset(got, 0xee, sizeof got);
    is_int(k(&p, SCALE_RCEIL, x, got, N, 0), 5 * BLOCK, "%g: stops before its block", (double)odd[i]);
    is_int(bits_of(got[5 * BLOCK]), 0xeeeeeeee, "%g: and leaves it alone", (double)odd[i]);
  }
}

int main(void)
{
  static const char *const formats[] = {"mxfp8e4m3", "mxfp8e5m2", "mxfp6e3m2", "mxfp6e2m3", "mxfp4", "mxint8"};
  struct spec s = spec_of("mxfp4", SCALE_FLOOR, 0);
  struct kernel_plan p = plan_of(&s);
  ok(!kernel_pick_blocks(&p, SCALE_FLOOR, 16), "blocks of another length have no kernel");
  ok(!kernel_pick_blocks(&p, SCALE_ABSMAX, BLOCK), "scales that are no powers of two have none");
  if (!kernel_pick_blocks(&p, SCALE_FLOOR, BLOCK)) {
    tap_skip("no block kernels for %s", quantize_isa());
    return tap_done();
  }
  for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
    test_equal(formats[i]);
  test_stops();
  return tap_done();
}
