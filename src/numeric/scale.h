/* The scale of a group of numbers, by rule. */
#ifndef NUMERIC_SCALE_H
#define NUMERIC_SCALE_H

#include "numeric/spec.h"

/* What a group's finite elements are like; the rule decides which of these it looks at. */
struct scale_input {
  float absmax;
  float lo, hi; /* min(x, 0) and max(x, 0): uintN alone */
  float absmean;
};

struct scale_result {
  float scale;
  float zero_point; /* uintN alone, else 0 */
};

/* Looks at n elements; sets what the rule needs and *non_finite where an element is NaN or Inf. */
void scale_look(const struct spec *s, const float *x, size_t n, struct scale_input *in, bool *non_finite);
/* Of both together, for all but absmean. */
void scale_merge(struct scale_input *in, const struct scale_input *other);

/* Whether the rule looks at the numbers at all. */
bool scale_needs_input(const struct spec *s);

/* grid: the element format of blocks. Scales are 2^-126 .. 2^127 (block formats: E8M0, 2^-127 .. 2^127); the scale of a
 * group of zeros is 1 (of block formats, 2^-127). NVFP4 has its own code. */
struct scale_result scale_of_group(const struct spec *s, const struct format *grid, const struct scale_input *in);

#endif
