/* A line plot of several series over x into a rectangle of cells: axes with ticks, SI units, legend, envelopes where
 * there are more points than columns, vertical marks for changes, NaN and Inf shown.
 *
 * How to read it: a coloured line is the mean of a column, the dim dots around it reach from its least to its largest
 * value. '!' at the top of a column: NaN or Inf there, the line is broken. A small triangle at the bottom of a log
 * axis: values <= 0. A later series is drawn over an earlier one. It costs O(columns + blocks), whatever the history.
 */
#ifndef UI_PLOT_H
#define UI_PLOT_H

#include "ui/axis.h"
#include "ui/cell.h"
#include "ui/series.h"

struct plot_series {
  const struct series *series;
  const char *label;
  int color; /* 0 .. STYLE_N_SERIES-1 */
};
struct plot_mark {
  double x;
  char label[32];
};
struct plot {
  const char *title, *x_label;
  const struct plot_series *series;
  size_t n_series;
  const struct plot_mark *mark;
  size_t n_marks;
  bool log_y;
  double smooth; /* weight of the exponential moving average a column, 0 (off) .. 0.999; debiased; raw is dimmed */
  double x0, x1; /* shown span; x0 >= x1: all */
  double y0, y1; /* shown range; y0 >= y1: fitted */
  bool focus;
  enum glyphs glyphs;
};
/* Writes every cell of `where` that is on the grid, and no other. */
void plot_draw(const struct plot *p, struct grid *g, struct rect where);

/* The axes that plot_draw() uses, without ticks. Fitted, x ends a little after the newest point (at most a 16th of the
 * span), so that the picture stands still between two rescalings; y holds every finite value in the span of x.
 * Returns whether there is a finite value to show. */
bool plot_axes(const struct plot *p, struct axis *x, struct axis *y);

#endif
