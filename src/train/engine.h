/* The engine: one thread that steps runs. It owns them while it lives; other threads reach a run through these calls,
 * which queue, or through engine_lock(), which waits for the step under way to end (a step boundary).
 *
 * It never waits for the screen: metrics go into a bounded feed (train/feed.h) that merges points when nobody reads. */
#ifndef TRAIN_ENGINE_H
#define TRAIN_ENGINE_H

#include "train/feed.h"
#include "train/run.h"

struct engine;

struct engine *engine_create(int n_threads, struct err *e) ERR_MUST_CHECK;
void engine_free(struct engine *e); /* stops after the step under way, finishes the runs */

struct pool *engine_pool(struct engine *e); /* for run_config.pool; only the holder of a boundary may use it */

/* Takes ownership of the run; it stands still until engine_go(). Returns its id (1, 2, ...). */
int engine_add(struct engine *e, struct run *r);
/* Stops, finishes and frees it. */
int engine_remove(struct engine *e, int run_id, struct err *err) ERR_MUST_CHECK;
struct run *engine_run(struct engine *e, int run_id); /* use it between engine_lock() and unlock only */

/* Steps wanted from now on; ENGINE_FOREVER: until stopped. A run that runs does so many more than it was to do; one
 * that stands still does so many, and with 0 goes on with what was left when it was paused. */
#define ENGINE_FOREVER UINT64_MAX
void engine_go(struct engine *e, int run_id, uint64_t n_steps);
void engine_pause(struct engine *e, int run_id); /* returns at once; the step under way ends */
enum engine_state { ENGINE_IDLE, ENGINE_RUNNING, ENGINE_PAUSED, ENGINE_DIVERGED, ENGINE_FAILED };
enum engine_state engine_state(struct engine *e, int run_id, uint64_t *steps_left, struct err *why);
/* Waits until the run stands still; `poll` (may be NULL) is called every ~10 ms and ends the wait when it returns
 * true. Returns 0 when the steps were done, -1 when diverged, failed or given up (message). */
int engine_wait(struct engine *e, int run_id, bool (*poll)(void *ctx), void *ctx, struct err *err) ERR_MUST_CHECK;

/* Holds the engine at a step boundary: waits for the step under way and for those who came before, no longer.
 * Re-entrant, on the engine's own thread too (handlers). */
void engine_lock(struct engine *e);
void engine_unlock(struct engine *e);

/* Called on the engine's thread at every step boundary of that run, the engine held. */
typedef void engine_hook(void *ctx, int run_id, struct run *r, enum step_result result);
void engine_set_hook(struct engine *e, engine_hook *hook, void *ctx);

struct feed *engine_feed(struct engine *e);

/* What the status pane shows; a copy made at the last boundary, readable at any time without waiting for a step. */
struct run_status {
  int run_id;
  char name[32];
  enum engine_state state;
  uint64_t step, examples, steps_left;
  double epoch, seconds;
  double metric[METRIC_COUNT];
  struct knobs knobs;
  struct run_memory memory;
  char model[32], data[64], journal[256];
  size_t n_weights;
};
int engine_status(struct engine *e, int run_id, struct run_status *out); /* -1: no such run */
int engine_run_ids(struct engine *e, int *ids, int max);                 /* how many */

#endif
