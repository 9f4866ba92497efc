/* Queue of work, threads, and bounded buffer of output. */
#include "config.h"

#include "ui/worker.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/thread.h"

#define MAX_WAITING 64
#define MAX_OUTPUT (256 * 1024) /* bytes the screen has not taken: more than the scrollback of a flood is dropped */

enum job_kind { JOB_OPEN, JOB_EVAL };
struct job {
  enum job_kind kind;
  char **word; /* pairs, or the text */
  size_t n_words;
  bool start;
};

struct piece { /* of output */
  struct piece *next;
  enum worker_kind kind;
  struct str text;
};

struct worker {
  struct engine *engine;
  struct vm *vm;
  void (*wake)(void);
  pthread_t thread, script_thread;
  bool has_script; /* its thread was started */
  const char *script;
  int n_script_args;
  char *const *script_args;
  pthread_mutex_t mutex; /* holds for all below */
  pthread_cond_t changed;
  struct job waiting[MAX_WAITING];
  size_t n_waiting;
  bool ending, ended, busy, opening, script_busy;
  unsigned n_interrupts;
  double since;
  struct str chunk; /* entries typed so far of one that goes on */
  struct piece *output, *last;
  size_t n_output, n_dropped;
};

/* ---- output ---- */

static void drop_oldest(struct worker *w)
{
  struct piece *p = w->output;
  w->output = p->next;
  if (!w->output)
    w->last = NULL;
  w->n_output -= p->text.n;
  w->n_dropped += p->text.n;
  str_done(&p->text);
  mem_free(p);
}

static void add_output(struct worker *w, enum worker_kind kind, const char *text)
{
  pthread_mutex_lock(&w->mutex);
  struct piece *p = w->last;
  if (!p || p->kind != kind || p->text.n > MAX_OUTPUT / 16) {
    p = mem_alloc(sizeof *p);
    p->kind = kind;
    if (w->last)
      w->last->next = p;
    else
      w->output = p;
    w->last = p;
  }
  size_t n = strlen(text);
  const char *from = n > MAX_OUTPUT / 4 ? text + n - MAX_OUTPUT / 4 : text; /* one huge string: its end */
  w->n_dropped += (size_t)(from - text);
  str_add(&p->text, from);
  w->n_output += strlen(from);
  while (w->n_output > MAX_OUTPUT && w->output != w->last)
    drop_oldest(w);
  pthread_mutex_unlock(&w->mutex);
  w->wake();
}

static void on_print(void *ctx, const char *text)
{
  add_output(ctx, WORKER_OUTPUT, text);
}

static void say(struct worker *w, const char *before, const char *message)
{
  char *text = mem_printf("%s%s\n", before, message);
  add_output(w, WORKER_ERROR, text);
  mem_free(text);
}

bool worker_take_output(struct worker *w, struct str *out, enum worker_kind *kind)
{
  str_clear(out);
  pthread_mutex_lock(&w->mutex);
  struct piece *p = w->output;
  if (w->n_dropped) {
    str_addf(out, "... %zu bytes of output dropped ...\n", w->n_dropped);
    *kind = WORKER_ERROR;
    w->n_dropped = 0;
    p = NULL;
  } else if (p) {
    *kind = p->kind;
    str_addn(out, p->text.s, p->text.n);
    drop_oldest(w);
    w->n_dropped = 0;
  }
  pthread_mutex_unlock(&w->mutex);
  return out->n > 0;
}

/* ---- work ---- */

static void free_job(struct job *j)
{
  for (size_t i = 0; i < j->n_words; i++)
    mem_free(j->word[i]);
  mem_free(j->word);
}

/* What the data set has to say, e.g. that a synthetic one stands in. */
static void say_notice(struct worker *w, int run_id)
{
  char text[512] = "";
  engine_lock(w->engine);
  struct run *r = engine_run(w->engine, run_id);
  const char *notice = r ? dataset_notice(run_dataset(r)) : NULL;
  if (notice)
    snprintf(text, sizeof text, "note: %s\n", notice);
  engine_unlock(w->engine);
  if (*text)
    add_output(w, WORKER_OUTPUT, text);
}

static void open_run(struct worker *w, const struct job *j)
{
  struct err e;
  int id = vm_make_run(w->vm, (const char *const *)j->word, j->n_words / 2, NULL, &e);
  if (id < 0) {
    say(w, "cannot open the run: ", e.msg);
    return;
  }
  say_notice(w, id);
  if (j->start)
    engine_go(w->engine, id, ENGINE_FOREVER);
}

static void *script_main(void *ctx)
{
  struct worker *w = ctx;
  struct err e;
  if (vm_run_file(w->vm, w->script, w->n_script_args, w->script_args, &e) != 0)
    say(w, "", vm_interrupted(w->vm) ? "the script was interrupted" : e.msg);
  pthread_mutex_lock(&w->mutex);
  w->script_busy = false;
  pthread_cond_broadcast(&w->changed);
  pthread_mutex_unlock(&w->mutex);
  w->wake();
  return NULL;
}

static void eval(struct worker *w, const struct job *j)
{
  pthread_mutex_lock(&w->mutex);
  unsigned n_interrupts = w->n_interrupts;
  if (w->chunk.n)
    str_addc(&w->chunk, '\n');
  str_add(&w->chunk, j->word[0]);
  char *chunk = mem_strdup(w->chunk.s ? w->chunk.s : "");
  pthread_mutex_unlock(&w->mutex);
  enum vm_result result = vm_eval(w->vm, chunk);
  mem_free(chunk);
  pthread_mutex_lock(&w->mutex);
  if (result != VM_INCOMPLETE || n_interrupts != w->n_interrupts)
    str_clear(&w->chunk);
  pthread_mutex_unlock(&w->mutex);
}

static void (*const do_job[])(struct worker *w, const struct job *j) = {[JOB_OPEN] = open_run, [JOB_EVAL] = eval};

static void *thread_main(void *ctx)
{
  struct worker *w = ctx;
  pthread_mutex_lock(&w->mutex);
  while (!w->ending) {
    if (w->n_waiting == 0) {
      pthread_cond_wait(&w->changed, &w->mutex);
      continue;
    }
    struct job j = w->waiting[0];
    memmove(&w->waiting[0], &w->waiting[1], --w->n_waiting * sizeof j);
    w->busy = true;
    w->opening = j.kind == JOB_OPEN;
    w->since = clock_mono_s();
    pthread_mutex_unlock(&w->mutex);
    w->wake();
    do_job[j.kind](w, &j);
    free_job(&j);
    pthread_mutex_lock(&w->mutex);
    w->busy = w->opening = false;
    w->wake();
  }
  w->ended = true;
  pthread_cond_broadcast(&w->changed);
  pthread_mutex_unlock(&w->mutex);
  return NULL;
}

static bool add_job(struct worker *w, enum job_kind kind, const char *const *words, size_t n_words, bool start)
{
  pthread_mutex_lock(&w->mutex);
  bool room = w->n_waiting < MAX_WAITING;
  if (room) {
    struct job *j = &w->waiting[w->n_waiting++];
    *j = (struct job){.kind = kind, .n_words = n_words, .start = start};
    j->word = mem_alloc((n_words + 1) * sizeof *j->word);
    for (size_t i = 0; i < n_words; i++)
      j->word[i] = mem_strdup(words[i]);
    pthread_cond_broadcast(&w->changed);
  }
  pthread_mutex_unlock(&w->mutex);
  return room;
}

void worker_open_run(struct worker *w, const char *const *pairs, size_t n_pairs, bool start)
{
  add_job(w, JOB_OPEN, pairs, 2 * n_pairs, start);
}

bool worker_eval(struct worker *w, const char *text)
{
  return add_job(w, JOB_EVAL, &text, 1, false);
}

bool worker_interrupt(struct worker *w)
{
  pthread_mutex_lock(&w->mutex);
  bool any = w->busy || w->script_busy || w->n_waiting > 0 || w->chunk.n > 0;
  while (w->n_waiting > 0)
    free_job(&w->waiting[--w->n_waiting]);
  w->n_interrupts++;
  if (!w->busy)
    str_clear(&w->chunk); /* else eval() does it when the chunk has ended */
  pthread_mutex_unlock(&w->mutex);
  vm_interrupt(w->vm); /* a handler, too, may be what runs */
  w->wake();
  return any;
}

void worker_state(struct worker *w, struct worker_state *out)
{
  pthread_mutex_lock(&w->mutex);
  *out = (struct worker_state){.busy = w->busy,
                               .seconds = w->busy ? clock_mono_s() - w->since : 0,
                               .incomplete = w->chunk.n > 0 && !w->busy,
                               .opening = w->opening || (w->n_waiting > 0 && w->waiting[0].kind == JOB_OPEN),
                               .script = w->script_busy,
                               .quit = vm_quitting(w->vm),
                               .n_waiting = (int)w->n_waiting};
  pthread_mutex_unlock(&w->mutex);
}

struct vm *worker_vm(struct worker *w)
{
  return w->vm;
}

static void destroy(struct worker *w)
{
  while (w->output)
    drop_oldest(w);
  while (w->n_waiting > 0)
    free_job(&w->waiting[--w->n_waiting]);
  str_done(&w->chunk);
  pthread_mutex_destroy(&w->mutex);
  pthread_cond_destroy(&w->changed);
  mem_free(w);
}

void worker_run_script(struct worker *w, const char *path, int n_args, char *const *args)
{
  w->script = path;
  w->n_script_args = n_args;
  w->script_args = args;
  w->script_busy = true; /* no thread reads it yet */
  int status = thread_start(&w->script_thread, script_main, w);
  w->has_script = status == 0;
  if (status != 0) {
    w->script_busy = false;
    say(w, "cannot start a thread for the script: ", strerror(status));
  }
}

struct worker *worker_create(const struct worker_config *c, struct err *e)
{
  struct worker *w = mem_alloc(sizeof *w);
  w->engine = c->engine;
  w->wake = c->wake;
  pthread_mutex_init(&w->mutex, NULL);
  pthread_cond_init(&w->changed, NULL);
  struct vm_config v = {
      .engine = c->engine, .interactive = true, .print = on_print, .ctx = w, .journal_path = c->journal_path};
  w->vm = vm_create(&v, e);
  if (!w->vm) {
    destroy(w);
    return NULL;
  }
  int status = thread_start(&w->thread, thread_main, w);
  if (status != 0) {
    err_set(e, "cannot start a thread: %s", strerror(status));
    engine_set_hook(c->engine, NULL, NULL);
    vm_free(w->vm);
    destroy(w);
    return NULL;
  }
  return w;
}

bool worker_free(struct worker *w, double timeout_s)
{
  double end = clock_mono_s() + timeout_s;
  worker_interrupt(w);
  pthread_mutex_lock(&w->mutex);
  w->ending = true;
  pthread_cond_broadcast(&w->changed);
  while ((!w->ended || w->script_busy) && clock_mono_s() < end) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_nsec += 20000000;
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&w->changed, &w->mutex, &t);
  }
  bool ended = w->ended && !w->script_busy;
  pthread_mutex_unlock(&w->mutex);
  if (!ended)
    return false;
  pthread_join(w->thread, NULL);
  if (w->has_script)
    pthread_join(w->script_thread, NULL);
  engine_lock(w->engine); /* no handler runs now, and none will */
  engine_set_hook(w->engine, NULL, NULL);
  engine_unlock(w->engine);
  vm_free(w->vm);
  destroy(w);
  return true;
}
