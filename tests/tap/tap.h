/* The one TAP emitter of the C tests. A test calls these, then returns tap_done() from main.
 * Every check prints one line; a failed one also prints what was got and what was wanted. */
#ifndef TAP_H
#define TAP_H

#include <stdbool.h>
#include <stdint.h>

#define ok(cond, ...) tap_ok((cond), __FILE__, __LINE__, __VA_ARGS__)
#define is_int(got, want, ...) tap_is_int((int64_t)(got), (int64_t)(want), __FILE__, __LINE__, __VA_ARGS__)
#define is_str(got, want, ...) tap_is_str((got), (want), __FILE__, __LINE__, __VA_ARGS__)
/* |got - want| <= tolerance; NaN equals only NaN. */
#define is_close(got, want, tolerance, ...)                                                                            \
  tap_is_close((got), (want), (tolerance), __FILE__, __LINE__, __VA_ARGS__)

bool tap_ok(bool cond, const char *file, int line, const char *fmt, ...) __attribute__((format(printf, 4, 5)));
bool tap_is_int(int64_t got, int64_t want, const char *file, int line, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
bool tap_is_str(const char *got, const char *want, const char *file, int line, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
bool tap_is_close(double got, double want, double tolerance, const char *file, int line, const char *fmt, ...)
    __attribute__((format(printf, 6, 7)));

/* A comment line ("# ..."): measured values, reasons. */
void tap_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Counts one test as skipped, with the reason. */
void tap_skip(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* The whole test cannot go on: prints "Bail out!" and exits 1. */
void tap_bail(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));

/* Prints the plan; returns main's exit status, 0 when all passed. */
int tap_done(void);

#endif
