/* The two-level scale of NVFP4 (NUMERICS section 5): blocks of 16 under an E4M3 scale, those under one fp32 scale. */
#include "config.h"

#include <float.h>
#include <math.h>
#include <pthread.h>
#include <string.h>

#include "numeric/quantize_impl.h"
#include "numeric/round_odd.h"

static struct kernel_plan e4m3;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void init_e4m3(void)
{
  const struct format *f = format_find("e4m3", NULL);
  struct spec s = spec_default(f, ROUND_RNE);
  kernel_plan_init(&e4m3, &s, f, 1);
}

/* In the order of TransformerEngine, every operation in fp32. */
static struct nvfp4_scale scale_as_te(float amax_tensor, float amax_block)
{
  float encode = amax_tensor > 0 ? fminf(2688.0f / amax_tensor, FLT_MAX) : 1;
  struct nvfp4_scale s = {.tensor = amax_tensor / 2688.0f};
  s.block = kernel_round_one(&e4m3, amax_block * (encode * (1.0f / 6.0f)), 0);
  s.encode = fminf(1 / (s.block * (1 / encode)), FLT_MAX);
  return s;
}

/* Quotients of numbers of few bits: double decides every comparison as exact arithmetic does, once rounded to odd. */
static struct nvfp4_scale scale_exact(float amax_tensor, float amax_block)
{
  struct nvfp4_scale s = {.tensor = amax_tensor / 2688.0f};
  if (s.tensor > 0)
    s.block = kernel_round_one(&e4m3, round_to_odd((double)amax_block / (6 * (double)s.tensor)), 0);
  s.exact = (double)s.block * (double)s.tensor;
  return s;
}

struct nvfp4_scale nvfp4_scale_of(float amax_tensor, float amax_block, bool exact)
{
  pthread_once(&once, init_e4m3);
  return exact ? scale_exact(amax_tensor, amax_block) : scale_as_te(amax_tensor, amax_block);
}
