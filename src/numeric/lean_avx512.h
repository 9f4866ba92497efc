/* How one AVX-512 vector is rounded by the lean kernels: kernel_avx512_lean.c, whole runs under one scale, and
 * kernel_avx512_block.c, blocks with scales of their own.
 *
 * Everything is in fp32 arithmetic that is exact, or rounded in one direction all the way. Below, a = |x|, q the
 * quantum at a, r the random integer.
 *   - Under a power of two the grid is scaled, not the number: no multiplications.
 *   - a + 2^23 q is a whole number of quanta, rounded; subtracting 2^23 q leaves it. Both are one fused multiply-add on
 *     the power of two at a, clamped at the least normal: "field" below.
 *   - To nearest even: that is all.
 *   - Stochastic, k = 16 or 8 bits: a is rounded to nearest even in units of q 2^-k the same way; the sum's low bits
 * are then the fraction, r is added to them as an integer, and the low k bits are cleared.
 *   - Stochastic, 32 bits: up when D + r >= 2^32. Let r' be r as a signed integer. For r' < 0 the result is
 *     q + floor_q(a + r' q 2^-32), otherwise floor_q(a + r' q 2^-32); that is exact although r' is converted to 24 bits
 *     toward minus infinity, because fractions that the lost bits could decide are multiples of them: D < 2^31 has at
 *     least as many zero bits as its size leaves (it is a 24-bit float), and D >= 2^31 is a multiple of 2^8. All three
 *     roundings go down, so they act as one.
 *   - Clamping a to the largest value first is the same as saturating the result. */
#ifndef NUMERIC_LEAN_AVX512_H
#define NUMERIC_LEAN_AVX512_H

#include <string.h>

#include "numeric/philox_avx512.h"

#define INLINE INLINE_AVX512
#define DOWN (_MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC)

enum lean {
  LEAN_FLOAT,  /* in units of x */
  LEAN_WIDE,   /* bf16 at scale 1: rounding is an addition to the bits */
  LEAN_SHIFT,  /* integers under a power of two, in units of x */
  LEAN_DIVIDE, /* integers under another scale, in units of the scale */
};

struct constants {
  __m512 max, least;    /* largest magnitude; least normal (floats), quantum (LEAN_SHIFT), 1 (LEAN_DIVIDE) */
  __m512 to_whole;      /* times field: 2^23 units, a unit being a quantum or 2^-k of one */
  __m512i to_fraction;  /* exponent field of 2^-32 quanta below that of field */
  __m512 whole, unit32; /* integers: to_whole and to_fraction applied to the one quantum */
  __m512 scale, inv, bound;
  __m512i keep; /* clears the low k bits */
  /* for the variance, in units of the scale */
  __m512i frac;                           /* frac_bits as an exponent field */
  __m512 per_quantum, quantum2, per_kept; /* integers: 1/q and q^2; 2^-k */
};

/* What the variance needs of a rounding. */
struct detail {
  __m512 a, field, sum; /* sum: a + 2^23 units, before the random integer */
};

/* 2^e without a call: a plan is made ready for every row. -126 <= e <= 127. */
static inline float power_of_two(int e)
{
  uint32_t bits = (uint32_t)(e + 127) << 23;
  float f;
  memcpy(&f, &bits, sizeof f);
  return f;
}

/* in_scale_units: numbers come divided by the scale, and results are multiplied by it afterwards. */
INLINE void constants_init(struct constants *c, const struct kernel_plan *p, enum lean kind, int random_bits,
                           bool in_scale_units)
{
  int k = random_bits == 32 ? 0 : random_bits, frac = kind == LEAN_FLOAT ? p->frac_bits : 0;
  float unit = in_scale_units || kind == LEAN_DIVIDE || kind == LEAN_WIDE ? 1 : p->scale;
  float least = unit * power_of_two((kind == LEAN_FLOAT ? p->min_field : p->quantum_field) - 127);
  c->max = _mm512_set1_ps(p->max_value * unit);
  c->least = _mm512_set1_ps(least);
  c->to_whole = _mm512_set1_ps(power_of_two(23 - frac - k));
  c->to_fraction = _mm512_set1_epi32((frac + 32) << 23);
  c->whole = _mm512_set1_ps(least * power_of_two(23 - k));
  c->unit32 = _mm512_set1_ps(least * power_of_two(-32));
  c->scale = _mm512_set1_ps(p->scale);
  c->inv = _mm512_set1_ps(p->inv_scale);
  c->bound = _mm512_set1_ps(2 * (p->max_value + 1) * p->scale);
  c->keep = _mm512_set1_epi32(-(1 << k));
  c->frac = _mm512_set1_epi32(frac << 23);
  c->per_quantum = _mm512_set1_ps(1 / least);
  c->quantum2 = _mm512_set1_ps(least * least);
  c->per_kept = _mm512_set1_ps(power_of_two(-k));
}

/* fp32's exponents, 16 bits below the quantum. A NaN is kept from the addition. */
INLINE __m512 round_wide(const struct constants *c, int random_bits, __m512 x, __m512i r)
{
  const __m512i sign = _mm512_set1_epi32((int)0x80000000u), drop = _mm512_set1_epi32(0xffff);
  __m512 a = _mm512_min_ps(c->max, _mm512_abs_ps(x)); /* NaN passes as the second operand */
  __m512i b = _mm512_castps_si512(a);
  if (random_bits == 32)
    r = _mm512_srli_epi32(r, 16);
  if (random_bits == 0) /* half less one, and the last bit kept: to nearest even */
    r = _mm512_add_epi32(_mm512_and_si512(_mm512_srli_epi32(b, 16), _mm512_set1_epi32(1)), _mm512_set1_epi32(0x7fff));
  __mmask16 ordered = _mm512_cmp_ps_mask(a, a, _CMP_ORD_Q);
  b = _mm512_mask_add_epi32(b, ordered, b, r);
  b = _mm512_mask_andnot_epi32(_mm512_or_si512(b, _mm512_set1_epi32(0x400000)), ordered, drop, b);
  return _mm512_castsi512_ps(_mm512_ternarylogic_epi32(b, _mm512_castps_si512(x), sign, 0xF8));
}

/* a / scale, correctly rounded, at most max (see scaled() in kernel_avx512.c). The remainder of Inf, and of what is far
 * above the maximum, may be NaN: either `bound` keeps them away and NaN passes, or every NaN becomes max. */
INLINE __m512 divided(const struct constants *c, __m512 a, bool nan_passes, __m512 *quotient)
{
  if (nan_passes)
    a = _mm512_min_ps(c->bound, a);
  __m512 q = _mm512_mul_ps(a, c->inv), t = _mm512_fmadd_ps(_mm512_fnmadd_ps(q, c->scale, a), c->inv, q);
  *quotient = q;
  return nan_passes ? _mm512_min_ps(c->max, t) : _mm512_min_ps(t, c->max);
}

INLINE __m512 round_magnitude(const struct constants *c, enum lean kind, int random_bits, __m512 x, __m512i r,
                              struct detail *detail)
{
  const bool few_bits = random_bits == 16 || random_bits == 8;
  __m512 a = _mm512_abs_ps(x), field = c->least, quotient;
  a = kind == LEAN_DIVIDE ? divided(c, a, !few_bits, &quotient) : _mm512_min_ps(c->max, a);
  if (kind == LEAN_FLOAT)
    field = _mm512_max_ps(c->least, _mm512_and_ps(a, _mm512_castsi512_ps(_mm512_set1_epi32(0x7f800000))));
  detail->a = a;
  detail->field = field;
  if (random_bits == 32) {
    __m512 signed_r = _mm512_cvt_roundepi32_ps(r, DOWN);
    __m512i carry = _mm512_srli_epi32(r, 31); /* one more quantum in the sum below for r' < 0 */
    if (kind == LEAN_FLOAT) {
      __m512 unit = _mm512_castsi512_ps(_mm512_sub_epi32(_mm512_castps_si512(field), c->to_fraction));
      __m512 e = _mm512_fmadd_round_ps(signed_r, unit, a, DOWN);
      __m512 whole = _mm512_castsi512_ps(_mm512_or_si512(_mm512_castps_si512(c->to_whole), carry));
      return _mm512_fnmadd_ps(field, c->to_whole, _mm512_fmadd_round_ps(field, whole, e, DOWN));
    }
    __m512 e = _mm512_fmadd_round_ps(signed_r, c->unit32, a, DOWN);
    __m512 whole = _mm512_castsi512_ps(_mm512_or_si512(_mm512_castps_si512(c->whole), carry));
    return _mm512_sub_ps(_mm512_add_round_ps(e, whole, DOWN), c->whole);
  }
  __m512 s = kind == LEAN_FLOAT ? _mm512_fmadd_ps(field, c->to_whole, a) : _mm512_add_ps(a, c->whole);
  if (random_bits == 0)
    return kind == LEAN_FLOAT ? _mm512_fnmadd_ps(field, c->to_whole, s) : _mm512_sub_ps(s, c->whole);
  detail->sum = s;
  /* a NaN's bits take no part in this: they stay as they are in s or in the quotient */
  __m512i nan = _mm512_castps_si512(kind == LEAN_DIVIDE ? quotient : s);
  __mmask16 ordered = _mm512_cmp_ps_mask(x, x, _CMP_ORD_Q);
  s = _mm512_castsi512_ps(_mm512_mask_and_epi32(nan, ordered, _mm512_add_epi32(_mm512_castps_si512(s), r), c->keep));
  return kind == LEAN_FLOAT ? _mm512_fnmadd_ps(field, c->to_whole, s) : _mm512_sub_ps(s, c->whole);
}

INLINE __m512 round_vector(const struct constants *c, enum lean kind, int random_bits, __m512 x, __m512i r,
                           struct detail *detail)
{
  const __m512i sign = _mm512_set1_epi32((int)0x80000000u);
  if (kind == LEAN_WIDE)
    return round_wide(c, random_bits, x, r);
  __m512 m = round_magnitude(c, kind, random_bits, x, r, detail);
  __m512 y = _mm512_castsi512_ps(_mm512_ternarylogic_epi32(_mm512_castps_si512(m), _mm512_castps_si512(x), sign, 0xF8));
  if (kind == LEAN_FLOAT)
    return y;
  /* integers have no -0; adding +0 rounds nothing */
  return kind == LEAN_SHIFT ? _mm512_add_ps(y, _mm512_setzero_ps()) : _mm512_fmadd_ps(y, c->scale, _mm512_setzero_ps());
}

/* Var[q] in units of the scale squared: the operations of the scalar variance in its order. Where a is the largest
 * value nothing is rounded; comparing with it leaves NaN out too. */
INLINE __m512 variance(const struct constants *c, enum lean kind, int random_bits, const struct detail *d)
{
  __m512 per_quantum = c->per_quantum, quantum2 = c->quantum2, v;
  __mmask16 counts = _mm512_cmp_ps_mask(d->a, c->max, _CMP_LT_OQ);
  if (kind == LEAN_FLOAT) {
    __m512i q = _mm512_sub_epi32(_mm512_castps_si512(d->field), c->frac);
    quantum2 = _mm512_mul_ps(_mm512_castsi512_ps(q), _mm512_castsi512_ps(q));
    per_quantum = _mm512_castsi512_ps(_mm512_sub_epi32(_mm512_set1_epi32(254 << 23), q));
  }
  if (random_bits == 32) {
    __m512 lo = kind == LEAN_FLOAT
                    ? _mm512_fnmadd_ps(d->field, c->to_whole, _mm512_fmadd_round_ps(d->field, c->to_whole, d->a, DOWN))
                    : _mm512_sub_ps(_mm512_add_round_ps(d->a, c->whole, DOWN), c->whole);
    __m512 f = _mm512_mul_ps(_mm512_sub_ps(d->a, lo), per_quantum);
    v = _mm512_mul_ps(f, _mm512_sub_ps(_mm512_set1_ps(1), f));
  } else {
    __m512i kept = _mm512_andnot_si512(c->keep, _mm512_castps_si512(d->sum));
    __m512 p = _mm512_mul_ps(_mm512_cvtepi32_ps(kept), c->per_kept);
    v = _mm512_sub_ps(p, _mm512_mul_ps(p, p));
  }
  return _mm512_maskz_mul_ps(counts, v, quantum2);
}

/* Output of this many elements is written past the caches: with its input it does not fit the second level. */
enum { STREAM_FROM = 1 << 20 };

#undef INLINE
#endif
