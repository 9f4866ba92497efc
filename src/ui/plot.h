/* A line plot of several series over x into a rectangle of cells: axes with ticks, SI units, legend, envelopes where
 * there are more points than columns, vertical marks for changes, NaN and Inf shown. */
#ifndef UI_PLOT_H
#define UI_PLOT_H

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
  double smooth;   /* weight of the exponential moving average a column, 0 (off) .. 0.999; debiased; raw is dimmed */
  double x0, x1;   /* shown span; x0 >= x1: all */
  double y0, y1;   /* shown range; y0 >= y1: fitted */
  bool focus;
  enum glyphs glyphs;
};
void plot_draw(const struct plot *p, struct grid *g, struct rect where);

#endif
