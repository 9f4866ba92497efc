/* The sampler: each epoch is a permutation whatever the batch sizes, and a position is all of its state. */
#include "config.h"

#include "data/sampler.h"

#include <stdlib.h>
#include <string.h>

#include "tests/tap/tap.h"

enum { N = 1000 };

/* Batch sizes that change in mid-epoch, wrap, and once hold more than a whole epoch. */
static const size_t sizes[] = {128, 128, 7, 1, 512, 300, 1024, 33, 2500, 128, 64, 999, 1, 1000};

static size_t take(struct sampler *s, uint32_t *out)
{
  size_t n = 0;
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    sampler_next(s, sizes[i], out + n);
    n += sizes[i];
  }
  return n;
}

static bool is_permutation(const uint32_t *index)
{
  unsigned char seen[N] = {0};
  for (int i = 0; i < N; i++) {
    if (index[i] >= N || seen[index[i]])
      return false;
    seen[index[i]] = 1;
  }
  return true;
}

static struct sampler *create(size_t n, uint64_t seed)
{
  struct err e;
  struct sampler *s = sampler_create(n, seed, &e);
  if (!s)
    tap_bail("%s", e.msg);
  return s;
}

static void epochs(void)
{
  static uint32_t mixed[8192], plain[8192];
  struct sampler *a = create(N, 42), *b = create(N, 42);
  size_t n = take(a, mixed);
  for (size_t at = 0; at < n / N; at++)
    ok(is_permutation(mixed + at * N), "epoch %zu holds every sample once, across changes of the batch size", at);
  for (size_t i = 0; i < n; i++)
    sampler_next(b, 1, plain + i);
  ok(memcmp(mixed, plain, n * sizeof *mixed) == 0, "the order does not depend on the batch sizes");
  ok(memcmp(mixed, mixed + N, N * sizeof *mixed) != 0, "another epoch has another order");
  is_int(sampler_position(a), n, "position counts the examples");
  is_int(sampler_epoch(a), n / N, "whole epochs");
  sampler_free(a);
  sampler_free(b);
}

static void seeds(void)
{
  uint32_t x[N], y[N];
  struct sampler *a = create(N, 1), *b = create(N, 2);
  sampler_next(a, N, x);
  sampler_next(b, N, y);
  ok(memcmp(x, y, sizeof x) != 0, "another seed has another order");
  sampler_free(a);
  sampler_free(b);
}

static void seek_is_replay(void)
{
  static uint32_t all[8192];
  uint32_t got[700];
  struct sampler *a = create(N, 7), *b = create(N, 7);
  take(a, all);
  const uint64_t at[] = {5000, 0, 999, 1000, 1001, 2500, 3};
  for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
    sampler_seek(b, at[i]);
    sampler_next(b, 700, got);
    ok(memcmp(got, all + at[i], sizeof got) == 0, "seek to %d gives what followed there", (int)at[i]);
  }
  uint64_t far = (uint64_t)1 << 40;
  sampler_seek(b, far * N);
  is_int(sampler_epoch(b), far, "a far epoch");
  sampler_next(b, N - 300, all);
  sampler_next(b, 300, all + N - 300);
  ok(is_permutation(all), "is a permutation too");
  sampler_free(a);
  sampler_free(b);
}

/* Where sample i lands in 4000 epochs of 20 samples: chi-square over the 20 places, for every sample. With 19 degrees
 * of freedom P(chi2 > 54) = 3.5e-5, so 20 samples give a false alarm at 7e-4 for a random seed; this one is fixed. */
static void uniform(void)
{
  enum { M = 20, EPOCHS = 4000 };
  struct sampler *s = create(M, 3);
  static int count[M][M];
  for (int k = 0; k < EPOCHS; k++) {
    uint32_t index[M];
    sampler_next(s, M, index);
    for (int place = 0; place < M; place++)
      count[index[place]][place]++;
  }
  double worst = 0;
  for (int i = 0; i < M; i++) {
    double chi2 = 0, want = (double)EPOCHS / M;
    for (int place = 0; place < M; place++)
      chi2 += (count[i][place] - want) * (count[i][place] - want) / want;
    worst = chi2 > worst ? chi2 : worst;
  }
  ok(worst < 54, "every sample is equally likely at every place (worst chi-square %.1f at 19 degrees)", worst);
  sampler_free(s);
}

int main(void)
{
  epochs();
  seeds();
  seek_is_replay();
  uniform();
  struct err e = {""};
  ok(!sampler_create(0, 1, &e) && strstr(e.msg, "0 examples"), "an empty set is an error");
  struct sampler *one = create(1, 1);
  uint32_t index[3] = {9, 9, 9};
  sampler_next(one, 3, index);
  ok(index[0] == 0 && index[1] == 0 && index[2] == 0, "a set of one sample repeats it");
  sampler_free(one);
  return tap_done();
}
