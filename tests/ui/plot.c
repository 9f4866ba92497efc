/* Whole plots: golden frames (tests/ui/golden; BITDIAL_UPDATE_GOLDEN=1 writes them anew, to be looked at before they
 * are committed), and what must hold for any data in any rectangle. */
#include "config.h"

#include "ui/plot.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "base/str.h"
#include "tests/tap/tap.h"

static void push(struct series *s, double x, double v)
{
  series_push(s, x, v, v, v, isfinite(v), !isfinite(v));
}

/* ---- golden frames ---- */

/* A fixed noise in -1 .. 1 without a library function whose last bit may differ between systems. */
static double noise(unsigned i)
{
  i = (i ^ 61) ^ (i >> 16);
  i *= 9;
  i ^= i >> 4;
  i *= 0x27d4eb2d;
  i ^= i >> 15;
  return (int)(i % 2001) / 1000.0 - 1;
}

enum { TRAIN, TEST, TOTAL, DATA, ROUNDING, CONSTANT, NAN_MIDDLE, SIGNS, DIVERGED, EMPTY, N_FEEDS };

static void make_feeds(struct series *s[N_FEEDS])
{
  for (int i = 0; i < N_FEEDS; i++)
    s[i] = series_create(512);
  for (int i = 1; i <= 3000; i++) {
    double x = i * 128.0, fall = 1 / (1 + i / 300.0), bits = i > 1500 ? 16 : 1;
    double data = 0.02 * fall * (1 + 0.4 * noise((unsigned)i)), rounding = 5e-4 * bits * (1 + 0.4 * noise(i + 9000u));
    push(s[TRAIN], x, 0.3 + 2 * fall + 0.2 * noise(i + 5000u));
    if (i % 250 == 0)
      push(s[TEST], x, 0.4 + 2 * fall);
    push(s[DATA], x, data);
    push(s[ROUNDING], x, rounding);
    push(s[TOTAL], x, data + rounding);
  }
  for (int i = 0; i < 200; i++) {
    push(s[CONSTANT], i, 2.303);
    push(s[NAN_MIDDLE], i, i > 90 && i < 110 ? NAN : 1 + (i - 100) * (i - 100) / 1e4);
    push(s[SIGNS], i, (i - 60) * 0.25);
    push(s[DIVERGED], i, i < 150 ? 2 - i / 100.0 : i < 170 ? ldexp(1, i - 150) : NAN);
  }
}

static void check_golden(const char *name, const char *got)
{
  const char *top = getenv("top_srcdir"), *update = getenv("BITDIAL_UPDATE_GOLDEN");
  char *path = mem_printf("%s/tests/ui/golden/%s.txt", top ? top : ".", name);
  FILE *f = fopen(path, update ? "w" : "r");
  struct str want = {0};
  if (!f)
    tap_bail("%s cannot be opened", path);
  if (update) {
    fputs(got, f);
    str_add(&want, got);
  } else {
    char buf[4096];
    for (size_t n; (n = fread(buf, 1, sizeof buf, f)) > 0;)
      str_addn(&want, buf, n);
  }
  fclose(f);
  if (!is_str(got, want.s ? want.s : "", "%s", name))
    for (const char *line = got; *line; line = strchr(line, '\n') + 1)
      tap_note("%.*s", (int)strcspn(line, "\n"), line);
  str_done(&want);
  mem_free(path);
}

static void golden(const char *name, const struct plot *p, const int (*size)[2], int n_sizes)
{
  struct str all = {0};
  for (int i = 0; i < n_sizes; i++) {
    struct grid g = {0};
    grid_resize(&g, size[i][0], size[i][1]);
    plot_draw(p, &g, (struct rect){0, 0, size[i][0], size[i][1]});
    char *d = grid_dump(&g);
    str_addf(&all, "--- %d x %d\n%s", size[i][0], size[i][1], d);
    mem_free(d);
    grid_done(&g);
  }
  check_golden(name, all.s);
  str_done(&all);
}

static const struct plot_mark marks[] = {
    {191872, "bits 8\u21924"}, {210000, "rounding sr\u2192rne"}, {310000, "batch 128\u21921024"}};

static void test_golden(struct series *s[N_FEEDS])
{
  static const int sizes[][2] = {{100, 20}, {60, 14}, {48, 10}, {38, 8}, {30, 5}, {20, 3}, {12, 2}};
  static const int one[][2] = {{46, 9}};
  const struct plot_series loss[] = {{s[TRAIN], "train", 0}, {s[TEST], "test", 1}};
  const struct plot_series variance[] = {{s[TOTAL], "total", 0}, {s[DATA], "data", 1}, {s[ROUNDING], "rounding", 2}};
  struct plot p = {
      .title = "loss (nats)", .x_label = "examples", .series = loss, .n_series = 2, .mark = marks, .n_marks = 3};
  golden("loss", &p, sizes, 7);
  p.smooth = 0.8;
  golden("loss-smooth", &p, sizes, 2);
  p = (struct plot){.title = "gradient variance",
                    .x_label = "examples",
                    .series = variance,
                    .n_series = 3,
                    .mark = marks,
                    .n_marks = 3,
                    .log_y = true};
  golden("variance", &p, sizes, 7);
  p.glyphs = GLYPHS_BLOCK;
  golden("variance-block", &p, sizes, 4);
  p.glyphs = GLYPHS_ASCII;
  golden("variance-ascii", &p, sizes, 4);
  p.glyphs = GLYPHS_BRAILLE;
  p.x0 = 180000;
  p.x1 = 200000;
  golden("variance-zoom", &p, sizes, 2);
  static const struct {
    const char *name;
    int feed;
    bool log;
  } row[] = {{"constant", CONSTANT, false}, {"nan", NAN_MIDDLE, false},   {"signs-linear", SIGNS, false},
             {"signs-log", SIGNS, true},    {"diverged", DIVERGED, true}, {"empty", EMPTY, false}};
  for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
    struct plot_series single = {s[row[i].feed], row[i].name, 0};
    struct plot q = {.title = "y", .x_label = "steps", .series = &single, .n_series = 1, .log_y = row[i].log};
    golden(row[i].name, &q, one, 1);
  }
}

/* ---- properties ---- */

#define SENTINEL 0x2603

struct any {
  struct series *series[5];
  struct plot_series plotted[5];
  struct plot_mark mark[30];
  double x[5][400], v[5][400];
  int n[5];
};

static double any_double(struct rng *r)
{
  union {
    uint64_t u;
    double d;
  } v = {(uint64_t)rng_u32(r) << 32 | rng_u32(r)};
  return v.d;
}

static double any_value(struct rng *r, unsigned kind)
{
  static const double special[] = {0, -0.0, NAN, INFINITY, -INFINITY, DBL_MAX, -DBL_MAX, 0x1p-1074, 1};
  if (kind == 0)
    return any_double(r);
  if (kind == 1 || rng_below(r, 50) == 0)
    return special[rng_below(r, sizeof special / sizeof *special)];
  return kind == 2 ? 2.5 : kind == 3 ? exp(3 * rng_normal(r)) : rng_normal(r);
}

static void make_any(struct any *a, struct plot *p, struct rng *r)
{
  static const char *const labels[] = {"train", "\xE6\xBC\xA2\xE5\xAD\x97", "", NULL, "bad \xFF bytes\n"};
  memset(a, 0, sizeof *a);
  size_t n_series = rng_below(r, 6);
  for (size_t i = 0; i < n_series; i++) {
    unsigned kind = rng_below(r, 5), n = rng_below(r, 4) ? rng_below(r, 400) : rng_below(r, 3);
    double x = rng_below(r, 4) ? 0 : any_double(r);
    a->series[i] = series_create(rng_below(r, 2) ? 16 : 1024);
    x = isfinite(x) ? x : 0;
    for (unsigned k = 0; k < n; k++) {
      x += rng_below(r, 20) ? rng_below(r, 3) : fabs(x) / 7;
      if (!isfinite(x))
        break;
      a->x[i][k] = x;
      a->v[i][k] = any_value(r, kind);
      push(a->series[i], x, a->v[i][k]);
      a->n[i]++;
    }
    a->plotted[i] = (struct plot_series){rng_below(r, 20) ? a->series[i] : NULL, labels[rng_below(r, 5)],
                                         (int)rng_below(r, STYLE_N_SERIES)};
  }
  *p = (struct plot){.title = rng_below(r, 9) ? "gradient variance" : NULL,
                     .x_label = rng_below(r, 9) ? "steps" : NULL,
                     .series = a->plotted,
                     .n_series = n_series,
                     .mark = a->mark,
                     .n_marks = rng_below(r, 31),
                     .log_y = rng_below(r, 2),
                     .smooth = rng_below(r, 2) ? rng_uniform(r) : 0,
                     .focus = rng_below(r, 2),
                     .glyphs = (enum glyphs)rng_below(r, 3)};
  for (size_t i = 0; i < p->n_marks; i++) {
    a->mark[i].x = rng_below(r, 10) ? 400 * rng_uniform(r) : any_double(r);
    str_copy(a->mark[i].label, sizeof a->mark[i].label, rng_below(r, 3) ? "bits 8\u21924" : "lr");
  }
  if (rng_below(r, 3) == 0) {
    p->x0 = any_value(r, rng_below(r, 4));
    p->x1 = p->x0 + 100 * rng_uniform(r);
  }
  if (rng_below(r, 5) == 0) {
    p->y0 = any_value(r, rng_below(r, 5));
    p->y1 = p->y0 + exp(9 * rng_normal(r));
  }
}

/* Finite values in the span of x that the y axis leaves out. */
static int left_out(const struct any *a, const struct plot *p)
{
  struct axis x, y;
  int n = 0;
  plot_axes(p, &x, &y);
  for (size_t i = 0; i < p->n_series; i++)
    for (int k = 0; p->series[i].series && k < a->n[i]; k++) {
      double v = a->v[i][k];
      if (a->x[i][k] >= x.lo && a->x[i][k] <= x.hi && isfinite(v) && (!p->log_y || v > 0))
        n += v > y.hi || (v < y.lo && !p->log_y);
    }
  return n;
}

static void test_any(void)
{
  struct any *a = mem_alloc(sizeof *a);
  struct plot p;
  struct rng r;
  int outside = 0, unwritten = 0, control = 0, out = 0;
  rng_init(&r, rng_derive(7, RNG_USER, 0, 0, 0), 0);
  for (int i = 0; i < 4000; i++) {
    struct grid g = {0};
    make_any(a, &p, &r);
    grid_resize(&g, 70, 22);
    for (int k = 0; k < g.w * g.h; k++)
      g.cell[k].ch = SENTINEL;
    struct rect w = {(int)rng_below(&r, 75) - 5, (int)rng_below(&r, 25) - 3, (int)rng_below(&r, i % 2 ? 12 : 80),
                     (int)rng_below(&r, i % 4 ? 12 : 25)};
    plot_draw(&p, &g, w);
    for (int y = 0; y < g.h; y++)
      for (int x = 0; x < g.w; x++) {
        bool inside = x >= w.x && x < w.x + w.w && y >= w.y && y < w.y + w.h;
        uint32_t ch = g.cell[y * g.w + x].ch;
        outside += !inside && ch != SENTINEL;
        unwritten += inside && ch == SENTINEL;
        control += ch != 0 && cell_width(ch) <= 0;
        control += p.glyphs == GLYPHS_ASCII && ch > 0x7E && ch != SENTINEL;
      }
    if (p.y0 >= p.y1 || !isfinite(p.y0) || !isfinite(p.y1))
      out += left_out(a, &p);
    grid_done(&g);
    for (int k = 0; k < 5; k++)
      series_free(a->series[k]);
  }
  is_int(outside, 0, "4000 random plots: nothing written outside the rectangle");
  is_int(unwritten, 0, "every cell inside is written");
  is_int(control, 0, "nothing unprintable, nothing but ASCII where that is asked");
  is_int(out, 0, "no visible finite value lies outside the y axis");
  mem_free(a);
}

/* ---- what a viewer relies on ---- */

static struct grid draw(const struct plot *p, int w, int h)
{
  struct grid g = {0};
  grid_resize(&g, w, h);
  plot_draw(p, &g, (struct rect){0, 0, w, h});
  return g;
}

static int count(const struct grid *g, uint32_t ch, enum style s)
{
  int n = 0;
  for (int i = 0; i < g->w * g->h; i++)
    n += (ch == 0 || g->cell[i].ch == ch) && g->cell[i].style == s;
  return n;
}

static bool contains(const struct grid *g, const char *text)
{
  char *d = grid_dump(g);
  bool found = strstr(d, text) != NULL;
  mem_free(d);
  return found;
}

static void test_styles(struct series *s[N_FEEDS])
{
  struct plot_series one = {s[NAN_MIDDLE], "loss", 3};
  struct plot_mark mark = {50, "bits 8\u21924"};
  struct plot p = {.title = "T", .series = &one, .n_series = 1, .mark = &mark, .n_marks = 1};
  struct grid g = draw(&p, 60, 12);
  ok(count(&g, '!', STYLE_ERROR) >= 4 && count(&g, '!', STYLE_ERROR) <= 8, "NaN from 91 to 109 of 200 is marked");
  ok(count(&g, 0, (enum style)(STYLE_SERIES + 3)) > 20, "the line has the series' style");
  is_int(count(&g, 0, STYLE_MARK) - count(&g, 0x250A, STYLE_MARK), 8, "a mark's label has its own");
  ok(count(&g, 0x250A, STYLE_MARK) >= 6, "and its line, but where the series crosses it");
  ok(g.cell[0].ch == 'T' && g.cell[0].style == STYLE_TITLE, "the title");
  grid_done(&g);
  p.focus = true;
  g = draw(&p, 60, 12);
  is_int(g.cell[0].style, STYLE_FOCUS, "the title of the pane that has the keys");
  grid_done(&g);
  one.series = s[DIVERGED];
  g = draw(&p, 60, 12);
  ok(contains(&g, "NaN"), "a legend says NaN after a divergence");
  is_int(count(&g, 'N', STYLE_ERROR), 2, "as an error");
  grid_done(&g);
}

static void test_marks(struct series *s[N_FEEDS])
{
  struct plot_series one = {s[CONSTANT], "c", 0};
  struct plot_mark mark[40];
  struct plot p = {.title = "T", .series = &one, .n_series = 1, .mark = mark};
  int missing = 0, glued = 0;
  for (int n = 1; n <= 40; n++) {
    snprintf(mark[n - 1].label, sizeof mark->label, "knob a%d", n);
    mark[n - 1].x = (n * 73) % 200;
    p.n_marks = (size_t)n;
    struct grid g = draw(&p, 60, 16);
    char newest[32];
    snprintf(newest, sizeof newest, "a%d", n);
    missing += !contains(&g, newest);
    for (int y = 0; y < 4; y++)
      for (int x = 1; x + 1 < g.w; x++) { /* a label ends in a digit; what follows is a blank, a line or the edge */
        const struct cell *c = &g.cell[y * g.w + x];
        glued += c->style == STYLE_MARK && c[0].ch >= '0' && c[0].ch <= '9' && c[1].style == STYLE_MARK &&
                 c[1].ch >= 'a' && c[1].ch <= 'z';
      }
    grid_done(&g);
  }
  is_int(missing, 0, "of 1 to 40 marks the newest always has its label");
  is_int(glued, 0, "and no two labels touch");
}

/* While data arrive within one rounding of the span, what was drawn stays where it is. */
static void test_steady(void)
{
  struct series *s = series_create(4096);
  struct plot_series one = {s, "loss", 0};
  struct plot p = {.title = "T", .series = &one, .n_series = 1, .smooth = 0.9, .y0 = 0, .y1 = 3};
  for (int i = 0; i < 2050; i++)
    push(s, i, 1.5 + noise((unsigned)i));
  struct grid before = draw(&p, 80, 14);
  for (int i = 2050; i < 2170; i++)
    push(s, i, 1.5 + noise((unsigned)i));
  struct grid after = draw(&p, 80, 14);
  int moved = 0, is_new = 0;
  for (int y = 1; y < 14; y++)
    for (int x = 0; x < 80; x++) {
      bool same = before.cell[y * 80 + x].ch == after.cell[y * 80 + x].ch;
      moved += !same && x < 70;
      is_new += !same && x >= 70;
    }
  is_int(moved, 0, "old points do not move when new ones come");
  ok(is_new > 0, "while new ones are drawn");
  grid_done(&before);
  grid_done(&after);
  series_free(s);
}

int main(void)
{
  struct series *s[N_FEEDS];
  make_feeds(s);
  test_golden(s);
  test_any();
  test_styles(s);
  test_marks(s);
  test_steady();
  for (int i = 0; i < N_FEEDS; i++)
    series_free(s[i]);
  return tap_done();
}
