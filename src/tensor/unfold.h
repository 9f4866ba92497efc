/* A window that slides over the channels of one image, and the copy that turns a convolution into a matrix product
 * ("im2col": Chellapilla, Puri, Simard 2006). Images are channels x height x width, row-major. */
#ifndef TENSOR_UNFOLD_H
#define TENSOR_UNFOLD_H

#include <stdbool.h>
#include <stddef.h>

struct window {
  size_t channels, height, width;
  size_t kernel, stride, padding; /* the same in both directions; what lies outside the image is zero */
  size_t out_height, out_width;   /* set by window_fit() */
};

/* Sets the number of positions; false where the kernel is larger than the padded image or the stride is 0. */
bool window_fit(struct window *w);

static inline size_t window_positions(const struct window *w)
{
  return w->out_height * w->out_width;
}
/* Values under the window at one position. */
static inline size_t window_size(const struct window *w)
{
  return w->channels * w->kernel * w->kernel;
}
/* 1x1, one by one: the unfolded image is the image. */
static inline bool window_is_plain(const struct window *w)
{
  return w->kernel == 1 && w->stride == 1 && w->padding == 0;
}

/* out[(c, ky, kx)][position] = the value that lies under (c, ky, kx) of the window at that position:
 * window_size() x window_positions(). */
void unfold(const struct window *w, const float *restrict image, float *restrict out);

/* The transpose of unfold(): adds every value to the place of the image that unfold() copies from, if there is one. */
void fold_add(const struct window *w, const float *restrict in, float *restrict image);

/* out[position] = sum over the window of a map of one channel, padding counting as zero; w->channels is not read. */
void window_sums(const struct window *w, const float *restrict map, float *restrict out);

#endif
