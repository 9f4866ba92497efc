/* The feed: a bounded ring of points, a bounded ring of events, and a place where points are merged while the first is
 * full. One mutex guards them; it is held for a copy of some dozens of bytes and never across a call, so neither side
 * waits for the other's work. */
#include "config.h"

#include "train/feed.h"

#include <math.h>
#include <pthread.h>

#include "base/mem.h"

#define N_POINTS 16384 /* some seconds of the fastest run; 1.2 MB */
#define N_EVENTS 1024
#define N_MERGED (16 * METRIC_COUNT)

struct feed {
  pthread_mutex_t mutex;
  struct feed_point point[N_POINTS];
  struct feed_event event[N_EVENTS];
  size_t point_at, n_points, event_at, n_events; /* oldest, and how many */
  struct feed_point merged[N_MERGED];            /* newer than all in the ring; one for each run and metric */
  size_t n_merged;
  uint64_t n_lost_events;
};

struct feed *feed_create(void)
{
  struct feed *f = mem_alloc(sizeof *f);
  pthread_mutex_init(&f->mutex, NULL);
  return f;
}

void feed_free(struct feed *f)
{
  if (!f)
    return;
  pthread_mutex_destroy(&f->mutex);
  mem_free(f);
}

static void push(struct feed *f, const struct feed_point *p)
{
  f->point[(f->point_at + f->n_points++) % N_POINTS] = *p;
}

static void merge(struct feed_point *into, const struct feed_point *p)
{
  into->step = p->step;
  into->examples = p->examples;
  if (p->n) {
    into->min = into->n ? fmin(into->min, p->min) : p->min;
    into->max = into->n ? fmax(into->max, p->max) : p->max;
    into->sum = into->n ? into->sum + p->sum : p->sum;
  }
  into->n += p->n;
  into->n_bad += p->n_bad;
}

/* When even the merged ones are too many (more runs than anybody plots), the newest series loses its point. */
static void put_merged(struct feed *f, const struct feed_point *p)
{
  for (size_t i = 0; i < f->n_merged; i++)
    if (f->merged[i].run_id == p->run_id && f->merged[i].metric == p->metric) {
      merge(&f->merged[i], p);
      return;
    }
  if (f->n_merged < N_MERGED)
    f->merged[f->n_merged++] = *p;
}

void feed_put_point(struct feed *f, const struct feed_point *p)
{
  pthread_mutex_lock(&f->mutex);
  if (f->n_merged && f->n_points + f->n_merged < N_POINTS) { /* room again: they come first */
    for (size_t i = 0; i < f->n_merged; i++)
      push(f, &f->merged[i]);
    f->n_merged = 0;
  }
  if (f->n_merged || f->n_points == N_POINTS)
    put_merged(f, p);
  else
    push(f, p);
  pthread_mutex_unlock(&f->mutex);
}

bool feed_get_point(struct feed *f, struct feed_point *out)
{
  bool got = true;
  pthread_mutex_lock(&f->mutex);
  if (f->n_points) {
    *out = f->point[f->point_at];
    f->point_at = (f->point_at + 1) % N_POINTS;
    f->n_points--;
  } else if (f->n_merged) {
    *out = f->merged[0];
    f->n_merged--;
    for (size_t i = 0; i < f->n_merged; i++)
      f->merged[i] = f->merged[i + 1];
  } else {
    got = false;
  }
  pthread_mutex_unlock(&f->mutex);
  return got;
}

void feed_put_event(struct feed *f, const struct feed_event *e)
{
  pthread_mutex_lock(&f->mutex);
  if (f->n_events == N_EVENTS)
    f->n_lost_events++;
  else
    f->event[(f->event_at + f->n_events++) % N_EVENTS] = *e;
  pthread_mutex_unlock(&f->mutex);
}

bool feed_get_event(struct feed *f, struct feed_event *out)
{
  pthread_mutex_lock(&f->mutex);
  bool got = f->n_events > 0;
  if (got) {
    *out = f->event[f->event_at];
    f->event_at = (f->event_at + 1) % N_EVENTS;
    f->n_events--;
  }
  pthread_mutex_unlock(&f->mutex);
  return got;
}

uint64_t feed_n_lost_events(const struct feed *f)
{
  struct feed *lock = (struct feed *)f; /* the mutex is not part of what it tells */
  pthread_mutex_lock(&lock->mutex);
  uint64_t n = f->n_lost_events;
  pthread_mutex_unlock(&lock->mutex);
  return n;
}
