/* Element-wise work on fp32 vectors and row-major matrices. Every result is independent of the number of threads: sums
 * run over fixed blocks, in a fixed order. pool may be NULL. */
#ifndef TENSOR_VEC_H
#define TENSOR_VEC_H

#include <stdbool.h>
#include <stddef.h>

#include "base/pool.h"

/* y[r][c] += bias[c] */
void vec_add_bias(struct pool *pool, float *y, size_t rows, size_t cols, const float *bias);

/* out[c] = alpha sum_r x[r][c] + beta out[c]; beta 0 does not read out. */
void vec_sum_rows(struct pool *pool, const float *x, size_t rows, size_t cols, float alpha, float beta, float *out);

/* y = a + b, y = x; y may be an operand. */
void vec_add(struct pool *pool, const float *a, const float *b, size_t n, float *y);
void vec_copy(struct pool *pool, const float *x, size_t n, float *y);

/* y = max(x, 0); NaN stays NaN, unlike with fmaxf(). y may be x. */
void vec_relu(struct pool *pool, const float *x, size_t n, float *y);
/* dx = y <= 0 ? 0 : dy, added to dx when `add`. dx may be dy when not. */
void vec_relu_back(struct pool *pool, const float *y, const float *dy, size_t n, bool add, float *dx);

/* sum of x^2: within blocks of 1024 in 16 interleaved fp32 sums, those and the blocks added in double, in order (where
 * n is over 2^20, in up to 1024 parts of whole blocks first). */
double vec_sum_sq(struct pool *pool, const float *x, size_t n);

/* Whether there is no NaN and no Inf. */
bool vec_all_finite(const float *x, size_t n);

#endif
