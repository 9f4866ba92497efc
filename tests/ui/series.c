/* Series against the list of all points that went in. */
#include "config.h"

#include "ui/series.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/rng.h"
#include "tests/tap/tap.h"

static void push(struct series *s, double x, double v)
{
  series_push(s, x, v, v, v, isfinite(v), !isfinite(v));
}

struct points {
  size_t n;
  double x[60000], v[60000];
};

/* Noise with rare spikes and NaN, x with gaps. */
static struct points *make_points(size_t n, uint64_t seed)
{
  struct points *p = mem_alloc(sizeof *p);
  struct rng r;
  rng_init(&r, rng_derive(seed, RNG_USER, 0, 0, 0), 0);
  double x = 0;
  for (p->n = 0; p->n < n; p->n++) {
    x += rng_below(&r, 100) == 0 ? 1e4 * rng_uniform(&r) : rng_below(&r, 3);
    p->x[p->n] = x;
    p->v[p->n] = rng_below(&r, 500) == 0    ? (rng_below(&r, 2) ? NAN : INFINITY)
                 : rng_below(&r, 5000) == 0 ? 1e6 * rng_normal(&r)
                                            : rng_normal(&r);
  }
  return p;
}

static struct series_block brute(const struct points *p, double x0, double x1)
{
  struct series_block b = {.min = INFINITY, .max = -INFINITY};
  for (size_t i = 0; i < p->n; i++) {
    if (p->x[i] < x0 || p->x[i] > x1)
      continue;
    if (!isfinite(p->v[i])) {
      b.n_bad++;
      continue;
    }
    b.min = fmin(b.min, p->v[i]);
    b.max = fmax(b.max, p->v[i]);
    b.sum += p->v[i];
    b.n++;
  }
  return b;
}

static bool same_block(struct series_block a, struct series_block b)
{
  return a.n == b.n && a.n_bad == b.n_bad && a.min == b.min && a.max == b.max &&
         fabs(a.sum - b.sum) <= 1e-9 * (1 + fabs(b.sum));
}

static void test_unmerged(void)
{
  struct points *p = make_points(3000, 1);
  struct series *s = series_create(4096);
  struct rng r;
  int wrong = 0;
  rng_init(&r, rng_derive(2, RNG_USER, 0, 0, 0), 0);
  for (size_t i = 0; i < p->n; i++)
    push(s, p->x[i], p->v[i]);
  double top = p->x[p->n - 1];
  for (int i = 0; i < 500; i++) {
    double a = rng_uniform(&r) * top, b = a + rng_uniform(&r) * top / 10;
    wrong += !same_block(series_span(s, a, b), brute(p, a, b));
  }
  is_int(wrong, 0, "500 spans equal brute force while nothing was merged");
  is_int(series_span(s, top + 1, top + 2).n, 0, "nothing after the end");
  is_int(series_span(s, 5, 4).n, 0, "nothing in an empty span");
  series_free(s);
  mem_free(p);
}

static void test_merged(void)
{
  struct points *p = make_points(60000, 3);
  struct series *s = series_create(1000);
  for (size_t i = 0; i < p->n; i++)
    push(s, p->x[i], p->v[i]);
  size_t n = series_n_blocks(s);
  ok(n <= 1000 && n >= 250, "60000 points in %d of 1000 blocks", (int)n);
  double top = p->x[p->n - 1];
  ok(same_block(series_span(s, 0, top), brute(p, 0, top)), "the whole: counts, extremes, sum");
  int wrong = 0, order = 0;
  uint64_t total = 0;
  for (size_t i = 0; i < n; i++) {
    const struct series_block *b = series_block(s, i);
    wrong += !same_block(*b, brute(p, b->x0, b->x1));
    order += i > 0 && b->x0 <= series_block(s, i - 1)->x1;
    total += b->n + b->n_bad;
  }
  is_int(wrong, 0, "every block holds exactly the points between its ends");
  is_int(order, 0, "blocks are apart and in order");
  is_int(total, p->n, "no point is lost");
  int hidden = 0;
  for (int i = 0; i < 200; i++) {
    double a = top * i / 200, b = top * (i + 1) / 200;
    struct series_block got = series_span(s, a, b), want = brute(p, a, b);
    hidden += got.min > want.min || got.max < want.max || got.n < want.n;
  }
  is_int(hidden, 0, "a span never hides an extreme");
  ok(series_find(s, -1) == 0 && series_find(s, top + 1) == n && series_find(s, series_block(s, 7)->x1) == 7,
     "finding blocks");
  ok(series_block(s, n) == NULL, "no block after the last");
  series_free(s);
  mem_free(p);
}

/* The blocks are a function of the points: merging early or late gives the same. */
static void test_history(void)
{
  struct series *a = series_create(64), *b = series_create(64);
  for (int i = 0; i < 100000; i++) {
    push(a, i, sin(i));
    push(b, i, sin(i));
    if (i % 777 == 776) { /* steps that are taken back leave no trace */
      double last = series_block(b, series_n_blocks(b) - 1)->x1;
      series_push(b, last, 1, 1, 1, 0, 0);
    }
  }
  int wrong = series_n_blocks(a) != series_n_blocks(b);
  for (size_t i = 0; !wrong && i < series_n_blocks(a); i++)
    wrong += !same_block(*series_block(a, i), *series_block(b, i));
  is_int(wrong, 0, "empty pushes change nothing");
  double width = 0;
  for (size_t i = 1; i + 1 < series_n_blocks(a); i++) {
    const struct series_block *k = series_block(a, i);
    if (i == 1)
      width = (double)k->n;
    wrong += (double)k->n != width || fmod(k->x0, width) != 0;
  }
  is_int(wrong, 0, "inner blocks are whole bins of one power of two (%g)", width);
  series_free(a);
  series_free(b);
}

static void test_ends(void)
{
  struct series *s = series_create(16);
  ok(isnan(series_last(s)), "no last value of nothing");
  for (int i = 0; i < 1000; i++)
    push(s, i, i + 0.5);
  is_close(series_last(s), 999.5, 0, "last value");
  is_close(series_span(s, 0, 1e9).first, 0.5, 0, "first value of all");
  push(s, 1000, NAN);
  ok(isnan(series_last(s)), "the last value is NaN when the newest point is");
  push(s, 900, 7);
  is_close(series_block(s, series_n_blocks(s) - 1)->x1, 1000, 0, "x that falls counts as the last");
  size_t n = series_n_blocks(s);
  push(s, NAN, 1);
  series_push(s, 2000, 0, 0, 0, 0, 0);
  is_int(series_n_blocks(s), n, "NaN x and empty pushes are dropped");
  series_push(s, 3000, 1, 3, 8, 4, 2);
  struct series_block b = series_span(s, 3000, 3000);
  ok(b.n == 4 && b.n_bad == 2 && b.min == 1 && b.max == 3 && series_last(s) == 2, "a merged push");
  series_push(s, 4000, NAN, 3, 8, 4, 1);
  b = series_span(s, 4000, 4000);
  ok(b.n == 0 && b.n_bad == 5 && isnan(series_mean(&b)), "a merged push without finite ends is all bad");
  series_free(s);
}

static void test_cut(void)
{
  struct series *s = series_create(64);
  int late = 0, lost = 0, wrong = 0;
  for (int round = 0; round < 50; round++) {
    struct series_block last = series_span(s, -1, 1e9);
    for (int i = last.n ? (int)last.x1 + 1 : 0; i < 10000; i++)
      push(s, i, i);
    double at = 197.0 * round;
    series_cut(s, at);
    struct series_block all = series_span(s, -1, 1e9);
    late += all.n > 0 && (all.x1 > at || all.max > at);
    lost += (double)all.n < at + 1 - 2 * 10000.0 / 32;
    wrong += all.n > 0 && all.n != (uint64_t)all.x1 + 1;
  }
  is_int(late, 0, "nothing after the cut stays");
  is_int(lost, 0, "at most a block before it goes");
  is_int(wrong, 0, "the rest is whole");
  series_cut(s, -1);
  is_int(series_n_blocks(s), 0, "all cut");
  push(s, 3, 1);
  is_int(series_span(s, 3, 3).n, 1, "and it starts again");
  series_free(s);
}

static void test_extreme(void)
{
  struct series *s = series_create(8);
  for (int i = 0; i < 100; i++)
    push(s, (i - 50) * (DBL_MAX / 50), i % 2 ? DBL_MAX : DBL_MAX / 2);
  struct series_block all = series_span(s, -DBL_MAX, DBL_MAX);
  ok(all.n == 100 && isfinite(series_mean(&all)) && series_mean(&all) <= DBL_MAX, "the widest x and values");
  series_free(s);
  s = series_create(8);
  for (int i = 0; i < 100; i++)
    push(s, i * 0x1p-1074, 1);
  ok(series_n_blocks(s) <= 8 && series_span(s, 0, 1).n == 100, "subnormal x");
  series_free(s);
}

int main(void)
{
  test_unmerged();
  test_merged();
  test_history();
  test_ends();
  test_cut();
  test_extreme();
  return tap_done();
}
