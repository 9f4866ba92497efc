/* The streaming estimate of the gradient's variance (THEORY section 10): no second pass, no Monte Carlo noise. */
#ifndef PROBE_VARIANCE_H
#define PROBE_VARIANCE_H

#include "model/graph.h"

/* Traces of the covariance of the batch-mean gradient, summed over the parameters in question. */
struct grad_variance {
  double data;  /* sampling of the mini-batch; NaN at batch 1 */
  double a, g, ag; /* rounding of dW's operands: X, G, and both */
  double quant; /* a + g + ag */
  double total; /* data + quant */
  double grad_norm2; /* ||mean gradient||^2 as used */
};

/* From one layer's sums; b samples. */
struct grad_variance variance_of_layer(const struct layer_sums *s, size_t b);
/* Over all layers of the graph. */
struct grad_variance variance_of_graph(const struct graph *g, size_t b);

#endif
