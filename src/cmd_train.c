/* bitdial train: one run from options alone. */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cmd_progress.h"
#include "cmd_session.h"
#include "cmd_signal.h"
#include "cmd_tables.h"

static const char default_epochs[] = "10";

/* Where a file will be written in the end, its directory must be there now, not after an hour of training. */
static int check_save_path(const char *path, struct err *e)
{
  char *copy = mem_strdup(path);
  char *slash = strrchr(copy, '/');
  if (slash)
    slash[slash == copy ? 1 : 0] = '\0';
  int bad = access(slash ? copy : ".", W_OK) != 0;
  int code = errno;
  mem_free(copy);
  return bad ? err_set(e, "--save %s: cannot be written: %s", path, strerror(code)) : 0;
}

/* The state would replace the journal. Both names are there by now, so links and ./ do not hide it. */
static int check_apart(const char *log, const char *save, struct err *e)
{
  struct stat a, b;
  if (!log || !save || stat(log, &a) != 0 || stat(save, &b) != 0 || a.st_dev != b.st_dev || a.st_ino != b.st_ino)
    return 0;
  return err_set(e, "--log %s and --save %s are one file: the state would replace the journal", log, save);
}

/* Knobs of the run: those given, and a length where none is. Returns how many; caller mem_free()s *out. */
static size_t run_pairs(const struct cmd_args *a, const char ***out)
{
  const char **p = mem_alloc((a->n_pairs + 1) * 2 * sizeof *p);
  size_t n = a->n_pairs;
  if (n)
    memcpy(p, a->pairs, 2 * n * sizeof *p);
  if (!cmd_args_knob(a, "epochs") && !cmd_args_knob(a, "steps")) {
    p[2 * n] = "epochs";
    p[2 * n + 1] = default_epochs;
    n++;
  }
  *out = p;
  return n;
}

static void say_start(struct run *r, FILE *out)
{
  char si[16];
  const struct dataset *d = run_dataset(r);
  if (dataset_notice(d))
    fprintf(out, "note: %s\n", dataset_notice(d));
  uint64_t n = run_target_steps(r);
  fprintf(out, "%s: model %s (%s weights), data %s (%zu + %zu held out), %" PRIu64 " step%s\n", run_name(r),
          run_model(r)->name, str_si((double)graph_n_weights(run_graph(r)), si), dataset_name(d),
          dataset_size(d, SPLIT_TRAIN), dataset_size(d, SPLIT_TEST), n, n == 1 ? "" : "s");
  fflush(out);
}

static void say_end(struct run *r, const char *reason, double loss, double accuracy, double seconds, FILE *out)
{
  char time[32], hash[33];
  run_weights_hash(r, hash);
  fprintf(out, "%s after %" PRIu64 " step%s, %" PRIu64 " examples, %s\n", reason, run_n_steps(r),
          run_n_steps(r) == 1 ? "" : "s", run_n_examples(r), progress_duration(seconds, time));
  if (!isnan(accuracy))
    fprintf(out, "test loss %.*g  test accuracy %.2f %%\n", loss < 1 ? 4 : 5, loss, 100 * accuracy);
  fprintf(out, "weights %s\n", hash);
  if (run_journal_path(r) && strcmp(run_journal_path(r), "-") != 0)
    fprintf(out, "journal %s (bitdial replay repeats the run and checks it)\n", run_journal_path(r));
}

static bool poll_signal(void *ctx)
{
  (void)ctx;
  return signal_caught();
}

/* How training ended, and what to tell. */
struct outcome {
  int status;
  const char *reason;
  struct err err;
};

static struct outcome train(struct session *s, int id)
{
  struct outcome o = {.status = STATUS_DONE, .reason = "done"};
  engine_lock(s->engine);
  uint64_t target = run_target_steps(engine_run(s->engine, id));
  engine_unlock(s->engine);
  engine_go(s->engine, id, target ? target : ENGINE_FOREVER);
  if (engine_wait(s->engine, id, poll_signal, NULL, &o.err) == 0)
    return o;
  if (signal_caught())
    return (struct outcome){.status = STATUS_INTERRUPTED, .reason = "interrupted"};
  o.status = STATUS_FAILED;
  o.reason = engine_state(s->engine, id, NULL, NULL) == ENGINE_DIVERGED ? "diverged" : "failed";
  return o;
}

/* Evaluates, saves and closes the journal; what fails on the way is told, and the rest still done. */
static int finish(const struct command *c, struct session *s, int id, struct outcome *o, const char *save,
                  double seconds, FILE *out)
{
  struct err e;
  double loss = NAN, accuracy = NAN;
  engine_pause(s->engine, id);
  engine_lock(s->engine);
  struct run *r = engine_run(s->engine, id);
  if (o->status == STATUS_FAILED)
    cmd_fail(c, &o->err);
  else if (run_n_steps(r) > 0 && run_evaluate(r, &loss, &accuracy, &e) != 0)
    o->status = cmd_fail(c, &e);
  if (save && run_save(r, save, &e) != 0)
    o->status = cmd_fail(c, &e);
  if (run_finish(r, o->reason, &e) != 0 && o->status != STATUS_FAILED)
    o->status = cmd_fail(c, &e);
  say_end(r, o->reason, loss, accuracy, seconds, out);
  if (save)
    fprintf(out, "saved %s\n", save);
  engine_unlock(s->engine);
  return o->status;
}

static int train_run(const struct command *c, const struct cmd_args *a, struct session *s)
{
  const char *log = a->value[TRAIN_LOG], *save = a->value[TRAIN_SAVE];
  /* with the journal on standard output, lines for people go to standard error */
  FILE *out = log && strcmp(log, "-") == 0 ? stderr : stdout;
  struct err e;
  const char **pairs;
  size_t n = run_pairs(a, &pairs);
  int id = vm_make_run(s->vm, pairs, n, log, &e);
  mem_free(pairs);
  if (id < 0 || check_apart(log, save, &e) != 0)
    return cmd_fail(c, &e);

  engine_lock(s->engine);
  say_start(engine_run(s->engine, id), out);
  engine_unlock(s->engine);
  struct progress_config pc = {.engine = s->engine, .out = out, .live = true};
  pc.every = a->value[TRAIN_EVERY] ? strtoull(a->value[TRAIN_EVERY], NULL, 10) : 100;
  struct progress *p = a->value[TRAIN_QUIET] ? NULL : progress_begin(&pc);
  double t0 = clock_mono_s();
  struct outcome o = train(s, id);
  double seconds = clock_mono_s() - t0;
  progress_end(p);
  return finish(c, s, id, &o, save, seconds, out);
}

int cmd_train(int argc, char **argv)
{
  const struct command *c = command_find("train");
  struct cmd_args a;
  struct err e;
  struct session s = {0};
  int status = cmd_parse(c, argc, argv, &a);
  if (status >= 0)
    return status;
  if (cmd_check_count("every", a.value[TRAIN_EVERY], &e) != 0)
    status = cmd_usage_error(c, &e);
  else if (a.value[TRAIN_SAVE] && check_save_path(a.value[TRAIN_SAVE], &e) != 0)
    status = cmd_fail(c, &e);
  else if (session_begin(&s, &a, true, a.value[TRAIN_LOG], &e) != 0)
    status = cmd_fail(c, &e);
  else {
    signal_begin(s.vm);
    status = train_run(c, &a, &s);
    signal_end();
  }
  session_end(&s);
  cmd_args_done(&a);
  return status;
}
