/* The bounded queue from the engine to the screen. One writer (the engine), one reader (the screen). The writer never
 * waits: while the queue is full, points of one series are merged (min, max, sum, count) and events are counted. */
#ifndef TRAIN_FEED_H
#define TRAIN_FEED_H

#include <stdbool.h>
#include <stdint.h>

#include "train/run.h"

struct feed_point {
  int run_id;
  enum metric metric;
  uint64_t step, examples; /* of the last value merged */
  double min, max, sum;    /* of the finite values */
  uint32_t n, n_bad;       /* finite values; NaN or Inf among them */
};
struct feed_event {
  int run_id;
  enum event_kind kind;
  uint64_t step, examples;
  char text[192];
  char mark[32]; /* empty: none */
};

struct feed;
struct feed *feed_create(void);
void feed_free(struct feed *f);
void feed_put_point(struct feed *f, const struct feed_point *p);
void feed_put_event(struct feed *f, const struct feed_event *e);
bool feed_get_point(struct feed *f, struct feed_point *out);
bool feed_get_event(struct feed *f, struct feed_event *out);
uint64_t feed_n_lost_events(const struct feed *f);

#endif
