/* The engine: the same steps as without it, and a boundary that lets others in. Times are bounded generously: a test
 * machine may be busy. */
#include "config.h"

#include "train/engine.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "make.h"
#include "tests/tap/tap.h"

#define LONG_S 20 /* what takes longer hangs */

static struct err e;

static struct engine *new_engine(int n_threads)
{
  struct engine *g = engine_create(n_threads, &e);
  if (!g)
    tap_bail("%s", e.msg);
  return g;
}

static bool too_late(void *ctx)
{
  return clock_mono_s() > *(double *)ctx;
}

static int wait_for(struct engine *g, int id)
{
  double limit = clock_mono_s() + LONG_S;
  return engine_wait(g, id, too_late, &limit, &e);
}

static void drain(struct engine *g)
{
  struct feed_point p;
  struct feed_event ev;
  while (feed_get_point(engine_feed(g), &p) || feed_get_event(engine_feed(g), &ev))
    ;
}

static void test_same_bits(void)
{
  struct run *direct = make_run(NULL, NULL);
  steps(direct, 100);
  set(direct, "bits", "5");
  steps(direct, 100);

  struct engine *g = new_engine(1);
  int id = engine_add(g, make_run(NULL, NULL));
  is_int(id, 1, "the first run has id 1");
  is_int(engine_state(g, id, NULL, NULL), ENGINE_IDLE, "it stands still");
  engine_go(g, id, 100);
  ok(wait_for(g, id) == 0, "a hundred steps are done");
  struct run_status s;
  ok(engine_status(g, id, &s) == 0 && s.step == 100 && s.steps_left == 0 && s.state == ENGINE_IDLE,
     "the status is up to date when the wait is over");
  ok(s.epoch == 100 * 64 / 8192.0 && s.metric[METRIC_LOSS] > 0 && strcmp(s.data, "spirals") == 0 && s.n_weights == 722,
     "and complete");
  engine_lock(g);
  set(engine_run(g, id), "bits", "5");
  engine_unlock(g);
  engine_go(g, id, 60);
  engine_go(g, id, 40);
  ok(wait_for(g, id) == 0, "sixty and forty more");
  engine_lock(g);
  is_int(run_n_steps(engine_run(g, id)), 200, "make two hundred");
  is_str(hash_of(engine_run(g, id)), hash_of(direct), "the weights are those of run_step() alone");
  engine_unlock(g);
  struct feed_point p;
  uint64_t n = 0;
  while (feed_get_point(engine_feed(g), &p))
    n += p.metric == METRIC_LOSS ? p.n : 0;
  is_int(n, 200, "the feed has every loss");
  struct feed_event ev;
  bool told = false;
  while (feed_get_event(engine_feed(g), &ev))
    told |= ev.kind == EVENT_SET && strcmp(ev.text, "bits 8 -> 5") == 0 && strcmp(ev.mark, "bits 5") == 0;
  ok(told, "and the change");
  engine_free(g);
  run_free(direct);
}

static void test_pause(void)
{
  struct engine *g = new_engine(1);
  int id = engine_add(g, make_run(NULL, NULL));
  uint64_t left;
  engine_go(g, id, 1000000);
  double limit = clock_mono_s() + LONG_S;
  struct run_status s = {0};
  while (s.step < 20 && clock_mono_s() < limit)
    engine_status(g, id, &s);
  engine_pause(g, id);
  ok(wait_for(g, id) != 0 && strstr(e.msg, "paused"), "a pause ends a wait: %s", e.msg);
  is_int(engine_state(g, id, &left, NULL), ENGINE_PAUSED, "paused");
  engine_lock(g);
  uint64_t done = run_n_steps(engine_run(g, id));
  engine_unlock(g);
  is_int(left, 1000000 - done, "what is left is known");
  clock_sleep_s(0.02);
  engine_status(g, id, &s);
  is_int(s.step, done, "it stands");
  engine_go(g, id, 5);
  ok(wait_for(g, id) == 0, "five steps");
  engine_status(g, id, &s);
  is_int(s.step, done + 5, "are five, not what was left");
  engine_go(g, id, ENGINE_FOREVER);
  engine_pause(g, id);
  engine_go(g, id, 0);
  is_int(engine_state(g, id, &left, NULL), ENGINE_RUNNING, "0 goes on");
  ok(left == ENGINE_FOREVER, "for ever");
  limit = clock_mono_s() + 0.05;
  ok(engine_wait(g, id, too_late, &limit, &e) != 0 && strstr(e.msg, "interrupted"), "a wait can be given up");
  ok(engine_remove(g, id, &e) == 0 && !engine_run(g, id) && engine_status(g, id, &s) != 0, "removed while it runs");
  ok(engine_remove(g, id, &e) != 0, "once");
  engine_free(g);
}

/* The boundary against a thread that is back for it in microseconds: each time within a moment, never starved. */
static void test_prompt(void)
{
  struct engine *g = new_engine(1);
  int id = engine_add(g, make_run(NULL, "batch", "1", "eval_every", "0", "snapshot_every", "0", NULL));
  engine_go(g, id, ENGINE_FOREVER);
  double worst = 0;
  bool still = true;
  for (int i = 0; i < 300; i++) {
    double t = clock_mono_s();
    engine_lock(g);
    worst = fmax(worst, clock_mono_s() - t);
    uint64_t a = run_n_steps(engine_run(g, id));
    engine_lock(g); /* again, by the same thread */
    clock_sleep_s(0.0002);
    still &= run_n_steps(engine_run(g, id)) == a;
    engine_unlock(g);
    engine_unlock(g);
    drain(g);
  }
  ok(still, "while it is held no step is done");
  ok(worst < 2, "it is had within moments (worst of 300: %.2g ms)", 1e3 * worst);
  struct run_status s;
  engine_status(g, id, &s);
  ok(s.step > 50, "and training goes on in between (%d steps)", (int)s.step);
  engine_free(g); /* while it runs */
}

/* Several threads at once, as prompt, screen and script are. */
static atomic_bool stop_pestering;
struct pest {
  struct engine *g;
  int id;
};
static void *pester(void *ctx)
{
  struct pest *p = ctx;
  for (int i = 0; !atomic_load(&stop_pestering); i++) {
    struct run_status s;
    engine_status(p->g, p->id, &s);
    engine_lock(p->g);
    struct run *r = engine_run(p->g, p->id);
    if (r && run_set(r, "lr", i % 2 ? "0.01" : "0.02", NULL) != 0)
      die("lr is refused");
    engine_unlock(p->g);
    drain(p->g);
    engine_pause(p->g, p->id);
    engine_go(p->g, p->id, 0);
  }
  return NULL;
}

static void test_many(void)
{
  struct engine *g = new_engine(2);
  int a = engine_add(g, make_run(NULL, "threads", "2", NULL)), b = engine_add(g, make_run(NULL, NULL));
  struct pest p[3] = {{g, a}, {g, b}, {g, a}};
  pthread_t t[3];
  engine_go(g, a, ENGINE_FOREVER);
  engine_go(g, b, ENGINE_FOREVER);
  for (int i = 0; i < 3; i++)
    if (pthread_create(&t[i], NULL, pester, &p[i]))
      tap_bail("no thread");
  struct run_status sa = {0}, sb = {0};
  double limit = clock_mono_s() + LONG_S;
  while ((sa.step < 100 || sb.step < 100) && clock_mono_s() < limit) {
    engine_status(g, a, &sa);
    engine_status(g, b, &sb);
    clock_sleep_s(0.001);
  }
  atomic_store(&stop_pestering, true);
  for (int i = 0; i < 3; i++)
    pthread_join(t[i], NULL);
  ok(sa.step >= 100 && sb.step >= 100, "two runs go on in turn with three threads at them (%d, %d steps)", (int)sa.step,
     (int)sb.step);
  int ids[4];
  is_int(engine_run_ids(g, ids, 4), 2, "two runs are listed");
  engine_free(g);
}

static void test_failures(void)
{
  struct engine *g = new_engine(1);
  int id = engine_add(g, make_run(NULL, NULL)), bad = engine_add(g, make_run(NULL, NULL));
  engine_lock(g);
  graph_weights(run_graph(engine_run(g, bad)))[3] = NAN;
  engine_unlock(g);
  engine_go(g, id, 50);
  engine_go(g, bad, 50);
  ok(wait_for(g, bad) != 0 && strstr(e.msg, "diverged"), "a run that diverges stops: %s", e.msg);
  is_int(engine_state(g, bad, NULL, &e), ENGINE_DIVERGED, "and is marked so");
  ok(strstr(e.msg, "fc1") != NULL, "with the reason");
  ok(wait_for(g, id) == 0, "the other is not troubled");
  engine_lock(g);
  if (run_finish(engine_run(g, id), "done", &e))
    tap_bail("%s", e.msg);
  engine_unlock(g);
  engine_go(g, id, 1);
  ok(wait_for(g, id) != 0 && engine_state(g, id, NULL, NULL) == ENGINE_FAILED, "a run that cannot step: %s", e.msg);
  engine_free(g);
}

static int n_hooked;
static pthread_t hook_thread;
static void hook(void *ctx, int run_id, struct run *r, enum step_result result)
{
  struct engine *g = ctx;
  engine_lock(g); /* re-entrant here */
  hook_thread = pthread_self();
  n_hooked += result == STEP_OK && engine_run(g, run_id) == r;
  if (run_n_steps(r) == 10)
    set(r, "bits", "4");
  if (run_n_steps(r) == 20)
    engine_pause(g, run_id);
  engine_unlock(g);
}

static void test_hook(void)
{
  struct engine *g = new_engine(1);
  struct run *direct = make_run(NULL, NULL);
  int id = engine_add(g, make_run(NULL, NULL));
  engine_set_hook(g, hook, g);
  engine_go(g, id, 1000);
  ok(wait_for(g, id) != 0 && strstr(e.msg, "step 20"), "a handler can pause: %s", e.msg);
  is_int(n_hooked, 20, "it is called at every boundary, and done when the wait is over");
  ok(!pthread_equal(hook_thread, pthread_self()), "on the engine's thread");
  steps(direct, 10);
  set(direct, "bits", "4");
  steps(direct, 10);
  engine_lock(g);
  is_str(hash_of(engine_run(g, id)), hash_of(direct), "what it sets takes effect at the next step");
  engine_unlock(g);
  engine_free(g);
  run_free(direct);
}

static void test_speed(void)
{
  struct engine *g = new_engine(1);
  int id = engine_add(g, make_run(NULL, "speed", "100", NULL));
  double t = clock_mono_s();
  engine_go(g, id, 11);
  ok(wait_for(g, id) == 0, "eleven steps at 100 a second");
  ok(clock_mono_s() - t > 0.09, "take a tenth of a second at least");
  engine_lock(g);
  set(engine_run(g, id), "speed", "0.01");
  engine_unlock(g);
  engine_go(g, id, 1);
  struct run_status s;
  double limit = clock_mono_s() + 0.1;
  (void)!engine_wait(g, id, too_late, &limit, &e);
  engine_status(g, id, &s);
  is_int(s.step, 11, "at one step in 100 s the next waits");
  engine_lock(g);
  set(engine_run(g, id), "speed", "0");
  engine_unlock(g);
  ok(wait_for(g, id) == 0, "turning it up ends the waiting");
  engine_lock(g);
  set(engine_run(g, id), "speed", "0.01");
  engine_unlock(g);
  engine_go(g, id, 100);
  clock_sleep_s(0.01);
  t = clock_mono_s();
  engine_free(g);
  ok(clock_mono_s() - t < LONG_S, "so does the end");
}

/* A run that stands still has its journal in the file. */
static void test_flush(void)
{
  char *path = temp_path("engine.jsonl");
  struct engine *g = new_engine(1);
  int id = engine_add(g, make_run(path, NULL));
  engine_go(g, id, 3);
  if (wait_for(g, id))
    tap_bail("%s", e.msg);
  FILE *f = fopen(path, "r");
  int lines = 0;
  for (int c; f && (c = getc(f)) != EOF;)
    lines += c == '\n';
  fclose(f);
  is_int(lines, 4, "header and three steps are in the file");
  engine_free(g);
  mem_free(path);
}

int main(void)
{
  test_same_bits();
  test_pause();
  test_prompt();
  test_many();
  test_failures();
  test_hook();
  test_speed();
  test_flush();
  return tap_done();
}
