/* Data sets: a train and a test split of samples that can be gathered by index. */
#ifndef DATA_DATASET_H
#define DATA_DATASET_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum split { SPLIT_TRAIN, SPLIT_TEST };

struct dataset;

/* name: "fashion-mnist", "spirals", "teacher", or "idx:DIR" (the four usual file names, plain or .gz), or
 * "idx:IMAGES,LABELS[,TEST_IMAGES,TEST_LABELS]". "auto" is fashion-mnist, or spirals with a notice where the package
 * is not installed. seed fixes synthetic sets. A message says which file is missing or damaged, and how. */
struct dataset *dataset_open(const char *name, uint64_t seed, struct err *e) ERR_MUST_CHECK;
void dataset_free(struct dataset *d);

const char *dataset_name(const struct dataset *d);   /* resolved: never "auto" */
const char *dataset_notice(const struct dataset *d); /* something the user should be told, or NULL */
size_t dataset_size(const struct dataset *d, enum split s);
size_t dataset_n_inputs(const struct dataset *d);
size_t dataset_n_classes(const struct dataset *d);
const char *dataset_hash(const struct dataset *d); /* 32 hex digits over all values and labels */

/* Gathers samples into x (n x n_inputs, images scaled to mean 0 and deviation 1 of the training split) and labels. */
void dataset_gather(const struct dataset *d, enum split s, const uint32_t *index, size_t n, float *x, int32_t *labels);

extern const char *const dataset_names[]; /* for completion and help; NULL-terminated */

#endif
