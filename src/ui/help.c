/* The help overlay: every key of the table, and what to type. */
#include "config.h"

#include <string.h>

#include "ui/legend.h"
#include "ui/workbench.h"

/* At most 74 columns: what 80 leave. */
static const char *const prompt_text[] = {
    "bits = 4            turn a knob: it takes effect between two steps",
    "lr = lr / 2         any Lua works; an expression prints its value",
    "rounding = \"sr\"     Tab completes names, fields and values",
    "pause()  resume()  step(10)  eval()  run:save(\"x.safetensors\")",
    "help(\"rounding\")    what a knob, metric or function is; help() lists them",
    "quit()              leave; 'bitdial replay JOURNAL' repeats the run",
    "Alt-Enter adds a line to an entry. A paste waits for Enter, then runs whole.",
};
#define N_TEXT ((int)(sizeof prompt_text / sizeof *prompt_text))

struct page { /* rows drawn through a window that scrolls */
  struct workbench *wb;
  struct rect r;
  int top, row;
};

static void heading(struct page *p, const char *text)
{
  int y = p->row++ - p->top;
  if (y >= 0 && y < p->r.h)
    grid_text_max(&p->wb->grid, p->r.x, p->r.y + y, p->r.w, text, STYLE_TITLE);
}

static void line(struct page *p, const char *key, const char *text)
{
  int y = p->row++ - p->top, indent = key ? 8 : 0;
  if (y < 0 || y >= p->r.h)
    return;
  if (key)
    grid_text_max(&p->wb->grid, p->r.x, p->r.y + y, 7, key, STYLE_BOLD);
  legend_text(&p->wb->grid, p->r.x + indent, p->r.y + y, p->r.w - indent, text, STYLE_NORMAL, p->wb->glyphs);
}

static void section(struct page *p, const char *title, int where)
{
  heading(p, title);
  for (const struct keymap_row *k = keymap_table; k->name; k++)
    if (k->where == where)
      line(p, k->name, k->help);
  p->row++;
}

static void frame(struct workbench *wb, struct rect r)
{
  bool ascii = wb->glyphs == GLYPHS_ASCII;
  for (int y = 0; y < r.h; y++)
    for (int x = 0; x < r.w; x++) {
      bool side = x == 0 || x == r.w - 1, end = y == 0 || y == r.h - 1;
      uint32_t corner = y == 0 ? (x == 0 ? 0x250C : 0x2510) : (x == 0 ? 0x2514 : 0x2518);
      uint32_t ch = side && end ? corner : side ? 0x2502 : end ? 0x2500 : ' ';
      if (ascii)
        ch = side && end ? '+' : side ? '|' : end ? '-' : ' ';
      grid_put(&wb->grid, r.x + x, r.y + y, ch, STYLE_DIM);
    }
}

void help_draw(struct workbench *wb)
{
  struct grid *g = &wb->grid;
  int w = g->w < 88 ? g->w : 88, h = g->h;
  struct rect r = {(g->w - w) / 2, 0, w, h};
  struct page p = {wb, {r.x + 2, r.y + 1, w - 4, h - 2}, wb->help_top, 0};
  frame(wb, r);
  heading(&p, "At the prompt, type");
  for (int i = 0; i < N_TEXT; i++)
    line(&p, NULL, prompt_text[i]);
  p.row++;
  section(&p, "Keys, everywhere", WHERE_BOTH);
  section(&p, "Keys at the prompt (and readline's own)", WHERE_PROMPT);
  section(&p, "Keys of the panes (Esc leaves the prompt)", WHERE_PANE);
  int most = p.row - p.r.h > 0 ? p.row - p.r.h : 0;
  if (wb->help_top > most) {
    wb->help_top = most;
    help_draw(wb);
    return;
  }
  const char *hint = most > 0 ? " Up, Down, PgUp, PgDn scroll; any other key closes " : " any key closes ";
  int k = cell_text_width(hint);
  if (k < w - 2)
    grid_text(g, r.x + w - 1 - k, r.y + h - 1, hint, STYLE_DIM);
}
