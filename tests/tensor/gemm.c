/* Products against a plain double reference, at ragged shapes, for all operations, thread counts and betas: OpenBLAS
 * chooses kernels by CPU, and those for small and odd shapes are where they have been wrong. */
#include "config.h"

#include "tensor/gemm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/pool.h"
#include "base/rng.h"
#include "../tap/tap.h"

#define MAX ((size_t)200 * 1100)
static float a[MAX], b[MAX], c[MAX], c0[MAX], c2[MAX];

static void fill(float *x, size_t n, uint32_t id)
{
  struct rng r;
  rng_init(&r, rng_derive(7, RNG_USER, id, 0, 0), 0);
  for (size_t i = 0; i < n; i++)
    x[i] = (float)(2 * rng_uniform(&r) - 1);
}

static const char *const op_name[] = {"NT", "TN", "NN"};

/* Largest error over the bound k eps sum |a||b|, which any order of summation meets (Higham 2002, eq. 3.5). */
static double worst_ratio(enum gemm_op op, size_t m, size_t n, size_t k, float alpha, float beta)
{
  double worst = 0;
  for (size_t i = 0; i < m; i++)
    for (size_t j = 0; j < n; j++) {
      double sum = 0, mag = 0;
      for (size_t p = 0; p < k; p++) {
        double x = op == GEMM_TN ? a[p * m + i] : a[i * k + p];
        double y = op == GEMM_NT ? b[j * k + p] : b[p * n + j];
        sum += x * y;
        mag += fabs(x * y);
      }
      double want = alpha * sum + (beta == 0 ? 0 : (double)beta * c0[i * n + j]);
      double bound = ((double)k + 3) * 0x1p-24 * (fabs(alpha) * mag + fabs(beta * (double)c0[i * n + j])) + 1e-30;
      double ratio = fabs(c[i * n + j] - want) / bound;
      worst = ratio > worst || isnan(ratio) ? ratio : worst;
    }
  return worst;
}

static void check(struct pool *pool, enum gemm_op op, size_t m, size_t n, size_t k, float alpha, float beta)
{
  /* beta 0 must not read C: NaN there must not come through */
  for (size_t i = 0; i < m * n; i++)
    c[i] = beta == 0 ? NAN : c0[i];
  c[m * n] = 12345; /* a guard behind the last element */
  gemm(pool, op, m, n, k, alpha, a, b, beta, c);
  double worst = worst_ratio(op, m, n, k, alpha, beta);
  ok(worst <= 1 && c[m * n] == 12345, "%s %zux%zux%zu alpha %g beta %g threads %d: error %.3f of the bound",
     op_name[op], m, n, k, alpha, beta, pool_threads(pool), worst);
}

static void check_repeats(struct pool *pool)
{
  for (int op = 0; op < 3; op++) {
    gemm(pool, op, 128, 512, 300, 1, a, b, 0, c);
    bool same = true;
    for (int r = 0; r < 20; r++) {
      gemm(pool, op, 128, 512, 300, 1, a, b, 0, c2);
      same = same && memcmp(c, c2, 128 * 512 * sizeof *c) == 0;
    }
    ok(same, "%s: the same bits 20 times on %d threads", op_name[op], pool_threads(pool));
  }
}

static void check_nan(struct pool *pool)
{
  static float x[64 * 64], y[64 * 64];
  for (int i = 0; i < 64 * 64; i++)
    x[i] = 0, y[i] = 1;
  y[5 * 64 + 7] = NAN;
  gemm(pool, GEMM_NN, 64, 64, 64, 1, x, y, 0, c);
  ok(isnan(c[7]) && c[8] == 0, "0 times NaN is NaN in a product, in that column alone");
}

int main(void)
{
  gemm_init();
  tap_note("%s, core type %s", gemm_config(), gemm_core_type());
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && !getenv("OPENBLAS_CORETYPE"))
    ok(strcmp(gemm_core_type(), "Prescott") != 0, "a CPU with AVX2 does not run the SSE3 kernels");
#endif
  fill(a, MAX, 1);
  fill(b, MAX, 2);
  fill(c0, MAX, 3);
  static const size_t shapes[][3] = {{1, 1, 1},     {1, 1, 7},     {2, 3, 5},     {1, 10, 256},  {7, 1, 33},
                                     {15, 17, 31},  {16, 16, 16},  {33, 65, 129}, {64, 64, 64},  {100, 10, 1},
                                     {128, 10, 64}, {127, 97, 63}, {10, 200, 77}, {200, 10, 77}, {193, 51, 1000},
                                     {5, 1000, 49}, {1000, 5, 50}, {97, 480, 65}, {49, 50, 51},  {130, 258, 70}};
  struct err e;
  struct pool *two = pool_create(2, &e), *three = pool_create(3, &e);
  if (!two || !three)
    tap_bail("%s", e.msg);
  struct pool *pools[] = {NULL, two, three};
  for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
    for (int op = 0; op < 3; op++)
      for (int p = 0; p < 3; p++)
        check(pools[p], op, shapes[s][0], shapes[s][1], shapes[s][2], p == 2 ? 0.37f : 1, p == 1 ? 1 : 0);
  for (int p = 0; p < 3; p++)
    check_repeats(pools[p]);
  check_nan(two);
  gemm(two, GEMM_NT, 0, 5, 5, 1, a, b, 0, c);
  for (int i = 0; i < 6; i++)
    c[i] = 1;
  gemm(two, GEMM_NN, 2, 3, 0, 1, a, b, 0, c);
  ok(c[0] == 0 && c[5] == 0, "an empty inner dimension gives zeros");
  pool_free(two);
  pool_free(three);
  return tap_done();
}
