/* Panes at every size: inside the screen, apart from each other, and the prompt always there. And text
 * that scrolls, and the entry at the prompt; the theme's contrast. */
#include "config.h"

#include "ui/layout.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/tap/tap.h"
#include "base/mem.h"
#include "ui/entry.h"
#include "ui/text.h"
#include "ui/theme.h"

static bool is_shown(const struct rect *r)
{
  return r->w > 0 && r->h > 0;
}

static bool overlap(const struct rect *a, const struct rect *b)
{
  return is_shown(a) && is_shown(b) && a->x < b->x + b->w && b->x < a->x + a->w && a->y < b->y + b->h &&
         b->y < a->y + a->h;
}

static int count_faults(int w, int h, enum pane_id expanded, int rows)
{
  struct layout l;
  int n = 0;
  layout_compute(&l, w, h, expanded, rows);
  struct rect all[PANE_COUNT + 1];
  memcpy(all, l.pane, sizeof l.pane);
  all[PANE_COUNT] = l.footer;
  for (int i = 0; i <= PANE_COUNT; i++) {
    const struct rect *r = &all[i];
    n += is_shown(r) && (r->x < 0 || r->y < 0 || r->x + r->w > w || r->y + r->h > h);
    n += r->w < 0 || r->h < 0;
    for (int j = i + 1; j <= PANE_COUNT; j++)
      n += overlap(r, &all[j]);
  }
  n += !is_shown(&l.pane[PANE_PROMPT]);
  n += expanded < PANE_COUNT && !l.too_small && !is_shown(&l.pane[expanded]);
  return n;
}

static void test_all_sizes(void)
{
  int n = 0;
  for (int w = 1; w <= 260; w++)
    for (int h = 1; h <= 90; h++)
      for (int e = 0; e <= PANE_COUNT; e++)
        n += count_faults(w, h, (enum pane_id)e, 1 + (w + h) % 7) + count_faults(w, h, (enum pane_id)e, 200);
  is_int(n, 0, "1x1 to 260x90, each pane expanded or none: inside, apart, the prompt shown");
}

static void test_known_sizes(void)
{
  struct layout l;
  layout_compute(&l, 80, 24, PANE_COUNT, 1);
  int n_shown = 0;
  for (int i = 0; i < PANE_COUNT; i++)
    n_shown += is_shown(&l.pane[i]);
  is_int(n_shown, PANE_COUNT, "80x24 shows every pane");
  ok(l.pane[PANE_LOSS].h >= 12 && l.pane[PANE_LOSS].w >= 39 && l.pane[PANE_LOSS].y == l.pane[PANE_VARIANCE].y,
     "80x24: plots side by side, at least 39x12");
  layout_compute(&l, 200, 60, PANE_COUNT, 1);
  ok(l.pane[PANE_LOSS].x == l.pane[PANE_VARIANCE].x && l.pane[PANE_LOSS].w >= 130,
     "200x60: plots over each other, on one x axis");
  layout_compute(&l, 20, 5, PANE_COUNT, 1);
  ok(l.too_small && l.pane[PANE_PROMPT].h == 1 && l.pane[PANE_PROMPT].y == 4, "20x5: too small, but for the prompt");
}

static char *drawn(const struct text *t, int w, int h, int back)
{
  struct grid g = {0};
  grid_resize(&g, w, h);
  text_draw(t, &g, (struct rect){0, 0, w, h}, back, GLYPHS_BRAILLE);
  char *s = grid_dump(&g);
  grid_done(&g);
  return s;
}

static void is_drawn(const struct text *t, int w, int h, int back, const char *want, const char *what)
{
  char *got = drawn(t, w, h, back);
  is_str(got, want, "%s", what);
  mem_free(got);
}

static void test_text(void)
{
  struct text t;
  text_init(&t, 4);
  is_drawn(&t, 5, 2, 0, "\n\n", "nothing");
  text_add(&t, "one\ntw", STYLE_NORMAL);
  text_add(&t, "o\n", STYLE_NORMAL);
  is_drawn(&t, 9, 3, 0, "one\ntwo\n\n", "a line in two parts");
  text_add(&t, "three is long\n", STYLE_NORMAL);
  is_drawn(&t, 9, 4, 0, "one\ntwo\nthree is\nlong\n", "wrapped after a space");
  is_drawn(&t, 9, 2, 0, "three is\nlong\n", "the last rows");
  is_drawn(&t, 9, 2, 1, "two\nthree is\n", "one row back");
  is_drawn(&t, 9, 2, 99, "one\ntwo\n", "no further back than the first");
  text_add(&t, "four\n\nsix", STYLE_NORMAL);
  is_drawn(&t, 14, 9, 0, "three is long\nfour\n\nsix\n\n\n\n\n\n", "the oldest lines go");
  text_add_line(&t, "abcdefgh", STYLE_NORMAL, 2);
  is_drawn(&t, 5, 3, 0, "six\nabcde\n  fgh\n", "continuation rows are indented; a begun line is ended");
  text_add(&t, "\xE6\xBC\xA2\xE5\xAD\x97\xE6\xBC\xA2", STYLE_NORMAL);
  is_drawn(&t, 5, 2, 0, "\xE6\xBC\xA2\xE5\xAD\x97\n\xE6\xBC\xA2\n", "wide characters are not cut");
  is_int(text_rows(&t, 99, 5, 100), 1 + 1 + 2 + 2, "rows counted");
  text_done(&t);
}

static void is_entry(const char *text, size_t point, int w, int h, const char *want, int cx, int cy, const char *what)
{
  struct entry e = {.prompt = "> ", .more = ">> ", .text = text, .point = point};
  struct grid g = {0};
  int x, y;
  grid_resize(&g, w, h);
  entry_draw(&e, &g, (struct rect){0, 0, w, h}, &x, &y);
  char *got = grid_dump(&g);
  is_str(got, want, "%s", what);
  ok(x == cx && y == cy, "%s: cursor at %d,%d, is at %d,%d", what, cx, cy, x, y);
  mem_free(got);
  grid_done(&g);
}

static void test_entry(void)
{
  is_entry("", 0, 10, 1, ">\n", 2, 0, "empty");
  is_entry("abc", 1, 10, 1, "> abc\n", 3, 0, "cursor within");
  is_entry("abc", 3, 10, 1, "> abc\n", 5, 0, "cursor at the end");
  is_entry("abcdefgh", 8, 10, 2, "> abcdefgh\n\n", 0, 1, "full row: the cursor goes on in the next");
  is_entry("abcdefghij", 9, 10, 2, "> abcdefgh\nij\n", 1, 1, "wrapped");
  is_entry("if x then\ny()", 9, 20, 2, "> if x then\n>> y()\n", 11, 0, "two lines, cursor at the end of the first");
  is_entry("a\nb", 2, 20, 2, "> a\n>> b\n", 3, 1, "cursor at the start of the second");
  is_entry("\003x", 1, 20, 1, "> ^Cx\n", 4, 0, "a control character takes two columns");
  is_entry("\xE6\xBC\xA2x", 3, 20, 1, "> \xE6\xBC\xA2x\n", 4, 0, "a wide character takes two columns");
  is_entry("a\xE6\xBC\xA2", 4, 4, 2, "> a\n\xE6\xBC\xA2\n", 2, 1, "one that does not fit goes whole to the next row");
  is_entry("1\n2\n3\n4\n5", 4, 20, 3, ">> 2\n>> 3\n>> 4\n", 3, 1, "rows around the cursor where not all fit");
  struct entry e = {.prompt = "> ", .more = ">> ", .text = "abcdefgh", .point = 8};
  is_int(entry_rows(&e, 10), 2, "the cursor's row counts");
  is_int(entry_rows(&e, 1), 11, "one column");
}

/* Relative luminance (WCAG 2.1) of one of xterm's colours 16 to 255. */
static double luminance(int color)
{
  static const double weight[3] = {0.2126, 0.7152, 0.0722};
  double sum = 0;
  for (int i = 0; i < 3; i++) {
    int step = i == 0 ? (color - 16) / 36 : i == 1 ? (color - 16) / 6 % 6 : (color - 16) % 6;
    double v = (color >= 232 ? 8 + 10 * (color - 232) : step ? 55 + 40 * step : 0) / 255.0;
    sum += weight[i] * (v <= 0.04045 ? v / 12.92 : pow((v + 0.055) / 1.055, 2.4));
  }
  return sum;
}

static void test_theme(void)
{
  for (int i = 0; i < THEME_N_STYLES; i++) {
    int c = theme_table[i].fg256;
    if (c < 0)
      continue;
    double on_white = 1.05 / (luminance(c) + 0.05), on_black = (luminance(c) + 0.05) / 0.05;
    ok(c >= 16 && on_white >= 3 && on_black >= 3, "style %d, colour %d: contrast %.2f on white, %.2f on black", i, c,
       on_white, on_black);
  }
}

int main(void)
{
  test_all_sizes();
  test_known_sizes();
  test_text();
  test_entry();
  test_theme();
  return tap_done();
}
