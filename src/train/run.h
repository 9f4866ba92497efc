/* A run: one training with its model, data, knobs, optimizer, journal and snapshots. Not thread-safe: the engine owns
 * it and is the way in from other threads (train/engine.h). */
#ifndef TRAIN_RUN_H
#define TRAIN_RUN_H

#include "data/dataset.h"
#include "model/graph.h"
#include "probe/variance.h"
#include "train/knob.h"

struct run;

enum metric {
#define METRIC(id, ...) METRIC_##id,
#include "train/metric.def"
#undef METRIC
  METRIC_COUNT
};
struct metric_info {
  const char *name, *unit;
  bool log_axis;
  const char *help;
};
extern const struct metric_info metric_table[METRIC_COUNT];

enum event_kind {
  EVENT_SET,
  EVENT_EVAL,
  EVENT_SNAPSHOT,
  EVENT_REWIND, /* loading a file too */
  EVENT_FORK,
  EVENT_DIVERGED,
  EVENT_NOTE,
  EVENT_END
};

/* Where a run tells what happens, on the thread that steps it; must not block. */
struct run_sink {
  void *ctx;
  void (*metric)(void *ctx, const struct run *r, enum metric m, uint64_t step, uint64_t examples, double value);
  /* a line for people ("bits 8 -> 4"); mark: short label for the plots, or NULL */
  void (*event)(void *ctx, const struct run *r, enum event_kind kind, uint64_t step, uint64_t examples,
                const char *text, const char *mark);
};

struct run_config {
  const struct model_desc *model; /* copied */
  const struct knobs *knobs;      /* starting values, defaults of the model already applied; copied */
  const char *journal_path;       /* NULL: none; "-": standard output */
  struct run_sink sink;           /* may be all zero */
  const char *name;               /* "run1"; for people */
  struct pool *pool;              /* borrowed; NULL: the run makes its own from the knob `threads` */
};
struct run *run_create(const struct run_config *c, struct err *e) ERR_MUST_CHECK;
/* Writes the journal's end line with that reason ("done", "stopped", "interrupted") and closes it. */
int run_finish(struct run *r, const char *reason, struct err *e) ERR_MUST_CHECK;
void run_free(struct run *r); /* finishes as "stopped" when that was not done */

/* Queues a change; it is checked now, against all that is queued, and takes effect before the next step. */
int run_set(struct run *r, const char *knob, const char *value, struct err *e) ERR_MUST_CHECK;
/* How many wait, and taking back those after the first n: several that belong together go in whole or not at all. */
size_t run_n_queued(const struct run *r);
void run_unqueue(struct run *r, size_t n);
/* Value set last, applied or queued. */
int run_get(const struct run *r, const char *knob, struct knob_value *out, struct err *e) ERR_MUST_CHECK;

enum step_result {
  STEP_OK,
  STEP_DIVERGED, /* NaN or Inf: the state is that before the step; the event names layer and site */
  STEP_FAILED,   /* the journal cannot be written, no memory for the batch: message in e; the state is that before */
};
/* Applies what is queued, does one training step, journals it, evaluates where it is due. */
enum step_result run_step(struct run *r, struct err *e);

/* Runs the held-out split; journals and returns it. */
int run_evaluate(struct run *r, double *loss, double *accuracy, struct err *e) ERR_MUST_CHECK;

uint64_t run_n_steps(const struct run *r);    /* done */
uint64_t run_n_examples(const struct run *r); /* seen */
double run_epoch(const struct run *r);        /* examples seen / training examples */
double run_seconds(const struct run *r);      /* spent in training steps */
double run_metric(const struct run *r, enum metric m); /* last value; NaN when there is none */
const char *run_name(const struct run *r);
const struct knobs *run_knobs(const struct run *r); /* in effect */
const struct knobs *run_next_knobs(const struct run *r); /* with what is queued */
struct graph *run_graph(struct run *r);
const struct dataset *run_dataset(const struct run *r);
const struct model_desc *run_model(const struct run *r);
const char *run_journal_path(const struct run *r); /* NULL: none */
void run_weights_hash(struct run *r, char hex[33]);
/* Steps that the knobs `steps` or `epochs` ask for at the present batch; 0: no end. */
uint64_t run_target_steps(const struct run *r);
void run_set_sink(struct run *r, const struct run_sink *s);

struct run_memory {
  size_t weights, gradients, optimizer, activations, snapshots;
};
struct run_memory run_memory(const struct run *r);

/* A state file is a safetensors: weights under their parameters' names, to be read by anything, and all other state
 * (train/state_file.c), so that run_load() goes on bit for bit. run_load() takes the knobs of the file, except those of
 * the start, drops what is queued, and refuses another model, seed or data; a file of weights alone gives just these,
 * with empty moments. On failure the run is unchanged. Snapshots of before are gone. */
int run_save(struct run *r, const char *path, struct err *e) ERR_MUST_CHECK;
int run_load(struct run *r, const char *path, struct err *e) ERR_MUST_CHECK;
/* Goes back to the state at `step`, from the nearest kept snapshot at or before it, repeating the rest with the
 * changes that were made then. What is queued is dropped. `stop` (may be NULL) is asked before each step that is
 * repeated, with its number, and ends the work when it returns true. On failure the run stays at its step, with what is
 * queued. */
typedef bool run_stop(void *ctx, uint64_t step);
int run_rewind(struct run *r, uint64_t step, struct err *e) ERR_MUST_CHECK;
int run_rewind_unless(struct run *r, uint64_t step, run_stop *stop, void *ctx, struct err *e) ERR_MUST_CHECK;
/* A second run from this very state, with what is queued here queued there too. Of c, name, journal, sink and pool
 * count. With a journal JOURNAL, the state is kept in JOURNAL.start.safetensors, which a replay needs. */
struct run *run_fork(struct run *r, const struct run_config *c, struct err *e) ERR_MUST_CHECK;

#endif
