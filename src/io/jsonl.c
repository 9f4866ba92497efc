/* JSON objects built field by field into one line. What comes in may be any bytes (a path, a message); what goes out is
 * always valid UTF-8 and valid JSON (RFC 8259), so that every reader can read a journal back. */
#include "config.h"

#include "io/jsonl.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Length of the well-formed UTF-8 sequence at s (Unicode 15, table 3-7), or 0. Stops at the final NUL by itself. */
static size_t utf8_length(const unsigned char *s)
{
  static const struct {
    unsigned char first, last, low, high; /* lead bytes; bounds of the second byte */
    size_t n;
  } row[] = {
      {0x01, 0x7f, 0, 0, 1},       {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
      {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
      {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
  };
  for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
    if (s[0] < row[i].first || s[0] > row[i].last)
      continue;
    if (row[i].n > 1 && (s[1] < row[i].low || s[1] > row[i].high))
      return 0;
    for (size_t k = 2; k < row[i].n; k++)
      if ((s[k] & 0xc0) != 0x80)
        return 0;
    return row[i].n;
  }
  return 0;
}

void json_quote(struct str *out, const char *text)
{
  static const char special[] = "\"\\\b\f\n\r\t", letter[] = "\"\\bfnrt";
  str_addc(out, '"');
  for (const unsigned char *s = (const unsigned char *)text; *s;) {
    const char *found = strchr(special, *s);
    size_t n = utf8_length(s);
    if (found) {
      str_addc(out, '\\');
      str_addc(out, letter[found - special]);
    } else if (*s < 0x20) {
      str_addf(out, "\\u%04x", (unsigned)*s);
    } else if (n == 0) {
      str_add(out, "\xef\xbf\xbd"); /* U+FFFD for each byte that is not UTF-8 */
    } else {
      str_addn(out, (const char *)s, n);
    }
    s += n ? n : 1;
  }
  str_addc(out, '"');
}

void jsonl_begin(struct jsonl *j)
{
  str_clear(&j->line);
  str_addc(&j->line, '{');
  j->started = false;
}

static void add_key(struct jsonl *j, const char *key)
{
  if (j->started)
    str_addc(&j->line, ',');
  j->started = true;
  json_quote(&j->line, key);
  str_addc(&j->line, ':');
}

void jsonl_str(struct jsonl *j, const char *key, const char *value)
{
  add_key(j, key);
  if (value)
    json_quote(&j->line, value);
  else
    str_add(&j->line, "null");
}

void jsonl_int(struct jsonl *j, const char *key, int64_t value)
{
  add_key(j, key);
  str_addf(&j->line, "%" PRId64, value);
}

void jsonl_real(struct jsonl *j, const char *key, double value)
{
  char text[32];
  add_key(j, key);
  if (isnan(value))
    str_add(&j->line, "\"NaN\"");
  else if (isinf(value))
    str_add(&j->line, value > 0 ? "\"Infinity\"" : "\"-Infinity\"");
  else
    str_add(&j->line, str_double(value, text));
}

void jsonl_bool(struct jsonl *j, const char *key, bool value)
{
  add_key(j, key);
  str_add(&j->line, value ? "true" : "false");
}

void jsonl_raw(struct jsonl *j, const char *key, const char *json)
{
  add_key(j, key);
  str_add(&j->line, json);
}

const char *jsonl_end(struct jsonl *j)
{
  str_addc(&j->line, '}');
  return j->line.s;
}

void jsonl_done(struct jsonl *j)
{
  str_done(&j->line);
  j->started = false;
}
