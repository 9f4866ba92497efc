/* The pool covers [0, n) exactly once, splits by a fixed rule, and loses no wake-up. */
#include "config.h"

#include "base/pool.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/thread.h"
#include "tests/tap/tap.h"

struct cover {
  uint8_t *hits;
  size_t begin[POOL_MAX], end[POOL_MAX];
  _Atomic int n_calls;
};

static void mark(void *ctx, size_t begin, size_t end, int worker)
{
  struct cover *c = ctx;
  c->begin[worker] = begin;
  c->end[worker] = end;
  c->n_calls++;
  for (size_t i = begin; i < end; i++)
    c->hits[i]++;
}

static bool all_once(const uint8_t *hits, size_t n)
{
  for (size_t i = 0; i < n; i++)
    if (hits[i] != 1)
      return false;
  return hits[n] == 0;
}

static void test_cover(struct pool *p)
{
  static const size_t size[] = {1, 2, 15, 16, 31, 32, 33, 100, 1000, 1023, 4096, 100003};
  static const size_t grain[] = {1, 7, 16, 64, 5000, 200000};
  int n_bad = 0, n_unaligned = 0, n_cases = 0;
  for (size_t i = 0; i < sizeof size / sizeof *size; i++)
    for (size_t j = 0; j < sizeof grain / sizeof *grain; j++) {
      size_t n = size[i];
      struct cover c = {.hits = mem_alloc(n + 1)};
      pool_for(p, n, grain[j], mark, &c);
      n_bad += !all_once(c.hits, n);
      for (int w = 0; w < pool_threads(p); w++)
        n_unaligned += c.end[w] < n && (c.end[w] - c.begin[w]) % grain[j] != 0;
      n_bad += n < 2 * grain[j] && (c.n_calls != 1 || c.end[0] != n);
      n_cases++;
      mem_free(c.hits);
    }
  is_int(n_bad, 0, "%d threads: %d sizes and grains covered once each", pool_threads(p), n_cases);
  is_int(n_unaligned, 0, "%d threads: ranges but the last are whole grains", pool_threads(p));
}

/* The split written down: what decides the order of sums must not drift. */
static void test_split(void)
{
  struct err e;
  struct pool *p = pool_create(3, &e);
  if (!p)
    tap_bail("%s", e.msg);
  uint8_t hits[101] = {0};
  struct cover c = {.hits = hits};
  pool_for(p, 100, 8, mark, &c); /* 13 grains: 5, 5 and the rest */
  is_int(c.end[0], 40, "three threads, 100 elements, grain 8: first ends at 40");
  is_int(c.begin[1], 40, "second begins there");
  is_int(c.end[1], 80, "and ends at 80");
  is_int(c.end[2], 100, "third takes the rest");
  memset(hits, 0, sizeof hits);
  c = (struct cover){.hits = hits};
  pool_for(p, 16, 8, mark, &c);
  is_int(c.n_calls, 2, "two grains over three threads: two calls");
  c = (struct cover){.hits = hits};
  pool_for(p, 0, 8, mark, &c);
  is_int(c.n_calls, 0, "nothing to do: no call");
  pool_free(p);
}

static void add_one(void *ctx, size_t begin, size_t end, int worker)
{
  (void)worker;
  uint32_t *x = ctx;
  for (size_t i = begin; i < end; i++)
    x[i]++;
}

/* Many short calls back to back, with pauses that let workers fall asleep now and then. A lost wake-up would hang here,
 * a call that returns early would leave a wrong count. */
static void test_many_calls(struct pool *p)
{
  enum { CALLS = 20000, N = 64 };
  uint32_t x[N] = {0};
  int n_wrong = 0;
  for (int i = 0; i < CALLS; i++) {
    pool_for(p, N, 1, add_one, x);
    for (int k = 0; k < N; k++)
      n_wrong += x[k] != (uint32_t)i + 1;
    if (i % 500 == 0)
      clock_sleep_s(1e-3); /* long past the spinning */
    if (i % 37 == 0)
      sched_yield();
  }
  is_int(n_wrong, 0, "%d threads: %d calls, each complete when it returned", pool_threads(p), CALLS);
}

static void slow_on_worker(void *ctx, size_t begin, size_t end, int worker)
{
  if (worker > 0)
    clock_sleep_s(2e-3); /* the caller falls asleep meanwhile */
  add_one(ctx, begin, end, worker);
}

static void note_thread(void *ctx, size_t begin, size_t end, int worker)
{
  (void)begin, (void)end;
  ((pthread_t *)ctx)[worker] = pthread_self();
}

static void test_waiting_caller(void)
{
  struct err e;
  struct pool *p = pool_create(2, &e);
  if (!p)
    tap_bail("%s", e.msg);
  uint32_t x[8] = {0};
  for (int i = 0; i < 50; i++)
    pool_for(p, 8, 1, slow_on_worker, x);
  bool all = true;
  for (int i = 0; i < 8; i++)
    all &= x[i] == 50;
  ok(all, "a caller that had to sleep is woken");
  pthread_t who[2];
  pool_for(p, 2, 1, note_thread, who);
  ok(pthread_equal(who[0], pthread_self()), "range 0 runs on the caller");
  ok(!pthread_equal(who[1], who[0]), "range 1 runs on another thread");
  pool_free(p);
}

static void test_errors(void)
{
  struct err e = {""};
  ok(!pool_create(0, &e) && strstr(e.msg, "threads = 0"), "no threads: %s", e.msg);
  ok(!pool_create(POOL_MAX + 1, &e) && strstr(e.msg, "64"), "too many: %s", e.msg);
  is_int(pool_threads(NULL), 1, "no pool counts as one thread");
  uint8_t hits[5] = {0};
  struct cover c = {.hits = hits};
  pool_for(NULL, 4, 1, mark, &c);
  ok(all_once(hits, 4) && c.n_calls == 1, "without a pool the work is done here, in one call");
  pool_free(NULL);
}

static void *own_mask(void *ctx)
{
  pthread_sigmask(SIG_BLOCK, NULL, ctx);
  return NULL;
}

static void test_signal_mask(void)
{
  sigset_t child, before, after;
  pthread_t t;
  pthread_sigmask(SIG_BLOCK, NULL, &before);
  if (thread_start(&t, own_mask, &child))
    tap_bail("no thread");
  pthread_join(t, NULL);
  pthread_sigmask(SIG_BLOCK, NULL, &after);
  ok(sigismember(&child, SIGINT) && sigismember(&child, SIGWINCH), "a thread blocks the terminal's signals");
  ok(!sigismember(&child, SIGSEGV) && !sigismember(&child, SIGABRT), "its own faults stay open");
  is_int(sigismember(&after, SIGINT), sigismember(&before, SIGINT), "its maker's mask is as it was");
}

int main(void)
{
  struct err e;
  static const int n_threads[] = {1, 2, 3, 8};
  for (int i = 0; i < 4; i++) {
    struct pool *p = pool_create(n_threads[i], &e);
    if (!p)
      tap_bail("%s", e.msg);
    is_int(pool_threads(p), n_threads[i], "a pool of %d", n_threads[i]);
    test_cover(p);
    if (n_threads[i] <= 2)
      test_many_calls(p);
    pool_free(p);
  }
  test_split();
  test_waiting_caller();
  test_errors();
  test_signal_mask();

  cpu_set_t one;
  CPU_ZERO(&one);
  int here = sched_getcpu();
  CPU_SET(here >= 0 ? here : 0, &one);
  if (sched_setaffinity(0, sizeof one, &one) == 0)
    is_int(cpu_count(), 1, "cpu_count() follows the affinity mask");
  else
    tap_skip("cannot set the affinity mask");
  return tap_done();
}
