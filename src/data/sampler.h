/* The order of training samples: one permutation an epoch, a function of seed and epoch. A batch of any size goes on
 * where the last one ended, and wraps into the next epoch inside a batch. */
#ifndef DATA_SAMPLER_H
#define DATA_SAMPLER_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct sampler;

struct sampler *sampler_create(size_t n_samples, uint64_t seed, struct err *e) ERR_MUST_CHECK;
void sampler_free(struct sampler *s);
void sampler_next(struct sampler *s, size_t n, uint32_t *index);

/* All its state: examples handed out so far. */
uint64_t sampler_position(const struct sampler *s);
void sampler_seek(struct sampler *s, uint64_t position);
uint64_t sampler_epoch(const struct sampler *s); /* whole epochs handed out */

#endif
