/* The scalar reference of every quantizer: plain C, integer arithmetic on the bits of fp32. Loops are made once for
 * each rounding mode, so that the mode is a constant inside them. */
#include "config.h"

#include "numeric/kernel.h"

#include <math.h>
#include <string.h>

#include "numeric/random.h"

#define INLINE static inline __attribute__((always_inline))

INLINE uint32_t bits_of(float x)
{
  uint32_t u;
  memcpy(&u, &x, 4);
  return u;
}

INLINE float float_of(uint32_t u)
{
  float x;
  memcpy(&x, &u, 4);
  return x;
}

/* |t| split at the quantum. */
struct split {
  uint32_t i;  /* whole quanta */
  uint32_t d;  /* fraction below, in 2^-32, truncated */
  bool sticky; /* bits beyond d */
  int quantum; /* exponent field of the quantum; may be 0 or negative (subnormal in fp32) */
};

INLINE struct split split_at_quantum(const struct kernel_plan *p, uint32_t a)
{
  int field = (int)(a >> 23);
  uint32_t m = (a & 0x7fffff) | (field ? 0x800000 : 0);
  int e = field ? field : 1;
  struct split s = {0};
  s.quantum = p->uniform ? p->quantum_field : (e > p->min_field ? e : p->min_field) - p->frac_bits;
  int below = s.quantum + 23 - e;
  if (below < 0) { /* uniform grids only: a whole number of quanta, above any code when the shift is large */
    s.i = below < -8 ? UINT32_MAX >> 1 : m << -below;
    return s;
  }
  int n = below < 63 ? below : 63;
  uint64_t wide = (uint64_t)m << 32, w = wide >> n;
  s.i = (uint32_t)(w >> 32);
  s.d = (uint32_t)w;
  s.sticky = (wide & ((1ull << n) - 1)) != 0;
  return s;
}

/* D rounded to k bits: 0 .. 2^k, to nearest even. */
INLINE uint64_t fraction_rne(const struct split *s, int k)
{
  if (k == 32)
    return s->d;
  uint32_t jammed = s->d | s->sticky, kept = (uint32_t)((uint64_t)jammed >> (32 - k));
  uint32_t rest = jammed << k, half = 0x80000000u;
  return (uint64_t)kept + (rest > half || (rest == half && (kept & 1)));
}

/* The probability of rounding up, in 2^-k, of the stochastic modes: all compare this + r with 2^k. */
INLINE uint64_t fraction_of(const struct kernel_plan *p, enum rounding mode, const struct split *s)
{
  int k = p->k_bits;
  bool inexact = s->d || s->sticky;
  switch (mode) {
  case ROUND_SR_FF:
    return (uint64_t)s->d >> (32 - k);
  case ROUND_SR_F: { /* floor(d 2^(k+1)) + 2r + 1 >= 2^(k+1) */
    uint64_t fine = k == 32 ? (uint64_t)s->d << 1 : (uint64_t)s->d >> (31 - k);
    return (fine + 1) >> 1;
  }
  case ROUND_SR_EQ:
    return inexact ? 1ull << (k - 1) : 0;
  case ROUND_SR_EPS: {
    uint64_t sum = inexact ? (uint64_t)s->d + p->eps : 0;
    return sum > 1ull << 32 ? 1ull << 32 : sum;
  }
  case ROUND_SIGNED_SR_EPS: /* toward zero on both sides: P(ceil) = f - sign(x) eps */
    return s->d > p->eps ? s->d - p->eps : 0;
  default:
    return fraction_rne(s, k);
  }
}

INLINE bool goes_up(const struct kernel_plan *p, enum rounding mode, const struct split *s, bool negative,
                    uint32_t random)
{
  const uint32_t half = 0x80000000u;
  bool inexact = s->d || s->sticky;
  bool odd = s->i & 1;
  switch (mode) {
  case ROUND_RNE:
    return s->d > half || (s->d == half && (s->sticky || odd));
  case ROUND_RNE_CODE: /* at one significant bit the code's parity is the exponent's, not the significand's */
    if (!p->uniform && p->frac_bits == 0)
      odd = s->i ? (s->quantum - p->min_field + 1) & 1 : 0;
    return s->d > half || (s->d == half && (s->sticky || odd));
  case ROUND_RNA:
    return s->d >= half;
  case ROUND_RTZ:
    return false;
  case ROUND_RU:
    return inexact && !negative;
  case ROUND_RD:
    return inexact && negative;
  case ROUND_RO:
    return inexact && !odd;
  default:
    return fraction_of(p, mode, s) + random >= 1ull << p->k_bits;
  }
}

/* n quanta; exact: n has at most 24 bits and the result is representable. */
INLINE float scale_quanta(uint32_t n, int quantum)
{
  if (quantum >= 1)
    return (float)n * float_of((uint32_t)quantum << 23);
  return (float)n * float_of((uint32_t)(quantum + 64) << 23) * 0x1p-64f;
}

/* Modes that never leave the range upward for finite input (IEEE 754-2019 7.4; ro: see NUMERICS section 3). */
INLINE bool stays_finite(enum rounding mode, bool negative)
{
  return mode == ROUND_RTZ || mode == ROUND_RO || (mode == ROUND_RU && negative) || (mode == ROUND_RD && !negative);
}

INLINE float in_range(const struct kernel_plan *p, enum rounding mode, float magnitude, bool negative)
{
  uint32_t sign = (uint32_t)negative << 31; /* no branch on it: signs are as good as random */
  if (p->uniform) {
    float v = float_of(bits_of(magnitude) | sign) + p->zero_point;
    v = v < p->code_lo ? p->code_lo : v;
    v = v > p->code_hi ? p->code_hi : v;
    return v - p->zero_point + 0.0f;
  }
  if (magnitude < p->flush_below)
    magnitude = 0;
  if (magnitude > p->max_value)
    magnitude = stays_finite(mode, negative) ? p->max_value : p->overflow;
  if (p->no_neg_zero && magnitude == 0)
    return 0;
  return float_of(bits_of(magnitude) | sign);
}

/* Var[q] in units of the scale squared: (t - lo)(hi - t) where P(up) is the fraction, P(1-P)(hi - lo)^2 where it is
 * not. The order of the operations is part of the definition. */
INLINE float variance_of(const struct kernel_plan *p, enum rounding mode, const struct split *s, float t)
{
  float a = fabsf(t), q = scale_quanta(1, s->quantum), lo = scale_quanta(s->i, s->quantum);
  float top = p->uniform ? (t < 0 ? p->zero_point - p->code_lo : p->code_hi - p->zero_point) : p->max_value;
  if (lo >= top)
    return 0;
  if (p->flush_below > 0) {
    float hi = scale_quanta(s->i + 1, s->quantum);
    q = (hi < p->flush_below ? 0 : hi) - (lo < p->flush_below ? 0 : lo);
  }
  if (mode != ROUND_SR || p->k_bits != 32 || p->flush_below > 0) {
    float prob = (float)fraction_of(p, mode, s) * float_of((uint32_t)(127 - p->k_bits) << 23);
    return (prob - prob * prob) * (q * q);
  }
  float below = a - lo;
  if (!p->uniform && p->min_field == 1) /* quanta may be too small to divide by */
    return below * (q - below);
  below *= float_of((uint32_t)(254 - s->quantum) << 23);
  return below * (1 - below) * (q * q);
}

/* One element in units of the scale; *var is added to where wanted. */
INLINE float round_scaled(const struct kernel_plan *p, enum rounding mode, float t, uint32_t random, float *var)
{
  uint32_t b = bits_of(t), a = b & 0x7fffffff;
  bool negative = b >> 31;
  if (a > 0x7f800000)
    return t;
  if (a == 0x7f800000) {
    if (p->uniform)
      return in_range(p, mode, INFINITY, negative);
    return negative ? -p->overflow : p->overflow;
  }
  struct split s = split_at_quantum(p, a);
  if (var)
    *var = variance_of(p, mode, &s, t);
  bool up = goes_up(p, mode, &s, negative, random);
  return in_range(p, mode, scale_quanta(s.i + up, s.quantum), negative);
}

/* Binary: lo = -1, hi = 1, P(hi) = clip((t+1)/2, 0, 1); deterministic is the sign, of zero +1. */
INLINE float round_binary(const struct kernel_plan *p, enum rounding mode, float t, uint32_t random, float *var)
{
  if (isnan(t))
    return t;
  if (!p->draw_bits)
    return t >= 0 ? 1 : -1;
  double u = t >= 1 ? 1 : t <= -1 ? 0 : ((double)t + 1) / 2;
  double wide = u * 4294967296.0;
  struct split s = {.i = u >= 1, .d = u >= 1 ? 0 : (uint32_t)wide};
  s.sticky = u < 1 && wide != s.d;
  if (var && s.i == 0) {
    float prob = (float)fraction_of(p, mode, &s) * float_of((uint32_t)(127 - p->k_bits) << 23);
    *var = (prob - prob * prob) * 4;
  }
  return s.i || fraction_of(p, mode, &s) + random >= 1ull << p->k_bits ? 1 : -1;
}

/* A run of at most RANDOM_BUFFER elements. scale_of: a scale for each element, or NULL for the plan's. */
INLINE void run(const struct kernel_plan *plan, enum rounding mode, bool binary, const float *x, float *y, size_t n,
                const float *scale_of, const uint32_t *random, unsigned lane0, struct kernel_sums *sums)
{
  const struct kernel_plan own = *plan, *p = &own; /* which no store through y can change */
  for (size_t i = 0; i < n; i++) {
    float v = x[i], scale = scale_of ? scale_of[i] : p->scale, var = 0;
    float t = scale_of || !p->scale_is_pow2 ? v / scale : v * p->inv_scale;
    float q = binary ? round_binary(p, mode, t, random[i], sums ? &var : NULL)
                     : round_scaled(p, mode, t, random[i], sums ? &var : NULL);
    if (sums) {
      unsigned lane = (unsigned)(lane0 + i) % KERNEL_LANES;
      sums->sq[lane] += v * v;
      if (p->draw_bits)
        sums->var[lane] += scale_of ? var * scale * scale : var;
    }
    y[i] = q * scale;
  }
}

typedef void run_fn(const struct kernel_plan *p, const float *x, float *y, size_t n, const float *scale_of,
                    const uint32_t *random, unsigned lane0, struct kernel_sums *sums);

#define ROUNDING(id, name, ...)                                                                                        \
  static void run_##id(const struct kernel_plan *p, const float *x, float *y, size_t n, const float *scale_of,         \
                       const uint32_t *random, unsigned lane0, struct kernel_sums *sums)                               \
  {                                                                                                                    \
    if (p->binary)                                                                                                     \
      run(p, ROUND_##id, true, x, y, n, scale_of, random, lane0, sums);                                                \
    else if (sums)                                                                                                     \
      run(p, ROUND_##id, false, x, y, n, scale_of, random, lane0, sums);                                               \
    else if (scale_of)                                                                                                 \
      run(p, ROUND_##id, false, x, y, n, scale_of, random, lane0, NULL);                                               \
    else                                                                                                               \
      run(p, ROUND_##id, false, x, y, n, NULL, random, lane0, NULL);                                                   \
  }
#include "numeric/round.def"
#undef ROUNDING

static run_fn *const runs[ROUND_COUNT] = {
#define ROUNDING(id, name, ...) run_##id,
#include "numeric/round.def"
#undef ROUNDING
};

void kernel_columns(const struct kernel_plan *p, const float *scale_of, const float *x, float *y, size_t n,
                    uint64_t element0, unsigned lane0, struct kernel_sums *sums)
{
  uint32_t random[RANDOM_BUFFER] = {0};
  for (size_t at = 0; at < n; at += RANDOM_BUFFER) {
    size_t here = n - at < RANDOM_BUFFER ? n - at : RANDOM_BUFFER;
    if (p->draw_bits)
      random_fill(p, element0 + at, here, random);
    runs[p->rounding](p, x + at, y + at, here, scale_of ? scale_of + at : NULL, random,
                      (unsigned)((lane0 + at) % KERNEL_LANES), sums);
  }
}

void kernel_scalar(const struct kernel_plan *p, const float *x, float *y, size_t n, uint64_t element0, unsigned lane0,
                   struct kernel_sums *sums)
{
  kernel_columns(p, NULL, x, y, n, element0, lane0, sums);
}

float kernel_round_one(const struct kernel_plan *p, float x, uint32_t random)
{
  float y;
  runs[p->rounding](p, &x, &y, 1, NULL, &random, 0, NULL);
  return y;
}

float kernel_absmax_scalar(const float *x, size_t n, bool *non_finite)
{
  uint32_t max = 0, bad = 0;
  for (size_t i = 0; i < n; i++) {
    uint32_t a = bits_of(x[i]) & 0x7fffffff;
    bool finite = a < 0x7f800000;
    bad |= !finite;
    max = finite && a > max ? a : max;
  }
  if (bad)
    *non_finite = true;
  return float_of(max);
}

float kernel_lane_sum(const float lane[KERNEL_LANES])
{
  float s[KERNEL_LANES];
  memcpy(s, lane, sizeof s);
  for (int half = KERNEL_LANES / 2; half; half /= 2)
    for (int i = 0; i < half; i++)
      s[i] += s[i + half];
  return s[0];
}
