/* AVX-512 kernels for blocks of 32 elements under powers of two that follow from the block: MX formats by the rules
 * floor, rceil and even. Scale and elements are found in one pass; a horizontal maximum leaves the block's absmax in
 * every lane, and the scale is its exponent field after an addition to the bits. lean_avx512.h rounds.
 *
 * Blocks whose scale is extreme, or that hold something that is not finite, are left to the caller. */
#include "config.h"

#include "numeric/kernel_simd.h"

#ifdef HAVE_X86_SIMD

#include <math.h>

#include "numeric/lean_avx512.h"

#define TARGET TARGET_AVX512
#define INLINE INLINE_AVX512

enum { BLOCK = 32, LEAST_FIELD = 127 - 50, LARGEST_FIELD = 127 + 50 };

struct rule {
  int add;        /* to the bits of absmax, so that the exponent is the scale's plus emax */
  int half_shift; /* even: besides half a unit less one, the last kept bit; else -1 */
  int emax;       /* exponent of the largest value */
  float max;      /* at scale 1 */
  float least;
};

/* rceil: anything above max's significand carries. even: half a unit of the last kept bit does, ties to even. */
static struct rule rule_of(const struct kernel_plan *p, enum scale_rule rule)
{
  struct rule r = {.half_shift = -1, .max = p->max_value};
  int e;
  float significand = frexpf(p->max_value, &e); /* in [1/2, 1) */
  r.emax = e - 1;
  r.least = ldexpf(1, (p->uniform ? p->quantum_field : p->min_field) - 127);
  if (rule == SCALE_RCEIL)
    r.add = 0x7fffff - (int)ldexpf(2 * significand - 1, 23);
  if (rule == SCALE_EVEN) {
    int kept = p->uniform ? e - 1 + 127 - p->quantum_field : p->frac_bits;
    r.half_shift = 23 - kept;
    r.add = (1 << (r.half_shift - 1)) - 1;
  }
  return r;
}

/* Bits of the largest magnitude of two vectors, in every lane; above those of Inf when there is a NaN. */
INLINE __m512i absmax_bits(__m512 v0, __m512 v1)
{
  __m512i a = _mm512_max_epi32(_mm512_castps_si512(_mm512_abs_ps(v0)), _mm512_castps_si512(_mm512_abs_ps(v1)));
  a = _mm512_max_epi32(a, _mm512_shuffle_i32x4(a, a, 0x4E));
  a = _mm512_max_epi32(a, _mm512_shuffle_i32x4(a, a, 0xB1));
  a = _mm512_max_epi32(a, _mm512_shuffle_epi32(a, _MM_PERM_BADC));
  return _mm512_max_epi32(a, _mm512_shuffle_epi32(a, _MM_PERM_CDAB));
}

/* Exponent field of the block's scale, in place; a block of zeros takes any. */
INLINE __m512i scale_bits(const struct rule *r, __m512i absmax)
{
  __m512i b = _mm512_add_epi32(absmax, _mm512_set1_epi32(r->add));
  if (r->half_shift >= 0)
    b = _mm512_add_epi32(b, _mm512_and_epi32(_mm512_srli_epi32(absmax, (unsigned)r->half_shift), _mm512_set1_epi32(1)));
  b = _mm512_sub_epi32(_mm512_and_epi32(b, _mm512_set1_epi32(0x7f800000)), _mm512_set1_epi32(r->emax << 23));
  __mmask16 some = _mm512_test_epi32_mask(absmax, absmax);
  return _mm512_mask_mov_epi32(_mm512_set1_epi32(127 << 23), some, b);
}

/* Sets what of the constants depends on the scale; false when it is not one for this kernel. */
INLINE bool block_constants(struct constants *c, const struct rule *r, enum lean kind, int random_bits, __m512 v0,
                            __m512 v1)
{
  __m512i absmax = absmax_bits(v0, v1), bits = scale_bits(r, absmax);
  int field = _mm_cvtsi128_si32(_mm512_castsi512_si128(bits)) >> 23;
  if (field < LEAST_FIELD || field > LARGEST_FIELD || _mm_cvtsi128_si32(_mm512_castsi512_si128(absmax)) >= 0x7f800000)
    return false;
  __m512 scale = _mm512_castsi512_ps(bits);
  c->max = _mm512_mul_ps(_mm512_set1_ps(r->max), scale);
  c->least = _mm512_mul_ps(_mm512_set1_ps(r->least), scale);
  if (kind == LEAN_SHIFT) {
    int k = random_bits == 32 ? 0 : random_bits;
    c->whole = _mm512_mul_ps(c->least, _mm512_set1_ps((float)(1 << (23 - k))));
    c->unit32 = _mm512_mul_ps(c->least, _mm512_set1_ps(0x1p-32f));
  }
  return true;
}

INLINE size_t run(const struct kernel_plan *p, enum scale_rule scale_rule, const float *x, float *y, size_t n,
                  uint64_t element0, enum lean kind, int random_bits, bool stream)
{
  const int per_words = random_bits ? 32 / random_bits : 1; /* blocks that a call of the generator serves */
  const struct rule r = rule_of(p, scale_rule);
  struct constants c;
  struct philox_avx512 philox;
  _Alignas(64) uint32_t words[32] = {0};
  struct kernel_plan unit = *p;
  unit.scale = unit.inv_scale = 1;
  constants_init(&c, &unit, kind, random_bits, true);
  struct detail unused;
  if (random_bits)
    philox_avx512_init(&philox, p, element0 / (128u / (unsigned)random_bits));
  size_t at = 0;
  while (at < n) {
    if (random_bits) {
      __m512i w0, w1;
      philox_avx512_next(&philox, &w0, &w1);
      _mm512_store_si512(words, w0);
      _mm512_store_si512(words + 16, w1);
      __asm__("" : "+m"(words)); /* see kernel_avx512_lean.c */
    }
#pragma GCC unroll 4
    for (int b = 0; b < per_words && at < n; b++, at += BLOCK) {
      __m512 v0 = _mm512_loadu_ps(x + at), v1 = _mm512_loadu_ps(x + at + 16);
      if (!block_constants(&c, &r, kind, random_bits, v0, v1))
        goto out;
      const uint32_t *from = words + b * random_bits; /* a block takes as many words as an element bits */
      __m512i r0 = _mm512_setzero_si512(), r1 = r0;
      if (random_bits) {
        r0 = random_avx512(random_bits, from, 0);
        r1 = random_bits == 32 ? random_avx512(32, from + 16, 0) : random_avx512(random_bits, from, 1);
      }
      v0 = round_vector(&c, kind, random_bits, v0, r0, &unused);
      v1 = round_vector(&c, kind, random_bits, v1, r1, &unused);
      if (stream) {
        _mm512_stream_ps(y + at, v0);
        _mm512_stream_ps(y + at + 16, v1);
      } else {
        _mm512_storeu_ps(y + at, v0);
        _mm512_storeu_ps(y + at + 16, v1);
      }
    }
  }
out:
  if (stream)
    _mm_sfence();
  return at;
}

#define KERNEL(name, kind, random_bits)                                                                                \
  TARGET static size_t name(const struct kernel_plan *p, enum scale_rule rule, const float *x, float *y, size_t n,     \
                            uint64_t element0)                                                                         \
  {                                                                                                                    \
    if (random_bits)                                                                                                   \
      n = philox_before_wrap(element0, n, random_bits ? random_bits : 32) / BLOCK * BLOCK;                             \
    if (n >= STREAM_FROM && (uintptr_t)y % 64 == 0 && x != y)                                                          \
      return run(p, rule, x, y, n, element0, kind, random_bits, true);                                                 \
    return run(p, rule, x, y, n, element0, kind, random_bits, false);                                                  \
  }
KERNEL(float_rne, LEAN_FLOAT, 0)
KERNEL(float_sr32, LEAN_FLOAT, 32)
KERNEL(float_sr16, LEAN_FLOAT, 16)
KERNEL(float_sr8, LEAN_FLOAT, 8)
KERNEL(shift_rne, LEAN_SHIFT, 0)
KERNEL(shift_sr32, LEAN_SHIFT, 32)
KERNEL(shift_sr16, LEAN_SHIFT, 16)
KERNEL(shift_sr8, LEAN_SHIFT, 8)

kernel_blocks_fn *kernel_blocks_avx512(const struct kernel_plan *p, enum scale_rule rule, size_t block)
{
  static kernel_blocks_fn *const table[2][4] = {
      {float_rne, float_sr32, float_sr16, float_sr8},
      {shift_rne, shift_sr32, shift_sr16, shift_sr8},
  };
  struct kernel_plan unit = *p;
  kernel_plan_set_scale(&unit, 1);
  if (block != BLOCK || (rule != SCALE_FLOOR && rule != SCALE_RCEIL && rule != SCALE_EVEN) || unit.binary ||
      kernel_simd_mode(p) < 0)
    return NULL;
  int kind = kernel_avx512_lean_kind(&unit, kernel_simd_bits(p));
  if (kind != LEAN_FLOAT && kind != LEAN_SHIFT)
    return NULL;
  return table[kind == LEAN_SHIFT][kernel_simd_mode(p)];
}

#endif
