/* The graph built once from a description: parameters, gradients and activations in a few large buffers, and one
 * forward and one backward pass over the layers. Nothing is allocated inside a step.
 *
 * Conventions (THEORY section 0): rows of X and G are samples; G is the gradient of one sample's loss, not divided by
 * b; dW = G^T X / b and db = sum(G) / b, so parameter gradients are those of the batch mean. */
#ifndef MODEL_GRAPH_H
#define MODEL_GRAPH_H

#include <stdint.h>

#include "base/pool.h"
#include "base/rng.h"
#include "model/desc.h"
#include "model/site.h"
#include "numeric/quantize.h"

struct param {
  char name[2 * DESC_NAME]; /* "fc1.weight" */
  float *w, *g;             /* into the graph's weight and gradient blocks */
  size_t offset, n;         /* in the blocks */
  int rank;
  size_t shape[4];
  int layer;
  uint32_t tensor; /* number in random counters; stable for a given description */
  bool decays;     /* weight decay applies (weights, not biases) */
  bool trained;    /* else a buffer: state that has no gradient (it stays 0) and that no optimizer touches, as the
                      running statistics of a batch norm */
};

/* Sums of one layer's backward product for the streaming estimate (THEORY section 10); all of the batch of b samples.
 * norm2_samples = sum_i ||g_i||^2 over the layer's parameters, weight and bias. */
struct layer_sums {
  double norm2_samples;
  double norm2_mean; /* ||dW_q||^2 + ||db||^2 of the batch-mean gradient as it was used */
  double quant_a, quant_g, quant_ag; /* (1/b^2) sum_i ||G_i||^2||e_i||_1, ||X_i||^2||h_i||_1, ||e_i||_1||h_i||_1 */
};

/* What one pass needs from outside; the graph keeps none of it. */
struct pass {
  const struct site_specs *sites;
  uint64_t seed, step;
  enum rng_stream stream; /* RNG_SITE in training; RNG_PROBE makes other draws */
  uint32_t draw;          /* added to the draw number: 0 in training, the repetition in a probe */
  size_t first_slot;      /* of this micro-batch in the step's global batch */
  size_t global_batch;    /* b: what gradients are divided by; >= rows */
  bool accumulate;        /* add to the gradients instead of overwriting */
  bool evaluate;          /* forward only, deterministic rounding, dropout off */
  bool want_sums;         /* fill layer_sums; changes no other bit */
  struct pool *pool;
};

struct graph;

/* Checks shapes layer by layer; a message names the layers that do not fit. max_rows is the first reservation. */
struct graph *graph_create(const struct model_desc *d, uint64_t seed, size_t max_rows, struct err *e) ERR_MUST_CHECK;
void graph_free(struct graph *g);
/* Makes room for batches of that many rows; on failure the graph is as it was. */
int graph_reserve(struct graph *g, size_t max_rows, struct err *e) ERR_MUST_CHECK;

size_t graph_n_params(const struct graph *g);      /* tensors */
struct param *graph_param(struct graph *g, size_t i);
size_t graph_n_weights(const struct graph *g);     /* scalars */
float *graph_weights(struct graph *g);             /* one block, all parameters */
float *graph_gradients(struct graph *g);           /* one block, same layout */
/* ||g||^2 of the gradient block, in double, the same for any number of threads. Made once after a backward pass,
 * whoever asks first: want_sums has asked. */
double graph_gradient_norm2(struct graph *g, struct pool *pool);
int graph_n_layers(const struct graph *g);
const char *graph_layer_name(const struct graph *g, int layer);
const char *graph_layer_kind(const struct graph *g, int layer);

/* Tells the graph that weights changed, so that quantized copies are made anew at the next pass. */
void graph_weights_changed(struct graph *g);

/* The step is done: what its forward passes in training measured (running statistics) goes into the buffers. A step
 * that is undone is never committed, and the next one forgets what it measured. */
void graph_commit(struct graph *g);

struct loss_result {
  double loss; /* mean over the rows */
  size_t n_correct;
};

/* x: rows x n_inputs, borrowed until graph_backward() returns; labels: rows, each below n_outputs. */
struct loss_result graph_forward(struct graph *g, const struct pass *p, const float *x, const int32_t *labels,
                                 size_t rows);
/* After graph_forward() of the same rows; fills the gradient block. */
void graph_backward(struct graph *g, const struct pass *p);
const float *graph_output(const struct graph *g); /* logits of the last forward pass, rows x n_outputs */

/* Of the last backward pass with want_sums; layers without parameters have zeros. */
const struct layer_sums *graph_layer_sums(const struct graph *g, int layer);

/* Where the first NaN or Inf of the last passes is, in the order in which a step computes. Returns false when all is
 * finite. site is the site at which it shows ("act", "weight", "gweight", ...), or "loss". */
struct graph_fault {
  int layer;
  const char *layer_name;
  const char *site;
};
bool graph_find_fault(struct graph *g, struct graph_fault *out);

/* What a site carries from step to step (delayed scales, residuals): part of a snapshot. */
struct quant_state *graph_quant_state(struct graph *g, int layer, enum site site);

struct graph_memory {
  size_t weights, gradients, activations, scratch; /* bytes in use */
};
struct graph_memory graph_memory(const struct graph *g);

#endif
