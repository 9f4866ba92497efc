/* The engine's thread and the two locks around it.
 *
 * `mutex` guards the list of runs, what is wanted of them and the copies for the status pane; it is held for moments.
 * The boundary is a lock by tickets on top of it: the thread takes a ticket for every step, others for their work on a
 * run, and each waits for the number before its own. So whoever wants the boundary waits for one step at most, however
 * fast the thread comes back for the next: a plain mutex would let it in again and again. */
#include "config.h"

#include "train/engine.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/thread.h"
#include "train/run_impl.h"

struct member {
  struct member *next;
  struct engine *engine;
  int id;
  struct run *run;
  enum engine_state state;
  uint64_t steps_left;
  struct err why;
  double speed;   /* steps a second, 0: no limit; as queued, so that turning it ends a long wait */
  double last_at; /* when the last step began */
  struct run_status status;
};

struct engine {
  pthread_t thread;
  pthread_mutex_t mutex;
  pthread_cond_t turn;    /* `serving` went on */
  pthread_cond_t wake;    /* for the thread: something may be to be done */
  pthread_cond_t changed; /* for engine_wait(): a run's state changed */
  uint64_t next_ticket, serving;
  bool held;
  pthread_t holder;
  int depth;
  bool stop;
  struct member *members;
  int last_id, last_stepped;
  struct pool *pool;
  struct feed *feed;
  engine_hook *hook;
  void *hook_ctx;
};

/* -- the boundary */

void engine_lock(struct engine *e)
{
  pthread_mutex_lock(&e->mutex);
  if (e->held && pthread_equal(e->holder, pthread_self())) {
    e->depth++;
  } else {
    uint64_t mine = e->next_ticket++;
    while (mine != e->serving)
      pthread_cond_wait(&e->turn, &e->mutex);
    e->held = true;
    e->holder = pthread_self();
    e->depth = 1;
  }
  pthread_mutex_unlock(&e->mutex);
}

static void copy_status(struct member *m)
{
  struct run *r = m->run;
  struct run_status *s = &m->status;
  s->step = run_n_steps(r);
  s->examples = run_n_examples(r);
  s->epoch = run_epoch(r);
  s->seconds = run_seconds(r);
  for (int i = 0; i < METRIC_COUNT; i++)
    s->metric[i] = run_metric(r, (enum metric)i);
  s->knobs = *run_knobs(r);
  s->memory = run_memory(r);
  m->speed = knob_real(&r->next, KNOB_SPEED);
}

/* Whoever held the boundary may have changed any run; the thread without handlers has only stepped one. */
void engine_unlock(struct engine *e)
{
  pthread_mutex_lock(&e->mutex);
  if (--e->depth == 0) {
    bool own = pthread_equal(e->thread, pthread_self());
    for (struct member *m = e->members; m; m = m->next)
      if (!own || e->hook || m->id == e->last_stepped)
        copy_status(m);
    e->held = false;
    e->serving++;
    pthread_cond_broadcast(&e->turn);
    if (!own)
      pthread_cond_signal(&e->wake);
  }
  pthread_mutex_unlock(&e->mutex);
}

/* -- runs; the mutex is held */

static struct member *find(struct engine *e, int run_id)
{
  for (struct member *m = e->members; m; m = m->next)
    if (m->id == run_id)
      return m;
  return NULL;
}

static double ready_at(const struct member *m)
{
  return m->speed > 0 ? m->last_at + 1 / m->speed : 0;
}

/* The run whose turn it is, in order of ids after the last one; else NULL, and *wait_until the time when one may be. */
static struct member *choose(struct engine *e, double *wait_until)
{
  struct member *first = NULL, *after = NULL;
  double now = clock_mono_s();
  *wait_until = INFINITY;
  for (struct member *m = e->members; m; m = m->next) {
    if (m->state != ENGINE_RUNNING)
      continue;
    if (ready_at(m) > now) {
      *wait_until = fmin(*wait_until, ready_at(m));
      continue;
    }
    if (!first)
      first = m;
    if (!after && m->id > e->last_stepped)
      after = m;
  }
  return after ? after : first;
}

static void wait_until(struct engine *e, pthread_cond_t *cond, double when)
{
  if (!isfinite(when)) {
    pthread_cond_wait(cond, &e->mutex);
    return;
  }
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  double s = when - clock_mono_s();
  s = fmin(fmax(s, 0), 3600);
  double whole = floor(s);
  t.tv_sec += (time_t)whole;
  t.tv_nsec += (long)((s - whole) * 1e9);
  if (t.tv_nsec >= 1000000000L) {
    t.tv_nsec -= 1000000000L;
    t.tv_sec++;
  }
  pthread_cond_timedwait(cond, &e->mutex, &t);
}

/* -- the thread */

static void after_step(struct engine *e, struct member *m, enum step_result result, const struct err *why)
{
  pthread_mutex_lock(&e->mutex);
  if (result == STEP_OK) {
    if (m->steps_left != ENGINE_FOREVER && m->steps_left > 0)
      m->steps_left--;
    if (m->steps_left == 0 && m->state == ENGINE_RUNNING)
      m->state = ENGINE_IDLE;
  } else {
    m->state = result == STEP_DIVERGED ? ENGINE_DIVERGED : ENGINE_FAILED;
    m->why = *why;
  }
  pthread_mutex_unlock(&e->mutex);
}

/* A run that stands still has all its lines in the file. A failure to write them shows at the next step. */
static void flush_if_still(struct engine *e, int id)
{
  struct err ignored;
  pthread_mutex_lock(&e->mutex);
  struct member *m = find(e, id); /* the hook may have removed it */
  bool still = m && m->state != ENGINE_RUNNING;
  pthread_mutex_unlock(&e->mutex);
  if (still)
    (void)!run_flush(m->run, &ignored);
}

static void step(struct engine *e, int id)
{
  struct err why = {""};
  engine_lock(e);
  pthread_mutex_lock(&e->mutex);
  struct member *m = find(e, id); /* removed or paused while the boundary was another's */
  bool go = m && m->state == ENGINE_RUNNING && !e->stop;
  if (go)
    m->last_at = clock_mono_s();
  e->last_stepped = id;
  pthread_mutex_unlock(&e->mutex);
  if (go) {
    enum step_result result = run_step(m->run, &why);
    after_step(e, m, result, &why);
    if (e->hook)
      e->hook(e->hook_ctx, id, m->run, result);
    flush_if_still(e, id);
  }
  engine_unlock(e);
  pthread_mutex_lock(&e->mutex);
  pthread_cond_broadcast(&e->changed); /* after the boundary is free, so that who waited finds it so */
  pthread_mutex_unlock(&e->mutex);
}

static void *engine_main(void *ctx)
{
  struct engine *e = ctx;
  pthread_mutex_lock(&e->mutex);
  while (!e->stop) {
    double when;
    struct member *m = choose(e, &when);
    if (!m) {
      wait_until(e, &e->wake, when);
      continue;
    }
    int id = m->id;
    pthread_mutex_unlock(&e->mutex);
    step(e, id);
    pthread_mutex_lock(&e->mutex);
  }
  pthread_mutex_unlock(&e->mutex);
  return NULL;
}

/* -- what runs tell goes into the feed */

static void sink_metric(void *ctx, const struct run *r, enum metric metric, uint64_t step, uint64_t examples,
                        double value)
{
  struct member *m = ctx;
  struct feed_point p = {.run_id = m->id, .metric = metric, .step = step, .examples = examples};
  (void)r;
  if (isfinite(value)) {
    p.min = p.max = p.sum = value;
    p.n = 1;
  } else {
    p.n_bad = 1;
  }
  feed_put_point(m->engine->feed, &p);
}

static void sink_event(void *ctx, const struct run *r, enum event_kind kind, uint64_t step, uint64_t examples,
                       const char *text, const char *mark)
{
  struct member *m = ctx;
  struct feed_event ev = {.run_id = m->id, .kind = kind, .step = step, .examples = examples};
  (void)r;
  str_copy(ev.text, sizeof ev.text, text);
  str_copy(ev.mark, sizeof ev.mark, mark ? mark : "");
  feed_put_event(m->engine->feed, &ev);
}

/* -- making and ending */

static void cond_init_monotonic(pthread_cond_t *c)
{
  pthread_condattr_t a;
  pthread_condattr_init(&a);
  pthread_condattr_setclock(&a, CLOCK_MONOTONIC);
  pthread_cond_init(c, &a);
  pthread_condattr_destroy(&a);
}

struct engine *engine_create(int n_threads, struct err *err)
{
  struct pool *pool = pool_create(n_threads > 0 ? n_threads : cpu_count(), err);
  if (!pool)
    return NULL;
  struct engine *e = mem_alloc(sizeof *e);
  e->pool = pool;
  e->feed = feed_create();
  pthread_mutex_init(&e->mutex, NULL);
  pthread_cond_init(&e->turn, NULL);
  cond_init_monotonic(&e->wake);
  cond_init_monotonic(&e->changed);
  pthread_mutex_lock(&e->mutex); /* the thread begins when e->thread is known */
  int status = thread_start(&e->thread, engine_main, e);
  pthread_mutex_unlock(&e->mutex);
  if (status == 0)
    return e;
  err_set(err, "cannot start the engine's thread: %s", strerror(status));
  pool_free(pool);
  feed_free(e->feed);
  mem_free(e);
  return NULL;
}

void engine_free(struct engine *e)
{
  if (!e)
    return;
  pthread_mutex_lock(&e->mutex);
  e->stop = true;
  pthread_cond_signal(&e->wake);
  pthread_mutex_unlock(&e->mutex);
  pthread_join(e->thread, NULL);
  while (e->members) {
    struct member *m = e->members;
    e->members = m->next;
    run_free(m->run);
    mem_free(m);
  }
  pthread_cond_destroy(&e->turn);
  pthread_cond_destroy(&e->wake);
  pthread_cond_destroy(&e->changed);
  pthread_mutex_destroy(&e->mutex);
  pool_free(e->pool);
  feed_free(e->feed);
  mem_free(e);
}

struct pool *engine_pool(struct engine *e)
{
  return e->pool;
}

struct feed *engine_feed(struct engine *e)
{
  return e->feed;
}

void engine_set_hook(struct engine *e, engine_hook *hook, void *ctx)
{
  engine_lock(e);
  e->hook = hook;
  e->hook_ctx = ctx;
  engine_unlock(e);
}

int engine_add(struct engine *e, struct run *r)
{
  struct member *m = mem_alloc(sizeof *m);
  m->engine = e;
  m->run = r;
  run_set_sink(r, &(struct run_sink){.ctx = m, .metric = sink_metric, .event = sink_event});
  struct run_status *s = &m->status;
  str_copy(s->name, sizeof s->name, run_name(r));
  str_copy(s->model, sizeof s->model, run_model(r)->name);
  str_copy(s->data, sizeof s->data, dataset_name(run_dataset(r)));
  str_copy(s->journal, sizeof s->journal, run_journal_path(r) ? run_journal_path(r) : "");
  s->n_weights = graph_n_weights(run_graph(r));
  engine_lock(e);
  pthread_mutex_lock(&e->mutex);
  m->id = s->run_id = ++e->last_id;
  struct member **at = &e->members;
  while (*at)
    at = &(*at)->next;
  *at = m;
  copy_status(m);
  int id = m->id;
  pthread_mutex_unlock(&e->mutex);
  engine_unlock(e);
  return id;
}

int engine_remove(struct engine *e, int run_id, struct err *err)
{
  engine_lock(e);
  pthread_mutex_lock(&e->mutex);
  struct member **at = &e->members;
  while (*at && (*at)->id != run_id)
    at = &(*at)->next;
  struct member *m = *at;
  if (m)
    *at = m->next;
  pthread_cond_broadcast(&e->changed);
  pthread_mutex_unlock(&e->mutex);
  int status = m ? run_finish(m->run, "stopped", err) : err_set(err, "no run %d", run_id);
  if (m) {
    run_free(m->run);
    mem_free(m);
  }
  engine_unlock(e);
  return status;
}

struct run *engine_run(struct engine *e, int run_id)
{
  pthread_mutex_lock(&e->mutex);
  struct member *m = find(e, run_id);
  struct run *r = m ? m->run : NULL;
  pthread_mutex_unlock(&e->mutex);
  return r;
}

/* -- going and standing */

void engine_go(struct engine *e, int run_id, uint64_t n_steps)
{
  pthread_mutex_lock(&e->mutex);
  struct member *m = find(e, run_id);
  if (m) {
    uint64_t base = m->state == ENGINE_RUNNING || n_steps == 0 ? m->steps_left : 0;
    m->steps_left = n_steps > ENGINE_FOREVER - base ? ENGINE_FOREVER : base + n_steps;
    m->state = m->steps_left ? ENGINE_RUNNING : ENGINE_IDLE;
    pthread_cond_signal(&e->wake);
    pthread_cond_broadcast(&e->changed);
  }
  pthread_mutex_unlock(&e->mutex);
}

void engine_pause(struct engine *e, int run_id)
{
  pthread_mutex_lock(&e->mutex);
  struct member *m = find(e, run_id);
  if (m && m->state == ENGINE_RUNNING)
    m->state = ENGINE_PAUSED;
  pthread_cond_broadcast(&e->changed);
  pthread_mutex_unlock(&e->mutex);
}

enum engine_state engine_state(struct engine *e, int run_id, uint64_t *steps_left, struct err *why)
{
  enum engine_state state = ENGINE_IDLE;
  pthread_mutex_lock(&e->mutex);
  struct member *m = find(e, run_id);
  if (m)
    state = m->state;
  if (steps_left)
    *steps_left = m ? m->steps_left : 0;
  if (why)
    *why = m ? m->why : (struct err){""};
  pthread_mutex_unlock(&e->mutex);
  return state;
}

/* How it stands with a run for one who waits: only when the step under way and its handlers are over has it ended. */
static int outcome(struct engine *e, int run_id, struct err *err, bool *ended)
{
  const struct member *m = find(e, run_id);
  *ended = !(m && e->held && pthread_equal(e->holder, e->thread) && e->last_stepped == run_id);
  if (!*ended)
    return 0;
  if (!m)
    return err_set(err, "run %d was closed", run_id);
  if (m->state == ENGINE_DIVERGED || m->state == ENGINE_FAILED)
    return err_set(err, "%s", m->why.msg);
  if (m->state == ENGINE_PAUSED)
    return err_set(err, "paused at step %" PRIu64, m->status.step);
  *ended = m->state == ENGINE_IDLE;
  return 0;
}

int engine_wait(struct engine *e, int run_id, bool (*poll)(void *ctx), void *ctx, struct err *err)
{
  bool ended = false;
  int status = 0;
  pthread_mutex_lock(&e->mutex);
  for (;;) {
    status = outcome(e, run_id, err, &ended);
    if (ended)
      break;
    wait_until(e, &e->changed, clock_mono_s() + 0.01);
    pthread_mutex_unlock(&e->mutex);
    bool give_up = poll && poll(ctx);
    pthread_mutex_lock(&e->mutex);
    if (give_up) {
      status = err_set(err, "interrupted");
      break;
    }
  }
  pthread_mutex_unlock(&e->mutex);
  return status;
}

int engine_status(struct engine *e, int run_id, struct run_status *out)
{
  pthread_mutex_lock(&e->mutex);
  struct member *m = find(e, run_id);
  if (m) {
    *out = m->status;
    out->state = m->state;
    out->steps_left = m->steps_left;
  }
  pthread_mutex_unlock(&e->mutex);
  return m ? 0 : -1;
}

int engine_run_ids(struct engine *e, int *ids, int max)
{
  int n = 0;
  pthread_mutex_lock(&e->mutex);
  for (struct member *m = e->members; m && n < max; m = m->next)
    ids[n++] = m->id;
  pthread_mutex_unlock(&e->mutex);
  return n;
}
