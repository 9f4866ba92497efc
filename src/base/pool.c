/* The pool of compute threads. Between two calls a worker spins for some tens of microseconds (a training step is a
 * chain of short parallel sections, and waking a sleeper costs as much as many of them), then sleeps. It yields while
 * it spins: on a busy machine the thread it waits for may want this very processor (an empty section took 100 us
 * without the yield and 4 us with it when another program held the second of two processors).
 *
 * One call is one generation: the caller writes the job, counts the generation up, does range 0 itself and waits until
 * every worker has said it is done, so the job never changes under a worker. */
#include "config.h"

#include "base/pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/thread.h"

#define SPIN_S 50e-6
#define PAUSES_PER_LOOK 32 /* between two looks at the clock; some microseconds */

struct worker {
  struct pool *pool;
  pthread_t thread;
  int index;
};

struct pool {
  int n_threads;
  bool spin; /* not when there are more threads than processors: spinning would hold up the one waited for */
  bool stop; /* written before a generation is counted up, read after it was seen */

  /* the job of this generation */
  pool_fn *fn;
  void *ctx;
  size_t n, chunk;

  _Alignas(64) _Atomic uint32_t generation;
  _Alignas(64) _Atomic int n_pending; /* workers that are not done with this generation */
  _Alignas(64) _Atomic int n_asleep;  /* workers in pthread_cond_wait() or about to be */
  _Atomic bool caller_asleep;
  pthread_mutex_t mutex;
  pthread_cond_t work, done;
  struct worker worker[]; /* n_threads - 1 */
};

static inline void cpu_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

/* Waiting without sleeping, for SPIN_S at most. What is waited for differs, so the loops are two. */
static bool spin_for_generation(struct pool *p, uint32_t seen)
{
  for (double end = clock_mono_s() + SPIN_S; p->spin && clock_mono_s() < end; sched_yield())
    for (int i = 0; i < PAUSES_PER_LOOK; i++) {
      if (atomic_load_explicit(&p->generation, memory_order_acquire) != seen)
        return true;
      cpu_pause();
    }
  return false;
}

static bool spin_for_done(struct pool *p)
{
  for (double end = clock_mono_s() + SPIN_S; p->spin && clock_mono_s() < end; sched_yield())
    for (int i = 0; i < PAUSES_PER_LOOK; i++) {
      if (atomic_load_explicit(&p->n_pending, memory_order_acquire) == 0)
        return true;
      cpu_pause();
    }
  return false;
}

/* The sleepers' counters and the generation (n_pending) are sequentially consistent: either the sleeper sees the new
 * value, or the waker sees the sleeper and signals under the mutex. */
static void wait_for_generation(struct pool *p, uint32_t seen)
{
  if (spin_for_generation(p, seen))
    return;
  pthread_mutex_lock(&p->mutex);
  atomic_fetch_add(&p->n_asleep, 1);
  while (atomic_load(&p->generation) == seen)
    pthread_cond_wait(&p->work, &p->mutex);
  atomic_fetch_sub(&p->n_asleep, 1);
  pthread_mutex_unlock(&p->mutex);
}

static void wait_for_done(struct pool *p)
{
  if (spin_for_done(p))
    return;
  pthread_mutex_lock(&p->mutex);
  atomic_store(&p->caller_asleep, true);
  while (atomic_load(&p->n_pending) != 0)
    pthread_cond_wait(&p->done, &p->mutex);
  atomic_store(&p->caller_asleep, false);
  pthread_mutex_unlock(&p->mutex);
}

static void begin_generation(struct pool *p)
{
  atomic_store(&p->n_pending, p->n_threads - 1);
  atomic_fetch_add(&p->generation, 1);
  if (atomic_load(&p->n_asleep) > 0) {
    pthread_mutex_lock(&p->mutex);
    pthread_cond_broadcast(&p->work);
    pthread_mutex_unlock(&p->mutex);
  }
}

static void say_done(struct pool *p)
{
  if (atomic_fetch_sub(&p->n_pending, 1) == 1 && atomic_load(&p->caller_asleep)) {
    pthread_mutex_lock(&p->mutex);
    pthread_cond_signal(&p->done);
    pthread_mutex_unlock(&p->mutex);
  }
}

static void do_range(struct pool *p, int index)
{
  size_t begin = p->chunk * (size_t)index;
  if (begin >= p->n)
    return;
  size_t end = p->n - begin > p->chunk ? begin + p->chunk : p->n;
  p->fn(p->ctx, begin, end, index);
}

static void *worker_main(void *arg)
{
  struct worker *w = arg;
  struct pool *p = w->pool;
  uint32_t seen = 0;
  for (;;) {
    wait_for_generation(p, seen);
    seen++;
    bool stop = p->stop;
    if (!stop)
      do_range(p, w->index);
    say_done(p);
    if (stop)
      return NULL;
  }
}

static int start_workers(struct pool *p, int n)
{
  int status = 0;
  for (int i = 0; i < n && status == 0; i++) {
    struct worker *w = &p->worker[i];
    *w = (struct worker){.pool = p, .index = i + 1};
    status = thread_start(&w->thread, worker_main, w);
    if (status == 0)
      p->n_threads++;
  }
  return status;
}

struct pool *pool_create(int n_threads, struct err *e)
{
  if (n_threads < 1 || n_threads > POOL_MAX) {
    err_set(e, "threads = %d: 1 to %d are possible", n_threads, POOL_MAX);
    return NULL;
  }
  struct pool *p = mem_buffer(sizeof *p + sizeof(struct worker) * (size_t)(n_threads - 1), "threads", e);
  if (!p)
    return NULL;
  p->n_threads = 1; /* counted up as they start, so that pool_free() joins those that did */
  p->spin = n_threads <= cpu_count();
  pthread_mutex_init(&p->mutex, NULL);
  pthread_cond_init(&p->work, NULL);
  pthread_cond_init(&p->done, NULL);
  int status = start_workers(p, n_threads - 1);
  if (status != 0) {
    err_set(e, "threads = %d: cannot start thread %d: %s", n_threads, p->n_threads + 1, strerror(status));
    pool_free(p);
    return NULL;
  }
  return p;
}

void pool_free(struct pool *p)
{
  if (!p)
    return;
  p->stop = true;
  if (p->n_threads > 1)
    begin_generation(p);
  for (int i = 0; i < p->n_threads - 1; i++)
    pthread_join(p->worker[i].thread, NULL);
  pthread_cond_destroy(&p->done);
  pthread_cond_destroy(&p->work);
  pthread_mutex_destroy(&p->mutex);
  mem_buffer_free(p);
}

int pool_threads(const struct pool *p)
{
  return p ? p->n_threads : 1;
}

void pool_for(struct pool *p, size_t n, size_t grain, pool_fn *fn, void *ctx)
{
  if (n == 0)
    return;
  if (grain == 0)
    grain = 1;
  size_t n_grains = n / grain + (n % grain != 0);
  if (!p || p->n_threads == 1 || n < grain || n - grain < grain) {
    fn(ctx, 0, n, 0);
    return;
  }
  size_t n_threads = (size_t)p->n_threads;
  p->fn = fn;
  p->ctx = ctx;
  p->n = n;
  p->chunk = (n_grains / n_threads + (n_grains % n_threads != 0)) * grain;
  begin_generation(p);
  do_range(p, 0);
  wait_for_done(p);
}

int cpu_count(void)
{
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0)
    return 1;
  int n = CPU_COUNT(&set);
  return n > 0 ? n : 1;
}
