/* Strings, near misses, and numbers written so that they read back. */
#include "config.h"

#include "base/str.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "tests/tap/tap.h"

static void test_growing(void)
{
  struct str s = {0};
  str_clear(&s);
  str_add(&s, "ab");
  str_addc(&s, 'c');
  str_addn(&s, "defg", 2);
  str_addf(&s, "-%d", 12);
  is_str(s.s, "abcde-12", "pieces in order");
  is_int(s.n, 8, "and the length");
  for (int i = 0; i < 1000; i++)
    str_addf(&s, "%04d", i);
  ok(s.n == 4008 && strlen(s.s) == 4008 && strcmp(s.s + 4004, "0999") == 0, "grows");
  str_clear(&s);
  is_str(s.s, "", "cleared");
  str_done(&s);
  ok(!s.s && s.n == 0, "done");

  char out[4];
  ok(str_copy(out, sizeof out, "abc"), "three letters fit in four bytes");
  ok(!str_copy(out, sizeof out, "abcd"), "four do not");
  is_str(out, "abc", "and are cut");
  ok(str_starts("weight", "wei") && !str_starts("we", "wei") && str_starts("x", ""), "starts");
}

static void test_near(void)
{
  is_int(str_distance("", "abc"), 3, "insert three");
  is_int(str_distance("kitten", "sitting"), 3, "kitten to sitting");
  is_int(str_distance("bist", "bits"), 1, "two neighbours swapped are one edit");
  is_int(str_distance("ca", "abc"), 3, "restricted: a swapped pair is not edited again");
  is_int(str_distance("same", "same"), 0, "the same");
  char longer[201];
  memset(longer, 'x', 200);
  longer[200] = '\0';
  is_int(str_distance(longer, "x"), 200, "very long words are far apart");

  static const char *const knobs[] = {"batch", "bits", "format", "rounding", "lr", "lr_scaling", NULL};
  is_str(str_nearest("bitz", knobs), "bits", "bitz");
  is_str(str_nearest("ronding", knobs), "rounding", "ronding");
  is_str(str_nearest("fromat", knobs), "format", "fromat");
  is_str(str_nearest("bits", knobs), "bits", "the word itself");
  is_str(str_nearest("zebra", knobs), NULL, "nothing is near zebra");
  is_str(str_nearest("x", knobs), NULL, "one letter is near nothing");
}

static void test_si(void)
{
  static const struct {
    double v;
    const char *want;
  } row[] = {
      {0, "0"},          {789, "789"},       {12345, "12.3k"},  {4560000, "4.56M"}, {999.4, "999"},  {999.6, "1k"},
      {999600, "1M"},    {-1500, "-1.5k"},   {0.05, "0.05"},    {0.00123, "0.00123"}, {1.5e-7, "1.5e-7"},
      {2.5e12, "2.5T"},  {1e18, "1.00e18"},  {-INFINITY, "-inf"}, {NAN, "nan"},     {1e-10, "1e-10"},
  };
  char out[16];
  for (size_t i = 0; i < sizeof row / sizeof *row; i++)
    is_str(str_si(row[i].v, out), row[i].want, "SI of %g", row[i].v);
}

static void test_numbers(void)
{
  static const struct {
    double v;
    const char *want;
  } row[] = {
      {0.1, "0.1"},       {-0.0, "-0"},        {1, "1"},           {1e21, "1e+21"},   {1.0 / 3, "0.3333333333333333"},
      {0.30000000000000004, "0.30000000000000004"}, {5e-324, "4.94065645841247e-324"}, {INFINITY, "inf"},
      {-INFINITY, "-inf"}, {NAN, "nan"},       {-NAN, "nan"},      {DBL_MAX, "1.7976931348623157e+308"},
  };
  char out[32];
  for (size_t i = 0; i < sizeof row / sizeof *row; i++)
    is_str(str_double(row[i].v, out), row[i].want, "double %.17g", row[i].v);
  is_str(str_float(0.1f, out), "0.1", "float 0.1");
  is_str(str_float(16777216.0f, out), "16777216", "float 2^24");
  is_str(str_float(1.0f / 3, out), "0.33333334", "float 1/3");

  /* Random bit patterns, all exponents: each must read back as itself. */
  struct rng r;
  rng_init(&r, rng_derive(3, RNG_USER, 0, 0, 0), 0);
  int n_bad = 0, n_long = 0;
  for (int i = 0; i < 50000; i++) {
    uint64_t u = (uint64_t)rng_u32(&r) << 32 | rng_u32(&r);
    double v;
    memcpy(&v, &u, sizeof v);
    if (isfinite(v))
      n_bad += strtod(str_double(v, out), NULL) != v;
    uint32_t w = rng_u32(&r);
    float f;
    memcpy(&f, &w, sizeof f);
    if (isfinite(f))
      n_bad += strtof(str_float(f, out), NULL) != f;
    /* decimals of nine digits are already shortest */
    char given[32];
    strcpy(given, str_double((double)rng_u32(&r) / 1e9, out));
    n_long += strlen(given) > 12;
  }
  is_int(n_bad, 0, "random doubles and floats read back");
  is_int(n_long, 0, "short decimals stay short");
}

int main(void)
{
  test_growing();
  test_near();
  test_si();
  test_numbers();
  return tap_done();
}
