/* What layers carry beside weights: running statistics, which only a step that is done may move, and dropout's masks,
 * which are a function of seed, step and place. */
#include "config.h"

#include <math.h>

#include "helper.h"
#include "model/layer.h"
#include "tensor/gemm.h"

enum { N = 8, B = 32 };

/* N values - batch norm - linear. Parameters: bn.weight bias running_mean running_var, then the linear layer's. */
static struct graph *norm_graph(struct model_desc *d)
{
  *d = (struct model_desc){.name = "m", .loss = "cross_entropy", .n_inputs = N, .n_outputs = N};
  desc_add_layer(d, "batch_norm1d", NULL);
  desc_set_option(desc_add_layer(d, "linear", NULL), "out", N);
  return helper_graph(d, B);
}

static bool at_start(struct graph *g)
{
  bool same = true;
  for (size_t c = 0; c < N; c++)
    same = same && graph_param(g, 2)->w[c] == 0 && graph_param(g, 3)->w[c] == 1;
  return same;
}

/* Mean and unbiased variance of feature c over samples [from, to). */
static void moments(const float *x, size_t from, size_t to, size_t c, double *mean, double *var)
{
  double n = (double)(to - from);
  *mean = *var = 0;
  for (size_t i = from; i < to; i++)
    *mean += x[i * N + c] / n;
  for (size_t i = from; i < to; i++)
    *var += pow(x[i * N + c] - *mean, 2) / (n - 1);
}

static void check_running(void)
{
  struct model_desc d;
  struct graph *g = norm_graph(&d);
  struct site_specs s = helper_fp32();
  struct pass p = helper_pass(&s, B), other = p;
  float *x = helper_normal(2 * B * N, 1);
  int32_t *t = helper_labels(B, N);
  for (size_t i = 0; i < 2 * B * N; i++)
    x[i] = 3 * x[i] + 5;
  ok(!graph_param(g, 2)->trained && !graph_param(g, 3)->trained && graph_param(g, 0)->trained,
     "running statistics are no parameters to train");
  ok(!graph_param(g, 0)->decays && !graph_param(g, 2)->decays, "and nothing of a norm decays");
  graph_forward(g, &p, x, t, B);
  graph_backward(g, &p);
  ok(at_start(g), "a pass leaves running statistics alone");
  other.evaluate = true;
  double before = graph_forward(g, &other, x, t, B).loss;
  graph_forward(g, &p, x + B * N, t, B); /* of a step that is given up */
  other.evaluate = false;
  other.stream = RNG_PROBE;
  graph_forward(g, &p, x, t, B);
  graph_forward(g, &other, x + B * N, t, B);
  graph_commit(g);
  int wrong = 0;
  for (size_t c = 0; c < N; c++) {
    double mean, var;
    moments(x, 0, B, c, &mean, &var);
    wrong += fabs(graph_param(g, 2)->w[c] - 0.1 * mean) > 1e-6;
    wrong += fabs(graph_param(g, 3)->w[c] - (0.9 + 0.1 * var)) > 1e-5;
  }
  is_int(wrong, 0, "the step's end moves them a tenth of the way to that step's, whatever was tried before or probed");
  other.evaluate = true;
  other.stream = RNG_SITE;
  ok(graph_forward(g, &other, x, t, B).loss != before, "evaluation uses them");
  float kept = graph_param(g, 2)->w[0];
  graph_commit(g);
  ok(graph_param(g, 2)->w[0] == kept, "committing twice moves nothing twice");
  double gradient = 0;
  for (size_t c = 0; c < 2 * N; c++)
    gradient += fabs(graph_param(g, 2)->g[c]);
  ok(gradient == 0, "they have no gradient");
  mem_free(x);
  mem_free(t);
  graph_free(g);
  desc_done(&d);
}

static void check_micro_batches(void)
{
  struct model_desc d;
  struct graph *g = norm_graph(&d);
  struct site_specs s = helper_fp32();
  struct pass p = helper_pass(&s, 2 * B);
  float *x = helper_normal(2 * B * N, 2);
  int32_t *t = helper_labels(B, N);
  for (int part = 0; part < 2; part++) {
    p.accumulate = part > 0;
    p.first_slot = (size_t)part * B;
    graph_forward(g, &p, x + part * B * N, t, B);
    graph_backward(g, &p);
  }
  graph_commit(g);
  int wrong = 0;
  for (size_t c = 0; c < N; c++) {
    double mean[2], var[2];
    for (size_t i = 0; i < 2; i++)
      moments(x, i * B, (i + 1) * B, c, &mean[i], &var[i]);
    wrong += fabs(graph_param(g, 2)->w[c] - (0.09 * mean[0] + 0.1 * mean[1])) > 1e-6;
    wrong += fabs(graph_param(g, 3)->w[c] - (0.81 + 0.09 * var[0] + 0.1 * var[1])) > 1e-6;
  }
  is_int(wrong, 0, "two micro-batches of a step count one after the other");
  mem_free(x);
  mem_free(t);
  graph_free(g);
  desc_done(&d);
}

enum { M = 50 };
#define DROP 0.3

/* linear - dropout - linear, both identities: logits are what dropout lets through. */
static struct graph *dropout_graph(struct model_desc *d)
{
  *d = (struct model_desc){.name = "m", .loss = "cross_entropy", .n_inputs = M, .n_outputs = M};
  desc_set_option(desc_add_layer(d, "linear", NULL), "out", M);
  desc_set_option(desc_add_layer(d, "dropout", NULL), "p", DROP);
  desc_set_option(desc_add_layer(d, "linear", NULL), "out", M);
  struct graph *g = helper_graph(d, B);
  memset(graph_weights(g), 0, graph_n_weights(g) * sizeof(float));
  for (size_t i = 0; i < M; i++)
    graph_param(g, 0)->w[i * M + i] = graph_param(g, 2)->w[i * M + i] = 1;
  return g;
}

/* Whether element (slot, j) of layer 1 is dropped: word e mod 4 of block e / 4. */
static bool dropped(const struct pass *p, size_t slot, size_t j)
{
  uint64_t e = slot * M + j;
  uint32_t counter[4] = {(uint32_t)(e / 4), 0, (uint32_t)p->step, 0}, out[4];
  struct rng_key key = rng_derive(p->seed, RNG_DROPOUT, 16, 0, 0);
  philox4x32(counter, key.k, RNG_SITE_ROUNDS, out);
  return out[e % 4] / 4294967296.0 < DROP;
}

static int wrong_values(struct graph *g, const struct pass *p, const float *x, int *n_dropped)
{
  int wrong = 0;
  *n_dropped = 0;
  for (size_t i = 0; i < B; i++)
    for (size_t j = 0; j < M; j++) {
      bool drop = dropped(p, p->first_slot + i, j);
      float want = drop ? 0 : x[i * M + j] * (float)(1 / (1 - DROP));
      wrong += graph_output(g)[i * M + j] != want;
      *n_dropped += drop;
    }
  return wrong;
}

/* d loss / d bias of the first layer: the mask again, over softmax minus one. */
static double worst_gradient(struct graph *g, const struct pass *p, const int32_t *t)
{
  double worst = 0;
  for (size_t j = 0; j < M; j++) {
    double want = 0;
    for (size_t i = 0; i < B; i++) {
      double sum = 0;
      for (size_t k = 0; k < M; k++)
        sum += exp(graph_output(g)[i * M + k]);
      double gradient = exp(graph_output(g)[i * M + j]) / sum - ((size_t)t[i] == j);
      want += dropped(p, p->first_slot + i, j) ? 0 : gradient / (1 - DROP) / B;
    }
    worst = fmax(worst, fabs(want - graph_param(g, 1)->g[j]));
  }
  return worst;
}

static void check_dropout(void)
{
  struct model_desc d;
  struct graph *g = dropout_graph(&d);
  struct site_specs s = helper_fp32();
  struct pass p = helper_pass(&s, B);
  float *x = helper_normal(B * M, 3);
  int32_t *t = helper_labels(B, M);
  int n_dropped, n_wrong = 0;
  struct err e;
  for (int threads = 1; threads <= 3; threads += 2) {
    p.pool = pool_create(threads, &e);
    if (!p.pool)
      tap_bail("%s", e.msg);
    for (p.step = 3; p.step < 5; p.step++)
      for (p.first_slot = 0; p.first_slot < 100; p.first_slot += 33) {
        graph_forward(g, &p, x, t, B);
        n_wrong += wrong_values(g, &p, x, &n_dropped);
      }
    pool_free(p.pool);
    p.pool = NULL;
  }
  is_int(n_wrong, 0, "every value is dropped or scaled as its counter says, at each step, slot and number of threads");
  double sigma = sqrt(B * M * DROP * (1 - DROP)); /* false alarm of 5 sigma: 6e-7 */
  ok(fabs(n_dropped - B * M * DROP) < 5 * sigma, "%d of %d are dropped, %.0f +- %.0f", n_dropped, B * M, B * M * DROP,
     sigma);
  graph_backward(g, &p);
  double worst = worst_gradient(g, &p, t);
  ok(worst < 1e-6, "the backward pass sees the same mask: within %.2g", worst);
  struct pass probe = p;
  probe.stream = RNG_PROBE;
  probe.draw = 7;
  double loss = graph_forward(g, &p, x, t, B).loss;
  ok(graph_forward(g, &probe, x, t, B).loss == loss, "so do the draws of a probe");
  p.step++;
  ok(graph_forward(g, &p, x, t, B).loss != loss, "another step has another");
  p.evaluate = true;
  graph_forward(g, &p, x, t, B);
  ok(memcmp(graph_output(g), x, B * M * sizeof *x) == 0, "evaluation drops nothing");
  mem_free(x);
  mem_free(t);
  graph_free(g);
  desc_done(&d);
}

int main(void)
{
  gemm_init();
  check_running();
  check_micro_batches();
  check_dropout();
  return tap_done();
}
