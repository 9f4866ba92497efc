/* Smooth activations: GELU (Hendrycks and Gimpel 2016) and SiLU (Elfwing et al. 2017). Their gradient needs the input,
 * which they therefore leave in its place. */
#include "config.h"

#include <math.h>

#include "base/mem.h"
#include "model/layer.h"

/* y = f(x), and dy/dx at x. */
struct curve {
  float (*value)(float x);
  float (*slope)(float x);
};

#define SQRT_HALF 0.70710678118654752f
#define SQRT_2_PI 0.79788456080286536f /* sqrt(2/pi) */
#define INV_SQRT_2PI 0.39894228040143268f

/* x Phi(x), Phi the normal distribution function. erfc() keeps the digits of the left tail. */
static float gelu_value(float x)
{
  return 0.5f * x * erfcf(-x * SQRT_HALF);
}

static float gelu_slope(float x)
{
  float density = INV_SQRT_2PI * expf(-0.5f * x * x);
  return 0.5f * erfcf(-x * SQRT_HALF) + (density > 0 ? x * density : 0);
}

/* GPT-2's: 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))). */
static float gelu_tanh_value(float x)
{
  return 0.5f * x * (1 + tanhf(SQRT_2_PI * (x + 0.044715f * x * x * x)));
}

static float gelu_tanh_slope(float x)
{
  float t = tanhf(SQRT_2_PI * (x + 0.044715f * x * x * x)), rest = 1 - t * t;
  return 0.5f * (1 + t) + (rest > 0 ? 0.5f * x * rest * SQRT_2_PI * (1 + 3 * 0.044715f * x * x) : 0);
}

/* x / (1 + exp(-x)) */
static float silu_value(float x)
{
  return x / (1 + expf(-x));
}

static float silu_slope(float x)
{
  float s = 1 / (1 + expf(-x)), rest = s * (1 - s);
  return s + (rest > 0 ? x * rest : 0);
}

static const struct curve gelu_curve = {gelu_value, gelu_slope};
static const struct curve gelu_tanh_curve = {gelu_tanh_value, gelu_tanh_slope};
static const struct curve silu_curve = {silu_value, silu_slope};

struct activation {
  const struct curve *curve;
};

static void set_curve(struct layer *l, const struct curve *curve)
{
  struct activation *a = l->own = mem_alloc(sizeof *a);
  a->curve = curve;
  l->out = l->in[0];
}

static int gelu_init(struct layer *l, const struct layer_setup *s, struct err *e)
{
  (void)e;
  set_curve(l, desc_option(s->desc, "tanh", 0) != 0 ? &gelu_tanh_curve : &gelu_curve);
  return 0;
}

static int silu_init(struct layer *l, const struct layer_setup *s, struct err *e)
{
  (void)s, (void)e;
  set_curve(l, &silu_curve);
  return 0;
}

struct curve_job {
  const struct curve *curve;
  const float *x, *dy;
  float *out;
  bool add;
};

static void value_part(void *ctx, size_t begin, size_t end, int worker)
{
  const struct curve_job *j = ctx;
  (void)worker;
  for (size_t i = begin; i < end; i++)
    j->out[i] = j->curve->value(j->x[i]);
}

static void slope_part(void *ctx, size_t begin, size_t end, int worker)
{
  const struct curve_job *j = ctx;
  (void)worker;
  for (size_t i = begin; i < end; i++) {
    float v = j->dy[i] * j->curve->slope(j->x[i]);
    j->out[i] = j->add ? j->out[i] + v : v;
  }
}

/* Values a thread takes at least: some 20 us of exponentials. */
#define GRAIN 2048

static void activation_forward(struct layer *l, const struct layer_call *c)
{
  const struct activation *a = l->own;
  struct curve_job j = {.curve = a->curve, .x = l->x[0], .out = l->y};
  pool_for(c->pass->pool, c->rows * l->n_out, GRAIN, value_part, &j);
}

static void activation_backward(struct layer *l, const struct layer_call *c)
{
  const struct activation *a = l->own;
  struct curve_job j = {a->curve, l->x[0], l->dy, l->dx[0], l->dx_add[0]};
  if (l->dx[0])
    pool_for(c->pass->pool, c->rows * l->n_out, GRAIN, slope_part, &j);
}

const struct layer_type gelu_type = {
    .name = "gelu",
    .help = "x Phi(x); tanh = true for GPT-2's approximation",
    .options = (const char *const[]){"tanh", NULL},
    .n_inputs = 1,
    .init = gelu_init,
    .forward = activation_forward,
    .backward = activation_backward,
};

const struct layer_type silu_type = {
    .name = "silu",
    .help = "x sigmoid(x)",
    .options = (const char *const[]){NULL},
    .n_inputs = 1,
    .init = silu_init,
    .forward = activation_forward,
    .backward = activation_backward,
};
