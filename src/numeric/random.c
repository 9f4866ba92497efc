/* The random integers of a run of elements. */
#include "config.h"

#include "numeric/random.h"

#include <string.h>

enum { BLOCKS = RANDOM_BUFFER / 4 + 1 };

/* Philox of n consecutive blocks, round by round over all of them: loops that a compiler turns into vectors. */
static void philox_blocks(const struct kernel_plan *p, uint64_t first, size_t n, uint32_t out[BLOCKS][4])
{
  uint32_t c0[BLOCKS], c1[BLOCKS], c2[BLOCKS], c3[BLOCKS], k0 = p->key.k[0], k1 = p->key.k[1];
  for (size_t i = 0; i < n; i++) {
    c0[i] = (uint32_t)(first + i);
    c1[i] = (uint32_t)((first + i) >> 32);
    c2[i] = (uint32_t)p->step;
    c3[i] = (uint32_t)(p->step >> 32);
  }
  for (int r = 0; r < RNG_SITE_ROUNDS; r++) {
    for (size_t i = 0; i < n; i++) {
      uint64_t p0 = (uint64_t)0xD2511F53u * c0[i], p1 = (uint64_t)0xCD9E8D57u * c2[i];
      uint32_t a = (uint32_t)(p1 >> 32) ^ c1[i] ^ k0, b = (uint32_t)(p0 >> 32) ^ c3[i] ^ k1;
      c1[i] = (uint32_t)p1;
      c3[i] = (uint32_t)p0;
      c0[i] = a;
      c2[i] = b;
    }
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  for (size_t i = 0; i < n; i++) {
    out[i][0] = c0[i];
    out[i][1] = c1[i];
    out[i][2] = c2[i];
    out[i][3] = c3[i];
  }
}

/* frac(shift + row a1 + col a2) in 2^-32, a1 and a2 of the R2 sequence (NUMERICS section 3). An element goes up when
 * that is below its fraction; kernels compare fraction + r with 2^32, so r is the complement. */
static void quasi_random(const struct kernel_plan *p, uint64_t element0, size_t n, uint32_t *out)
{
  for (size_t i = 0; i < n; i++) {
    uint32_t row = (uint32_t)((element0 + i) / p->cols), col = (uint32_t)((element0 + i) % p->cols);
    out[i] = ~(p->shift + row * 0xC13FA9A9u + col * 0x91E10DA5u);
  }
}

void random_fill(const struct kernel_plan *p, uint64_t element0, size_t n, uint32_t *out)
{
  if (p->rounding == ROUND_QR) {
    quasi_random(p, element0, n, out);
    return;
  }
  uint32_t words[BLOCKS][4];
  unsigned width = (unsigned)p->draw_bits, per_block = 128 / width;
  uint64_t first = element0 / per_block, last = (element0 + n - 1) / per_block;
  philox_blocks(p, first, (size_t)(last - first) + 1, words);
  size_t at = (size_t)(element0 % per_block);
  uint32_t mask = p->k_bits == 32 ? UINT32_MAX : (1u << p->k_bits) - 1;
  for (size_t i = 0; i < n; i++) {
    size_t bit = (at + i) * width;
    out[i] = words[bit / 128][bit / 32 % 4] >> (bit % 32) & mask;
  }
}
