/* A raster of dots over character cells, drawn in layers: braille (2x4 dots a cell), quadrant blocks (2x2) or one
 * ASCII character a cell. A cell shows its topmost layer only, so that a line stays crisp where it crosses a band. */
#ifndef UI_CANVAS_H
#define UI_CANVAS_H

#include "ui/cell.h"

enum layer {
  LAYER_BAND,  /* between min and max: every other dot, dim */
  LAYER_FAINT, /* raw points behind a smoothed line: dim */
  LAYER_LINE,
  N_LAYERS
};

/* How a series is told apart without colour. */
struct pen {
  enum layer layer;
  int series; /* its colour, dash and ASCII character; taken modulo STYLE_N_SERIES */
};

struct canvas_cell {
  uint8_t dots[N_LAYERS]; /* bit dy * dot_w + dx */
  uint8_t series;         /* last one drawn into the topmost layer */
};
struct canvas {
  enum glyphs glyphs;
  int w, h;         /* cells */
  int dot_w, dot_h; /* dots a cell */
  struct canvas_cell *cell;
};
void canvas_init(struct canvas *c, int w, int h, enum glyphs glyphs); /* w, h >= 1; canvas_done() frees */
void canvas_done(struct canvas *c);

/* Dot coordinates: x to the right, y down, (0, 0) the top left dot. Dots outside are clipped. */
void canvas_dot(struct canvas *c, int x, int y, struct pen pen);
/* A connected line, dashed by the pen in LAYER_LINE; ends may be far outside. NaN draws nothing. */
void canvas_line(struct canvas *c, double x0, double y0, double x1, double y1, struct pen pen);
/* The dots of column x from y0 to y1, both included, thinned in LAYER_BAND. */
void canvas_bar(struct canvas *c, int x, double y0, double y1, struct pen pen);

/* Writes the cells that have dots, top left at (x, y); others are left as they are. */
void canvas_paint(const struct canvas *c, struct grid *g, int x, int y);
/* A sample of a series' line for a legend; returns its columns. */
int canvas_sample(struct grid *g, int x, int y, int max_w, enum glyphs glyphs, int series);
/* The columns of a sample. */
int canvas_sample_width(enum glyphs glyphs);

#endif
