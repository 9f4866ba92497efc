/* The table of data sources, the copies that runs share, and gathering of batches. */
#include "config.h"

#include "data/dataset.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "base/str.h"
#include "data/dataset_impl.h"

struct source {
  const char *name; /* a whole name, or a prefix that ends in ':' */
  bool seeded;
  int (*open)(struct dataset *d, const char *rest, struct err *e);
};

static const struct source source_table[] = {
    {.name = "fashion-mnist", .open = images_open_fashion},
    {.name = "spirals", .seeded = true, .open = synthetic_open_spirals},
    {.name = "teacher", .seeded = true, .open = synthetic_open_teacher},
    {.name = "idx:", .open = images_open_idx},
};

const char *const dataset_names[] = {"auto", "fashion-mnist", "spirals", "teacher", NULL};

/* Open data sets, so that two runs on the same data hold it once. */
static struct dataset *open_sets;
static pthread_mutex_t open_sets_lock = PTHREAD_MUTEX_INITIALIZER;

static const struct source *find_source(const char *name, const char **rest)
{
  for (size_t i = 0; i < sizeof source_table / sizeof *source_table; i++) {
    const struct source *s = &source_table[i];
    size_t n = strlen(s->name);
    bool prefix = s->name[n - 1] == ':';
    if (prefix ? strncmp(name, s->name, n) == 0 : strcmp(name, s->name) == 0) {
      *rest = name + (prefix ? n : strlen(name));
      return s;
    }
  }
  return NULL;
}

static int unknown_name(const char *name, struct err *e)
{
  const char *near = str_nearest(name, dataset_names);
  struct str all = {0};
  for (size_t i = 0; dataset_names[i]; i++)
    str_addf(&all, "%s, ", dataset_names[i]);
  int status = err_set(e, "no data set '%s'%s%s%s; there are %sidx:DIR and idx:IMAGES,LABELS[,IMAGES,LABELS]", name,
                       near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "", all.s);
  str_done(&all);
  return status;
}

int dataset_stamp(struct dataset *d, const char *path, struct err *e)
{
  struct stat st;
  if (stat(path, &st) != 0)
    return err_set(e, "%s: %s", path, strerror(errno));
  d->file[d->n_files++] =
      (struct file_stamp){.path = mem_strdup(path), .mtime = st.st_mtim, .size = (long long)st.st_size};
  return 0;
}

static bool files_unchanged(const struct dataset *d)
{
  for (int i = 0; i < d->n_files; i++) {
    const struct file_stamp *f = &d->file[i];
    struct stat st;
    if (stat(f->path, &st) != 0 || st.st_size != f->size || st.st_mtim.tv_sec != f->mtime.tv_sec ||
        st.st_mtim.tv_nsec != f->mtime.tv_nsec)
      return false;
  }
  return true;
}

static struct dataset *find_open(const char *name, uint64_t seed, bool fall_back)
{
  for (struct dataset *d = open_sets; d; d = d->next)
    if (strcmp(d->name, name) == 0 && (!d->seeded || d->seed == seed) && d->fall_back == fall_back &&
        files_unchanged(d))
      return d;
  return NULL;
}

static void destroy(struct dataset *d)
{
  for (int s = 0; s < 2; s++) {
    mem_buffer_free(d->part[s].bytes);
    mem_buffer_free(d->part[s].values);
    mem_buffer_free(d->part[s].labels);
  }
  for (int i = 0; i < d->n_files; i++)
    mem_free(d->file[i].path);
  mem_free(d->name);
  mem_free(d->notice);
  mem_free(d);
}

/* Reads or makes a set. Where its resolved name shows that it is open already, that copy is the one to use. */
static struct dataset *load(const char *name, uint64_t seed, bool fall_back, struct err *e)
{
  const char *rest;
  const struct source *s = find_source(name, &rest);
  if (!s) {
    unknown_name(name, e);
    return NULL;
  }
  struct dataset *d = mem_alloc(sizeof *d);
  d->name = mem_strdup(name);
  d->seed = seed;
  d->seeded = s->seeded;
  if (s->open(d, rest, e) != 0) {
    destroy(d);
    return NULL;
  }
  struct dataset *same = find_open(d->name, seed, false);
  if (same && !fall_back) {
    destroy(d);
    return same;
  }
  d->fall_back = fall_back;
  if (fall_back)
    d->notice = mem_printf("Fashion-MNIST is not in %s (Debian package dataset-fashion-mnist): "
                           "using the built-in set `spirals` instead",
                           images_fashion_dir());
  d->next = open_sets;
  open_sets = d;
  return d;
}

struct dataset *dataset_open(const char *name, uint64_t seed, struct err *e)
{
  bool is_auto = strcmp(name, "auto") == 0;
  bool fall_back = is_auto && !images_have_fashion();
  if (is_auto)
    name = fall_back ? "spirals" : "fashion-mnist";

  pthread_mutex_lock(&open_sets_lock); /* held while reading, so that two runs made at once read once */
  struct dataset *d = find_open(name, seed, fall_back);
  if (!d)
    d = load(name, seed, fall_back, e);
  if (d)
    d->n_users++;
  pthread_mutex_unlock(&open_sets_lock);
  return d;
}

void dataset_free(struct dataset *d)
{
  if (!d)
    return;
  pthread_mutex_lock(&open_sets_lock);
  if (--d->n_users == 0) {
    struct dataset **at = &open_sets;
    while (*at != d)
      at = &(*at)->next;
    *at = d->next;
    destroy(d);
  }
  pthread_mutex_unlock(&open_sets_lock);
}

const char *dataset_name(const struct dataset *d)
{
  return d->name;
}

const char *dataset_notice(const struct dataset *d)
{
  return d->notice;
}

size_t dataset_size(const struct dataset *d, enum split s)
{
  return d->part[s].n;
}

size_t dataset_n_inputs(const struct dataset *d)
{
  return d->n_inputs;
}

size_t dataset_n_classes(const struct dataset *d)
{
  return d->n_classes;
}

const char *dataset_hash(const struct dataset *d)
{
  return d->hash;
}

void dataset_gather(const struct dataset *d, enum split s, const uint32_t *index, size_t n, float *x, int32_t *labels)
{
  const struct part *p = &d->part[s];
  size_t width = d->n_inputs;
  for (size_t i = 0; i < n; i++) {
    size_t at = index[i];
    if (at >= p->n)
      die("dataset_gather: sample %zu of %zu", at, p->n);
    labels[i] = p->labels[at];
    float *restrict out = x + i * width;
    if (p->values) {
      memcpy(out, p->values + at * width, width * sizeof *out);
      continue;
    }
    const uint8_t *restrict in = p->bytes + at * width;
    for (size_t j = 0; j < width; j++)
      out[j] = d->norm[in[j]];
  }
}
