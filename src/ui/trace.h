/* A series as a plot shows it: reduced to the dot columns of a span of x, smoothed if asked. */
#ifndef UI_TRACE_H
#define UI_TRACE_H

#include "ui/axis.h"
#include "ui/series.h"

struct trace_column { /* what one dot column holds */
  double min, max;    /* finite values (positive ones where log); min > max: none */
  bool is_bad;        /* NaN or Inf among them */
  bool is_low;        /* log axis: values <= 0 among them */
};
struct trace_point { /* the line goes through these in order; raw is NaN where it is to break */
  double x;          /* in dots; the first may lie left of 0, the last right of n_columns - 1 */
  double raw, smooth;
};
struct trace {
  int n_columns, n_points;
  struct trace_column *column;
  struct trace_point *point;
};

/* The dot columns 0 .. n_columns - 1 lie evenly over x->lo .. x->hi. Blocks are assigned to the column of their middle,
 * so each counts once; blocks wider than a column fill all of theirs. O(blocks in the span + n_columns), with
 * smoothing O(all blocks).
 *
 * smooth_x is the length in x over which the moving average forgets by 1/e; 0: none. The average is causal, weighted
 * by points and debiased, S_i = d S + sum_i, W_i = d W + n_i, y_i = S_i / W_i with d = exp(-dx / smooth_x): a new point
 * moves no older one, and a constant stays what it is. On a log axis it is taken of logarithms. */
void trace_init(struct trace *t, const struct series *s, const struct axis *x, int n_columns, double smooth_x,
                bool log);
void trace_done(struct trace *t);

/* Widens *lo .. *hi to the finite values (positive ones where log) of all blocks that touch the span. Returns whether
 * there are any. Where only a line between two points crosses the span, these points count. */
bool trace_range(const struct series *s, const struct axis *x, bool log, double *lo, double *hi);

#endif
