/* bitdial bench step: one training step (forward, backward, SGD) of the 784-512-256-10 net on random inputs, by recipe,
 * with the gradient's variance measured and without, against the same step in fp32. */
#include "config.h"

#include <stdio.h>

#include "base/mem.h"
#include "base/rng.h"
#include "cmd_bench.h"
#include "probe/variance.h"
#include "tensor/gemm.h"
#include "train/optimizer.h"
#include "train/recipe.h"

enum { N_LAYERS = 3, MAX_ROWS = 512 };
static const size_t width[N_LAYERS + 1] = {784, 512, 256, 10};

/* Four steps on nets of their own, and the bare products of one. */
struct arm {
  const char *recipe;
  bool probe;
  struct graph *graph;
  struct optimizer optimizer;
  struct site_specs sites;
  struct batch *batch;
  uint64_t step;
};

struct batch {
  size_t rows;
  float *x, *scratch; /* scratch: operands and results of the bare products */
  int32_t labels[MAX_ROWS];
  struct pool *pool;
};

static void one_step(void *ctx)
{
  struct arm *a = ctx;
  const struct batch *b = a->batch;
  struct pass p = {.sites = &a->sites,
                   .seed = 1,
                   .step = ++a->step,
                   .stream = RNG_SITE,
                   .global_batch = b->rows,
                   .want_sums = a->probe,
                   .pool = b->pool};
  graph_forward(a->graph, &p, b->x, b->labels, b->rows);
  graph_backward(a->graph, &p);
  graph_gradient_norm2(a->graph, b->pool); /* every step reports it */
  if (a->probe)
    variance_of_graph(a->graph, b->rows);
  struct optimizer_args args = {.lr = 0.01f, .t = a->step};
  struct optimizer_rng rng = {1, a->step};
  optimizer_step(&a->optimizer, a->graph, &args, &a->sites, &rng, b->pool);
  graph_weights_changed(a->graph);
  graph_commit(a->graph);
}

/* The fp32 products of a step and nothing else. The first layer needs no gradient of its input. */
static void products(void *ctx)
{
  const struct batch *b = ctx;
  size_t part = MAX_ROWS * width[0];
  float *w = b->scratch, *in = w + width[0] * width[1], *out = in + part;
  for (int l = 0; l < N_LAYERS; l++) {
    gemm(b->pool, GEMM_NT, b->rows, width[l + 1], width[l], 1, in, w, 0, out);
    gemm(b->pool, GEMM_TN, width[l + 1], width[l], b->rows, 1, in, out, 0, out + part);
    if (l > 0)
      gemm(b->pool, GEMM_NN, b->rows, width[l], width[l + 1], 1, in, w, 0, out);
  }
}

static void describe(struct model_desc *d)
{
  *d = (struct model_desc){.name = "mlp", .loss = "cross_entropy", .n_inputs = width[0], .n_outputs = width[N_LAYERS]};
  for (int l = 0; l < N_LAYERS; l++) {
    char name[DESC_NAME];
    snprintf(name, sizeof name, "fc%d", l + 1);
    struct layer_desc *layer = desc_add_layer(d, "linear", name);
    layer->input = d->n_layers - 2;
    desc_set_option(layer, "in", (double)width[l]);
    desc_set_option(layer, "out", (double)width[l + 1]);
    if (l + 1 < N_LAYERS) {
      snprintf(name, sizeof name, "relu%d", l + 1);
      layer = desc_add_layer(d, "relu", name);
      layer->input = d->n_layers - 2;
    }
  }
}

static int arm_init(struct arm *a, const struct model_desc *d, struct err *e)
{
  if (recipe_apply(a->recipe, &a->sites, e) != 0 || !(a->graph = graph_create(d, 1, MAX_ROWS, e)))
    return -1;
  return optimizer_init(&a->optimizer, "sgd", a->graph, e);
}

static int batch_init(struct batch *b, struct err *e)
{
  struct rng r;
  rng_init(&r, rng_derive(3, RNG_USER, 0, 0, 0), 0);
  size_t n = MAX_ROWS * width[0], n_scratch = width[0] * width[1] + 3 * n;
  b->x = mem_buffer(n * sizeof *b->x, "bench input", e);
  if (!b->x)
    return -1;
  b->scratch = mem_buffer(n_scratch * sizeof *b->scratch, "bench products", e);
  if (!b->scratch)
    return -1;
  for (size_t i = 0; i < n; i++)
    b->x[i] = (float)rng_normal(&r);
  for (size_t i = 0; i < n_scratch; i++)
    b->scratch[i] = b->x[i % n];
  for (size_t i = 0; i < MAX_ROWS; i++)
    b->labels[i] = (int32_t)rng_below(&r, (uint32_t)width[N_LAYERS]);
  return 0;
}

static void measure(struct bench *b, struct arm *arm, int n_arms, struct batch *batch, int threads)
{
  struct bench_work work[BENCH_WORKS];
  struct bench_time t[BENCH_WORKS];
  int runs = b->runs ? b->runs : batch->rows > 128 ? 31 : 61;
  for (int i = 0; i < n_arms; i++)
    work[i] = (struct bench_work){one_step, &arm[i], 1};
  work[n_arms] = (struct bench_work){products, batch, 1};
  bench_measure(work, n_arms + 1, runs, t);
  for (int i = 0; i < n_arms; i++) {
    struct bench_row r = {
        .runs = runs, .time = t[i], .rate_name = "samples_per_s", .rate = (double)batch->rows / t[i].median_s};
    bench_text(&r, "model", "mlp");
    bench_text(&r, "recipe", arm[i].recipe);
    bench_text(&r, "probe", arm[i].probe ? "on" : "off");
    bench_number(&r, "batch", (double)batch->rows);
    bench_number(&r, "threads", threads);
    bench_ratio(&r, "ratio_to_fp32", t[i].ratio);
    bench_ratio(&r, "share_products", t[i].ratio / t[n_arms].ratio);
    bench_print(b, &r);
  }
}

int bench_step(struct bench *b, struct err *e)
{
  struct arm arm[] = {
      {.recipe = "fp32"}, {.recipe = "fp32", .probe = true}, {.recipe = "paper"}, {.recipe = "paper", .probe = true}};
  enum { N_ARMS = sizeof arm / sizeof *arm };
  _Static_assert((int)N_ARMS < (int)BENCH_WORKS, "arms are measured together");
  static const size_t rows[] = {128, 512};
  struct batch *batch = mem_alloc(sizeof *batch);
  struct model_desc d;
  int status = -1;
  describe(&d);
  if (batch_init(batch, e) != 0)
    goto out;
  for (int i = 0; i < N_ARMS; i++) {
    arm[i].batch = batch;
    if (arm_init(&arm[i], &d, e) != 0)
      goto out;
  }
  for (int threads = 1; threads <= cpu_count(); threads *= 2) {
    if (!(batch->pool = pool_create(threads, e)))
      goto out;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
      batch->rows = rows[i];
      measure(b, arm, N_ARMS, batch, threads);
    }
    pool_free(batch->pool);
    batch->pool = NULL;
  }
  status = 0;
out:
  for (int i = 0; i < N_ARMS; i++) {
    optimizer_done(&arm[i].optimizer);
    if (arm[i].graph)
      graph_free(arm[i].graph);
  }
  mem_buffer_free(batch->x);
  mem_buffer_free(batch->scratch);
  mem_free(batch);
  desc_done(&d);
  return status;
}
