/* The graph's inside, for the files graph*.c. */
#ifndef MODEL_GRAPH_IMPL_H
#define MODEL_GRAPH_IMPL_H

#include "model/layer.h"
#include "model/loss.h"

/* Where each layer's output and output gradient lie, in values a sample; buffers are `width * max_rows` long. */
struct graph_plan {
  size_t *y_at, *dy_at; /* n_layers each; dy_at is PLAN_NONE where no gradient is needed */
  size_t y_width, dy_width;
};
#define PLAN_NONE ((size_t)-1)

/* Buffers whose size depends on the batch. */
struct graph_buffers {
  size_t max_rows;
  float *y, *dy;
  void *rows; /* scratch.* and the loss's rows, carved from one block */
  size_t y_bytes, dy_bytes, rows_bytes;
  struct scratch scratch;
  double *row_loss;
  uint8_t *row_correct;
};

struct graph {
  struct model_desc desc;
  struct layer *layer;
  int n_layers;
  struct param *param;
  size_t n_params, n_weights;
  float *weights, *gradients;
  float *copies;    /* quantized weights, one behind the other */
  float *scratch_w; /* behind them: room for the largest once more */
  float *scratch_parts; /* and for what layers sum in parts */
  size_t copies_bytes;
  const struct loss_type *loss;
  struct graph_plan plan;
  struct graph_buffers buf;
  /* of the last pass */
  const float *x; /* borrowed; NULL after the backward pass */
  size_t rows;
  double last_loss;
  bool went_back;
  double norm2; /* of the gradient, where it is known since the backward pass */
  bool norm2_known;
};

/* Shares buffers by the life of what is in them: an output lies in its input's place where the layer type allows it, a
 * gradient's place is free again once its layer has passed it on. Sets dx_add. */
int plan_make(struct graph *g, struct err *e) ERR_MUST_CHECK;
void plan_done(struct graph_plan *p);

/* Allocates for max_rows into *b; on failure *b is empty. */
int buffers_create(const struct graph *g, size_t max_rows, struct graph_buffers *b, struct err *e) ERR_MUST_CHECK;
void buffers_done(struct graph_buffers *b);
/* Points the layers at g->buf. */
void buffers_bind(struct graph *g);

#endif
