/* Losses: value, correct answers and the gradient of each sample's own loss (not divided by b). */
#ifndef MODEL_LOSS_H
#define MODEL_LOSS_H

#include "model/graph.h"

struct loss_type {
  const char *name, *help;
  /* y: rows x n, labels: rows. Fills row_loss[rows], row_correct[rows], and g (rows x n) unless it is NULL. */
  void (*apply)(struct pool *pool, const float *y, const int32_t *labels, size_t rows, size_t n, double *row_loss,
                uint8_t *row_correct, float *g);
};

extern const struct loss_type *const loss_types[]; /* NULL-terminated */
const struct loss_type *loss_type_find(const char *name, struct err *e) ERR_MUST_CHECK;

#endif
