/* Unfolding images for convolution, and folding gradients back. Every function works through one kernel offset at a
 * time: what it reads and what it writes there are runs along rows of the image. */
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
 * length become two or four instructions each, and their number is known in the loop over the rows. */
enum { PIECE = 8 };

struct rows {
  float *to;
  const float *from;
  size_t to_pitch, from_pitch, n_rows, length;
};

/* Rows of `pieces` whole pieces, and of a last one that overlaps the one before where the length is not a multiple. */
static inline __attribute__((always_inline)) void copy_pieces(const struct rows *r, size_t pieces)
{
  size_t last = r->length - PIECE;
  for (size_t y = 0; y < r->n_rows; y++) {
    float *restrict to = r->to + y * r->to_pitch;
    const float *restrict from = r->from + y * r->from_pitch;
    for (size_t i = 0; i < pieces; i++)
      memcpy(to + i * PIECE, from + i * PIECE, PIECE * sizeof *to);
    memcpy(to + last, from + last, PIECE * sizeof *to);
  }
}

static void copy_rows(const struct rows *r)
{
  size_t pieces = (r->length - 1) / PIECE; /* before the last */
  if (r->length < PIECE)
    for (size_t y = 0; y < r->n_rows; y++)
      for (size_t i = 0; i < r->length; i++)
        r->to[y * r->to_pitch + i] = r->from[y * r->from_pitch + i];
  else if (pieces == 0)
    copy_pieces(r, 0);
  else if (pieces == 1)
    copy_pieces(r, 1);
  else if (pieces == 2)
    copy_pieces(r, 2);
  else if (pieces == 3)
    copy_pieces(r, 3);
  else
    for (size_t y = 0; y < r->n_rows; y++)
      memcpy(r->to + y * r->to_pitch, r->from + y * r->from_pitch, r->length * sizeof *r->to);
}

/* Where one kernel offset meets the image. It takes divisions, so channels are the innermost loop. */
struct offset {
  struct range y, x;
  size_t from, to; /* of the first value in the image, of its position in the output */
};

static struct offset offset_at(const struct window *w, size_t ky, size_t kx)
{
  size_t s = w->stride, p = w->padding;
  struct offset o = {.y = inside(ky, w->height, w->out_height, s, p), .x = inside(kx, w->width, w->out_width, s, p)};
  if (o.y.begin == o.y.end || o.x.begin == o.x.end)
    o.x = o.y = (struct range){0, 0};
  else
    o.from = (o.y.begin * s + ky - p) * w->width + (o.x.begin * s + kx - p);
  o.to = o.y.begin * w->out_width + o.x.begin;
  return o;
}

static void unfold_channel(const struct window *w, const struct offset *o, const float *restrict image,
                           float *restrict out)
{
  size_t n_rows = o->y.end - o->y.begin, length = o->x.end - o->x.begin;
  const float *from = image + o->from;
  float *to = out + o->to;
  /* all of it where some lies outside the image: the ends of rows are too short to be zeroed one by one */
  if (n_rows < w->out_height || length < w->out_width)
    memset(out, 0, window_positions(w) * sizeof *out);
  if (w->stride == 1 && length > 0) {
    copy_rows(&(struct rows){to, from, w->out_width, w->width, n_rows, length});
    return;
  }
  for (; n_rows > 0; n_rows--, to += w->out_width, from += w->stride * w->width)
    for (size_t i = 0; i < length; i++)
      to[i] = from[i * w->stride];
}

void unfold(const struct window *w, const float *restrict image, float *restrict out)
{
  size_t k2 = w->kernel * w->kernel, positions = window_positions(w);
  for (size_t k = 0; k < k2; k++) {
    struct offset o = offset_at(w, k / w->kernel, k % w->kernel);
    for (size_t c = 0; c < w->channels; c++)
      unfold_channel(w, &o, image + c * w->height * w->width, out + (c * k2 + k) * positions);
  }
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
  size_t k2 = w->kernel * w->kernel, positions = window_positions(w);
  for (size_t k = 0; k < k2; k++) {
    struct offset o = offset_at(w, k / w->kernel, k % w->kernel);
    for (size_t c = 0; c < w->channels; c++) {
      float *to = image + c * w->height * w->width + o.from;
      const float *from = in + (c * k2 + k) * positions + o.to;
      size_t length = o.x.end - o.x.begin;
      for (size_t y = o.y.begin; y < o.y.end; y++, to += w->stride * w->width, from += w->out_width)
        if (w->stride == 1)
          add_run(to, from, length);
        else
          for (size_t i = 0; i < length; i++)
            to[i * w->stride] += from[i];
    }
  }
}

void window_sums(const struct window *w, const float *restrict map, float *restrict out)
{
  memset(out, 0, window_positions(w) * sizeof *out);
  for (size_t k = 0; k < w->kernel * w->kernel; k++) {
    struct offset o = offset_at(w, k / w->kernel, k % w->kernel);
    const float *from = map + o.from;
    float *to = out + o.to;
    for (size_t y = o.y.begin; y < o.y.end; y++, to += w->out_width, from += w->stride * w->width)
      if (w->stride == 1)
        add_run(to, from, o.x.end - o.x.begin);
      else
        for (size_t i = 0; i < o.x.end - o.x.begin; i++)
          to[i] += from[i * w->stride];
  }
}
