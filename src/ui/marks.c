/* Marks of a plot. */
#include "config.h"

#include "ui/marks.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "ui/legend.h"

static bool is_shown(const struct plot_mark *m, const struct axis *x)
{
  return m->x >= x->lo && m->x <= x->hi;
}

static int column_of(const struct plot_mark *m, const struct axis *x, int w)
{
  return (int)lround(axis_frac(x, m->x) * (w - 1));
}

/* The label rows of an area w columns wide while marks are placed, newest first. */
struct rows {
  int w, h;
  bool *taken;    /* h rows of w: no label may go there */
  bool *has_mark; /* w: the columns of all marks */
  bool *is_done;  /* w: the columns of the marks that were placed */
};

static void rows_init(struct rows *r, const struct plot *p, const struct axis *x, int w, int h)
{
  *r = (struct rows){.w = w, .h = h, .taken = mem_alloc((size_t)w * (size_t)(h + 2) * sizeof *r->taken)};
  r->has_mark = r->taken + w * h;
  r->is_done = r->has_mark + w;
  for (size_t i = 0; i < p->n_marks; i++)
    if (is_shown(&p->mark[i], x))
      r->has_mark[column_of(&p->mark[i], x, w)] = true;
}

/* A label needs its own cells and a blank one at each side, but for the side where its mark (`column`) is. Unless
 * may_cross, the same holds for the lines of other marks. */
static bool is_free(const struct rows *r, int row, int column, int from, int n, bool may_cross)
{
  if (from < 0 || from + n > r->w)
    return false;
  for (int c = from > 0 ? from - 1 : 0; c <= from + n && c < r->w; c++)
    if (r->taken[row * r->w + c] || (!may_cross && r->has_mark[c] && c != column))
      return false;
  return true;
}

struct place {
  int row, from, n;
  const char *text; /* NULL: no room */
};

/* Right of its line, else left of it, in the first row that is free; whole before short, beside other lines before
 * across them. */
static struct place find_place(const struct rows *r, int column, const char *text, enum glyphs glyphs)
{
  const char *space = strrchr(text, ' '), *const spelling[] = {text, space ? space + 1 : text};
  for (int try = 0; try < 4 && *text; try++) {
    const char *s = spelling[try & 1];
    int n = legend_text_width(s, glyphs);
    const int from[] = {column + 1, column - n};
    for (int i = 0; i < 2 * r->h; i++)
      if (is_free(r, i / 2, column, from[i & 1], n, try >= 2))
        return (struct place){i / 2, from[i & 1], n, s};
  }
  return (struct place){.row = r->h};
}

/* The next older mark that has a column of its own, and its label's place. */
static bool next_mark(struct rows *r, const struct plot *p, const struct axis *x, size_t *i, int *column,
                      struct place *at)
{
  while (*i > 0) {
    const struct plot_mark *m = &p->mark[--*i];
    *column = is_shown(m, x) ? column_of(m, x, r->w) : 0;
    if (!is_shown(m, x) || r->is_done[*column])
      continue;
    r->is_done[*column] = true;
    *at = find_place(r, *column, m->label, p->glyphs);
    if (at->text)
      memset(r->taken + at->row * r->w + at->from, true, (size_t)at->n * sizeof *r->taken);
    return true;
  }
  return false;
}

int marks_rows(const struct plot *p, const struct axis *x, int w, int max_rows)
{
  struct rows r;
  struct place at;
  int column, used = 0;
  rows_init(&r, p, x, w, max_rows);
  for (size_t i = p->n_marks; next_mark(&r, p, x, &i, &column, &at);) {
    used = at.text && at.row + 1 > used ? at.row + 1 : used;
    for (int y = at.row; y < r.h; y++)
      r.taken[y * r.w + column] = true;
  }
  mem_free(r.taken);
  return used;
}

/* Lines of series and errors stay in front of a mark; bands do not. */
static bool is_behind(const struct grid *g, int x, int y)
{
  const struct cell *c = &g->cell[y * g->w + x];
  return c->style < STYLE_SERIES && c->style != STYLE_ERROR;
}

void marks_draw(const struct plot *p, const struct axis *x, struct grid *g, struct rect labels, struct rect area)
{
  struct rows r;
  struct place at;
  int column;
  uint32_t line = p->glyphs == GLYPHS_ASCII ? ':' : 0x250A;
  rows_init(&r, p, x, area.w, labels.h);
  for (size_t i = p->n_marks; next_mark(&r, p, x, &i, &column, &at);) {
    if (at.text)
      legend_text(g, labels.x + at.from, labels.y + at.row, at.n, at.text, STYLE_MARK, p->glyphs);
    for (int y = at.text ? at.row : 0; y < labels.h; y++) {
      if (!r.taken[y * r.w + column]) /* else behind the label of a newer one */
        grid_put(g, labels.x + column, labels.y + y, line, STYLE_MARK);
      r.taken[y * r.w + column] = true;
    }
    for (int y = 0; y < area.h; y++)
      if (is_behind(g, area.x + column, area.y + y))
        grid_put(g, area.x + column, area.y + y, line, STYLE_MARK);
  }
  mem_free(r.taken);
}
