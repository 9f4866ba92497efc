/* Kernels: runs of consecutive elements rounded to one grid under one scale. A plan holds all that a kernel needs,
 * resolved from a spec, so that no kernel looks at names or tables. kernel_scalar.c defines every result; the SIMD
 * kernels equal it bit for bit.
 *
 * How one element x is rounded (x finite):
 *   t = x / scale in fp32, correctly rounded (x * (1/scale) where the scale is a power of two)
 *   a = |t| as bits; E = its exponent field (1 for subnormals), m = its significand with the hidden bit
 *   Q = exponent field of the quantum: max(E, min_field) - frac_bits for floats, quantum_field for uniform grids
 *   s = Q + 23 - E bits lie below the quantum; i = m >> s; D = the fraction below it in units of 2^-32, truncated;
 *   `sticky` when bits were cut off D (only where s > 32)
 *   up is decided from D, sticky, i and the random integer; the magnitude is (i + up) * 2^(Q-127)
 * then range (max, or codes), sign, and y = value * scale in fp32. */
#ifndef NUMERIC_KERNEL_H
#define NUMERIC_KERNEL_H

#include <stdint.h>

#include "base/rng.h"
#include "numeric/spec.h"

enum { KERNEL_LANES = 16 }; /* partial sums: lane = column in the row mod 16 */

struct kernel_plan {
  /* grid, in units of the scale */
  bool uniform;           /* integers and fixed point (-0 becomes +0); else floating point */
  bool binary;            /* the grid is -1, 1; neither of the above */
  int min_field;          /* floats: emin + 127 */
  int frac_bits;          /* floats */
  int quantum_field;      /* uniform: exponent field of the step */
  float max_value;        /* largest magnitude (floats, symmetric codes) */
  float code_lo, code_hi; /* uniform: range in value units, after the zero point is added */
  float zero_point;
  float overflow;    /* what exceeds max_value becomes: max_value when saturating, else Inf or NaN */
  bool no_neg_zero;  /* fnuz */
  float flush_below; /* subnormals to zero: results of smaller magnitude; 0: keep */
  /* rounding */
  enum rounding rounding;
  int k_bits;     /* random bits that the mode uses, 1..32 */
  uint32_t eps;   /* of the eps modes, in 2^-32 */
  uint32_t shift; /* quasi-random: the tensor's random shift, in 2^-32 */
  uint64_t cols;  /* quasi-random: columns of the matrix */
  /* scale */
  float scale, inv_scale; /* inv_scale: the rounded reciprocal, exact for a power of two */
  bool scale_is_pow2;     /* t = x * inv_scale, no division (NVFP4 multiplies by any inv_scale) */
  /* random numbers */
  struct rng_key key;
  uint64_t step;
  int draw_bits; /* 32, 16 or 8 of the stream an element; 0: deterministic */
};

/* Sums by lane, added to; NULL members are not wanted. var is in units of the scale squared. */
struct kernel_sums {
  float sq[KERNEL_LANES];
  float var[KERNEL_LANES];
};

/* n elements; element0: index of x[0] in the random counter; lane0: its column mod 16. sums may be NULL. */
typedef void kernel_fn(const struct kernel_plan *p, const float *x, float *y, size_t n, uint64_t element0,
                       unsigned lane0, struct kernel_sums *sums);

kernel_fn kernel_scalar;

/* As kernel_scalar() with a scale for each element, divided by; var comes times the scale squared. scale_of may be
 * NULL. */
void kernel_columns(const struct kernel_plan *p, const float *scale_of, const float *x, float *y, size_t n,
                    uint64_t element0, unsigned lane0, struct kernel_sums *sums);

/* One element with a given random integer (k_bits wide): what kernel_scalar() does with the stream's. x is unscaled. */
float kernel_round_one(const struct kernel_plan *p, float x, uint32_t random);

/* max |x| over the finite elements; *non_finite is set when there are others. */
float kernel_absmax(const float *x, size_t n, bool *non_finite);
float kernel_absmax_scalar(const float *x, size_t n, bool *non_finite);

/* Fixed reduction of the lanes: ((0+8)+(4+12)) + ... as a halving tree. */
float kernel_lane_sum(const float lane[KERNEL_LANES]);

/* Resolves a spec for one scale; the spec has passed spec_check(). grid is the element format of blocks. */
void kernel_plan_init(struct kernel_plan *p, const struct spec *s, const struct format *grid, float scale);

/* Another scale for the same plan. */
void kernel_plan_set_scale(struct kernel_plan *p, float scale);

/* The kernel for that plan on this machine. */
kernel_fn *kernel_pick(const struct kernel_plan *p);

#endif
