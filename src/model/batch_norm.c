/* Batch normalisation (Ioffe and Szegedy 2015), of feature vectors and of images: every channel is brought to mean 0
 * and variance 1 over the rows of the pass and the positions of the image, then scaled and shifted by what is learnt.
 *
 * Evaluation uses running statistics. They are buffers: parameters that no optimizer touches, saved with the weights.
 * A training pass prepares their new values, graph_commit() puts them in force when the step is done; so a step that is
 * undone leaves them as they were. Each channel is one thread's work, so nothing depends on the number of threads.
 *
 * Samples of a batch meet in the statistics: what layers before this one report as a sample's gradient is its term in
 * the batch's gradient, with the statistics as they are. */
#include "config.h"

#include <math.h>

#include "base/mem.h"
#include "model/layer.h"
#include "tensor/vec.h"

enum { WEIGHT, BIAS, RUNNING_MEAN, RUNNING_VAR }; /* parameters, in order */

struct batch_norm {
  size_t channels, positions;
  double eps, momentum;
  float *mean, *inv_std;     /* of the last pass that was no evaluation */
  float *new_mean, *new_var; /* what the running statistics become; valid where `pending` */
  double *norm2;             /* of the last backward pass: sum over samples of squared gradients */
  bool pending;
};

static int batch_norm_init(struct layer *l, const struct layer_setup *s, size_t channels, struct err *e)
{
  size_t floats = 4 * channels * sizeof(float);
  struct batch_norm *n = l->own = mem_alloc(sizeof *n + channels * sizeof *n->norm2 + floats);
  n->norm2 = (double *)(n + 1);
  n->mean = (float *)(n->norm2 + channels);
  n->inv_std = n->mean + channels;
  n->new_mean = n->inv_std + channels;
  n->new_var = n->new_mean + channels;
  n->channels = channels;
  n->positions = l->n_in / channels;
  l->out = l->in[0];
  layer_add_param(l, s, "weight", 1, &channels, false);
  layer_add_param(l, s, "bias", 1, &channels, false);
  layer_add_buffer(l, s, "running_mean", channels);
  layer_add_buffer(l, s, "running_var", channels);
  return layer_real_option(l, s, "eps", 1e-5, 1e-30, 1, &n->eps, e) ||
                 layer_real_option(l, s, "momentum", 0.1, 0, 1, &n->momentum, e)
             ? -1
             : 0;
}

static int batch_norm1d_init(struct layer *l, const struct layer_setup *s, struct err *e)
{
  if (l->in[0].rank != 1)
    return err_set(e, "%s takes a list of values but %s gives an image: use batch_norm2d", l->name, s->input_name[0]);
  return batch_norm_init(l, s, l->n_in, e);
}

static int batch_norm2d_init(struct layer *l, const struct layer_setup *s, struct err *e)
{
  return layer_image_input(l, s, e) ? -1 : batch_norm_init(l, s, l->in[0].dim[0], e);
}

static void batch_norm_init_weights(struct layer *l, uint64_t seed)
{
  const struct batch_norm *n = l->own;
  (void)seed;
  for (size_t c = 0; c < n->channels; c++) {
    l->param[WEIGHT].w[c] = l->param[RUNNING_VAR].w[c] = 1;
    l->param[BIAS].w[c] = l->param[RUNNING_MEAN].w[c] = 0;
  }
}

struct norm_job {
  const struct layer *l;
  const struct layer_call *c;
};

/* Sixteen interleaved sums in fp32 over one run of values of a channel; runs are added up in double. */
enum { LANES = 16 };

static inline float lanes_sum(const float lane[LANES])
{
  float sum = 0;
  for (int i = 0; i < LANES; i++)
    sum += lane[i];
  return sum;
}

static float run_sum(const float *restrict x, size_t n)
{
  float lane[LANES] = {0};
  size_t i = 0;
  for (; i + LANES <= n; i += LANES)
    for (size_t k = 0; k < LANES; k++)
      lane[k] += x[i + k];
  for (size_t k = 0; i < n; i++, k++)
    lane[k] += x[i];
  return lanes_sum(lane);
}

static float run_sum_sq(const float *restrict x, float mean, size_t n)
{
  float lane[LANES] = {0};
  size_t i = 0;
  for (; i + LANES <= n; i += LANES)
    for (size_t k = 0; k < LANES; k++)
      lane[k] += (x[i + k] - mean) * (x[i + k] - mean);
  for (size_t k = 0; i < n; i++, k++)
    lane[k] += (x[i] - mean) * (x[i] - mean);
  return lanes_sum(lane);
}

/* sum of g (x - mean) */
static float run_sum_product(const float *restrict g, const float *restrict x, float mean, size_t n)
{
  float lane[LANES] = {0};
  size_t i = 0;
  for (; i + LANES <= n; i += LANES)
    for (size_t k = 0; k < LANES; k++)
      lane[k] += g[i + k] * (x[i + k] - mean);
  for (size_t k = 0; i < n; i++, k++)
    lane[k] += g[i] * (x[i] - mean);
  return lanes_sum(lane);
}

/* Mean, then the mean of the squares around it: nothing cancels. */
static void channel_moments(const struct norm_job *j, size_t c, double *mean, double *var)
{
  const struct batch_norm *n = j->l->own;
  const float *x = j->l->x[0] + c * n->positions;
  double sum = 0, sq = 0, count = (double)j->c->rows * (double)n->positions;
  for (size_t i = 0; i < j->c->rows; i++)
    sum += run_sum(x + i * j->l->n_in, n->positions);
  *mean = sum / count;
  for (size_t i = 0; i < j->c->rows; i++)
    sq += run_sum_sq(x + i * j->l->n_in, (float)*mean, n->positions);
  *var = sq / count;
}

/* As PyTorch: the running variance is the unbiased one. A further micro-batch of the step goes on from the last. */
static void prepare_running(const struct norm_job *j, size_t c, double mean, double var)
{
  const struct batch_norm *n = j->l->own;
  double count = (double)j->c->rows * (double)n->positions, m = n->momentum;
  bool again = n->pending && j->c->pass->accumulate;
  double old_mean = again ? n->new_mean[c] : j->l->param[RUNNING_MEAN].w[c];
  double old_var = again ? n->new_var[c] : j->l->param[RUNNING_VAR].w[c];
  if (count > 1)
    var *= count / (count - 1);
  n->new_mean[c] = (float)((1 - m) * old_mean + m * mean);
  n->new_var[c] = (float)((1 - m) * old_var + m * var);
}

/* y = a x + b over the channel */
static void channel_scale(const struct norm_job *j, size_t c, float mean, float inv_std)
{
  const struct batch_norm *n = j->l->own;
  float a = j->l->param[WEIGHT].w[c] * inv_std, b = j->l->param[BIAS].w[c];
  for (size_t i = 0; i < j->c->rows; i++) {
    size_t at = i * j->l->n_in + c * n->positions;
    const float *restrict x = j->l->x[0] + at;
    float *restrict y = j->l->y + at;
    for (size_t p = 0; p < n->positions; p++)
      y[p] = a * (x[p] - mean) + b;
  }
}

static void forward_channels(void *ctx, size_t begin, size_t end, int worker)
{
  const struct norm_job *j = ctx;
  const struct batch_norm *n = j->l->own;
  (void)worker;
  for (size_t c = begin; c < end; c++) {
    double mean = j->l->param[RUNNING_MEAN].w[c], var = j->l->param[RUNNING_VAR].w[c];
    if (!j->c->pass->evaluate) {
      channel_moments(j, c, &mean, &var);
      n->mean[c] = (float)mean;
      n->inv_std[c] = (float)(1 / sqrt(var + n->eps));
      if (pass_trains(j->c->pass))
        prepare_running(j, c, mean, var);
    }
    channel_scale(j, c, (float)mean, (float)(1 / sqrt(var + n->eps)));
  }
}

/* dx = gamma / sigma (G - mean(G) - xhat mean(G xhat)), means over all values of the channel. */
static void channel_dx(const struct norm_job *j, size_t c, double sum_g, double sum_gx)
{
  const struct batch_norm *n = j->l->own;
  double count = (double)j->c->rows * (double)n->positions;
  float mean = n->mean[c], a = j->l->param[WEIGHT].w[c] * n->inv_std[c];
  float mean_g = (float)(sum_g / count), slope = (float)(n->inv_std[c] * sum_gx / count);
  for (size_t i = 0; i < j->c->rows; i++) {
    size_t at = i * j->l->n_in + c * n->positions;
    const float *restrict x = j->l->x[0] + at, *restrict g = j->l->dy + at;
    float *restrict dx = j->l->dx[0] + at;
    if (j->l->dx_add[0])
      for (size_t p = 0; p < n->positions; p++)
        dx[p] += a * (g[p] - mean_g - slope * (x[p] - mean));
    else
      for (size_t p = 0; p < n->positions; p++)
        dx[p] = a * (g[p] - mean_g - slope * (x[p] - mean));
  }
}

static void backward_channels(void *ctx, size_t begin, size_t end, int worker)
{
  const struct norm_job *j = ctx;
  const struct batch_norm *n = j->l->own;
  const struct pass *p = j->c->pass;
  (void)worker;
  for (size_t c = begin; c < end; c++) {
    double sum_g = 0, sum_gx = 0, norm2 = 0;
    for (size_t i = 0; i < j->c->rows; i++) {
      size_t at = i * j->l->n_in + c * n->positions;
      double g = run_sum(j->l->dy + at, n->positions);
      double gx = n->inv_std[c] * run_sum_product(j->l->dy + at, j->l->x[0] + at, n->mean[c], n->positions);
      sum_g += g;
      sum_gx += gx;
      norm2 += g * g + gx * gx;
    }
    float *dw = &j->l->param[WEIGHT].g[c], *db = &j->l->param[BIAS].g[c];
    *dw = (float)(sum_gx / (double)p->global_batch) + (p->accumulate ? *dw : 0);
    *db = (float)(sum_g / (double)p->global_batch) + (p->accumulate ? *db : 0);
    n->norm2[c] = norm2;
    if (j->l->dx[0])
      channel_dx(j, c, sum_g, sum_gx);
  }
}

/* Channels a thread takes at least: some 10 us. */
static size_t grain(const struct norm_job *j)
{
  const struct batch_norm *n = j->l->own;
  return 1 + 8192 / (j->c->rows * n->positions + 1);
}

static void batch_norm_forward(struct layer *l, const struct layer_call *c)
{
  struct batch_norm *n = l->own;
  struct norm_job j = {l, c};
  pool_for(c->pass->pool, n->channels, grain(&j), forward_channels, &j);
  if (pass_trains(c->pass))
    n->pending = true;
}

/* Nothing is rounded here. */
static void batch_norm_sums(struct layer *l, const struct layer_call *c)
{
  const struct batch_norm *n = l->own;
  struct layer_sums *s = &l->sums;
  if (!c->pass->accumulate)
    *s = (struct layer_sums){0};
  for (size_t i = 0; i < n->channels; i++)
    s->norm2_samples += n->norm2[i];
}

static void batch_norm_backward(struct layer *l, const struct layer_call *c)
{
  const struct batch_norm *n = l->own;
  struct norm_job j = {l, c};
  pool_for(c->pass->pool, n->channels, grain(&j), backward_channels, &j);
  if (c->pass->want_sums)
    batch_norm_sums(l, c);
}

static void batch_norm_commit(struct layer *l)
{
  struct batch_norm *n = l->own;
  for (size_t c = 0; c < n->channels && n->pending; c++) {
    l->param[RUNNING_MEAN].w[c] = n->new_mean[c];
    l->param[RUNNING_VAR].w[c] = n->new_var[c];
  }
  n->pending = false;
}

const struct layer_type batch_norm1d_type = {
    .name = "batch_norm1d",
    .help = "batch normalisation of every value",
    .options = (const char *const[]){"eps", "momentum", NULL},
    .n_inputs = 1,
    .init = batch_norm1d_init,
    .init_weights = batch_norm_init_weights,
    .forward = batch_norm_forward,
    .backward = batch_norm_backward,
    .commit = batch_norm_commit,
};

const struct layer_type batch_norm2d_type = {
    .name = "batch_norm2d",
    .help = "batch normalisation of every channel of images",
    .options = (const char *const[]){"eps", "momentum", NULL},
    .n_inputs = 1,
    .init = batch_norm2d_init,
    .init_weights = batch_norm_init_weights,
    .forward = batch_norm_forward,
    .backward = batch_norm_backward,
    .commit = batch_norm_commit,
};
