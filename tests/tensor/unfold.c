/* Unfolding against the definition, value by value, for every small shape; folding as its transpose. */
#include "config.h"

#include "tensor/unfold.h"

#include <math.h>
#include <string.h>

#include "../tap/tap.h"
#include "base/rng.h"

enum { MOST = 1 << 16 };
static float image[MOST], out[MOST], back[MOST], sums[MOST];

/* The value under (c, ky, kx) at (oy, ox), by the definition of a padded image. */
static float under(const struct window *w, size_t c, size_t ky, size_t kx, size_t oy, size_t ox)
{
  long y = (long)(oy * w->stride + ky) - (long)w->padding, x = (long)(ox * w->stride + kx) - (long)w->padding;
  if (y < 0 || x < 0 || y >= (long)w->height || x >= (long)w->width)
    return 0;
  return image[(c * w->height + (size_t)y) * w->width + (size_t)x];
}

static int wrong_values(const struct window *w)
{
  int wrong = 0;
  size_t at = 0;
  memset(out, 0x7f, sizeof out); /* 3e38: what is not written shows */
  unfold(w, image, out);
  for (size_t c = 0; c < w->channels; c++)
    for (size_t ky = 0; ky < w->kernel; ky++)
      for (size_t kx = 0; kx < w->kernel; kx++)
        for (size_t oy = 0; oy < w->out_height; oy++)
          for (size_t ox = 0; ox < w->out_width; ox++)
            wrong += out[at++] != under(w, c, ky, kx, oy, ox);
  return wrong;
}

/* <unfold(a), b> = <a, fold(b)>; images hold whole numbers, so that both are exact. */
static int wrong_transpose(const struct window *w, struct rng *r)
{
  double left = 0, right = 0;
  size_t n = window_size(w) * window_positions(w), size = w->channels * w->height * w->width;
  static float b[MOST];
  for (size_t i = 0; i < n; i++) {
    b[i] = (float)rng_below(r, 9) - 4;
    left += out[i] * b[i];
  }
  for (size_t i = 0; i < size; i++)
    back[i] = 1; /* it adds */
  fold_add(w, b, back);
  for (size_t i = 0; i < size; i++)
    right += image[i] * (back[i] - 1);
  return left != right;
}

static int wrong_sums(const struct window *w)
{
  struct window one = *w;
  int wrong = 0;
  one.channels = 1;
  unfold(&one, image, out);
  window_sums(w, image, sums);
  for (size_t p = 0; p < window_positions(w); p++) {
    double want = 0;
    for (size_t k = 0; k < window_size(&one); k++)
      want += out[k * window_positions(w) + p];
    wrong += sums[p] != want;
  }
  return wrong;
}

int main(void)
{
  struct rng r;
  int n = 0, values = 0, transposes = 0, n_sums = 0;
  rng_init(&r, rng_derive(4, RNG_USER, 0, 0, 0), 0);
  for (size_t i = 0; i < MOST; i++)
    image[i] = (float)rng_below(&r, 15) - 7;
  for (size_t h = 1; h <= 11; h++)
    for (size_t v = 1; v <= 20; v += 1 + v / 6)
      for (size_t k = 1; k <= 5; k++)
        for (size_t s = 1; s <= 3; s++)
          for (size_t p = 0; p <= 3; p++) {
            struct window w = {.channels = 1 + h % 3, .height = h, .width = v, .kernel = k, .stride = s, .padding = p};
            if (!window_fit(&w))
              continue;
            n++;
            values += wrong_values(&w);
            transposes += wrong_transpose(&w, &r);
            n_sums += wrong_sums(&w);
          }
  ok(n > 3000, "%d shapes", n);
  is_int(values, 0, "every unfolded value is the one the definition names");
  is_int(transposes, 0, "folding is the transpose of unfolding");
  is_int(n_sums, 0, "sums under the window are those of the unfolded map");

  struct window w = {.channels = 3, .height = 28, .width = 27, .kernel = 5, .stride = 2, .padding = 1};
  ok(window_fit(&w) && w.out_height == 13 && w.out_width == 13 && window_size(&w) == 75, "positions of one by hand");
  w.kernel = 31;
  ok(!window_fit(&w), "a kernel larger than the padded image does not fit");
  w.kernel = 3;
  w.stride = 0;
  ok(!window_fit(&w), "nor does a stride of 0");
  return tap_done();
}
