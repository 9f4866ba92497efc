/* The driver: finds the tensor's scale, splits the work over threads by rows or by ranges of elements. Results depend
 * neither on the number of threads nor on the kernel chosen. */
#include "config.h"

#include "numeric/quantize.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "numeric/quantize_impl.h"

enum { GRAIN = 4096 }; /* elements below which a second thread costs more than it saves */

/* One look over the whole tensor by several threads. */
struct look_job {
  const struct spec *spec;
  const float *x;
  struct scale_input part[POOL_MAX];
  bool non_finite[POOL_MAX];
};

static void look_part(void *ctx, size_t begin, size_t end, int worker)
{
  struct look_job *l = ctx;
  scale_look(l->spec, l->x + begin, end - begin, &l->part[worker], &l->non_finite[worker]);
}

static struct scale_input look_at_tensor(const struct spec *s, const float *x, size_t n, struct pool *pool,
                                         bool *non_finite)
{
  struct look_job l = {.spec = s, .x = x};
  if (s->scale == SCALE_ABSMEAN) /* a sum: its order may not depend on the threads */
    look_part(&l, 0, n, 0);
  else
    pool_for(pool, n, GRAIN, look_part, &l);
  for (int i = 0; i < POOL_MAX; i++) {
    scale_merge(&l.part[0], &l.part[i]);
    *non_finite |= l.non_finite[i];
  }
  return l.part[0];
}

static void rows_part(void *ctx, size_t begin, size_t end, int worker)
{
  (void)worker;
  for (size_t r = begin; r < end; r++)
    quantize_one_row(ctx, r);
}

static void flat_part(void *ctx, size_t begin, size_t end, int worker)
{
  (void)worker;
  quantize_flat(ctx, begin, end - begin);
}

/* Pushes this step's absmax and gives the largest of those before it; the ring's oldest goes. */
static float delayed_absmax(struct quant_state *st, float now)
{
  enum { N = sizeof st->history / sizeof *st->history };
  float max = st->n_history ? 0 : now;
  for (int i = 0; i < st->n_history && i < N; i++)
    max = fmaxf(max, st->history[i]);
  st->history[st->n_history % N] = now;
  st->n_history = st->n_history + 1 < 2 * N ? st->n_history + 1 : N;
  return max;
}

/* The scales of all columns; caller mem_free()s. */
static float *column_scales(const struct quant_job *j)
{
  float *scale = mem_alloc(j->cols * sizeof *scale);
  for (size_t r = 0; r < j->rows; r++)
    for (size_t c = 0; c < j->cols; c++) {
      float a = fabsf(j->x[r * j->cols + c]);
      scale[c] = a > scale[c] && a < INFINITY ? a : scale[c];
    }
  for (size_t c = 0; c < j->cols; c++) {
    bool silent = j->grid->family == FORMAT_BINARY && scale[c] == 0; /* binary has no zero: marked by a tiny scale */
    struct scale_input in = {.absmax = scale[c]};
    scale[c] = silent ? FLT_TRUE_MIN : scale_of_group(j->spec, j->grid, &in).scale;
  }
  return scale;
}

/* What is one for the whole tensor: its scale, or what its groups' scales need. */
static void set_tensor_scale(struct quant_job *j, struct quant_state *state, struct pool *pool, struct quant_info *info)
{
  const struct spec *s = j->spec;
  bool needs_tensor = scale_needs_input(s) && (s->granularity == GRAIN_TENSOR || s->scale == SCALE_NVFP4);
  struct scale_input in = {0};
  if (needs_tensor || info) {
    bool non_finite = false;
    in = look_at_tensor(s, j->x, j->rows * j->cols, pool, &non_finite);
    if (info)
      *info = (struct quant_info){.absmax = in.absmax, .scale = 1, .non_finite = non_finite};
  }
  if (s->scale == SCALE_DELAYED && state)
    in.absmax = delayed_absmax(state, in.absmax);
  j->nvfp4_amax = (s->clip > 0 ? s->clip : 1) * in.absmax;
  struct scale_result r = {1, 0};
  if (s->granularity == GRAIN_TENSOR || !scale_needs_input(s))
    r = scale_of_group(s, j->grid, &in);
  kernel_plan_init(&j->plan, s, j->grid, r.scale);
  j->plan.zero_point = r.zero_point;
  j->plan.cols = j->cols;
  if (needs_tensor)
    quantize_silence_zeros(&j->plan, &in);
  j->kernel = kernel_pick(&j->plan);
}

static float first_scale(const struct quant_job *j)
{
  struct kernel_plan p;
  float post;
  if (j->column_scale)
    return j->column_scale[0];
  if (!j->group)
    return j->plan.scale;
  quantize_group_plan(j, 0, j->cols < j->group ? j->cols : j->group, &p, &post);
  return p.scale * post;
}

/* All of it but error feedback. y[d] may be x only where there is one draw. */
static void quantize_draws(struct quant_job *j, struct quant_state *state, struct pool *pool, struct quant_info *info)
{
  const struct spec *s = j->spec;
  size_t n = j->rows * j->cols;
  float *columns = NULL;
  j->grid = s->format->family == FORMAT_BLOCK ? s->format->element : s->format;
  j->nvfp4_exact = strcmp(s->format->name, "nvfp4exact") == 0;
  set_tensor_scale(j, state, pool, info);
  if (scale_needs_input(s))
    j->group = s->granularity == GRAIN_ROW ? j->cols : s->granularity == GRAIN_BLOCK ? (size_t)s->block : 0;
  if (s->granularity == GRAIN_COLUMN && scale_needs_input(s))
    j->column_scale = columns = column_scales(j);
  if (info)
    info->scale = first_scale(j);
  if (j->sums || j->group || j->pack || columns)
    pool_for(pool, j->rows, 1 + GRAIN / j->cols, rows_part, j);
  else
    pool_for(pool, n, GRAIN, flat_part, j);
  mem_free(columns);
}

/* z = x + r; y = Q(z); r = z - y (EF-SGD): the sum of what comes out stays within one residual of what went in. */
static void with_feedback(struct quant_job *j, struct quant_state *state, struct pool *pool, struct quant_info *info)
{
  size_t n = j->rows * j->cols;
  if (state->n_residual != n) {
    mem_free(state->residual);
    state->residual = mem_alloc(n * sizeof *state->residual);
    state->n_residual = n;
  }
  float *r = state->residual;
  for (size_t i = 0; i < n; i++)
    r[i] += j->x[i];
  j->x = r;
  quantize_draws(j, state, pool, info);
  for (size_t i = 0; i < n; i++) {
    float left = r[i] - j->y[0][i];
    r[i] = isfinite(left) ? left : 0;
  }
}

void quantize_job(struct quant_job *j, struct quant_state *state, struct pool *pool, struct quant_info *info)
{
  if (info)
    *info = (struct quant_info){.scale = 1};
  if (!j->rows || !j->cols) {
    if (j->sums && j->sums->row_sq)
      memset(j->sums->row_sq, 0, j->rows * sizeof *j->sums->row_sq);
    if (j->sums && j->sums->row_var)
      memset(j->sums->row_var, 0, j->rows * sizeof *j->sums->row_var);
    return;
  }
  if (j->spec->feedback && state && j->n_draws == 1)
    with_feedback(j, state, pool, info);
  else
    quantize_draws(j, state, pool, info);
}

void quantize(const struct spec *s, const float *x, size_t rows, size_t cols, const struct quant_rng *rng, float *y,
              const struct quant_sums *sums, struct quant_state *state, struct pool *pool, struct quant_info *info)
{
  struct quant_job j = {.spec = s, .x = x, .rows = rows, .cols = cols, .n_draws = 1, .y = {y}, .sums = sums};
  if (rng)
    j.rng[0] = *rng;
  quantize_job(&j, state, pool, info);
}

void quantize_two(const struct spec *s, const float *x, size_t rows, size_t cols, const struct quant_rng rng[2],
                  float *const y[2], const struct quant_sums *sums, struct quant_state *state, struct pool *pool,
                  struct quant_info *info)
{
  struct quant_job j = {.spec = s, .x = x, .rows = rows, .cols = cols, .n_draws = 2, .y = {y[0], y[1]}, .sums = sums};
  j.rng[0] = rng[0];
  j.rng[1] = rng[1];
  quantize_job(&j, state, pool, info);
}

void quant_state_done(struct quant_state *st)
{
  mem_free(st->residual);
  memset(st, 0, sizeof *st);
}
