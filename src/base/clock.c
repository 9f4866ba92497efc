/* Clocks. */
#include "config.h"

#include "base/clock.h"

#include <errno.h>
#include <math.h>
#include <time.h>

double clock_mono_s(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void clock_utc(char *out, unsigned n_bytes)
{
  if (n_bytes == 0)
    return;
  time_t now = time(NULL);
  struct tm tm;
  if (!gmtime_r(&now, &tm) || strftime(out, n_bytes, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
    out[0] = '\0';
}

void clock_sleep_s(double seconds)
{
  if (!(seconds > 0))
    return;
  double whole = floor(seconds);
  struct timespec t = {.tv_sec = (time_t)whole, .tv_nsec = (long)((seconds - whole) * 1e9)};
  while (nanosleep(&t, &t) != 0 && errno == EINTR)
    ;
}
