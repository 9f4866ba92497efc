/* Which kernels run here: the CPU's best, or what BITDIAL_ISA asks for where the CPU has it. A name that is none of
 * ours is no reason to stop a run whose results are the same on all of them; quantize_isa() tells what runs. */
#include "config.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "numeric/kernel_simd.h"
#include "numeric/quantize.h"

enum isa { ISA_SCALAR, ISA_AVX2, ISA_AVX512, ISA_COUNT };

typedef kernel_fn *pick_fn(const struct kernel_plan *p);
typedef float absmax_fn(const float *x, size_t n, bool *non_finite);

static kernel_fn *pick_scalar(const struct kernel_plan *p)
{
  (void)p;
  return kernel_scalar;
}

static const struct {
  const char *name;
  pick_fn *pick;
  absmax_fn *absmax;
} isas[ISA_COUNT] = {
    [ISA_SCALAR] = {"scalar", pick_scalar, kernel_absmax_scalar},
#ifdef HAVE_X86_SIMD
    [ISA_AVX2] = {"avx2", kernel_avx2, kernel_absmax_avx2},
    [ISA_AVX512] = {"avx512", kernel_avx512, kernel_absmax_avx512},
#endif
};

static enum isa isa;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static bool cpu_has(enum isa i)
{
#ifdef HAVE_X86_SIMD
  if (i == ISA_AVX512)
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (i == ISA_AVX2)
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#endif
  return i == ISA_SCALAR;
}

static int isa_find(const char *name)
{
  for (int i = 0; name && i < ISA_COUNT; i++)
    if (isas[i].name && strcmp(name, isas[i].name) == 0)
      return i;
  return -1;
}

static void choose(void)
{
  int top = isa_find(getenv("BITDIAL_ISA"));
  if (top < 0)
    top = ISA_COUNT - 1;
  while (!cpu_has((enum isa)top))
    top--;
  isa = (enum isa)top;
}

const char *quantize_isa(void)
{
  pthread_once(&once, choose);
  return isas[isa].name;
}

kernel_fn *kernel_pick(const struct kernel_plan *p)
{
  pthread_once(&once, choose);
  kernel_fn *k = isas[isa].pick(p);
  return k ? k : kernel_scalar;
}

kernel_blocks_fn *kernel_pick_blocks(const struct kernel_plan *p, enum scale_rule rule, size_t block)
{
  pthread_once(&once, choose);
#ifdef HAVE_X86_SIMD
  if (isa == ISA_AVX512)
    return kernel_blocks_avx512(p, rule, block);
#else
  (void)p, (void)rule, (void)block;
#endif
  return NULL;
}

float kernel_absmax(const float *x, size_t n, bool *non_finite)
{
  pthread_once(&once, choose);
  return isas[isa].absmax(x, n, non_finite);
}

kernel_fn *kernel_pick_isa(const char *name, const struct kernel_plan *p)
{
  int i = isa_find(name);
  return i >= 0 && cpu_has((enum isa)i) ? isas[i].pick(p) : NULL;
}

float kernel_absmax_isa(const char *name, const float *x, size_t n, bool *non_finite)
{
  int i = isa_find(name);
  return (i >= 0 && cpu_has((enum isa)i) ? isas[i].absmax : kernel_absmax_scalar)(x, n, non_finite);
}
