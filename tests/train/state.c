/* State files, rewinding and forking: going on from anywhere gives the bits that going straight on would have given. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "io/safetensors.h"
#include "make.h"
#include "tests/tap/tap.h"
#include "train/run.h"

static struct err e;

static void save(struct run *r, const char *path)
{
  if (run_save(r, path, &e))
    tap_bail("%s", e.msg);
}

/* The hardest state there is: AdamW, scales with a history, weights and moments below fp32, residuals, mid-epoch. */
#define HARD                                                                                                           \
  "optimizer", "adamw", "lr", "0.003", "site.gact.scale", "delayed", "site.act.format", "e4m3", "site.act.scale",      \
      "delayed", "site.update.format", "bf16", "site.update.rounding", "sr", "site.state.format", "bf16",              \
      "site.state.rounding", "sr", "site.update.error_feedback", "true", "site.gweight.error_feedback", "true"

static void test_resume(void)
{
  char *path = temp_path("resume.safetensors");
  struct run *r = make_run(NULL, HARD, NULL);
  steps(r, 37);
  set(r, "batch", "48");
  set(r, "bits", "5");
  set(r, "lr_scaling", "sqrt");
  steps(r, 13);
  save(r, path);
  char at_save[33], at_end[33];
  strcpy(at_save, hash_of(r));
  steps(r, 250);
  strcpy(at_end, hash_of(r));

  struct run *other = make_run(NULL, NULL); /* another optimizer, other specs: the file brings its own */
  steps(other, 5);
  set(other, "batch", "3");
  ok(run_load(other, path, &e) == 0, "a file loads into another run of the same model");
  is_str(hash_of(other), at_save, "with its weights");
  is_int(run_n_steps(other), 50, "its step");
  is_int(run_n_examples(other), 37 * 64 + 13 * 48, "its place in the epoch");
  is_int(knob_int(run_knobs(other), KNOB_BITS), 5, "its knobs");
  struct knob_value v;
  ok(run_get(other, "batch", &v, &e) == 0 && v.i == 48, "and what was queued is dropped");
  steps(other, 250);
  is_str(hash_of(other), at_end, "and goes on to the very same weights");
  run_free(other);
  run_free(r);
  mem_free(path);
}

static void refused(struct run *r, const char *path, const char *part, const char *what)
{
  char before[33];
  strcpy(before, hash_of(r));
  uint64_t step = run_n_steps(r);
  ok(run_load(r, path, &e) != 0 && strstr(e.msg, part), "%s is refused: %s", what, e.msg);
  ok(strcmp(hash_of(r), before) == 0 && run_n_steps(r) == step, "and the run is as it was");
}

static void test_refusals(void)
{
  char *path = temp_path("refuse.safetensors"), *cut = temp_path("cut.safetensors");
  struct run *seed8 = make_run(NULL, "seed", "8", NULL), *r = make_run(NULL, NULL);
  struct run *twin = make_run(NULL, NULL);
  steps(r, 3);
  steps(twin, 3);
  steps(seed8, 3);
  save(seed8, path);
  refused(r, path, "seed = 8", "another seed");
  refused(r, "/nowhere/w.safetensors", "/nowhere/w.safetensors", "a missing file");
  refused(r, "/dev/zero", "not a regular file", "a file without an end");
  refused(r, "/", "not a regular file", "a directory");
  char *fifo = temp_path("fifo");
  if (mkfifo(fifo, 0600) == 0)
    refused(r, fifo, "not a regular file", "a FIFO without a writer");
  unlink(fifo);
  mem_free(fifo);

  FILE *in = fopen(path, "rb"), *out = fopen(cut, "wb");
  for (int i = 0, c; i < 3000 && (c = getc(in)) != EOF; i++)
    putc(c, out);
  fclose(in);
  fclose(out);
  refused(r, cut, "cut.safetensors", "a truncated file");

  const float w[4] = {1, 2, 3, 4};
  struct st_tensor t[1] = {{.name = "fc1.weight", .dtype = "F32", .rank = 2, .shape = {2, 2}, .data = w}};
  if (safetensors_save(path, t, 1, NULL, 0, &e))
    tap_bail("%s", e.msg);
  refused(r, path, "is 2x2; this model's is 24x2", "another shape");
  t[0].name = "encoder.weight";
  if (safetensors_save(path, t, 1, NULL, 0, &e))
    tap_bail("%s", e.msg);
  refused(r, path, "no tensor \"fc1.weight\"", "another model");

  save(r, path);
  for (int n = 1; n < 30; n++) {
    mem_fail_nth((uint64_t)n);
    int status = run_load(r, path, &e);
    mem_fail_nth(0);
    if (status == 0)
      break;
  }
  steps(r, 30);
  steps(twin, 30);
  is_str(hash_of(r), hash_of(twin), "after all that the run is the one it was");
  run_free(twin);
  run_free(r);
  run_free(seed8);
  mem_free(path);
  mem_free(cut);
}

/* A file of weights alone, as other programs write them. */
static void test_weights_alone(void)
{
  char *path = temp_path("weights.safetensors");
  struct run *from = make_run(NULL, "seed", "9", NULL), *r = make_run(NULL, "snapshot_every", "5", NULL);
  struct st_tensor t[8];
  struct graph *g = run_graph(from);
  steps(from, 10);
  for (size_t i = 0; i < graph_n_params(g); i++) {
    const struct param *p = graph_param(g, i);
    t[i] = (struct st_tensor){.name = p->name, .dtype = "F32", .rank = p->rank, .data = p->w};
    memcpy(t[i].shape, p->shape, sizeof t[i].shape);
  }
  if (safetensors_save(path, t, graph_n_params(g), NULL, 0, &e))
    tap_bail("%s", e.msg);
  steps(r, 7);
  ok(run_load(r, path, &e) == 0, "weights alone load, from another seed too");
  is_str(hash_of(r), hash_of(from), "they are those of the file");
  is_int(run_n_steps(r), 7, "the run goes on counting");
  ok(run_rewind(r, 6, &e) != 0, "what was before cannot be gone back to: %s", e.msg);
  steps(r, 3);
  ok(run_rewind(r, 8, &e) == 0, "what is after can");
  run_free(from);
  run_free(r);
  mem_free(path);
}

/* The curve of 60 steps from here. */
static void curve(struct run *r, double *loss)
{
  for (int i = 0; i < 60; i++) {
    steps(r, 1);
    loss[i] = run_metric(r, METRIC_LOSS);
  }
}

static void test_rewind(void)
{
  struct run *r = make_run(NULL, "snapshot_every", "20", HARD, NULL);
  double first[60], again[60];
  steps(r, 10);
  set(r, "bits", "5");
  steps(r, 23);
  set(r, "batch", "80");
  set(r, "optimizer", "sgd");
  steps(r, 2);
  char at_35[33];
  strcpy(at_35, hash_of(r));
  double loss_35 = run_metric(r, METRIC_LOSS);
  curve(r, first);
  set(r, "batch", "7");
  ok(run_rewind(r, 35, &e) == 0, "goes back between two snapshots, over changes");
  is_str(hash_of(r), at_35, "to the same weights");
  is_close(run_metric(r, METRIC_LOSS), loss_35, 0, "and the loss of then");
  is_int(knob_int(run_knobs(r), KNOB_BATCH), 80, "knobs of then");
  curve(r, again);
  ok(memcmp(first, again, sizeof first) == 0, "and goes on along the same curve");
  ok(run_rewind(r, 33, &e) == 0 && knob_int(run_knobs(r), KNOB_BATCH) == 64,
     "to before a change: it is not in effect, and not queued");
  set(r, "batch", "16");
  curve(r, again);
  ok(memcmp(first, again, sizeof first) != 0, "another way from there is another curve");
  is_int(run_n_examples(r), 33 * 64 + 60 * 16, "with other changes");
  ok(run_rewind(r, 0, &e) == 0 && run_n_steps(r) == 0, "back to the start");
  struct run *fresh = make_run(NULL, "snapshot_every", "20", HARD, NULL);
  is_str(hash_of(r), hash_of(fresh), "which is the start");
  steps(r, 9);
  steps(fresh, 9);
  is_str(hash_of(r), hash_of(fresh), "in all that matters");
  ok(run_rewind(r, 10, &e) != 0 && strstr(e.msg, "only 9"), "not forward: %s", e.msg);
  run_free(fresh);
  run_free(r);
}

/* Many snapshots in little memory. */
static bool stop_at(void *ctx, uint64_t step)
{
  return step == *(uint64_t *)ctx;
}

/* A rewind that is stopped on its way, or cannot begin, leaves all as it was: the state and what is queued. */
static void test_rewind_stopped(void)
{
  struct run *r = make_run(NULL, "snapshot_every", "20", HARD, NULL), *same = make_run(NULL, HARD, NULL);
  uint64_t at = 33, never = 0;
  steps(r, 45);
  steps(same, 45);
  set(r, "bits", "4");
  set(same, "bits", "4");
  ok(run_rewind_unless(r, 35, stop_at, &at, &e) != 0 && strstr(e.msg, "interrupted"), "a stop on the way: %s", e.msg);
  is_int(run_n_steps(r), 45, "the run is where it was");
  is_str(hash_of(r), hash_of(same), "with the weights of there");
  is_int(knob_int(run_next_knobs(r), KNOB_BITS), 4, "the change that waits still waits");
  ok(run_rewind(r, 46, &e) != 0, "a step that is not done yet: %s", e.msg);
  steps(r, 10);
  steps(same, 10);
  is_str(hash_of(r), hash_of(same), "and it goes on as if nothing had been");
  ok(run_rewind_unless(r, 35, stop_at, &never, &e) == 0 && run_n_steps(r) == 35, "not stopped, it arrives");
  is_int(knob_int(run_next_knobs(r), KNOB_BITS), 8, "with the knobs of there");
  run_free(r);
  run_free(same);
}

static void test_budget(void)
{
  struct run *r = make_run(NULL, "snapshot_every", "1", "snapshot_mb", "1", "eval_every", "0", NULL);
  steps(r, 700);
  size_t bytes = run_memory(r).snapshots;
  ok(bytes <= 1 << 20 && bytes > 1 << 19, "automatic snapshots stay within their memory: %zu bytes", bytes);
  char at_end[33];
  strcpy(at_end, hash_of(r));
  ok(run_rewind(r, 695, &e) == 0, "the near past is there");
  steps(r, 5);
  is_str(hash_of(r), at_end, "and right");
  ok(run_rewind(r, 0, &e) == 0, "so is the start");
  set(r, "snapshot_mb", "0");
  steps(r, 1);
  is_int(run_memory(r).snapshots, 0, "no memory: no snapshots");
  ok(run_rewind(r, 0, &e) != 0 && strstr(e.msg, "snapshot_mb"), "and no way back: %s", e.msg);
  run_free(r);
}

static void test_fork(void)
{
  char *journal = temp_path("fork.jsonl");
  struct run *r = make_run(NULL, HARD, NULL);
  steps(r, 30);
  set(r, "bits", "6"); /* queued, and so part of what goes on */
  struct run *f = run_fork(r, &(struct run_config){.name = "b", .journal_path = journal}, &e);
  if (!f)
    tap_bail("%s", e.msg);
  is_str(run_name(f), "b", "a fork has its own name");
  is_int(run_n_steps(f), 30, "and begins where the run stands");
  double first[60], second[60];
  curve(r, first);
  curve(f, second);
  ok(memcmp(first, second, sizeof first) == 0, "left alone it does the same");
  is_str(hash_of(r), hash_of(f), "to the last bit");
  set(f, "rounding", "rne");
  steps(f, 10);
  steps(r, 10);
  ok(strcmp(hash_of(r), hash_of(f)) != 0, "turned it does not");
  ok(run_rewind(f, 30, &e) == 0, "it can go back to its own start");
  ok(run_rewind(f, 29, &e) != 0, "and no further: %s", e.msg);
  run_free(f);
  f = run_fork(r, &(struct run_config){.name = "c", .journal_path = "/nowhere/j"}, &e);
  ok(!f && strstr(e.msg, "/nowhere/j"), "a journal that cannot be made: %s", e.msg);
  run_free(r);
  mem_free(journal);
}

int main(void)
{
  uint64_t live = mem_counts().live_bytes;
  test_resume();
  test_refusals();
  test_weights_alone();
  test_rewind();
  test_rewind_stopped();
  test_budget();
  test_fork();
  is_int(mem_counts().live_bytes, live, "all memory is given back");
  return tap_done();
}
