/* The driver: finds scales group by group, hands runs of elements to a kernel, threads over rows. Results depend
 * neither on the number of threads nor on the kernel chosen. */
#include "config.h"

#include "numeric/quantize.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/mem.h"
#include "numeric/kernel.h"
#include "numeric/scale.h"

struct job {
  const struct spec *spec;
  const struct format *grid;
  const float *x;
  float *y;
  size_t rows, cols;
  const struct quant_sums *sums;
  struct kernel_plan plan; /* scale of the whole tensor; groups make their own copy */
  kernel_fn *kernel;
  uint64_t first_element;
  bool per_row;
  size_t block; /* elements a scale within a row; 0: none */
  float part_absmax[POOL_MAX];
  bool part_bad[POOL_MAX];
};

static void absmax_part(void *ctx, size_t begin, size_t end, int worker)
{
  struct job *j = ctx;
  bool bad = false;
  j->part_absmax[worker] = kernel_absmax(j->x + begin, end - begin, &bad);
  j->part_bad[worker] = bad;
}

static float absmax_of(struct job *j, struct pool *pool, bool *bad)
{
  float max = 0;
  memset(j->part_absmax, 0, sizeof j->part_absmax);
  pool_for(pool, j->rows * j->cols, 4096, absmax_part, j);
  for (int i = 0; i < POOL_MAX; i++) {
    max = fmaxf(max, j->part_absmax[i]);
    *bad |= j->part_bad[i];
  }
  return max;
}

static void run_group(const struct job *j, size_t offset, size_t n, size_t column, struct kernel_sums *sums)
{
  bool bad = false;
  struct kernel_plan plan = j->plan;
  float scale = scale_from_absmax(j->spec, j->grid, kernel_absmax(j->x + offset, n, &bad));
  kernel_plan_init(&plan, j->spec, j->grid, scale);
  plan.key = j->plan.key;
  plan.step = j->plan.step;
  plan.cols = j->plan.cols;
  plan.shift = j->plan.shift;
  struct kernel_sums own = {0};
  j->kernel(&plan, j->x + offset, j->y + offset, n, j->first_element + offset, (unsigned)(column % KERNEL_LANES),
            sums ? &own : NULL);
  for (int i = 0; sums && i < KERNEL_LANES; i++) {
    sums->sq[i] += own.sq[i];
    sums->var[i] += own.var[i] * (scale * scale);
  }
}

static void store_sums(const struct job *j, size_t row, const struct kernel_sums *sums, float scale)
{
  if (j->sums->row_sq)
    j->sums->row_sq[row] = kernel_lane_sum(sums->sq);
  if (j->sums->row_var)
    j->sums->row_var[row] = kernel_lane_sum(sums->var) * (scale * scale);
}

static void run_row(const struct job *j, size_t row)
{
  struct kernel_sums sums = {0}, *want = j->sums ? &sums : NULL;
  size_t offset = row * j->cols, step = j->block ? j->block : j->cols;
  if (j->per_row) {
    for (size_t c = 0; c < j->cols; c += step)
      run_group(j, offset + c, j->cols - c < step ? j->cols - c : step, c, want);
  } else {
    j->kernel(&j->plan, j->x + offset, j->y + offset, j->cols, j->first_element + offset, 0, want);
  }
  if (want)
    store_sums(j, row, want, j->per_row ? 1 : j->plan.scale);
}

static void rows_part(void *ctx, size_t begin, size_t end, int worker)
{
  const struct job *j = ctx;
  (void)worker;
  for (size_t r = begin; r < end; r++)
    run_row(j, r);
}

static void flat_part(void *ctx, size_t begin, size_t end, int worker)
{
  const struct job *j = ctx;
  (void)worker;
  j->kernel(&j->plan, j->x + begin, j->y + begin, end - begin, j->first_element + begin, 0, NULL);
}

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

void quantize(const struct spec *s, const float *x, size_t rows, size_t cols, const struct quant_rng *rng, float *y,
              const struct quant_sums *sums, struct quant_state *state, struct pool *pool, struct quant_info *info)
{
  size_t n = rows * cols;
  struct job j = {.spec = s, .grid = s->format->element ? s->format->element : s->format, .x = x, .y = y, .rows = rows,
                  .cols = cols, .sums = sums};
  if (info)
    *info = (struct quant_info){.scale = 1};
  if (!n)
    return;
  bool bad = false;
  float absmax = 0, scale = 1;
  j.per_row = s->granularity == GRAIN_ROW || s->granularity == GRAIN_BLOCK;
  j.block = s->granularity == GRAIN_BLOCK ? (size_t)s->block : 0;
  if (!j.per_row && s->scale != SCALE_NONE && s->scale != SCALE_FIXED) {
    absmax = absmax_of(&j, pool, &bad);
    scale = scale_from_absmax(s, j.grid, s->scale == SCALE_DELAYED && state ? delayed_absmax(state, absmax) : absmax);
  } else if (s->scale == SCALE_FIXED) {
    scale = s->fixed_scale;
  }
  kernel_plan_init(&j.plan, s, j.grid, scale);
  j.plan.cols = cols;
  if (rng) {
    j.plan.key = rng->key;
    j.plan.step = rng->step;
    j.plan.shift = rng->key.k[0] ^ rng->key.k[1];
    j.first_element = rng->first_element;
  }
  j.kernel = kernel_pick(&j.plan);
  if (sums || j.per_row)
    pool_for(pool, rows, 1 + 4096 / cols, rows_part, &j);
  else
    pool_for(pool, n, 4096, flat_part, &j);
  if (info)
    *info = (struct quant_info){.absmax = absmax, .scale = scale, .non_finite = bad};
}

struct sq_job {
  const float *x;
  size_t cols;
  float *row_sq;
};

static void sq_part(void *ctx, size_t begin, size_t end, int worker)
{
  const struct sq_job *j = ctx;
  (void)worker;
  for (size_t r = begin; r < end; r++) {
    float lane[KERNEL_LANES] = {0};
    const float *x = j->x + r * j->cols;
    size_t c = 0;
    for (; c + KERNEL_LANES <= j->cols; c += KERNEL_LANES)
      for (int i = 0; i < KERNEL_LANES; i++)
        lane[i] += x[c + (size_t)i] * x[c + (size_t)i];
    for (int i = 0; c < j->cols; c++, i++)
      lane[i] += x[c] * x[c];
    j->row_sq[r] = kernel_lane_sum(lane);
  }
}

void quantize_row_sq(const float *x, size_t rows, size_t cols, float *row_sq, struct pool *pool)
{
  struct sq_job j = {x, cols, row_sq};
  if (rows && cols)
    pool_for(pool, rows, 1 + 4096 / cols, sq_part, &j);
  else
    memset(row_sq, 0, rows * sizeof *row_sq);
}

void quant_state_done(struct quant_state *st)
{
  mem_free(st->residual);
  memset(st, 0, sizeof *st);
}
