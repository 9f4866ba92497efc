/* Shared by the tests of numeric: bits of floats, formats and specs that must be found, a private random source. */
#ifndef TESTS_NUMERIC_HELPER_H
#define TESTS_NUMERIC_HELPER_H

#include <stdint.h>
#include <string.h>

#include "numeric/kernel.h"
#include "numeric/quantize.h"
#include "../tap/tap.h"

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

static inline const struct format *find_format(const char *name)
{
  struct err e;
  const struct format *f = format_find(name, &e);
  if (!f)
    tap_bail("%s", e.msg);
  return f;
}

/* The same value to the bit; every NaN is the same. */
static inline bool same(float a, float b)
{
  return a != a ? b != b : bits_of(a) == bits_of(b);
}

/* xorshift64* (Vigna 2016): unrelated to the generator under test. */
static inline uint64_t test_random(uint64_t *state)
{
  *state ^= *state >> 12;
  *state ^= *state << 25;
  *state ^= *state >> 27;
  return *state * 0x2545F4914F6CDD1Dull;
}

#endif
