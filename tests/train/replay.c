/* The journal: what it holds, and that repeating it gives the same bits. */
#include "config.h"

#include "train/replay.h"

#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/mem.h"
#include "make.h"
#include "numeric/quantize.h"
#include "tensor/gemm.h"
#include "tests/tap/tap.h"

static struct err e;

static char *read_file(const char *path, size_t *n)
{
  FILE *f = fopen(path, "r");
  if (!f)
    tap_bail("%s", path);
  char *s = mem_alloc(1 << 24);
  *n = fread(s, 1, (1 << 24) - 1, f);
  fclose(f);
  return s;
}

static void write_file(const char *path, const char *s, size_t n)
{
  FILE *f = fopen(path, "w");
  if (!f || fwrite(s, 1, n, f) != n || fclose(f) != 0)
    tap_bail("%s", path);
}

static void finish(struct run *r)
{
  if (run_finish(r, "done", &e))
    tap_bail("%s", e.msg);
  run_free(r);
}

static struct replay_result replayed(const char *path, const char *what)
{
  struct replay_result out;
  int status = replay_journal(path, UINT64_MAX, NULL, NULL, &out, &e);
  if (!ok(status == 0, "%s: replays", what))
    tap_note("%s", e.msg);
  ok(out.first_mismatch == 0, "%s: all losses are the same (first mismatch %d)", what, (int)out.first_mismatch);
  return out;
}

static void refused(const char *path, const char *part, const char *what)
{
  struct replay_result out;
  ok(replay_journal(path, UINT64_MAX, NULL, NULL, &out, &e) != 0 && strstr(e.msg, part), "%s: %s", what, e.msg);
}

/* Five knob changes and more, in mid-epoch and at an epoch's end. */
static void train_with_changes(struct run *r)
{
  steps(r, 20);
  set(r, "bits", "4");
  steps(r, 17);
  set(r, "rounding", "rne");
  steps(r, 1);
  set(r, "rounding", "sr");
  set(r, "batch", "100");
  steps(r, 60);
  set(r, "optimizer", "adamw");
  set(r, "lr", "0.003");
  steps(r, 30);
  set(r, "site.gweight.format", "int6");
  set(r, "site.gweight.granularity", "row");
  set(r, "lr_scaling", "linear");
  set(r, "schedule", "cosine");
  set(r, "steps", "200");
  steps(r, 2);
  set(r, "batch", "33");
  steps(r, 50);
}

static void test_five_changes(void)
{
  char *path = temp_path("five.jsonl");
  struct run *r = make_run(path, "lr", "0.1", "lr_scaling", "sqrt", NULL);
  train_with_changes(r);
  char want[33];
  strcpy(want, hash_of(r));
  finish(r);
  struct replay_result out = replayed(path, "a run with changes");
  is_int(out.n_steps, 180, "all steps");
  ok(out.has_end && out.same_hash, "ends in the same weights");
  is_str(out.want_hash, want, "the journal has the hash of the weights");
  is_str(out.got_hash, want, "and so has the replay");
  is_str(out.note, "", "the machine is the same");

  struct run *other = make_run(NULL, "lr", "0.1", "lr_scaling", "sqrt", NULL);
  steps(other, 180);
  ok(strcmp(hash_of(other), want) != 0, "(without the changes they are others)");
  run_free(other);
  ok(replay_journal(path, 57, NULL, NULL, &out, &e) == 0 && out.n_steps == 57 && !out.has_end, "replay to a step");
  mem_free(path);
}

static void test_threads(void)
{
  char *path = temp_path("threads.jsonl");
  struct run *r = make_run(path, "threads", "2", "batch", "512", NULL);
  steps(r, 30);
  finish(r);
  size_t n;
  char *text = read_file(path, &n);
  ok(strstr(text, "\"threads\":2") || strstr(text, "\"threads\": 2"), "the header has the number of threads");
  ok(replayed(path, "a run of two threads").same_hash, "and its replay has as many");
  mem_free(text);
  mem_free(path);
}

static json_t *line_of(char **at)
{
  json_error_t why;
  char *end = strchr(*at, '\n');
  if (!end)
    return NULL;
  json_t *o = json_loadb(*at, (size_t)(end - *at), 0, &why);
  *at = end + 1;
  if (!o)
    tap_bail("a line is no JSON: %s", why.text);
  return o;
}

static const char *text_of(const json_t *o, const char *key)
{
  const char *s = json_string_value(json_object_get(o, key));
  return s ? s : "(none)";
}

static bool has_all(const json_t *o, const char *const *keys)
{
  for (; *keys; keys++)
    if (!json_object_get(o, *keys)) {
      tap_note("no field %s", *keys);
      return false;
    }
  return true;
}

static void check_header(const json_t *h)
{
  static const char *const keys[] = {"version", "time",  "threads", "isa",   "blas",  "blas_core", "rng",
                                     "native",  "model", "data",    "knobs", "sites", "seed",      NULL};
  is_str(text_of(h, "kind"), "header", "the first line is the header");
  ok(has_all(h, keys), "with all that is needed");
  is_str(text_of(h, "isa"), quantize_isa(), "the instruction set");
  is_str(text_of(h, "blas_core"), gemm_core_type(), "the core type of BLAS");
  is_int(json_integer_value(json_object_get(h, "rng_rounds")), RNG_SITE_ROUNDS, "the generator's rounds");
  is_str(text_of(json_object_get(h, "data"), "name"), "spirals", "the data by its name");
  is_int(strlen(text_of(json_object_get(h, "data"), "hash")), 32, "and its hash");
  is_int(json_array_size(json_object_get(json_object_get(h, "model"), "layers")), 5, "the model, layer by layer");
  is_str(text_of(json_object_get(json_object_get(h, "sites"), "gact"), "format"), "e4m3fin", "the specs of the sites");
  is_int(json_object_size(json_object_get(h, "knobs")), KNOB_COUNT, "and every knob");
}

static void test_lines(void)
{
  static const char *const step_keys[] = {"step",  "epoch", "loss",   "grad_variance", "var_data",
                                          "var_quant", "var_a", "var_g",  "var_ag",        "grad_norm",
                                          "lr",    "batch", "samples_per_s", NULL};
  char *path = temp_path("lines.jsonl");
  struct run *r = make_run(path, "probe_every", "2", "eval_every", "2", NULL);
  steps(r, 2);
  double loss = run_metric(r, METRIC_LOSS);
  set(r, "lr", "0.01");
  set(r, "nesterov", "true");
  steps(r, 1);
  finish(r);
  size_t n;
  char *text = read_file(path, &n), *at = text;
  json_t *o = line_of(&at);
  check_header(o);
  json_decref(o);

  o = line_of(&at);
  is_str(text_of(o, "kind"), "step", "then a step");
  is_int(json_integer_value(json_object_get(o, "step")), 1, "number 1");
  ok(!json_object_get(o, "grad_variance"), "without a variance where none was measured");
  json_decref(o);
  o = line_of(&at);
  ok(has_all(o, step_keys), "the second has all its fields");
  ok(json_real_value(json_object_get(o, "loss")) == loss, "the loss reads back as the very same number");
  is_close(json_number_value(json_object_get(o, "epoch")), 128.0 / (double)8192, 1e-15, "the epoch is that after it");
  json_decref(o);
  o = line_of(&at);
  is_str(text_of(o, "kind"), "eval", "an evaluation is due");
  is_int(json_integer_value(json_object_get(o, "step")), 2, "after two steps");
  json_decref(o);
  o = line_of(&at);
  is_str(text_of(o, "kind"), "set", "then a change");
  is_int(json_integer_value(json_object_get(o, "step")), 3, "with the first step that has it");
  is_str(text_of(o, "knob"), "lr", "the knob");
  is_close(json_number_value(json_object_get(o, "value")), 0.01, 0, "the value, a number");
  is_close(json_number_value(json_object_get(o, "previous")), 0.05, 0, "the previous one");
  json_decref(o);
  o = line_of(&at);
  ok(json_is_true(json_object_get(o, "value")), "a truth value is one");
  json_decref(o);
  json_decref(line_of(&at));
  o = line_of(&at);
  is_str(text_of(o, "kind"), "end", "the end");
  is_str(text_of(o, "reason"), "done", "with its reason");
  json_decref(o);
  ok(!line_of(&at), "and nothing behind it");
  mem_free(text);
  mem_free(path);
}

static char *find_nth(char *text, const char *what, int n)
{
  char *p = text;
  for (int i = 0; p && i < n; i++)
    p = strstr(p + 1, what);
  if (!p)
    tap_bail("no %d-th %s", n, what);
  return p;
}

static void test_damage(void)
{
  char *path = temp_path("damage.jsonl"), *bad = temp_path("bad.jsonl");
  struct run *r = make_run(path, NULL);
  struct replay_result out;
  steps(r, 40);
  finish(r);
  size_t n;
  char *text = read_file(path, &n);

  write_file(bad, text, n - 30);
  out = replayed(bad, "a torn last line");
  ok(out.n_steps == 40 && !out.has_end, "what is whole is repeated");

  char *digit = strstr(find_nth(text, "\"loss\":", 26) /* the model has a loss too */, ".") + 3, was = *digit;
  *digit = was == '5' ? '6' : '5';
  write_file(bad, text, n);
  ok(replay_journal(bad, UINT64_MAX, NULL, NULL, &out, &e) == 0 && out.first_mismatch == 25, "another loss is found");
  ok(out.same_hash, "though the weights are the same");
  *digit = was;

  char *hash = strstr(text, "\"weights_hash\":") + 20;
  was = *hash;
  *hash = was == 'a' ? 'b' : 'a';
  write_file(bad, text, n);
  ok(replay_journal(bad, UINT64_MAX, NULL, NULL, &out, &e) == 0 && out.has_end && !out.same_hash && !out.first_mismatch,
     "another hash is found");
  *hash = was;

  char *second = strchr(text, '\n') + 1, *third = strchr(second, '\n') + 1;
  char *gap = mem_alloc(n);
  memcpy(gap, text, (size_t)(second - text));
  memcpy(gap + (second - text), third, n - (size_t)(third - text));
  write_file(bad, gap, n - (size_t)(third - second));
  refused(bad, "lines are missing", "a missing step");
  *second = '[';
  write_file(bad, text, n);
  refused(bad, "bad.jsonl:2", "a damaged line in the middle");
  *second = '{';
  write_file(bad, second, n - (size_t)(second - text));
  refused(bad, "header", "no header");
  write_file(bad, "", 0);
  refused(bad, "empty", "an empty file");
  write_file(bad, "hello\n", 6);
  refused(bad, "not a journal", "another kind of file");
  unlink(bad);
  refused(bad, "No such file", "no file");

  char *data = strstr(find_nth(text, "\"data\":", 1), "\"hash\"");
  data = strchr(data + 7, '"') + 1;
  *data = *data == 'a' ? 'b' : 'a';
  write_file(bad, text, n);
  refused(bad, "contents differ", "other data");
  mem_free(gap);
  mem_free(text);
  mem_free(path);
  mem_free(bad);
}

/* A device that is always full, and a file that cannot grow any more. */
static void test_full_disk(void)
{
  if (access("/dev/full", W_OK) != 0) {
    tap_skip("no /dev/full");
  } else {
    struct run *r = try_run(&e, "/dev/full", NULL);
    enum step_result result = STEP_OK;
    for (int i = 0; r && i < 200000 && result == STEP_OK; i++)
      result = run_step(r, &e);
    ok(!r || result == STEP_FAILED, "a full device ends in an error");
    ok(strstr(e.msg, "/dev/full") && strstr(e.msg, "No space left"), "that says so: %s", e.msg);
    if (r)
      ok(run_finish(r, "failed", &e) != 0, "finishing tells it again");
    run_free(r);
  }

  char *path = temp_path("limited.jsonl"), *save = temp_path("limited.safetensors");
  struct rlimit old, limit;
  getrlimit(RLIMIT_FSIZE, &old);
  limit = old;
  limit.rlim_cur = 20000;
  signal(SIGXFSZ, SIG_IGN);
  struct run *r = make_run(path, NULL), *same = make_run(NULL, NULL);
  setrlimit(RLIMIT_FSIZE, &limit);
  enum step_result result = STEP_OK;
  char before[33] = "";
  for (int i = 0; i < 200000 && result == STEP_OK; i++) {
    strcpy(before, hash_of(r));
    result = run_step(r, &e);
  }
  is_int(result, STEP_FAILED, "a journal that cannot grow: the step fails: %s", e.msg);
  is_str(hash_of(r), before, "the weights are those before it");
  uint64_t done = run_n_steps(r);
  setrlimit(RLIMIT_FSIZE, &old);
  ok(run_save(r, save, &e) == 0, "nothing is lost: the state can be saved");
  steps(r, 10);
  is_int(run_n_steps(r), done + 10, "and with room again the run goes on");
  steps(same, (int)done + 10);
  is_str(hash_of(r), hash_of(same), "to the same weights");
  finish(r);
  run_free(same);
  struct replay_result out = replayed(path, "the journal of that");
  ok(out.same_hash && out.n_steps == done + 10, "is whole: %d steps", (int)out.n_steps);
  mem_free(path);
  mem_free(save);
}

/* A step that diverged is not in the journal; what came after it is. */
static void test_diverged(void)
{
  char *path = temp_path("diverged.jsonl");
  struct run *r = make_run(path, "lr", "0.1", NULL);
  steps(r, 10);
  set(r, "lr", "1e6");
  enum step_result result = STEP_OK;
  for (int i = 0; i < 100 && result == STEP_OK; i++)
    result = run_step(r, &e);
  is_int(result, STEP_DIVERGED, "diverges");
  set(r, "optimizer", "adamw");
  is_int(run_step(r, &e), STEP_DIVERGED, "another optimizer does not help");
  set(r, "optimizer", "sgd");
  if (run_rewind(r, 10, &e))
    tap_bail("%s", e.msg);
  set(r, "lr", "0.1");
  steps(r, 30);
  finish(r);
  size_t n;
  char *text = read_file(path, &n);
  ok(strstr(text, "\"diverged\"") && strstr(text, "\"layer\"") && strstr(text, "\"site\""), "the event is journalled");
  ok(replayed(path, "a run that diverged and was set right").same_hash, "ends the same");
  mem_free(text);
  mem_free(path);
}

static void test_rewind_load_fork(void)
{
  char *path = temp_path("travel.jsonl"), *file = temp_path("travel.safetensors"), *second = temp_path("fork.jsonl");
  struct run *r = make_run(path, "snapshot_every", "25", NULL);
  steps(r, 30);
  set(r, "bits", "5");
  steps(r, 30);
  if (run_save(r, file, &e) || run_rewind(r, 40, &e))
    tap_bail("%s", e.msg);
  set(r, "bits", "4");
  steps(r, 30);
  if (run_load(r, file, &e))
    tap_bail("%s", e.msg);
  set(r, "batch", "96");
  steps(r, 10);
  set(r, "lr", "0.02");
  struct run *f = run_fork(r, &(struct run_config){.journal_path = second, .name = "second"}, &e);
  if (!f)
    tap_bail("%s", e.msg);
  struct run *third = run_fork(r, &(struct run_config){.journal_path = second, .name = "third"}, &e);
  ok(!third && strstr(e.msg, "another run writes it"), "not a second fork into the same journal: %s", e.msg);
  set(f, "rounding", "rne");
  steps(f, 20);
  steps(r, 20);
  finish(f);
  finish(r);
  ok(replayed(path, "a run with rewind and load").same_hash, "ends the same");
  ok(replayed(second, "the journal of a fork").same_hash, "ends the same");
  struct run *other = make_run(NULL, NULL);
  steps(other, 3);
  if (run_save(other, file, &e))
    tap_bail("%s", e.msg);
  run_free(other);
  refused(path, "contents differ", "the loaded file is another one now");
  unlink(file);
  refused(path, "is not there", "the loaded file is gone");
  mem_free(path);
  mem_free(file);
  mem_free(second);
}

/* Weights whose quantizer carries something from step to step, with evaluations in between: a replay has none. */
static void test_evaluations_move_nothing(void)
{
  static const char *const spec[][2] = {{"site.weight.error_feedback", "true"}, {"site.weight.scale", "delayed"}};
  for (int i = 0; i < 2; i++) {
    char *path = temp_path("carried.jsonl");
    struct run *r = make_run(path, "eval_every", "3", spec[i][0], spec[i][1], NULL);
    steps(r, 30);
    finish(r);
    ok(replayed(path, spec[i][0]).same_hash, "ends the same");
    mem_free(path);
  }
}

static bool count(void *ctx, uint64_t step, double loss)
{
  (void)loss;
  *(uint64_t *)ctx = step;
  return step < 7;
}

static void test_progress(void)
{
  char *path = temp_path("progress.jsonl");
  struct run *r = make_run(path, NULL);
  struct replay_result out;
  uint64_t seen = 0;
  steps(r, 20);
  run_free(r); /* finishes as "stopped" */
  ok(replay_journal(path, UINT64_MAX, count, &seen, &out, &e) != 0 && seen == 7 && out.n_steps == 7,
     "a replay can be stopped");
  ok(replayed(path, "a run that was just freed").same_hash, "has its end");
  mem_free(path);
}

int main(void)
{
  test_five_changes();
  test_threads();
  test_lines();
  test_damage();
  test_full_disk();
  test_diverged();
  test_rewind_load_fork();
  test_evaluations_move_nothing();
  test_progress();
  return tap_done();
}
