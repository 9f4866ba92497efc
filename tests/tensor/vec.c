/* Element-wise kernels against plain loops, and independence of the number of threads. */
#include "config.h"

#include "tensor/vec.h"

#include <math.h>
#include <string.h>

#include "base/pool.h"
#include "base/rng.h"
#include "../tap/tap.h"

#define N 300001
static float x[N], y[N], z[N], out[3][N];

static void fill(float *v, size_t n, uint32_t id)
{
  struct rng r;
  rng_init(&r, rng_derive(3, RNG_USER, id, 0, 0), 0);
  for (size_t i = 0; i < n; i++)
    v[i] = (float)rng_normal(&r);
}

static void check_relu(struct pool **pools)
{
  static const float special[] = {NAN, INFINITY, -INFINITY, 0.0f, -0.0f, 1e-45f, -1e-45f};
  float got[7];
  vec_relu(NULL, special, 7, got);
  ok(isnan(got[0]) && got[1] == INFINITY && got[2] == 0 && got[3] == 0 && got[4] == 0 && got[5] > 0 && got[6] == 0,
     "relu keeps NaN and +Inf, drops what is negative");
  for (int p = 0; p < 3; p++) {
    int wrong = 0;
    vec_relu(pools[p], x, N, out[0]);
    vec_relu_back(pools[p], out[0], y, N, false, out[1]);
    memcpy(out[2], z, sizeof z);
    vec_relu_back(pools[p], out[0], y, N, true, out[2]);
    for (size_t i = 0; i < N; i++) {
      float back = x[i] > 0 ? y[i] : 0;
      wrong += out[0][i] != (x[i] > 0 ? x[i] : 0) || out[1][i] != back || out[2][i] != z[i] + back;
    }
    is_int(wrong, 0, "relu forward, backward and adding, %d threads", pool_threads(pools[p]));
    memcpy(out[1], x, sizeof x);
    memcpy(out[2], y, sizeof y);
    vec_relu(pools[p], out[1], N, out[1]);
    vec_relu_back(pools[p], out[1], out[2], N, false, out[2]);
    for (size_t i = 0; i < N; i++)
      wrong += out[1][i] != (x[i] > 0 ? x[i] : 0) || out[2][i] != (x[i] > 0 ? y[i] : 0);
    is_int(wrong, 0, "the same in place, %d threads", pool_threads(pools[p]));
  }
}

static void check_add(struct pool **pools)
{
  for (int p = 0; p < 3; p++) {
    int wrong = 0;
    vec_add(pools[p], x, y, N, out[0]);
    memcpy(out[1], x, sizeof x);
    vec_add(pools[p], out[1], y, N, out[1]);
    memcpy(out[2], x, sizeof x);
    vec_add(pools[p], out[2], out[2], N, out[2]);
    for (size_t i = 0; i < N; i++)
      wrong += out[0][i] != x[i] + y[i] || out[1][i] != x[i] + y[i] || out[2][i] != x[i] + x[i];
    vec_copy(pools[p], z, N, out[0]);
    wrong += memcmp(out[0], z, sizeof z) != 0;
    is_int(wrong, 0, "add apart, in place, to itself; copy, %d threads", pool_threads(pools[p]));
  }
}

static void check_rows(struct pool **pools, size_t rows, size_t cols)
{
  double worst = 0;
  for (int p = 0; p < 3; p++) {
    memcpy(out[p], y, cols * sizeof *y);
    vec_sum_rows(pools[p], x, rows, cols, 0.25f, 1, out[p]);
  }
  for (size_t c = 0; c < cols; c++) {
    double sum = 0;
    for (size_t r = 0; r < rows; r++)
      sum += x[r * cols + c];
    double err = fabs(out[0][c] - (0.25 * sum + y[c]));
    worst = err > worst ? err : worst;
  }
  ok(worst < 1e-6 * sqrt((double)rows) + 1e-6, "sum of %zu rows of %zu, plus what was there: error %.2g", rows, cols,
     worst);
  ok(memcmp(out[0], out[1], cols * sizeof *y) == 0 && memcmp(out[0], out[2], cols * sizeof *y) == 0,
     "the same bits on 1, 2 and 3 threads");
  out[0][0] = NAN;
  vec_sum_rows(NULL, x, rows, cols, 0.25f, 0, out[0]);
  ok(!isnan(out[0][0]), "beta 0 does not read the old value");
  memcpy(out[0], x, rows * cols * sizeof *x);
  vec_add_bias(pools[1], out[0], rows, cols, y);
  int wrong = 0;
  for (size_t i = 0; i < rows * cols; i++)
    wrong += out[0][i] != x[i] + y[i % cols];
  is_int(wrong, 0, "bias added to every row");
}

/* The order of summation that vec.h promises, in the plainest loop: every build and CPU must give these very bits. */
static double plain_sum_sq(const float *v, size_t n)
{
  double sum = 0;
  for (size_t i0 = 0; i0 < n; i0 += 1024) {
    float lane[16] = {0};
    double block = 0;
    for (size_t i = i0; i < n && i < i0 + 1024; i++) {
      volatile float square = v[i] * v[i];
      lane[(i - i0) % 16] += square;
    }
    for (int l = 0; l < 16; l++)
      block += lane[l];
    sum += block;
  }
  return sum;
}

static void check_sums(struct pool **pools, size_t n)
{
  double want = 0;
  for (size_t i = 0; i < n; i++)
    want += (double)x[i] * x[i];
  double got = vec_sum_sq(NULL, x, n);
  is_close(got, want, 2e-6 * want, "sum of squares of %zu", n);
  ok(got == plain_sum_sq(x, n), "in the promised order");
  ok(vec_sum_sq(pools[1], x, n) == got && vec_sum_sq(pools[2], x, n) == got, "the same on 2 and 3 threads");
}

int main(void)
{
  struct err e;
  struct pool *pools[3] = {NULL, pool_create(2, &e), pool_create(3, &e)};
  if (!pools[1] || !pools[2])
    tap_bail("%s", e.msg);
  fill(x, N, 1);
  fill(y, N, 2);
  fill(z, N, 3);
  check_relu(pools);
  check_add(pools);
  check_rows(pools, 128, 512);
  check_rows(pools, 1000, 10);
  check_rows(pools, 3, 65);
  check_rows(pools, 1, 1);
  static const size_t sizes[] = {0, 1, 15, 16, 17, 1023, 1024, 1025, 40000, N};
  for (int i = 0; i < 10; i++)
    check_sums(pools, sizes[i]);
  ok(vec_all_finite(x, N), "all finite");
  x[N - 1] = NAN;
  ok(!vec_all_finite(x, N), "a NaN at the end is seen");
  x[N - 1] = -INFINITY;
  ok(!vec_all_finite(x, N), "an Inf is seen");
  ok(vec_all_finite(x, 0), "nothing is finite");
  pool_free(pools[1]);
  pool_free(pools[2]);
  return tap_done();
}
