/* Time for people and for speed reports; nothing that decides a number reads it. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

double clock_mono_s(void);                       /* seconds, monotonic */
void clock_utc(char *out, unsigned n_bytes);     /* "2026-01-31T12:00:00Z" */
void clock_sleep_s(double seconds);

#endif
