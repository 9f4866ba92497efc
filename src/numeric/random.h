/* The random integers of a run of elements: a function of key, step and the element's index alone.
 *
 * Philox4x32-RNG_SITE_ROUNDS; the counter is (block low, block high, step low, step high) and a block serves 128/w
 * elements with w = 32, 16 or 8 bits each, in the order of memory of a little-endian machine. Quasi-random thresholds
 * come the same way, so that a kernel need not know them. */
#ifndef NUMERIC_RANDOM_H
#define NUMERIC_RANDOM_H

#include "numeric/kernel.h"

enum { RANDOM_BUFFER = 256 };

/* out[i]: p->k_bits random bits of element element0 + i; n <= RANDOM_BUFFER. p->draw_bits is not 0. */
void random_fill(const struct kernel_plan *p, uint64_t element0, size_t n, uint32_t *out);

#endif
