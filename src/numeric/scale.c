/* The scale of a group of numbers, by rule. */
#include "config.h"

#include "numeric/scale.h"

#include <math.h>
#include <string.h>

/* Largest magnitude of the grid at scale 1. */
static float grid_max(const struct format *f)
{
  if (f->family == FORMAT_FLOAT)
    return (float)f->max_finite;
  return ldexpf((float)f->code_max, -f->fixed_frac_bits);
}

static int floor_log2(float x)
{
  int e;
  frexpf(x, &e);
  return e - 1;
}

static float pow2_clamped(int e)
{
  return ldexpf(1, e < -126 ? -126 : e > 127 ? 127 : e);
}

/* Smallest k with absmax <= max * 2^k. */
static int ceil_exponent(float absmax, float max)
{
  int k = floor_log2(absmax) - floor_log2(max);
  while (ldexp(max, k) < absmax)
    k++;
  while (ldexp(max, k - 1) >= absmax)
    k--;
  return k;
}

static float scale_even(const struct format *element, float absmax)
{
  int drop = 23 - element->frac_bits;
  uint32_t u;
  memcpy(&u, &absmax, 4);
  u += (1u << (drop - 1)) - 1 + ((u >> drop) & 1);
  u &= ~((1u << drop) - 1);
  memcpy(&absmax, &u, 4);
  return pow2_clamped(floor_log2(absmax) - element->emax);
}

float scale_from_absmax(const struct spec *s, const struct format *grid, float absmax)
{
  if (s->scale == SCALE_NONE)
    return 1;
  if (s->scale == SCALE_FIXED)
    return s->fixed_scale;
  if (s->clip > 0)
    absmax *= s->clip;
  if (!(absmax > 0))
    return 1;
  float max = grid_max(grid), scale;
  switch (s->scale) {
  case SCALE_POW2:
  case SCALE_RCEIL:
    return pow2_clamped(ceil_exponent(absmax, max));
  case SCALE_FLOOR:
    return pow2_clamped(floor_log2(absmax) - (grid->family == FORMAT_FLOAT ? grid->emax : 0));
  case SCALE_EVEN:
    return scale_even(grid, absmax);
  default:
    scale = absmax / max;
    return scale > 0 ? scale : 1;
  }
}
