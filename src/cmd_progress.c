/* Turns the engine's feed into lines. */
#include "config.h"

#include "cmd_progress.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/thread.h"

enum { MAX_RUNS = 16 };

/* What was seen of one run: the step under way, whose metrics come one by one, and the loss since the last line. */
struct seen {
  int run_id;
  uint64_t step, printed; /* step whose metrics are being gathered; step of the last line */
  double value[METRIC_COUNT];
  double loss_sum;
  uint64_t loss_n;
};

struct progress {
  struct progress_config c;
  pthread_t thread;
  atomic_bool stop;
  bool live_shown;
  double live_at;
  struct seen seen[MAX_RUNS];
  int n_seen;
};

const char *progress_duration(double seconds, char out[32])
{
  unsigned long long s = (unsigned long long)(seconds + 0.5);
  if (s >= 3600)
    snprintf(out, 32, "%llu:%02llu:%02llu", s / 3600, s / 60 % 60, s % 60);
  else
    snprintf(out, 32, "%llu:%02llu", s / 60, s % 60);
  return out;
}

static struct seen *seen_of(struct progress *p, int run_id)
{
  for (int i = 0; i < p->n_seen; i++)
    if (p->seen[i].run_id == run_id)
      return &p->seen[i];
  if (p->n_seen == MAX_RUNS)
    return NULL;
  struct seen *s = &p->seen[p->n_seen++];
  *s = (struct seen){.run_id = run_id};
  for (int m = 0; m < METRIC_COUNT; m++)
    s->value[m] = NAN;
  return s;
}

static void clear_live(struct progress *p)
{
  if (p->live_shown)
    fputs("\r\033[K", p->c.out);
  p->live_shown = false;
}

static void add_run_name(const struct progress *p, struct str *line, int run_id)
{
  struct run_status st;
  if (p->n_seen > 1 && engine_status(p->c.engine, run_id, &st) == 0)
    str_addf(line, "%s  ", st.name);
}

static void add_metrics(struct str *line, const struct seen *s, double loss)
{
  char si[16];
  str_addf(line, loss < 1e4 ? "loss %-7.4f" : "loss %-7.4g", loss);
  if (!isnan(s->value[METRIC_LR]))
    str_addf(line, "  lr %-8.4g", s->value[METRIC_LR]);
  double var = s->value[METRIC_GRAD_VARIANCE], quant = s->value[METRIC_VAR_QUANT];
  if (!isnan(var))
    str_addf(line, "  grad var %.2e", var);
  if (var > 0 && quant > 0)
    str_addf(line, " (%.2g %% rounding)", 100 * quant / var);
  if (s->value[METRIC_SAMPLES_PER_S] > 0)
    str_addf(line, "  %s samples/s", str_si(s->value[METRIC_SAMPLES_PER_S], si));
}

static void print_line(struct progress *p, struct str *line)
{
  clear_live(p);
  fprintf(p->c.out, "%s\n", line->s);
  str_done(line);
}

/* All metrics of s->step are in: prints them where a line is due. */
static void step_complete(struct progress *p, struct seen *s)
{
  if (!p->c.every || s->loss_n == 0 || s->step / p->c.every == s->printed / p->c.every)
    return;
  struct str line = {0};
  add_run_name(p, &line, s->run_id);
  str_addf(&line, "step %7llu  ", (unsigned long long)s->step);
  add_metrics(&line, s, s->loss_sum / (double)s->loss_n);
  print_line(p, &line);
  s->printed = s->step;
  s->loss_sum = 0;
  s->loss_n = 0;
}

static void print_eval(struct progress *p, const struct seen *s)
{
  struct str line = {0};
  add_run_name(p, &line, s->run_id);
  str_addf(&line, "step %7llu  held-out loss %.4f  accuracy %.2f %%", (unsigned long long)s->step,
           s->value[METRIC_EVAL_LOSS], 100 * s->value[METRIC_EVAL_ACCURACY]);
  print_line(p, &line);
}

static void take_point(struct progress *p, const struct feed_point *f)
{
  struct seen *s = seen_of(p, f->run_id);
  if (!s)
    return;
  if (f->step != s->step) {
    step_complete(p, s);
    if (f->step < s->step)
      s->printed = f->step; /* a rewind */
    s->step = f->step;
  }
  s->value[f->metric] = f->n ? f->sum / f->n : NAN;
  if (f->metric == METRIC_LOSS) {
    s->loss_sum += f->sum;
    s->loss_n += f->n;
  }
  if (f->metric == METRIC_EVAL_ACCURACY) {
    step_complete(p, s); /* an evaluation follows the step's own metrics */
    print_eval(p, s);
  }
}

static void take_event(struct progress *p, const struct feed_event *f)
{
  if (f->kind == EVENT_EVAL || f->kind == EVENT_SNAPSHOT || f->kind == EVENT_END)
    return; /* told by their metrics, or not worth a line */
  struct str line = {0};
  add_run_name(p, &line, f->run_id);
  str_addf(&line, "step %7llu  %s", (unsigned long long)f->step, f->text);
  print_line(p, &line);
}

static void drain(struct progress *p)
{
  struct feed *feed = engine_feed(p->c.engine);
  struct feed_point point;
  struct feed_event event;
  while (feed_get_event(feed, &event))
    take_event(p, &event);
  while (feed_get_point(feed, &point))
    take_point(p, &point);
}

/* The line that is always fresh, ten times a second. */
static void show_live(struct progress *p)
{
  double now = clock_mono_s();
  struct run_status st;
  if (!p->c.live || now - p->live_at < 0.1 || p->n_seen == 0)
    return;
  const struct seen *s = &p->seen[p->n_seen - 1];
  if (engine_status(p->c.engine, s->run_id, &st) != 0 || st.state != ENGINE_RUNNING)
    return;
  char left[32];
  double per_step = st.step ? st.seconds / (double)st.step : 0;
  struct str line = {0};
  str_addf(&line, "step %7llu  ", (unsigned long long)st.step);
  add_metrics(&line, s, s->value[METRIC_LOSS]);
  if (st.steps_left && st.steps_left != ENGINE_FOREVER)
    str_addf(&line, "  %s left", progress_duration(per_step * (double)st.steps_left, left));
  clear_live(p);
  fputs(line.s, p->c.out);
  str_done(&line);
  p->live_shown = true;
  p->live_at = now;
}

static void *work(void *ctx)
{
  struct progress *p = ctx;
  while (!atomic_load(&p->stop)) {
    drain(p);
    show_live(p);
    fflush(p->c.out);
    clock_sleep_s(0.02);
  }
  return NULL;
}

struct progress *progress_begin(const struct progress_config *c)
{
  struct progress *p = mem_alloc(sizeof *p);
  p->c = *c;
  const char *term = getenv("TERM");
  p->c.live = c->live && isatty(fileno(c->out)) && term && strcmp(term, "dumb") != 0;
  if (thread_start(&p->thread, work, p) != 0)
    die("no thread for progress lines");
  return p;
}

void progress_end(struct progress *p)
{
  if (!p)
    return;
  atomic_store(&p->stop, true);
  pthread_join(p->thread, NULL);
  drain(p);
  for (int i = 0; i < p->n_seen; i++)
    step_complete(p, &p->seen[i]);
  clear_live(p);
  fflush(p->c.out);
  mem_free(p);
}
