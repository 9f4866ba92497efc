/* Blocks of a series to columns of dots. */
#include "config.h"

#include "ui/trace.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"

static double middle(const struct series_block *b)
{
  return b->x0 / 2 + b->x1 / 2;
}

/* v moved towards m by the share f of the way: exact where v == m, and finite where both are. */
static double towards(double v, double m, double f)
{
  return v + (m / 2 - v / 2) * f * 2;
}

/* The moving average over blocks, oldest first: S_i / W_i and W_i. */
struct average {
  double length; /* in x; 0: off */
  bool log;
  double x, value, weight;
};

static void average_add(struct average *a, const struct series_block *b)
{
  double mean = series_mean(b);
  if (a->length <= 0 || isnan(mean) || (a->log && mean <= 0))
    return;
  double decay = a->weight > 0 ? exp(-(middle(b) - a->x) / a->length) : 0;
  a->weight = decay * a->weight + (double)b->n;
  a->value = towards(a->value, a->log ? log(mean) : mean, (double)b->n / a->weight);
  a->x = middle(b);
}

static double average_value(const struct average *a)
{
  if (!(a->weight > 0))
    return NAN;
  return a->log ? exp(a->value) : a->value;
}

/* Points of one dot column on their way into the trace. */
struct bin {
  int column;
  double mean;
  uint64_t n;
  bool is_open;
};

static void put_point(struct trace *t, double x, double raw, double smooth, bool log)
{
  if (log && !(raw > 0))
    raw = NAN;
  if (isnan(raw) && (t->n_points == 0 || isnan(t->point[t->n_points - 1].raw)))
    return; /* one break is enough */
  t->point[t->n_points++] = (struct trace_point){x, raw, isnan(smooth) ? raw : smooth};
}

static void close_bin(struct trace *t, struct bin *bin, const struct average *a)
{
  if (bin->is_open)
    put_point(t, bin->column, bin->n > 0 ? bin->mean : NAN, average_value(a), a->log);
  bin->is_open = false;
}

static int column_of(const struct trace *t, const struct axis *x, double v)
{
  double c = axis_frac(x, v) * (t->n_columns - 1);
  return (int)lround(fmin(fmax(c, -1), t->n_columns));
}

static void fill_columns(struct trace *t, const struct series_block *b, int from, int to, bool log)
{
  double min = b->min, max = b->max;
  bool is_low = log && b->n > 0 && min <= 0;
  if (is_low) /* the least positive value is not known, the mean is the nearest that is */
    min = series_mean(b) > 0 ? series_mean(b) : max;
  for (int c = from < 0 ? 0 : from; c <= to && c < t->n_columns; c++) {
    struct trace_column *col = &t->column[c];
    if (b->n > 0 && !(log && max <= 0)) {
      col->min = min < col->min ? min : col->min;
      col->max = max > col->max ? max : col->max;
    }
    col->is_bad |= b->n_bad > 0;
    col->is_low |= is_low;
  }
}

void trace_init(struct trace *t, const struct series *s, const struct axis *x, int n_columns, double smooth_x, bool log)
{
  *t = (struct trace){.n_columns = n_columns};
  t->column = mem_alloc((size_t)n_columns * sizeof *t->column);
  t->point = mem_alloc(((size_t)n_columns + 2) * sizeof *t->point);
  for (int c = 0; c < n_columns; c++)
    t->column[c] = (struct trace_column){.min = INFINITY, .max = -INFINITY};
  struct average before, average = {.length = smooth_x, .log = log};
  struct bin bin = {0};
  size_t first = series_find(s, x->lo), n = series_n_blocks(s);
  first -= first > 0; /* the line comes in from the left */
  for (size_t i = 0; smooth_x > 0 && i < first; i++)
    average_add(&average, series_block(s, i));
  for (size_t i = first; i < n; i++) {
    const struct series_block *b = series_block(s, i);
    double mid = middle(b);
    int c = column_of(t, x, mid);
    before = average;
    average_add(&average, b);
    if (mid < x->lo || mid > x->hi) {
      close_bin(t, &bin, &before);
      int from = column_of(t, x, b->x0), to = column_of(t, x, b->x1);
      if (b->x1 >= x->lo && b->x0 <= x->hi)
        fill_columns(t, b, from, to, log);
      if (mid < x->lo)
        t->n_points = 0; /* only the last one before the span matters */
      put_point(t, axis_frac(x, mid) * (n_columns - 1), series_mean(b), average_value(&average), log);
      if (mid > x->hi)
        break;
      continue;
    }
    if (!bin.is_open || c != bin.column) {
      close_bin(t, &bin, &before);
      bin = (struct bin){.column = c, .is_open = true};
    }
    bin.n += b->n;
    if (b->n > 0)
      bin.mean = towards(bin.mean, series_mean(b), (double)b->n / (double)bin.n);
    int from = column_of(t, x, b->x0), to = column_of(t, x, b->x1);
    fill_columns(t, b, to - from > 1 ? from : c, to - from > 1 ? to : c, log);
  }
  close_bin(t, &bin, &average);
}

void trace_done(struct trace *t)
{
  mem_free(t->column);
  mem_free(t->point);
  *t = (struct trace){0};
}

/* Widens the range to one block. */
static bool widen(const struct series_block *b, bool log, double *lo, double *hi)
{
  if (!b || b->n == 0 || (log && b->max <= 0))
    return false;
  double mean = series_mean(b), min = b->min;
  if (log && min <= 0)
    min = mean > 0 ? mean : b->max;
  *lo = min < *lo ? min : *lo;
  *hi = b->max > *hi ? b->max : *hi;
  return true;
}

bool trace_range(const struct series *s, const struct axis *x, bool log, double *lo, double *hi)
{
  bool any = false;
  size_t i = series_find(s, x->lo), first = i, n = series_n_blocks(s);
  for (; i < n && series_block(s, i)->x0 <= x->hi; i++)
    any |= widen(series_block(s, i), log, lo, hi);
  if (i == first && first > 0 && first < n) {
    any |= widen(series_block(s, first - 1), log, lo, hi);
    any |= widen(series_block(s, first), log, lo, hi);
  }
  return any;
}
