/* The streaming estimate against per-sample gradients formed one by one, and against many draws. */
#include "config.h"

#include "probe/variance.h"

#include <math.h>

#include "../model/helper.h"
#include "tensor/gemm.h"

enum { NI = 14, NH = 11, NO = 5, NB = 32 };

struct fixture {
  struct model_desc d;
  struct graph *g;
  float *x;
  int32_t *t;
  size_t n;
  double *sample; /* NB x n: g_i */
  double *mean;
};

/* g_i one at a time: batches of one sample, in fp32 arithmetic without any site. */
static struct fixture fixture(void)
{
  struct fixture f = {.d = helper_mlp("m", (size_t[]){NI, NH, NO}, 3)};
  f.g = helper_graph(&f.d, NB);
  f.x = helper_normal(NB * NI, 7);
  f.t = helper_labels(NB, NO);
  f.n = graph_n_weights(f.g);
  f.sample = mem_alloc(NB * f.n * sizeof *f.sample);
  f.mean = mem_alloc(f.n * sizeof *f.mean);
  struct site_specs s = helper_fp32();
  struct pass p = helper_pass(&s, 1);
  for (size_t i = 0; i < NB; i++) {
    graph_forward(f.g, &p, f.x + i * NI, f.t + i, 1);
    graph_backward(f.g, &p);
    for (size_t k = 0; k < f.n; k++) {
      f.sample[i * f.n + k] = graph_gradients(f.g)[k];
      f.mean[k] += f.sample[i * f.n + k] / NB;
    }
  }
  return f;
}

static void fixture_done(struct fixture *f)
{
  graph_free(f->g);
  desc_done(&f->d);
  mem_free(f->x);
  mem_free(f->t);
  mem_free(f->sample);
  mem_free(f->mean);
}

/* Trace of the covariance of the batch mean over parameters [from, to): the textbook's two-pass estimate. */
static double brute_force(const struct fixture *f, size_t from, size_t to)
{
  double sum = 0;
  for (size_t i = 0; i < NB; i++)
    for (size_t k = from; k < to; k++) {
      double d = f->sample[i * f->n + k] - f->mean[k];
      sum += d * d;
    }
  return sum / NB / (NB - 1);
}

static void check_data_variance(struct fixture *f)
{
  struct site_specs s = helper_fp32();
  struct pass p = helper_pass(&s, NB);
  p.want_sums = true;
  graph_forward(f->g, &p, f->x, f->t, NB);
  graph_backward(f->g, &p);
  size_t split = graph_param(f->g, 2)->offset;
  double want = brute_force(f, 0, split), norm2 = 0;
  is_close(variance_of_layer(graph_layer_sums(f->g, 0), NB).data, want, 1e-5 * want, "data variance of fc1, with bias");
  want = brute_force(f, split, f->n);
  is_close(variance_of_layer(graph_layer_sums(f->g, 2), NB).data, want, 1e-5 * want, "data variance of fc2");
  struct grad_variance v = variance_of_graph(f->g, NB);
  want = brute_force(f, 0, f->n);
  is_close(v.data, want, 1e-5 * want, "data variance of all");
  ok(v.a == 0 && v.g == 0 && v.ag == 0 && v.quant == 0 && v.total == v.data, "no rounding, no rounding variance");
  for (size_t k = 0; k < f->n; k++)
    norm2 += f->mean[k] * f->mean[k];
  is_close(v.grad_norm2, norm2, 1e-5 * norm2, "squared norm of the mean gradient");
  ok(isnan(variance_of_graph(f->g, 1).data), "one sample has no data variance to estimate");
}

/* Over draws of bact and gweight the estimate's data part stays on the brute-force value, and the spread of the
 * gradient is the rounding part. gact and weights stay exact: what they pass on is conditional (README). */
static void check_over_draws(struct fixture *f)
{
  enum { DRAWS = 4000 };
  struct site_specs s = helper_fp32();
  s.at[SITE_BACT] = s.at[SITE_GWEIGHT] = helper_spec("int3", ROUND_SR);
  struct pass p = helper_pass(&s, NB);
  p.want_sums = true;
  p.stream = RNG_PROBE;
  double data = 0, data_sq = 0, spread = 0, quant = 0;
  int n_wrong = 0;
  for (uint32_t r = 0; r < DRAWS; r++) {
    p.draw = r;
    graph_forward(f->g, &p, f->x, f->t, NB);
    graph_backward(f->g, &p);
    struct grad_variance v = variance_of_graph(f->g, NB);
    data += v.data / DRAWS;
    data_sq += v.data * v.data / DRAWS;
    quant = v.quant;
    n_wrong += v.quant != v.a + v.g + v.ag || v.total != v.data + v.quant;
    for (size_t k = 0; k < f->n; k++) {
      double d = graph_gradients(f->g)[k] - f->mean[k];
      spread += d * d / DRAWS;
    }
  }
  is_int(n_wrong, 0, "parts add up");
  double want = brute_force(f, 0, f->n), sigma = sqrt((data_sq - data * data) / DRAWS);
  ok(fabs(data - want) < 5 * sigma, "data part over %d draws of int3: %.6g, brute force %.6g, z %.2f", DRAWS, data,
     want, (data - want) / sigma);
  ok(fabs(spread / quant - 1) < 0.02, "rounding part: spread over draws / estimate = %.4f", spread / quant);
  ok(quant > 0.1 * want, "and it was not negligible: %.3g against %.3g", quant, want);
}

/* THEORY section 2: the same samples repeated r times have 1/r of the rounding variance. */
static void check_batch_law(struct fixture *f)
{
  struct err e;
  if (graph_reserve(f->g, 4 * NB, &e))
    tap_bail("%s", e.msg);
  float *x = mem_alloc(4 * NB * NI * sizeof *x);
  int32_t *t = mem_alloc(4 * NB * sizeof *t);
  for (int r = 0; r < 4; r++) {
    memcpy(x + r * NB * NI, f->x, NB * NI * sizeof *x);
    memcpy(t + r * NB, f->t, NB * sizeof *t);
  }
  struct site_specs s = helper_fp32();
  s.at[SITE_BACT] = s.at[SITE_GWEIGHT] = helper_spec("e4m1", ROUND_SR);
  double quant[2];
  for (size_t i = 0; i < 2; i++) {
    size_t b = i ? 4 * NB : NB;
    struct pass p = helper_pass(&s, b);
    p.want_sums = true;
    graph_forward(f->g, &p, x, t, b);
    graph_backward(f->g, &p);
    quant[i] = variance_of_graph(f->g, b).quant;
  }
  is_close(quant[0] / quant[1], 4, 1e-3, "four times the batch, a quarter of the rounding variance");
  mem_free(x);
  mem_free(t);
}

int main(void)
{
  gemm_init();
  struct fixture f = fixture();
  check_data_variance(&f);
  check_over_draws(&f);
  check_batch_law(&f);
  fixture_done(&f);
  return tap_done();
}
