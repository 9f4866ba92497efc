/* From a spec and a scale to a kernel's plan. */
#include "config.h"

#include <math.h>
#include <string.h>

#include "numeric/kernel.h"

static void plan_float_grid(struct kernel_plan *p, const struct spec *s, const struct format *f)
{
  p->min_field = f->emin + 127;
  p->frac_bits = f->frac_bits;
  p->max_value = (float)f->max_finite;
  p->no_neg_zero = !f->has_neg_zero;
  p->overflow = p->max_value;
  if (s->no_saturate && f->kind != FLOAT_FIN)
    p->overflow = f->has_inf ? INFINITY : NAN;
  if (s->flush)
    p->flush_below = (float)f->min_normal;
}

static void plan_uniform_grid(struct kernel_plan *p, const struct format *f)
{
  p->uniform = true;
  p->quantum_field = 127 - f->fixed_frac_bits;
  float step = ldexpf(1, -f->fixed_frac_bits);
  p->code_lo = (float)f->code_min * step;
  p->code_hi = (float)f->code_max * step;
  p->max_value = p->code_hi;
}

/* The random bits that a mode compares its fraction with. */
static int bits_compared(const struct spec *s)
{
  switch (s->rounding) {
  case ROUND_SR_EQ:
    return 1;
  case ROUND_SR_EPS:
  case ROUND_SIGNED_SR_EPS:
  case ROUND_QR:
    return 32;
  default:
    return s->random_bits ? s->random_bits : 32;
  }
}

void kernel_plan_set_scale(struct kernel_plan *p, float scale)
{
  int e;
  p->scale = scale;
  p->inv_scale = 1 / scale;
  p->scale_is_pow2 = frexpf(scale, &e) == 0.5f && e >= -125 && e <= 127; /* 2^-126 .. 2^126: so is the reciprocal */
}

void kernel_plan_init(struct kernel_plan *p, const struct spec *s, const struct format *grid, float scale)
{
  memset(p, 0, sizeof *p);
  if (grid->family == FORMAT_FLOAT)
    plan_float_grid(p, s, grid);
  else
    plan_uniform_grid(p, grid);
  p->binary = grid->family == FORMAT_BINARY;
  kernel_plan_set_scale(p, scale);
  p->rounding = s->rounding;
  p->k_bits = bits_compared(s);
  if (spec_is_stochastic(s))
    p->draw_bits = p->k_bits > 16 ? 32 : p->k_bits > 8 ? 16 : 8;
  p->eps = s->eps >= 1 ? UINT32_MAX : (uint32_t)((double)s->eps * 4294967296.0);
  p->cols = 1;
}
