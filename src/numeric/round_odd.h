/* double to float, rounded to odd: a later rounding to fewer bits decides as from the double (Boldo, Melquiond 2008).
 */
#ifndef NUMERIC_ROUND_ODD_H
#define NUMERIC_ROUND_ODD_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline float round_to_odd(double v)
{
  float f = (float)v;
  if ((double)f == v || isnan(f))
    return f;
  if (fabs((double)f) > fabs(v)) /* also Inf of a finite number: FLT_MAX, whose last bit is odd */
    f = nextafterf(f, 0);
  uint32_t u;
  memcpy(&u, &f, sizeof u);
  u |= 1;
  memcpy(&f, &u, sizeof f);
  return f;
}

#endif
