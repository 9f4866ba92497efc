/* Philox4x32 in AVX-512, for the kernels alone: 32 words at a time, in the order of elements.
 *
 * State runs in 64-bit lanes of which the low half counts: the multiply reads only low halves, so a product's low word
 * needs no masking, and its high word comes down by a shuffle (port 5), not a shift (port 0, which the shifts of the
 * kernels need). Lanes hold blocks 0 4 1 5 2 6 3 7, so that two unpacks leave the words in the order of elements.
 *
 * Within a run only the block's low word changes, so of rounds 0 and 1 all that depends on the rest of the counter is
 * computed once, and round 0's product of the block number grows by a constant: 39 operations for 32 words with seven
 * rounds where the plain sequence takes 50. The caller splits its run where the block's low word wraps. */
#ifndef NUMERIC_PHILOX_AVX512_H
#define NUMERIC_PHILOX_AVX512_H

#include "numeric/lanes_avx512.h"

#define PHILOX_M0 0xD2511F53u
#define PHILOX_M1 0xCD9E8D57u
#define PHILOX_W0 0x9E3779B9u
#define PHILOX_W1 0xBB67AE85u
_Static_assert(RNG_SITE_ROUNDS >= 4, "rounds 0, 1, 2 and the last are written out");

struct philox_avx512 {
  __m512i product;          /* M0 times the low words of the next 8 blocks */
  __m512i x2_1;             /* round 1: what the shuffled product is xored with */
  __m512i x0_2, x2_2, x2_3; /* rounds 2 and 3: the same; round 3's holds word 3 and the key */
  __m512i k0[RNG_SITE_ROUNDS], k1[RNG_SITE_ROUNDS];
};

INLINE_AVX512 void philox_avx512_init(struct philox_avx512 *s, const struct kernel_plan *p, uint64_t block)
{
  uint32_t k0[RNG_SITE_ROUNDS], k1[RNG_SITE_ROUNDS];
  for (uint32_t i = 0; i < RNG_SITE_ROUNDS; i++) {
    k0[i] = p->key.k[0] + i * PHILOX_W0;
    k1[i] = p->key.k[1] + i * PHILOX_W1;
    s->k0[i] = _mm512_set1_epi64(k0[i]);
    s->k1[i] = _mm512_set1_epi64(k1[i]);
  }
  uint32_t c1 = (uint32_t)(block >> 32), c2 = (uint32_t)p->step, c3 = (uint32_t)(p->step >> 32);
  uint64_t p1 = (uint64_t)PHILOX_M1 * c2;
  uint32_t a0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0[0], a1 = (uint32_t)p1; /* words 0 and 1 after round 0 */
  uint64_t p0 = (uint64_t)PHILOX_M0 * a0;
  s->x2_1 = _mm512_set1_epi64(c3 ^ k1[0]);
  s->x0_2 = _mm512_set1_epi64(a1 ^ k0[1]);
  s->x2_2 = _mm512_set1_epi64((uint32_t)(p0 >> 32) ^ k1[1]);
  s->x2_3 = _mm512_set1_epi64((uint32_t)p0 ^ k1[2]);
  __m512i low = _mm512_add_epi64(_mm512_set1_epi64((uint32_t)block), _mm512_set_epi64(7, 3, 6, 2, 5, 1, 4, 0));
  s->product = _mm512_mul_epu32(_mm512_set1_epi64(PHILOX_M0), low);
}

/* The words of the next 8 blocks. */
INLINE_AVX512 void philox_avx512_next(struct philox_avx512 *s, __m512i *w0, __m512i *w1)
{
  const __m512i m0 = _mm512_set1_epi64(PHILOX_M0), m1 = _mm512_set1_epi64(PHILOX_M1);
  __m512i p0 = s->product, p1;
  s->product = _mm512_add_epi64(p0, _mm512_set1_epi64(8 * (long long)PHILOX_M0));
  __m512i c2 = _mm512_xor_si512(_mm512_shuffle_epi32(p0, _MM_PERM_DDBB), s->x2_1);
  /* round 1 */
  p1 = _mm512_mul_epu32(m1, c2);
  __m512i c0 = _mm512_xor_si512(_mm512_shuffle_epi32(p1, _MM_PERM_DDBB), s->x0_2), c1 = p1, c3;
  c2 = _mm512_xor_si512(p0, s->x2_2);
  /* round 2 */
  p0 = _mm512_mul_epu32(m0, c0);
  p1 = _mm512_mul_epu32(m1, c2);
  c0 = _mm512_ternarylogic_epi64(_mm512_shuffle_epi32(p1, _MM_PERM_DDBB), c1, s->k0[2], 0x96);
  c1 = p1;
  c2 = _mm512_xor_si512(_mm512_shuffle_epi32(p0, _MM_PERM_DDBB), s->x2_3);
  c3 = p0;
#pragma GCC unroll 16
  for (int i = 3; i < RNG_SITE_ROUNDS - 1; i++) {
    p0 = _mm512_mul_epu32(m0, c0);
    p1 = _mm512_mul_epu32(m1, c2);
    c0 = _mm512_ternarylogic_epi64(_mm512_shuffle_epi32(p1, _MM_PERM_DDBB), c1, s->k0[i], 0x96);
    c1 = p1;
    c2 = _mm512_ternarylogic_epi64(_mm512_shuffle_epi32(p0, _MM_PERM_DDBB), c3, s->k1[i], 0x96);
    c3 = p0;
  }
  /* the last round puts words 0 and 1, and 2 and 3, side by side: halves change places, the low one is xored */
  p0 = _mm512_mul_epu32(m0, c0);
  p1 = _mm512_mul_epu32(m1, c2);
  __m512i lo = _mm512_mask_ternarylogic_epi32(_mm512_shuffle_epi32(p1, _MM_PERM_CDAB), 0x5555, c1,
                                              s->k0[RNG_SITE_ROUNDS - 1], 0x96);
  __m512i hi = _mm512_mask_ternarylogic_epi32(_mm512_shuffle_epi32(p0, _MM_PERM_CDAB), 0x5555, c3,
                                              s->k1[RNG_SITE_ROUNDS - 1], 0x96);
  *w0 = _mm512_unpacklo_epi64(lo, hi);
  *w1 = _mm512_unpackhi_epi64(lo, hi);
}

/* Random integers of 16 consecutive elements from 64 bytes of words in memory: part v of 32 / random_bits. */
INLINE_AVX512 __m512i random_avx512(int random_bits, const uint32_t *words, int v)
{
  if (random_bits == 16)
    return _mm512_cvtepu16_epi32(_mm256_load_si256((const __m256i *)(const void *)(words + 8 * v)));
  if (random_bits == 8)
    return _mm512_cvtepu8_epi32(_mm_load_si128((const __m128i *)(const void *)(words + 4 * v)));
  return _mm512_load_si512(words);
}

/* How many of n elements from element0 on come before the block's low word wraps. */
static inline size_t philox_before_wrap(uint64_t element0, size_t n, int random_bits)
{
  uint64_t wrap = (uint64_t)1 << 32, per_block = 128u / (unsigned)random_bits, block = element0 / per_block;
  uint64_t left = ((block / wrap + 1) * wrap) * per_block - element0;
  return left < n ? (size_t)left : n;
}

#endif
