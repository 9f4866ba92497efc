/* Codes of a format's elements. */
#include "config.h"

#include "numeric/code.h"

#include <math.h>

static float float_value(const struct format *f, uint32_t code)
{
  uint32_t magnitude = code & ((1u << (f->total_bits - 1)) - 1);
  bool negative = code >> (f->total_bits - 1) & 1;
  uint32_t frac = magnitude & ((1u << f->frac_bits) - 1), field = magnitude >> f->frac_bits;
  uint32_t top = (1u << f->exp_bits) - 1;
  if (f->kind == FLOAT_FNUZ && negative && magnitude == 0)
    return NAN;
  if (f->kind == FLOAT_IEEE && field == top)
    return frac ? NAN : negative ? -INFINITY : INFINITY;
  if (f->kind == FLOAT_FN && magnitude == (1u << (f->total_bits - 1)) - 1)
    return NAN;
  double v = field ? ldexp((1u << f->frac_bits) + frac, (int)field - f->bias - f->frac_bits)
                   : ldexp(frac, f->emin - f->frac_bits);
  return (float)(negative ? -v : v);
}

static int32_t sign_extend(uint32_t code, int bits)
{
  uint32_t sign = 1u << (bits - 1);
  return (int32_t)((code & (2 * sign - 1)) ^ sign) - (int32_t)sign;
}

float format_value(const struct format *f, uint32_t code)
{
  switch (f->family) {
  case FORMAT_FLOAT:
    return float_value(f, code);
  case FORMAT_UINT:
    return (float)code;
  case FORMAT_BINARY:
    return code & 1 ? 1.0f : -1.0f;
  default:
    return ldexpf((float)sign_extend(code, f->total_bits), -f->fixed_frac_bits);
  }
}

static uint32_t nan_code(const struct format *f)
{
  uint32_t sign = 1u << (f->total_bits - 1);
  if (f->kind == FLOAT_FNUZ)
    return sign;
  if (f->kind == FLOAT_FN)
    return sign - 1;
  return (((1u << f->exp_bits) - 1) << f->frac_bits) | 1u << (f->frac_bits - 1); /* quiet */
}

static int float_code(const struct format *f, float value, uint32_t *code)
{
  uint32_t sign = signbit(value) ? 1u << (f->total_bits - 1) : 0;
  double a = fabs((double)value);
  if (isnan(value)) {
    *code = f->has_nan ? nan_code(f) : 0;
    return f->has_nan ? 0 : -1;
  }
  if (isinf(value)) {
    *code = f->has_inf ? sign | ((1u << f->exp_bits) - 1) << f->frac_bits : 0;
    return f->has_inf ? 0 : -1;
  }
  int e = a < f->min_normal ? f->emin : ilogb(a);
  uint32_t m = (uint32_t)ldexp(a, f->frac_bits - e); /* with the hidden bit, where there is one */
  *code = a < f->min_normal ? m : m + ((uint32_t)(e - f->emin) << f->frac_bits);
  if (*code || f->has_neg_zero)
    *code |= sign;
  return 0;
}

int format_code(const struct format *f, float value, uint32_t *code)
{
  if (f->family == FORMAT_FLOAT)
    return float_code(f, value, code);
  *code = 0;
  if (!isfinite(value))
    return -1;
  int32_t v = (int32_t)ldexpf(value, f->fixed_frac_bits);
  *code = f->family == FORMAT_BINARY ? v > 0 : (uint32_t)v & ((1u << f->total_bits) - 1);
  return 0;
}

bool format_code_used(const struct format *f, uint32_t code)
{
  if (f->family == FORMAT_FLOAT || f->family == FORMAT_UINT || f->family == FORMAT_BINARY)
    return true;
  return sign_extend(code, f->total_bits) >= f->code_min;
}
