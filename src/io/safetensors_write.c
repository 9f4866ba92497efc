/* Writes safetensors files: 8 bytes of header length, the JSON header padded with spaces to a multiple of 8, the data
 * without holes. Tensors lie by falling element size, so that each is aligned to its elements in a mapped file.
 *
 * The file is complete and on the disk before it gets its name. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "io/jsonl.h"
#include "io/safetensors.h"

static int check_tensor(const struct st_tensor *t, size_t *n_bytes, struct err *e)
{
  size_t size = safetensors_dtype_bytes(t->dtype);
  if (size == 0)
    return err_set(e, "tensor %s: unknown dtype %s", t->name, t->dtype);
  if (t->rank < 0 || t->rank > 4)
    return err_set(e, "tensor %s: rank %d, at most 4 are possible", t->name, t->rank);
  if (strcmp(t->name, "__metadata__") == 0)
    return err_set(e, "tensor %s: the name is reserved", t->name);
  for (int i = 0; i < t->rank; i++)
    if (__builtin_mul_overflow(size, t->shape[i], &size))
      return err_set(e, "tensor %s is too large", t->name);
  *n_bytes = size;
  return 0;
}

/* Places of the tensors in the file: order[k] is the k-th. Stable, so equal sizes keep the caller's order. */
static void place(const struct st_tensor *t, size_t n, size_t *order)
{
  static const size_t sizes[] = {8, 4, 2, 1};
  size_t k = 0;
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
    for (size_t i = 0; i < n; i++)
      if (safetensors_dtype_bytes(t[i].dtype) == sizes[s])
        order[k++] = i;
}

static void build_header(struct jsonl *j, const struct st_tensor *t, size_t n, const size_t *order,
                         const size_t *n_bytes, const char *const *metadata, size_t n_metadata)
{
  struct jsonl inner = {0};
  jsonl_begin(j);
  if (n_metadata > 0) {
    jsonl_begin(&inner);
    for (size_t i = 0; i < n_metadata; i++)
      jsonl_str(&inner, metadata[2 * i], metadata[2 * i + 1]);
    jsonl_raw(j, "__metadata__", jsonl_end(&inner));
  }
  size_t at = 0;
  for (size_t k = 0; k < n; k++) {
    const struct st_tensor *x = &t[order[k]];
    struct str text = {0};
    str_addc(&text, '[');
    for (int i = 0; i < x->rank; i++)
      str_addf(&text, "%s%zu", i ? "," : "", x->shape[i]);
    str_addc(&text, ']');
    jsonl_begin(&inner);
    jsonl_str(&inner, "dtype", x->dtype);
    jsonl_raw(&inner, "shape", text.s);
    str_clear(&text);
    str_addf(&text, "[%zu,%zu]", at, at + n_bytes[order[k]]);
    jsonl_raw(&inner, "data_offsets", text.s);
    jsonl_raw(j, x->name, jsonl_end(&inner));
    str_done(&text);
    at += n_bytes[order[k]];
  }
  jsonl_end(j);
  while (j->line.n % 8 != 0)
    str_addc(&j->line, ' ');
  jsonl_done(&inner);
}

static int write_all(int fd, const void *data, size_t n)
{
  for (const char *p = data; n > 0;) {
    ssize_t k = write(fd, p, n < (1u << 30) ? n : (1u << 30));
    if (k < 0 && errno != EINTR)
      return -1;
    if (k > 0) {
      p += k;
      n -= (size_t)k;
    }
  }
  return 0;
}

static int write_file(int fd, const struct str *header, const struct st_tensor *t, size_t n, const size_t *order,
                      const size_t *n_bytes)
{
  unsigned char length[8];
  for (int i = 0; i < 8; i++)
    length[i] = (unsigned char)((uint64_t)header->n >> 8 * i);
  if (write_all(fd, length, sizeof length) != 0 || write_all(fd, header->s, header->n) != 0)
    return -1;
  for (size_t k = 0; k < n; k++)
    if (write_all(fd, t[order[k]].data, n_bytes[order[k]]) != 0)
      return -1;
  return fsync(fd);
}

/* The file a path means: through links, since a rename would replace a link itself. What is no file (a device, a
 * directory) is refused: renaming over it would destroy it. Caller mem_free()s. */
static char *resolve(const char *path, struct err *e)
{
  struct stat st;
  if (stat(path, &st) != 0)
    return mem_strdup(path);
  if (!S_ISREG(st.st_mode)) {
    err_set(e, "cannot write %s: it is %s", path, S_ISDIR(st.st_mode) ? "a directory" : "not a regular file");
    return NULL;
  }
  char real[PATH_MAX];
  return mem_strdup(realpath(path, real) ? real : path);
}

/* Whether a run is writing its journal there (line_file.c holds a lock): a rename would take the file away under it. */
static bool is_being_written(const char *path)
{
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  bool locked = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  if (fd >= 0)
    close(fd);
  return locked;
}

/* The rename itself is on the disk once the directory is; where that cannot be had the file is still whole. */
static void sync_directory(const char *path)
{
  char *dir = mem_strdup(path);
  char *slash = strrchr(dir, '/');
  if (slash)
    slash[slash == dir] = '\0';
  int fd = open(slash ? dir : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd >= 0) {
    (void)fsync(fd);
    close(fd);
  }
  mem_free(dir);
}

static int write_and_rename(const char *path, const struct str *header, const struct st_tensor *t, size_t n,
                            const size_t *order, const size_t *n_bytes, struct err *e)
{
  char *target = resolve(path, e);
  if (!target)
    return -1;
  if (is_being_written(target)) {
    mem_free(target);
    return err_set(e, "cannot write %s: a run writes its journal there", path);
  }
  char *temporary = mem_printf("%s.%ld.tmp", target, (long)getpid());
  (void)unlink(temporary); /* of a process that had this number and was killed */
  int status = -1;
  int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) {
    err_set(e, "cannot write %s: %s", path, strerror(errno));
    goto out;
  }
  bool good = write_file(fd, header, t, n, order, n_bytes) == 0;
  int why = errno;
  if (close(fd) != 0 && good) {
    good = false;
    why = errno;
  }
  if (good && rename(temporary, target) != 0) {
    good = false;
    why = errno;
  }
  if (good) {
    sync_directory(target);
    status = 0;
  } else {
    err_set(e, "cannot write %s: %s", path, strerror(why));
    (void)unlink(temporary);
  }
out:
  mem_free(temporary);
  mem_free(target);
  return status;
}

static const char *find_duplicate(const struct st_tensor *t, size_t n)
{
  for (size_t i = 0; i < n; i++)
    for (size_t k = 0; k < i; k++)
      if (strcmp(t[i].name, t[k].name) == 0)
        return t[i].name;
  return NULL;
}

int safetensors_save(const char *path, const struct st_tensor *t, size_t n, const char *const *metadata,
                     size_t n_metadata, struct err *e)
{
  size_t *n_bytes = mem_alloc(n * sizeof *n_bytes), *order = mem_alloc(n * sizeof *order);
  struct jsonl header = {0};
  int status = 0;
  for (size_t i = 0; i < n && status == 0; i++)
    status = check_tensor(&t[i], &n_bytes[i], e);
  const char *twice = status == 0 ? find_duplicate(t, n) : NULL;
  if (twice)
    status = err_set(e, "two tensors are named %s", twice);
  if (status == 0) {
    place(t, n, order);
    build_header(&header, t, n, order, n_bytes, metadata, n_metadata);
    status = write_and_rename(path, &header.line, t, n, order, n_bytes, e);
  }
  jsonl_done(&header);
  mem_free(order);
  mem_free(n_bytes);
  return status;
}
