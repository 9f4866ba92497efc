/* Matrix products: OpenBLAS on one thread a call, the output split over our pool by a rule of the shape. The only file
 * that knows OpenBLAS.
 *
 * Why not OpenBLAS's own threads: they are a second pool that fights ours for the cores (quantizers and element-wise
 * work run on ours between products), their number is global to the process, and their OpenMP flavour hangs in a
 * forked child. And ours are no slower: see the table at split_columns(). */
#include "config.h"

#include "tensor/gemm.h"

#include <cblas.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Exported by OpenBLAS's DYNAMIC_ARCH builds but declared in none of its headers; absent elsewhere, hence weak. */
extern void gotoblas_dynamic_init(void) __attribute__((weak));
extern void gotoblas_dynamic_quit(void) __attribute__((weak));

/* The core type this CPU's instructions allow at least, or NULL where OpenBLAS's own guess cannot be improved. */
static const char *core_type_by_features(void)
{
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    return "SkylakeX";
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return "Haswell";
#endif
  return NULL;
}

/* OpenBLAS knows CPUs by model number. One younger than the library falls to its oldest kernels (Prescott, SSE3),
 * 4 to 5 times slower (OpenBLAS issue 4267; seen with 0.3.21 on Xeon model 207). Choose by instruction set there. A
 * user's OPENBLAS_CORETYPE wins, and any other guess of the library's is left alone. */
static void correct_core_type(void)
{
  const char *better = core_type_by_features();
  if (!better || getenv("OPENBLAS_CORETYPE") || strcmp(openblas_get_corename(), "Prescott") != 0)
    return;
  if (!gotoblas_dynamic_init || !gotoblas_dynamic_quit)
    return;
  setenv("OPENBLAS_CORETYPE", better, 1);
  gotoblas_dynamic_quit();
  gotoblas_dynamic_init();
  unsetenv("OPENBLAS_CORETYPE");
}

void gemm_init(void)
{
  correct_core_type();
  openblas_set_num_threads(1);
}

const char *gemm_config(void)
{
  return openblas_get_config();
}

const char *gemm_core_type(void)
{
  return openblas_get_corename();
}

struct product {
  enum gemm_op op;
  size_t m, n, k;
  float alpha, beta;
  const float *a, *b;
  float *c;
};

/* Rows [m0, m1) and columns [n0, n1) of C. */
static void product_part(const struct product *p, size_t m0, size_t m1, size_t n0, size_t n1)
{
  bool a_trans = p->op == GEMM_TN, b_trans = p->op == GEMM_NT;
  size_t lda = a_trans ? p->m : p->k, ldb = b_trans ? p->k : p->n;
  const float *a = p->a + (a_trans ? m0 : m0 * lda);
  const float *b = p->b + (b_trans ? n0 * ldb : n0);
  cblas_sgemm(CblasRowMajor, a_trans ? CblasTrans : CblasNoTrans, b_trans ? CblasTrans : CblasNoTrans, (int)(m1 - m0),
              (int)(n1 - n0), (int)p->k, p->alpha, a, (int)lda, b, (int)ldb, p->beta, p->c + m0 * p->n + n0, (int)p->n);
}

static void product_rows(void *ctx, size_t begin, size_t end, int worker)
{
  const struct product *p = ctx;
  (void)worker;
  product_part(p, begin, end, 0, p->n);
}

static void product_columns(void *ctx, size_t begin, size_t end, int worker)
{
  const struct product *p = ctx;
  (void)worker;
  product_part(p, 0, p->m, begin, end);
}

/* A part is a multiple of the micro-kernels' tiles (16 by 4 at most), so that no thread but the last works on a ragged
 * edge; small enough for 128 to be halved evenly. */
#define GEMM_GRAIN 16

/* Multiply-adds below which waking a thread costs more than it saves (some 10 us of one core's work). */
#define GEMM_SMALL ((size_t)1 << 19)

/* The larger side of C is split: its parts stay the squarest, and each thread still reads one operand once.
 *
 * GFLOP/s, median of 400 calls, two cores of a Xeon model 207 (shared, so +-10 %), OpenBLAS 0.3.21 SkylakeX kernels:
 *                   one thread   OpenBLAS, 2 threads   this split, 2 threads
 *   NT 128x512x784      82-88              134-145                 136-156
 *   NT 128x256x512      77-87              129-135                 133-153
 *   TN 512x784x128      89-98              138-145                 139-163
 *   TN 256x512x128      90-97              129-137                 134-147
 *   NN 128x512x256      89-97              146                     136-152
 *   NT 512x512x784      93-97              159-170                 149-168
 *   NT 128x10x256       30                 21-29                   29-31 (stays on one)
 */
static bool split_columns(const struct product *p)
{
  return p->n >= p->m;
}

void gemm(struct pool *pool, enum gemm_op op, size_t m, size_t n, size_t k, float alpha, const float *a, const float *b,
          float beta, float *c)
{
  struct product p = {.op = op, .m = m, .n = n, .k = k, .alpha = alpha, .beta = beta, .a = a, .b = b, .c = c};
  if (m == 0 || n == 0)
    return;
  if (m * n * k < GEMM_SMALL)
    pool = NULL;
  if (split_columns(&p))
    pool_for(pool, n, GEMM_GRAIN, product_columns, &p);
  else
    pool_for(pool, m, GEMM_GRAIN, product_rows, &p);
}
