/* The state of the screen, which panes draw and the loop changes. All of it belongs to the screen's thread. */
#ifndef UI_WORKBENCH_H
#define UI_WORKBENCH_H

#include "ui/input.h"
#include "ui/keymap.h"
#include "ui/layout.h"
#include "ui/store.h"
#include "ui/ui.h"
#include "ui/worker.h"

#define N_PLOTS 2 /* PANE_LOSS and PANE_VARIANCE */

struct plot_view { /* how a plot is shown */
  bool log_y;
  int smooth; /* index of smooth_steps[] */
};

struct workbench {
  const struct ui_config *config;
  struct engine *engine;
  struct worker *worker;
  struct store store;
  struct input input;
  struct grid grid;
  struct layout layout;
  enum glyphs glyphs;

  enum pane_id focus, last_plot, expanded; /* expanded: PANE_COUNT for none */
  struct plot_view view[N_PLOTS];
  enum x_unit x_unit;
  int zoom; /* x shows the newest 1/2^zoom */
  bool frozen;
  double frozen_to[X_UNITS]; /* last x shown */
  int back[PANE_COUNT];      /* rows scrolled back (events, prompt) or down (status) */
  bool help, asking_quit;
  int help_top;

  struct text output;       /* of the prompt */
  size_t lines_before;      /* output.n_ever when the last entry was typed */
  struct str captured_line; /* begun line of what libraries wrote */
  struct str captured;      /* the end of all they wrote, printed after leaving */

  int run_id; /* shown; 0: none */
  struct run_status status;
  struct knobs changed_from; /* those before the last change */
  double changed_at;         /* seconds, monotonic; 0: never */
  struct worker_state lua;

  bool dirty;  /* something to draw */
  bool hidden; /* in the background: nothing is drawn */
  bool leaving;
  int cursor_x, cursor_y;
};

/* panes.c: everything into the grid. */
void workbench_draw(struct workbench *wb);

/* Each pane draws into its rectangle, which is blank. */
void pane_plot_draw(struct workbench *wb, enum pane_id which, struct rect r);
void pane_status_draw(struct workbench *wb, enum pane_id which, struct rect r);
void pane_events_draw(struct workbench *wb, enum pane_id which, struct rect r);
void pane_prompt_draw(struct workbench *wb, enum pane_id which, struct rect r);
void help_draw(struct workbench *wb);

/* Title row: the name, and what stands at its right, on a line. Returns what is left below. */
struct rect pane_title(struct workbench *wb, enum pane_id which, struct rect r, const char *name, const char *note,
                       enum style note_style);

extern const double smooth_steps[];
extern const int n_smooth_steps;

/* actions.c */
void workbench_key(struct workbench *wb, const struct key *k);
void workbench_suspend(struct workbench *wb);

/* loop.c: until the user leaves or a signal ends it. */
void workbench_loop(struct workbench *wb);

/* summary.c: what is left on the normal screen; made before the runs are finished, from their status. */
void summary_add(struct workbench *wb, const struct run_status *s, struct str *out);

#endif
