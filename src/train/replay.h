/* Repeats a run from its journal and compares: losses of every step, and the hash of the weights at the end. */
#ifndef TRAIN_REPLAY_H
#define TRAIN_REPLAY_H

#include "base/err.h"
#include "train/run.h"

struct replay_result {
  uint64_t n_steps;        /* repeated */
  uint64_t first_mismatch; /* step whose loss differs; 0: none */
  bool has_end;            /* the journal has its end line, so the hash was compared */
  bool same_hash;
  char want_hash[33], got_hash[33];
  char note[512]; /* what differs between the machines (ISA, BLAS core, threads), or empty */
};

/* to_step: UINT64_MAX for all. progress may be NULL; returning false stops (interrupted). It is called after each step
 * with its loss, and before each step that a rewind repeats, with NaN. */
int replay_journal(const char *path, uint64_t to_step, bool (*progress)(void *ctx, uint64_t step, double loss),
                   void *ctx, struct replay_result *out, struct err *e) ERR_MUST_CHECK;

#endif
