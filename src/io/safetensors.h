/* safetensors: named arrays with a JSON header. */
#ifndef IO_SAFETENSORS_H
#define IO_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct st_tensor { /* to be written; data borrowed */
  const char *name;
  const char *dtype; /* "F32", "U8", "I64", ... */
  int rank;
  size_t shape[4];
  const void *data;
};

/* Writes to a temporary beside `path` and renames it, so that `path` is the old file or the whole new one.
 * metadata: n pairs key, value; may be NULL. */
int safetensors_save(const char *path, const struct st_tensor *t, size_t n, const char *const *metadata,
                     size_t n_metadata, struct err *e) ERR_MUST_CHECK;

struct st_file;
/* Maps and checks the whole header: sizes, dtypes, overlaps, ends. */
struct st_file *safetensors_open(const char *path, struct err *e) ERR_MUST_CHECK;
void safetensors_close(struct st_file *f);
size_t safetensors_count(const struct st_file *f);
const struct st_tensor *safetensors_at(const struct st_file *f, size_t i);
const struct st_tensor *safetensors_find(const struct st_file *f, const char *name); /* NULL: none */
const char *safetensors_metadata(const struct st_file *f, const char *key);          /* NULL: none */
size_t safetensors_dtype_bytes(const char *dtype); /* 0: unknown */

#endif
