/* Buffers are zeroed, aligned, counted, and fail with a message: by injection and when asked for the absurd. */
#include "config.h"

#include "base/mem.h"

#include <string.h>

#include "tests/tap/tap.h"

static bool all_zero(const unsigned char *p, size_t n)
{
  for (size_t i = 0; i < n; i++)
    if (p[i])
      return false;
  return true;
}

static void test_buffers(void)
{
  static const size_t size[] = {0, 1, 63, 4096, (4 << 20) - 64, (4 << 20) - 63, (9 << 20) + 5};
  struct err e;
  for (int round = 0; round < 2; round++) /* twice: freed memory comes back zeroed too */
    for (size_t i = 0; i < sizeof size / sizeof *size; i++) {
      unsigned char *p = mem_buffer(size[i], "a test", &e);
      if (!p)
        tap_bail("%s", e.msg);
      ok((uintptr_t)p % 64 == 0 && all_zero(p, size[i]), "%zu bytes: aligned and zeroed", size[i]);
      memset(p, 0xff, size[i]);
      mem_buffer_free(p);
    }
}

static void test_counts(void)
{
  struct err e;
  struct mem_counts before = mem_counts();
  void *a = mem_buffer(1000, "a", &e), *b = mem_buffer(3 << 20, "b", &e);
  struct mem_counts during = mem_counts();
  is_int(during.live_bytes - before.live_bytes, 1000 + (3 << 20), "live bytes count both");
  is_int(during.n_allocs - before.n_allocs, 2, "two allocations");
  mem_buffer_free(a);
  mem_buffer_free(b);
  struct mem_counts after = mem_counts();
  is_int(after.live_bytes, before.live_bytes, "freed bytes are gone");
  ok(after.peak_bytes >= during.live_bytes, "the peak stays");
  mem_free(mem_alloc(10));
  mem_free(mem_strdup("x"));
  is_int(mem_counts().n_allocs - after.n_allocs, 2, "small ones count as allocations");
  mem_buffer_free(NULL);
}

static void test_failure(void)
{
  struct err e = {""};
  uint64_t live = mem_counts().live_bytes;
  mem_fail_nth(2);
  void *a = mem_buffer(10, "first", &e), *b = mem_buffer(10, "second", &e), *c = mem_buffer(10, "third", &e);
  ok(a && !b && c, "the second of three fails, once");
  ok(strstr(e.msg, "second") != NULL, "the message names the buffer: %s", e.msg);
  mem_buffer_free(a);
  mem_buffer_free(c);
  mem_fail_nth(1);
  mem_fail_nth(0);
  a = mem_buffer(10, "after", &e);
  ok(a != NULL, "injection can be turned off");
  mem_buffer_free(a);

  /* Sizes that overflow, and one that Linux would hand out and regret. */
  static const size_t absurd[] = {SIZE_MAX, SIZE_MAX - 64, SIZE_MAX / 2, (size_t)1 << 46};
  for (size_t i = 0; i < sizeof absurd / sizeof *absurd; i++)
    ok(!mem_buffer(absurd[i], "weights", &e) && strstr(e.msg, "not enough memory for weights"), "%zu bytes: %s",
       absurd[i], e.msg);
  ok(!mem_buffer((size_t)1 << 46, "weights", NULL), "without a place for the message too");
  is_int(mem_counts().live_bytes, live, "failures leave nothing behind");
}

int main(void)
{
  test_buffers();
  test_counts();
  test_failure();
  char *s = mem_printf("%d-%s", 12, "ab");
  is_str(s, "12-ab", "mem_printf");
  mem_free(s);
  return tap_done();
}
