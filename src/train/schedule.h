/* How the learning rate goes: with the examples seen (schedule) and with the batch (lr_scaling).
 *
 *   lr of a step = lr * schedule_factor(examples seen / length) * lr_scaling_factor(batch / base batch)
 *
 * The base batch is the batch at which `lr` or `lr_scaling` was set last, at the start of the run or later: setting lr
 * means that lr, at the batch there is. Several knobs set at one boundary count in their order. */
#ifndef TRAIN_SCHEDULE_H
#define TRAIN_SCHEDULE_H

#include <stddef.h>

struct schedule {
  const char *name, *help;
  double (*factor)(double progress); /* progress in [0, 1], after the warm-up */
};
extern const struct schedule schedule_table[]; /* ends with a row without a name */
extern const char *const schedule_names[];     /* NULL-terminated */

/* Factor of a step that takes examples [seen, seen + batch) of `length` (0: no end, then 1). warmup is the share of the
 * length in which the factor rises linearly, from the first step on above 0. After the end it stays as at the end. */
double schedule_factor(const char *name, double warmup, double seen, double batch, double length);

double lr_scaling_factor(const char *name, double batch, double base_batch);

#endif
