/* What the two halves of the convolution share: its shape, and its areas in the scratch memory. */
#ifndef MODEL_CONV2D_H
#define MODEL_CONV2D_H

#include "model/layer.h"
#include "tensor/unfold.h"

struct conv2d {
  struct window win;
  size_t out;       /* channels that come out */
  size_t positions; /* of the window in one image: T of THEORY section 10 */
  size_t size;      /* values under the window: columns of W */
  size_t group;     /* samples whose products are summed in place before they join their part */
  size_t n_grad;    /* size * out + out: one weight gradient with its bias gradient */
  size_t n_map;     /* one channel of the larger of input and output, in whole cache lines */
  size_t n_worker;  /* floats of a thread's area */
};

/* scratch->parts: an area a worker, then a gradient sum a part of the batch. */
struct conv2d_area {
  float *unfolded; /* size x positions */
  float *grad;     /* n_grad */
  float *map[4];   /* n_map each */
};
struct conv2d_area conv2d_area(const struct conv2d *k, const struct scratch *s, int worker);
float *conv2d_part(const struct conv2d *k, const struct scratch *s, size_t part);

/* The image, unfolded into `room` unless that changes nothing. */
const float *conv2d_unfold(const struct conv2d *k, const float *image, float *room);

void conv2d_backward(struct layer *l, const struct layer_call *c);

/* conv2d_probe.c. Of one sample's backward product: squared norm of its gradient as it was used, and the parts of its
 * rounding variance times b^2. */
struct conv2d_sample {
  double norm2, a, g, ag;
};
/* x, g: as they came; xq, gq: as they went into the product (the same pointer: unchanged; xq NULL: rounding is
 * deterministic and has no variance, likewise gq). map: room. Fills a, g, ag. */
void conv2d_rounding(const struct conv2d *k, const float *x, const float *xq, const float *g, const float *gq,
                     float *const map[4], struct conv2d_sample *out);

#endif
