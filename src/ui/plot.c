/* Layout and drawing of a plot. From the top: title and legend, a row for mark labels, the area with the y axis at its
 * left, the x axis. What does not fit is left out in an order that keeps the data readable down to a few cells. */
#include "config.h"

#include "ui/plot.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "ui/canvas.h"
#include "ui/legend.h"
#include "ui/marks.h"
#include "ui/trace.h"

/* Characters by what the terminal can show. */
struct look {
  uint32_t axis, tick, corner, floor, x_tick, mark, low, point;
};
static const struct look unicode_look = {0x2502, 0x2524, 0x2514, 0x2500, 0x252C, 0x250A, 0x25BE, 0x2022};
static const struct look ascii_look = {'|', '+', '+', '-', '+', ':', 'v', 0};

static const struct look *look_of(const struct plot *p)
{
  return p->glyphs == GLYPHS_ASCII ? &ascii_look : &unicode_look;
}

/* The span of all series. */
static bool x_extent(const struct plot *p, double *lo, double *hi)
{
  *lo = INFINITY;
  *hi = -INFINITY;
  for (size_t i = 0; i < p->n_series; i++) {
    const struct series *s = p->series[i].series;
    size_t n = s ? series_n_blocks(s) : 0;
    if (n > 0) {
      *lo = fmin(*lo, series_block(s, 0)->x0);
      *hi = fmax(*hi, series_block(s, n - 1)->x1);
    }
  }
  return *lo <= *hi;
}

/* All of the history: from 0 where it starts near it, to the next whole 16th of the power of two below the span. */
static void fit_x(const struct plot *p, struct axis *x)
{
  double lo, hi;
  if (!x_extent(p, &lo, &hi)) {
    axis_set(x, 0, 1, false);
    return;
  }
  if (lo > 0 && (lo == hi || lo <= (hi - lo) / 4))
    lo = 0;
  double quantum = exp2(floor(log2(hi - lo)) - 4);
  if (quantum > 0 && isfinite(quantum)) {
    double end = lo + ceil((hi - lo) / quantum) * quantum;
    hi = isfinite(end) ? fmax(hi, end) : hi;
  }
  axis_set(x, lo, hi, false);
}

bool plot_axes(const struct plot *p, struct axis *x, struct axis *y)
{
  double lo = INFINITY, hi = -INFINITY;
  bool any = false;
  if (isfinite(p->x0) && isfinite(p->x1) && p->x0 < p->x1)
    axis_set(x, p->x0, p->x1, false);
  else
    fit_x(p, x);
  for (size_t i = 0; i < p->n_series; i++)
    if (p->series[i].series)
      any |= trace_range(p->series[i].series, x, p->log_y, &lo, &hi);
  if (isfinite(p->y0) && isfinite(p->y1) && p->y0 < p->y1 && (!p->log_y || p->y0 > 0))
    axis_set(y, p->y0, p->y1, p->log_y);
  else
    axis_fit(y, lo, hi, p->log_y);
  return any;
}

/* ---- layout ---- */

#define MIN_AREA_W 6 /* less shows nothing: the data go without axis labels first */
#define MIN_AREA_H 2

struct layout { /* parts in cells of the grid; w or h 0: left out */
  struct rect title, legend, labels, area;
  int y_axis_w;   /* columns left of the area: labels and line */
  bool has_floor; /* a line below the area */
  bool has_x_labels;
  struct axis x, y;
  bool any; /* there is something finite to show */
};

static void take_rows(struct rect *from, struct rect *to, int n)
{
  *to = (struct rect){from->x, from->y, from->w, n};
  from->y += n;
  from->h -= n;
}

/* The legend goes beside the title; below it where that would cost values and there are rows to spend. */
static void layout_head(const struct plot *p, struct layout *l, struct rect *rest, const struct legend *legend)
{
  int all_w = rest->w, all_h = rest->h;
  int room = all_w - 2 - (p->title ? legend_text_width(p->title, p->glyphs) : 0);
  int n_values = legend->n;
  take_rows(rest, &l->title, 1);
  while (n_values > 0 && legend_width(legend, n_values) > room)
    n_values--;
  bool fits = legend_width(legend, n_values) <= room, is_full = fits && n_values == legend->n;
  if (!is_full && all_h >= (fits ? 10 : 7)) {
    take_rows(rest, &l->legend, legend_rows(legend, all_w, legend->n) > 1 && all_h >= 12 ? 2 : 1);
  } else if (legend->n > 0 && room > 0) {
    int w = legend_width(legend, n_values) < room ? legend_width(legend, n_values) : room;
    l->legend = (struct rect){l->title.x + all_w - w, l->title.y, w, 1};
  }
}

/* Ticks of y for so many rows, and the columns that its labels and line leave. */
static void layout_y(struct layout *l, struct rect *rest)
{
  if (l->any)
    axis_place(&l->y, rest->h < 3 ? rest->h : rest->h / 3 + 2);
  l->y_axis_w = l->y.label_w + 1;
  if (rest->w - l->y_axis_w < MIN_AREA_W) {
    l->y.n_ticks = 0;
    l->y_axis_w = rest->w > MIN_AREA_W;
  }
  rest->x += l->y_axis_w;
  rest->w -= l->y_axis_w;
}

static void layout_axes(const struct plot *p, struct layout *l, struct rect rest)
{
  if (rest.h > MIN_AREA_H) {
    l->has_x_labels = true;
    rest.h--;
  }
  if (rest.h > 8) {
    l->has_floor = true;
    rest.h--;
  }
  layout_y(l, &rest);
  int rows = rest.h > 3 ? marks_rows(p, &l->x, rest.w, rest.h >= 10 ? 2 : 1) : 0;
  take_rows(&rest, &l->labels, rows);
  if (rows > 0 && l->y.n_ticks > 0) /* for the rows that are left; as wide as before or less */
    axis_place(&l->y, rest.h < 3 ? rest.h : rest.h / 3 + 2);
  l->area = rest;
  double lo, hi;
  if (p->x0 < p->x1 || x_extent(p, &lo, &hi))
    axis_place(&l->x, rest.w / 9 < 2 ? 2 : rest.w / 9 + 1);
}

/* ---- drawing ---- */

static void draw_title(const struct plot *p, const struct layout *l, struct grid *g)
{
  int end = l->title.x + l->title.w, x = l->title.x, y = l->title.y;
  if (l->legend.w > 0 && l->legend.y == y)
    end = l->legend.x - 1;
  x += legend_text(g, x, y, end - x, p->title ? p->title : "", p->focus ? STYLE_FOCUS : STYLE_TITLE, p->glyphs);
  char note[80] = "";
  if (l->any && l->y.offset_label[0])
    snprintf(note, sizeof note, " %s +", l->y.offset_label);
  if (p->smooth > 0)
    snprintf(note + strlen(note), sizeof note - strlen(note), " smooth %.3g", p->smooth);
  if (note[0] && legend_text_width(note, p->glyphs) <= end - x)
    legend_text(g, x, y, end - x, note, STYLE_DIM, p->glyphs);
}

static int row_of(const struct layout *l, double v)
{
  return l->area.y + (int)lround((1 - axis_frac(&l->y, v)) * (l->area.h - 1));
}

static void draw_y_axis(const struct plot *p, const struct layout *l, struct grid *g)
{
  const struct look *look = look_of(p);
  if (l->y_axis_w == 0)
    return;
  int x = l->area.x - 1;
  for (int y = l->labels.h > 0 ? l->labels.y : l->area.y; y < l->area.y + l->area.h; y++)
    grid_put(g, x, y, look->axis, STYLE_DIM);
  for (int i = 0; i < l->y.n_ticks; i++) {
    const struct axis_tick *t = &l->y.tick[i];
    grid_put(g, x, row_of(l, t->v), look->tick, STYLE_DIM);
    grid_text(g, x - (int)strlen(t->label), row_of(l, t->v), t->label, STYLE_DIM);
  }
}

static void draw_x_axis(const struct plot *p, const struct layout *l, struct grid *g)
{
  const struct look *look = look_of(p);
  struct rect a = l->area;
  int y = a.y + a.h, left = a.x - l->y_axis_w, end = a.x + a.w;
  for (int x = a.x; l->has_floor && x < end; x++)
    grid_put(g, x, y, look->floor, STYLE_DIM);
  if (l->has_floor && l->y_axis_w > 0)
    grid_put(g, a.x - 1, y, look->corner, STYLE_DIM);
  int label_y = y + l->has_floor;
  if (!l->has_x_labels)
    return;
  int name_w = p->x_label ? legend_text_width(p->x_label, p->glyphs) : 0;
  int labels_end = end;
  if (name_w > 0 && name_w + 12 <= a.w) {
    labels_end = end - name_w - 1;
    legend_text(g, end - name_w, label_y, name_w, p->x_label, STYLE_DIM, p->glyphs);
  }
  for (int i = 0, from = left; i < l->x.n_ticks; i++) {
    const struct axis_tick *t = &l->x.tick[i];
    int n = (int)strlen(t->label), column = a.x + (int)lround(axis_frac(&l->x, t->v) * (a.w - 1));
    int at = column - n / 2;
    at = at < left ? left : at;
    if (l->has_floor)
      grid_put(g, column, y, look->x_tick, STYLE_DIM);
    if (at < from || at + n > labels_end)
      continue;
    grid_text(g, at, label_y, t->label, STYLE_DIM);
    from = at + n + 1;
  }
}

/* A value's height in dots from the top of the area; NaN where it has none. */
static double dot_y(const struct canvas *c, const struct axis *y, double v)
{
  return (1 - axis_frac(y, v)) * (c->h * c->dot_h - 1);
}

static void draw_band(struct canvas *c, const struct trace *t, const struct axis *y, int series)
{
  struct pen pen = {LAYER_BAND, series};
  for (int i = 0; i < t->n_columns; i++) {
    double top = dot_y(c, y, t->column[i].max), bottom = dot_y(c, y, t->column[i].min);
    if (t->column[i].min < t->column[i].max && bottom - top > 1.5) /* less is the line's own thickness */
      canvas_bar(c, i, top, bottom, pen);
  }
}

static void draw_line(struct canvas *c, const struct trace *t, const struct axis *y, struct pen pen, bool smooth)
{
  const struct trace_point *last = NULL;
  for (int i = 0; i < t->n_points; i++) {
    const struct trace_point *b = isnan(t->point[i].raw) ? NULL : &t->point[i];
    const struct trace_point *a = last ? last : b;
    if (b)
      canvas_line(c, a->x, dot_y(c, y, smooth ? a->smooth : a->raw), b->x, dot_y(c, y, smooth ? b->smooth : b->raw),
                  pen);
    last = b;
  }
}

/* What one dot alone would not show: single points, values that have no place on the axis. */
static void draw_signs(const struct plot *p, const struct layout *l, struct grid *g, const struct trace *t,
                       const struct canvas *c, int series)
{
  const struct look *look = look_of(p);
  struct rect a = l->area;
  for (int i = 0; i < t->n_points && look->point; i++) {
    bool alone = (i == 0 || isnan(t->point[i - 1].raw)) && (i + 1 == t->n_points || isnan(t->point[i + 1].raw));
    double x = t->point[i].x, y = dot_y(c, &l->y, t->point[i].raw);
    if (alone && x >= 0 && x < t->n_columns && y >= 0 && y < a.h * c->dot_h)
      grid_put(g, a.x + (int)x / c->dot_w, a.y + (int)y / c->dot_h, look->point,
               (enum style)(STYLE_SERIES + series % STYLE_N_SERIES));
  }
  for (int i = 0; i < t->n_columns; i++)
    if (t->column[i].is_low)
      grid_put(g, a.x + i / c->dot_w, a.y + a.h - 1, look->low, (enum style)(STYLE_SERIES + series % STYLE_N_SERIES));
}

static void draw_data(const struct plot *p, const struct layout *l, struct grid *g)
{
  struct rect a = l->area;
  struct canvas c;
  canvas_init(&c, a.w, a.h, p->glyphs);
  struct trace *t = mem_alloc((p->n_series + 1) * sizeof *t);
  double smooth = p->smooth > 0 ? fmin(p->smooth, 0.999) : 0;
  /* a column's length in x, a power of two: the average changes its length only when the span has doubled */
  double column = exp2(ceil(log2((l->x.hi - l->x.lo) / a.w)));
  double length = smooth > 0 && isfinite(column) ? -column / log(smooth) : 0;
  for (size_t i = 0; i < p->n_series; i++) {
    int series = p->series[i].color & (STYLE_N_SERIES - 1);
    if (!p->series[i].series)
      continue;
    trace_init(&t[i], p->series[i].series, &l->x, a.w * c.dot_w, length, p->log_y);
    draw_band(&c, &t[i], &l->y, series);
    if (length > 0)
      draw_line(&c, &t[i], &l->y, (struct pen){LAYER_FAINT, series}, false);
    draw_line(&c, &t[i], &l->y, (struct pen){LAYER_LINE, series}, length > 0);
  }
  canvas_paint(&c, g, a.x, a.y);
  for (size_t i = 0; i < p->n_series; i++)
    draw_signs(p, l, g, &t[i], &c, p->series[i].color & (STYLE_N_SERIES - 1));
  for (size_t i = 0; i < p->n_series; i++) {
    for (int k = 0; k < t[i].n_columns; k++)
      if (t[i].column[k].is_bad)
        grid_put(g, a.x + k / c.dot_w, a.y, '!', STYLE_ERROR);
    trace_done(&t[i]);
  }
  mem_free(t);
  canvas_done(&c);
}

static void draw_centred(const struct plot *p, struct grid *g, struct rect r, const char *text)
{
  int n = legend_text_width(text, p->glyphs);
  if (n <= r.w && r.h > 0)
    legend_text(g, r.x + (r.w - n) / 2, r.y + r.h / 2, n, text, STYLE_DIM, p->glyphs);
}

void plot_draw(const struct plot *p, struct grid *whole, struct rect where)
{
  if (where.w <= 0 || where.h <= 0)
    return;
  /* a grid of its own: no part of a plot, and no wide character, can reach out of its rectangle */
  struct grid own = {0}, *g = &own;
  grid_resize(g, where.w, where.h);
  struct rect rest = {0, 0, where.w, where.h};
  struct layout l = {0};
  struct legend legend;
  double lo, hi;
  legend_init(&legend, p);
  l.any = plot_axes(p, &l.x, &l.y);
  layout_head(p, &l, &rest, &legend);
  legend_draw(&legend, g, l.legend);
  if (rest.h >= MIN_AREA_H && rest.w >= MIN_AREA_W) {
    layout_axes(p, &l, rest);
    draw_y_axis(p, &l, g);
    draw_x_axis(p, &l, g);
    draw_data(p, &l, g);
    marks_draw(p, &l.x, g, l.labels, l.area);
    if (!x_extent(p, &lo, &hi))
      draw_centred(p, g, l.area, "no data yet");
  }
  draw_title(p, &l, g);
  for (int y = 0; y < where.h; y++)
    for (int x = 0; x < where.w; x++) {
      const struct cell *c = &g->cell[y * g->w + x];
      if (c->ch)
        grid_put(whole, where.x + x, where.y + y, c->ch, (enum style)c->style);
    }
  grid_done(g);
}
