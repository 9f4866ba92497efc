/* Element-wise kernels: plain loops with restrict, which the compiler vectorises, split over the pool. */
#include "config.h"

#include "tensor/vec.h"

#include <stdint.h>
#include <string.h>

/* Elements below which a second thread does not pay (some 5 us of work). */
#define VEC_GRAIN ((size_t)1 << 14)

/* The grain in rows of `cols` elements, at least one. */
static size_t row_grain(size_t cols)
{
  return cols < VEC_GRAIN ? VEC_GRAIN / (cols ? cols : 1) : 1;
}

struct bias_job {
  float *y;
  const float *bias;
  size_t cols;
};

static void add_bias_row(float *restrict y, const float *restrict bias, size_t cols)
{
  for (size_t c = 0; c < cols; c++)
    y[c] += bias[c];
}

static void add_bias_part(void *ctx, size_t begin, size_t end, int worker)
{
  const struct bias_job *j = ctx;
  (void)worker;
  for (size_t r = begin; r < end; r++)
    add_bias_row(j->y + r * j->cols, j->bias, j->cols);
}

void vec_add_bias(struct pool *pool, float *y, size_t rows, size_t cols, const float *bias)
{
  struct bias_job j = {y, bias, cols};
  pool_for(pool, rows, row_grain(cols), add_bias_part, &j);
}

struct sum_job {
  const float *x;
  float *out;
  size_t rows, cols;
  float alpha, beta;
};

#define SUM_COLS 64 /* columns at a time: one cache line of sums in registers or L1 */
#define SUM_ROWS 32 /* rows summed in fp32 before they go into the double total: long batches lose no digits */

static void sum_columns(const struct sum_job *j, size_t c0, size_t n)
{
  double total[SUM_COLS] = {0};
  for (size_t r0 = 0; r0 < j->rows; r0 += SUM_ROWS) {
    float part[SUM_COLS] = {0};
    size_t r1 = r0 + SUM_ROWS < j->rows ? r0 + SUM_ROWS : j->rows;
    for (size_t r = r0; r < r1; r++)
      for (size_t c = 0; c < n; c++)
        part[c] += j->x[r * j->cols + c0 + c];
    for (size_t c = 0; c < n; c++)
      total[c] += part[c];
  }
  for (size_t c = 0; c < n; c++) {
    float v = (float)(j->alpha * total[c]);
    j->out[c0 + c] = j->beta == 0 ? v : v + j->beta * j->out[c0 + c];
  }
}

static void sum_rows_part(void *ctx, size_t begin, size_t end, int worker)
{
  (void)worker;
  for (size_t c = begin; c < end; c += SUM_COLS)
    sum_columns(ctx, c, end - c < SUM_COLS ? end - c : SUM_COLS);
}

void vec_sum_rows(struct pool *pool, const float *x, size_t rows, size_t cols, float alpha, float beta, float *out)
{
  struct sum_job j = {x, out, rows, cols, alpha, beta};
  size_t grain = SUM_COLS * (1 + row_grain(rows) / SUM_COLS);
  pool_for(pool, cols, grain, sum_rows_part, &j);
}

struct add_job {
  const float *a, *b;
  float *y;
};

static void add_to(float *restrict y, const float *restrict b, size_t n)
{
  for (size_t i = 0; i < n; i++)
    y[i] += b[i];
}

static void add_apart(const float *a, const float *b, float *y, size_t n)
{
  for (size_t i = 0; i < n; i++)
    y[i] = a[i] + b[i];
}

static void add_part(void *ctx, size_t begin, size_t end, int worker)
{
  const struct add_job *j = ctx;
  (void)worker;
  if (j->y == j->a && j->y != j->b)
    add_to(j->y + begin, j->b + begin, end - begin);
  else
    add_apart(j->a + begin, j->b + begin, j->y + begin, end - begin);
}

void vec_add(struct pool *pool, const float *a, const float *b, size_t n, float *y)
{
  struct add_job j = {a, b, y};
  pool_for(pool, n, VEC_GRAIN, add_part, &j);
}

static void copy_part(void *ctx, size_t begin, size_t end, int worker)
{
  const struct add_job *j = ctx;
  (void)worker;
  memcpy(j->y + begin, j->a + begin, (end - begin) * sizeof *j->y);
}

void vec_copy(struct pool *pool, const float *x, size_t n, float *y)
{
  struct add_job j = {x, NULL, y};
  if (x != y)
    pool_for(pool, n, VEC_GRAIN, copy_part, &j);
}

struct relu_job {
  const float *x; /* forward: the input; backward: the output */
  const float *dy;
  float *out;
  bool add;
};

/* In place and from buffer to buffer are two loops: one alone, with a run-time alias check, would be scalar in place.
 */
static void relu_self(float *restrict x, size_t n)
{
  for (size_t i = 0; i < n; i++)
    x[i] = x[i] < 0 ? 0 : x[i];
}

static void relu_copy(const float *restrict x, float *restrict y, size_t n)
{
  for (size_t i = 0; i < n; i++)
    y[i] = x[i] < 0 ? 0 : x[i];
}

static void relu_part(void *ctx, size_t begin, size_t end, int worker)
{
  const struct relu_job *j = ctx;
  (void)worker;
  if (j->x == j->out)
    relu_self(j->out + begin, end - begin);
  else
    relu_copy(j->x + begin, j->out + begin, end - begin);
}

void vec_relu(struct pool *pool, const float *x, size_t n, float *y)
{
  struct relu_job j = {.x = x, .out = y};
  pool_for(pool, n, VEC_GRAIN, relu_part, &j);
}

static void relu_back_self(const float *restrict y, float *restrict d, size_t n)
{
  for (size_t i = 0; i < n; i++)
    d[i] = y[i] <= 0 ? 0 : d[i];
}

static void relu_back_copy(const float *restrict y, const float *restrict dy, float *restrict dx, size_t n)
{
  for (size_t i = 0; i < n; i++)
    dx[i] = y[i] <= 0 ? 0 : dy[i];
}

static void relu_back_add(const float *restrict y, const float *restrict dy, float *restrict dx, size_t n)
{
  for (size_t i = 0; i < n; i++)
    dx[i] += y[i] <= 0 ? 0 : dy[i];
}

static void relu_back_part(void *ctx, size_t begin, size_t end, int worker)
{
  const struct relu_job *j = ctx;
  (void)worker;
  size_t n = end - begin;
  if (j->dy == j->out)
    relu_back_self(j->x + begin, j->out + begin, n);
  else if (j->add)
    relu_back_add(j->x + begin, j->dy + begin, j->out + begin, n);
  else
    relu_back_copy(j->x + begin, j->dy + begin, j->out + begin, n);
}

void vec_relu_back(struct pool *pool, const float *y, const float *dy, size_t n, bool add, float *dx)
{
  struct relu_job j = {.x = y, .dy = dy, .out = dx, .add = add};
  pool_for(pool, n, VEC_GRAIN, relu_back_part, &j);
}

#define SQ_LANES 16   /* independent fp32 sums, so that the loop vectorises at any width with the same bits */
#define SQ_BLOCK 1024 /* elements summed in fp32 */
#define SQ_PARTS 1024 /* double partial sums at most: memory on the stack, a function of n alone */

static inline __attribute__((always_inline)) double sum_sq_lanes(const float *restrict x, size_t n)
{
  float lane[SQ_LANES] = {0};
  size_t i = 0;
  for (; i + SQ_LANES <= n; i += SQ_LANES)
    for (size_t l = 0; l < SQ_LANES; l++)
      lane[l] += x[i + l] * x[i + l];
  for (size_t l = 0; i < n; i++, l++)
    lane[l] += x[i] * x[i];
  double sum = 0;
  for (size_t l = 0; l < SQ_LANES; l++)
    sum += lane[l];
  return sum;
}

typedef double sum_sq_fn(const float *x, size_t n);

static double sum_sq_any(const float *x, size_t n)
{
  return sum_sq_lanes(x, n);
}

/* The same loop in wider registers: 1.6 times as fast on half a million weights, where the sum is made at every step.
 * Same operations in the same order (no contraction), hence the same bits. */
#if defined(__x86_64__)
__attribute__((target("avx2"))) static double sum_sq_avx2(const float *x, size_t n)
{
  return sum_sq_lanes(x, n);
}
#endif

static sum_sq_fn *sum_sq_best(void)
{
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2"))
    return sum_sq_avx2;
#endif
  return sum_sq_any;
}

struct sq_job {
  const float *x;
  size_t n, part_len;
  sum_sq_fn *block;
  double part[SQ_PARTS];
};

static void sum_sq_parts(void *ctx, size_t begin, size_t end, int worker)
{
  struct sq_job *j = ctx;
  (void)worker;
  for (size_t p = begin; p < end; p++) {
    size_t i0 = p * j->part_len, i1 = i0 + j->part_len < j->n ? i0 + j->part_len : j->n;
    double sum = 0;
    for (size_t i = i0; i < i1; i += SQ_BLOCK)
      sum += j->block(j->x + i, i1 - i < SQ_BLOCK ? i1 - i : SQ_BLOCK);
    j->part[p] = sum;
  }
}

double vec_sum_sq(struct pool *pool, const float *x, size_t n)
{
  struct sq_job j = {.x = x, .n = n, .block = sum_sq_best()};
  size_t blocks = (n + SQ_BLOCK - 1) / SQ_BLOCK;
  j.part_len = SQ_BLOCK * ((blocks + SQ_PARTS - 1) / SQ_PARTS);
  size_t n_parts = n ? (n + j.part_len - 1) / j.part_len : 0;
  size_t grain = 2 * VEC_GRAIN / (j.part_len ? j.part_len : 1);
  pool_for(pool, n_parts, grain ? grain : 1, sum_sq_parts, &j);
  double sum = 0;
  for (size_t p = 0; p < n_parts; p++)
    sum += j.part[p];
  return sum;
}

bool vec_all_finite(const float *x, size_t n)
{
  for (size_t i0 = 0; i0 < n; i0 += SQ_BLOCK) {
    size_t i1 = i0 + SQ_BLOCK < n ? i0 + SQ_BLOCK : n;
    float zero = 0; /* 0 * x is NaN for NaN and Inf alone */
    for (size_t i = i0; i < i1; i++)
      zero += 0 * x[i];
    if (zero != 0)
      return false;
  }
  return true;
}
