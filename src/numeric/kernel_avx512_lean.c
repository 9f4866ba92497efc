/* AVX-512 kernels for the grids that training uses most: saturating floats under a power of two, bf16,
 * and symmetric integers under any scale. The same results as kernel_scalar() in about half the operations of
 * kernel_avx512.c; a plan they do not cover goes there. lean_avx512.h says how they round. */
#include "config.h"

#include "numeric/kernel_simd.h"

#ifdef HAVE_X86_SIMD

#include <math.h>
#include <string.h>

#include "numeric/lean_avx512.h"

#define TARGET TARGET_AVX512
#define INLINE INLINE_AVX512

enum output { OUT_CACHED, OUT_STREAMED, OUT_WITH_SUMS };

INLINE void one_vector(const struct constants *c, enum lean kind, int random_bits, enum output output, bool whole,
                       const float *x, float *y, __mmask16 mask, __m512i r, struct lane_sums *sums)
{
  struct detail d;
  __m512 v = whole ? _mm512_loadu_ps(x) : _mm512_maskz_loadu_ps(mask, x), out;
  if (output == OUT_WITH_SUMS && kind == LEAN_FLOAT)
    out = _mm512_mul_ps(round_vector(c, kind, random_bits, _mm512_mul_ps(v, c->inv), r, &d), c->scale);
  else
    out = round_vector(c, kind, random_bits, v, r, &d);
  if (!whole)
    _mm512_mask_storeu_ps(y, mask, out);
  else if (output == OUT_STREAMED)
    _mm512_stream_ps(y, out);
  else
    _mm512_storeu_ps(y, out);
  if (output != OUT_WITH_SUMS)
    return;
  /* lanes outside the run hold 0, which adds nothing */
  sums->sq = _mm512_add_ps(sums->sq, _mm512_mul_ps(v, v));
  if (random_bits)
    sums->var = _mm512_add_ps(sums->var, variance(c, kind, random_bits, &d));
}

struct loop {
  struct constants c;
  struct philox_avx512 philox;
  struct lane_sums sums;
  size_t begin, end; /* of the run, counted from its first vector */
};

/* The vectors that one call of the generator serves. whole: all of their elements are in the run. */
INLINE void one_chunk(struct loop *l, enum lean kind, int random_bits, enum output output, bool whole, const float *x,
                      float *y, size_t at)
{
  const int per_words = random_bits ? 32 / random_bits : 1;
  _Alignas(64) uint32_t words[32];
  __m512i w[2] = {_mm512_setzero_si512(), _mm512_setzero_si512()};
  if (random_bits)
    philox_avx512_next(&l->philox, &w[0], &w[1]);
  if (random_bits == 16 || random_bits == 8) {
    _mm512_store_si512(words, w[0]);
    _mm512_store_si512(words + 16, w[1]);
    __asm__("" : "+m"(words)); /* to be read back in parts: a load widens for less than a shuffle does */
  }
#pragma GCC unroll 8
  for (int v = 0; v < 2 * per_words; v++) {
    size_t i = at + 16 * (size_t)v;
    __m512i r = random_bits == 32 ? w[v] : w[0];
    if (random_bits == 16 || random_bits == 8)
      r = random_avx512(random_bits, words + 16 * (v / per_words), v % per_words);
    if (whole)
      one_vector(&l->c, kind, random_bits, output, true, x + i, y + i, 0xffff, r, &l->sums);
    else if (i < l->end)
      one_vector(&l->c, kind, random_bits, output, false, x + i, y + i, mask_avx512(l->begin, l->end, i), r, &l->sums);
  }
}

/* As run() in kernel_avx512.c. */
INLINE void run(const struct kernel_plan *p, const float *x, float *y, size_t n, uint64_t element0, unsigned lane0,
                struct kernel_sums *sums, enum lean kind, int random_bits, enum output output)
{
  const size_t chunk = random_bits ? 1024 / (size_t)random_bits : 32;
  const unsigned phase = random_bits ? (unsigned)(element0 % (128u / (unsigned)random_bits)) : 0;
  struct loop l = {.begin = phase, .end = n + phase};
  constants_init(&l.c, p, kind, random_bits, output == OUT_WITH_SUMS);
  if (random_bits)
    philox_avx512_init(&l.philox, p, (element0 - phase) / (128u / (unsigned)random_bits));
  if (output == OUT_WITH_SUMS)
    sums_load(&l.sums, sums, (lane0 - phase) % KERNEL_LANES);
  x -= phase;
  y -= phase;
  size_t at = 0;
  while (at < l.end) { /* whole chunks where they can be; masked ones for what begins or ends inside */
    for (; (at > 0 || phase == 0) && at + chunk <= l.end; at += chunk)
      one_chunk(&l, kind, random_bits, output, true, x, y, at);
    if (at < l.end)
      one_chunk(&l, kind, random_bits, output, false, x, y, at);
    at += chunk;
  }
  if (output == OUT_WITH_SUMS)
    sums_store(&l.sums, sums, (lane0 - phase) % KERNEL_LANES);
  if (output == OUT_STREAMED)
    _mm_sfence();
}

INLINE void run_parts(const struct kernel_plan *p, const float *x, float *y, size_t n, uint64_t element0,
                      unsigned lane0, struct kernel_sums *sums, enum lean kind, int random_bits)
{
  for (size_t done = 0, here; done < n; done += here) {
    const float *from = x + done;
    float *to = y + done;
    uint64_t element = element0 + done;
    here = random_bits ? philox_before_wrap(element, n - done, random_bits) : n;
    unsigned phase = random_bits ? (unsigned)(element % (128u / (unsigned)random_bits)) : 0;
    unsigned lane = (unsigned)((lane0 + done) % KERNEL_LANES);
    bool aligned = (uintptr_t)(to - phase) % 64 == 0;
    if (sums) /* in units of the scale, as the variance is */
      run(p, from, to, here, element, lane, sums, kind == LEAN_SHIFT ? LEAN_DIVIDE : kind, random_bits, OUT_WITH_SUMS);
    else if (here >= STREAM_FROM && aligned && x != y)
      run(p, from, to, here, element, lane, NULL, kind, random_bits, OUT_STREAMED);
    else
      run(p, from, to, here, element, lane, NULL, kind, random_bits, OUT_CACHED);
  }
}

/* bf16 with sums goes to the full kernel. */
#define KERNEL(name, kind, random_bits)                                                                                \
  TARGET static void name(const struct kernel_plan *p, const float *x, float *y, size_t n, uint64_t element0,          \
                          unsigned lane0, struct kernel_sums *sums)                                                    \
  {                                                                                                                    \
    if (sums && kind == LEAN_WIDE)                                                                                     \
      kernel_avx512_full(p)(p, x, y, n, element0, lane0, sums);                                                        \
    else                                                                                                               \
      run_parts(p, x, y, n, element0, lane0, kind == LEAN_WIDE ? NULL : sums, kind, random_bits);                      \
  }
KERNEL(float_rne, LEAN_FLOAT, 0)
KERNEL(float_sr32, LEAN_FLOAT, 32)
KERNEL(float_sr16, LEAN_FLOAT, 16)
KERNEL(float_sr8, LEAN_FLOAT, 8)
KERNEL(wide_rne, LEAN_WIDE, 0)
KERNEL(wide_sr32, LEAN_WIDE, 32)
KERNEL(wide_sr16, LEAN_WIDE, 16)
KERNEL(shift_rne, LEAN_SHIFT, 0)
KERNEL(shift_sr32, LEAN_SHIFT, 32)
KERNEL(shift_sr16, LEAN_SHIFT, 16)
KERNEL(shift_sr8, LEAN_SHIFT, 8)
KERNEL(divide_rne, LEAN_DIVIDE, 0)
KERNEL(divide_sr32, LEAN_DIVIDE, 32)
KERNEL(divide_sr16, LEAN_DIVIDE, 16)
KERNEL(divide_sr8, LEAN_DIVIDE, 8)

/* A real power of two: NVFP4's plans multiply by other numbers. */
static bool scale_shifts(const struct kernel_plan *p)
{
  uint32_t b;
  memcpy(&b, &p->scale, 4);
  return p->scale_is_pow2 && !(b & 0x7fffff) && p->scale > 0 && p->scale * p->inv_scale == 1;
}

/* Whether all powers of two that the arithmetic above multiplies by are normal numbers. */
static bool exponents_fit(const struct kernel_plan *p, float least, float max)
{
  return least * p->scale > 0x1p-60f && max * p->scale < 0x1p60f && least > 0x1p-40f && max < 0x1p40f;
}

int kernel_avx512_lean_kind(const struct kernel_plan *p, int random_bits)
{
  int k = random_bits == 32 ? 0 : random_bits;
  float least = ldexpf(1, (p->uniform ? p->quantum_field : p->min_field) - 127);
  if (p->uniform) {
    bool symmetric = p->zero_point == 0 && p->code_lo == -p->code_hi && p->max_value == p->code_hi;
    /* whole quanta and k bits of fraction, all ones, stay below 2^23 */
    if (!symmetric || p->max_value >= ldexpf(least, 23 - k) || !exponents_fit(p, least, p->max_value))
      return -1;
    return scale_shifts(p) ? LEAN_SHIFT : p->scale_is_pow2 ? -1 : LEAN_DIVIDE;
  }
  if (p->no_neg_zero || p->flush_below > 0 || p->overflow != p->max_value || !scale_shifts(p))
    return -1;
  if (p->min_field == 1)
    return p->frac_bits == 7 && p->scale == 1 && k != 8 ? LEAN_WIDE : -1;
  return p->frac_bits + 1 + k <= 23 && exponents_fit(p, least, p->max_value) ? LEAN_FLOAT : -1;
}

kernel_fn *kernel_avx512_lean(const struct kernel_plan *p, int random_bits)
{
  static kernel_fn *const table[4][4] = {
      {float_rne, float_sr32, float_sr16, float_sr8},
      {wide_rne, wide_sr32, wide_sr16, NULL},
      {shift_rne, shift_sr32, shift_sr16, shift_sr8},
      {divide_rne, divide_sr32, divide_sr16, divide_sr8},
  };
  int kind = kernel_avx512_lean_kind(p, random_bits);
  return kind < 0 ? NULL : table[kind][kernel_simd_mode(p)];
}

#endif
