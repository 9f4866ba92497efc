/* What the SIMD kernels share: which plans they cover and where they are compiled. */
#ifndef NUMERIC_KERNEL_SIMD_H
#define NUMERIC_KERNEL_SIMD_H

#include "numeric/kernel.h"

/* n elements, whole blocks, whose scales are powers of two by `rule`, found and applied in one pass, no sums. The
 * plan's scale is not looked at. element0 is a multiple of 16. Returns how many elements are done: it stops before a
 * block that it leaves to the caller, and may stop earlier. */
typedef size_t kernel_blocks_fn(const struct kernel_plan *p, enum scale_rule rule, const float *x, float *y, size_t n,
                                uint64_t element0);

/* NULL where there is none for such blocks. */
kernel_blocks_fn *kernel_pick_blocks(const struct kernel_plan *p, enum scale_rule rule, size_t block);

#if defined(__x86_64__) && defined(__GNUC__)
#define HAVE_X86_SIMD 1

/* The kernel of an instruction set for a plan; NULL: not covered. */
kernel_fn *kernel_avx2(const struct kernel_plan *p);
kernel_fn *kernel_avx512(const struct kernel_plan *p);

float kernel_absmax_avx2(const float *x, size_t n, bool *non_finite);
float kernel_absmax_avx512(const float *x, size_t n, bool *non_finite);

kernel_blocks_fn *kernel_blocks_avx512(const struct kernel_plan *p, enum scale_rule rule, size_t block);

/* Parts of kernel_avx512(): every covered plan, and those with a shorter way when no sums are wanted. */
kernel_fn *kernel_avx512_full(const struct kernel_plan *p);
kernel_fn *kernel_avx512_lean(const struct kernel_plan *p, int random_bits); /* 0: to nearest even */
int kernel_avx512_lean_kind(const struct kernel_plan *p, int random_bits);   /* -1: none */
#endif

/* 32, 16 or 8 random bits an element; 0: to nearest even; -1: another mode, which is left to the scalar kernel. */
static inline int kernel_simd_bits(const struct kernel_plan *p)
{
  if (p->rounding == ROUND_RNE)
    return 0;
  if (p->rounding == ROUND_SR && (p->k_bits == 32 || p->k_bits == 16 || p->k_bits == 8))
    return p->k_bits;
  return p->rounding == ROUND_SR_C && (p->k_bits == 16 || p->k_bits == 8) ? p->k_bits : -1;
}

/* Column of a table of kernels: to nearest even, stochastic with 32, 16, 8 bits; -1: not covered. */
static inline int kernel_simd_mode(const struct kernel_plan *p)
{
  int k = kernel_simd_bits(p);
  return k == 0 ? 0 : k == 32 ? 1 : k == 16 ? 2 : k == 8 ? 3 : -1;
}

/* Row of it: floats, floats with fp32's exponents, uniform grids; -1: not covered. */
static inline int kernel_simd_grid(const struct kernel_plan *p)
{
  if (p->binary)
    return -1;
  /* the corrected quotient: the remainder may underflow only where every fraction is 0 */
  if (!p->scale_is_pow2 && !(p->scale > 0x1p-60f && p->scale < 0x1p60f && (p->uniform || p->max_value < 0x1p50f)))
    return -1;
  if (p->uniform)
    return 2;
  if (p->min_field == 1)
    return p->frac_bits >= 1 && p->frac_bits <= 22 ? 1 : -1;
  return p->min_field >= 64 ? 0 : -1;
}

/* Kernels by instruction set, to test them one by one: "scalar", "avx2", "avx512". NULL where the CPU lacks it or it
 * does not cover the plan. */
kernel_fn *kernel_pick_isa(const char *isa, const struct kernel_plan *p);
float kernel_absmax_isa(const char *isa, const float *x, size_t n, bool *non_finite); /* scalar where it is lacked */

#endif
