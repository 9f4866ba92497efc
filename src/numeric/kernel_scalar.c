/* The scalar reference of every quantizer: plain C, integer arithmetic on the bits of fp32. */
#include "config.h"

#include "numeric/kernel.h"

#include <math.h>
#include <string.h>

static inline uint32_t bits_of(float x)
{
  uint32_t u;
  memcpy(&u, &x, 4);
  return u;
}

static inline float float_of(uint32_t u)
{
  float x;
  memcpy(&x, &u, 4);
  return x;
}

/* |t| split at the quantum. */
struct split {
  uint32_t i;       /* whole quanta */
  uint32_t d;       /* fraction below, in 2^-32, truncated */
  bool sticky;      /* bits beyond d */
  int quantum;      /* exponent field of the quantum; may be 0 or negative (subnormal in fp32) */
};

static struct split split_at_quantum(const struct kernel_plan *p, uint32_t a)
{
  int field = (int)(a >> 23);
  uint32_t m = (a & 0x7fffff) | (field ? 0x800000 : 0);
  int e = field ? field : 1;
  struct split s = {0};
  s.quantum = p->uniform ? p->quantum_field : (e > p->min_field ? e : p->min_field) - p->frac_bits;
  int below = s.quantum + 23 - e;
  if (below <= 0) { /* uniform grids only: a whole number of quanta, far above any code when the shift is large */
    s.i = below < -8 ? UINT32_MAX >> 1 : m << -below;
  } else if (below <= 32) {
    s.i = below < 32 ? m >> below : 0;
    s.d = m << (32 - below);
  } else {
    int cut = below - 32 < 31 ? below - 32 : 31;
    s.d = m >> cut;
    s.sticky = (m & ((1u << cut) - 1)) != 0;
  }
  return s;
}

/* D rounded to k bits: 0 .. 2^k, to nearest even. */
static uint64_t fraction_rne(const struct split *s, int k)
{
  if (k == 32)
    return s->d;
  uint32_t jammed = s->d | s->sticky, kept = (uint32_t)((uint64_t)jammed >> (32 - k));
  uint32_t rest = jammed << k, half = 0x80000000u;
  return (uint64_t)kept + (rest > half || (rest == half && (kept & 1)));
}

/* The probability of rounding up, in 2^-k, of the stochastic modes that compare D + r with 2^k. */
static uint64_t fraction_of(const struct kernel_plan *p, const struct split *s)
{
  int k = p->k_bits;
  switch (p->rounding) {
  case ROUND_SR_FF:
    return (uint64_t)s->d >> (32 - k);
  case ROUND_SR_F: { /* floor(d 2^(k+1)) + 2r + 1 >= 2^(k+1) */
    uint64_t fine = k == 32 ? (uint64_t)s->d << 1 : (uint64_t)s->d >> (31 - k);
    return (fine + 1) >> 1;
  }
  case ROUND_SR_EQ:
    return s->d || s->sticky ? 1ull << (k - 1) : 0;
  case ROUND_SR_EPS: {
    uint64_t sum = (uint64_t)s->d + p->eps;
    return sum > 1ull << 32 ? 1ull << 32 : sum;
  }
  case ROUND_SIGNED_SR_EPS:
    return s->d > p->eps ? s->d - p->eps : 0;
  default:
    return fraction_rne(s, k);
  }
}

static uint32_t quasi_random(const struct kernel_plan *p, uint64_t element)
{
  /* frac(shift + row a1 + col a2) in 2^-32; a1, a2 of the R2 sequence (NUMERICS section 3) */
  uint32_t row = (uint32_t)(element / p->cols), col = (uint32_t)(element % p->cols);
  return p->shift + row * 0xC13FA9A9u + col * 0x91E10DA5u;
}

static bool goes_up(const struct kernel_plan *p, const struct split *s, bool negative, uint32_t random,
                    uint64_t element)
{
  const uint32_t half = 0x80000000u;
  bool inexact = s->d || s->sticky;
  bool odd = s->i & 1;
  switch (p->rounding) {
  case ROUND_RNE:
    return s->d > half || (s->d == half && (s->sticky || odd));
  case ROUND_RNE_CODE: /* at one significant bit the code is the exponent's, not the significand's */
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
  case ROUND_QR:
    return quasi_random(p, element) < s->d;
  default:
    return fraction_of(p, s) + random >= 1ull << p->k_bits;
  }
}

/* n quanta; exact: n has at most 24 bits and the result is representable. */
static float scale_quanta(uint32_t n, int quantum)
{
  if (quantum >= 1)
    return (float)n * float_of((uint32_t)quantum << 23);
  return (float)n * float_of((uint32_t)(quantum + 64) << 23) * 0x1p-64f;
}

/* Modes that never leave the range upward for finite input (IEEE 754-2019 7.4; ro: see NUMERICS section 3). */
static bool stays_finite(enum rounding r, bool negative)
{
  return r == ROUND_RTZ || r == ROUND_RO || (r == ROUND_RU && negative) || (r == ROUND_RD && !negative);
}

static float in_range(const struct kernel_plan *p, float magnitude, bool negative)
{
  if (p->uniform) {
    float v = (negative ? -magnitude : magnitude) + p->zero_point;
    v = v < p->code_lo ? p->code_lo : v > p->code_hi ? p->code_hi : v;
    return v - p->zero_point + 0.0f;
  }
  if (magnitude < p->flush_below)
    magnitude = 0;
  if (magnitude > p->max_value)
    magnitude = stays_finite(p->rounding, negative) ? p->max_value : p->overflow;
  if (magnitude == 0 && p->no_neg_zero)
    return 0;
  return negative ? -magnitude : magnitude;
}

static float round_scaled(const struct kernel_plan *p, float t, uint32_t random, uint64_t element)
{
  uint32_t b = bits_of(t), a = b & 0x7fffffff;
  bool negative = b >> 31;
  if (a > 0x7f800000)
    return t;
  if (a == 0x7f800000) {
    if (p->uniform)
      return in_range(p, INFINITY, negative);
    return negative ? -p->overflow : p->overflow;
  }
  struct split s = split_at_quantum(p, a);
  bool up = goes_up(p, &s, negative, random, element);
  return in_range(p, scale_quanta(s.i + up, s.quantum), negative);
}

/* Var[q] in units of the scale squared: (t - lo)(hi - t) where P(up) is the fraction, P(1-P) q^2 where it is not. The
 * order of the operations is part of the definition. */
static float variance_scaled(const struct kernel_plan *p, float t)
{
  float a = fabsf(t);
  if (!(a < INFINITY))
    return 0;
  struct split s = split_at_quantum(p, bits_of(a));
  float q = scale_quanta(1, s.quantum), lo = scale_quanta(s.i, s.quantum);
  float top = p->uniform ? (t < 0 ? p->zero_point - p->code_lo : p->code_hi - p->zero_point) : p->max_value;
  if (lo >= top)
    return 0;
  if (p->rounding != ROUND_SR || p->k_bits != 32) {
    float prob = (float)fraction_of(p, &s) * float_of((uint32_t)(127 - p->k_bits) << 23);
    return (prob - prob * prob) * (q * q);
  }
  float below = a - lo;
  if (!p->uniform && p->min_field == 1) /* quanta may be too small to divide by */
    return below * (q - below);
  below *= float_of((uint32_t)(254 - s.quantum) << 23);
  return below * (1 - below) * (q * q);
}

static float scaled(const struct kernel_plan *p, float x)
{
  return p->scale_is_pow2 ? x * p->inv_scale : x / p->scale;
}

float kernel_round_one(const struct kernel_plan *p, float x, uint32_t random, uint64_t element)
{
  return round_scaled(p, scaled(p, x), random, element) * p->scale;
}

/* The stream's words, kept for the block under way. */
struct words {
  uint64_t block;
  uint32_t w[4];
};

static uint32_t random_of(const struct kernel_plan *p, struct words *have, uint64_t element)
{
  unsigned per_block = 128u / (unsigned)p->draw_bits, at = (unsigned)(element % per_block);
  uint64_t block = element / per_block;
  if (block != have->block) {
    uint32_t counter[4] = {(uint32_t)block, (uint32_t)(block >> 32), (uint32_t)p->step, (uint32_t)(p->step >> 32)};
    philox4x32(counter, p->key.k, RNG_SITE_ROUNDS, have->w);
    have->block = block;
  }
  unsigned bit = at * (unsigned)p->draw_bits;
  uint32_t r = have->w[bit / 32] >> (bit % 32);
  return p->k_bits == 32 ? r : r & ((1u << p->k_bits) - 1);
}

static bool draws(enum rounding r)
{
  return r >= ROUND_SR && r != ROUND_QR;
}

void kernel_scalar(const struct kernel_plan *p, const float *x, float *y, size_t n, uint64_t element0, unsigned lane0,
                   struct kernel_sums *sums)
{
  struct words have = {.block = UINT64_MAX};
  bool random = draws(p->rounding), stochastic = random || p->rounding == ROUND_QR;
  for (size_t i = 0; i < n; i++) {
    float v = x[i], t = scaled(p, v);
    uint32_t r = random ? random_of(p, &have, element0 + i) : 0;
    if (sums) {
      unsigned lane = (unsigned)(lane0 + i) % KERNEL_LANES;
      sums->sq[lane] += v * v;
      if (stochastic)
        sums->var[lane] += variance_scaled(p, t);
    }
    y[i] = round_scaled(p, t, r, element0 + i) * p->scale;
  }
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
