/* Quantize: fp32 in, fp32 on the spec's grid out ("simulated"), with the row sums that the gradient instrument needs.
 * A plain scalar reference defines every result; SIMD kernels picked at run time equal it bit for bit. */
#ifndef NUMERIC_QUANTIZE_H
#define NUMERIC_QUANTIZE_H

#include "base/pool.h"
#include "base/rng.h"
#include "numeric/spec.h"

/* Which random numbers a tensor takes. Element (row r, column c) has the index first_element + r*cols + c. */
struct quant_rng {
  struct rng_key key; /* rng_derive(seed, RNG_SITE, tensor, site, draw) */
  uint64_t step;
  uint64_t first_element; /* slot of the first row in the step's global batch, times elements a sample */
};

/* Optional sums, each `rows` long or NULL; computed in fp32 from the unquantized values, in a fixed order. */
struct quant_sums {
  float *row_sq;  /* sum over the row of x^2 */
  float *row_var; /* sum over the row of Var[q(x)] = (x-lo)(hi-x) (THEORY section 0); 0 where rounding is
                     deterministic. The variant modes give P(1-P)(hi-lo)^2. */
};

/* What happened, for status and diagnosis. */
struct quant_info {
  float absmax;    /* of the finite inputs */
  float scale;     /* of the first scaling group */
  bool non_finite; /* a NaN or Inf came in */
};

/* What a spec carries from step to step (delayed scales, error feedback). {0} starts one; quant_state_done() frees. */
struct quant_state {
  float history[16];
  int n_history;
  float *residual; /* error feedback: same length as the tensor */
  size_t n_residual;
};
void quant_state_done(struct quant_state *st);

/* y[r][c] = q(x[r][c]) for a dense row-major rows x cols matrix. y may be x. The spec has passed spec_check().
 * rng may be NULL for deterministic modes; sums, state, pool, info may be NULL. Empty matrices are fine.
 * One pass over the data, plus one for absmax where the scale needs it. */
void quantize(const struct spec *s, const float *x, size_t rows, size_t cols, const struct quant_rng *rng, float *y,
              const struct quant_sums *sums, struct quant_state *state, struct pool *pool, struct quant_info *info);

/* Two independent draws of one read: y[i] is what quantize() gives with rng[i]; neither is x. The sums hold for both.
 * The spec has no error feedback. */
void quantize_two(const struct spec *s, const float *x, size_t rows, size_t cols, const struct quant_rng rng[2],
                  float *const y[2], const struct quant_sums *sums, struct quant_state *state, struct pool *pool,
                  struct quant_info *info);

/* Row sums alone, for sites that pass their values unchanged. */
void quantize_row_sq(const float *x, size_t rows, size_t cols, float *row_sq, struct pool *pool);

/* "scalar", "avx2" or "avx512": what the kernels run on, from the CPU or BITDIAL_ISA. */
const char *quantize_isa(void);

#endif
