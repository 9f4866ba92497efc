/* The feed: order, merging when nobody reads, and both at once from two threads. */
#include "config.h"

#include "train/feed.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "tests/tap/tap.h"

static struct feed_point point(int run_id, enum metric m, uint64_t step, double v)
{
  struct feed_point p = {.run_id = run_id, .metric = m, .step = step, .examples = 10 * step};
  if (isfinite(v)) {
    p.min = p.max = p.sum = v;
    p.n = 1;
  } else {
    p.n_bad = 1;
  }
  return p;
}

static void put(struct feed *f, int run_id, enum metric m, uint64_t step, double v)
{
  struct feed_point p = point(run_id, m, step, v);
  feed_put_point(f, &p);
}

static void test_order(void)
{
  struct feed *f = feed_create();
  struct feed_point p;
  ok(!feed_get_point(f, &p), "a new one is empty");
  for (int i = 1; i <= 100; i++)
    put(f, 1, METRIC_LOSS, (uint64_t)i, i);
  int good = 1;
  for (int i = 1; i <= 100; i++)
    good &= feed_get_point(f, &p) && p.step == (uint64_t)i && p.sum == i && p.n == 1;
  ok(good && !feed_get_point(f, &p), "points come out as they went in");
  feed_free(f);
}

/* A hundred thousand steps of two series, nobody reading: nothing is lost but resolution. */
static void test_merge(void)
{
  enum { N = 100000 };
  struct feed *f = feed_create();
  for (uint64_t i = 1; i <= N; i++) {
    put(f, 1, METRIC_LOSS, i, (double)i);
    put(f, 2, METRIC_LOSS, i, i % 1000 == 0 ? NAN : -(double)i);
  }
  struct feed_point p;
  double sum[3] = {0}, min[3] = {0, INFINITY, INFINITY}, max[3] = {0, -INFINITY, -INFINITY};
  uint64_t n[3] = {0}, bad[3] = {0}, step[3] = {0};
  size_t n_points = 0;
  int ordered = 1;
  while (feed_get_point(f, &p)) {
    int k = p.run_id;
    n_points++;
    sum[k] += p.sum;
    n[k] += p.n;
    bad[k] += p.n_bad;
    if (p.n) {
      min[k] = fmin(min[k], p.min);
      max[k] = fmax(max[k], p.max);
    }
    ordered &= p.step > step[k] && p.examples == 10 * p.step;
    step[k] = p.step;
  }
  ok(n_points < 20000, "it stays bounded: %zu points", n_points);
  ok(ordered && step[1] == N && step[2] == N, "each series in its order, to its last step");
  ok(n[1] == N && sum[1] == 0.5 * N * (N + 1.0) && min[1] == 1 && max[1] == N, "count, sum, min and max are exact");
  ok(n[2] == N - N / 1000 && bad[2] == N / 1000 && max[2] == -1 && min[2] == -(N - 1), "NaNs are counted apart");
  put(f, 1, METRIC_LR, 5, 2);
  ok(feed_get_point(f, &p) && p.metric == METRIC_LR && p.n == 1 && !feed_get_point(f, &p), "then it works as before");
  feed_free(f);
}

static void test_events(void)
{
  struct feed *f = feed_create();
  struct feed_event ev = {.kind = EVENT_SET, .text = "bits 8 -> 4", .mark = "bits 4"}, got;
  for (int i = 0; i < 5000; i++) {
    ev.step = (uint64_t)i;
    feed_put_event(f, &ev);
  }
  uint64_t n = 0;
  int good = 1;
  while (feed_get_event(f, &got)) {
    good &= got.step == n && strcmp(got.text, ev.text) == 0;
    n++;
  }
  ok(good && n >= 1000 && n + feed_n_lost_events(f) == 5000, "events: %d kept in order, the rest counted", (int)n);
  feed_free(f);
}

enum { THREAD_N = 400000 };
static atomic_bool done;
static void *writer(void *ctx)
{
  for (uint64_t i = 1; i <= THREAD_N; i++)
    put(ctx, 1, METRIC_LOSS, i, 1);
  atomic_store(&done, true);
  return NULL;
}

static void test_threads(void)
{
  struct feed *f = feed_create();
  struct feed_point p;
  pthread_t t;
  uint64_t n = 0, last = 0;
  int ordered = 1;
  if (pthread_create(&t, NULL, writer, f))
    tap_bail("no thread");
  for (bool over = false; !over;) {
    over = atomic_load(&done); /* then one more round takes what is left */
    while (feed_get_point(f, &p)) {
      ordered &= p.step > last && p.sum == p.n;
      last = p.step;
      n += p.n;
    }
  }
  pthread_join(t, NULL);
  ok(ordered && n == THREAD_N && last == THREAD_N, "a writer and a reader at once: nothing lost, in order");
  feed_free(f);
}

int main(void)
{
  test_order();
  test_merge();
  test_events();
  test_threads();
  return tap_done();
}
