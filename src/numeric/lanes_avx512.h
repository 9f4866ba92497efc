/* Lanes of AVX-512 vectors: which of them belong to a run, and the partial sums by column. */
#ifndef NUMERIC_LANES_AVX512_H
#define NUMERIC_LANES_AVX512_H

#include <immintrin.h>

#include "numeric/kernel.h"

#define TARGET_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))
#define INLINE_AVX512 TARGET_AVX512 __attribute__((always_inline)) static inline

/* Lanes of the vector at `at` that lie in begin .. end-1. */
INLINE_AVX512 __mmask16 mask_avx512(size_t begin, size_t end, size_t at)
{
  __mmask16 m = 0xffff;
  if (at < begin)
    m = (__mmask16)(m << (begin - at));
  if (at + 16 > end)
    m &= (__mmask16)(0xffffu >> (at + 16 - end));
  return m;
}

struct lane_sums {
  __m512 sq, var;
};

/* first_lane: that of the first lane of a run's vectors, which may begin before the run. */
INLINE_AVX512 void sums_load(struct lane_sums *l, const struct kernel_sums *s, unsigned first_lane)
{
  float sq[KERNEL_LANES], var[KERNEL_LANES];
  for (unsigned i = 0; i < KERNEL_LANES; i++) {
    sq[i] = s->sq[(first_lane + i) % KERNEL_LANES];
    var[i] = s->var[(first_lane + i) % KERNEL_LANES];
  }
  l->sq = _mm512_loadu_ps(sq);
  l->var = _mm512_loadu_ps(var);
}

INLINE_AVX512 void sums_store(const struct lane_sums *l, struct kernel_sums *s, unsigned first_lane)
{
  float sq[KERNEL_LANES], var[KERNEL_LANES];
  _mm512_storeu_ps(sq, l->sq);
  _mm512_storeu_ps(var, l->var);
  for (unsigned i = 0; i < KERNEL_LANES; i++) {
    s->sq[(first_lane + i) % KERNEL_LANES] = sq[i];
    s->var[(first_lane + i) % KERNEL_LANES] = var[i];
  }
}

#endif
