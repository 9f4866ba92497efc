/* Legend and labels of a plot. */
#include "config.h"

#include "ui/legend.h"

#include <math.h>
#include <string.h>

#include "base/str.h"
#include "ui/canvas.h"

#define GAP 2 /* columns between entries */

/* ASCII spellings of the signs that labels of this program use; any other becomes '?'. */
static const struct {
  uint32_t ch;
  const char *ascii;
} spelling[] = {{0x2192, "->"},  {0x00B5, "u"}, {0x03BC, "u"}, {0x00B2, "^2"}, {0x00B7, "."},
                {0x2026, "..."}, {0x2013, "-"}, {0x2212, "-"}, {0x00D7, "x"},  {0x03C3, "sigma"}};

static struct str spell(const char *text, enum glyphs glyphs)
{
  struct str out = {0};
  str_add(&out, "");
  for (uint32_t ch; (ch = cell_decode(&text));) {
    char utf8[4];
    if (glyphs != GLYPHS_ASCII || (ch >= 0x20 && ch < 0x7F)) {
      str_addn(&out, utf8, (size_t)cell_encode(ch, utf8));
      continue;
    }
    size_t i = 0, n = sizeof spelling / sizeof *spelling;
    while (i < n && spelling[i].ch != ch)
      i++;
    str_add(&out, i < n ? spelling[i].ascii : "?");
  }
  return out;
}

int legend_text(struct grid *g, int x, int y, int max_w, const char *text, enum style s, enum glyphs glyphs)
{
  struct str t = spell(text, glyphs);
  int n = grid_text_max(g, x, y, max_w, t.s, s);
  str_done(&t);
  return n;
}

int legend_text_width(const char *text, enum glyphs glyphs)
{
  struct str t = spell(text, glyphs);
  int n = cell_text_width(t.s);
  str_done(&t);
  return n;
}

static const char *label_of(const struct legend_entry *e)
{
  return e->series->label ? e->series->label : "";
}

void legend_init(struct legend *l, const struct plot *p)
{
  *l = (struct legend){.glyphs = p->glyphs};
  for (size_t i = 0; i < p->n_series && l->n < LEGEND_MAX; i++) {
    struct legend_entry *e = &l->entry[l->n++];
    e->series = &p->series[i];
    if (e->series->series && series_n_blocks(e->series->series) > 0)
      axis_number(series_last(e->series->series), e->value);
    e->w_short = canvas_sample_width(p->glyphs) + 1 + legend_text_width(label_of(e), p->glyphs);
    e->w_full = e->w_short + (e->value[0] ? 1 + (int)strlen(e->value) : 0);
  }
}

/* Where entry after entry goes in rows of w columns. */
struct cursor {
  int x, row;
};

static void next(struct cursor *c, int entry_w, int w)
{
  if (c->x > 0 && c->x + entry_w > w) {
    c->x = 0;
    c->row++;
  }
}

/* The first n_values entries with values, the others without. */
static int entry_width(const struct legend *l, int i, int n_values)
{
  return i < n_values ? l->entry[i].w_full : l->entry[i].w_short;
}

int legend_rows(const struct legend *l, int w, int n_values)
{
  struct cursor c = {0};
  for (int i = 0; i < l->n; i++) {
    next(&c, entry_width(l, i, n_values), w);
    c.x += entry_width(l, i, n_values) + GAP;
  }
  return l->n > 0 ? c.row + 1 : 0;
}

int legend_width(const struct legend *l, int n_values)
{
  int w = 0;
  for (int i = 0; i < l->n; i++)
    w += entry_width(l, i, n_values) + (i > 0 ? GAP : 0);
  return w;
}

static void draw_entry(const struct legend *l, const struct legend_entry *e, struct grid *g, int x, int y, int max_w,
                       bool full)
{
  int n = canvas_sample(g, x, y, max_w, l->glyphs, e->series->color) + 1;
  n += legend_text(g, x + n, y, max_w - n, label_of(e), STYLE_NORMAL, l->glyphs) + 1;
  if (full && e->value[0])
    legend_text(g, x + n, y, max_w - n, e->value, isnan(series_last(e->series->series)) ? STYLE_ERROR : STYLE_BOLD,
                l->glyphs);
}

void legend_draw(const struct legend *l, struct grid *g, struct rect r)
{
  int n_values = l->n;
  while (n_values > 0 && legend_rows(l, r.w, n_values) > r.h)
    n_values--;
  struct cursor c = {0};
  for (int i = 0; i < l->n; i++) {
    next(&c, entry_width(l, i, n_values), r.w);
    if (c.row >= r.h)
      return;
    draw_entry(l, &l->entry[i], g, r.x + c.x, r.y + c.row, r.w - c.x, i < n_values);
    c.x += entry_width(l, i, n_values) + GAP;
  }
}
