/* A run: it learns; what must not change its arithmetic does not; changes of knobs take effect whole or not at all; a
 * step that goes wrong leaves everything as it was. */
#include "config.h"

#include "train/run.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "make.h"
#include "tests/tap/tap.h"

static struct err e;

static void test_learns(void)
{
  struct run *r = make_run(NULL, "lr", "0.1", "recipe", "paper", NULL);
  double loss, accuracy;
  is_int(run_n_steps(r), 0, "begins at step 0");
  ok(isnan(run_metric(r, METRIC_LOSS)), "without a loss");
  steps(r, 600);
  ok(run_evaluate(r, &loss, &accuracy, &e) == 0, "evaluates");
  ok(accuracy > 0.9, "learns the spirals at 8 bits: accuracy %.3f", accuracy);
  is_int(run_n_examples(r), 600 * 64, "examples are counted");
  ok(run_metric(r, METRIC_SAMPLES_PER_S) > 0 && run_seconds(r) > 0, "and time");
  ok(run_metric(r, METRIC_GRAD_VARIANCE) > 0 && run_metric(r, METRIC_VAR_QUANT) > 0 &&
         fabs(run_metric(r, METRIC_GRAD_VARIANCE) - run_metric(r, METRIC_VAR_DATA) - run_metric(r, METRIC_VAR_QUANT)) <
             1e-12,
     "the variance is there, with its parts");
  run_free(r);
}

/* Bits after n steps with these knobs. */
#define HASH_AFTER(n, ...) hash_after(make_run(NULL, __VA_ARGS__, NULL), n)
static const char *hash_after(struct run *r, int n)
{
  steps(r, n);
  const char *h = hash_of(r);
  run_free(r);
  return h;
}

static void test_side_effects(void)
{
  is_str(HASH_AFTER(1000, "probe_every", "1"), HASH_AFTER(1000, "probe_every", "0"),
         "the same weights after 1000 steps with the probe on and off");
  is_str(HASH_AFTER(300, "eval_every", "1"), HASH_AFTER(300, "eval_every", "0"), "evaluation leaves no trace");
  is_str(HASH_AFTER(60, "eval_every", "1", "site.gact.scale", "delayed", "site.act.format", "e4m3", "site.act.scale",
                    "delayed"),
         HASH_AFTER(60, "eval_every", "0", "site.gact.scale", "delayed", "site.act.format", "e4m3", "site.act.scale",
                    "delayed"),
         "nor where scales have a history");
  is_str(HASH_AFTER(300, "snapshot_every", "7"), HASH_AFTER(300, "snapshot_every", "0"), "snapshots leave no trace");
  ok(strcmp(HASH_AFTER(50, "seed", "8"), HASH_AFTER(50, "seed", "9")) != 0, "another seed gives other weights");
  ok(strcmp(HASH_AFTER(50, "rounding", "rne"), HASH_AFTER(50, "rounding", "sr")) != 0, "so does another rounding");
  ok(strcmp(HASH_AFTER(50, "site.update.format", "bf16"), HASH_AFTER(50, "recipe", "paper")) != 0,
     "so does the site update");
}

struct seen {
  int n_set, n_diverged, n_losses;
  uint64_t set_step;
  char set_text[256], mark[64], diverged[256];
};
static void on_event(void *ctx, const struct run *r, enum event_kind kind, uint64_t step, uint64_t examples,
                     const char *text, const char *mark)
{
  struct seen *s = ctx;
  (void)r, (void)examples;
  if (kind == EVENT_SET) {
    s->n_set++;
    s->set_step = step;
    snprintf(s->set_text, sizeof s->set_text, "%s", text);
    snprintf(s->mark, sizeof s->mark, "%s", mark);
  }
  if (kind == EVENT_DIVERGED) {
    s->n_diverged++;
    snprintf(s->diverged, sizeof s->diverged, "%s", text);
  }
}
static void on_metric(void *ctx, const struct run *r, enum metric m, uint64_t step, uint64_t examples, double value)
{
  (void)r, (void)step, (void)examples, (void)value;
  ((struct seen *)ctx)->n_losses += m == METRIC_LOSS;
}

static void test_changes(void)
{
  struct run *r = make_run(NULL, "lr", "0.1", NULL);
  struct seen seen = {0};
  struct knob_value v;
  run_set_sink(r, &(struct run_sink){&seen, on_metric, on_event});
  steps(r, 3);
  set(r, "bits", "4");
  ok(run_get(r, "bits", &v, &e) == 0 && v.i == 4, "reading gives the value set last");
  is_int(knob_int(run_knobs(r), KNOB_BITS), 8, "which is not in effect yet");
  is_int(seen.n_set, 0, "nor told");
  steps(r, 1);
  is_int(knob_int(run_knobs(r), KNOB_BITS), 4, "it is at the next step");
  is_str(seen.set_text, "bits 8 -> 4", "and told");
  is_str(seen.mark, "bits 4", "with a short mark");
  is_int(seen.set_step, 4, "and the first step that has it");
  is_int(seen.n_losses, 4, "each step tells its loss once");
  set(r, "bits", "4");
  steps(r, 1);
  is_int(seen.n_set, 1, "the same value again is no change");
  set(r, "site.gweight.format", "e4m1");
  steps(r, 1);
  is_str(seen.set_text, "site.gweight.format e2m1 -> e4m1", "a site's change");
  is_str(seen.mark, "gweight e4m1", "and its mark");
  ok(run_set(r, "batch", "0", &e) != 0 && run_get(r, "batch", &v, &e) == 0 && v.i == 64, "a bad value changes nothing");
  ok(run_set(r, "seed", "3", &e) != 0 && strstr(e.msg, "fixed"), "a knob of the start is fixed: %s", e.msg);
  ok(run_set(r, "bitz", "3", &e) != 0 && strstr(e.msg, "bits"), "an unknown knob names the near miss");
  set(r, "batch", "200");
  steps(r, 1);
  is_int(run_n_examples(r), 6 * 64 + 200, "a batch change goes on from where it was");
  run_free(r);
}

/* Taking back what was queued last, and the bound of what may wait. */
static void test_queue(void)
{
  struct run *r = make_run(NULL, NULL);
  set(r, "bits", "4");
  size_t n = run_n_queued(r);
  is_int(n, 1, "one change waits");
  set(r, "batch", "32");
  set(r, "bits", "6");
  run_unqueue(r, n);
  is_int(knob_int(run_next_knobs(r), KNOB_BITS), 4, "those behind it are taken back");
  is_int(knob_int(run_next_knobs(r), KNOB_BATCH), 64, "all of them");
  steps(r, 1);
  is_int(knob_int(run_knobs(r), KNOB_BITS), 4, "the first takes effect");
  is_int(knob_int(run_knobs(r), KNOB_BATCH), 64, "the others do not");
  int done = 0;
  while (done < 1000000 && run_set(r, "lr", done % 2 ? "0.1" : "0.2", &e) == 0)
    done++;
  ok(done < 1000000 && strstr(e.msg, "one too many"), "bounded: %s", e.msg);
  steps(r, 1);
  ok(run_set(r, "lr", "0.1", &e) == 0, "a step makes room");
  run_free(r);
}

static void test_lr(void)
{
  struct run *r = make_run(NULL, "lr", "0.1", "lr_scaling", "sqrt", NULL);
  steps(r, 1);
  is_close(run_metric(r, METRIC_LR), 0.1, 1e-15, "lr as set");
  set(r, "batch", "256");
  steps(r, 1);
  is_close(run_metric(r, METRIC_LR), 0.2, 1e-15, "four times the batch: twice the lr");
  set(r, "lr", "0.1");
  steps(r, 1);
  is_close(run_metric(r, METRIC_LR), 0.1, 1e-15, "setting lr means that lr at this batch");
  set(r, "batch", "64");
  steps(r, 1);
  is_close(run_metric(r, METRIC_LR), 0.05, 1e-15, "a quarter of the batch: half the lr");
  run_free(r);

  r = make_run(NULL, "lr", "0.1", "schedule", "linear", "steps", "10", NULL);
  is_int(run_target_steps(r), 10, "steps is the target");
  steps(r, 5);
  is_close(run_metric(r, METRIC_LR), 0.06, 1e-15, "linear over 10 steps: the fifth");
  steps(r, 5);
  is_close(run_metric(r, METRIC_LR), 0.01, 1e-15, "the tenth");
  run_free(r);

  r = make_run(NULL, "lr", "0.1", "schedule", "cosine", NULL);
  steps(r, 5);
  is_close(run_metric(r, METRIC_LR), 0.1, 0, "a schedule without a length stays constant");
  is_int(run_target_steps(r), 0, "and has no target");
  set(r, "epochs", "2");
  size_t n = dataset_size(run_dataset(r), SPLIT_TRAIN);
  is_int(run_target_steps(r), (2 * n + 63) / 64, "epochs give one");
  set(r, "batch", "128");
  is_int(run_target_steps(r), 5 + (2 * n - 5 * 64 + 127) / 128, "which a batch that is queued changes");
  run_free(r);
}

static void test_no_memory(void)
{
  struct run *r = make_run(NULL, NULL), *same = make_run(NULL, NULL);
  steps(r, 2);
  steps(same, 2);
  for (int n = 1; n <= 3; n++) { /* each of the buffers that a larger batch needs */
    set(r, "lr", "0.5");
    set(r, "batch", "2000");
    mem_fail_nth((uint64_t)n);
    is_int(run_step(r, &e), STEP_FAILED, "no memory for buffer %d of a batch: the step fails", n);
    mem_fail_nth(0);
    if (n == 1)
      ok(strstr(e.msg, "batch = 2000") != NULL, "and says why: %s", e.msg);
    is_int(knob_int(run_knobs(r), KNOB_BATCH), 64, "the batch is the old one");
    is_close(knob_real(run_knobs(r), KNOB_LR), 0.05, 0, "and lr, set beside it, too");
  }
  struct knob_value v;
  ok(run_get(r, "batch", &v, &e) == 0 && v.i == 64, "nothing is queued any more");
  set(r, "optimizer", "adamw");
  mem_fail_nth(1);
  is_int(run_step(r, &e), STEP_FAILED, "no memory for moments: the step fails");
  mem_fail_nth(0);
  steps(r, 50);
  steps(same, 50);
  is_str(hash_of(r), hash_of(same), "and the run goes on as if nothing had been");
  run_free(r);
  run_free(same);
}

static void test_divergence(void)
{
  struct run *r = make_run(NULL, "lr", "0.1", NULL);
  struct seen seen = {0};
  run_set_sink(r, &(struct run_sink){&seen, on_metric, on_event});
  steps(r, 20);
  set(r, "lr", "1e6");
  char before[33] = "";
  enum step_result result = STEP_OK;
  uint64_t examples = 0;
  for (int i = 0; i < 100 && result == STEP_OK; i++) {
    strcpy(before, hash_of(r));
    examples = run_n_examples(r);
    result = run_step(r, &e);
  }
  is_int(result, STEP_DIVERGED, "lr = 1e6 diverges");
  tap_note("%s", e.msg);
  is_str(hash_of(r), before, "weights are those before the step");
  is_int(run_n_examples(r), examples, "so are the counters");
  is_int(seen.n_diverged, 1, "it is told");
  ok(strstr(seen.diverged, "layer fc") && strstr(seen.diverged, "site "), "with layer and site: %s", seen.diverged);
  is_int(run_step(r, &e), STEP_DIVERGED, "again the same");
  is_str(hash_of(r), before, "again unchanged");
  run_free(r);
}

/* A weight that is NaN: the fault is found where it is. */
static void test_fault(void)
{
  struct run *r = make_run(NULL, NULL);
  struct graph *g = run_graph(r);
  steps(r, 2);
  for (size_t i = 0; i < graph_n_params(g); i++)
    if (strcmp(graph_param(g, i)->name, "fc2.weight") == 0)
      graph_param(g, i)->w[5] = NAN;
  graph_weights_changed(g);
  is_int(run_step(r, &e), STEP_DIVERGED, "a NaN among the weights");
  ok(strstr(e.msg, "fc2") && strstr(e.msg, "weight"), "is found in its layer and site: %s", e.msg);
  run_free(r);
}

static void test_allocations(void)
{
  struct run *r = make_run(NULL, "eval_every", "0", "snapshot_every", "0", NULL);
  steps(r, 2);
  uint64_t before = mem_counts().n_allocs;
  steps(r, 20);
  is_int(mem_counts().n_allocs - before, 0, "a step allocates nothing");
  run_free(r);
}

static void test_create(void)
{
  struct run *r = try_run(&e, NULL, "data", "sprials", NULL);
  ok(!r && strstr(e.msg, "spirals"), "an unknown data set: %s", e.msg);
  r = try_run(&e, "/nowhere/at/all.jsonl", NULL);
  ok(!r && strstr(e.msg, "/nowhere/at/all.jsonl"), "a journal that cannot be made: %s", e.msg);
  r = try_run(&e, NULL, "data", "teacher", NULL);
  ok(!r && strstr(e.msg, "inputs"), "a model that does not fit the data: %s", e.msg);
  uint64_t live = mem_counts().live_bytes;
  for (int n = 1; n < 60; n++) {
    mem_fail_nth((uint64_t)n);
    r = try_run(&e, NULL, "snapshot_every", "0", NULL);
    mem_fail_nth(0);
    if (r)
      break;
    if (mem_counts().live_bytes != live)
      ok(false, "failing allocation %d leaks", n);
  }
  ok(r != NULL, "with each allocation failing in turn a run is not made, and then is");
  run_free(r);
  is_int(mem_counts().live_bytes, live, "and all memory is given back");
  r = make_run(NULL, NULL);
  steps(r, 1);
  ok(run_finish(r, "done", &e) == 0, "a run is finished");
  is_int(run_step(r, &e), STEP_FAILED, "and steps no more: %s", e.msg);
  run_free(r);
}

int main(void)
{
  test_create();
  test_learns();
  test_side_effects();
  test_changes();
  test_queue();
  test_lr();
  test_no_memory();
  test_divergence();
  test_fault();
  test_allocations();
  return tap_done();
}
