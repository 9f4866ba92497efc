/* Keys of the random streams and the sequential reader. The generator itself is inline in the header, since kernels
 * have their own vector forms of it that must equal it. */
#include "config.h"

#include "base/rng.h"

#include <math.h>

#define READER_ROUNDS 10

struct rng_key rng_derive(uint64_t seed, enum rng_stream stream, uint32_t tensor, uint32_t site, uint32_t draw)
{
  const uint32_t counter[4] = {(uint32_t)stream, tensor, site, draw};
  const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
  uint32_t out[4];
  philox4x32(counter, key, READER_ROUNDS, out);
  return (struct rng_key){{out[0], out[1]}};
}

void rng_init(struct rng *r, struct rng_key key, uint64_t step)
{
  *r = (struct rng){.key = key, .step = step};
}

uint32_t rng_u32(struct rng *r)
{
  if (r->n_left == 0) {
    const uint32_t counter[4] = {(uint32_t)r->block, (uint32_t)(r->block >> 32), (uint32_t)r->step,
                                 (uint32_t)(r->step >> 32)};
    philox4x32(counter, r->key.k, READER_ROUNDS, r->word);
    r->block++;
    r->n_left = 4;
  }
  return r->word[4 - r->n_left--];
}

/* Lemire, Fast random integer generation in an interval, ACM TOMACS 29(1), 2019: the high word of a product, with the
 * few low words that would make some results likelier thrown away. */
uint32_t rng_below(struct rng *r, uint32_t n)
{
  uint64_t m = (uint64_t)rng_u32(r) * n;
  if ((uint32_t)m < n) {
    uint32_t threshold = (0u - n) % n; /* 2^32 mod n */
    while ((uint32_t)m < threshold)
      m = (uint64_t)rng_u32(r) * n;
  }
  return (uint32_t)(m >> 32);
}

double rng_uniform(struct rng *r)
{
  uint64_t low = rng_u32(r), high = rng_u32(r);
  return (double)((high << 32 | low) >> 11) * 0x1p-53;
}

double rng_normal(struct rng *r)
{
  double u = 1.0 - rng_uniform(r); /* (0, 1]: the logarithm is finite */
  double v = rng_uniform(r);
  return sqrt(-2.0 * log(u)) * cos(6.283185307179586477 * v);
}
