/* The quantization sites of a linear layer: against a plain re-implementation on quantize() and gemm(), bit for bit;
 * draws and threads; bias and variance over draws against closed forms; evaluation; faults. */
#include "config.h"

#include "model/site.h"

#include <math.h>
#include <stdio.h>

#include "helper.h"
#include "numeric/quantize.h"
#include "tensor/gemm.h"
#include "tensor/vec.h"

#define NI 24
#define NH 20
#define NO 6
#define NB 16
enum { FC1, RELU, FC2 };
#define TENSOR(layer, param) ((uint32_t)((layer)*16 + (param))) /* 0: activations, 1: weight, 2: bias */

/* q(x) at a site, as DESIGN describes it: nothing but a key and a call. */
static const float *site(const struct pass *p, enum site spec_of, enum site draw_of, uint32_t tensor, const float *x,
                         size_t rows, size_t cols, float *out)
{
  const struct spec *s = &p->sites->at[spec_of];
  bool weight = draw_of == SITE_WEIGHT || draw_of == SITE_BWEIGHT;
  struct quant_rng r = {rng_derive(p->seed, p->stream, tensor, draw_of, p->draw), p->step,
                        weight ? 0 : p->first_slot * cols};
  quantize(s, x, rows, cols, &r, out, NULL, NULL, NULL, NULL);
  return out;
}

struct naive {
  float h[NB * NH], y[NB * NO], g[NB * NO], dh[NB * NH];
  float dw1[NH * NI], db1[NH], dw2[NO * NH], db2[NO];
};

static void softmax_gradient(struct naive *n, const int32_t *t)
{
  for (int i = 0; i < NB; i++) {
    float *y = n->y + i * NO, *g = n->g + i * NO, max = y[0];
    double sum = 0;
    for (int k = 0; k < NO; k++)
      max = y[k] > max ? y[k] : max;
    for (int k = 0; k < NO; k++)
      sum += g[k] = expf(y[k] - max);
    for (int k = 0; k < NO; k++)
      g[k] = g[k] * (float)(1 / sum) - (k == t[i] ? 1.0f : 0.0f);
  }
}

static void naive_layer_back(const struct pass *p, int layer, size_t in, size_t out, const float *x, const float *w,
                             const float *g, float *dw, float *db, float *dx)
{
  static float xq[NB * NI], gq[NB * NH], wq[NH * NI];
  const struct site_specs *s = p->sites;
  enum site a = s->share_act ? SITE_ACT : SITE_BACT, v = s->share_weight ? SITE_WEIGHT : SITE_BWEIGHT;
  site(p, a, a, TENSOR(layer, 0), x, NB, in, xq);
  site(p, SITE_GWEIGHT, SITE_GWEIGHT, TENSOR(layer, 0), g, NB, out, gq);
  gemm(NULL, GEMM_TN, out, in, NB, 1.0f / NB, gq, xq, 0, dw);
  vec_sum_rows(NULL, g, NB, out, 1.0f / NB, 0, db);
  if (!dx)
    return;
  site(p, SITE_GACT, SITE_GACT, TENSOR(layer, 0), g, NB, out, gq);
  site(p, v, v, TENSOR(layer, 1), w, out, in, wq);
  gemm(NULL, GEMM_NN, NB, in, out, 1, gq, wq, 0, dx);
}

static void naive_step(struct naive *n, struct graph *g, const struct pass *p, const float *x, const int32_t *t)
{
  static float xq[NB * NI], wq[NH * NI];
  const float *w1 = graph_param(g, 0)->w, *b1 = graph_param(g, 1)->w, *w2 = graph_param(g, 2)->w;
  site(p, SITE_ACT, SITE_ACT, TENSOR(FC1, 0), x, NB, NI, xq);
  site(p, SITE_WEIGHT, SITE_WEIGHT, TENSOR(FC1, 1), w1, NH, NI, wq);
  gemm(NULL, GEMM_NT, NB, NH, NI, 1, xq, wq, 0, n->h);
  for (int i = 0; i < NB * NH; i++)
    n->h[i] = fmaxf(n->h[i] + b1[i % NH], 0);
  site(p, SITE_ACT, SITE_ACT, TENSOR(FC2, 0), n->h, NB, NH, xq);
  site(p, SITE_WEIGHT, SITE_WEIGHT, TENSOR(FC2, 1), w2, NO, NH, wq);
  gemm(NULL, GEMM_NT, NB, NO, NH, 1, xq, wq, 0, n->y);
  vec_add_bias(NULL, n->y, NB, NO, graph_param(g, 3)->w);
  softmax_gradient(n, t);
  naive_layer_back(p, FC2, NH, NO, n->h, w2, n->g, n->dw2, n->db2, n->dh);
  for (int i = 0; i < NB * NH; i++)
    n->dh[i] = n->h[i] > 0 ? n->dh[i] : 0;
  naive_layer_back(p, FC1, NI, NH, x, w1, n->dh, n->dw1, n->db1, NULL);
}

static void compare(struct graph *g, const struct pass *p, const float *x, const int32_t *t, const char *what)
{
  static struct naive n;
  graph_forward(g, p, x, t, NB);
  bool same_y;
  naive_step(&n, g, p, x, t);
  same_y = memcmp(n.y, graph_output(g), sizeof n.y) == 0;
  graph_backward(g, p);
  bool same_g = memcmp(n.dw1, graph_param(g, 0)->g, sizeof n.dw1) == 0 &&
                memcmp(n.db1, graph_param(g, 1)->g, sizeof n.db1) == 0 &&
                memcmp(n.dw2, graph_param(g, 2)->g, sizeof n.dw2) == 0 &&
                memcmp(n.db2, graph_param(g, 3)->g, sizeof n.db2) == 0;
  ok(same_y && same_g, "%s: outputs%s and gradients%s as the plain implementation's, bit for bit", what,
     same_y ? "" : " NOT", same_g ? "" : " NOT");
}

struct fixture {
  struct model_desc d;
  struct graph *g;
  float *x;
  int32_t *t;
};

static struct fixture fixture(void)
{
  struct fixture f = {.d = helper_mlp("m", (size_t[]){NI, NH, NO}, 3)};
  f.g = helper_graph(&f.d, NB);
  f.x = helper_normal(NB * NI, 4);
  f.t = helper_labels(NB, NO);
  return f;
}

static void fixture_done(struct fixture *f)
{
  graph_free(f->g);
  desc_done(&f->d);
  mem_free(f->x);
  mem_free(f->t);
}

static void check_naive(void)
{
  struct fixture f = fixture();
  struct site_specs s = helper_fp32();
  struct pass p = helper_pass(&s, NB);
  compare(f.g, &p, f.x, f.t, "fp32");
  s = helper_paper("e4m1");
  compare(f.g, &p, f.x, f.t, "paper");
  s = helper_paper("int4");
  compare(f.g, &p, f.x, f.t, "paper, int4");
  for (int share = 0; share < 4; share++) {
    for (int i = SITE_ACT; i <= SITE_GACT; i++)
      s.at[i] = helper_spec(i % 2 ? "e4m1" : "int5", ROUND_SR);
    s.share_act = share & 1;
    s.share_weight = share & 2;
    char what[64];
    snprintf(what, sizeof what, "all six stochastic, share_act %d share_weight %d", s.share_act, s.share_weight);
    graph_weights_changed(f.g);
    p.step++;
    compare(f.g, &p, f.x, f.t, what);
    p.draw = 9;
    p.stream = RNG_PROBE;
    compare(f.g, &p, f.x, f.t, "the same in a probe's draw");
    p.draw = 0;
    p.stream = RNG_SITE;
    p.first_slot = 100;
    compare(f.g, &p, f.x, f.t, "the same at another slot");
    p.first_slot = 0;
  }
  fixture_done(&f);
}

static void check_weights_cached(void)
{
  struct fixture f = fixture();
  struct site_specs s = helper_paper("int4");
  struct pass p = helper_pass(&s, NB);
  double before = graph_forward(f.g, &p, f.x, f.t, NB).loss;
  graph_weights(f.g)[0] += 10; /* not announced: the copy of this step must still be in use */
  ok(graph_forward(f.g, &p, f.x, f.t, NB).loss == before, "weights are quantized once");
  graph_weights_changed(f.g);
  ok(graph_forward(f.g, &p, f.x, f.t, NB).loss != before, "and again once they changed");
  graph_weights(f.g)[0] -= 10;
  graph_weights_changed(f.g);
  double rne = graph_forward(f.g, &p, f.x, f.t, NB).loss;
  s.at[SITE_WEIGHT].rounding = ROUND_SR;
  double first = graph_forward(f.g, &p, f.x, f.t, NB).loss;
  ok(first != rne, "a new spec makes a new copy");
  p.step++;
  ok(graph_forward(f.g, &p, f.x, f.t, NB).loss != first, "a stochastic weight is drawn anew each step");
  p.step--;
  ok(graph_forward(f.g, &p, f.x, f.t, NB).loss == first, "and is a function of the step");
  p.evaluate = true;
  ok(graph_forward(f.g, &p, f.x, f.t, NB).loss == rne, "evaluation rounds it to nearest");
  s.at[SITE_ACT] = helper_spec("e4m1", ROUND_SR);
  double eval = graph_forward(f.g, &p, f.x, f.t, NB).loss;
  p.step += 7, p.draw = 3;
  ok(graph_forward(f.g, &p, f.x, f.t, NB).loss == eval && eval != rne, "evaluation draws nothing");
  fixture_done(&f);
}

/* With operands of few bits and a common power-of-two scale every product and sum of this layer is exact in fp32, so
 * that the split of the products cannot show and any difference would be a draw that depends on the thread. */
static void check_threads(void)
{
  enum { IN = 700, OUT = 40, B = 64 };
  struct model_desc d = helper_mlp("one", (size_t[]){IN, OUT}, 2);
  struct graph *g = helper_graph(&d, B);
  float *x = helper_normal(B * IN, 5);
  int32_t *t = helper_labels(B, OUT);
  struct site_specs s = helper_fp32();
  for (int i = SITE_ACT; i <= SITE_GACT; i++)
    s.at[i] = helper_spec("e2m1", ROUND_SR);
  memset(graph_param(g, 1)->w, 0, OUT * sizeof(float));
  struct pass p = helper_pass(&s, B);
  p.want_sums = true;
  size_t n = graph_n_weights(g);
  float *first = mem_alloc(n * sizeof *first);
  struct layer_sums sums = {0};
  for (int threads = 1; threads <= 3; threads++) {
    struct err e;
    p.pool = pool_create(threads, &e);
    if (!p.pool)
      tap_bail("%s", e.msg);
    graph_weights_changed(g);
    graph_forward(g, &p, x, t, B);
    graph_backward(g, &p);
    if (threads == 1) {
      memcpy(first, graph_gradients(g), n * sizeof *first);
      sums = *graph_layer_sums(g, 0);
    }
    ok(memcmp(first, graph_gradients(g), n * sizeof *first) == 0, "%d threads: the draws of one", threads);
    ok(memcmp(&sums, graph_layer_sums(g, 0), sizeof sums) == 0, "%d threads: the sums of one", threads);
    pool_free(p.pool);
  }
  p.pool = NULL;
  p.want_sums = false;
  graph_forward(g, &p, x, t, B);
  graph_backward(g, &p);
  ok(memcmp(first, graph_gradients(g), n * sizeof *first) == 0, "without sums: the same bits");
  mem_free(first);
  mem_free(x);
  mem_free(t);
  graph_free(g);
  desc_done(&d);
}

/* Sum over a row of Var[SR(x)] on a uniform grid of that step: f(1-f) d^2 (THEORY section 0). */
static double row_variance(const float *x, size_t n, double step)
{
  double sum = 0;
  for (size_t i = 0; i < n; i++) {
    double f = x[i] / step - floor(x[i] / step);
    sum += f * (1 - f) * step * step;
  }
  return sum;
}

static double absmax(const float *x, size_t n)
{
  double m = 0;
  for (size_t i = 0; i < n; i++)
    m = fmax(m, fabs(x[i]));
  return m;
}

static double norm2(const float *x, size_t n)
{
  double s = 0;
  for (size_t i = 0; i < n; i++)
    s += (double)x[i] * x[i];
  return s;
}

/* THEORY section 2: dW over draws has the mean of the exact dW and the variance T_A + T_G + T_AG. */
static void check_moments(void)
{
  enum { IN = 12, OUT = 7, B = 16, DRAWS = 20000 };
  struct model_desc d = helper_mlp("one", (size_t[]){IN, OUT}, 2);
  struct graph *g = helper_graph(&d, B);
  float *x = helper_normal(B * IN, 6);
  int32_t *t = helper_labels(B, OUT);
  struct site_specs s = helper_fp32();
  struct pass p = helper_pass(&s, B);
  graph_forward(g, &p, x, t, B);
  graph_backward(g, &p);
  double exact[OUT * IN], mean[OUT * IN] = {0}, sq[OUT * IN] = {0}, total = 0;
  for (int i = 0; i < OUT * IN; i++)
    exact[i] = graph_gradients(g)[i];
  float grad[B * OUT];
  for (int i = 0; i < B; i++) { /* G from the logits, in double */
    const float *y = graph_output(g) + i * OUT;
    double sum = 0;
    for (int k = 0; k < OUT; k++)
      sum += exp(y[k]);
    for (int k = 0; k < OUT; k++)
      grad[i * OUT + k] = (float)(exp(y[k]) / sum - (k == t[i]));
  }
  double ta = 0, tg = 0, tag = 0, step_x = absmax(x, B * IN) / 7, step_g = absmax(grad, B * OUT) / 7;
  for (int i = 0; i < B; i++) {
    double e = row_variance(x + i * IN, IN, step_x), h = row_variance(grad + i * OUT, OUT, step_g);
    ta += norm2(grad + i * OUT, OUT) * e / (B * B);
    tg += norm2(x + i * IN, IN) * h / (B * B);
    tag += e * h / (B * B);
  }
  s.at[SITE_BACT] = s.at[SITE_GWEIGHT] = helper_spec("int4", ROUND_SR);
  p.stream = RNG_PROBE;
  p.want_sums = true;
  for (uint32_t r = 0; r < DRAWS; r++) {
    p.draw = r;
    graph_forward(g, &p, x, t, B);
    graph_backward(g, &p);
    for (int i = 0; i < OUT * IN; i++) {
      double err = graph_gradients(g)[i] - exact[i];
      mean[i] += err / DRAWS;
      sq[i] += err * err / DRAWS;
    }
  }
  double worst_z = 0;
  for (int i = 0; i < OUT * IN; i++) {
    total += sq[i];
    worst_z = fmax(worst_z, fabs(mean[i]) / sqrt(sq[i] / DRAWS));
  }
  const struct layer_sums *got = graph_layer_sums(g, 0);
  is_close(got->quant_a, ta, 1e-4 * ta, "T_A of the sums is the closed form");
  is_close(got->quant_g, tg, 1e-4 * tg, "T_G likewise");
  is_close(got->quant_ag, tag, 1e-4 * tag, "T_AG likewise");
  /* false alarm of the next: 84 elements at 5 sigma, 5e-5 */
  ok(worst_z < 5, "dW is unbiased over %d draws: largest z %.2f", DRAWS, worst_z);
  ok(fabs(total / (ta + tg + tag) - 1) < 0.02, "its variance is T_A + T_G + T_AG: ratio %.4f", total / (ta + tg + tag));
  mem_free(x);
  mem_free(t);
  graph_free(g);
  desc_done(&d);
}

/* gact's own draw is unbiased: the gradient of the layer before it, linear in dX, keeps its mean (ReLU's mask is fixed,
 * as nothing in the forward pass is stochastic). The very same draw as gweight's would be as well, so that independence
 * is checked where the plain implementation is compared. A shared stochastic act is biased: THEORY section 5. */
static void check_backward_bias(void)
{
  enum { DRAWS = 4000 };
  struct fixture f = fixture();
  struct site_specs s = helper_fp32();
  struct pass p = helper_pass(&s, NB);
  graph_forward(f.g, &p, f.x, f.t, NB);
  graph_backward(f.g, &p);
  static double exact[NH * NI], mean[NH * NI], sq[NH * NI];
  for (int i = 0; i < NH * NI; i++)
    exact[i] = graph_gradients(f.g)[i];
  s.at[SITE_GACT] = helper_spec("e4m0", ROUND_SR);
  p.stream = RNG_PROBE;
  for (uint32_t r = 0; r < DRAWS; r++) {
    p.draw = r;
    graph_forward(f.g, &p, f.x, f.t, NB);
    graph_backward(f.g, &p);
    for (int i = 0; i < NH * NI; i++) {
      double err = graph_gradients(f.g)[i] - exact[i];
      mean[i] += err / DRAWS;
      sq[i] += err * err / DRAWS;
    }
  }
  double worst = 0, total = 0;
  for (int i = 0; i < NH * NI; i++) {
    total += sq[i];
    if (sq[i] > 1e-16)
      worst = fmax(worst, fabs(mean[i]) / sqrt(sq[i] / DRAWS));
  }
  /* 480 elements; 5.5 sigma: false alarm 2e-5 */
  ok(total > 0 && worst < 5.5, "the gradient before gact is unbiased over %d draws: largest z %.2f", DRAWS, worst);
  fixture_done(&f);
}

/* Delayed scales: evaluation and probes between steps read the history and leave it alone. */
static void check_history(void)
{
  double loss[2][6];
  for (int disturbed = 0; disturbed < 2; disturbed++) {
    struct fixture f = fixture();
    struct site_specs s = helper_paper("int5");
    for (int i = SITE_ACT; i <= SITE_GACT; i++)
      s.at[i].scale = SCALE_DELAYED;
    s.at[SITE_ACT] = s.at[SITE_BACT];
    s.share_act = true;
    struct pass p = helper_pass(&s, NB);
    for (int step = 0; step < 6; step++) {
      for (int i = 0; i < NB * NI; i++)
        f.x[i] *= 1.3f; /* absmax moves, so that an entry too many would show */
      p.step = (uint64_t)step;
      if (disturbed) {
        struct pass other = p;
        other.evaluate = true;
        graph_forward(f.g, &other, f.x, f.t, NB);
        other.evaluate = false;
        other.stream = RNG_PROBE;
        graph_forward(f.g, &other, f.x, f.t, NB);
        graph_backward(f.g, &other);
      }
      loss[disturbed][step] = graph_forward(f.g, &p, f.x, f.t, NB).loss;
      graph_backward(f.g, &p);
      for (size_t i = 0; i < graph_n_weights(f.g); i++)
        graph_weights(f.g)[i] -= graph_gradients(f.g)[i];
      graph_weights_changed(f.g);
    }
    ok(graph_quant_state(f.g, FC1, SITE_ACT)->n_history > 0, "the scale of act has a history");
    fixture_done(&f);
  }
  ok(memcmp(loss[0], loss[1], sizeof loss[0]) == 0, "evaluation and probes leave scale histories alone");
}

/* With a deterministic bact that equals act, sharing must change nothing, the scale's history included. */
static void check_shared_history(void)
{
  static float grad[2][NH * NI + NH + NO * NH + NO];
  for (int share = 0; share < 2; share++) {
    struct fixture f = fixture();
    struct site_specs s = helper_fp32();
    s.at[SITE_ACT] = helper_spec("int4", ROUND_RNE);
    s.at[SITE_ACT].scale = SCALE_DELAYED;
    s.at[SITE_BACT] = s.at[SITE_ACT];
    s.share_act = share;
    struct pass p = helper_pass(&s, NB);
    for (int step = 0; step < 3; step++) {
      for (int i = 0; i < NB * NI; i++)
        f.x[i] *= 0.7f;
      graph_forward(f.g, &p, f.x, f.t, NB);
      graph_backward(f.g, &p);
    }
    memcpy(grad[share], graph_gradients(f.g), sizeof grad[share]);
    fixture_done(&f);
  }
  ok(memcmp(grad[0], grad[1], sizeof grad[0]) == 0, "a shared act is drawn again with the scale it had");
}

static void fault(struct fixture *f, const char *layer, const char *site_name, const char *what)
{
  struct graph_fault at = {0};
  bool found = graph_find_fault(f->g, &at);
  ok(found && strcmp(at.layer_name, layer) == 0 && strcmp(at.site, site_name) == 0, "%s: found at %s, %s", what,
     found ? at.layer_name : "nothing", found ? at.site : "");
}

static void check_faults(void)
{
  struct fixture f = fixture();
  struct site_specs s = helper_paper("e4m3");
  struct pass p = helper_pass(&s, NB);
  struct graph_fault at;
  graph_forward(f.g, &p, f.x, f.t, NB);
  graph_backward(f.g, &p);
  ok(!graph_find_fault(f.g, &at), "a sound step has no fault");
  float keep = f.x[3];
  f.x[3] = NAN;
  ok(isnan(graph_forward(f.g, &p, f.x, f.t, NB).loss), "NaN in the data is NaN in the loss");
  fault(&f, "fc1", "act", "NaN in the data");
  f.x[3] = keep;
  float *w = graph_param(f.g, 2)->w;
  keep = w[1];
  w[1] = NAN;
  graph_weights_changed(f.g);
  ok(isnan(graph_forward(f.g, &p, f.x, f.t, NB).loss), "NaN in a weight is NaN in the loss");
  fault(&f, "fc2", "weight", "NaN in a weight");
  w[1] = keep;
  w = graph_param(f.g, 1)->w;
  keep = w[0];
  w[0] = INFINITY;
  graph_forward(f.g, &p, f.x, f.t, NB);
  fault(&f, "fc1", "weight", "Inf in a bias");
  w[0] = 3e38f; /* finite, but its product with the next weights is not */
  float *w2 = graph_param(f.g, 2)->w;
  for (int k = 0; k < NO * NH; k++)
    w2[k] *= 100;
  s = helper_fp32();
  graph_weights_changed(f.g);
  ok(!isfinite(graph_forward(f.g, &p, f.x, f.t, NB).loss), "overflow in the last product shows in the loss");
  fault(&f, "fc2", "loss", "overflow in the last product");
  fixture_done(&f);

  /* Backward: logits stay finite because X is tiny, dX = G W overflows. */
  f = fixture();
  for (int k = 0; k < NO * NH; k++)
    graph_param(f.g, 2)->w[k] = k / NH % 2 ? 3e38f : -3e38f;
  for (int k = 0; k < NH * NI; k++)
    graph_param(f.g, 0)->w[k] = 0;
  for (int k = 0; k < NH; k++)
    graph_param(f.g, 1)->w[k] = 1e-40f;
  struct loss_result r = graph_forward(f.g, &p, f.x, f.t, NB);
  graph_backward(f.g, &p);
  ok(isfinite(r.loss), "a step whose loss is finite");
  bool finite = vec_all_finite(graph_gradients(f.g), graph_n_weights(f.g));
  ok(!finite, "and whose gradient is not");
  fault(&f, "fc2", "gact", "overflow in dX");
  fixture_done(&f);
}

static void check_table(void)
{
  enum site s;
  struct err e;
  ok(site_find("gweight", &s, &e) == 0 && s == SITE_GWEIGHT, "a site by name");
  ok(site_find("gwieght", &s, &e) < 0 && strstr(e.msg, "did you mean \"gweight\""), "a near miss: \"%s\"", e.msg);
  is_int(SITE_GACT, 5, "numbers of sites, on which random streams depend");
  is_str(site_names[SITE_COMM], "comm", "names in order");
  ok(strlen(site_help(SITE_ACT)) > 10, "with help");
}

int main(void)
{
  gemm_init();
  check_table();
  check_naive();
  check_weights_cached();
  check_history();
  check_shared_history();
  check_threads();
  check_moments();
  check_backward_bias();
  check_faults();
  return tap_done();
}
