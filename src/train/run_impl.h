/* A run's inside, for the files run*.c, state*.c, snapshot.c, rewind.c, replay.c and engine.c. */
#ifndef TRAIN_RUN_IMPL_H
#define TRAIN_RUN_IMPL_H

#include "data/sampler.h"
#include "train/journal.h"
#include "train/optimizer.h"
#include "train/run.h"
#include "train/state.h"

/* One change of a knob. In the queue step is not known yet; in the history it is the first step that it held for. */
struct change {
  uint64_t step;
  struct knob_ref ref;
  char *text;
};
struct changes {
  struct change *at;
  size_t n, cap;
};
#define QUEUE_MAX 10000 /* changes that wait for one step */
void changes_add(struct changes *c, uint64_t step, const struct knob_ref *ref, const char *text);
void changes_clear(struct changes *c);
void changes_done(struct changes *c);

/* Snapshots in memory, in the order of their steps, and the changes made since the first of them. */
#define SNAPSHOTS_MAX 1024
#define HISTORY_MAX 100000 /* changes kept for rewind(): some megabytes */
struct snapshots {
  struct state *at[SNAPSHOTS_MAX];
  size_t n, n_bytes;
  struct changes history;
  uint64_t history_from; /* changes of steps above this one are all there */
  bool told_too_big;
};

/* Rows of an evaluation: fixed, so that a scale over a tensor, and so the result, does not depend on the batch. */
#define EVAL_ROWS 256

/* Buffers of one batch; as many rows as the graph has room for. */
struct batch_buffers {
  size_t max_rows;
  float *x;
  int32_t *labels;
  uint32_t *index;
};

struct run {
  char name[32];
  struct model_desc model;
  struct knobs knobs;    /* in effect */
  struct knobs next;     /* with all that is queued */
  struct changes queue;
  struct dataset *data;
  struct sampler *sampler;
  struct graph *graph;
  struct optimizer optimizer;
  struct batch_buffers batch;
  struct pool *pool, *own_pool;
  struct counters at;
  double metric[METRIC_COUNT];
  struct quant_state *before; /* the model's quantizer states before the step under way */
  size_t n_before;

  struct journal *journal;
  char *journal_path;
  struct run_sink sink;
  bool finished;
  bool silent;   /* repeats steps that were told already: no sink, no journal, no evaluation, no snapshot */
  bool no_evals; /* a replay: evaluations decide nothing */

  struct snapshots snapshots;

  bool evaluated; /* the last evaluation is of this very state */
  double eval_loss, eval_accuracy;

  /* speed, for people */
  double seconds;      /* spent in steps */
  double seconds_carried; /* of the last step, not in `seconds` yet */
  double rate_samples, rate_seconds; /* sums that decay over about a second */
  bool told_no_end;
};

/* run_set.c */
int run_apply_changes(struct run *r, struct err *e) ERR_MUST_CHECK;
int run_make_room(struct run *r, const struct knobs *k, struct err *e) ERR_MUST_CHECK; /* for that batch */
/* run_step.c */
enum step_result run_step_silently(struct run *r, struct err *e);
/* run_eval.c */
int run_evaluate_due(struct run *r, uint64_t examples_before, struct err *e) ERR_MUST_CHECK;
/* snapshot.c */
void snapshots_due(struct run *r);                         /* takes one where the knobs say so */
void snapshots_take(struct run *r);                        /* takes one now, within the budget */
void snapshots_note_change(struct run *r, const struct change *c);
void snapshots_cut(struct run *r, uint64_t step);          /* forgets what was after that step */
void snapshots_clear(struct run *r);                       /* forgets all; history begins here */
void snapshots_thin(struct run *r);                        /* to the budget */
const struct state *snapshots_find(const struct run *r, uint64_t step); /* nearest from which `step` can be reached */
/* state_file.c: a state as a file. Reading makes a state for run r, to be committed or not; *whole is false where the
 * file holds weights alone. */
int state_file_save(struct run *r, const char *path, struct err *e) ERR_MUST_CHECK;
int state_file_read(struct run *r, const char *path, struct state *out, bool *whole, struct err *e) ERR_MUST_CHECK;
int state_file_hash(const char *path, char hex[33], struct err *e) ERR_MUST_CHECK;
/* run.c */
struct run *run_create_quiet(const struct run_config *c, struct err *e) ERR_MUST_CHECK; /* without its journal */
int run_open_journal(struct run *r, const char *path, const struct run_start *start, struct err *e) ERR_MUST_CHECK;
void run_tell(const struct run *r, enum event_kind kind, uint64_t step, const char *mark, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
int run_flush(struct run *r, struct err *e) ERR_MUST_CHECK;

#endif
