/* Packing: a matrix stored at its format's width, codes and scales, instead of 4 bytes an element. What unpack() gives
 * is what quantize() gives, to the bit.
 *
 * Layout: for each row its codes, one after another, least significant bit first, each row beginning at a byte; then
 * the scales. Formats of 16 bits or fewer whose scale is one a tensor, row or block. */
#ifndef NUMERIC_PACK_H
#define NUMERIC_PACK_H

#include "numeric/quantize.h"

/* Whether a spec can be packed: not columns, error feedback, or more than 16 bits an element. */
bool pack_possible(const struct spec *s);

/* Bytes that pack() writes. */
size_t pack_bytes(const struct spec *s, size_t rows, size_t cols);

/* quantize() into codes: the same draws, sums, state and info. Returns -1 when an element is a NaN or an Inf that the
 * format cannot hold (it is stored as 0), else 0. out: pack_bytes() bytes, aligned to 4. */
int pack(const struct spec *s, const float *x, size_t rows, size_t cols, const struct quant_rng *rng, void *out,
         const struct quant_sums *sums, struct quant_state *state, struct pool *pool, struct quant_info *info);

void unpack(const struct spec *s, const void *in, size_t rows, size_t cols, float *y, struct pool *pool);

#endif
