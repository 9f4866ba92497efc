/* Unfolding images for convolution, and folding gradients back. Every function works through one kernel offset at a
 * time: what it reads and what it writes there are runs along a row of the image. */
#include "config.h"

#include "tensor/unfold.h"

#include <string.h>

bool window_fit(struct window *w)
{
  size_t h = w->height + 2 * w->padding, v = w->width + 2 * w->padding;
  if (w->stride == 0 || w->kernel == 0 || w->kernel > h || w->kernel > v)
    return false;
  w->out_height = (h - w->kernel) / w->stride + 1;
  w->out_width = (v - w->kernel) / w->stride + 1;
  return true;
}

/* Positions 0 .. n_out-1 along one axis whose value at kernel offset k lies inside the image: [begin, end). */
struct range {
  size_t begin, end;
};

static struct range inside(size_t k, size_t size, size_t n_out, size_t stride, size_t padding)
{
  size_t begin = k < padding ? (padding - k + stride - 1) / stride : 0;
  size_t last = size - 1 + padding; /* of o * stride + k */
  size_t end = k > last ? 0 : (last - k) / stride + 1;
  end = end < n_out ? end : n_out;
  return (struct range){begin < end ? begin : end, end};
}

/* Rows are short (8 to 32 values), so that a call of memcpy() for each would cost more than the copy: pieces of a fixed
 * length become two or four instructions. The last piece overlaps the one before it. */
enum { PIECE = 8 };

static inline void copy_run(float *restrict to, const float *restrict from, size_t n)
{
  size_t i = 0;
  for (; i + PIECE <= n; i += PIECE)
    memcpy(to + i, from + i, PIECE * sizeof *to);
  if (i == n)
    return;
  if (n >= PIECE)
    memcpy(to + n - PIECE, from + n - PIECE, PIECE * sizeof *to);
  else
    for (; i < n; i++)
      to[i] = from[i];
}

static inline void zero_run(float *to, size_t n)
{
  for (size_t i = 0; i < n; i++)
    to[i] = 0;
}

/* One kernel offset of one channel: all positions of the output. */
static void unfold_offset(const struct window *w, const float *restrict image, size_t ky, size_t kx,
                          float *restrict out)
{
  size_t s = w->stride, p = w->padding;
  struct range y = inside(ky, w->height, w->out_height, s, p), x = inside(kx, w->width, w->out_width, s, p);
  zero_run(out, y.begin * w->out_width);
  for (size_t oy = y.begin; oy < y.end; oy++) {
    const float *row = image + (oy * s + ky - p) * w->width;
    float *to = out + oy * w->out_width;
    zero_run(to, x.begin);
    if (s == 1 && x.begin < x.end)
      copy_run(to + x.begin, row + (x.begin + kx - p), x.end - x.begin);
    else
      for (size_t ox = x.begin; ox < x.end; ox++)
        to[ox] = row[ox * s + kx - p];
    zero_run(to + x.end, w->out_width - x.end);
  }
  zero_run(out + y.end * w->out_width, (w->out_height - y.end) * w->out_width);
}

void unfold(const struct window *w, const float *restrict image, float *restrict out)
{
  for (size_t c = 0; c < w->channels; c++, image += w->height * w->width)
    for (size_t ky = 0; ky < w->kernel; ky++)
      for (size_t kx = 0; kx < w->kernel; kx++, out += window_positions(w))
        unfold_offset(w, image, ky, kx, out);
}

static inline void add_run(float *restrict to, const float *restrict from, size_t n)
{
  size_t i = 0;
  for (; i + PIECE <= n; i += PIECE)
    for (size_t j = 0; j < PIECE; j++)
      to[i + j] += from[i + j];
  for (; i < n; i++)
    to[i] += from[i];
}

void fold_add(const struct window *w, const float *restrict in, float *restrict image)
{
  size_t s = w->stride, p = w->padding;
  for (size_t c = 0; c < w->channels; c++, image += w->height * w->width)
    for (size_t k = 0; k < w->kernel * w->kernel; k++, in += window_positions(w)) {
      size_t ky = k / w->kernel, kx = k % w->kernel;
      struct range y = inside(ky, w->height, w->out_height, s, p), x = inside(kx, w->width, w->out_width, s, p);
      for (size_t oy = y.begin; oy < y.end && x.begin < x.end; oy++) {
        float *row = image + (oy * s + ky - p) * w->width;
        const float *from = in + oy * w->out_width;
        if (s == 1)
          add_run(row + (x.begin + kx - p), from + x.begin, x.end - x.begin);
        else
          for (size_t ox = x.begin; ox < x.end; ox++)
            row[ox * s + kx - p] += from[ox];
      }
    }
}

void window_sums(const struct window *w, const float *restrict map, float *restrict out)
{
  size_t s = w->stride, p = w->padding;
  zero_run(out, window_positions(w));
  for (size_t k = 0; k < w->kernel * w->kernel; k++) {
    size_t ky = k / w->kernel, kx = k % w->kernel;
    struct range y = inside(ky, w->height, w->out_height, s, p), x = inside(kx, w->width, w->out_width, s, p);
    for (size_t oy = y.begin; oy < y.end && x.begin < x.end; oy++) {
      const float *row = map + (oy * s + ky - p) * w->width;
      float *to = out + oy * w->out_width;
      if (s == 1)
        add_run(to + x.begin, row + (x.begin + kx - p), x.end - x.begin);
      else
        for (size_t ox = x.begin; ox < x.end; ox++)
          to[ox] += row[ox * s + kx - p];
    }
  }
}
