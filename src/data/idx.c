/* Reads idx files through zlib, which takes gzip and plain files alike, and trusts nothing in them. */
#include "config.h"

#include "data/idx.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/mem.h"

/* Deflate cannot expand by more than this (zlib technical notes: 1032:1), so a header that asks for more lies. */
#define DEFLATE_MAX_RATIO 1032

enum { IDX_U8 = 0x08 };

static const struct {
  int code;
  const char *name;
} type_names[] = {
    {0x08, "unsigned byte"},  {0x09, "signed byte"}, {0x0B, "16-bit integer"},
    {0x0C, "32-bit integer"}, {0x0D, "float"},       {0x0E, "double"},
};

static const char *type_name(int code)
{
  for (size_t i = 0; i < sizeof type_names / sizeof *type_names; i++)
    if (type_names[i].code == code)
      return type_names[i].name;
  return "unknown";
}

/* One file being read. */
struct reader {
  const char *path;
  gzFile gz;
  unsigned long long file_bytes; /* on disk */
};

static int reader_open(struct reader *r, const char *path, struct err *e)
{
  r->path = path;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO would keep open() waiting for its writer */
  if (fd < 0)
    return err_set(e, "%s: %s", path, strerror(errno));
  struct stat st;
  if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
    close(fd);
    return err_set(e, "%s: not a regular file", path);
  }
  r->file_bytes = (unsigned long long)st.st_size;
  r->gz = gzdopen(fd, "rb");
  if (!r->gz) {
    close(fd);
    return err_set(e, "%s: no memory to read it", path);
  }
  gzbuffer(r->gz, 256 * 1024);
  return 0;
}

/* Reads n bytes or fails; `what` names them. */
static int reader_take(struct reader *r, void *out, size_t n, const char *what, struct err *e)
{
  size_t done = 0;
  while (done < n) {
    unsigned ask = n - done > (1u << 30) ? 1u << 30 : (unsigned)(n - done);
    int got = gzread(r->gz, (char *)out + done, ask);
    if (got > 0) {
      done += (size_t)got;
      continue;
    }
    int code = Z_OK;
    const char *why = gzerror(r->gz, &code);
    if (code == Z_OK || code == Z_BUF_ERROR || code == Z_STREAM_END)
      return err_set(e, "%s: truncated: %s needs %zu bytes, the file ends after %zu of them", r->path, what, n, done);
    return err_set(e, "%s: damaged after %zu of %zu bytes of %s: %s", r->path, done, n, what,
                   code == Z_ERRNO ? strerror(errno) : why);
  }
  return 0;
}

/* The file must end here; reading on also makes zlib compare the checksum. */
static int reader_end(struct reader *r, struct err *e)
{
  char extra;
  int got = gzread(r->gz, &extra, 1);
  if (got == 1)
    return err_set(e, "%s: bytes follow the values that the header announces", r->path);
  int code = Z_OK;
  const char *why = gzerror(r->gz, &code);
  if (got < 0 || (code != Z_OK && code != Z_STREAM_END))
    return err_set(e, "%s: damaged at its end: %s", r->path, code == Z_ERRNO ? strerror(errno) : why);
  return 0;
}

static int read_magic(struct reader *r, int min_dims, int max_dims, struct idx *out, struct err *e)
{
  uint8_t m[4];
  if (reader_take(r, m, sizeof m, "the idx header", e) != 0)
    return -1;
  if (m[0] != 0 || m[1] != 0)
    return err_set(e, "%s: not an idx file: it starts with %02x %02x %02x %02x, an idx file of bytes with 00 00 08",
                   r->path, m[0], m[1], m[2], m[3]);
  if (m[2] != IDX_U8)
    return err_set(e, "%s: values have idx type 0x%02x (%s); only 0x08 (unsigned byte) is read", r->path, m[2],
                   type_name(m[2]));
  if (m[3] < min_dims || m[3] > max_dims) {
    if (min_dims == max_dims)
      return err_set(e, "%s: %d dimensions, expected %d", r->path, m[3], min_dims);
    return err_set(e, "%s: %d dimensions, expected %d to %d", r->path, m[3], min_dims, max_dims);
  }
  out->n_dims = m[3];
  return 0;
}

static int read_dims(struct reader *r, struct idx *out, struct err *e)
{
  uint8_t b[4 * IDX_DIMS];
  if (reader_take(r, b, 4 * (size_t)out->n_dims, "the idx dimensions", e) != 0)
    return -1;
  unsigned long long limit = r->file_bytes;
  if (!gzdirect(r->gz))
    limit = r->file_bytes * DEFLATE_MAX_RATIO;
  unsigned long long n = 1;
  for (int i = 0; i < out->n_dims; i++) {
    const uint8_t *p = b + 4 * i;
    uint32_t dim = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
    if (dim == 0)
      return err_set(e, "%s: dimension %d is 0", r->path, i + 1);
    if (dim > limit / n) /* n >= 1, so this never divides by zero and n * dim never overflows */
      return err_set(e, "%s: truncated or damaged: the header announces more values than a file of %llu bytes can hold",
                     r->path, r->file_bytes);
    n *= dim;
    out->dim[i] = dim;
  }
  out->n = (size_t)n;
  return 0;
}

static int read_all(struct reader *r, int min_dims, int max_dims, struct idx *out, struct err *e)
{
  if (read_magic(r, min_dims, max_dims, out, e) != 0 || read_dims(r, out, e) != 0)
    return -1;
  struct err why;
  out->data = mem_buffer(out->n, "an idx file", &why);
  if (!out->data)
    return err_set(e, "%s: %s", r->path, why.msg);
  if (reader_take(r, out->data, out->n, "the values", e) != 0)
    return -1;
  return reader_end(r, e);
}

int idx_read(const char *path, int min_dims, int max_dims, struct idx *out, struct err *e)
{
  *out = (struct idx){0};
  struct reader r;
  if (reader_open(&r, path, e) != 0)
    return -1;
  int status = read_all(&r, min_dims, max_dims, out, e);
  gzclose(r.gz);
  if (status != 0)
    idx_done(out);
  return status;
}

void idx_done(struct idx *x)
{
  mem_buffer_free(x->data);
  *x = (struct idx){0};
}
