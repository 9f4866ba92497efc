/* Reads safetensors files by mapping them. Nothing in the file is believed: the header's length, every dtype, shape and
 * offset, overlaps, holes and the end are checked before a single pointer is handed out. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "base/mem.h"
#include "io/safetensors.h"

#define HEADER_MAX 100000000 /* the format's own limit */
#define METADATA "__metadata__"

/* Types of whole bytes. F4 and the F6 types pack elements across bytes; they are refused by name. */
static const struct dtype {
  const char *name;
  size_t n_bytes;
} dtype_table[] = {
    {"F64", 8},  {"I64", 8}, {"U64", 8}, {"C64", 8},  {"F32", 4},     {"I32", 4},     {"U32", 4},     {"F16", 2},
    {"BF16", 2}, {"I16", 2}, {"U16", 2}, {"BOOL", 1}, {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"F8_E8M0", 1}, {"I8", 1},
    {"U8", 1},
};

static const struct dtype *dtype_find(const char *name)
{
  for (size_t i = 0; i < sizeof dtype_table / sizeof *dtype_table; i++)
    if (strcmp(name, dtype_table[i].name) == 0)
      return &dtype_table[i];
  return NULL;
}

size_t safetensors_dtype_bytes(const char *dtype)
{
  const struct dtype *d = dtype_find(dtype);
  return d ? d->n_bytes : 0;
}

struct entry {
  struct st_tensor t; /* first: safetensors_at() hands it out */
  size_t begin, end;  /* in the data */
  void *copy;         /* of a tensor that is not aligned in the file, or NULL */
};

struct st_file {
  const unsigned char *map;
  size_t map_bytes, header_bytes;
  json_t *root; /* owns the names and the metadata */
  struct entry *entry;
  size_t n;
};

static int get_size(const json_t *v, size_t *out)
{
  if (!json_is_integer(v) || json_integer_value(v) < 0)
    return -1;
  *out = (size_t)json_integer_value(v);
  return 0;
}

static int read_shape(const json_t *shape, struct st_tensor *t, struct err *e)
{
  if (!json_is_array(shape))
    return err_set(e, "shape is missing or no array");
  if (json_array_size(shape) > 4)
    return err_set(e, "rank %zu, at most 4 are read", json_array_size(shape));
  t->rank = (int)json_array_size(shape);
  for (int i = 0; i < t->rank; i++)
    if (get_size(json_array_get(shape, (size_t)i), &t->shape[i]) != 0)
      return err_set(e, "shape[%d] is no whole number from 0 on", i);
  return 0;
}

static int read_entry(const struct st_file *f, const char *name, const json_t *v, struct entry *x, struct err *e)
{
  if (!json_is_object(v))
    return err_set(e, "its entry is no object");
  const char *dtype = json_string_value(json_object_get(v, "dtype"));
  if (!dtype)
    return err_set(e, "dtype is missing or no string");
  const struct dtype *d = dtype_find(dtype);
  if (!d)
    return err_set(e, "unknown dtype %s", dtype);
  x->t.name = name;
  x->t.dtype = d->name;
  if (read_shape(json_object_get(v, "shape"), &x->t, e) != 0)
    return -1;

  const json_t *offsets = json_object_get(v, "data_offsets");
  if (json_array_size(offsets) != 2 || get_size(json_array_get(offsets, 0), &x->begin) != 0 ||
      get_size(json_array_get(offsets, 1), &x->end) != 0)
    return err_set(e, "data_offsets are not two whole numbers");
  size_t data_bytes = f->map_bytes - 8 - f->header_bytes;
  if (x->begin > x->end || x->end > data_bytes)
    return err_set(e, "data_offsets %zu to %zu do not lie in the file's %zu bytes of data", x->begin, x->end,
                   data_bytes);
  size_t want = d->n_bytes;
  for (int i = 0; i < x->t.rank; i++)
    if (__builtin_mul_overflow(want, x->t.shape[i], &want))
      return err_set(e, "its shape overflows");
  if (want != x->end - x->begin)
    return err_set(e, "its shape needs %zu bytes, its data_offsets give %zu", want, x->end - x->begin);
  return 0;
}

static int check_metadata(const json_t *v, struct err *e)
{
  if (!json_is_object(v))
    return err_set(e, METADATA " is no object");
  const char *key;
  json_t *value;
  json_object_foreach((json_t *)v, key, value)
    if (!json_is_string(value))
      return err_set(e, METADATA " %s is no string", key);
  return 0;
}

static int read_entries(struct st_file *f, struct err *e)
{
  const char *name;
  json_t *v;
  f->entry = mem_alloc(json_object_size(f->root) * sizeof *f->entry);
  json_object_foreach(f->root, name, v)
  {
    if (strcmp(name, METADATA) == 0) {
      if (check_metadata(v, e) != 0)
        return -1;
    } else if (read_entry(f, name, v, &f->entry[f->n], e) != 0) {
      return err_prefix(e, "tensor %s", name);
    } else {
      f->n++;
    }
  }
  return 0;
}

static int by_begin(const void *a, const void *b)
{
  const struct entry *x = a, *y = b;
  if (x->begin != y->begin)
    return x->begin < y->begin ? -1 : 1;
  return x->end < y->end ? -1 : x->end > y->end; /* empty tensors before the one that begins there */
}

/* The format has no holes and no overlaps: sorted, each tensor begins where the last one ended. */
static int check_layout(struct st_file *f, struct err *e)
{
  size_t at = 0;
  qsort(f->entry, f->n, sizeof *f->entry, by_begin);
  for (size_t i = 0; i < f->n; i++) {
    const struct entry *x = &f->entry[i];
    if (x->begin < at)
      return err_set(e, "tensor %s overlaps %s", x->t.name, f->entry[i - 1].t.name);
    if (x->begin > at)
      return err_set(e, "%zu bytes before tensor %s belong to none", x->begin - at, x->t.name);
    at = x->end;
  }
  size_t data_bytes = f->map_bytes - 8 - f->header_bytes;
  if (at != data_bytes)
    return err_set(e, "%zu bytes after the last tensor", data_bytes - at);
  return 0;
}

/* Pointers into the map, or to copies where other writers left a tensor off its alignment. */
static int set_pointers(struct st_file *f, struct err *e)
{
  const unsigned char *data = f->map + 8 + f->header_bytes;
  for (size_t i = 0; i < f->n; i++) {
    struct entry *x = &f->entry[i];
    x->t.data = data + x->begin;
    if ((uintptr_t)x->t.data % safetensors_dtype_bytes(x->t.dtype) == 0)
      continue;
    x->copy = mem_buffer(x->end - x->begin, x->t.name, e);
    if (!x->copy)
      return -1;
    memcpy(x->copy, x->t.data, x->end - x->begin);
    x->t.data = x->copy;
  }
  return 0;
}

static int parse(struct st_file *f, struct err *e)
{
  uint64_t n = 0;
  if (f->map_bytes < 8)
    return err_set(e, "%zu bytes are too few for a safetensors file", f->map_bytes);
  for (int i = 0; i < 8; i++)
    n |= (uint64_t)f->map[i] << 8 * i;
  if (n > HEADER_MAX)
    return err_set(e, "not a safetensors file, or a damaged one: a header of %llu bytes", (unsigned long long)n);
  if (n > f->map_bytes - 8)
    return err_set(e, "truncated: the header should have %llu bytes, the file has %zu after its length",
                   (unsigned long long)n, f->map_bytes - 8);
  if (n == 0 || f->map[8] != '{')
    return err_set(e, "not a safetensors file: its header does not begin with {");
  f->header_bytes = (size_t)n;
  json_error_t why;
  f->root = json_loadb((const char *)f->map + 8, f->header_bytes, JSON_REJECT_DUPLICATES, &why);
  if (!f->root)
    return err_set(e, "the header is damaged at byte %d: %s", why.position, why.text);
  if (read_entries(f, e) != 0 || check_layout(f, e) != 0)
    return -1;
  return set_pointers(f, e);
}

static int map_file(struct st_file *f, const char *path, struct err *e)
{
  struct stat st;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a fifo must not hang here */
  if (fd < 0)
    return err_set(e, "%s", strerror(errno));
  int status = 0;
  if (fstat(fd, &st) != 0)
    status = err_set(e, "%s", strerror(errno));
  else if (!S_ISREG(st.st_mode))
    status = err_set(e, "not a regular file");
  else if (st.st_size < 8)
    status = err_set(e, "%lld bytes are too few for a safetensors file", (long long)st.st_size);
  if (status == 0) {
    f->map_bytes = (size_t)st.st_size;
    void *p = mmap(NULL, f->map_bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    if (p == MAP_FAILED)
      status = err_set(e, "cannot map it: %s", strerror(errno));
    else
      f->map = p;
  }
  close(fd);
  return status;
}

struct st_file *safetensors_open(const char *path, struct err *e)
{
  struct st_file *f = mem_alloc(sizeof *f);
  if (map_file(f, path, e) != 0 || parse(f, e) != 0) {
    err_prefix(e, "cannot read %s", path);
    safetensors_close(f);
    return NULL;
  }
  return f;
}

void safetensors_close(struct st_file *f)
{
  if (!f)
    return;
  for (size_t i = 0; i < f->n; i++)
    mem_buffer_free(f->entry[i].copy);
  mem_free(f->entry);
  if (f->root)
    json_decref(f->root);
  if (f->map)
    munmap((void *)f->map, f->map_bytes);
  mem_free(f);
}

size_t safetensors_count(const struct st_file *f)
{
  return f->n;
}

const struct st_tensor *safetensors_at(const struct st_file *f, size_t i)
{
  return i < f->n ? &f->entry[i].t : NULL;
}

const struct st_tensor *safetensors_find(const struct st_file *f, const char *name)
{
  for (size_t i = 0; i < f->n; i++)
    if (strcmp(f->entry[i].t.name, name) == 0)
      return &f->entry[i].t;
  return NULL;
}

const char *safetensors_metadata(const struct st_file *f, const char *key)
{
  return json_string_value(json_object_get(json_object_get(f->root, METADATA), key));
}
