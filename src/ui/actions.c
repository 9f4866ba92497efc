/* What keys do. */
#include "config.h"

#include <math.h>
#include <signal.h>
#include <string.h>

#include "ui/prompt.h"
#include "ui/screen.h"
#include "ui/signals.h"
#include "ui/terminal.h"
#include "ui/workbench.h"

#define MAX_ZOOM 12

static bool is_plot(enum pane_id p)
{
  return p == PANE_LOSS || p == PANE_VARIANCE;
}

static void set_focus(struct workbench *wb, enum pane_id p)
{
  wb->focus = p;
  if (is_plot(p))
    wb->last_plot = p;
  if (wb->expanded < PANE_COUNT && p != PANE_PROMPT)
    wb->expanded = p;
}

static void leave_prompt(struct workbench *wb, int argument)
{
  (void)argument;
  set_focus(wb, wb->expanded < PANE_COUNT ? wb->expanded : wb->last_plot);
}

static void to_prompt(struct workbench *wb, int argument)
{
  (void)argument;
  set_focus(wb, PANE_PROMPT);
}

/* To the next pane that is shown; with one expanded, all are. */
static void move_focus(struct workbench *wb, int by)
{
  int p = wb->focus;
  for (int i = 0; i < PANE_COUNT; i++) {
    p = (p + by + PANE_COUNT) % PANE_COUNT;
    if (wb->expanded < PANE_COUNT || wb->layout.pane[p].h > 0)
      break;
  }
  set_focus(wb, (enum pane_id)p);
}

static void pause_or_go(struct workbench *wb, int argument)
{
  (void)argument;
  if (!wb->run_id)
    return;
  uint64_t left = 0;
  struct err why;
  if (engine_state(wb->engine, wb->run_id, &left, &why) == ENGINE_RUNNING)
    engine_pause(wb->engine, wb->run_id);
  else
    engine_go(wb->engine, wb->run_id, left ? 0 : ENGINE_FOREVER);
}

/* From a run that goes: the pause alone, so that the key can be hit again for each step. */
static void one_step(struct workbench *wb, int argument)
{
  (void)argument;
  if (!wb->run_id)
    return;
  uint64_t left = 0;
  struct err why;
  if (engine_state(wb->engine, wb->run_id, &left, &why) == ENGINE_RUNNING) {
    engine_pause(wb->engine, wb->run_id);
    return;
  }
  /* the steps that were left come back with Space: a single one is added to none */
  engine_go(wb->engine, wb->run_id, 1);
}

static void for_plots(struct workbench *wb, void (*change)(struct plot_view *v))
{
  for (int i = 0; i < N_PLOTS; i++)
    if (!is_plot(wb->focus) || wb->focus == (enum pane_id)i)
      change(&wb->view[i]);
}

static void toggle_log(struct plot_view *v)
{
  v->log_y = !v->log_y;
}

static void next_smooth(struct plot_view *v)
{
  v->smooth = (v->smooth + 1) % n_smooth_steps;
}

static void log_y(struct workbench *wb, int argument)
{
  (void)argument;
  for_plots(wb, toggle_log);
}

static void smooth(struct workbench *wb, int argument)
{
  (void)argument;
  for_plots(wb, next_smooth);
}

static void x_unit(struct workbench *wb, int argument)
{
  (void)argument;
  wb->x_unit = (enum x_unit)((wb->x_unit + 1) % X_UNITS);
}

static void zoom_x(struct workbench *wb, int by)
{
  wb->zoom = by == 0 ? 0 : wb->zoom + by;
  wb->zoom = wb->zoom < 0 ? 0 : wb->zoom > MAX_ZOOM ? MAX_ZOOM : wb->zoom;
}

static void expand(struct workbench *wb, int argument)
{
  (void)argument;
  if (wb->expanded < PANE_COUNT)
    wb->expanded = PANE_COUNT;
  else
    wb->expanded = wb->focus == PANE_PROMPT ? wb->last_plot : wb->focus;
}

static void scroll_by(struct workbench *wb, enum pane_id p, int rows)
{
  if (p == PANE_STATUS)
    wb->back[p] += rows;
  else
    wb->back[p] -= rows;
  if (wb->back[p] < 0)
    wb->back[p] = 0;
}

static void scroll(struct workbench *wb, int by)
{
  scroll_by(wb, wb->focus, by);
}

static void scroll_page(struct workbench *wb, int by)
{
  enum pane_id p = is_plot(wb->focus) ? PANE_PROMPT : wb->focus;
  int h = wb->layout.pane[p].h;
  scroll_by(wb, p, by * (h > 3 ? h - 2 : 1));
}

static void tail(struct workbench *wb, int argument)
{
  (void)argument;
  memset(wb->back, 0, sizeof wb->back);
}

static void freeze(struct workbench *wb, int argument)
{
  (void)argument;
  wb->frozen = !wb->frozen;
  wb->frozen_to[X_EXAMPLES] = (double)wb->status.examples;
  wb->frozen_to[X_STEPS] = (double)wb->status.step;
}

static void help(struct workbench *wb, int argument)
{
  (void)argument;
  wb->help = true;
  wb->help_top = 0;
}

static void quit(struct workbench *wb, int argument)
{
  (void)argument;
  if (wb->run_id && wb->status.state == ENGINE_RUNNING)
    wb->asking_quit = true;
  else
    wb->leaving = true;
}

static void redraw(struct workbench *wb, int argument)
{
  (void)wb;
  (void)argument;
  screen_redraw();
}

void workbench_suspend(struct workbench *wb)
{
  screen_suspend();
  signals_suspend();
  wb->hidden = true; /* until the loop sees us in the foreground */
}

static void suspend(struct workbench *wb, int argument)
{
  (void)argument;
  workbench_suspend(wb);
}

/* An entry that runs is stopped; else a line that was begun is cleared; else whatever runs in Lua is stopped, a script
 * or a handler. */
static void interrupt(struct workbench *wb, int argument)
{
  (void)argument;
  bool had_text = prompt_clear();
  if (had_text && !wb->lua.busy)
    return;
  if (!worker_interrupt(wb->worker) && !had_text)
    text_add_line(&wb->output, "nothing runs in Lua; quit() or C-d leaves, F5 pauses the run", STYLE_DIM, 0);
}

static void abort_now(struct workbench *wb, int argument)
{
  (void)wb;
  (void)argument;
  raise(SIGQUIT); /* the handler gives the terminal back first */
}

static void (*const act[])(struct workbench *wb, int argument) = {
    [ACTION_LEAVE_PROMPT] = leave_prompt,
    [ACTION_TO_PROMPT] = to_prompt,
    [ACTION_FOCUS] = move_focus,
    [ACTION_PAUSE] = pause_or_go,
    [ACTION_STEP] = one_step,
    [ACTION_LOG_Y] = log_y,
    [ACTION_SMOOTH] = smooth,
    [ACTION_X_UNIT] = x_unit,
    [ACTION_ZOOM_X] = zoom_x,
    [ACTION_EXPAND] = expand,
    [ACTION_SCROLL] = scroll,
    [ACTION_SCROLL_PAGE] = scroll_page,
    [ACTION_TAIL] = tail,
    [ACTION_FREEZE] = freeze,
    [ACTION_HELP] = help,
    [ACTION_QUIT] = quit,
    [ACTION_REDRAW] = redraw,
    [ACTION_SUSPEND] = suspend,
    [ACTION_INTERRUPT] = interrupt,
    [ACTION_ABORT] = abort_now,
};

static void answer_quit(struct workbench *wb, uint32_t code)
{
  wb->asking_quit = false;
  if (code == 'y' || code == 'Y' || code == '\r' || code == 'q')
    wb->leaving = true;
}

/* While help is shown: it scrolls, or any other key closes it. */
static void key_in_help(struct workbench *wb, const struct key *k)
{
  const struct keymap_row *row = keymap_find(WHERE_PANE, k->code);
  int page = wb->grid.h > 6 ? wb->grid.h - 4 : 1;
  if (row && row->action == ACTION_SCROLL)
    wb->help_top += row->argument;
  else if (row && row->action == ACTION_SCROLL_PAGE)
    wb->help_top += row->argument * page;
  else if (row && (row->action == ACTION_REDRAW || row->action == ACTION_SUSPEND || row->action == ACTION_ABORT))
    act[row->action](wb, row->argument);
  else
    wb->help = false;
  wb->help_top = wb->help_top < 0 ? 0 : wb->help_top;
}

void workbench_key(struct workbench *wb, const struct key *k)
{
  wb->dirty = true;
  if (wb->asking_quit) {
    answer_quit(wb, k->code);
    return;
  }
  if (wb->help) {
    key_in_help(wb, k);
    return;
  }
  if (k->code == KEY_PASTE) {
    set_focus(wb, PANE_PROMPT);
    prompt_paste(k->bytes, k->n_bytes);
    return;
  }
  bool at_prompt = wb->focus == PANE_PROMPT;
  const struct keymap_row *row = keymap_find(at_prompt ? WHERE_PROMPT : WHERE_PANE, k->code);
  if (row && !(row->action == ACTION_LEAVE_PROMPT && prompt_takes_esc())) {
    act[row->action](wb, row->argument);
  } else if (at_prompt && (k->code & KEY_MASK) != KEY_NONE) {
    wb->back[PANE_PROMPT] = 0; /* typing brings the entry's place back */
    prompt_key(k->bytes, k->n_bytes);
  }
}
