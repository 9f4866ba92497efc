/* AVX-512 kernels: floating and uniform grids, to nearest even and stochastic with 32, 16 or 8 random bits. They equal
 * kernel_scalar() bit for bit, sums included; what they do not cover kernel_pick() leaves to it. The commonest grids
 * without sums go to kernel_avx512_lean.c. */
#include "config.h"

#include "numeric/kernel_simd.h"

#ifdef HAVE_X86_SIMD

#include <string.h>

#include "numeric/lanes_avx512.h"
#include "numeric/philox_avx512.h"

#define TARGET TARGET_AVX512
#define INLINE INLINE_AVX512

enum grid_kind {
  GRID_FLOAT,   /* emin well inside fp32's range */
  GRID_WIDE,    /* fp32's own exponents: bf16, tf32. Rounding is an addition to the bits */
  GRID_UNIFORM, /* integers, fixed point */
};

struct grid {
  __m512i min_field, frac;     /* floats: emin's field and frac_bits, in place */
  __m512 quantum, per_quantum; /* uniform */
  __m512 max, lo, hi, zero, overflow, flush, scale, inv;
  __m128i drop_count, up_count; /* wide: 23 - frac_bits and 32 minus that, as shift counts */
  bool divide, no_neg_zero, saturate, flushes;
};

INLINE void grid_init(struct grid *g, const struct kernel_plan *p)
{
  int drop = 23 - p->frac_bits;
  g->min_field = _mm512_set1_epi32(p->min_field << 23);
  g->frac = _mm512_set1_epi32(p->frac_bits << 23);
  g->quantum = _mm512_castsi512_ps(_mm512_set1_epi32(p->quantum_field << 23));
  g->per_quantum = _mm512_castsi512_ps(_mm512_set1_epi32((254 - p->quantum_field) << 23));
  g->max = _mm512_set1_ps(p->max_value);
  g->lo = _mm512_set1_ps(p->code_lo);
  g->hi = _mm512_set1_ps(p->code_hi);
  g->zero = _mm512_set1_ps(p->zero_point);
  g->overflow = _mm512_set1_ps(p->overflow);
  g->flush = _mm512_set1_ps(p->flush_below);
  g->scale = _mm512_set1_ps(p->scale);
  g->inv = _mm512_set1_ps(p->inv_scale);
  g->drop_count = _mm_cvtsi32_si128(drop);
  g->up_count = _mm_cvtsi32_si128(32 - drop);
  g->divide = !p->scale_is_pow2;
  g->no_neg_zero = p->no_neg_zero;
  g->saturate = p->overflow == p->max_value;
  g->flushes = p->flush_below > 0;
}

/* t = x / scale, correctly rounded: multiply by the rounded reciprocal and correct once with the exact remainder
 * (Markstein 1990). Where the quotient is large or not finite the correction is left out: it saturates either way.
 * kernel_avx512() takes only scales for which a remainder that underflows decides nothing. */
INLINE __m512 scaled(const struct grid *g, __m512 x)
{
  __m512 q = _mm512_mul_ps(x, g->inv);
  if (!g->divide)
    return q;
  __mmask16 plain = _mm512_cmp_ps_mask(_mm512_abs_ps(q), _mm512_set1_ps(0x1p60f), _CMP_LT_OQ);
  __m512 rest = _mm512_fnmadd_ps(q, g->scale, x);
  return _mm512_mask3_fmadd_ps(rest, g->inv, q, plain);
}

/* A magnitude and its quantum. Dividing by the quantum is a multiplication by a power of two, so whole quanta and the
 * fraction between them are exact in fp32: the integer arithmetic of kernel.h in fewer instructions. */
struct rounded {
  __m512 magnitude;
  __m512 lo, quantum, fraction; /* for the variance; fraction in quanta (GRID_WIDE: in units of the value) */
  __m512i kept;                 /* short modes: the fraction in 2^-random_bits */
};

/* lo + 1 quantum where fraction + random / 2^random_bits >= 1 */
INLINE __mmask16 goes_up(__m512 fraction, int random_bits, __m512i random, __m512i *kept)
{
  if (random_bits == 32) {
    __m512i d = _mm512_cvttps_epu32(_mm512_mul_ps(fraction, _mm512_set1_ps(0x1p32f)));
    return _mm512_cmpgt_epu32_mask(d, _mm512_andnot_si512(random, _mm512_set1_epi32(-1)));
  }
  *kept = _mm512_cvt_roundps_epi32(_mm512_mul_ps(fraction, _mm512_set1_ps(random_bits == 16 ? 0x1p16f : 0x1p8f)),
                                   _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  return _mm512_cmpge_epu32_mask(_mm512_add_epi32(*kept, random), _mm512_set1_epi32(1 << random_bits));
}

INLINE struct rounded round_quanta(const struct grid *g, bool uniform, int random_bits, __m512i a, __m512i random)
{
  struct rounded r;
  __m512 per_quantum = g->per_quantum;
  r.quantum = g->quantum;
  if (!uniform) {
    __m512i field = _mm512_and_si512(a, _mm512_set1_epi32(0x7f800000));
    __m512i q = _mm512_sub_epi32(_mm512_max_epu32(field, g->min_field), g->frac);
    /* 1/quantum must not vanish: at the top of fp32, far above every maximum, a smaller quantum serves */
    q = _mm512_min_epu32(q, _mm512_set1_epi32(253 << 23));
    r.quantum = _mm512_castsi512_ps(q);
    per_quantum = _mm512_castsi512_ps(_mm512_sub_epi32(_mm512_set1_epi32(254 << 23), q));
  }
  __m512 u = _mm512_mul_ps(_mm512_castsi512_ps(a), per_quantum);
  if (random_bits == 0) {
    r.magnitude = _mm512_mul_ps(_mm512_roundscale_ps(u, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC), r.quantum);
    return r;
  }
  __m512 whole = _mm512_roundscale_ps(u, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
  r.fraction = _mm512_sub_ps(u, whole);
  r.lo = _mm512_mul_ps(whole, r.quantum);
  __mmask16 up = goes_up(r.fraction, random_bits, random, &r.kept);
  r.magnitude = _mm512_mul_ps(_mm512_mask_add_ps(whole, up, whole, _mm512_set1_ps(1)), r.quantum);
  return r;
}

/* The same on the bits: quanta of bf16 and tf32 may be subnormal in fp32, so that nothing divides by them. */
INLINE struct rounded round_wide(const struct grid *g, int random_bits, __m512i a, __m512i random)
{
  struct rounded r;
  const __m512i one = _mm512_set1_epi32(1), half = _mm512_set1_epi32((int)0x80000000u);
  __m512i d = _mm512_sll_epi32(a, g->up_count), i = _mm512_srl_epi32(a, g->drop_count);
  __m512i lo = _mm512_sll_epi32(i, g->drop_count), hi = _mm512_sll_epi32(_mm512_add_epi32(i, one), g->drop_count);
  __mmask16 up;
  if (random_bits == 0) {
    up = _mm512_cmpgt_epu32_mask(d, _mm512_sub_epi32(half, _mm512_and_si512(i, one)));
  } else if (random_bits == 32) {
    up = _mm512_cmpgt_epu32_mask(d, _mm512_andnot_si512(random, _mm512_set1_epi32(-1)));
  } else { /* the fraction to random_bits, to nearest even */
    __m512i k = _mm512_srli_epi32(d, (unsigned)(32 - random_bits)), rest = _mm512_slli_epi32(d, (unsigned)random_bits);
    __mmask16 carry = _mm512_cmpgt_epu32_mask(rest, _mm512_sub_epi32(half, _mm512_and_si512(k, one)));
    r.kept = _mm512_mask_add_epi32(k, carry, k, one);
    up = _mm512_cmpge_epu32_mask(_mm512_add_epi32(r.kept, random), _mm512_set1_epi32(1 << random_bits));
  }
  r.lo = _mm512_castsi512_ps(lo);
  r.quantum = _mm512_sub_ps(_mm512_castsi512_ps(hi), r.lo);
  r.fraction = _mm512_sub_ps(_mm512_castsi512_ps(a), r.lo);
  r.magnitude = _mm512_castsi512_ps(_mm512_mask_mov_epi32(lo, up, hi));
  /* adding to a NaN's bits could make an Inf of it */
  __mmask16 nan = _mm512_cmpgt_epu32_mask(a, _mm512_set1_epi32(0x7f800000));
  r.magnitude = _mm512_mask_mov_ps(r.magnitude, nan, _mm512_castsi512_ps(a));
  return r;
}

/* x gives the sign: the corrected quotient of -0 is +0.
 * NaN passes through min and max when it is their second operand, and through compares that are false for it. */
INLINE __m512 in_range(const struct grid *g, enum grid_kind kind, __m512 magnitude, __m512i x)
{
  const __m512i sign = _mm512_set1_epi32((int)0x80000000u);
  __m512 m = magnitude;
  if (kind == GRID_UNIFORM) {
    __m512 v = _mm512_castsi512_ps(_mm512_ternarylogic_epi32(_mm512_castps_si512(m), x, sign, 0xF8));
    v = _mm512_max_ps(g->lo, _mm512_min_ps(g->hi, _mm512_add_ps(v, g->zero)));
    return _mm512_add_ps(_mm512_sub_ps(v, g->zero), _mm512_setzero_ps());
  }
  if (g->flushes)
    m = _mm512_mask_mov_ps(m, _mm512_cmp_ps_mask(m, g->flush, _CMP_LT_OQ), _mm512_setzero_ps());
  if (g->saturate)
    m = _mm512_min_ps(g->max, m);
  else
    m = _mm512_mask_mov_ps(m, _mm512_cmp_ps_mask(m, g->max, _CMP_GT_OQ), g->overflow);
  __m512i bits = _mm512_ternarylogic_epi32(_mm512_castps_si512(m), x, sign, 0xF8);
  if (g->no_neg_zero)
    bits = _mm512_maskz_mov_epi32(_mm512_test_epi32_mask(_mm512_castps_si512(m), _mm512_castps_si512(m)), bits);
  return _mm512_castsi512_ps(bits);
}

/* Var[q] in units of the scale squared: the operations of the scalar variance in its order. */
INLINE __m512 variance(const struct grid *g, enum grid_kind kind, int random_bits, const struct rounded *r, __m512 t)
{
  __m512 top = g->max, v;
  if (kind == GRID_UNIFORM)
    top =
        _mm512_mask_sub_ps(_mm512_sub_ps(g->hi, g->zero), _mm512_movepi32_mask(_mm512_castps_si512(t)), g->zero, g->lo);
  __mmask16 counts = _mm512_cmp_ps_mask(r->lo, top, _CMP_LT_OQ); /* false for NaN and Inf */
  if (random_bits != 32) {
    __m512 p = _mm512_mul_ps(_mm512_cvtepi32_ps(r->kept), _mm512_set1_ps(random_bits == 16 ? 0x1p-16f : 0x1p-8f));
    v = _mm512_mul_ps(_mm512_sub_ps(p, _mm512_mul_ps(p, p)), _mm512_mul_ps(r->quantum, r->quantum));
  } else if (kind == GRID_WIDE) {
    v = _mm512_mul_ps(r->fraction, _mm512_sub_ps(r->quantum, r->fraction));
  } else {
    v = _mm512_mul_ps(_mm512_mul_ps(r->fraction, _mm512_sub_ps(_mm512_set1_ps(1), r->fraction)),
                      _mm512_mul_ps(r->quantum, r->quantum));
  }
  return _mm512_maskz_mov_ps(counts, v);
}

INLINE void one_vector(const struct grid *g, enum grid_kind kind, int random_bits, bool want_sums, bool whole,
                       const float *x, float *y, __mmask16 mask, __m512i random, struct lane_sums *sums)
{
  __m512 v = whole ? _mm512_loadu_ps(x) : _mm512_maskz_loadu_ps(mask, x);
  __m512 t = scaled(g, v);
  __m512i bits = _mm512_castps_si512(t), a = _mm512_and_si512(bits, _mm512_set1_epi32(0x7fffffff));
  struct rounded r = kind == GRID_WIDE ? round_wide(g, random_bits, a, random)
                                       : round_quanta(g, kind == GRID_UNIFORM, random_bits, a, random);
  __m512 out = _mm512_mul_ps(in_range(g, kind, r.magnitude, _mm512_castps_si512(v)), g->scale);
  if (whole)
    _mm512_storeu_ps(y, out);
  else
    _mm512_mask_storeu_ps(y, mask, out);
  if (!want_sums)
    return;
  __mmask16 take = whole ? 0xffff : mask;
  sums->sq = _mm512_mask_add_ps(sums->sq, take, sums->sq, _mm512_mul_ps(v, v));
  if (random_bits)
    sums->var = _mm512_mask_add_ps(sums->var, take, sums->var, variance(g, kind, random_bits, &r, t));
}

/* A run within which the block's low word does not wrap. Vectors stand at multiples of the elements that share one
 * random block, so the first may begin before the run: its mask keeps what is outside untouched. */
INLINE void run(const struct kernel_plan *p, const float *x, float *y, size_t n, uint64_t element0, unsigned lane0,
                struct kernel_sums *sums, enum grid_kind kind, int random_bits, bool want_sums)
{
  const int per_words = random_bits ? 32 / random_bits : 1; /* vectors that 64 bytes of words serve */
  const size_t chunk = (size_t)(32 * per_words);
  const unsigned phase = random_bits ? (unsigned)(element0 % (128u / (unsigned)random_bits)) : 0;
  struct grid g;
  struct philox_avx512 philox;
  struct lane_sums l = {0};
  _Alignas(64) uint32_t words[32] = {0};
  grid_init(&g, p);
  if (random_bits)
    philox_avx512_init(&philox, p, (element0 - phase) / (128u / (unsigned)random_bits));
  if (want_sums)
    sums_load(&l, sums, (lane0 - phase) % KERNEL_LANES);
  size_t end = n + phase;
  x -= phase;
  y -= phase;
  for (size_t at = 0; at < end; at += chunk) {
    if (random_bits) {
      __m512i w0, w1;
      philox_avx512_next(&philox, &w0, &w1);
      _mm512_store_si512(words, w0);
      _mm512_store_si512(words + 16, w1);
    }
    bool whole = at >= phase && at + chunk <= end;
#pragma GCC unroll 8
    for (int v = 0; v < 2 * per_words; v++) {
      size_t i = at + 16 * (size_t)v;
      __m512i r = random_bits ? random_avx512(random_bits, words + 16 * (v / per_words), v % per_words)
                              : _mm512_setzero_si512();
      if (whole)
        one_vector(&g, kind, random_bits, want_sums, true, x + i, y + i, 0xffff, r, &l);
      else if (i < end)
        one_vector(&g, kind, random_bits, want_sums, false, x + i, y + i, mask_avx512(phase, end, i), r, &l);
    }
  }
  if (want_sums)
    sums_store(&l, sums, (lane0 - phase) % KERNEL_LANES);
}

/* The variance of rounding that flushes subnormals has a form of its own, which is left to the scalar kernel. */
INLINE void run_parts(const struct kernel_plan *p, const float *x, float *y, size_t n, uint64_t element0,
                      unsigned lane0, struct kernel_sums *sums, enum grid_kind kind, int random_bits)
{
  if (sums && random_bits && p->flush_below > 0) {
    kernel_scalar(p, x, y, n, element0, lane0, sums);
    return;
  }
  for (size_t done = 0, here; done < n; done += here) {
    here = random_bits ? philox_before_wrap(element0 + done, n - done, random_bits) : n;
    unsigned lane = (unsigned)((lane0 + done) % KERNEL_LANES);
    if (sums)
      run(p, x + done, y + done, here, element0 + done, lane, sums, kind, random_bits, true);
    else
      run(p, x + done, y + done, here, element0 + done, lane, NULL, kind, random_bits, false);
  }
}

#define KERNEL(name, kind, random_bits)                                                                                \
  TARGET static void name(const struct kernel_plan *p, const float *x, float *y, size_t n, uint64_t element0,          \
                          unsigned lane0, struct kernel_sums *sums)                                                    \
  {                                                                                                                    \
    run_parts(p, x, y, n, element0, lane0, sums, kind, random_bits);                                                   \
  }
KERNEL(float_rne, GRID_FLOAT, 0)
KERNEL(float_sr32, GRID_FLOAT, 32)
KERNEL(float_sr16, GRID_FLOAT, 16)
KERNEL(float_sr8, GRID_FLOAT, 8)
KERNEL(wide_rne, GRID_WIDE, 0)
KERNEL(wide_sr32, GRID_WIDE, 32)
KERNEL(wide_sr16, GRID_WIDE, 16)
KERNEL(wide_sr8, GRID_WIDE, 8)
KERNEL(uniform_rne, GRID_UNIFORM, 0)
KERNEL(uniform_sr32, GRID_UNIFORM, 32)
KERNEL(uniform_sr16, GRID_UNIFORM, 16)
KERNEL(uniform_sr8, GRID_UNIFORM, 8)

kernel_fn *kernel_avx512_full(const struct kernel_plan *p)
{
  static kernel_fn *const table[3][4] = {
      {float_rne, float_sr32, float_sr16, float_sr8},
      {wide_rne, wide_sr32, wide_sr16, wide_sr8},
      {uniform_rne, uniform_sr32, uniform_sr16, uniform_sr8},
  };
  int mode = kernel_simd_mode(p), kind = kernel_simd_grid(p);
  return mode < 0 || kind < 0 ? NULL : table[kind][mode];
}

kernel_fn *kernel_avx512(const struct kernel_plan *p)
{
  kernel_fn *full = kernel_avx512_full(p), *lean = full ? kernel_avx512_lean(p, kernel_simd_bits(p)) : NULL;
  return lean ? lean : full;
}

/* The sign bit shifted out, finite magnitudes order as integers. Four maxima hide the latency of one. */
TARGET float kernel_absmax_avx512(const float *x, size_t n, bool *non_finite)
{
  const __m512i abs = _mm512_set1_epi32(0x7fffffff), inf = _mm512_set1_epi32(0x7f800000);
  __m512i max[4] = {_mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512()};
  __mmask16 bad = 0;
  size_t i = 0;
  for (; i + 64 <= n && !bad; i += 64) {
    __m512i a[4];
    for (int v = 0; v < 4; v++)
      a[v] = _mm512_and_si512(_mm512_loadu_si512(x + i + 16 * v), abs);
    __m512i top = _mm512_max_epi32(_mm512_max_epi32(a[0], a[1]), _mm512_max_epi32(a[2], a[3]));
    bad = _mm512_cmpge_epi32_mask(top, inf);
    if (bad)
      break;
    for (int v = 0; v < 4; v++)
      max[v] = _mm512_max_epi32(max[v], a[v]);
  }
  max[0] = _mm512_max_epi32(_mm512_max_epi32(max[0], max[1]), _mm512_max_epi32(max[2], max[3]));
  for (; i < n; i += 16) {
    __m512i a = _mm512_and_si512(_mm512_maskz_loadu_epi32(mask_avx512(0, n, i), x + i), abs);
    __mmask16 finite = _mm512_cmplt_epi32_mask(a, inf);
    bad |= (__mmask16)~finite;
    max[0] = _mm512_mask_max_epi32(max[0], finite, max[0], a);
  }
  if (bad)
    *non_finite = true;
  int top = _mm512_reduce_max_epi32(max[0]);
  float f;
  memcpy(&f, &top, 4);
  return f;
}

#endif
