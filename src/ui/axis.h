/* Axes: a range that fits some data, nice ticks in it and their labels, and the place of a value between the ends.
 * Every range of doubles is fit: constant, one ulp wide, subnormal, or from -DBL_MAX to DBL_MAX. */
#ifndef UI_AXIS_H
#define UI_AXIS_H

#include <stdbool.h>

#define AXIS_MAX_TICKS 24
#define AXIS_LABEL 16

struct axis_tick {
  double v;
  char label[AXIS_LABEL]; /* ASCII: its length is its width */
};
struct axis {
  double lo, hi; /* lo < hi, finite; lo > 0 where log */
  bool log;
  int n_ticks; /* rising, within lo .. hi */
  int label_w; /* the widest label */
  struct axis_tick tick[AXIS_MAX_TICKS];
  /* Where the range is so narrow that full labels would not fit or not differ, labels are relative to offset, which is
   * to be shown beside the axis; offset_label is "" elsewhere. */
  double offset;
  char offset_label[32];
  double unit, from, length; /* axis_frac()'s own: frac = (v * unit - from) / length, of log10 v where log */
};

/* A range around data that lies in lo .. hi: never empty, a little rounded outward so that it is steady while data
 * arrives, from 0 where the data nearly reaches it. lo > hi (no data): 0 .. 1, or 1 .. 10 where log.
 * Where log, lo and hi are positive. */
void axis_fit(struct axis *a, double lo, double hi, bool log);
/* Exactly lo .. hi, made non-empty where it is not. */
void axis_set(struct axis *a, double lo, double hi, bool log);
/* Places at most max_ticks ticks (one more where only one would be left). */
void axis_place(struct axis *a, int max_ticks);
/* Place of v: 0 at lo, 1 at hi, linear or logarithmic between them and beyond, within +-1e6. NaN: v is NaN, or not
 * positive on a log axis. */
double axis_frac(const struct axis *a, double v);

/* A value for a legend: three or four significant digits, at most 10 columns: "0.5213", "12.30k", "3.10e-5", "NaN". */
const char *axis_number(double v, char out[AXIS_LABEL]);

#endif
