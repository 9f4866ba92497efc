/* The graph in fp32: values from an independent program, finite differences of a double reference, memory, messages. */
#include "config.h"

#include "model/graph.h"

#include <math.h>

#include "helper.h"
#include "tensor/gemm.h"

/* tests/model/fixture.py */
static const double fixture_loss = 1.06992556203;
static const float fixture_grad[] = {
    0.0636982823,  -0.0862853392, 0.0512814192,  0.0179501789, 0.176791593,   -0.0543708847, -0.104339559,
    0.193408772,   -0.109255527,  0.100296118,   -0.0243942661, -0.0677894867, -0.148637646,  0.0285256795,
    0.110625693,   -0.175940167,  0,             0,            0,             0,             0.0502550013,
    0.196237225,   -0.100823171,  -0.170256203,  0,            0.132075864,   0.257272391,   0.400803322,
    0.153549114,   0,             -0.0967760198, -0.140916405, -0.193331429,  -0.0444572956, 0,
    -0.0352998446, -0.116355986,  -0.207471892,  -0.109091819, 0,             0.0377609405,  0.0177763463,
    -0.0555372868};

static void check_fixture(void)
{
  struct model_desc d = helper_mlp("small", (size_t[]){4, 5, 3}, 3);
  struct graph *g = helper_graph(&d, 3);
  struct site_specs s = helper_fp32();
  struct pass p = helper_pass(&s, 3);
  float x[12];
  int32_t t[] = {2, 0, 1};
  is_int(graph_n_weights(g), 43, "4-5-3 has 43 weights");
  for (int i = 0; i < 43; i++)
    graph_weights(g)[i] = (float)(0.6 * sin(1.7 * (i + 1)));
  for (int i = 0; i < 12; i++)
    x[i] = (float)cos(2.3 * i);
  struct loss_result r = graph_forward(g, &p, x, t, 3);
  graph_backward(g, &p);
  is_close(r.loss, fixture_loss, 1e-6, "loss as of the independent program");
  double worst = 0;
  for (int i = 0; i < 43; i++)
    worst = fmax(worst, fabs(graph_gradients(g)[i] - fixture_grad[i]));
  ok(worst < 2e-7, "gradients as of the independent program: within %.2g", worst);
  int correct = 0;
  for (int i = 0; i < 3; i++) {
    const float *y = graph_output(g) + 3 * i;
    correct += y[t[i]] >= fmaxf(y[0], fmaxf(y[1], y[2]));
  }
  is_int(r.n_correct, correct, "number of correct answers");
  graph_free(g);
  desc_done(&d);
}

/* A double reference of the network below, in loops as plain as can be. Returns the mean loss. */
#define NI 6
#define NH 7
#define NO 4
#define NB 5
static double reference(const double *w, const float *x, const int32_t *t)
{
  double loss = 0;
  for (int i = 0; i < NB; i++) {
    const double *p = w;
    double pre[NH], h[NH], u[NH], v[NH], y[NO], sum = 0;
    for (int k = 0; k < NH; k++, p += NI) { /* in: no bias */
      pre[k] = 0;
      for (int j = 0; j < NI; j++)
        pre[k] += p[j] * x[i * NI + j];
      h[k] = pre[k] > 0 ? pre[k] : 0;
    }
    for (int k = 0; k < NH; k++, p += NH) { /* branch */
      u[k] = 0;
      for (int j = 0; j < NH; j++)
        u[k] += p[j] * h[j];
    }
    for (int k = 0; k < NH; k++)
      v[k] = pre[k] + h[k] + (u[k] + p[k] > 0 ? u[k] + p[k] : 0); /* residual sums */
    p += NH;
    for (int k = 0; k < NO; k++, p += NH) {
      y[k] = 0;
      for (int j = 0; j < NH; j++)
        y[k] += p[j] * v[j];
    }
    for (int k = 0; k < NO; k++) {
      y[k] += p[k];
      sum += exp(y[k]);
    }
    loss += (log(sum) - y[t[i]]) / NB;
  }
  return loss;
}

static struct model_desc residual_net(void)
{
  struct model_desc d = {.name = "residual", .loss = "cross_entropy", .n_inputs = NI, .n_outputs = NO};
  struct layer_desc *l = desc_add_layer(&d, "linear", "in");
  desc_set_option(l, "out", NH);
  desc_set_option(l, "bias", 0);
  desc_add_layer(&d, "relu", NULL);
  desc_set_option(desc_add_layer(&d, "linear", "branch"), "out", NH);
  desc_add_layer(&d, "relu", NULL);
  l = desc_add_layer(&d, "add", "sum");
  desc_set_option(l, "other", 1);
  l = desc_add_layer(&d, "add", "sum_before_relu"); /* so that the first ReLU may not work in place */
  desc_set_option(l, "other", 0);
  desc_set_option(desc_add_layer(&d, "linear", "head"), "out", NO);
  return d;
}

static void check_differences(void)
{
  struct model_desc d = residual_net();
  struct graph *g = helper_graph(&d, NB);
  struct site_specs s = helper_fp32();
  struct pass p = helper_pass(&s, NB);
  float *x = helper_normal(NB * NI, 1);
  int32_t *t = helper_labels(NB, NO);
  size_t n = graph_n_weights(g);
  double *w = mem_alloc(n * sizeof *w), worst = 0, size = 0;
  for (size_t i = 0; i < n; i++)
    w[i] = graph_weights(g)[i];
  struct loss_result r = graph_forward(g, &p, x, t, NB);
  graph_backward(g, &p);
  is_close(r.loss, reference(w, x, t), 1e-6, "residual network: loss of the double reference");
  for (size_t i = 0; i < n; i++) {
    double h = 1e-5, w0 = w[i];
    w[i] = w0 + h;
    double up = reference(w, x, t);
    w[i] = w0 - h;
    double slope = (up - reference(w, x, t)) / (2 * h);
    w[i] = w0;
    worst = fmax(worst, fabs(slope - graph_gradients(g)[i]));
    size = fmax(size, fabs(slope));
  }
  ok(size > 0.01 && worst < 1e-6, "gradient against central differences: within %.2g of values up to %.2g", worst,
     size);
  mem_free(w);
  mem_free(x);
  mem_free(t);
  graph_free(g);
  desc_done(&d);
}

/* Gradients of the parts of a batch, each divided by the whole, add up to that of the whole. */
static void check_accumulation(void)
{
  struct model_desc d = helper_mlp("m", (size_t[]){20, 30, 10}, 3);
  struct graph *g = helper_graph(&d, 16);
  struct site_specs s = helper_fp32();
  /* no scale, so that parts and whole share the grid, and then the same draws by sample slot */
  s.at[SITE_BACT] = s.at[SITE_GWEIGHT] = s.at[SITE_GACT] = helper_spec("bf16", ROUND_SR);
  struct pass p = helper_pass(&s, 16);
  p.want_sums = true;
  float *x = helper_normal(16 * 20, 2);
  int32_t *t = helper_labels(16, 10);
  size_t n = graph_n_weights(g);
  float *whole = mem_alloc(n * sizeof *whole);
  graph_forward(g, &p, x, t, 16);
  graph_backward(g, &p);
  memcpy(whole, graph_gradients(g), n * sizeof *whole);
  struct layer_sums sums = *graph_layer_sums(g, 0);
  for (size_t at = 0; at < 16; at += at ? 6 : 4) { /* parts of 4, 6, 6 */
    p.first_slot = at;
    p.accumulate = at > 0;
    graph_forward(g, &p, x + at * 20, t + at, at ? 6 : 4);
    graph_backward(g, &p);
  }
  double worst = 0;
  for (size_t i = 0; i < n; i++)
    worst = fmax(worst, fabs(whole[i] - graph_gradients(g)[i]));
  ok(worst < 1e-6, "three micro-batches give the gradient of the batch, draws included: within %.2g", worst);
  const struct layer_sums *got = graph_layer_sums(g, 0);
  is_close(got->norm2_samples, sums.norm2_samples, 1e-5 * sums.norm2_samples, "and the sum of per-sample norms");
  is_close(got->quant_a + got->quant_g, sums.quant_a + sums.quant_g, 1e-4 * (sums.quant_a + sums.quant_g),
           "and the rounding variance");
  is_close(got->norm2_mean, sums.norm2_mean, 1e-5 * sums.norm2_mean, "and the norm of the mean");
  p.first_slot = 1;
  p.accumulate = false;
  graph_forward(g, &p, x, t, 16);
  graph_backward(g, &p);
  ok(memcmp(whole, graph_gradients(g), n * sizeof *whole) != 0, "another slot has other draws");
  mem_free(whole);
  mem_free(x);
  mem_free(t);
  graph_free(g);
  desc_done(&d);
}

static void refused(const struct model_desc *d, const char *want, const char *what)
{
  struct err e = {""};
  struct graph *g = graph_create(d, 1, 4, &e);
  ok(!g && strstr(e.msg, want), "%s: \"%s\"", what, e.msg);
  graph_free(g);
}

static void check_messages(void)
{
  struct model_desc d = helper_mlp("wrong", (size_t[]){784, 512, 10}, 3);
  desc_set_option(&d.layer[2], "in", 300);
  refused(&d, "model wrong: fc2 takes 300 values but fc1 gives 512", "shapes that do not fit");
  desc_set_option(&d.layer[2], "in", 512);
  d.n_outputs = 12;
  refused(&d, "fc2 gives 10 values but the model has 12 outputs", "wrong number of outputs");
  d.n_outputs = 10;
  d.n_inputs = 700;
  desc_set_option(&d.layer[0], "in", 784);
  refused(&d, "fc1 takes 784 values but the data gives 700", "data that do not fit");
  d.n_inputs = 784;
  strcpy(d.layer[1].kind, "rleu");
  refused(&d, "did you mean \"relu\"", "an unknown kind");
  strcpy(d.layer[1].kind, "zebra-crossing");
  refused(&d, "there are: linear conv2d relu", "an unknown kind near nothing");
  strcpy(d.layer[1].kind, "relu");
  desc_set_option(&d.layer[0], "biass", 1);
  refused(&d, "did you mean \"bias\"", "an unknown option");
  d.layer[0].n_options--;
  desc_set_option(&d.layer[0], "out", 2.5);
  refused(&d, "fc1: out = 2.5: must be a whole number", "half a unit");
  desc_set_option(&d.layer[0], "out", 0);
  refused(&d, "fc1: out = 0: must be", "no unit");
  d.layer[0].n_options = 0;
  refused(&d, "fc1: linear needs the option \"out\"", "a missing option");
  desc_set_option(&d.layer[0], "out", 512);
  strcpy(d.layer[2].name, "fc1");
  refused(&d, "two layers are named \"fc1\"", "a name twice");
  strcpy(d.layer[2].name, "fc2");
  d.layer[2].input = 5;
  refused(&d, "fc2: its input 1 is not a layer before it", "an input that does not exist");
  d.layer[2].input = 0;
  refused(&d, "relu2 is used by no other layer", "a layer that leads nowhere");
  d.layer[2].input = 1;
  strcpy(d.loss, "crossentropy");
  refused(&d, "did you mean \"cross_entropy\"", "an unknown loss");
  strcpy(d.loss, "cross_entropy");
  d.layer[0].option[0].value = 2147483647;
  desc_set_option(&d.layer[2], "in", 2147483647);
  refused(&d, "weights", "more weights than there is memory");
  desc_done(&d);
  struct model_desc none = {.name = "none", .n_inputs = 2, .n_outputs = 2};
  refused(&none, "it has no layers", "no layers");
  desc_add_layer(&none, "relu", NULL);
  refused(&none, "none of its layers has weights", "no weights");
  desc_done(&none);
}

static void check_memory(void)
{
  struct model_desc d = helper_mlp("m", (size_t[]){20, 30, 25, 10}, 4);
  uint64_t before = mem_counts().live_bytes;
  struct err e;
  int n_failed = 0;
  for (uint64_t nth = 1; nth < 20; nth++) {
    mem_fail_nth(nth);
    struct graph *g = graph_create(&d, 1, 8, &e);
    mem_fail_nth(0);
    if (g) {
      graph_free(g);
      break;
    }
    n_failed++;
  }
  ok(n_failed >= 5, "each of %d allocations may fail and graph_create() says so", n_failed);
  is_int(mem_counts().live_bytes, before, "and nothing is leaked");

  struct graph *g = helper_graph(&d, 8);
  struct site_specs s = helper_paper("e4m3");
  struct pass p = helper_pass(&s, 8);
  p.want_sums = true;
  float *x = helper_normal(32 * 20, 3);
  int32_t *t = helper_labels(32, 10);
  graph_forward(g, &p, x, t, 8); /* the first pass may warm things up */
  graph_backward(g, &p);
  uint64_t n = mem_counts().n_allocs;
  double loss = graph_forward(g, &p, x, t, 8).loss;
  graph_backward(g, &p);
  graph_weights_changed(g);
  is_int(mem_counts().n_allocs, n, "a step allocates nothing");
  mem_fail_nth(2);
  ok(graph_reserve(g, 32, &e) < 0 && strstr(e.msg, "32"), "a batch for which there is no memory: \"%s\"", e.msg);
  mem_fail_nth(0);
  ok(graph_forward(g, &p, x, t, 8).loss == loss, "the graph is as it was");
  ok(graph_reserve(g, 32, &e) == 0 && graph_forward(g, &p, x, t, 8).loss == loss, "and grows when there is");
  ok(graph_reserve(g, SIZE_MAX / 8, &e) < 0, "an absurd batch: \"%s\"", e.msg);
  struct graph_memory m = graph_memory(g);
  is_int(m.weights, graph_n_weights(g) * 4, "weights take 4 bytes each");
  /* 32 rows: outputs of fc1, fc2, fc3 padded to 16; ReLUs lie in place; of gradients two are alive at a time */
  is_int(m.activations, 32 * 4 * ((32 + 32 + 16) + (32 + 32)), "activations and their gradients share memory");
  ok(mem_counts().live_bytes - before == m.weights + m.gradients + m.activations + m.scratch,
     "what it reports is what it holds");
  mem_free(x);
  mem_free(t);
  graph_free(g);
  desc_done(&d);
}

static void check_init(void)
{
  struct model_desc d = helper_mlp("m", (size_t[]){784, 512, 10}, 3);
  struct graph *g = helper_graph(&d, 1), *again = helper_graph(&d, 64);
  struct param *p = graph_param(g, 0);
  is_int(graph_n_params(g), 4, "four parameters");
  is_str(p->name, "fc1.weight", "named");
  ok(p->rank == 2 && p->shape[0] == 512 && p->shape[1] == 784 && p->decays && !graph_param(g, 1)->decays,
     "with shapes; weights decay, biases do not");
  double sum = 0, sq = 0, most = 0, bound = 1 / sqrt(784);
  for (size_t i = 0; i < p->n; i++) {
    sum += p->w[i];
    sq += (double)p->w[i] * p->w[i];
    most = fmax(most, fabs(p->w[i]));
  }
  /* uniform(-a, a): variance a^2/3; five standard errors of mean and of variance (a^4 4/45 / n) */
  is_close(sum / (double)p->n, 0, 5 * bound / sqrt(3.0 * (double)p->n), "initial weights have mean 0");
  is_close(sq / (double)p->n, bound * bound / 3, 5 * bound * bound * sqrt(4.0 / 45 / (double)p->n),
           "variance 1/(3 in)");
  ok(most <= bound && most > 0.999 * bound, "and the bound 1/sqrt(in)");
  ok(memcmp(graph_weights(g), graph_weights(again), graph_n_weights(g) * 4) == 0, "the same from the same seed");
  graph_free(again);
  struct err e;
  again = graph_create(&d, 2, 1, &e);
  ok(again && memcmp(graph_weights(g), graph_weights(again), graph_n_weights(g) * 4) != 0, "others from another");
  graph_free(again);
  graph_free(g);
  desc_done(&d);
}

int main(void)
{
  gemm_init();
  check_fixture();
  check_differences();
  check_accumulation();
  check_messages();
  check_memory();
  check_init();
  return tap_done();
}
