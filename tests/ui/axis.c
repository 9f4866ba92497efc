/* Axes: some ranges by hand, then all kinds of doubles at random, with every label read back. */
#include "config.h"

#include "ui/axis.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/str.h"
#include "tests/tap/tap.h"

static const char *labels(struct axis *a, double lo, double hi, bool log, int max, char out[512])
{
  size_t n = 0;
  axis_set(a, lo, hi, log);
  axis_place(a, max);
  out[0] = 0;
  for (int i = 0; i < a->n_ticks; i++)
    n += (size_t)snprintf(out + n, 512 - n, "%s%s", i ? " " : "", a->tick[i].label);
  return out;
}

static void test_labels(void)
{
  static const struct {
    double lo, hi;
    bool log;
    int max;
    const char *want;
  } row[] = {
      {0, 1, false, 6, "0 0.2 0.4 0.6 0.8 1.0"},
      {0, 2.4, false, 4, "0 1 2"},
      {-1, 1, false, 5, "-1.0 -0.5 0 0.5 1.0"},
      {0.31, 0.34, false, 4, "0.31 0.32 0.33 0.34"},
      {0, 6000, false, 4, "0 2000 4000 6000"},
      {0, 60000, false, 4, "0 20k 40k 60k"},
      {0, 1280000, false, 4, "0 0.5M 1.0M"},
      {0, 2.5e9, false, 6, "0 0.5G 1.0G 1.5G 2.0G 2.5G"},
      {1e-5, 8e-5, false, 4, "2e-5 4e-5 6e-5 8e-5"},
      {0, 1.5e-4, false, 4, "0 0.5e-4 1.0e-4 1.5e-4"},
      {1e20, 3e20, false, 3, "1e20 2e20 3e20"},
      {1e-3, 1, true, 4, "1e-3 1e-2 1e-1 1e0"},
      {0.01, 100, true, 5, "0.01 0.1 1 10 100"},
      {0.01, 0.3, true, 5, "0.01 0.02 0.05 0.1 0.2"},
      {1e-30, 1e30, true, 4, "1e-20 1e0 1e20"},
      {1.1, 1.9, true, 5, "1.2 1.4 1.6 1.8"},
      {0x1p-1074, 0x1p-1071, false, 4, "1e-323 2e-323 3e-323 4e-323"},
      {-DBL_MAX, DBL_MAX, false, 4, "-1e308 0 1e308"},
  };
  for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
    struct axis a;
    char got[512];
    is_str(labels(&a, row[i].lo, row[i].hi, row[i].log, row[i].max, got), row[i].want, "%g .. %g%s", row[i].lo,
           row[i].hi, row[i].log ? " log" : "");
  }
  struct axis a;
  char got[512];
  is_str(labels(&a, 1e6, 1e6 + 1e-3, false, 3, got), "0 +0.5e-3 +1.0e-3", "a narrow range: labels relative to");
  is_str(a.offset_label, "1000000", "its offset");
}

static void test_fit(void)
{
  struct axis a;
  axis_fit(&a, 2.303, 2.303, false);
  ok(a.lo < 2.303 && a.hi > 2.303, "a constant has room around it");
  axis_fit(&a, 0, 0, false);
  ok(a.lo < 0 && a.hi > 0, "so has zero");
  axis_fit(&a, DBL_MAX, DBL_MAX, false);
  ok(a.lo < DBL_MAX && a.hi == DBL_MAX, "and the largest double");
  axis_fit(&a, 0x1p-1074, 0x1p-1074, true);
  ok(a.lo < a.hi && a.lo > 0, "and the smallest, on a log axis");
  axis_fit(&a, 0.2, 2.4, false);
  ok(a.lo == 0 && a.hi < 2.7, "from zero where the data nearly reach it");
  axis_fit(&a, INFINITY, -INFINITY, false);
  ok(a.lo == 0 && a.hi == 1, "no data: 0 to 1");
  axis_fit(&a, NAN, NAN, true);
  ok(a.lo == 1 && a.hi == 10, "no data, log: 1 to 10");
  axis_set(&a, 0, 4, false);
  is_close(axis_frac(&a, 1), 0.25, 1e-15, "linear place");
  is_close(axis_frac(&a, INFINITY), 1e6, 0, "far outside is still finite");
  ok(isnan(axis_frac(&a, NAN)), "NaN has no place");
  axis_set(&a, 1e-2, 1e2, true);
  is_close(axis_frac(&a, 10), 0.75, 1e-15, "log place");
  ok(isnan(axis_frac(&a, 0)) && isnan(axis_frac(&a, -1)), "0 has no place on a log axis");
  axis_set(&a, 0, 0x1p-1074 * 8, false);
  is_close(axis_frac(&a, 0x1p-1074 * 2), 0.25, 1e-15, "place among subnormals");
}

static double read_label(const char *label)
{
  char *end;
  double v = strtod(label, &end);
  return v * (*end == 'k' ? 1e3 : *end == 'M' ? 1e6 : *end == 'G' ? 1e9 : *end == 'T' ? 1e12 : *end ? NAN : 1);
}

static double random_double(struct rng *r)
{
  union {
    uint64_t u;
    double d;
  } v;
  do
    v.u = (uint64_t)rng_u32(r) << 32 | rng_u32(r);
  while (!isfinite(v.d));
  return v.d;
}

/* What must hold for every range; returns the first thing that does not. */
static const char *check(double lo, double hi, bool log, int max)
{
  struct axis a;
  axis_fit(&a, lo, hi, log);
  if (!(a.lo <= lo && a.hi >= hi && a.lo < a.hi && isfinite(a.lo) && isfinite(a.hi)))
    return "range";
  if (log && !(a.lo > 0))
    return "log range";
  double f0 = axis_frac(&a, lo), f1 = axis_frac(&a, hi);
  if (!(f0 >= 0 && f1 <= 1 && f0 <= f1))
    return "fraction";
  axis_place(&a, max);
  if (a.n_ticks < 0 || a.n_ticks > max + 1)
    return "number of ticks";
  for (int i = 0; i < a.n_ticks; i++) {
    const struct axis_tick *t = &a.tick[i];
    if (t->v < a.lo || t->v > a.hi || (i > 0 && t->v <= a.tick[i - 1].v))
      return "ticks in order within the range";
    if ((int)strlen(t->label) > a.label_w || a.label_w > 11)
      return "label width";
    if (i > 0 && strcmp(t->label, a.tick[i - 1].label) == 0)
      return "two ticks with one label";
    double read = read_label(t->label) + a.offset;
    if (!(fabs(read / 4 - t->v / 4) <= 1e-9 * (a.hi / 4 - a.lo / 4) + 0x1p-52 * fabs(a.offset) + 0x1p-1073))
      return "label reads back";
  }
  return NULL;
}

static void test_random(void)
{
  struct rng r;
  int n_bad = 0, few = 0, wide = 0;
  rng_init(&r, rng_derive(5, RNG_USER, 0, 0, 0), 0);
  for (int i = 0; i < 60000; i++) {
    double a = random_double(&r), b = random_double(&r);
    if (i % 3 == 1) /* near neighbours */
      b = a * (1 + pow(10, -15 * rng_uniform(&r)));
    else if (i % 3 == 2) { /* everyday numbers */
      a = pow(10, 6 * rng_uniform(&r) - 3);
      b = a * (1 + 10 * rng_uniform(&r));
    }
    bool log = i & 1;
    if (!isfinite(b) || (log && (a == 0 || b == 0)))
      continue;
    double lo = log ? fmin(fabs(a), fabs(b)) : fmin(a, b), hi = log ? fmax(fabs(a), fabs(b)) : fmax(a, b);
    int max = 1 + (int)rng_below(&r, 9);
    const char *wrong = check(lo, hi, log, max);
    if (wrong && n_bad++ < 5)
      tap_note("%s: %.17g .. %.17g log %d max %d", wrong, lo, hi, log, max);
    struct axis x;
    axis_fit(&x, lo, hi, log);
    axis_place(&x, max);
    if (i % 3 == 2 && max >= 3 && x.n_ticks < 2 && few++ < 5)
      tap_note("%d ticks: %.17g .. %.17g log %d max %d", x.n_ticks, lo, hi, log, max);
    if (i % 3 == 2 && x.label_w > 8 && wide++ < 5)
      tap_note("%s: %.17g .. %.17g log %d max %d", x.tick[0].label, lo, hi, log, max);
  }
  is_int(n_bad, 0, "60000 random ranges");
  is_int(few, 0, "with three ticks or more allowed, an everyday range has at least two");
  is_int(wide, 0, "and its labels take at most 8 columns");
}

static void test_number(void)
{
  static const struct {
    double v;
    const char *want;
  } row[] = {{0, "0"},
             {0.5213, "0.5213"},
             {2.30259, "2.303"},
             {-2.30259, "-2.303"},
             {12.3456, "12.35"},
             {9999, "9999"},
             {9999.6, "10.00k"},
             {123456, "123.5k"},
             {0.0263, "0.0263"},
             {0.00451, "4.51e-3"},
             {3.1e-5, "3.10e-5"},
             {1e6, "1.00M"},
             {1e16, "1.00e16"},
             {NAN, "NaN"},
             {INFINITY, "Inf"},
             {-INFINITY, "-Inf"},
             {DBL_MAX, "1.80e308"},
             {0x1p-1074, "4.94e-324"},
             {0.99996, "1.000"}};
  for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
    char out[AXIS_LABEL];
    is_str(axis_number(row[i].v, out), row[i].want, "the number %g", row[i].v);
  }
  struct rng r;
  int wrong = 0;
  rng_init(&r, rng_derive(6, RNG_USER, 0, 0, 0), 0);
  for (int i = 0; i < 100000; i++) {
    char out[AXIS_LABEL];
    double v = i & 1 ? random_double(&r) : pow(10, 24 * rng_uniform(&r) - 6);
    axis_number(v, out);
    wrong += strlen(out) > 10 || !(fabs(read_label(out) / 2 - v / 2) <= 0.006 * fabs(v / 2) + 0x1p-1074);
  }
  is_int(wrong, 0, "100000 random numbers read back to 0.6 %%");
}

int main(void)
{
  test_labels();
  test_fit();
  test_random();
  test_number();
  return tap_done();
}
