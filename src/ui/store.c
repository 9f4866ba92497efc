/* The feed's points and events, kept for drawing. */
#include "config.h"

#include "ui/store.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

#define MAX_EVENTS 2000
#define MAX_A_CALL 20000 /* points: some milliseconds */

void store_init(struct store *s)
{
  *s = (struct store){0};
  text_init(&s->events, MAX_EVENTS);
}

void store_done(struct store *s)
{
  while (s->runs) {
    struct store_run *r = s->runs;
    s->runs = r->next;
    for (int u = 0; u < X_UNITS; u++)
      for (int m = 0; m < METRIC_COUNT; m++)
        if (r->series[u][m])
          series_free(r->series[u][m]);
    mem_free(r);
  }
  text_done(&s->events);
}

struct store_run *store_find(struct store *s, int run_id)
{
  for (struct store_run *r = s->runs; r; r = r->next)
    if (r->id == run_id)
      return r;
  return NULL;
}

static struct store_run *find_or_make(struct store *s, int run_id)
{
  struct store_run *r = store_find(s, run_id);
  if (r)
    return r;
  r = mem_alloc(sizeof *r);
  r->id = run_id;
  r->next = s->runs;
  s->runs = r;
  return r;
}

static void drop_marks(struct store_run *r, double step)
{
  while (r->n_marks > 0 && r->mark[X_STEPS][r->n_marks - 1].x > step)
    r->n_marks--;
}

/* Points and events come in two queues, so the first point after a rewind can be here before the event is: a point that
 * lies before the last one says it too. */
static void heal(struct store_run *r, struct series *s, double x, double step)
{
  size_t n = series_n_blocks(s);
  if (n == 0 || series_block(s, n - 1)->x1 <= x)
    return;
  series_cut(s, x - 0.5);
  drop_marks(r, step);
  r->healed_step = (uint64_t)step;
}

static void add_point(struct store *s, const struct feed_point *p)
{
  struct store_run *r = find_or_make(s, p->run_id);
  double x[X_UNITS] = {[X_EXAMPLES] = (double)p->examples, [X_STEPS] = (double)p->step};
  for (int u = 0; u < X_UNITS; u++) {
    struct series **at = &r->series[u][p->metric];
    if (!*at)
      *at = series_create(STORE_BLOCKS);
    heal(r, *at, x[u], (double)p->step);
    series_push(*at, x[u], p->min, p->max, p->sum, p->n, p->n_bad);
  }
}

static void add_mark(struct store_run *r, const struct feed_event *e)
{
  double x[X_UNITS] = {[X_EXAMPLES] = (double)e->examples, [X_STEPS] = (double)e->step};
  if (r->n_marks == STORE_MARKS) {
    for (int u = 0; u < X_UNITS; u++)
      memmove(&r->mark[u][0], &r->mark[u][1], (STORE_MARKS - 1) * sizeof r->mark[u][0]);
    r->n_marks--;
  }
  for (int u = 0; u < X_UNITS; u++) {
    struct plot_mark *m = &r->mark[u][r->n_marks];
    m->x = x[u];
    str_copy(m->label, sizeof m->label, e->mark);
  }
  r->n_marks++;
}

/* What was trained after the step is abandoned; its lines among the events stay. */
static void cut(struct store_run *r, const struct feed_event *e)
{
  double x[X_UNITS] = {[X_EXAMPLES] = (double)e->examples, [X_STEPS] = (double)e->step};
  bool healed = r->healed_step > e->step; /* the series hold points from after the rewind already */
  r->healed_step = 0;
  drop_marks(r, x[X_STEPS]);
  for (int u = 0; u < X_UNITS && !healed; u++)
    for (int m = 0; m < METRIC_COUNT; m++)
      if (r->series[u][m])
        series_cut(r->series[u][m], x[u]);
}

static const enum style event_style[] = {
    [EVENT_SET] = STYLE_MARK,    [EVENT_EVAL] = STYLE_NORMAL, [EVENT_SNAPSHOT] = STYLE_DIM,
    [EVENT_REWIND] = STYLE_MARK, [EVENT_FORK] = STYLE_MARK,   [EVENT_DIVERGED] = STYLE_ERROR,
    [EVENT_NOTE] = STYLE_NORMAL, [EVENT_END] = STYLE_GOOD,
};

static void add_event(struct store *s, const struct feed_event *e)
{
  struct store_run *r = find_or_make(s, e->run_id);
  if (e->kind == EVENT_REWIND)
    cut(r, e);
  if (*e->mark)
    add_mark(r, e);
  char line[256];
  /* the run's number only once there are several */
  if (r->next || s->runs != r)
    snprintf(line, sizeof line, "%6llu  %d: %s", (unsigned long long)e->step, e->run_id, e->text);
  else
    snprintf(line, sizeof line, "%6llu  %s", (unsigned long long)e->step, e->text);
  text_add_line(&s->events, line, event_style[e->kind], 8);
}

void store_note(struct store *s, const char *text, enum style style)
{
  char *line = mem_printf("%6s  %s", "", text);
  text_add_line(&s->events, line, style, 8);
  mem_free(line);
}

bool store_drain(struct store *s, struct feed *f)
{
  struct feed_point p;
  struct feed_event e;
  bool any = false;
  for (int n = 0; n < MAX_A_CALL && feed_get_point(f, &p); n++) {
    add_point(s, &p);
    s->n_points++;
    any = true;
  }
  while (feed_get_event(f, &e)) {
    add_event(s, &e);
    any = true;
  }
  uint64_t lost = feed_n_lost_events(f);
  if (lost > s->n_lost) {
    char text[64];
    snprintf(text, sizeof text, "%llu events were too many to show", (unsigned long long)(lost - s->n_lost));
    store_note(s, text, STYLE_DIM);
    s->n_lost = lost;
  }
  return any;
}
