/* The TAP emitter. One test is one process and one thread, so its counters are plain. */
#include "tap.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int n_run, n_failed;

static bool result(bool passed, const char *file, int line, const char *fmt, va_list ap)
{
  printf("%sok %d - ", passed ? "" : "not ", ++n_run);
  vprintf(fmt, ap);
  putchar('\n');
  if (!passed) {
    n_failed++;
    printf("# failed at %s:%d\n", file, line);
  }
  fflush(stdout);
  return passed;
}

bool tap_ok(bool cond, const char *file, int line, const char *fmt, ...)
{
  va_list ap;
  va_start(ap, fmt);
  result(cond, file, line, fmt, ap);
  va_end(ap);
  return cond;
}

bool tap_is_int(int64_t got, int64_t want, const char *file, int line, const char *fmt, ...)
{
  va_list ap;
  va_start(ap, fmt);
  if (!result(got == want, file, line, fmt, ap))
    printf("#   got %" PRId64 "\n#  want %" PRId64 "\n", got, want);
  va_end(ap);
  return got == want;
}

bool tap_is_str(const char *got, const char *want, const char *file, int line, const char *fmt, ...)
{
  bool same = got && want ? strcmp(got, want) == 0 : got == want;
  va_list ap;
  va_start(ap, fmt);
  if (!result(same, file, line, fmt, ap))
    printf("#   got %s\n#  want %s\n", got ? got : "(null)", want ? want : "(null)");
  va_end(ap);
  return same;
}

bool tap_is_close(double got, double want, double tolerance, const char *file, int line, const char *fmt, ...)
{
  bool same = isnan(want) ? isnan(got) : got == want || fabs(got - want) <= tolerance;
  va_list ap;
  va_start(ap, fmt);
  if (!result(same, file, line, fmt, ap))
    printf("#   got %.17g\n#  want %.17g within %g\n", got, want, tolerance);
  va_end(ap);
  return same;
}

void tap_note(const char *fmt, ...)
{
  va_list ap;
  va_start(ap, fmt);
  fputs("# ", stdout);
  vprintf(fmt, ap);
  putchar('\n');
  va_end(ap);
}

void tap_skip(const char *fmt, ...)
{
  va_list ap;
  va_start(ap, fmt);
  printf("ok %d # SKIP ", ++n_run);
  vprintf(fmt, ap);
  putchar('\n');
  va_end(ap);
}

void tap_bail(const char *fmt, ...)
{
  va_list ap;
  va_start(ap, fmt);
  fputs("Bail out! ", stdout);
  vprintf(fmt, ap);
  putchar('\n');
  va_end(ap);
  exit(1);
}

int tap_done(void)
{
  printf("1..%d\n", n_run);
  return n_failed ? 1 : 0;
}
