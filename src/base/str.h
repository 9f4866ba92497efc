/* Growing strings and the few string helpers that C lacks. */
#ifndef BASE_STR_H
#define BASE_STR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

struct str { /* {0} is an empty one; str_done() frees */
  char *s;   /* NUL-terminated once anything was added, else NULL */
  size_t n, cap;
};
void str_done(struct str *s);
void str_clear(struct str *s); /* keeps the memory */
void str_add(struct str *s, const char *text);
void str_addn(struct str *s, const char *text, size_t n);
void str_addc(struct str *s, char c);
void str_addf(struct str *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void str_vaddf(struct str *s, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));

/* Copies with truncation; always terminates. Returns whether all of it fitted. */
bool str_copy(char *out, size_t n_bytes, const char *text);
bool str_starts(const char *s, const char *prefix);
/* Edits (Damerau-Levenshtein) between two words: for "did you mean". */
int str_distance(const char *a, const char *b);
/* The nearest of `words` (NULL-terminated array) to `word`, or NULL where none is near. */
const char *str_nearest(const char *word, const char *const *words);
/* "12.3k", "4.56M", "789": SI, three significant digits. */
const char *str_si(double v, char out[16]);
/* The shortest decimal that reads back as the same double (or float). */
const char *str_double(double v, char out[32]);
const char *str_float(float v, char out[32]);

#endif
