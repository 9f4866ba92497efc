/* Counter-based random numbers: every draw is a function of (seed, stream, tensor, site, draw, step, element), so it
 * depends neither on thread count nor vector width nor on what else runs.
 *
 * Philox4x32 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3. SC'11). The key is derived
 * from (seed, stream, tensor, site, draw) with 10 rounds; the counter is (block of elements, step). */
#ifndef BASE_RNG_H
#define BASE_RNG_H

#include <stddef.h>
#include <stdint.h>

enum rng_stream { /* never renumber: journals depend on it */
  RNG_INIT = 1,    /* initial weights */
  RNG_SHUFFLE = 2, /* order of the samples */
  RNG_SITE = 3,    /* stochastic rounding in training */
  RNG_DATA = 4,    /* synthetic data */
  RNG_PROBE = 5,   /* draws of the full probe: never the training's own */
  RNG_DROPOUT = 6,
  RNG_SAMPLE = 7, /* text generation */
  RNG_USER = 8,
};

/* Rounds of the generator behind stochastic rounding; journalled. 7 rounds pass the same batteries as 10 (SC'11,
 * table 2) and cost a third less; everything that is not per-element work uses 10. */
#define RNG_SITE_ROUNDS 7

struct rng_key {
  uint32_t k[2];
};

struct rng_key rng_derive(uint64_t seed, enum rng_stream stream, uint32_t tensor, uint32_t site, uint32_t draw);

static inline void philox4x32(const uint32_t counter[4], const uint32_t key[2], int n_rounds, uint32_t out[4])
{
  uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
  uint32_t k0 = key[0], k1 = key[1];
  for (int i = 0; i < n_rounds; i++) {
    uint64_t p0 = (uint64_t)0xD2511F53u * c0;
    uint64_t p1 = (uint64_t)0xCD9E8D57u * c2;
    c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
    c1 = (uint32_t)p1;
    c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
    c3 = (uint32_t)p0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  out[0] = c0;
  out[1] = c1;
  out[2] = c2;
  out[3] = c3;
}

/* A sequential reader of one stream for work that is not per element (10 rounds): initial weights, shuffles. */
struct rng {
  struct rng_key key;
  uint64_t block, step;
  uint32_t word[4];
  int n_left;
};
void rng_init(struct rng *r, struct rng_key key, uint64_t step);
uint32_t rng_u32(struct rng *r);
uint32_t rng_below(struct rng *r, uint32_t n); /* uniform in [0, n), without modulo bias; n >= 1 */
double rng_uniform(struct rng *r);             /* [0, 1), 53 bits */
double rng_normal(struct rng *r);              /* Box-Muller; takes two uniforms */

#endif
