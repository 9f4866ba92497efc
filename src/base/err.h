/* Errors as values. A function that can fail returns 0 or -1 (or NULL) and takes a last `struct err *`; the message
 * names the thing, the value and what is allowed. Nothing below main.c exits. */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include <stdarg.h>

#define ERR_MUST_CHECK __attribute__((warn_unused_result))

struct err {
  char msg[1024];
};

/* Writes the message; e may be NULL. Returns -1, so that a caller can `return err_set(e, ...)`. */
int err_set(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int err_vset(struct err *e, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));

/* Puts "prefix: " before the message that is there. Returns -1. */
int err_prefix(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* A broken invariant or an exhausted small allocation: runs the hook (which restores the terminal), prints, aborts. */
void die(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));
void die_set_hook(void (*hook)(void));

#endif
