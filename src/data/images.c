/* Data sets of images in idx files: Fashion-MNIST where Debian puts it, and any others by path. */
#include "config.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/str.h"
#include "data/dataset_impl.h"
#include "data/idx.h"

enum { FASHION_CLASSES = 10 };

/* The names under which MNIST and its successors are shipped, in the order of struct dataset.file. */
static const char *const usual_names[DATASET_FILES] = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                                                       "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};

/* $BITDIAL_DATASETS/fashion-mnist where that is set, else Debian's place. The text lives until the next call. */
const char *images_fashion_dir(void)
{
  static _Thread_local char dir[PATH_MAX];
  const char *base = getenv("BITDIAL_DATASETS");
  struct str s = {0};
  str_addf(&s, "%s/fashion-mnist", base && *base ? base : "/usr/share/datasets");
  str_copy(dir, sizeof dir, s.s);
  str_done(&s);
  return dir;
}

/* dir/name or dir/name.gz, whichever is there; the former when neither is. Caller mem_free()s. */
static char *find_in(const char *dir, const char *name, bool *found)
{
  char *plain = mem_printf("%s/%s", dir, name);
  char *gz = mem_printf("%s/%s.gz", dir, name);
  *found = true;
  if (access(plain, F_OK) == 0) {
    mem_free(gz);
    return plain;
  }
  if (access(gz, F_OK) == 0) {
    mem_free(plain);
    return gz;
  }
  *found = false;
  mem_free(gz);
  return plain;
}

bool images_have_fashion(void)
{
  bool all = true;
  for (int i = 0; i < DATASET_FILES && all; i++)
    mem_free(find_in(images_fashion_dir(), usual_names[i], &all));
  return all;
}

/* Reads images and labels of one split. */
static int read_part(struct dataset *d, enum split s, const char *images, const char *labels, struct err *e)
{
  struct idx x, y;
  if (dataset_stamp(d, images, e) != 0 || dataset_stamp(d, labels, e) != 0)
    return -1;
  if (idx_read(images, 2, IDX_DIMS, &x, e) != 0)
    return -1;
  if (idx_read(labels, 1, 1, &y, e) != 0) {
    idx_done(&x);
    return -1;
  }
  struct part *p = &d->part[s];
  p->bytes = x.data;
  p->labels = y.data;
  p->n = x.dim[0];
  if (y.n != x.dim[0])
    return err_set(e, "%s has %zu images but %s has %zu labels", images, x.dim[0], labels, y.n);
  if (p->n > UINT32_MAX / 2)
    return err_set(e, "%s: %zu images; at most %u are taken", images, p->n, (unsigned)(UINT32_MAX / 2));
  size_t width = x.n / x.dim[0];
  if (s == SPLIT_TEST && width != d->n_inputs)
    return err_set(e, "%s has %zu values an image but the training images have %zu", images, width, d->n_inputs);
  d->n_inputs = width;
  return 0;
}

/* n_classes: what the labels must stay below; 0: as many as the training labels show. */
static int check_labels(struct dataset *d, size_t n_classes, const char *const path[], struct err *e)
{
  size_t top = 0;
  for (size_t i = 0; i < d->part[SPLIT_TRAIN].n; i++)
    top = d->part[SPLIT_TRAIN].labels[i] > top ? d->part[SPLIT_TRAIN].labels[i] : top;
  d->n_classes = n_classes ? n_classes : top + 1;
  if (d->n_classes < 2)
    return err_set(e, "%s: every label is 0; at least two classes are needed", path[1]);
  for (int s = 0; s < 2; s++) {
    const struct part *p = &d->part[s];
    for (size_t i = 0; i < p->n; i++)
      if (p->labels[i] >= d->n_classes)
        return err_set(e, "%s: label %d of sample %zu is out of range: %s 0 to %zu", path[2 * s + 1], p->labels[i], i,
                       n_classes ? "the classes are" : "the training labels are", d->n_classes - 1);
  }
  return 0;
}

/* Mean and deviation of the training split's bytes, from their histogram: exact sums in integers. Four histograms,
 * since equal neighbours (the black border) would wait for one another's increments. */
static void make_norm(struct dataset *d)
{
  static _Thread_local uint64_t h[4][256];
  memset(h, 0, sizeof h);
  const struct part *p = &d->part[SPLIT_TRAIN];
  size_t n = p->n * d->n_inputs, i = 0;
  for (; i + 4 <= n; i += 4)
    for (int k = 0; k < 4; k++)
      h[k][p->bytes[i + (size_t)k]]++;
  for (; i < n; i++)
    h[0][p->bytes[i]]++;
  double sum = 0, sum2 = 0;
  for (int v = 0; v < 256; v++) {
    double count = (double)(h[0][v] + h[1][v] + h[2][v] + h[3][v]);
    sum += count * v;
    sum2 += count * v * v;
  }
  double mean = sum / (double)n;
  double var = sum2 / (double)n - mean * mean; /* of integers below 256: no cancellation to speak of */
  double dev = var > 0 ? sqrt(var) : 1;
  for (int v = 0; v < 256; v++)
    d->norm[v] = (float)((v - mean) / dev);
}

static void make_hash(struct dataset *d)
{
  struct hash *h = hash_create();
  for (int s = 0; s < 2; s++) {
    const struct part *p = &d->part[s];
    uint64_t shape[2] = {p->n, d->n_inputs};
    hash_add(h, shape, sizeof shape);
    hash_add(h, p->bytes, p->n * d->n_inputs);
    hash_add(h, p->labels, p->n);
  }
  hash_finish(h, d->hash);
}

/* Without test files the last tenth of the training samples is held out. */
static int split_off_test(struct dataset *d, const char *path, struct err *e)
{
  struct part *train = &d->part[SPLIT_TRAIN], *test = &d->part[SPLIT_TEST];
  test->n = train->n / 10;
  if (test->n == 0)
    return err_set(e, "%s: %zu images are too few to hold out a tenth of them for testing", path, train->n);
  test->bytes = mem_buffer(test->n * d->n_inputs, "held-out images", e);
  test->labels = mem_buffer(test->n, "held-out labels", e);
  if (!test->bytes || !test->labels)
    return -1;
  train->n -= test->n;
  memcpy(test->bytes, train->bytes + train->n * d->n_inputs, test->n * d->n_inputs);
  memcpy(test->labels, train->labels + train->n, test->n);
  d->notice = mem_printf("no test files given: the last %zu training samples are held out instead", test->n);
  return 0;
}

static int open_files(struct dataset *d, const char *const path[DATASET_FILES], int n_paths, size_t n_classes,
                      struct err *e)
{
  if (read_part(d, SPLIT_TRAIN, path[0], path[1], e) != 0)
    return -1;
  if (n_paths == DATASET_FILES ? read_part(d, SPLIT_TEST, path[2], path[3], e) != 0
                               : split_off_test(d, path[0], e) != 0)
    return -1;
  if (check_labels(d, n_classes, path, e) != 0)
    return -1;
  make_norm(d);
  make_hash(d);
  return 0;
}

static int open_dir(struct dataset *d, const char *dir, size_t n_classes, struct err *e)
{
  char *path[DATASET_FILES];
  int status = 0;
  for (int i = 0; i < DATASET_FILES; i++) {
    bool found;
    path[i] = find_in(dir, usual_names[i], &found);
    if (!found && status == 0)
      status = err_set(e, "%s: no such file, nor with .gz added", path[i]);
  }
  if (status == 0)
    status = open_files(d, (const char *const *)path, DATASET_FILES, n_classes, e);
  for (int i = 0; i < DATASET_FILES; i++)
    mem_free(path[i]);
  return status;
}

int images_open_fashion(struct dataset *d, const char *rest, struct err *e)
{
  (void)rest;
  if (!images_have_fashion())
    return err_set(e, "Fashion-MNIST is not in %s; on Debian: apt-get install dataset-fashion-mnist",
                   images_fashion_dir());
  return open_dir(d, images_fashion_dir(), FASHION_CLASSES, e);
}

/* Puts absolute paths in the name, so that a journal repeats from any directory. */
static int resolve_name(struct dataset *d, char *const *path, int n, struct err *e)
{
  struct str name = {0};
  str_add(&name, "idx:");
  for (int i = 0; i < n; i++) {
    char full[PATH_MAX];
    if (!realpath(path[i], full)) {
      str_done(&name);
      return err_set(e, "%s: no such file or directory", path[i]);
    }
    str_addf(&name, "%s%s", i ? "," : "", full);
  }
  mem_free(d->name);
  d->name = mem_strdup(name.s);
  str_done(&name);
  return 0;
}

static int open_list(struct dataset *d, char *list, struct err *e)
{
  char *path[DATASET_FILES], *save = NULL;
  int n = 0;
  for (char *p = strtok_r(list, ",", &save); p; p = strtok_r(NULL, ",", &save)) {
    if (n == DATASET_FILES)
      return err_set(e, "idx: more than four files; expected idx:IMAGES,LABELS[,TEST_IMAGES,TEST_LABELS]");
    path[n++] = p;
  }
  if (n != 2 && n != DATASET_FILES)
    return err_set(e, "idx: %d file%s; expected idx:DIR or idx:IMAGES,LABELS[,TEST_IMAGES,TEST_LABELS]", n,
                   n == 1 ? "" : "s");
  if (resolve_name(d, path, n, e) != 0)
    return -1;
  return open_files(d, (const char *const *)path, n, 0, e);
}

int images_open_idx(struct dataset *d, const char *rest, struct err *e)
{
  struct stat st;
  char *copy = mem_strdup(rest);
  int status;
  if (stat(rest, &st) == 0 && S_ISDIR(st.st_mode))
    status = resolve_name(d, &copy, 1, e) != 0 ? -1 : open_dir(d, rest, 0, e);
  else if (*rest && !strchr(rest, ','))
    status = err_set(e, "%s: no such directory; expected idx:DIR or idx:IMAGES,LABELS[,TEST_IMAGES,TEST_LABELS]", rest);
  else
    status = open_list(d, copy, e);
  mem_free(copy);
  return status;
}
