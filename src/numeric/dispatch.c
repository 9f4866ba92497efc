/* Which kernels run here: the CPU's, or what BITDIAL_ISA asks for where the CPU has it. */
#include "config.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "numeric/kernel_simd.h"
#include "numeric/quantize.h"

enum isa { ISA_SCALAR, ISA_AVX2, ISA_AVX512, ISA_COUNT };
static const char *const isa_names[ISA_COUNT] = {"scalar", "avx2", "avx512"};
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

static void choose(void)
{
  const char *asked = getenv("BITDIAL_ISA");
  int top = ISA_COUNT - 1;
  for (int i = 0; asked && i < ISA_COUNT; i++)
    if (strcmp(asked, isa_names[i]) == 0)
      top = i;
  while (!cpu_has((enum isa)top))
    top--;
  isa = (enum isa)top;
}

const char *quantize_isa(void)
{
  pthread_once(&once, choose);
  return isa_names[isa];
}

kernel_fn *kernel_pick(const struct kernel_plan *p)
{
  pthread_once(&once, choose);
  kernel_fn *k = NULL;
  if (p->binary)
    return kernel_scalar;
#ifdef HAVE_X86_SIMD
  if (isa == ISA_AVX512)
    k = kernel_avx512(p);
#endif
  return k ? k : kernel_scalar;
}

float kernel_absmax(const float *x, size_t n, bool *non_finite)
{
  pthread_once(&once, choose);
#ifdef HAVE_X86_SIMD
  if (isa == ISA_AVX512)
    return kernel_absmax_avx512(x, n, non_finite);
#endif
  return kernel_absmax_scalar(x, n, non_finite);
}
