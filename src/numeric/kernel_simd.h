/* What the SIMD kernels share: which plans they cover and where they are compiled. */
#ifndef NUMERIC_KERNEL_SIMD_H
#define NUMERIC_KERNEL_SIMD_H

#include "numeric/kernel.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define HAVE_X86_SIMD 1
kernel_fn *kernel_avx512(const struct kernel_plan *p); /* NULL: not covered */
float kernel_absmax_avx512(const float *x, size_t n, bool *non_finite);
#endif

#endif
