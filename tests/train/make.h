/* Small runs for the tests of this layer. */
#ifndef TESTS_TRAIN_MAKE_H
#define TESTS_TRAIN_MAKE_H

#include "train/run.h"

/* 2 - 24 - 24 - 2 on spirals, recipe paper at 8 bits, batch 64, one thread, seed 7; then the pairs "knob", "value" up
 * to NULL. Bails out when it cannot be made. */
struct run *make_run(const char *journal_path, ...) __attribute__((sentinel));
struct run *try_run(struct err *e, const char *journal_path, ...) __attribute__((sentinel)); /* or NULL */
void make_model(struct model_desc *d);

void set(struct run *r, const char *knob, const char *value); /* bails out when refused */
void steps(struct run *r, int n);                             /* bails out unless all are STEP_OK */
const char *hash_of(struct run *r);                           /* of the weights; one of four static buffers */
char *temp_path(const char *leaf); /* in a directory of this test, which is removed at exit; caller mem_free()s */

#endif
