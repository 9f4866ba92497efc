/* Series in constant memory. A block covers one bin floor(x / width) of x; width starts at 0 (a block for every x) and
 * becomes the power of two that leaves at most half the blocks when they are full. Bins of doubled width are unions of
 * two old ones, so the blocks depend on the points alone, not on when they were merged. Empty bins take no block. */
#include "config.h"

#include "ui/series.h"

#include <math.h>
#include <stdbool.h>

#include "base/mem.h"

struct series {
  size_t n, max;
  double width; /* of a bin; 0: every x has its own */
  struct series_block block[];
};

struct series *series_create(size_t max_blocks)
{
  max_blocks = max_blocks < 4 ? 4 : max_blocks;
  struct series *s = mem_alloc(sizeof *s + max_blocks * sizeof *s->block);
  s->max = max_blocks;
  return s;
}

void series_free(struct series *s)
{
  mem_free(s);
}

static const struct series_block empty = {.min = INFINITY, .max = -INFINITY, .first = NAN, .last = NAN};

/* Block ends are never NaN; fmin() and fmax(), which care, are library calls. */
static double least(double a, double b)
{
  return b < a ? b : a;
}

static double most(double a, double b)
{
  return b > a ? b : a;
}

/* b's points come after a's. */
static void merge(struct series_block *a, const struct series_block *b)
{
  if (a->n + a->n_bad == 0) {
    *a = *b;
    return;
  }
  a->x1 = b->x1;
  a->min = least(a->min, b->min);
  a->max = most(a->max, b->max);
  a->sum += b->sum;
  a->n += b->n;
  a->n_bad += b->n_bad;
  a->last = b->last;
}

static bool same_bin(double a, double b, double width)
{
  return a == b || (width > 0 && floor(a / width) == floor(b / width));
}

static size_t count_bins(const struct series *s, double width)
{
  size_t n = 1;
  for (size_t i = 1; i < s->n; i++)
    n += !same_bin(s->block[i - 1].x0, s->block[i].x0, width);
  return n;
}

/* The smallest power of two that halves the blocks. The first one tried is just above the smallest gap. */
static double wider(const struct series *s)
{
  double width = s->width * 2;
  if (width == 0) {
    double gap = INFINITY;
    for (size_t i = 1; i < s->n; i++)
      gap = fmin(gap, s->block[i].x0 - s->block[i - 1].x0);
    int e;
    frexp(gap, &e); /* x does not fall and equal ones share a block, so gap > 0 */
    width = isfinite(gap) ? ldexp(1, e) : INFINITY;
  }
  while (isfinite(width) && count_bins(s, width) > s->max / 2)
    width *= 2;
  return width;
}

static void compact(struct series *s)
{
  s->width = wider(s);
  size_t to = 0;
  for (size_t i = 1; i < s->n; i++) {
    if (same_bin(s->block[to].x0, s->block[i].x0, s->width))
      merge(&s->block[to], &s->block[i]);
    else
      s->block[++to] = s->block[i];
  }
  s->n = to + 1;
}

void series_push(struct series *s, double x, double min, double max, double sum, uint64_t n, uint64_t n_bad)
{
  if (!isfinite(x) || n + n_bad == 0)
    return;
  if (n > 0 && (!isfinite(min) || !isfinite(max))) {
    n_bad += n;
    n = 0;
  }
  if (s->n > 0)
    x = most(x, s->block[s->n - 1].x1);
  struct series_block b = empty;
  b.x0 = b.x1 = x;
  b.n = n;
  b.n_bad = n_bad;
  if (n > 0) {
    b.min = least(min, max);
    b.max = most(min, max);
    b.sum = sum;
    b.first = b.last = series_mean(&b);
  }
  if (s->n > 0 && same_bin(s->block[s->n - 1].x0, x, s->width)) {
    merge(&s->block[s->n - 1], &b);
    return;
  }
  if (s->n == s->max) {
    compact(s);
    series_push(s, x, min, max, sum, n, n_bad); /* there is room now, or the last block takes it */
    return;
  }
  s->block[s->n++] = b;
}

void series_cut(struct series *s, double x)
{
  while (s->n > 0 && s->block[s->n - 1].x1 > x)
    s->n--;
  if (s->n == 0)
    s->width = 0;
}

size_t series_n_blocks(const struct series *s)
{
  return s->n;
}

const struct series_block *series_block(const struct series *s, size_t i)
{
  return i < s->n ? &s->block[i] : NULL;
}

size_t series_find(const struct series *s, double x)
{
  size_t lo = 0, hi = s->n;
  while (lo < hi) {
    size_t mid = lo + (hi - lo) / 2;
    if (s->block[mid].x1 < x)
      lo = mid + 1;
    else
      hi = mid;
  }
  return lo;
}

struct series_block series_span(const struct series *s, double x0, double x1)
{
  struct series_block all = empty;
  for (size_t i = series_find(s, x0); i < s->n && s->block[i].x0 <= x1; i++)
    merge(&all, &s->block[i]);
  return all;
}

double series_last(const struct series *s)
{
  return s->n > 0 ? s->block[s->n - 1].last : NAN;
}

double series_mean(const struct series_block *b)
{
  if (b->n == 0)
    return NAN;
  double m = b->sum / (double)b->n;
  if (!isfinite(m))
    m = b->min / 2 + b->max / 2;
  return least(most(m, b->min), b->max);
}
