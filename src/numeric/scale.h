/* The scale of a group of numbers, by rule. */
#ifndef NUMERIC_SCALE_H
#define NUMERIC_SCALE_H

#include "numeric/spec.h"

/* Scale for a group whose largest finite magnitude is absmax, on the grid of `grid` (the element format of blocks).
 * 1 where absmax is 0. */
float scale_from_absmax(const struct spec *s, const struct format *grid, float absmax);

#endif
