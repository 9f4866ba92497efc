/* Messages of errors that are values, and the one way to die. Messages are cut at the size of `struct err`, never
 * overrun; die() is for broken invariants alone. */
#include "config.h"

#include "base/err.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int err_vset(struct err *e, const char *fmt, va_list ap)
{
  if (e) {
    /* Through a copy: an argument may be the old message itself. */
    char text[sizeof e->msg];
    vsnprintf(text, sizeof text, fmt, ap);
    memcpy(e->msg, text, sizeof text);
  }
  return -1;
}

int err_set(struct err *e, const char *fmt, ...)
{
  va_list ap;
  va_start(ap, fmt);
  err_vset(e, fmt, ap);
  va_end(ap);
  return -1;
}

int err_prefix(struct err *e, const char *fmt, ...)
{
  if (!e)
    return -1;
  char text[2 * sizeof e->msg + 2]; /* room for both; what is too long is cut afterwards */
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(text, sizeof e->msg, fmt, ap);
  va_end(ap);
  size_t n = strlen(text);
  snprintf(text + n, sizeof text - n, ": %s", e->msg);
  text[sizeof e->msg - 1] = '\0';
  memcpy(e->msg, text, sizeof e->msg);
  return -1;
}

static _Atomic(void (*)(void)) die_hook;

void die_set_hook(void (*hook)(void))
{
  atomic_store(&die_hook, hook);
}

void die(const char *fmt, ...)
{
  /* Taken out first: a hook that dies in turn must not run itself again. */
  void (*hook)(void) = atomic_exchange(&die_hook, NULL);
  if (hook)
    hook();
  va_list ap;
  va_start(ap, fmt);
  fputs("bitdial: ", stderr);
  vfprintf(stderr, fmt, ap);
  fputc('\n', stderr);
  va_end(ap);
  abort();
}
