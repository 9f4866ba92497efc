/* AVX2 and FMA kernels: the plans, the results and the shape of kernel_avx512.c, on eight lanes and with masks that are
 * vectors. Partial sums stand in two halves of eight lanes; a chunk is a multiple of sixteen elements.
 *
 * There is no unsigned conversion and no rounding direction in the instruction, so the 32-bit fraction D is converted
 * in two ranges and compared with the sign bits flipped. */
#include "config.h"

#include "numeric/kernel_simd.h"

#ifdef HAVE_X86_SIMD

#include <immintrin.h>
#include <string.h>

#define TARGET __attribute__((target("avx2,fma")))
#define INLINE TARGET __attribute__((always_inline)) static inline

INLINE __m256i as_int(__m256 x)
{
  return _mm256_castps_si256(x);
}

INLINE __m256 as_float(__m256i x)
{
  return _mm256_castsi256_ps(x);
}

struct philox {
  __m256i block; /* numbers of the next 4 blocks, in lanes 0 2 1 3 */
  __m256i step_lo, step_hi;
  __m256i k0[RNG_SITE_ROUNDS], k1[RNG_SITE_ROUNDS]; /* whole vectors: operands from memory, for want of registers */
};

INLINE void philox_init(struct philox *s, const struct kernel_plan *p, uint64_t block)
{
  for (uint32_t i = 0; i < RNG_SITE_ROUNDS; i++) {
    s->k0[i] = _mm256_set1_epi64x(p->key.k[0] + i * 0x9E3779B9u);
    s->k1[i] = _mm256_set1_epi64x(p->key.k[1] + i * 0xBB67AE85u);
  }
  s->block = _mm256_add_epi64(_mm256_set1_epi64x((long long)block), _mm256_set_epi64x(3, 1, 2, 0));
  s->step_lo = _mm256_set1_epi64x((long long)(p->step & 0xffffffffu));
  s->step_hi = _mm256_set1_epi64x((long long)(p->step >> 32));
}

/* The 16 words of the next 4 blocks; see philox_avx512.h for the layout. */
INLINE void philox_next(struct philox *s, uint32_t words[16])
{
  const __m256i m0 = _mm256_set1_epi64x(0xD2511F53), m1 = _mm256_set1_epi64x(0xCD9E8D57);
  __m256i c0 = s->block, c1 = _mm256_srli_epi64(c0, 32), c2 = s->step_lo, c3 = s->step_hi;
  s->block = _mm256_add_epi64(c0, _mm256_set1_epi64x(4));
#pragma GCC unroll 16
  for (int i = 0; i < RNG_SITE_ROUNDS; i++) {
    __m256i p0 = _mm256_mul_epu32(m0, c0), p1 = _mm256_mul_epu32(m1, c2);
    __m256i x0 = _mm256_xor_si256(c1, s->k0[i]), x2 = _mm256_xor_si256(c3, s->k1[i]);
    c0 = _mm256_xor_si256(_mm256_shuffle_epi32(p1, 0xF5), x0);
    c1 = p1;
    c2 = _mm256_xor_si256(_mm256_shuffle_epi32(p0, 0xF5), x2);
    c3 = p0;
  }
  __m256i lo = _mm256_blend_epi32(c0, _mm256_slli_epi64(c1, 32), 0xAA);
  __m256i hi = _mm256_blend_epi32(c2, _mm256_slli_epi64(c3, 32), 0xAA);
  _mm256_store_si256((__m256i *)(void *)words, _mm256_unpacklo_epi64(lo, hi));
  _mm256_store_si256((__m256i *)(void *)(words + 8), _mm256_unpackhi_epi64(lo, hi));
}

/* Random integers of the eight elements of vector v of a chunk. */
INLINE __m256i random_integers(int random_bits, const uint32_t *words, int v)
{
  if (random_bits == 16)
    return _mm256_cvtepu16_epi32(_mm_load_si128((const __m128i *)(const void *)(words + 4 * v)));
  if (random_bits == 8)
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)(words + 2 * v)));
  return _mm256_load_si256((const __m256i *)(const void *)(words + 8 * v));
}

enum grid_kind { GRID_FLOAT, GRID_WIDE, GRID_UNIFORM }; /* as in kernel_avx512.c */

struct grid {
  __m256i min_field, frac;
  __m256 quantum, per_quantum;
  __m256 max, lo, hi, zero, overflow, flush, scale, inv;
  __m128i drop_count, up_count;
  bool divide, no_neg_zero, flushes;
};

INLINE void grid_init(struct grid *g, const struct kernel_plan *p)
{
  int drop = 23 - p->frac_bits;
  g->min_field = _mm256_set1_epi32(p->min_field << 23);
  g->frac = _mm256_set1_epi32(p->frac_bits << 23);
  g->quantum = as_float(_mm256_set1_epi32(p->quantum_field << 23));
  g->per_quantum = as_float(_mm256_set1_epi32((254 - p->quantum_field) << 23));
  g->max = _mm256_set1_ps(p->max_value);
  g->lo = _mm256_set1_ps(p->code_lo);
  g->hi = _mm256_set1_ps(p->code_hi);
  g->zero = _mm256_set1_ps(p->zero_point);
  g->overflow = _mm256_set1_ps(p->overflow);
  g->flush = _mm256_set1_ps(p->flush_below);
  g->scale = _mm256_set1_ps(p->scale);
  g->inv = _mm256_set1_ps(p->inv_scale);
  g->drop_count = _mm_cvtsi32_si128(drop);
  g->up_count = _mm_cvtsi32_si128(32 - drop);
  g->divide = !p->scale_is_pow2;
  g->no_neg_zero = p->no_neg_zero;
  g->flushes = p->flush_below > 0;
}

INLINE __m256 absolute(__m256 x)
{
  return _mm256_and_ps(x, as_float(_mm256_set1_epi32(0x7fffffff)));
}

/* t = x / scale, correctly rounded: see kernel_avx512.c. */
INLINE __m256 scaled(const struct grid *g, __m256 x)
{
  __m256 q = _mm256_mul_ps(x, g->inv);
  if (!g->divide)
    return q;
  __m256 plain = _mm256_cmp_ps(absolute(q), _mm256_set1_ps(0x1p60f), _CMP_LT_OQ);
  return _mm256_blendv_ps(q, _mm256_fmadd_ps(_mm256_fnmadd_ps(q, g->scale, x), g->inv, q), plain);
}

struct rounded {
  __m256 magnitude;
  __m256 lo, quantum, fraction;
  __m256i kept;
};

/* All ones where d + r >= 2^32, given d with its sign bit flipped. */
INLINE __m256i carries(__m256i flipped_d, __m256i random)
{
  return _mm256_cmpgt_epi32(flipped_d, _mm256_xor_si256(random, _mm256_set1_epi32(0x7fffffff)));
}

INLINE __m256i reaches(__m256i kept, __m256i random, int random_bits)
{
  return _mm256_cmpgt_epi32(_mm256_add_epi32(kept, random), _mm256_set1_epi32((1 << random_bits) - 1));
}

INLINE __m256i goes_up(__m256 fraction, int random_bits, __m256i random, __m256i *kept)
{
  if (random_bits == 32) { /* halves of the range apart: the conversion is signed */
    const __m256 half = _mm256_set1_ps(0.5f);
    __m256 high = _mm256_cmp_ps(fraction, half, _CMP_GE_OQ);
    __m256 rest = _mm256_sub_ps(fraction, _mm256_and_ps(high, half));
    __m256i d = _mm256_cvttps_epi32(_mm256_mul_ps(rest, _mm256_set1_ps(0x1p32f)));
    return carries(_mm256_or_si256(d, _mm256_andnot_si256(as_int(high), _mm256_set1_epi32((int)0x80000000u))), random);
  }
  __m256 k = _mm256_mul_ps(fraction, _mm256_set1_ps(random_bits == 16 ? 0x1p16f : 0x1p8f));
  *kept = _mm256_cvtps_epi32(_mm256_round_ps(k, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  return reaches(*kept, random, random_bits);
}

INLINE struct rounded round_quanta(const struct grid *g, bool uniform, int random_bits, __m256i a, __m256i random)
{
  struct rounded r;
  __m256 per_quantum = g->per_quantum;
  r.quantum = g->quantum;
  if (!uniform) {
    __m256i field = _mm256_and_si256(a, _mm256_set1_epi32(0x7f800000));
    __m256i q = _mm256_sub_epi32(_mm256_max_epu32(field, g->min_field), g->frac);
    q = _mm256_min_epu32(q, _mm256_set1_epi32(253 << 23)); /* see kernel_avx512.c */
    r.quantum = as_float(q);
    per_quantum = as_float(_mm256_sub_epi32(_mm256_set1_epi32(254 << 23), q));
  }
  __m256 u = _mm256_mul_ps(as_float(a), per_quantum);
  if (random_bits == 0) {
    r.magnitude = _mm256_mul_ps(_mm256_round_ps(u, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC), r.quantum);
    return r;
  }
  __m256 whole = _mm256_round_ps(u, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
  r.fraction = _mm256_sub_ps(u, whole);
  r.lo = _mm256_mul_ps(whole, r.quantum);
  __m256i up = goes_up(r.fraction, random_bits, random, &r.kept);
  __m256 one = _mm256_and_ps(as_float(up), _mm256_set1_ps(1));
  r.magnitude = _mm256_mul_ps(_mm256_add_ps(whole, one), r.quantum);
  return r;
}

INLINE struct rounded round_wide(const struct grid *g, int random_bits, __m256i a, __m256i random)
{
  struct rounded r;
  const __m256i one = _mm256_set1_epi32(1), sign = _mm256_set1_epi32((int)0x80000000u);
  __m256i d = _mm256_sll_epi32(a, g->up_count), i = _mm256_srl_epi32(a, g->drop_count);
  __m256i lo = _mm256_sll_epi32(i, g->drop_count), hi = _mm256_sll_epi32(_mm256_add_epi32(i, one), g->drop_count);
  __m256i up;
  if (random_bits == 0) { /* d > half - odd, as signed numbers with the sign flipped */
    up = _mm256_cmpgt_epi32(_mm256_xor_si256(d, sign),
                            _mm256_sub_epi32(_mm256_setzero_si256(), _mm256_and_si256(i, one)));
  } else if (random_bits == 32) {
    up = carries(_mm256_xor_si256(d, sign), random);
  } else {
    __m256i k = _mm256_srli_epi32(d, 32 - random_bits), rest = _mm256_slli_epi32(d, random_bits);
    __m256i carry = _mm256_cmpgt_epi32(_mm256_xor_si256(rest, sign),
                                       _mm256_sub_epi32(_mm256_setzero_si256(), _mm256_and_si256(k, one)));
    r.kept = _mm256_sub_epi32(k, carry);
    up = reaches(r.kept, random, random_bits);
  }
  r.lo = as_float(lo);
  r.quantum = _mm256_sub_ps(as_float(hi), r.lo);
  r.fraction = _mm256_sub_ps(as_float(a), r.lo);
  r.magnitude = _mm256_blendv_ps(as_float(lo), as_float(hi), as_float(up));
  __m256i nan = _mm256_cmpgt_epi32(a, _mm256_set1_epi32(0x7f800000));
  r.magnitude = _mm256_blendv_ps(r.magnitude, as_float(a), as_float(nan));
  return r;
}

INLINE __m256 with_sign(__m256 magnitude, __m256 t)
{
  return _mm256_or_ps(magnitude, _mm256_and_ps(t, as_float(_mm256_set1_epi32((int)0x80000000u))));
}

/* x gives the sign: see kernel_avx512.c. */
INLINE __m256 in_range(const struct grid *g, enum grid_kind kind, __m256 m, __m256 x)
{
  if (kind == GRID_UNIFORM) {
    __m256 v = _mm256_max_ps(g->lo, _mm256_min_ps(g->hi, _mm256_add_ps(with_sign(m, x), g->zero)));
    return _mm256_add_ps(_mm256_sub_ps(v, g->zero), _mm256_setzero_ps());
  }
  if (g->flushes)
    m = _mm256_andnot_ps(_mm256_cmp_ps(m, g->flush, _CMP_LT_OQ), m);
  m = _mm256_blendv_ps(m, g->overflow, _mm256_cmp_ps(m, g->max, _CMP_GT_OQ));
  __m256 y = with_sign(m, x);
  return g->no_neg_zero ? _mm256_andnot_ps(_mm256_cmp_ps(m, _mm256_setzero_ps(), _CMP_EQ_OQ), y) : y;
}

/* Var[q] in units of the scale squared: the operations of the scalar variance in its order. */
INLINE __m256 variance(const struct grid *g, enum grid_kind kind, int random_bits, const struct rounded *r, __m256 t)
{
  __m256 top = g->max, v, q2 = _mm256_mul_ps(r->quantum, r->quantum);
  if (kind == GRID_UNIFORM) /* blendv looks at the sign alone */
    top = _mm256_blendv_ps(_mm256_sub_ps(g->hi, g->zero), _mm256_sub_ps(g->zero, g->lo), t);
  if (random_bits != 32) {
    __m256 p = _mm256_mul_ps(_mm256_cvtepi32_ps(r->kept), _mm256_set1_ps(random_bits == 16 ? 0x1p-16f : 0x1p-8f));
    v = _mm256_mul_ps(_mm256_sub_ps(p, _mm256_mul_ps(p, p)), q2);
  } else if (kind == GRID_WIDE) {
    v = _mm256_mul_ps(r->fraction, _mm256_sub_ps(r->quantum, r->fraction));
  } else {
    v = _mm256_mul_ps(_mm256_mul_ps(r->fraction, _mm256_sub_ps(_mm256_set1_ps(1), r->fraction)), q2);
  }
  return _mm256_and_ps(v, _mm256_cmp_ps(r->lo, top, _CMP_LT_OQ));
}

struct lane_sums {
  __m256 sq[2], var[2];
};

/* mask: all ones in the lanes to take; not looked at where `whole`. */
INLINE void one_vector(const struct grid *g, enum grid_kind kind, int random_bits, bool want_sums, bool whole,
                       const float *x, float *y, __m256i mask, __m256i random, __m256 *sq, __m256 *var)
{
  __m256 v = whole ? _mm256_loadu_ps(x) : _mm256_maskload_ps(x, mask);
  __m256 t = scaled(g, v);
  __m256i a = as_int(absolute(t));
  struct rounded r = kind == GRID_WIDE ? round_wide(g, random_bits, a, random)
                                       : round_quanta(g, kind == GRID_UNIFORM, random_bits, a, random);
  __m256 out = _mm256_mul_ps(in_range(g, kind, r.magnitude, v), g->scale);
  if (whole)
    _mm256_storeu_ps(y, out);
  else
    _mm256_maskstore_ps(y, mask, out);
  if (!want_sums)
    return;
  /* lanes that are not taken hold +0 and add nothing: a sum of squares is never -0 */
  *sq = _mm256_add_ps(*sq, _mm256_mul_ps(v, v));
  if (random_bits)
    *var = _mm256_add_ps(*var, variance(g, kind, random_bits, &r, t));
}

INLINE __m256i mask_of(size_t begin, size_t end, size_t at)
{
  int32_t m[8];
  for (size_t i = 0; i < 8; i++)
    m[i] = at + i >= begin && at + i < end ? -1 : 0;
  return _mm256_loadu_si256((const __m256i *)(const void *)m);
}

INLINE void sums_load(struct lane_sums *l, const struct kernel_sums *s, unsigned first_lane)
{
  float sq[KERNEL_LANES], var[KERNEL_LANES];
  for (unsigned i = 0; i < KERNEL_LANES; i++) {
    sq[i] = s->sq[(first_lane + i) % KERNEL_LANES];
    var[i] = s->var[(first_lane + i) % KERNEL_LANES];
  }
  for (int h = 0; h < 2; h++) {
    l->sq[h] = _mm256_loadu_ps(sq + 8 * h);
    l->var[h] = _mm256_loadu_ps(var + 8 * h);
  }
}

INLINE void sums_store(const struct lane_sums *l, struct kernel_sums *s, unsigned first_lane)
{
  float sq[KERNEL_LANES], var[KERNEL_LANES];
  for (int h = 0; h < 2; h++) {
    _mm256_storeu_ps(sq + 8 * h, l->sq[h]);
    _mm256_storeu_ps(var + 8 * h, l->var[h]);
  }
  for (unsigned i = 0; i < KERNEL_LANES; i++) {
    s->sq[(first_lane + i) % KERNEL_LANES] = sq[i];
    s->var[(first_lane + i) % KERNEL_LANES] = var[i];
  }
}

struct loop {
  struct grid g;
  struct philox philox;
  struct lane_sums sums;
  size_t begin, end; /* of the run, counted from its first vector */
};

/* The vectors that one call of the generator serves. whole: all of their elements are in the run. */
INLINE void one_chunk(struct loop *l, enum grid_kind kind, int random_bits, bool want_sums, bool whole, const float *x,
                      float *y, size_t at)
{
  const int n_vectors = random_bits ? 64 / random_bits : 2;
  _Alignas(32) uint32_t words[16];
  if (random_bits)
    philox_next(&l->philox, words);
#pragma GCC unroll 8
  for (int v = 0; v < n_vectors; v++) {
    size_t i = at + 8 * (size_t)v;
    __m256i r = random_bits ? random_integers(random_bits, words, v) : _mm256_setzero_si256();
    __m256 *sq = &l->sums.sq[v % 2], *var = &l->sums.var[v % 2];
    if (whole)
      one_vector(&l->g, kind, random_bits, want_sums, true, x + i, y + i, r, r, sq, var);
    else if (i < l->end)
      one_vector(&l->g, kind, random_bits, want_sums, false, x + i, y + i, mask_of(l->begin, l->end, i), r, sq, var);
  }
}

/* Vectors stand as in kernel_avx512.c. Whole chunks have a loop of their own, without masks. */
INLINE void run(const struct kernel_plan *p, const float *x, float *y, size_t n, uint64_t element0, unsigned lane0,
                struct kernel_sums *sums, enum grid_kind kind, int random_bits, bool want_sums)
{
  const size_t chunk = random_bits ? 512 / (size_t)random_bits : 16;
  const unsigned phase = random_bits ? (unsigned)(element0 % (128u / (unsigned)random_bits)) : 0;
  struct loop l = {.begin = phase, .end = n + phase};
  grid_init(&l.g, p);
  if (random_bits)
    philox_init(&l.philox, p, (element0 - phase) / (128u / (unsigned)random_bits));
  if (want_sums)
    sums_load(&l.sums, sums, (lane0 - phase) % KERNEL_LANES);
  x -= phase;
  y -= phase;
  size_t at = 0;
  while (at < l.end) {
    for (; (at > 0 || phase == 0) && at + chunk <= l.end; at += chunk)
      one_chunk(&l, kind, random_bits, want_sums, true, x, y, at);
    if (at < l.end)
      one_chunk(&l, kind, random_bits, want_sums, false, x, y, at);
    at += chunk;
  }
  if (want_sums)
    sums_store(&l.sums, sums, (lane0 - phase) % KERNEL_LANES);
}

#define KERNEL(name, kind, random_bits)                                                                                \
  TARGET static void name(const struct kernel_plan *p, const float *x, float *y, size_t n, uint64_t element0,          \
                          unsigned lane0, struct kernel_sums *sums)                                                    \
  {                                                                                                                    \
    if (sums && random_bits && p->flush_below > 0)                                                                     \
      kernel_scalar(p, x, y, n, element0, lane0, sums); /* see kernel_avx512.c */                                      \
    else if (sums)                                                                                                     \
      run(p, x, y, n, element0, lane0, sums, kind, random_bits, true);                                                 \
    else                                                                                                               \
      run(p, x, y, n, element0, lane0, sums, kind, random_bits, false);                                                \
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

kernel_fn *kernel_avx2(const struct kernel_plan *p)
{
  static kernel_fn *const table[3][4] = {
      {float_rne, float_sr32, float_sr16, float_sr8},
      {wide_rne, wide_sr32, wide_sr16, wide_sr8},
      {uniform_rne, uniform_sr32, uniform_sr16, uniform_sr8},
  };
  int mode = kernel_simd_mode(p), kind = kernel_simd_grid(p);
  return mode < 0 || kind < 0 ? NULL : table[kind][mode];
}

TARGET float kernel_absmax_avx2(const float *x, size_t n, bool *non_finite)
{
  const __m256i abs = _mm256_set1_epi32(0x7fffffff), inf = _mm256_set1_epi32(0x7f800000);
  __m256i max[4] = {_mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256()};
  size_t i = 0;
  for (; i + 32 <= n; i += 32)
    for (int v = 0; v < 4; v++) {
      __m256i a = _mm256_and_si256(_mm256_loadu_si256((const __m256i *)(const void *)(x + i + 8 * v)), abs);
      max[v] = _mm256_max_epi32(max[v], a);
    }
  max[0] = _mm256_max_epi32(_mm256_max_epi32(max[0], max[1]), _mm256_max_epi32(max[2], max[3]));
  for (; i < n; i += 8) {
    __m256i a = _mm256_and_si256(as_int(_mm256_maskload_ps(x + i, mask_of(0, n, i))), abs);
    max[0] = _mm256_max_epi32(max[0], a);
  }
  if (_mm256_movemask_epi8(_mm256_cmpgt_epi32(inf, max[0])) != -1)
    return kernel_absmax_scalar(x, n, non_finite); /* something is not finite: rare, and leaves it out */
  int32_t lanes[8], top = 0;
  _mm256_storeu_si256((__m256i *)(void *)lanes, max[0]);
  for (int v = 0; v < 8; v++)
    top = lanes[v] > top ? lanes[v] : top;
  float f;
  memcpy(&f, &top, 4);
  return f;
}

#endif
