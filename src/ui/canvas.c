/* Dots to characters. Lines are drawn between exact end points and cut to the raster first, so that neither a far
 * outlier nor a zoomed view costs more than the raster is wide and high. */
#include "config.h"

#include "ui/canvas.h"

#include <math.h>

#include "base/mem.h"

static const struct {
  int dot_w, dot_h;
} dots_of[] = {[GLYPHS_BRAILLE] = {2, 4}, [GLYPHS_BLOCK] = {2, 2}, [GLYPHS_ASCII] = {1, 1}};

/* Dot columns of a period of 4 that are drawn: solid, dashed, dotted, short dashes; then again, in other colours. */
static const char *const dash_of[STYLE_N_SERIES] = {"1111", "1110", "1010", "1100", "1111", "1110", "1010", "1100"};
static const char ascii_of[STYLE_N_SERIES + 1] = "*+ox#%@&";

void canvas_init(struct canvas *c, int w, int h, enum glyphs glyphs)
{
  *c =
      (struct canvas){.glyphs = glyphs, .w = w, .h = h, .dot_w = dots_of[glyphs].dot_w, .dot_h = dots_of[glyphs].dot_h};
  c->cell = mem_alloc((size_t)w * (size_t)h * sizeof *c->cell);
}

void canvas_done(struct canvas *c)
{
  mem_free(c->cell);
  *c = (struct canvas){0};
}

static enum layer top_layer(const struct canvas_cell *cell)
{
  return cell->dots[LAYER_LINE] ? LAYER_LINE : cell->dots[LAYER_FAINT] ? LAYER_FAINT : LAYER_BAND;
}

void canvas_dot(struct canvas *c, int x, int y, struct pen pen)
{
  if (x < 0 || y < 0 || x >= c->w * c->dot_w || y >= c->h * c->dot_h)
    return;
  struct canvas_cell *cell = &c->cell[(size_t)(y / c->dot_h) * (size_t)c->w + (size_t)(x / c->dot_w)];
  cell->dots[pen.layer] |= (uint8_t)(1u << (y % c->dot_h * c->dot_w + x % c->dot_w));
  if (pen.layer >= top_layer(cell))
    cell->series = (uint8_t)(pen.series % STYLE_N_SERIES);
}

/* Cuts [t0, t1] of the line p + t d to lo <= p + t d <= hi (Liang and Barsky, 1984). */
static bool cut(double p, double d, double lo, double hi, double *t0, double *t1)
{
  if (d == 0)
    return p >= lo && p <= hi;
  double a = (lo - p) / d, b = (hi - p) / d;
  *t0 = fmax(*t0, fmin(a, b));
  *t1 = fmin(*t1, fmax(a, b));
  return *t0 <= *t1;
}

/* Dashes run along x where the line is flat and along y where it is steep; `at` is that coordinate. */
static bool is_drawn(const struct canvas *c, int at, struct pen pen)
{
  return pen.layer != LAYER_LINE || c->glyphs == GLYPHS_ASCII || dash_of[pen.series % STYLE_N_SERIES][at & 3] == '1';
}

void canvas_line(struct canvas *c, double x0, double y0, double x1, double y1, struct pen pen)
{
  double dx = x1 - x0, dy = y1 - y0, t0 = 0, t1 = 1;
  if (!isfinite(dx) || !isfinite(dy) || !cut(x0, dx, -1, c->w * c->dot_w, &t0, &t1) ||
      !cut(y0, dy, -1, c->h * c->dot_h, &t0, &t1))
    return;
  int x = (int)lround(x0 + t0 * dx), y = (int)lround(y0 + t0 * dy);
  int end_x = (int)lround(x0 + t1 * dx), end_y = (int)lround(y0 + t1 * dy);
  /* Bresenham's line between the rounded ends */
  int sx = x < end_x ? 1 : -1, sy = y < end_y ? 1 : -1;
  int ax = (end_x - x) * sx, ay = (end_y - y) * sy, err = ax - ay;
  for (;;) {
    if (is_drawn(c, ay > ax ? y : x, pen))
      canvas_dot(c, x, y, pen);
    if (x == end_x && y == end_y)
      break;
    int e2 = 2 * err;
    if (e2 >= -ay) {
      err -= ay;
      x += sx;
    }
    if (e2 <= ax) {
      err += ax;
      y += sy;
    }
  }
}

void canvas_bar(struct canvas *c, int x, double y0, double y1, struct pen pen)
{
  if (isnan(y0) || isnan(y1))
    return;
  int rows = c->h * c->dot_h;
  int from = (int)lround(fmax(fmin(y0, y1), -1)), to = (int)lround(fmin(fmax(y0, y1), rows));
  for (int y = from; y <= to; y++)
    if (pen.layer != LAYER_BAND || c->glyphs != GLYPHS_BRAILLE || ((y - 2 * x) & 3) == 0 || y == from || y == to)
      canvas_dot(c, x, y, pen);
}

/* Unicode numbers the dots of the left column 1 2 3 7 and of the right 4 5 6 8 (U+2800 block). */
static uint32_t braille(unsigned dots)
{
  static const uint8_t bit[8] = {0x01, 0x08, 0x02, 0x10, 0x04, 0x20, 0x40, 0x80};
  uint32_t ch = 0x2800;
  for (int i = 0; i < 8; i++)
    if (dots >> i & 1)
      ch |= bit[i];
  return ch;
}

/* By top left 1, top right 2, bottom left 4, bottom right 8. */
static const uint16_t quadrant[16] = {' ',    0x2598, 0x259D, 0x2580, 0x2596, 0x258C, 0x259E, 0x259B,
                                      0x2597, 0x259A, 0x2590, 0x259C, 0x2584, 0x2599, 0x259F, 0x2588};

static uint32_t glyph(const struct canvas *c, const struct canvas_cell *cell, enum layer top)
{
  unsigned dots = cell->dots[top];
  if (top == LAYER_FAINT) /* both are dim: one texture */
    dots |= cell->dots[LAYER_BAND];
  if (c->glyphs == GLYPHS_BRAILLE)
    return braille(dots);
  if (c->glyphs == GLYPHS_BLOCK)
    return top == LAYER_BAND ? 0x2591 : quadrant[dots];
  return top == LAYER_LINE ? (uint32_t)ascii_of[cell->series] : '.';
}

void canvas_paint(const struct canvas *c, struct grid *g, int x, int y)
{
  for (int cy = 0; cy < c->h; cy++) {
    for (int cx = 0; cx < c->w; cx++) {
      const struct canvas_cell *cell = &c->cell[(size_t)cy * (size_t)c->w + (size_t)cx];
      enum layer top = top_layer(cell);
      if (cell->dots[top])
        grid_put(g, x + cx, y + cy, glyph(c, cell, top),
                 top == LAYER_LINE ? (enum style)(STYLE_SERIES + cell->series) : STYLE_DIM);
    }
  }
}

int canvas_sample_width(enum glyphs glyphs)
{
  return glyphs == GLYPHS_ASCII ? 1 : 2;
}

int canvas_sample(struct grid *g, int x, int y, int max_w, enum glyphs glyphs, int series)
{
  struct canvas c;
  canvas_init(&c, canvas_sample_width(glyphs), 1, glyphs);
  struct pen pen = {LAYER_LINE, series};
  canvas_line(&c, 0, c.dot_h / 2, c.w * c.dot_w - 1, c.dot_h / 2, pen);
  int w = c.w;
  if (w <= max_w)
    canvas_paint(&c, g, x, y);
  canvas_done(&c);
  return w <= max_w ? w : 0;
}
