/* Number formats: one table of named ones, and any `eXmY[kind]` or `intN` by rule. Interned: a pointer is an identity.
 * Definitions: NUMERICS of the documentation; OCP OFP8 and MX v1.0, IEEE 754-2019. */
#ifndef NUMERIC_FORMAT_H
#define NUMERIC_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum format_family {
  FORMAT_FLOAT,   /* sign, exponent, fraction */
  FORMAT_INT,     /* symmetric: -(2^(B-1)-1) .. 2^(B-1)-1 */
  FORMAT_UINT,    /* affine: 0 .. 2^B-1 with a zero point */
  FORMAT_FIXED,   /* q(wl,fl): step 2^-fl, two's complement */
  FORMAT_TERNARY, /* -1 0 1, scaled */
  FORMAT_BINARY,  /* -1 1, scaled */
  FORMAT_BLOCK,   /* MX and NVFP4: elements of another format under a shared scale */
};

enum float_kind {
  FLOAT_IEEE, /* top exponent is Inf and NaN */
  FLOAT_FN,   /* only the all-ones code is NaN; no Inf */
  FLOAT_FIN,  /* every code is finite; always saturates */
  FLOAT_FNUZ, /* the code of -0 is NaN; no Inf, no -0; bias 2^(E-1) */
};

struct format {
  char name[24]; /* canonical, as printed and journalled */
  enum format_family family;
  int total_bits; /* of one element, without shared scales */
  /* floats */
  int exp_bits, frac_bits; /* frac_bits: trailing significand, so precision p = frac_bits + 1 */
  enum float_kind kind;
  int bias, emin, emax;
  double max_finite, min_normal, min_subnormal;
  bool has_inf, has_nan, has_neg_zero;
  /* integers and fixed point: allowed codes; the step is 1, or 2^-fixed_frac_bits */
  int32_t code_min, code_max;
  int fixed_frac_bits;
  /* blocks */
  const struct format *element;
  int block;               /* elements a scale */
  const char *scale_rule;  /* default scale rule's name */
};

/* By canonical name, alias or rule. NULL and a message that lists what is allowed. */
const struct format *format_find(const char *name, struct err *e) ERR_MUST_CHECK;

/* The named ones in the order in which they are listed: 0 .. format_count()-1. */
size_t format_count(void);
const struct format *format_at(size_t i);

const char *format_family_name(enum format_family f);

#endif
