/* bitdial bench quantize: the simulated quantizer on one thread against memcpy of the same array, in the second-level
 * cache and far outside it, with the scale given and with the pass that finds it. */
#include "config.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "cmd_bench.h"
#include "numeric/quantize.h"

struct job {
  const float *x;
  float *y;
  size_t n;
  struct spec spec;
  struct quant_rng rng;
};

static void copy(void *ctx)
{
  struct job *j = ctx;
  memcpy(j->y, j->x, j->n * sizeof *j->y);
  __asm__ volatile("" : : "r"(j->y) : "memory"); /* the copy is wanted */
}

static void quantized(void *ctx)
{
  struct job *j = ctx;
  j->rng.step++;
  quantize(&j->spec, j->x, 1, j->n, &j->rng, j->y, NULL, NULL, NULL, NULL);
}

static const char *const formats[] = {"int8", "e4m3", "e5m2", "bf16", "mxfp4"};
static const struct {
  enum rounding rounding;
  int random_bits;
} modes[] = {{ROUND_RNE, 0}, {ROUND_SR, 32}, {ROUND_SR, 16}, {ROUND_SR, 8}};

/* The scale that the default rule would find, as a number given: what is left is the quantizer alone. */
static int give_scale(struct spec *s, const float *x, size_t n)
{
  float y;
  struct quant_info info;
  if (s->granularity != GRAIN_TENSOR || s->scale == SCALE_NONE)
    return -1; /* blocks make their own, bf16 has none */
  struct spec nearest = spec_default(s->format, ROUND_RNE);
  float top = 0;
  for (size_t i = 0; i < n; i++)
    top = fmaxf(top, fabsf(x[i]));
  quantize(&nearest, &top, 1, 1, NULL, &y, NULL, NULL, NULL, &info);
  s->scale = SCALE_FIXED;
  s->fixed_scale = info.scale;
  return 0;
}

static void one_case(struct bench *b, struct job *j, const char *format, int mode, int runs, int repeat)
{
  struct err e;
  struct bench_time t[3];
  const struct format *f = format_find(format, &e);
  if (!f)
    die("%s", e.msg);
  j->spec = spec_default(f, modes[mode].rounding);
  if (modes[mode].random_bits)
    j->spec.random_bits = modes[mode].random_bits;
  struct job found = *j;
  bool given = give_scale(&j->spec, j->x, j->n) == 0;
  struct bench_work work[] = {{copy, j, repeat}, {quantized, j, repeat}, {quantized, &found, repeat}};
  bench_measure(work, given ? 3 : 2, runs, t);
  for (int i = 1; i < (given ? 3 : 2); i++) {
    struct bench_row r = {
        .runs = runs, .time = t[i], .rate_name = "elements_per_s", .rate = (double)j->n / t[i].median_s};
    bench_text(&r, "format", format);
    bench_text(&r, "rounding", rounding_name(modes[mode].rounding));
    bench_number(&r, "random_bits", modes[mode].random_bits);
    bench_number(&r, "elements", (double)j->n);
    bench_text(&r, "scale", i == 2 ? "found" : given ? "given" : f->element ? "block" : "none");
    bench_number(&r, "threads", 1);
    bench_ratio(&r, "ratio_to_copy", t[i].ratio);
    bench_print(b, &r);
  }
}

int bench_quantize(struct bench *b, struct err *e)
{
  static const struct {
    size_t n;
    int runs, repeat;
  } sizes[] = {{1 << 16, 101, 8}, {1 << 24, 9, 1}};
  size_t max = sizes[1].n;
  struct job j = {.rng = {.key = rng_derive(1, RNG_USER, 0, 0, 0)}};
  float *x = mem_buffer(max * sizeof *x, "bench input", e), *y = mem_buffer(max * sizeof *y, "bench output", e);
  int status = x && y ? 0 : -1;
  if (status == 0) {
    struct rng r;
    rng_init(&r, rng_derive(2, RNG_USER, 0, 0, 0), 0);
    for (size_t i = 0; i < max; i++) /* normal numbers, the same every 2^20 */
      x[i] = i < 1 << 20 ? (float)rng_normal(&r) : x[i - (1 << 20)];
    j.x = x;
    j.y = y;
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
      for (size_t f = 0; f < sizeof formats / sizeof *formats; f++)
        for (int m = 0; m < (int)(sizeof modes / sizeof *modes); m++) {
          j.n = sizes[s].n;
          one_case(b, &j, formats[f], m, b->runs ? b->runs : sizes[s].runs, sizes[s].repeat);
        }
  }
  mem_buffer_free(x);
  mem_buffer_free(y);
  return status;
}
