/* Memory. Small allocations die when memory is gone; those whose size a user's number decides return an error instead.
 * A counter of live bytes and of allocations lets tests check that a training step allocates nothing. */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

void *mem_alloc(size_t n) __attribute__((malloc, returns_nonnull));  /* zeroed; caller mem_free()s */
void *mem_realloc(void *p, size_t n) __attribute__((returns_nonnull));
char *mem_strdup(const char *s) __attribute__((malloc, returns_nonnull));
char *mem_printf(const char *fmt, ...) __attribute__((format(printf, 1, 2), returns_nonnull));
void mem_free(void *p);

/* Zeroed, 64-byte aligned, 2 MiB pages asked for where large; NULL and a message when there is not enough.
 * `what` names the buffer in the message. Caller mem_buffer_free()s. */
void *mem_buffer(size_t n_bytes, const char *what, struct err *e) ERR_MUST_CHECK;
void mem_buffer_free(void *p);

/* What this process may hold at most: the machine's memory, or its container's where that is less. */
uint64_t mem_machine_bytes(void);

struct mem_counts {
  uint64_t n_allocs;   /* since the start of the process, all kinds */
  uint64_t live_bytes; /* of mem_buffer() */
  uint64_t peak_bytes; /* of mem_buffer() */
};
struct mem_counts mem_counts(void);

/* Makes the n-th mem_buffer() from now fail (n >= 1; 0 turns it off): for tests of the error paths. */
void mem_fail_nth(uint64_t n);

#endif
