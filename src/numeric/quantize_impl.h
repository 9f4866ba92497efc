/* Shared by the driver's parts: quantize() in quantize.c and what happens to a row in quantize_row.c. */
#ifndef NUMERIC_QUANTIZE_IMPL_H
#define NUMERIC_QUANTIZE_IMPL_H

#include <stdatomic.h>

#include "numeric/kernel.h"
#include "numeric/quantize.h"
#include "numeric/scale.h"

enum { MAX_DRAWS = 2 };

/* Where the codes and scales of pack() go. */
struct pack_target {
  uint8_t *codes; /* rows of row_bytes */
  size_t row_bytes;
  uint8_t *group_scales;
  size_t groups_a_row;
  _Atomic bool *non_finite; /* an element was NaN or Inf */
};

struct quant_job {
  const struct spec *spec;
  const struct format *grid; /* of the elements */
  const float *x;
  size_t rows, cols;
  int n_draws;
  float *y[MAX_DRAWS];
  struct quant_rng rng[MAX_DRAWS];
  const struct quant_sums *sums;
  struct kernel_plan plan; /* with the tensor's scale; groups make their own copy */
  kernel_fn *kernel;       /* for that plan */
  size_t group;            /* elements with a scale of their own, along a row; 0: the tensor has one */
  const float *column_scale;
  float nvfp4_amax; /* of the tensor */
  bool nvfp4_exact;
  const struct pack_target *pack; /* codes instead of y; NULL: y */
};

/* All of quantize(), with the job's x, y or pack, spec, shape, draws and sums set. */
void quantize_job(struct quant_job *j, struct quant_state *state, struct pool *pool, struct quant_info *info);

/* A whole row, with its sums where the job wants them. */
void quantize_one_row(const struct quant_job *j, size_t row);

/* n elements from `offset` under the tensor's one scale, no sums. */
void quantize_flat(const struct quant_job *j, size_t offset, size_t n);

/* The plan of the group of n elements at offset; *post: a second factor of the result (NVFP4's tensor scale), else 1.
 */
void quantize_group_plan(const struct quant_job *j, size_t offset, size_t n, struct kernel_plan *p, float *post);

/* Codes of n elements of the row-major tensor from `offset`; y: their values times the plan's scale, nothing else. */
void pack_piece(const struct quant_job *j, const struct kernel_plan *p, const float *y, size_t offset, size_t n);
/* Scale of the group that begins at `offset`. */
void pack_scale(const struct quant_job *j, const struct kernel_plan *p, size_t offset);
void pack_begin_row(const struct quant_job *j, size_t row);

/* Saturating means finite, also where the largest code times the scale overflows fp32: Inf becomes FLT_MAX. */
void quantize_keep_finite(const struct kernel_plan *p, float post, float *y, size_t n);

/* Binary has no zero; a group of zeros gets the scale 0 after its division by 1, so that zeros come out. */
void quantize_silence_zeros(struct kernel_plan *p, const struct scale_input *in);

/* NVFP4 (NUMERICS section 5): E4M3 scale of a block, code and value, and the factors that go with it. */
struct nvfp4_scale {
  float block;  /* E4M3 */
  float tensor; /* amax / 2688 */
  float encode; /* t = x * encode, in fp32 (nvfp4) */
  double exact; /* t = x / exact (nvfp4exact); 0: all zeros */
};
struct nvfp4_scale nvfp4_scale_of(float amax_tensor, float amax_block, bool exact);

#endif
