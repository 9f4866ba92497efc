/* The shuffling sampler. Its whole state is a position, from which everything else follows. */
#include "config.h"

#include "data/sampler.h"

#include <stdbool.h>

#include "base/mem.h"
#include "base/rng.h"

struct sampler {
  size_t n;
  uint64_t seed, position;
  uint64_t epoch; /* whose permutation `order` holds */
  bool shuffled;  /* `order` holds one */
  uint32_t *order;
};

struct sampler *sampler_create(size_t n_samples, uint64_t seed, struct err *e)
{
  if (n_samples == 0 || n_samples > UINT32_MAX) {
    err_set(e, "cannot sample from %zu examples: 1 to %u are allowed", n_samples, UINT32_MAX);
    return NULL;
  }
  uint32_t *order = mem_buffer(n_samples * sizeof *order, "the order of samples", e);
  if (!order)
    return NULL;
  struct sampler *s = mem_alloc(sizeof *s);
  s->n = n_samples;
  s->seed = seed;
  s->order = order;
  return s;
}

void sampler_free(struct sampler *s)
{
  if (!s)
    return;
  mem_buffer_free(s->order);
  mem_free(s);
}

/* Fisher-Yates from the identity, so that the order depends on seed and epoch alone, not on earlier epochs. */
static void shuffle(struct sampler *s, uint64_t epoch)
{
  struct rng r;
  rng_init(&r, rng_derive(s->seed, RNG_SHUFFLE, 0, 0, 0), epoch);
  for (size_t i = 0; i < s->n; i++)
    s->order[i] = (uint32_t)i;
  for (size_t i = s->n - 1; i > 0; i--) {
    size_t j = rng_below(&r, (uint32_t)(i + 1));
    uint32_t t = s->order[i];
    s->order[i] = s->order[j];
    s->order[j] = t;
  }
  s->epoch = epoch;
  s->shuffled = true;
}

void sampler_next(struct sampler *s, size_t n, uint32_t *index)
{
  for (size_t i = 0; i < n; i++, s->position++) {
    uint64_t epoch = s->position / s->n;
    if (!s->shuffled || epoch != s->epoch)
      shuffle(s, epoch);
    index[i] = s->order[s->position % s->n];
  }
}

uint64_t sampler_position(const struct sampler *s)
{
  return s->position;
}

void sampler_seek(struct sampler *s, uint64_t position)
{
  s->position = position;
}

uint64_t sampler_epoch(const struct sampler *s)
{
  return s->position / s->n;
}
