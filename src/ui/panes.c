/* The whole screen: panes, footer, overlays, and what stands there when it is too small. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "ui/legend.h"
#include "ui/prompt.h"
#include "ui/workbench.h"

static void (*const draw_pane[PANE_COUNT])(struct workbench *wb, enum pane_id which, struct rect r) = {
    [PANE_LOSS] = pane_plot_draw,     [PANE_VARIANCE] = pane_plot_draw, [PANE_STATUS] = pane_status_draw,
    [PANE_EVENTS] = pane_events_draw, [PANE_PROMPT] = pane_prompt_draw,
};

struct rect pane_title(struct workbench *wb, enum pane_id which, struct rect r, const char *name, const char *note,
                       enum style note_style)
{
  struct grid *g = &wb->grid;
  bool ascii = wb->glyphs == GLYPHS_ASCII;
  bool focus = wb->focus == which && !wb->layout.too_small;
  for (int x = 0; x < r.w; x++)
    grid_put(g, r.x + x, r.y, ascii ? '-' : 0x2500, STYLE_DIM);
  int x = legend_text(g, r.x, r.y, r.w, name, focus ? STYLE_FOCUS : STYLE_TITLE, wb->glyphs);
  if (x < r.w)
    grid_put(g, r.x + x++, r.y, ' ', STYLE_NORMAL);
  if (note && *note && x + 2 < r.w) {
    x += legend_text(g, r.x + x, r.y, r.w - x, note, note_style, wb->glyphs);
    grid_put(g, r.x + x, r.y, ' ', STYLE_NORMAL);
  }
  return (struct rect){r.x, r.y + 1, r.w, r.h - 1};
}

void pane_events_draw(struct workbench *wb, enum pane_id which, struct rect r)
{
  struct rect rest = pane_title(wb, which, r, "events", wb->back[which] ? "older" : NULL, STYLE_DIM);
  wb->back[which] = text_draw(&wb->store.events, &wb->grid, rest, wb->back[which], wb->glyphs);
}

/* What the prompt has to say beside its title. hidden: output of the last entry that has scrolled away. */
static void prompt_note(const struct workbench *wb, bool hidden, char *note, size_t n)
{
  const struct worker_state *s = &wb->lua;
  *note = '\0';
  if (s->opening)
    str_copy(note, n, "loading ...");
  else if (s->busy && s->seconds > 0.3)
    snprintf(note, n, "Lua runs for %.1f s, C-c stops it", s->seconds);
  else if (wb->back[PANE_PROMPT])
    str_copy(note, n, "older; PgDn comes back");
  else if (hidden)
    str_copy(note, n, "PgUp shows more");
  else if (s->script)
    str_copy(note, n, "the script runs, C-c stops it");
}

void pane_prompt_draw(struct workbench *wb, enum pane_id which, struct rect r)
{
  bool title = r.h > 1;
  int room = r.h - title, rows = prompt_rows(r.w);
  rows = rows > room ? room : rows;
  struct rect output = {r.x, r.y + title, r.w, room - rows};
  size_t n_new = wb->output.n_ever - wb->lines_before;
  bool hidden = text_rows(&wb->output, n_new, r.w, output.h + 1) > output.h;
  int used = text_rows(&wb->output, wb->output.n, r.w, output.h);
  output.h = used < output.h ? used : output.h;
  wb->back[which] = text_draw(&wb->output, &wb->grid, output, wb->back[which], wb->glyphs);
  if (title) {
    char note[80];
    prompt_note(wb, hidden, note, sizeof note);
    pane_title(wb, which, r, "prompt", note, STYLE_DIM);
  }
  struct rect entry = {r.x, output.y + output.h, r.w, rows};
  prompt_draw(&wb->grid, entry, &wb->cursor_x, &wb->cursor_y);
}

/* Keys and their meaning, as many as fit. */
static void draw_footer(struct workbench *wb, struct rect r)
{
  struct grid *g = &wb->grid;
  int where = wb->focus == PANE_PROMPT ? WHERE_PROMPT : WHERE_PANE, x = 0;
  if (wb->asking_quit) {
    grid_text_max(g, r.x, r.y, r.w, "The run goes on. Quit, and finish its journal?  y / n", STYLE_PROMPT);
    return;
  }
  if (wb->frozen)
    x += grid_text_max(g, r.x, r.y, r.w, "FROZEN (f)  ", STYLE_ERROR);
  for (const struct keymap_row *k = keymap_table; k->name; k++) {
    int w = k->hint ? (int)(strlen(k->name) + strlen(k->hint)) + 1 : 0;
    bool doubled = where == WHERE_PANE && k->where == WHERE_BOTH; /* it has a shorter key there */
    if (!(k->where & where) || !k->hint || doubled || x + w > r.w)
      continue;
    x += grid_text(g, r.x + x, r.y, k->name, STYLE_BOLD) + 1;
    x += grid_text(g, r.x + x, r.y, k->hint, STYLE_DIM) + 2;
  }
}

static void draw_too_small(struct workbench *wb)
{
  struct grid *g = &wb->grid;
  int w = cell_text_width("too small");
  if (g->h > 1)
    grid_text_max(g, g->w > w ? (g->w - w) / 2 : 0, (g->h - 1) / 2, g->w, "too small", STYLE_DIM);
}

void workbench_draw(struct workbench *wb)
{
  struct grid *g = &wb->grid;
  struct layout *l = &wb->layout;
  layout_compute(l, g->w, g->h, wb->expanded, prompt_rows(g->w));
  grid_clear(g);
  wb->cursor_x = wb->cursor_y = -1;
  if (l->too_small)
    draw_too_small(wb);
  for (int i = 0; i < PANE_COUNT; i++)
    if (l->pane[i].w > 0 && l->pane[i].h > 0)
      draw_pane[i](wb, (enum pane_id)i, l->pane[i]);
  draw_footer(wb, l->footer);
  if (wb->help && !l->too_small)
    help_draw(wb);
  if (wb->focus != PANE_PROMPT || wb->help || wb->asking_quit)
    wb->cursor_x = -1;
}
