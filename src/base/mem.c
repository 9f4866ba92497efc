/* Allocation and its counters. Buffers (weights, activations, batches: sized by a user's number) carry their size in a
 * 64-byte header in front of them; large ones are mapped on a 2 MiB boundary so that the kernel can back them with huge
 * pages, which a pass over 64 MiB feels by a quarter. */
#include "config.h"

#include "base/mem.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* AddressSanitizer sees overruns only of what malloc gave, so its builds map nothing. */
#if defined(__SANITIZE_ADDRESS__)
#define MAP_LARGE 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MAP_LARGE 0
#endif
#endif
#ifndef MAP_LARGE
#define MAP_LARGE 1
#endif

#define ALIGN ((size_t)64)
#define HUGE_PAGE ((size_t)2 << 20)
#define LARGE_BYTES (2 * HUGE_PAGE) /* below this, a huge page would be mostly waste */

static _Atomic uint64_t n_allocs, live_bytes, peak_bytes, fail_in;

void *mem_alloc(size_t n)
{
  atomic_fetch_add_explicit(&n_allocs, 1, memory_order_relaxed);
  void *p = calloc(1, n ? n : 1);
  if (!p)
    die("out of memory (%zu bytes)", n);
  return p;
}

void *mem_realloc(void *p, size_t n)
{
  atomic_fetch_add_explicit(&n_allocs, 1, memory_order_relaxed);
  void *q = realloc(p, n ? n : 1);
  if (!q)
    die("out of memory (%zu bytes)", n);
  return q;
}

char *mem_strdup(const char *s)
{
  size_t n = strlen(s) + 1;
  return memcpy(mem_alloc(n), s, n);
}

char *mem_printf(const char *fmt, ...)
{
  va_list ap;
  va_start(ap, fmt);
  int n = vsnprintf(NULL, 0, fmt, ap);
  va_end(ap);
  if (n < 0)
    die("mem_printf: bad format \"%s\"", fmt);
  char *s = mem_alloc((size_t)n + 1);
  va_start(ap, fmt);
  vsnprintf(s, (size_t)n + 1, fmt, ap);
  va_end(ap);
  return s;
}

void mem_free(void *p)
{
  free(p);
}

struct header { /* in front of a buffer, padded to ALIGN */
  size_t n_bytes;
  void *map; /* start of the mapping, or NULL where it came from malloc */
  size_t map_bytes;
};
_Static_assert(sizeof(struct header) <= ALIGN, "the header must fit in front of an aligned buffer");

static uint64_t read_number(const char *path, uint64_t otherwise)
{
  FILE *f = fopen(path, "r");
  unsigned long long v;
  bool good = f && fscanf(f, "%llu", &v) == 1; /* "max" in a cgroup file is no number: no limit */
  if (f)
    fclose(f);
  return good ? v : otherwise;
}

/* Linux hands out address space far beyond this and kills the process when it is used; a typo in `batch` must not end
 * a run that way. */
uint64_t mem_machine_bytes(void)
{
  static _Atomic uint64_t cached;
  uint64_t limit = atomic_load_explicit(&cached, memory_order_relaxed);
  if (limit == 0) {
    limit = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t v2 = read_number("/sys/fs/cgroup/memory.max", UINT64_MAX);
    uint64_t v1 = read_number("/sys/fs/cgroup/memory/memory.limit_in_bytes", UINT64_MAX);
    limit = v2 < limit ? v2 : limit;
    limit = v1 < limit ? v1 : limit;
    atomic_store_explicit(&cached, limit, memory_order_relaxed);
  }
  return limit;
}

/* Maps n zeroed bytes on a 2 MiB boundary: maps more, gives the ends back. */
static void *map_aligned(size_t n)
{
  if (n > SIZE_MAX - HUGE_PAGE)
    return NULL;
  char *p = mmap(NULL, n + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED)
    return NULL;
  size_t lead = (HUGE_PAGE - (uintptr_t)p % HUGE_PAGE) % HUGE_PAGE;
  if (lead)
    munmap(p, lead);
  if (lead < HUGE_PAGE)
    munmap(p + lead + n, HUGE_PAGE - lead);
  madvise(p + lead, n, MADV_HUGEPAGE); /* a wish: correctness does not hang on it */
  return p + lead;
}

static struct header *buffer_get(size_t n_total)
{
  if (MAP_LARGE && n_total >= LARGE_BYTES) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    n_total = (n_total + page - 1) / page * page;
    struct header *h = map_aligned(n_total);
    if (h) {
      h->map = h;
      h->map_bytes = n_total;
    }
    return h;
  }
  void *p;
  if (posix_memalign(&p, ALIGN, n_total) != 0)
    return NULL;
  return memset(p, 0, n_total);
}

static bool must_fail(void)
{
  uint64_t n = atomic_load(&fail_in);
  while (n > 0 && !atomic_compare_exchange_weak(&fail_in, &n, n - 1))
    ;
  return n == 1;
}

void *mem_buffer(size_t n_bytes, const char *what, struct err *e)
{
  atomic_fetch_add_explicit(&n_allocs, 1, memory_order_relaxed);
  uint64_t live = atomic_load(&live_bytes), limit = mem_machine_bytes();
  struct header *h = NULL;
  if (!must_fail() && live <= limit && n_bytes <= limit - live && n_bytes <= SIZE_MAX / 2)
    h = buffer_get(n_bytes + ALIGN);
  if (!h) {
    err_set(e, "not enough memory for %s: %.1f MiB asked, %.1f MiB in use, %.1f MiB in the machine", what,
            (double)n_bytes / 0x1p20, (double)live / 0x1p20, (double)limit / 0x1p20);
    return NULL;
  }
  h->n_bytes = n_bytes;
  live = atomic_fetch_add(&live_bytes, n_bytes) + n_bytes;
  uint64_t peak = atomic_load(&peak_bytes);
  while (live > peak && !atomic_compare_exchange_weak(&peak_bytes, &peak, live))
    ;
  return (char *)h + ALIGN;
}

void mem_buffer_free(void *p)
{
  if (!p)
    return;
  struct header *h = (void *)((char *)p - ALIGN);
  atomic_fetch_sub(&live_bytes, h->n_bytes);
  if (h->map)
    munmap(h->map, h->map_bytes);
  else
    free(h);
}

struct mem_counts mem_counts(void)
{
  return (struct mem_counts){
      .n_allocs = atomic_load(&n_allocs),
      .live_bytes = atomic_load(&live_bytes),
      .peak_bytes = atomic_load(&peak_bytes),
  };
}

void mem_fail_nth(uint64_t n)
{
  atomic_store(&fail_in, n);
}
