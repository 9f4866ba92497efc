/* JSON Lines out: one object a line, built field by field, with shortest round-trip numbers. Reading is jansson's.
 * JSON has no NaN and Inf: they are written as the strings "NaN", "Infinity", "-Infinity". */
#ifndef IO_JSONL_H
#define IO_JSONL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "base/str.h"

/* Builds one object in a string; nested values go through jsonl_raw(). */
struct jsonl {
  struct str line;
  bool started;
};
void jsonl_begin(struct jsonl *j);
void jsonl_str(struct jsonl *j, const char *key, const char *value); /* value NULL writes null */
void jsonl_int(struct jsonl *j, const char *key, int64_t value);
void jsonl_real(struct jsonl *j, const char *key, double value);
void jsonl_bool(struct jsonl *j, const char *key, bool value);
void jsonl_raw(struct jsonl *j, const char *key, const char *json); /* already JSON */
const char *jsonl_end(struct jsonl *j); /* the line without newline; borrowed until the next begin */
void jsonl_done(struct jsonl *j);
void json_quote(struct str *out, const char *text); /* "text" with escapes */

/* A file of lines that never tears: a line is written whole; a full disk or a closed pipe is an error at the line. */
struct line_file;
struct line_file *line_file_create(const char *path, struct err *e) ERR_MUST_CHECK; /* "-" is standard output */
int line_file_write(struct line_file *f, const char *line, struct err *e) ERR_MUST_CHECK; /* buffered */
int line_file_flush(struct line_file *f, struct err *e) ERR_MUST_CHECK;
int line_file_close(struct line_file *f, struct err *e) ERR_MUST_CHECK;
const char *line_file_path(const struct line_file *f);

#endif
