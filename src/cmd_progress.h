/* Lines for people while runs go on without a screen: reads the engine's feed on a thread of its own, so that printing
 * never holds up a step. */
#ifndef CMD_PROGRESS_H
#define CMD_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "train/engine.h"

struct progress_config {
  struct engine *engine;
  FILE *out;
  uint64_t every; /* steps between lines; 0: none but evaluations and events */
  bool live;      /* on a terminal: one more line that is always fresh */
};

struct progress;
struct progress *progress_begin(const struct progress_config *c);
/* Prints what is left and ends the thread. NULL is fine. */
void progress_end(struct progress *p);

/* "0:42", "1:02:03" for seconds. */
const char *progress_duration(double seconds, char out[32]);

#endif
