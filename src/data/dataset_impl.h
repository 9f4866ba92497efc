/* Inside of a data set, for the files of this layer that fill one. */
#ifndef DATA_DATASET_IMPL_H
#define DATA_DATASET_IMPL_H

#include <stdbool.h>
#include <time.h>

#include "data/dataset.h"

#define DATASET_FILES 4 /* train images, train labels, test images, test labels */

/* Samples of one split: either bytes (through the table `norm` when gathered) or floats. */
struct part {
  size_t n;
  uint8_t *bytes;  /* n x n_inputs, or NULL */
  float *values;   /* n x n_inputs, or NULL */
  uint8_t *labels; /* n */
};

/* What a file was when it was read: a shared data set is taken again only while its files are still those. */
struct file_stamp {
  char *path;
  struct timespec mtime;
  long long size;
};

struct dataset {
  char *name, *notice;
  uint64_t seed;
  bool seeded;    /* the seed decides its values */
  bool fall_back; /* stands in for the set that "auto" would have preferred */
  size_t n_inputs, n_classes;
  struct part part[2]; /* by enum split */
  float norm[256];     /* byte -> scaled value */
  char hash[33];
  struct file_stamp file[DATASET_FILES];
  int n_files;
  int n_users; /* of the shared copy */
  struct dataset *next;
};

/* The sources: each fills *d (zeroed, name set) and leaves what it made there when it fails, for dataset_free(). */
int images_open_fashion(struct dataset *d, const char *rest, struct err *e) ERR_MUST_CHECK;
int images_open_idx(struct dataset *d, const char *rest, struct err *e) ERR_MUST_CHECK;
int synthetic_open_spirals(struct dataset *d, const char *rest, struct err *e) ERR_MUST_CHECK;
int synthetic_open_teacher(struct dataset *d, const char *rest, struct err *e) ERR_MUST_CHECK;

bool images_have_fashion(void); /* all four files are there */
const char *images_fashion_dir(void);

/* Remembers path and state of a file that was read. */
int dataset_stamp(struct dataset *d, const char *path, struct err *e) ERR_MUST_CHECK;

#endif
