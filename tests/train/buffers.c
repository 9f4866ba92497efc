/* Runs of a model with running statistics and dropout on "images": what is no parameter is saved, rewound, replayed and
 * undone with the rest, and optimizers leave it alone. */
#include "config.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "make.h"
#include "model/graph.h"
#include "tensor/gemm.h"
#include "tests/tap/tap.h"
#include "train/replay.h"

static struct err e;

/* The two coordinates of spirals as an image of 2 x 1 x 1. Parameters: conv.weight, bn.weight, bias, running_mean,
 * running_var, ... */
static struct run *make_norm_run(const char *journal_path, const char *recipe, const char *optimizer)
{
  const char *pairs[][2] = {{"data", "spirals"},      {"seed", "7"},           {"threads", "1"},
                            {"batch", "64"},          {"lr", "0.05"},          {"recipe", recipe},
                            {"optimizer", optimizer}, {"snapshot_every", "10"}};
  struct model_desc d = {.name = "norm",
                         .loss = "cross_entropy",
                         .n_inputs = 2,
                         .n_outputs = 2,
                         .input_rank = 3,
                         .input_shape = {2, 1, 1}};
  struct knobs k;
  struct layer_desc *l = desc_add_layer(&d, "conv2d", "conv");
  desc_set_option(l, "out", 24);
  desc_set_option(l, "kernel", 1);
  desc_set_option(l, "bias", 0);
  desc_add_layer(&d, "batch_norm2d", "bn");
  desc_add_layer(&d, "gelu", NULL);
  desc_set_option(desc_add_layer(&d, "dropout", NULL), "p", 0.1);
  desc_set_option(desc_add_layer(&d, "linear", "fc"), "out", 2);
  knobs_defaults(&k);
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
    struct knob_ref ref;
    if (knob_find(pairs[i][0], &ref, &e) || knobs_set(&k, &ref, pairs[i][1], &e))
      tap_bail("%s: %s", pairs[i][0], e.msg);
  }
  struct run *r =
      run_create(&(struct run_config){.model = &d, .knobs = &k, .journal_path = journal_path, .name = "test"}, &e);
  desc_done(&d);
  if (!r)
    tap_bail("%s", e.msg);
  return r;
}

static const float *running(struct run *r)
{
  return graph_param(run_graph(r), 3)->w; /* 24 means, then 24 variances */
}

static void test_saved(void)
{
  struct run *r = make_norm_run(NULL, "paper", "sgd"), *other = make_norm_run(NULL, "paper", "sgd");
  char *path = temp_path("norm.safetensors"), want[33];
  steps(r, 15);
  if (run_save(r, path, &e))
    tap_bail("%s", e.msg);
  steps(r, 10);
  strcpy(want, hash_of(r));
  ok(run_rewind(r, 13, &e) == 0, "a run with running statistics goes back");
  steps(r, 12);
  is_str(hash_of(r), want, "and comes to the same weights again");
  ok(run_load(other, path, &e) == 0, "its file loads");
  steps(other, 10);
  is_str(hash_of(other), want, "and goes on to the same");
  run_free(r);
  run_free(other);
  mem_free(path);
}

static void test_replayed(void)
{
  char *path = temp_path("norm.jsonl");
  struct run *r = make_norm_run(path, "paper", "sgd");
  struct replay_result out;
  steps(r, 20);
  set(r, "bits", "5");
  steps(r, 10);
  if (run_finish(r, "done", &e))
    tap_bail("%s", e.msg);
  run_free(r);
  ok(replay_journal(path, UINT64_MAX, NULL, NULL, &out, &e) == 0 && out.first_mismatch == 0 && out.same_hash,
     "a journal tells the shape of the input: its replay ends in the same weights");
  mem_free(path);
}

/* Weights without an fp32 copy and weight decay are for parameters; statistics keep fp32 and their own pace. */
static void test_left_alone(void)
{
  for (int i = 0; i < 2; i++) {
    struct run *r = make_norm_run(NULL, "bf16-sr", i ? "adamw" : "sgd");
    set(r, "weight_decay", "0.5");
    int n_moved = 0, n_fine = 0, n_coarse = 0;
    steps(r, 5);
    for (int c = 0; c < 24; c++) {
      uint32_t bits;
      memcpy(&bits, &running(r)[24 + c], sizeof bits);
      n_moved += running(r)[c] != 0;
      n_fine += (bits & 0xffff) != 0;
      memcpy(&bits, &graph_param(run_graph(r), 0)->w[c], sizeof bits);
      n_coarse += (bits & 0xffff) == 0;
    }
    ok(n_moved == 24 && n_fine > 12, "%s moves running statistics in fp32 (%d of 24 have more bits than bf16)",
       i ? "adamw" : "sgd", n_fine);
    is_int(n_coarse, 24, "weights are bf16");
    run_free(r);
  }
}

/* A batch with a NaN makes its statistics NaN; they go with the step. */
static void test_undone(void)
{
  struct run *r = make_norm_run(NULL, "fp32", "sgd");
  float before[48];
  steps(r, 10);
  memcpy(before, running(r), sizeof before);
  graph_param(run_graph(r), 0)->w[0] = NAN;
  is_int(run_step(r, &e), STEP_DIVERGED, "a step with a NaN is undone");
  ok(memcmp(before, running(r), sizeof before) == 0, "running statistics are those before it");
  graph_param(run_graph(r), 0)->w[0] = 0.5f;
  graph_weights_changed(run_graph(r));
  steps(r, 1);
  int n_finite = 0;
  for (int c = 0; c < 48; c++)
    n_finite += isfinite(running(r)[c]);
  is_int(n_finite, 48, "and the next step's start from there");
  run_free(r);
}

int main(void)
{
  gemm_init();
  test_saved();
  test_replayed();
  test_left_alone();
  test_undone();
  return tap_done();
}
