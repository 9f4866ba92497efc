/* The journal: JSON Lines that hold all that is needed to repeat a run (doc/journal.md has every field).
 *
 * Steps are numbered from 1: the line `step` s tells of the s-th step. A `set` line with step s stands before that line
 * and takes effect at step s: it is the first one computed with the new value. Events and evaluations carry the number
 * of steps done, except `diverged`, which carries the step that was not done. */
#ifndef TRAIN_JOURNAL_H
#define TRAIN_JOURNAL_H

#include <stdbool.h>

#include "io/jsonl.h"
#include "train/run.h"

#define JOURNAL_VERSION 1

/* Where a run begins when not at step 0 with fresh weights: a fork, from a file. */
struct run_start {
  char *path; /* of the state file; NULL where it could not be kept (the journal goes to standard output) */
  char hash[33];
  uint64_t step;
  const char *from; /* name of the run it was forked from */
};

struct journal;

/* Creates the file and writes the header. start may be NULL. */
struct journal *journal_create(const char *path, struct run *r, const struct run_start *start, struct err *e)
    ERR_MUST_CHECK;
int journal_close(struct journal *j, struct err *e) ERR_MUST_CHECK;
int journal_flush(struct journal *j, struct err *e) ERR_MUST_CHECK;

struct journal_step {
  double loss, grad_norm, lr, samples_per_s;
  const struct grad_variance *variance; /* NULL: not measured at this step */
};
int journal_step(struct journal *j, const struct run *r, const struct journal_step *s, struct err *e) ERR_MUST_CHECK;
int journal_set(struct journal *j, uint64_t step, const struct knob_ref *k, const struct knob_value *value,
                const struct knob_value *previous, struct err *e) ERR_MUST_CHECK;
int journal_eval(struct journal *j, const struct run *r, double loss, double accuracy, struct err *e) ERR_MUST_CHECK;
int journal_end(struct journal *j, const struct run *r, const char *reason, const char *weights_hash, struct err *e)
    ERR_MUST_CHECK;

/* {"kind":"event","step":...,"name":...: the caller adds fields to the result and calls journal_event_end(). */
struct jsonl *journal_event(struct journal *j, uint64_t step, const char *name);
int journal_event_end(struct journal *j, struct err *e) ERR_MUST_CHECK;

#endif
