/* Layout of an entry. */
#include "config.h"

#include "ui/entry.h"

/* Where the next character of the entry goes. */
struct pen_at {
  int x, y, w;
};

static void draw_char(struct pen_at *at, struct grid *g, struct rect r, int first, uint32_t ch, enum style s)
{
  int k = cell_width(ch);
  char caret[2] = {'^', (char)(ch < 0x20 ? ch + '@' : '?')};
  int columns = k < 0 ? (ch < 0x80 ? 2 : 1) : k;
  if (at->x + columns > at->w) {
    at->x = 0;
    at->y++;
  }
  if (g && at->y >= first && at->y < first + r.h) {
    int y = r.y + at->y - first;
    if (k < 0 && ch < 0x80) {
      grid_put(g, r.x + at->x, y, (uint32_t)caret[0], STYLE_DIM);
      grid_put(g, r.x + at->x + 1, y, (uint32_t)caret[1], STYLE_DIM);
    } else {
      grid_put(g, r.x + at->x, y, ch, s);
    }
  }
  at->x += columns;
}

static void draw_string(struct pen_at *at, struct grid *g, struct rect r, int first, const char *s, enum style style)
{
  for (uint32_t ch; (ch = cell_decode(&s));)
    if (ch != 1 && ch != 2) /* readline's marks of invisible parts */
      draw_char(at, g, r, first, ch, style);
}

/* Lays the entry out at the width of r, drawing rows from `first` on where g is given; returns rows, the cursor in *cx,
 * *cy. */
static int lay_out(const struct entry *e, struct grid *g, struct rect r, int first, int *cx, int *cy)
{
  struct pen_at at = {.w = r.w > 0 ? r.w : 1};
  const char *s = e->text, *point = s + e->point;
  bool placed = false;
  draw_string(&at, g, r, first, e->prompt, STYLE_PROMPT);
  for (;; placed |= s > point) {
    if (s >= point && !placed) {
      *cx = at.x;
      *cy = at.y;
    }
    uint32_t ch = cell_decode(&s);
    if (ch == 0)
      break;
    if (ch == '\n') {
      at.x = 0;
      at.y++;
      draw_string(&at, g, r, first, e->more, STYLE_PROMPT);
    } else if (ch == '\t') {
      do
        draw_char(&at, g, r, first, ' ', STYLE_NORMAL);
      while (at.x % 4 && at.x < at.w);
    } else {
      draw_char(&at, g, r, first, ch, STYLE_NORMAL);
    }
  }
  if (*cx >= at.w) { /* behind the last column */
    *cx = 0;
    (*cy)++;
  }
  return (*cy > at.y ? *cy : at.y) + 1;
}

int entry_rows(const struct entry *e, int w)
{
  int x, y;
  return lay_out(e, NULL, (struct rect){0, 0, w, 0}, 0, &x, &y);
}

void entry_draw(const struct entry *e, struct grid *g, struct rect r, int *cursor_x, int *cursor_y)
{
  int x, y, rows = lay_out(e, NULL, r, 0, &x, &y);
  int first = rows > r.h ? y - r.h / 2 : 0;
  first = first > rows - r.h ? rows - r.h : first;
  first = first < 0 ? 0 : first;
  lay_out(e, g, r, first, &x, &y);
  *cursor_x = r.x + x;
  *cursor_y = r.y + y - first;
}
