/* Dots on cells: the code points of braille and blocks, lines without gaps, clipping. */
#include "config.h"

#include "ui/canvas.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "tests/tap/tap.h"

static const struct pen line = {LAYER_LINE, 0};

static uint32_t one_dot(enum glyphs glyphs, int x, int y)
{
  struct canvas c;
  struct grid g = {0};
  canvas_init(&c, 1, 1, glyphs);
  grid_resize(&g, 1, 1);
  canvas_dot(&c, x, y, line);
  canvas_paint(&c, &g, 0, 0);
  uint32_t ch = g.cell[0].ch;
  canvas_done(&c);
  grid_done(&g);
  return ch;
}

static void test_glyphs(void)
{
  /* Unicode names: BRAILLE PATTERN DOTS-1 .. DOTS-8 at their places */
  static const uint32_t braille[4][2] = {{0x2801, 0x2808}, {0x2802, 0x2810}, {0x2804, 0x2820}, {0x2840, 0x2880}};
  static const uint32_t block[2][2] = {{0x2598, 0x259D}, {0x2596, 0x2597}};
  int wrong = 0;
  for (int y = 0; y < 4; y++)
    for (int x = 0; x < 2; x++)
      wrong += one_dot(GLYPHS_BRAILLE, x, y) != braille[y][x];
  is_int(wrong, 0, "eight braille dots");
  for (int y = 0; y < 2; y++)
    for (int x = 0; x < 2; x++)
      wrong += one_dot(GLYPHS_BLOCK, x, y) != block[y][x];
  is_int(wrong, 0, "four quadrants");
  is_int(one_dot(GLYPHS_ASCII, 0, 0), '*', "one ASCII character");
  is_int(one_dot(GLYPHS_BRAILLE, 2, 0), ' ', "outside: nothing");
}

/* Columns (or rows, where steep) between the ends that have no dot. */
static int gaps(double x0, double y0, double x1, double y1)
{
  struct canvas c;
  int n = 0;
  canvas_init(&c, 20, 10, GLYPHS_BRAILLE);
  canvas_line(&c, x0, y0, x1, y1, line);
  bool steep = fabs(y1 - y0) > fabs(x1 - x0);
  int from = (int)lround(steep ? fmin(y0, y1) : fmin(x0, x1)), to = (int)lround(steep ? fmax(y0, y1) : fmax(x0, x1));
  for (int i = from; i <= to; i++) {
    bool any = false;
    for (int k = 0; k < 40 && !any; k++) {
      int x = steep ? k : i, y = steep ? i : k;
      any = x < 40 && y < 40 && (c.cell[y / 4 * 20 + x / 2].dots[LAYER_LINE] >> (y % 4 * 2 + x % 2) & 1);
    }
    n += !any;
  }
  canvas_done(&c);
  return n;
}

static void test_lines(void)
{
  struct rng r;
  int n = 0;
  rng_init(&r, rng_derive(1, RNG_USER, 0, 0, 0), 0);
  for (int i = 0; i < 3000; i++)
    n += gaps(39 * rng_uniform(&r), 39 * rng_uniform(&r), 39 * rng_uniform(&r), 39 * rng_uniform(&r));
  is_int(n, 0, "3000 random lines have no gap");
  struct canvas c;
  struct grid g = {0};
  grid_resize(&g, 4, 2);
  canvas_init(&c, 4, 2, GLYPHS_BLOCK);
  canvas_line(&c, -1e6, -1e6, 1e6, 1e6, line);
  canvas_line(&c, NAN, 0, 1, 1, line);
  canvas_line(&c, 0, 0, INFINITY, 1, line);
  canvas_line(&c, -50, -3, 50, -3, line);
  canvas_paint(&c, &g, 0, 0);
  char *d = grid_dump(&g);
  is_str(d, "\xE2\x96\x9A\n \xE2\x96\x9A\n", "far ends are cut to the raster, what is not finite is not drawn");
  mem_free(d);
  canvas_done(&c);
  grid_done(&g);
}

static void test_layers(void)
{
  struct canvas c;
  struct grid g = {0};
  grid_resize(&g, 2, 1);
  canvas_init(&c, 2, 1, GLYPHS_BRAILLE);
  for (int x = 0; x < 4; x++)
    canvas_bar(&c, x, 0, 3, (struct pen){LAYER_BAND, 1});
  canvas_line(&c, 0, 3, 1, 3, (struct pen){LAYER_LINE, 3});
  canvas_paint(&c, &g, 0, 0);
  is_int(g.cell[0].ch, 0x28C0, "a cell with a line shows the line alone");
  is_int(g.cell[0].style, STYLE_SERIES + 3, "in its colour");
  ok((g.cell[1].ch & 0xFF) != 0 && g.cell[1].style == STYLE_DIM, "a band is dim");
  ok((g.cell[1].ch & 0x01) && (g.cell[1].ch & 0x40) && (g.cell[1].ch & 0x08) && (g.cell[1].ch & 0x80),
     "and reaches to both its ends");
  canvas_done(&c);
  char *sample[4];
  for (int i = 0; i < 4; i++) {
    grid_clear(&g);
    canvas_sample(&g, 0, 0, 2, GLYPHS_BRAILLE, i);
    sample[i] = grid_dump(&g);
  }
  int same = 0;
  for (int i = 0; i < 4; i++)
    for (int k = 0; k < i; k++)
      same += strcmp(sample[i], sample[k]) == 0;
  is_int(same, 0, "four series differ without colour");
  for (int i = 0; i < 4; i++)
    mem_free(sample[i]);
  grid_done(&g);
}

int main(void)
{
  test_glyphs();
  test_lines();
  test_layers();
  return tap_done();
}
