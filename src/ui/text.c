/* The ring of lines and their wrapping. */
#include "config.h"

#include "ui/text.h"

#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "ui/legend.h"

#define MAX_LINE 4096 /* bytes; a longer one is split, so that one endless line stays bounded too */

void text_init(struct text *t, size_t max_lines)
{
  *t = (struct text){.max_lines = max_lines};
  t->line = mem_alloc(max_lines * sizeof *t->line);
}

void text_clear(struct text *t)
{
  for (size_t i = 0; i < t->n; i++)
    mem_free(t->line[(t->first + i) % t->max_lines].s);
  t->n = t->first = 0;
  t->open = false;
}

void text_done(struct text *t)
{
  text_clear(t);
  mem_free(t->line);
  *t = (struct text){0};
}

static struct text_line *line_at(const struct text *t, size_t i)
{
  return &t->line[(t->first + i) % t->max_lines];
}

static void push(struct text *t, const char *s, size_t n, enum style style, int indent)
{
  if (t->n == t->max_lines) {
    mem_free(line_at(t, 0)->s);
    t->first = (t->first + 1) % t->max_lines;
    t->n--;
  }
  *line_at(t, t->n) = (struct text_line){mem_printf("%.*s", (int)n, s), style, indent};
  t->n++;
  t->n_ever++;
}

void text_add_line(struct text *t, const char *utf8, enum style s, int indent)
{
  t->open = false;
  push(t, utf8, strlen(utf8), s, indent);
}

void text_add(struct text *t, const char *utf8, enum style s)
{
  while (*utf8) {
    size_t n = strcspn(utf8, "\n");
    size_t take = n < MAX_LINE ? n : MAX_LINE;
    struct text_line *last = t->n ? line_at(t, t->n - 1) : NULL;
    if (t->open && last && last->style == s && strlen(last->s) + take <= MAX_LINE) {
      char *joined = mem_printf("%s%.*s", last->s, (int)take, utf8);
      mem_free(last->s);
      last->s = joined;
    } else {
      push(t, utf8, take, s, 0);
    }
    t->open = !(take == n && utf8[n] == '\n');
    utf8 += take + !t->open;
  }
}

/* One row of a wrapped line: from `s`, at most w columns, broken after a space where one is in its second half.
 * Returns the bytes taken. */
static size_t wrap(const char *s, int w)
{
  const char *p = s, *space = NULL;
  int columns = 0;
  while (*p) {
    const char *before = p;
    uint32_t ch = cell_decode(&p);
    int k = ch == '\t' ? 4 - columns % 4 : cell_width(ch);
    k = k < 0 ? 1 : k;
    if (columns + k > w) {
      if (space && space - s >= (before - s) / 2)
        return (size_t)(space - s);
      return before == s ? (size_t)(p - s) : (size_t)(before - s);
    }
    columns += k;
    if (ch == ' ')
      space = p;
  }
  return (size_t)(p - s);
}

static int indent_of(const struct text_line *l, int w)
{
  return l->indent <= w / 2 ? l->indent : 0;
}

static int rows_of(const struct text_line *l, int w)
{
  int rows = 0;
  const char *s = l->s;
  do {
    s += wrap(s, rows ? w - indent_of(l, w) : w);
    rows++;
  } while (*s);
  return rows;
}

int text_rows(const struct text *t, size_t n_lines, int w, int max)
{
  int rows = 0;
  for (size_t i = 0; i < t->n && i < n_lines && rows < max; i++)
    rows += rows_of(line_at(t, t->n - 1 - i), w);
  return rows < max ? rows : max;
}

static void draw_line(const struct text_line *l, struct grid *g, struct rect r, int y, enum glyphs glyphs)
{
  const char *s = l->s;
  for (int row = 0; row == 0 || *s; row++, y++) {
    int indent = row ? indent_of(l, r.w) : 0;
    size_t n = wrap(s, r.w - indent);
    if (y >= r.y && y < r.y + r.h) {
      char *part = mem_printf("%.*s", (int)n, s);
      legend_text(g, r.x + indent, y, r.w - indent, part, l->style, glyphs);
      mem_free(part);
    }
    s += n;
    if (n == 0)
      break;
  }
}

int text_draw(const struct text *t, struct grid *g, struct rect r, int back, enum glyphs glyphs)
{
  if (r.w <= 0 || r.h <= 0 || t->n == 0)
    return 0;
  int total = text_rows(t, t->n, r.w, back + r.h);
  if (back > total - r.h)
    back = total > r.h ? total - r.h : 0;
  /* rows from the top while there are few, else from the bottom */
  int y = total - back < r.h ? r.y + total : r.y + r.h + back;
  for (size_t i = t->n; i-- > 0 && y > r.y;) {
    const struct text_line *l = line_at(t, i);
    y -= rows_of(l, r.w);
    draw_line(l, g, r, y, glyphs);
  }
  return back;
}
