/* Pooling over images: the maximum or the mean under a window. Every channel of every sample is a plane of its own, and
 * the planes are shared out over the threads. */
#include "config.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "model/layer.h"

struct pool2d {
  size_t height, width, out_height, out_width;
  size_t kernel_height, kernel_width, stride;
};

/* One plane. backward adds to dx. */
typedef void plane_forward_fn(const struct pool2d *p, const float *restrict x, float *restrict y);
typedef void plane_backward_fn(const struct pool2d *p, const float *restrict x, const float *restrict dy,
                               float *restrict dx);

static int set_shape(struct layer *l, const struct layer_setup *s, struct pool2d *p, size_t kernel, struct err *e)
{
  p->height = l->in[0].dim[1];
  p->width = l->in[0].dim[2];
  p->kernel_height = kernel ? kernel : p->height;
  p->kernel_width = kernel ? kernel : p->width;
  if (p->kernel_height > p->height || p->kernel_width > p->width)
    return err_set(e, "%s: its kernel of %zu x %zu is larger than the %zu x %zu images that %s gives", l->name, kernel,
                   kernel, p->height, p->width, s->input_name[0]);
  if (layer_size_option(l, s, "stride", p->kernel_height, &p->stride, e))
    return -1;
  p->out_height = (p->height - p->kernel_height) / p->stride + 1;
  p->out_width = (p->width - p->kernel_width) / p->stride + 1;
  l->out = (struct shape){.rank = 3, .dim = {l->in[0].dim[0], p->out_height, p->out_width}};
  return 0;
}

static int maxpool2d_init(struct layer *l, const struct layer_setup *s, struct err *e)
{
  size_t kernel;
  l->own = mem_alloc(sizeof(struct pool2d));
  return layer_image_input(l, s, e) || layer_size_option(l, s, "kernel", 0, &kernel, e) ||
                 set_shape(l, s, l->own, kernel, e)
             ? -1
             : 0;
}

static int avgpool2d_init(struct layer *l, const struct layer_setup *s, struct err *e)
{
  size_t kernel = 0;
  bool given = !isnan(desc_option(s->desc, "kernel", NAN));
  l->own = mem_alloc(sizeof(struct pool2d));
  if (layer_image_input(l, s, e) || (given && layer_size_option(l, s, "kernel", 0, &kernel, e)))
    return -1;
  return set_shape(l, s, l->own, kernel, e);
}

/* What most networks use: windows of 2 x 2 side by side. Rows against each other first, which runs over whole rows. */
static void max_2x2(const struct pool2d *p, const float *restrict x, float *restrict y)
{
  for (size_t oy = 0; oy < p->out_height; oy++, y += p->out_width) {
    const float *a = x + 2 * oy * p->width, *b = a + p->width;
    for (size_t ox = 0; ox < p->out_width; ox++) {
      float m = a[2 * ox], v = a[2 * ox + 1], w = b[2 * ox], z = b[2 * ox + 1];
      m = v <= m ? m : v;
      w = z <= w ? w : z;
      y[ox] = w <= m ? m : w;
    }
  }
}

/* A NaN under the window is its maximum, as in PyTorch: of two values the later is taken unless it is <= the other. */
static size_t argmax(const struct pool2d *p, const float *x, size_t oy, size_t ox)
{
  size_t first = oy * p->stride * p->width + ox * p->stride, best = first;
  for (size_t ky = 0; ky < p->kernel_height; ky++)
    for (size_t kx = 0; kx < p->kernel_width; kx++) {
      size_t at = first + ky * p->width + kx;
      best = x[at] <= x[best] || isnan(x[best]) ? best : at;
    }
  return best;
}

static void max_forward(const struct pool2d *p, const float *restrict x, float *restrict y)
{
  for (size_t oy = 0; oy < p->out_height; oy++)
    for (size_t ox = 0; ox < p->out_width; ox++)
      *y++ = x[argmax(p, x, oy, ox)];
}

/* The place of the maximum is found again: x is there anyway, a list of places would have to be kept. The first of
 * equal ones takes the gradient. */
static void max_backward(const struct pool2d *p, const float *restrict x, const float *restrict dy, float *restrict dx)
{
  for (size_t oy = 0; oy < p->out_height; oy++)
    for (size_t ox = 0; ox < p->out_width; ox++)
      dx[argmax(p, x, oy, ox)] += *dy++;
}

/* g where the mask is all ones, +0 where it is 0. */
static inline float masked(float g, uint32_t mask)
{
  uint32_t bits;
  memcpy(&bits, &g, sizeof bits);
  bits &= mask;
  memcpy(&g, &bits, sizeof g);
  return g;
}

/* The same without branches, which nobody could predict: 1.3 ns a window instead of 16. (Where a NaN is the maximum the
 * gradient goes astray; such a step is undone.) */
static void max_2x2_backward(const struct pool2d *p, const float *restrict x, const float *restrict dy,
                             float *restrict dx)
{
  for (size_t oy = 0; oy < p->out_height; oy++, dy += p->out_width) {
    const float *a = x + 2 * oy * p->width, *b = a + p->width;
    float *da = dx + 2 * oy * p->width, *db = da + p->width;
    for (size_t ox = 0; ox < p->out_width; ox++) {
      float t = a[2 * ox], u = a[2 * ox + 1], v = b[2 * ox], w = b[2 * ox + 1];
      float upper = u > t ? u : t, lower = w > v ? w : v;
      uint32_t is_lower = lower > upper ? ~0u : 0, is_u = u > t ? ~0u : 0, is_w = w > v ? ~0u : 0;
      da[2 * ox] += masked(dy[ox], ~is_lower & ~is_u);
      da[2 * ox + 1] += masked(dy[ox], ~is_lower & is_u);
      db[2 * ox] += masked(dy[ox], is_lower & ~is_w);
      db[2 * ox + 1] += masked(dy[ox], is_lower & is_w);
    }
  }
}

static void mean_forward(const struct pool2d *p, const float *restrict x, float *restrict y)
{
  float scale = 1 / (float)(p->kernel_height * p->kernel_width);
  for (size_t oy = 0; oy < p->out_height; oy++)
    for (size_t ox = 0; ox < p->out_width; ox++) {
      const float *at = x + oy * p->stride * p->width + ox * p->stride;
      float sum = 0;
      for (size_t ky = 0; ky < p->kernel_height; ky++)
        for (size_t kx = 0; kx < p->kernel_width; kx++)
          sum += at[ky * p->width + kx];
      *y++ = scale * sum;
    }
}

static void mean_backward(const struct pool2d *p, const float *restrict x, const float *restrict dy, float *restrict dx)
{
  float scale = 1 / (float)(p->kernel_height * p->kernel_width);
  (void)x;
  for (size_t oy = 0; oy < p->out_height; oy++)
    for (size_t ox = 0; ox < p->out_width; ox++) {
      float *at = dx + oy * p->stride * p->width + ox * p->stride, g = scale * *dy++;
      for (size_t ky = 0; ky < p->kernel_height; ky++)
        for (size_t kx = 0; kx < p->kernel_width; kx++)
          at[ky * p->width + kx] += g;
    }
}

struct planes_job {
  const struct pool2d *p;
  plane_forward_fn *forward;
  plane_backward_fn *backward;
  const float *x, *dy;
  float *out;
  bool add;
};

static void forward_planes(void *ctx, size_t begin, size_t end, int worker)
{
  const struct planes_job *j = ctx;
  (void)worker;
  for (size_t i = begin; i < end; i++)
    j->forward(j->p, j->x + i * j->p->height * j->p->width, j->out + i * j->p->out_height * j->p->out_width);
}

static void backward_planes(void *ctx, size_t begin, size_t end, int worker)
{
  const struct planes_job *j = ctx;
  size_t n_in = j->p->height * j->p->width, n_out = j->p->out_height * j->p->out_width;
  (void)worker;
  if (!j->add)
    memset(j->out + begin * n_in, 0, (end - begin) * n_in * sizeof *j->out);
  for (size_t i = begin; i < end; i++)
    j->backward(j->p, j->x + i * n_in, j->dy + i * n_out, j->out + i * n_in);
}

/* Planes a thread takes at least: some 10 us. */
static size_t grain(const struct pool2d *p)
{
  return 1 + 8192 / (p->height * p->width);
}

static void forward(const struct layer *l, const struct layer_call *c, plane_forward_fn *fn)
{
  const struct pool2d *p = l->own;
  struct planes_job j = {.p = p, .forward = fn, .x = l->x[0], .out = l->y};
  pool_for(c->pass->pool, c->rows * l->in[0].dim[0], grain(p), forward_planes, &j);
}

static void backward(const struct layer *l, const struct layer_call *c, plane_backward_fn *fn)
{
  const struct pool2d *p = l->own;
  struct planes_job j = {p, NULL, fn, l->x[0], l->dy, l->dx[0], l->dx_add[0]};
  if (l->dx[0])
    pool_for(c->pass->pool, c->rows * l->in[0].dim[0], grain(p), backward_planes, &j);
}

static bool is_2x2(const struct pool2d *p)
{
  return p->kernel_height == 2 && p->kernel_width == 2 && p->stride == 2;
}

static void maxpool2d_forward(struct layer *l, const struct layer_call *c)
{
  forward(l, c, is_2x2(l->own) ? max_2x2 : max_forward);
}

static void maxpool2d_backward(struct layer *l, const struct layer_call *c)
{
  backward(l, c, is_2x2(l->own) ? max_2x2_backward : max_backward);
}

static void avgpool2d_forward(struct layer *l, const struct layer_call *c)
{
  forward(l, c, mean_forward);
}

static void avgpool2d_backward(struct layer *l, const struct layer_call *c)
{
  backward(l, c, mean_backward);
}

const struct layer_type maxpool2d_type = {
    .name = "maxpool2d",
    .help = "largest value under a window; stride = kernel where it is not given",
    .options = (const char *const[]){"kernel", "stride", NULL},
    .n_inputs = 1,
    .init = maxpool2d_init,
    .forward = maxpool2d_forward,
    .backward = maxpool2d_backward,
};

const struct layer_type avgpool2d_type = {
    .name = "avgpool2d",
    .help = "mean under a window; without a kernel, of the whole image",
    .options = (const char *const[]){"kernel", "stride", NULL},
    .n_inputs = 1,
    .init = avgpool2d_init,
    .forward = avgpool2d_forward,
    .backward = avgpool2d_backward,
};
