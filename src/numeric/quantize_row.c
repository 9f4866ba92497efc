/* What happens to a run of a tensor: the scale of each group, pieces that stay in cache handed to a kernel, and the
 * sums of a row, the same whatever the kernel and the number of threads. */
#include "config.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "numeric/kernel_simd.h"
#include "numeric/quantize_impl.h"
#include "numeric/round_odd.h"

/* Elements a kernel call: input and two outputs stay in the first-level cache's reach. Lanes of sums are added up at
 * least this often, in double from there on, so that long rows keep their precision. */
enum { PIECE = 8192 };

struct row_sums {
  struct kernel_sums lane;
  size_t n_in_lanes;
  double sq, var;
};

static void flush_lanes(struct row_sums *s)
{
  s->sq += kernel_lane_sum(s->lane.sq);
  s->var += kernel_lane_sum(s->lane.var);
  memset(&s->lane, 0, sizeof s->lane);
  s->n_in_lanes = 0;
}

/* unit: what an element's value is multiplied by after rounding, whose square the variance lacks. */
static void add_sums(struct row_sums *to, const struct kernel_sums *own, size_t n, float unit)
{
  for (int i = 0; i < KERNEL_LANES; i++) {
    to->lane.sq[i] += own->sq[i];
    to->lane.var[i] += own->var[i] * unit * unit;
  }
  to->n_in_lanes += n;
  if (to->n_in_lanes >= PIECE)
    flush_lanes(to);
}

void quantize_keep_finite(const struct kernel_plan *p, float post, float *y, size_t n)
{
  float top = p->uniform ? fmaxf(p->code_hi - p->zero_point, p->zero_point - p->code_lo) : p->max_value;
  if (top * p->scale * post <= FLT_MAX || (!p->uniform && p->overflow != p->max_value))
    return;
  for (size_t i = 0; i < n; i++)
    y[i] = isinf(y[i]) ? copysignf(FLT_MAX, y[i]) : y[i];
}

static void take_draw(const struct quant_job *j, int draw, struct kernel_plan *p)
{
  p->key = j->rng[draw].key;
  p->step = j->rng[draw].step;
  if (p->rounding != ROUND_QR)
    return;
  /* another shift each step: with the same thresholds at every step an element would always go the same way */
  const uint32_t counter[4] = {0, 0, (uint32_t)p->step, (uint32_t)(p->step >> 32)};
  uint32_t word[4];
  philox4x32(counter, p->key.k, RNG_SITE_ROUNDS, word);
  p->shift = word[0];
}

/* What follows the kernel: codes are packed, or values brought to their final form. */
static void finish(const struct quant_job *j, const struct kernel_plan *p, float post, float *y, size_t offset,
                   size_t n)
{
  for (size_t i = 0; p->binary && p->scale == 0 && i < n; i++)
    y[i] += 0.0f; /* of -0 and 0 makes 0; NaN stays */
  if (j->pack) {
    pack_piece(j, p, y, offset, n);
    return;
  }
  for (size_t i = 0; post != 1 && i < n; i++)
    y[i] *= post;
  quantize_keep_finite(p, post, y, n);
}

/* The same where every column has its scale; of a column of zeros it is below FLT_MIN (column_scales()). */
static void finish_columns(const struct quant_job *j, const struct kernel_plan *p, float *y, size_t n, size_t column)
{
  for (size_t i = 0; i < n; i++) {
    if (p->binary && j->column_scale[column + i] < FLT_MIN)
      y[i] = y[i] * 0 + 0.0f;
    if (isinf(y[i]) && (p->uniform || p->overflow == p->max_value))
      y[i] = copysignf(FLT_MAX, y[i]);
  }
}

static void piece(const struct quant_job *j, struct kernel_plan *p, float post, size_t offset, size_t n, size_t column,
                  struct row_sums *sums)
{
  float codes[PIECE]; /* values on their way to pack_piece() */
  kernel_fn *kernel = j->group ? kernel_pick(p) : j->kernel;
  for (int d = 0; d < j->n_draws; d++) {
    struct kernel_sums own = {0}, *want = sums && d == 0 ? &own : NULL;
    float *y = j->pack ? codes : j->y[d] + offset;
    uint64_t element = j->rng[d].first_element + offset;
    unsigned lane = (unsigned)(column % KERNEL_LANES);
    take_draw(j, d, p);
    if (j->column_scale) {
      kernel_columns(p, j->column_scale + column, j->x + offset, y, n, element, lane, want);
      finish_columns(j, p, y, n, column);
    } else {
      kernel(p, j->x + offset, y, n, element, lane, want);
      finish(j, p, post, y, offset, n);
    }
    if (want)
      add_sums(sums, want, n, j->column_scale ? 1 : p->scale * post);
  }
}

/* x / (block scale * tensor scale) as if exactly, the result rounded once. */
static void nvfp4_exact_block(const struct quant_job *j, const struct kernel_plan *plan, double scale, size_t offset,
                              size_t n, size_t column, struct row_sums *sums)
{
  enum { BLOCK = 16 };
  float t[BLOCK], q[BLOCK];
  struct kernel_plan p = *plan;
  kernel_plan_set_scale(&p, 1);
  for (size_t i = 0; i < n; i++)
    t[i] = scale > 0 ? round_to_odd((double)j->x[offset + i] / scale) : j->x[offset + i] * 0;
  for (int d = 0; d < j->n_draws; d++) {
    struct kernel_sums own = {0};
    take_draw(j, d, &p);
    kernel_scalar(&p, t, q, n, j->rng[d].first_element + offset, (unsigned)(column % KERNEL_LANES), &own);
    if (sums && d == 0) {
      memset(own.sq, 0, sizeof own.sq);
      for (size_t i = 0; i < n; i++)
        own.sq[(column + i) % KERNEL_LANES] += j->x[offset + i] * j->x[offset + i];
      add_sums(sums, &own, n, (float)scale);
    }
    if (j->pack)
      pack_piece(j, &p, q, offset, n);
    for (size_t i = 0; !j->pack && i < n; i++)
      j->y[d][offset + i] = scale > 0 ? (float)((double)q[i] * scale) : q[i];
  }
}

void quantize_group_plan(const struct quant_job *j, size_t offset, size_t n, struct kernel_plan *p, float *post)
{
  bool non_finite = false;
  struct scale_input in;
  *p = j->plan;
  *post = 1;
  if (j->spec->scale == SCALE_NVFP4) {
    float clip = j->spec->clip > 0 ? j->spec->clip : 1;
    struct nvfp4_scale s =
        nvfp4_scale_of(j->nvfp4_amax, clip * kernel_absmax(j->x + offset, n, &non_finite), j->nvfp4_exact);
    p->scale = s.block;
    p->inv_scale = s.encode;
    p->scale_is_pow2 = true;
    *post = s.tensor;
    return;
  }
  if (!scale_needs_input(j->spec))
    return;
  scale_look(j->spec, j->x + offset, n, &in, &non_finite);
  struct scale_result r = scale_of_group(j->spec, j->grid, &in);
  kernel_plan_set_scale(p, r.scale);
  p->zero_point = r.zero_point;
  quantize_silence_zeros(p, &in);
}

void quantize_silence_zeros(struct kernel_plan *p, const struct scale_input *in)
{
  if (p->binary && in->absmax == 0)
    p->scale = 0;
}

static void group(const struct quant_job *j, size_t offset, size_t n, size_t column, struct row_sums *sums)
{
  struct kernel_plan p;
  float post = 1;
  if (j->group)
    quantize_group_plan(j, offset, n, &p, &post);
  else
    p = j->plan;
  if (j->pack && j->group)
    pack_scale(j, &p, offset);
  if (j->nvfp4_exact) {
    nvfp4_exact_block(j, &p, (double)p.scale * (double)post, offset, n, column, sums);
    return;
  }
  for (size_t at = 0; at < n; at += PIECE)
    piece(j, &p, post, offset + at, n - at < PIECE ? n - at : PIECE, column + at, sums);
}

/* Whole blocks whose scales a kernel finds by itself. Returns how many of n elements it did. */
static size_t whole_blocks(const struct quant_job *j, kernel_blocks_fn *kernel, size_t offset, size_t n)
{
  uint64_t element = j->rng[0].first_element + offset;
  n -= n % j->group;
  if (element % 16 || !n)
    return 0;
  struct kernel_plan p = j->plan;
  take_draw(j, 0, &p);
  return kernel(&p, j->spec->scale, j->x + offset, j->y[0] + offset, n, element);
}

static kernel_blocks_fn *blocks_kernel(const struct quant_job *j)
{
  bool clips = j->spec->clip > 0 && j->spec->clip != 1;
  if (!j->group || j->sums || j->pack || j->n_draws > 1 || clips || j->nvfp4_exact)
    return NULL;
  return kernel_pick_blocks(&j->plan, j->spec->scale, j->group);
}

/* The common row in one kernel call: one scale, one draw, lanes that need no flushing on the way. Short rows are many,
 * so that what surrounds the kernel counts; the sums are those of the general way. */
static bool row_is_plain(const struct quant_job *j)
{
  return j->sums && !j->group && !j->pack && !j->column_scale && j->n_draws == 1 && j->cols <= PIECE;
}

static void plain_row(const struct quant_job *j, size_t row)
{
  struct kernel_plan p = j->plan;
  struct kernel_sums own = {0};
  size_t offset = row * j->cols;
  take_draw(j, 0, &p);
  j->kernel(&p, j->x + offset, j->y[0] + offset, j->cols, j->rng[0].first_element + offset, 0, &own);
  finish(j, &p, 1, j->y[0] + offset, offset, j->cols);
  if (j->sums->row_sq)
    j->sums->row_sq[row] = kernel_lane_sum(own.sq);
  if (!j->sums->row_var)
    return;
  for (int i = 0; i < KERNEL_LANES; i++)
    own.var[i] = own.var[i] * p.scale * p.scale;
  j->sums->row_var[row] = kernel_lane_sum(own.var);
}

void quantize_one_row(const struct quant_job *j, size_t row)
{
  if (row_is_plain(j)) {
    plain_row(j, row);
    return;
  }
  struct row_sums sums = {0}, *want = j->sums ? &sums : NULL;
  size_t step = j->group ? j->group : j->cols;
  if (j->pack)
    pack_begin_row(j, row);
  kernel_blocks_fn *blocks = blocks_kernel(j);
  for (size_t c = 0; c < j->cols;) {
    if (blocks)
      c += whole_blocks(j, blocks, row * j->cols + c, j->cols - c);
    size_t n = j->cols - c < step ? j->cols - c : step; /* 0 when all is done */
    if (n)
      group(j, row * j->cols + c, n, c, want);
    c += n;
  }
  if (!want)
    return;
  flush_lanes(want);
  if (j->sums->row_sq)
    j->sums->row_sq[row] = (float)want->sq;
  if (j->sums->row_var)
    j->sums->row_var[row] = (float)want->var;
}

void quantize_flat(const struct quant_job *j, size_t offset, size_t n)
{
  size_t step = j->n_draws > 1 ? PIECE : n; /* two draws share a read; one need not be cut up */
  struct kernel_plan p = j->plan;
  for (size_t at = 0; at < n; at += step)
    piece(j, &p, 1, offset + at, n - at < step ? n - at : step, 0, NULL);
}

struct sq_job {
  const float *x;
  size_t cols;
  float *row_sq;
};

static inline __attribute__((always_inline)) float row_sq_lanes(const float *restrict x, size_t cols)
{
  struct row_sums s = {0};
  for (size_t at = 0; at < cols; at += PIECE) {
    size_t n = cols - at < PIECE ? cols - at : PIECE, c = 0;
    const float *v = x + at;
    for (; c + KERNEL_LANES <= n; c += KERNEL_LANES)
      for (size_t i = 0; i < KERNEL_LANES; i++)
        s.lane.sq[i] += v[c + i] * v[c + i];
    for (size_t i = 0; c < n; c++, i++)
      s.lane.sq[i] += v[c] * v[c];
    flush_lanes(&s);
  }
  return (float)s.sq;
}

static float row_sq_any(const float *x, size_t cols)
{
  return row_sq_lanes(x, cols);
}

/* The same operations in the same order in wider registers: the same bits. */
#ifdef HAVE_X86_SIMD
__attribute__((target("avx2"))) static float row_sq_avx2(const float *x, size_t cols)
{
  return row_sq_lanes(x, cols);
}
#endif

static float row_sq(const float *x, size_t cols)
{
#ifdef HAVE_X86_SIMD
  if (__builtin_cpu_supports("avx2"))
    return row_sq_avx2(x, cols);
#endif
  return row_sq_any(x, cols);
}

static void sq_part(void *ctx, size_t begin, size_t end, int worker)
{
  const struct sq_job *j = ctx;
  (void)worker;
  for (size_t r = begin; r < end; r++)
    j->row_sq[r] = row_sq(j->x + r * j->cols, j->cols);
}

void quantize_row_sq(const float *x, size_t rows, size_t cols, float *row_sq, struct pool *pool)
{
  struct sq_job j = {x, cols, row_sq};
  pool_for(pool, rows, 1 + 4096 / (cols + 1), sq_part, &j);
}
