/* Growing strings, near-miss search and numbers for people and files. Numbers are written with snprintf: the program
 * keeps LC_NUMERIC at "C" (it sets LC_CTYPE alone), so that the point is a point everywhere. */
#include "config.h"

#include "base/str.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void str_done(struct str *s)
{
  mem_free(s->s);
  *s = (struct str){0};
}

void str_clear(struct str *s)
{
  s->n = 0;
  if (s->s)
    s->s[0] = '\0';
}

static void reserve(struct str *s, size_t n_more)
{
  if (n_more >= SIZE_MAX / 2 - s->n)
    die("a string of %zu bytes and %zu more is too long", s->n, n_more);
  size_t need = s->n + n_more + 1;
  if (need <= s->cap)
    return;
  size_t cap = s->cap ? s->cap : 32;
  while (cap < need)
    cap *= 2;
  s->s = mem_realloc(s->s, cap);
  s->cap = cap;
}

void str_addn(struct str *s, const char *text, size_t n)
{
  reserve(s, n);
  if (n > 0)
    memcpy(s->s + s->n, text, n);
  s->n += n;
  s->s[s->n] = '\0';
}

void str_add(struct str *s, const char *text)
{
  str_addn(s, text, strlen(text));
}

void str_addc(struct str *s, char c)
{
  str_addn(s, &c, 1);
}

void str_vaddf(struct str *s, const char *fmt, va_list ap)
{
  va_list again;
  va_copy(again, ap);
  int n = vsnprintf(NULL, 0, fmt, ap);
  if (n < 0)
    die("str_addf: bad format \"%s\"", fmt);
  reserve(s, (size_t)n);
  vsnprintf(s->s + s->n, (size_t)n + 1, fmt, again);
  va_end(again);
  s->n += (size_t)n;
}

void str_addf(struct str *s, const char *fmt, ...)
{
  va_list ap;
  va_start(ap, fmt);
  str_vaddf(s, fmt, ap);
  va_end(ap);
}

bool str_copy(char *out, size_t n_bytes, const char *text)
{
  size_t n = strlen(text);
  if (n_bytes == 0)
    return false;
  size_t m = n < n_bytes ? n : n_bytes - 1;
  memcpy(out, text, m);
  out[m] = '\0';
  return m == n;
}

bool str_starts(const char *s, const char *prefix)
{
  return strncmp(s, prefix, strlen(prefix)) == 0;
}

static int min_int(int a, int b)
{
  return a < b ? a : b;
}

/* Optimal string alignment: insert, delete, change, swap two neighbours, each costing one. Three rows of the table. */
#define WORD_MAX 64
int str_distance(const char *a, const char *b)
{
  size_t n_a = strlen(a), n_b = strlen(b);
  if (n_a > WORD_MAX || n_b > WORD_MAX) /* nobody mistypes that: as far apart as can be */
    return strcmp(a, b) == 0 ? 0 : (int)(n_a > n_b ? n_a : n_b);
  int row[3][WORD_MAX + 1];
  for (size_t j = 0; j <= n_b; j++)
    row[0][j] = (int)j;
  for (size_t i = 1; i <= n_a; i++) {
    int *now = row[i % 3], *up = row[(i + 2) % 3], *upup = row[(i + 1) % 3];
    now[0] = (int)i;
    for (size_t j = 1; j <= n_b; j++) {
      now[j] = min_int(up[j - 1] + (a[i - 1] != b[j - 1]), 1 + min_int(up[j], now[j - 1]));
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        now[j] = min_int(now[j], upup[j - 2] + 1);
    }
  }
  return row[n_a % 3][n_b];
}

const char *str_nearest(const char *word, const char *const *words)
{
  /* One edit in up to three letters, then one more for every three: "lr" is not near "seed". */
  int limit = 1 + (int)strlen(word) / 4;
  const char *best = NULL;
  for (; *words; words++) {
    int d = str_distance(word, *words);
    if (d <= limit && d < (int)strlen(*words)) {
      limit = d - 1; /* the first of equals stays */
      best = *words;
    }
  }
  return best;
}

/* "1e-05" -> "1e-5": no width to waste on an axis. */
static void squeeze_exponent(char *s)
{
  char *p = strchr(s, 'e');
  if (!p)
    return;
  p++;
  char *q = p;
  if (*q == '-')
    p++, q++;
  else if (*q == '+')
    q++;
  while (*q == '0' && q[1])
    q++;
  memmove(p, q, strlen(q) + 1);
}

const char *str_si(double v, char out[16])
{
  static const char unit[] = {0, 'k', 'M', 'G', 'T'};
  double a = fabs(v);
  int i = 0;
  if (!isfinite(v)) {
    str_copy(out, 16, isnan(v) ? "nan" : v > 0 ? "inf" : "-inf");
    return out;
  }
  /* 999.5 would round up to four digits, so it already takes the next unit. */
  while (a >= 999.5 && i < 4) {
    a /= 1000;
    i++;
  }
  a = copysign(a, v);
  if (fabs(a) >= 999.5) {
    snprintf(out, 16, "%.2e", v);
    squeeze_exponent(out);
  } else if (i > 0) {
    snprintf(out, 16, "%.3g%c", a, unit[i]);
  } else {
    snprintf(out, 16, "%.3g", a);
    squeeze_exponent(out);
  }
  return out;
}

/* Not finite: one spelling, whatever the sign bit of a NaN. */
static bool write_special(double v, char out[32])
{
  if (isfinite(v))
    return false;
  str_copy(out, 32, isnan(v) ? "nan" : v > 0 ? "inf" : "-inf");
  return true;
}

/* Any decimal of 15 digits survives a double (6: a float), so if the shortest form has no more than that, %.15g
 * prints it: %g drops the zeros. Beyond that, try 16 and 17 (7 to 9). */
const char *str_double(double v, char out[32])
{
  if (write_special(v, out))
    return out;
  for (int digits = 15; digits <= 17; digits++) {
    snprintf(out, 32, "%.*g", digits, v);
    if (strtod(out, NULL) == v)
      break;
  }
  return out;
}

const char *str_float(float v, char out[32])
{
  if (write_special((double)v, out))
    return out;
  for (int digits = 6; digits <= 9; digits++) {
    snprintf(out, 32, "%.*g", digits, (double)v);
    if (strtof(out, NULL) == v)
      break;
  }
  return out;
}
