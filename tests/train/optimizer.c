/* Update rules against independent double-precision versions of PyTorch's definitions; sites update and state;
 * schedules against closed forms. */
#include "config.h"

#include "train/optimizer.h"

#include <math.h>
#include <string.h>

#include "base/pool.h"
#include "base/rng.h"
#include "make.h"
#include "tests/tap/tap.h"
#include "train/schedule.h"

enum { N_STEPS = 20 };
static struct model_desc desc;
static struct err e;

static struct graph *new_graph(void)
{
  struct graph *g = graph_create(&desc, 3, 4, &e);
  if (!g)
    tap_bail("%s", e.msg);
  return g;
}

static void fill_gradients(struct graph *g, int step)
{
  struct rng r;
  rng_init(&r, rng_derive(11, RNG_USER, 0, 0, 0), (uint64_t)step);
  for (size_t i = 0; i < graph_n_weights(g); i++)
    graph_gradients(g)[i] = (float)rng_normal(&r);
}

static void no_sites(struct site_specs *s)
{
  memset(s, 0, sizeof *s);
  for (int i = 0; i < SITE_COUNT; i++)
    s->at[i] = spec_default(format_find("fp32", &e), ROUND_RNE);
}

/* Torch's documentation, one weight at a time: torch.optim.SGD and torch.optim.AdamW, algorithm boxes. */
struct reference {
  double w, m, v;
};
static void reference_sgd(struct reference *p, double g, const struct optimizer_args *a, double wd, int t)
{
  g += wd * p->w;
  p->m = t == 1 ? g : a->momentum * p->m + g;
  p->w -= a->lr * (a->nesterov ? g + a->momentum * p->m : p->m);
}
static void reference_adamw(struct reference *p, double g, const struct optimizer_args *a, double wd, int t)
{
  p->w -= a->lr * wd * p->w;
  p->m = a->beta1 * p->m + (1 - (double)a->beta1) * g;
  p->v = a->beta2 * p->v + (1 - (double)a->beta2) * g * g;
  double mh = p->m / (1 - pow(a->beta1, t)), vh = p->v / (1 - pow(a->beta2, t));
  p->w -= a->lr * mh / (sqrt(vh) + a->eps);
}

typedef void reference_fn(struct reference *p, double g, const struct optimizer_args *a, double wd, int t);
static void compare(const char *name, reference_fn *reference, const struct optimizer_args *a)
{
  struct graph *g = new_graph();
  struct optimizer o;
  struct site_specs sites;
  size_t n = graph_n_weights(g);
  struct reference p[1024] = {{0}};
  bool decays[1024];
  if (n > 1024 || optimizer_init(&o, name, g, &e))
    tap_bail("%s", e.msg);
  no_sites(&sites);
  for (size_t k = 0; k < graph_n_params(g); k++)
    for (size_t i = 0; i < graph_param(g, k)->n; i++)
      decays[graph_param(g, k)->offset + i] = strstr(graph_param(g, k)->name, ".weight") != NULL;
  for (size_t i = 0; i < n; i++)
    p[i].w = graph_weights(g)[i];
  for (int t = 1; t <= N_STEPS; t++) {
    fill_gradients(g, t);
    for (size_t i = 0; i < n; i++)
      reference(&p[i], graph_gradients(g)[i], a, decays[i] ? a->weight_decay : 0, t);
    optimizer_step(&o, g, a, &sites, &(struct optimizer_rng){1, (uint64_t)t}, NULL);
  }
  double worst = 0, moved = 0;
  for (size_t i = 0; i < n; i++)
    worst = fmax(worst, fabs(p[i].w - graph_weights(g)[i]));
  struct graph *fresh = new_graph();
  for (size_t i = 0; i < n; i++)
    moved = fmax(moved, fabs(graph_weights(fresh)[i] - graph_weights(g)[i]));
  ok(worst < 5e-6 && moved > 0.01, "%s, momentum %g, nesterov %d, decay %g: within %.1e of the definition", name,
     a->momentum, a->nesterov, a->weight_decay, worst);
  optimizer_done(&o);
  graph_free(g);
  graph_free(fresh);
}

static void test_threads(const char *name)
{
  struct pool *pool = pool_create(3, &e);
  struct site_specs sites;
  struct optimizer_args a = {.lr = 0.1f, .momentum = 0.9f, .beta1 = 0.9f, .beta2 = 0.99f, .eps = 1e-8f};
  struct model_desc wide;
  memset(&wide, 0, sizeof wide);
  strcpy(wide.name, "wide");
  wide.n_inputs = 300;
  wide.n_outputs = 100;
  desc_set_option(desc_add_layer(&wide, "linear", "fc"), "out", 100);
  no_sites(&sites);
  sites.at[SITE_UPDATE] = spec_default(format_find("bf16", &e), ROUND_SR);
  struct graph *g[2];
  for (int k = 0; k < 2; k++) {
    struct optimizer o;
    g[k] = graph_create(&wide, 3, 4, &e);
    if (!g[k] || !pool || optimizer_init(&o, name, g[k], &e))
      tap_bail("%s", e.msg);
    for (int t = 1; t <= 5; t++) {
      fill_gradients(g[k], t);
      optimizer_step(&o, g[k], &a, &sites, &(struct optimizer_rng){1, (uint64_t)t}, k ? pool : NULL);
    }
    optimizer_done(&o);
  }
  ok(memcmp(graph_weights(g[0]), graph_weights(g[1]), graph_n_weights(g[0]) * sizeof(float)) == 0,
     "%s: one thread and three give the same bits", name);
  graph_free(g[0]);
  graph_free(g[1]);
  pool_free(pool);
  desc_done(&wide);
}

static bool on_bf16_grid(const float *x, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    uint32_t u;
    memcpy(&u, &x[i], sizeof u);
    if (u & 0xffffu)
      return false;
  }
  return true;
}

/* Steps far below half an ulp of bf16: to nearest the weights stand still, by sr they move as they should on average.
 * w = 1, lr g = 2^-12, 512 steps: the sum is 1/8 below 1. sr: each of n = 600 weights takes 512 draws at p = 2^-12/2^-8
 * (ulp 2^-8 below 1, near enough), so the mean of all has deviation 2^-8 sqrt(512 p (1-p) / n) < 9e-4; 5 sigma are
 * allowed: false alarm 6e-7 and the seed is fixed. */
static void test_update_site(enum rounding mode, double want, double tolerance)
{
  struct graph *g = new_graph();
  struct optimizer o;
  struct site_specs sites;
  struct optimizer_args a = {.lr = 1};
  size_t n = graph_n_weights(g);
  if (optimizer_init(&o, "sgd", g, &e))
    tap_bail("%s", e.msg);
  no_sites(&sites);
  sites.at[SITE_UPDATE] = spec_default(format_find("bf16", &e), mode);
  for (size_t i = 0; i < n; i++) {
    graph_weights(g)[i] = 1;
    graph_gradients(g)[i] = 0x1p-12f;
  }
  for (int t = 1; t <= 512; t++)
    optimizer_step(&o, g, &a, &sites, &(struct optimizer_rng){5, (uint64_t)t}, NULL);
  double mean = 0;
  for (size_t i = 0; i < n; i++)
    mean += graph_weights(g)[i] / (double)n;
  is_close(mean, want, tolerance, "bf16 weights without a master copy, %s: mean %.5f", rounding_name(mode), mean);
  ok(on_bf16_grid(graph_weights(g), n), "they are on the grid");
  optimizer_done(&o);
  graph_free(g);
}

static void test_state_site(void)
{
  struct graph *g = new_graph();
  struct optimizer o;
  struct site_specs sites;
  struct optimizer_args a = {.lr = 0.1f, .beta1 = 0.9f, .beta2 = 0.99f, .eps = 1e-8f};
  if (optimizer_init(&o, "adamw", g, &e))
    tap_bail("%s", e.msg);
  no_sites(&sites);
  sites.at[SITE_STATE] = spec_default(format_find("bf16", &e), ROUND_SR);
  for (int t = 1; t <= 3; t++) {
    fill_gradients(g, t);
    optimizer_step(&o, g, &a, &sites, &(struct optimizer_rng){5, (uint64_t)t}, NULL);
  }
  ok(on_bf16_grid(o.moment[0], graph_n_weights(g)) && on_bf16_grid(o.moment[1], graph_n_weights(g)),
     "both moments are on the grid of the site state");
  ok(!on_bf16_grid(graph_weights(g), graph_n_weights(g)), "the weights are not");
  optimizer_done(&o);
  graph_free(g);
}

/* One gradient, then none, as behind a ReLU that has died: the moments must reach 0 and not stop among the subnormals,
 * where every further step would be many times slower. 0.9^n falls below 2^-126 within 900 steps. */
static void test_moments_die(const char *name)
{
  struct graph *g = new_graph();
  struct optimizer o;
  struct site_specs sites;
  struct optimizer_args a = {.lr = 0.1f, .momentum = 0.9f, .beta1 = 0.9f, .beta2 = 0.9f, .eps = 1e-8f};
  size_t n = graph_n_weights(g), early = 0, late = 0;
  if (optimizer_init(&o, name, g, &e))
    tap_bail("%s", e.msg);
  no_sites(&sites);
  fill_gradients(g, 1);
  for (int t = 1; t <= 1000; t++) {
    optimizer_step(&o, g, &a, &sites, &(struct optimizer_rng){5, (uint64_t)t}, NULL);
    memset(graph_gradients(g), 0, n * sizeof(float));
    for (int k = 0; k < o.type->n_moments && (t == 100 || t == 1000); k++)
      for (size_t i = 0; i < n; i++)
        *(t == 100 ? &early : &late) += o.moment[k][i] != 0;
  }
  ok(early == n * (size_t)o.type->n_moments, "%s: moments without a gradient decay", name);
  ok(late == 0, "%s: and end at 0 (%zu do not)", name, late);
  optimizer_done(&o);
  graph_free(g);
}

static void test_schedules(void)
{
  is_close(schedule_factor("constant", 0, 500, 10, 1000), 1, 0, "constant");
  is_close(schedule_factor("linear", 0, 250, 10, 1000), 0.75, 1e-15, "linear at a quarter");
  is_close(schedule_factor("cosine", 0, 500, 10, 1000), 0.5, 1e-15, "cosine at half");
  is_close(schedule_factor("cosine", 0, 250, 10, 1000), 0.5 + sqrt(0.125), 1e-15, "cosine at a quarter");
  is_close(schedule_factor("cosine", 0, 2000, 10, 1000), 0, 1e-15, "cosine after its end");
  is_close(schedule_factor("step", 0, 600, 10, 1000), 0.1, 0, "step after half");
  is_close(schedule_factor("step", 0, 750, 10, 1000), 0.01, 0, "step after three quarters");
  is_close(schedule_factor("cosine", 0, 500, 10, 0), 1, 0, "no length: constant");
  is_close(schedule_factor("constant", 0.1, 0, 10, 1000), 0.1, 1e-15, "warm-up: the first step is not 0");
  is_close(schedule_factor("constant", 0.1, 40, 10, 1000), 0.5, 1e-15, "warm-up: half way");
  is_close(schedule_factor("linear", 0.1, 100, 10, 1000), 1, 0, "warm-up: over at its end");
  is_close(schedule_factor("linear", 0.1, 550, 10, 1000), 0.5, 1e-15, "the rest spans what is left");
  is_close(schedule_factor("linear", 1, 999, 1, 1000), 1, 0, "warm-up to the end");
  is_close(lr_scaling_factor("none", 512, 128), 1, 0, "lr_scaling none");
  is_close(lr_scaling_factor("sqrt", 512, 128), 2, 0, "lr_scaling sqrt");
  is_close(lr_scaling_factor("linear", 32, 128), 0.25, 0, "lr_scaling linear");
}

int main(void)
{
  make_model(&desc);
  const struct optimizer_args sgd[] = {
      {.lr = 0.05f},
      {.lr = 0.05f, .momentum = 0.9f},
      {.lr = 0.05f, .momentum = 0.9f, .nesterov = true, .weight_decay = 0.01f},
  };
  for (int i = 0; i < 3; i++)
    compare("sgd", reference_sgd, &sgd[i]);
  const struct optimizer_args adamw[] = {
      {.lr = 0.01f, .beta1 = 0.9f, .beta2 = 0.999f, .eps = 1e-8f},
      {.lr = 0.01f, .beta1 = 0.8f, .beta2 = 0.95f, .eps = 1e-3f, .weight_decay = 0.1f},
  };
  for (int i = 0; i < 2; i++)
    compare("adamw", reference_adamw, &adamw[i]);
  test_threads("sgd");
  test_threads("adamw");
  test_update_site(ROUND_RNE, 1, 1e-12);
  test_update_site(ROUND_SR, 1 - 0.125, 5 * 9e-4);
  test_state_site();
  test_moments_die("sgd");
  test_moments_die("adamw");
  test_schedules();
  desc_done(&desc);
  return tap_done();
}
