/* Matrix products of row-major fp32 matrices, the three of a linear layer. OpenBLAS is held at one thread for the life
 * of the process; the pool splits the output by a fixed rule of the shape, so the result depends on shape and thread
 * count alone. */
#ifndef TENSOR_GEMM_H
#define TENSOR_GEMM_H

#include "base/pool.h"

enum gemm_op {
  GEMM_NT, /* C[m,n] = alpha A[m,k] B[n,k]^T + beta C : Y = X W^T */
  GEMM_TN, /* C[m,n] = alpha A[k,m]^T B[k,n] + beta C : dW = G^T X / b */
  GEMM_NN, /* C[m,n] = alpha A[m,k] B[k,n] + beta C   : dX = G W */
};

/* Dense leading dimensions. beta 0 does not read C. pool may be NULL. */
void gemm(struct pool *pool, enum gemm_op op, size_t m, size_t n, size_t k, float alpha, const float *a, const float *b,
          float beta, float *c);

/* Holds BLAS at one thread; call once before any product. */
void gemm_init(void);

/* "OpenBLAS 0.3.21 ... SkylakeX", for --version and journal headers. */
const char *gemm_config(void);
const char *gemm_core_type(void);

#endif
