/* The scale of a group of numbers, by rule (NUMERICS sections 4 and 5). Exponents come from the bits of fp32, never
 * from a logarithm in floating point: log2f() of the number just below a power of two gives the power. */
#include "config.h"

#include "numeric/scale.h"

#include <float.h>
#include <math.h>

#include "numeric/kernel.h"

/* Largest magnitude of the grid at scale 1. */
static double grid_max(const struct format *f)
{
  return f->family == FORMAT_FLOAT ? f->max_finite : ldexp(f->code_max, -f->fixed_frac_bits);
}

static int floor_log2(double x)
{
  int e;
  frexp(x, &e);
  return e - 1;
}

static float pow2_clamped(int e, int lo, int hi)
{
  return ldexpf(1, e < lo ? lo : e > hi ? hi : e);
}

/* Smallest k with absmax <= max * 2^k. */
static int ceil_exponent(double absmax, double max)
{
  int ea, em;
  double fa = frexp(absmax, &ea), fm = frexp(max, &em);
  return ea - em + (fa > fm);
}

/* EVEN: absmax is first rounded to the element's precision, which may carry it into the next binade. */
static int even_exponent(double absmax, const struct format *f)
{
  int frac_bits = f->family == FORMAT_FLOAT ? f->frac_bits : f->total_bits - 2, e;
  double fraction = frexp(absmax, &e); /* in [1/2, 1): frac_bits + 1 bits are kept */
  return e - 1 + (nearbyint(ldexp(fraction, frac_bits + 1)) >= ldexp(1, frac_bits + 1));
}

static float block_scale(const struct spec *s, const struct format *grid, float absmax)
{
  if (!(absmax > 0))
    return 0x1p-127f;
  int emax = floor_log2(grid_max(grid));
  int e = s->scale == SCALE_RCEIL  ? ceil_exponent(absmax, grid_max(grid))
          : s->scale == SCALE_EVEN ? even_exponent(absmax, grid) - emax
                                   : floor_log2(absmax) - emax;
  return pow2_clamped(e, -127, 127);
}

/* Not below 2^-126: where absmax / max is subnormal its rounding error would clip. */
static float not_tiny(double scale)
{
  return scale > (double)FLT_MIN ? (float)scale : FLT_MIN;
}

static float magnitude_scale(const struct spec *s, const struct format *grid, float absmax)
{
  if (!(absmax > 0))
    return 1;
  bool pow2 = s->scale == SCALE_POW2 || (s->scale == SCALE_DELAYED && grid->family == FORMAT_FLOAT);
  if (pow2)
    return pow2_clamped(ceil_exponent(absmax, grid_max(grid)), -126, 126);
  if (s->scale == SCALE_ABSMEAN)
    return not_tiny(absmax); /* the mean itself: codes are -1, 0, 1 of it */
  return not_tiny(absmax / (float)grid_max(grid));
}

/* Affine: s = (hi - lo) / (2^B - 1), z = clamp(round(-lo / s)). */
static struct scale_result affine_scale(const struct spec *s, const struct format *grid, double lo, double hi)
{
  struct scale_result r = {1, 0};
  if (!(hi > lo))
    return r;
  if (s->scale == SCALE_POW2)
    r.scale = pow2_clamped(ceil_exponent(hi - lo, grid->code_max), -126, 126);
  else
    r.scale = not_tiny((hi - lo) / grid->code_max);
  double z = nearbyint(-lo / (double)r.scale);
  r.zero_point = (float)(z > grid->code_max ? grid->code_max : z);
  return r;
}

struct scale_result scale_of_group(const struct spec *s, const struct format *grid, const struct scale_input *in)
{
  float clip = s->clip > 0 ? s->clip : 1;
  if (s->scale == SCALE_NONE || s->scale == SCALE_FIXED)
    return (struct scale_result){s->scale == SCALE_FIXED ? s->fixed_scale : 1, (float)s->zero_point};
  if (grid->family == FORMAT_UINT)
    return affine_scale(s, grid, (double)(clip * in->lo), (double)(clip * in->hi));
  if (s->scale >= SCALE_FLOOR)
    return (struct scale_result){block_scale(s, grid, clip * in->absmax), 0};
  float size = s->scale == SCALE_ABSMEAN ? in->absmean : in->absmax;
  return (struct scale_result){magnitude_scale(s, grid, clip * size), 0};
}

bool scale_needs_input(const struct spec *s)
{
  return s->scale != SCALE_NONE && s->scale != SCALE_FIXED;
}

static void look_range(const float *x, size_t n, struct scale_input *in)
{
  float lo = 0, hi = 0;
  for (size_t i = 0; i < n; i++) {
    float v = fabsf(x[i]) <= FLT_MAX ? x[i] : 0;
    lo = v < lo ? v : lo;
    hi = v > hi ? v : hi;
  }
  in->lo = lo;
  in->hi = hi;
}

/* In double, block by block in a fixed order. */
static float mean_of(const float *x, size_t n)
{
  enum { LANES = 8 };
  double total = 0;
  for (size_t at = 0; at < n; at += 4096) {
    double lane[LANES] = {0};
    size_t end = n - at < 4096 ? n : at + 4096;
    for (size_t i = at; i < end; i++)
      lane[(i - at) % LANES] += fabsf(x[i]) <= FLT_MAX ? (double)fabsf(x[i]) : 0;
    for (int k = 0; k < LANES; k++)
      total += lane[k];
  }
  return n ? (float)(total / (double)n) : 0;
}

void scale_look(const struct spec *s, const float *x, size_t n, struct scale_input *in, bool *non_finite)
{
  *in = (struct scale_input){.absmax = kernel_absmax(x, n, non_finite)};
  if (s->format->family == FORMAT_UINT)
    look_range(x, n, in);
  if (s->scale == SCALE_ABSMEAN)
    in->absmean = mean_of(x, n);
}

void scale_merge(struct scale_input *in, const struct scale_input *other)
{
  in->absmax = other->absmax > in->absmax ? other->absmax : in->absmax;
  in->lo = other->lo < in->lo ? other->lo : in->lo;
  in->hi = other->hi > in->hi ? other->hi : in->hi;
}
