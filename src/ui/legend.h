/* Text on plots: spelled for what the terminal can show, and the legend with each series' newest value. */
#ifndef UI_LEGEND_H
#define UI_LEGEND_H

#include "ui/plot.h"

/* Writes at most max_w columns; in ASCII "→" becomes "->" and so on. Returns the columns written. */
int legend_text(struct grid *g, int x, int y, int max_w, const char *text, enum style s, enum glyphs glyphs);
int legend_text_width(const char *text, enum glyphs glyphs);

#define LEGEND_MAX 16
struct legend {
  enum glyphs glyphs;
  int n;
  struct legend_entry {
    const struct plot_series *series;
    char value[AXIS_LABEL];
    int w_short, w_full; /* columns without and with the value */
  } entry[LEGEND_MAX];
};
void legend_init(struct legend *l, const struct plot *p);
/* Rows of w columns that it takes, and columns in one row, when the first n_values entries show their values. */
int legend_rows(const struct legend *l, int w, int n_values);
int legend_width(const struct legend *l, int n_values);
/* Fills the rows of r; values are left out from the last where labels would not fit beside them. */
void legend_draw(const struct legend *l, struct grid *g, struct rect r);

#endif
