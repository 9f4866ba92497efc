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

void kernel_plan_init(struct kernel_plan *p, const struct spec *s, const struct format *grid, float scale)
{
  memset(p, 0, sizeof *p);
  if (grid->family == FORMAT_FLOAT)
    plan_float_grid(p, s, grid);
  else
    plan_uniform_grid(p, grid);
  p->rounding = s->rounding;
  p->scale = scale;
  p->inv_scale = 1 / scale;
  int exponent;
  p->scale_is_pow2 = frexpf(scale, &exponent) == 0.5f && exponent > -125 && exponent < 127;
  int bits = s->random_bits ? s->random_bits : 32;
  p->k_bits = s->rounding == ROUND_SR_EQ ? 1 : s->rounding == ROUND_SR_EPS || s->rounding == ROUND_SIGNED_SR_EPS ? 32 : bits;
  p->draw_bits = p->k_bits > 16 ? 32 : p->k_bits > 8 ? 16 : 8;
  p->eps = s->eps >= 1 ? UINT32_MAX : (uint32_t)(s->eps * 4294967296.0);
  p->cols = 1;
}

