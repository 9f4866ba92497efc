/* Four arrangements, the largest that fits: side bar (plots over each other, status and events beside them), wide
 * (plots side by side, status and events below), narrow (plots over each other, one line of status), and none. The
 * prompt is always at the bottom, over one line of hints. */
#include "config.h"

#include "ui/layout.h"

#define MIN_W 28
#define MIN_H 8
#define GAP 1 /* columns between panes side by side */

static int min(int a, int b)
{
  return a < b ? a : b;
}
static int max(int a, int b)
{
  return a > b ? a : b;
}

static struct rect take_bottom(struct rect *from, int n)
{
  n = min(n, from->h);
  from->h -= n;
  return (struct rect){from->x, from->y + from->h, from->w, n};
}

static struct rect take_right(struct rect *from, int n)
{
  from->w -= n + GAP;
  return (struct rect){from->x + from->w + GAP, from->y, n, from->h};
}

static void over_each_other(struct layout *l, struct rect r)
{
  l->pane[PANE_VARIANCE] = take_bottom(&r, r.h / 2);
  l->pane[PANE_LOSS] = r;
}

static void side_by_side(struct rect r, struct rect *left, struct rect *right)
{
  *right = take_right(&r, (r.w - GAP) / 2);
  *left = r;
}

static void with_side_bar(struct layout *l, struct rect r)
{
  struct rect bar = take_right(&r, min(max(r.w * 3 / 10, 38), 60));
  l->pane[PANE_EVENTS] = take_bottom(&bar, max(bar.h - 26, min(bar.h / 3, 8)));
  l->pane[PANE_STATUS] = bar;
  over_each_other(l, r);
}

static void wide(struct layout *l, struct rect r)
{
  struct rect below = take_bottom(&r, r.h >= 40 ? 10 : r.h >= 17 ? 6 : 4);
  side_by_side(below, &l->pane[PANE_STATUS], &l->pane[PANE_EVENTS]);
  side_by_side(r, &l->pane[PANE_LOSS], &l->pane[PANE_VARIANCE]);
}

static void narrow(struct layout *l, struct rect r)
{
  l->pane[PANE_STATUS] = take_bottom(&r, r.h >= 16 ? 4 : r.h >= 6 ? 1 : 0);
  if (r.h >= 10)
    over_each_other(l, r);
  else if (r.w >= 60)
    side_by_side(r, &l->pane[PANE_LOSS], &l->pane[PANE_VARIANCE]);
  else
    l->pane[PANE_LOSS] = r;
}

/* A row of title, then output over the entry: more where there is room, all that a long entry needs up to a half. */
static int prompt_height(int h, int input_rows)
{
  int usual = h >= 45 ? 12 : h >= 34 ? 9 : h >= 28 ? 6 : h >= 20 ? 5 : h >= 12 ? 3 : 2;
  return min(max(usual, input_rows + 1), max(usual, h / 2));
}

void layout_compute(struct layout *l, int w, int h, enum pane_id expanded, int input_rows)
{
  *l = (struct layout){.too_small = w < MIN_W || h < MIN_H};
  struct rect r = {0, 0, w, h};
  if (l->too_small) {
    l->pane[PANE_PROMPT] = take_bottom(&r, 1);
    return;
  }
  l->footer = take_bottom(&r, 1);
  if (expanded == PANE_PROMPT) {
    l->pane[PANE_PROMPT] = r;
    return;
  }
  l->pane[PANE_PROMPT] = take_bottom(&r, prompt_height(h, input_rows));
  if (expanded < PANE_COUNT)
    l->pane[expanded] = r;
  else if (w >= 110 && r.h >= 22)
    with_side_bar(l, r);
  else if (w >= 64 && r.h >= 14)
    wide(l, r);
  else
    narrow(l, r);
}
