/* What the screen remembers of the runs: series, marks and events, drained from the engine's feed. The screen's thread
 * alone uses it. */
#ifndef UI_STORE_H
#define UI_STORE_H

#include "train/engine.h"
#include "ui/plot.h"
#include "ui/series.h"
#include "ui/text.h"

enum x_unit { X_EXAMPLES, X_STEPS, X_UNITS };

#define STORE_BLOCKS 2048
#define STORE_MARKS 256 /* a run; the oldest go first */

struct store_run {
  struct store_run *next;
  int id;
  struct series *series[X_UNITS][METRIC_COUNT]; /* NULL: no value yet */
  struct plot_mark mark[X_UNITS][STORE_MARKS];
  size_t n_marks;
  uint64_t healed_step; /* a point told of a rewind before its event did; 0: none */
};
struct store {
  struct store_run *runs;
  struct text events;
  uint64_t n_lost;
  size_t n_points; /* drained so far: changes when there is something new to draw */
};
void store_init(struct store *s);
void store_done(struct store *s);
/* Takes what has come; returns whether there was anything. Bounded work: a flood is left for the next call. */
bool store_drain(struct store *s, struct feed *f);
struct store_run *store_find(struct store *s, int run_id); /* NULL: nothing is known of it */
/* A line of the screen's own among the events. */
void store_note(struct store *s, const char *text, enum style style);

#endif
