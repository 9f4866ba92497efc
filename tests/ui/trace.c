/* Columns and moving averages against brute force over the points themselves. */
#include "config.h"

#include "ui/trace.h"

#include <math.h>

#include "base/mem.h"
#include "base/rng.h"
#include "tests/tap/tap.h"

static void push(struct series *s, double x, double v)
{
  series_push(s, x, v, v, v, isfinite(v), !isfinite(v));
}

/* Ten million points in 4096 blocks: each column's extremes are those of its points, give or take a block (a 16th of
 * a column here) at its edges. */
static void test_ten_million(void)
{
  enum { N = 10000000, W = 160 };
  struct series *s = series_create(4096);
  static double min[W], max[W], sure_min[W], sure_max[W];
  struct rng r;
  rng_init(&r, rng_derive(1, RNG_USER, 0, 0, 0), 0);
  for (int c = 0; c < W; c++) {
    min[c] = sure_min[c] = INFINITY;
    max[c] = sure_max[c] = -INFINITY;
  }
  double block = 8192; /* the widest bin: 10^7 points in more than 2048 blocks */
  for (int i = 0; i < N; i++) {
    uint32_t u = rng_u32(&r);
    double v = 3 * exp(-i * (3.0 / N)) + (u & 0xFFFF) * 0x1p-16 + (u % 1000003 == 0 ? 50 : 0);
    push(s, i, v);
    double c = (double)i / (N - 1) * (W - 1), d = block / (N - 1) * (W - 1);
    for (int k = (int)lround(c - d); k <= (int)lround(c + d); k++)
      if (k >= 0 && k < W) { /* may be drawn there */
        min[k] = fmin(min[k], v);
        max[k] = fmax(max[k], v);
      }
    int k = (int)lround(c);
    if (lround(c - d) == k && lround(c + d) == k) { /* must be drawn there */
      sure_min[k] = fmin(sure_min[k], v);
      sure_max[k] = fmax(sure_max[k], v);
    }
  }
  struct axis x;
  struct trace t;
  axis_set(&x, 0, N - 1, false);
  trace_init(&t, s, &x, W, 0, false);
  int wrong = 0;
  for (int c = 0; c < W; c++)
    wrong += t.column[c].min < min[c] || t.column[c].max > max[c] || t.column[c].min > sure_min[c] ||
             t.column[c].max < sure_max[c];
  is_int(wrong, 0, "ten million points: the extremes of every column");
  is_int(t.n_points, W, "one point of the line a column");
  wrong = 0;
  for (int c = 1; c < W - 1; c++) {
    double mean = 3 * exp(-3 * (double)c / (W - 1)) + 0.5;
    wrong += fabs(t.point[c].raw - mean) > 0.02; /* 62893 points a column: sd 0.0012 + rare 50s of mean 5e-5, sd 2e-4 */
  }
  is_int(wrong, 0, "and their means");
  ok(series_n_blocks(s) <= 4096, "from %d blocks", (int)series_n_blocks(s));
  trace_done(&t);
  series_free(s);
}

static void test_average(void)
{
  enum { N = 300 };
  struct series *s = series_create(4096);
  struct axis x;
  struct trace t;
  double v[N], d = exp(-1 / 7.0);
  int wrong = 0;
  axis_set(&x, 0, 1000, false);
  for (int i = 0; i < N; i++) {
    v[i] = sin(i * 0.3) + 3;
    push(s, i, v[i]);
  }
  trace_init(&t, s, &x, 1001, 7, false);
  double before[N];
  for (int i = 0; i < N; i++) {
    double sum = 0, weight = 0;
    for (int k = 0; k <= i; k++) {
      sum += pow(d, i - k) * v[k];
      weight += pow(d, i - k);
    }
    wrong += fabs(t.point[i].smooth - sum / weight) > 1e-12 || t.point[i].raw != v[i];
    before[i] = t.point[i].smooth;
  }
  is_int(t.n_points, N, "a point each");
  is_int(wrong, 0, "the average is the debiased sum of all that came before");
  is_close(t.point[0].smooth, v[0], 0, "it starts at the first point");
  trace_done(&t);
  for (int i = N; i < 900; i++)
    push(s, i, 1e3);
  trace_init(&t, s, &x, 1001, 7, false);
  for (int i = 0; i < N; i++)
    wrong += t.point[i].smooth != before[i];
  is_int(wrong, 0, "past points do not move when data arrive");
  trace_done(&t);
  axis_set(&x, 200, 300, false); /* a view into the middle */
  trace_init(&t, s, &x, 101, 7, false);
  for (int i = 0; i < 101; i++)
    wrong += t.point[i + 1].x >= 0 && t.point[i + 1].x < 99.5 && t.point[i + 1].smooth != before[200 + i];
  is_int(wrong, 0, "nor when the view begins later");
  trace_done(&t);
  series_free(s);
  s = series_create(64);
  for (int i = 0; i < 5000; i++)
    push(s, i, 0.1);
  axis_set(&x, 0, 5000, false);
  trace_init(&t, s, &x, 100, 300, false);
  for (int i = 0; i < t.n_points; i++)
    wrong += fabs(t.point[i].smooth - 0.1) > 1e-15;
  is_int(wrong, 0, "a constant stays constant");
  trace_done(&t);
  series_free(s);
  s = series_create(64);
  push(s, 0, 1e-6);
  push(s, 1, 1);
  push(s, 2, -5);
  axis_set(&x, 0, 2, false);
  trace_init(&t, s, &x, 3, 1e9, true);
  is_close(t.point[1].smooth, 1e-3, 1e-9, "on a log axis it is the geometric mean");
  ok(isnan(t.point[2].raw) && t.column[2].is_low, "where a value <= 0 is a break and a sign");
  trace_done(&t);
  series_free(s);
}

static void test_gaps(void)
{
  struct series *s = series_create(64);
  struct axis x;
  struct trace t;
  double lo = INFINITY, hi = -INFINITY;
  for (int i = 0; i < 10; i++)
    push(s, i, i == 4 || i == 5 ? NAN : i);
  axis_set(&x, 0, 9, false);
  trace_init(&t, s, &x, 10, 0, false);
  is_int(t.n_points, 9, "two NaN in a row are one break");
  ok(isnan(t.point[4].raw) && t.point[3].raw == 3 && t.point[5].raw == 6, "between its neighbours");
  ok(t.column[4].is_bad && t.column[5].is_bad && !t.column[3].is_bad, "and are marked");
  trace_done(&t);
  axis_set(&x, 6.2, 6.8, false);
  trace_init(&t, s, &x, 10, 0, false);
  ok(t.n_points == 2 && t.point[0].x < 0 && t.point[1].x > 9, "the line crosses a span without points");
  ok(trace_range(s, &x, false, &lo, &hi) && lo == 6 && hi == 7, "whose range is that of the points around it");
  trace_done(&t);
  lo = INFINITY;
  hi = -INFINITY;
  axis_set(&x, 20, 30, false);
  ok(!trace_range(s, &x, false, &lo, &hi), "nothing after the end");
  series_free(s);
}

int main(void)
{
  test_ten_million();
  test_average();
  test_gaps();
  return tap_done();
}
