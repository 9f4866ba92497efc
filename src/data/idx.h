/* idx files (the form of MNIST and its successors), plain or gzip: big-endian 0, 0, type, number of dimensions, the
 * dimensions as 32-bit words, then the values. Unsigned bytes alone are read. */
#ifndef DATA_IDX_H
#define DATA_IDX_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define IDX_DIMS 4

struct idx {
  int n_dims;
  size_t dim[IDX_DIMS];
  size_t n;      /* product of dim */
  uint8_t *data; /* idx_done() frees */
};

/* Reads the whole file and checks it: magic, type, dimensions between min_dims and max_dims, exact length. A message
 * names the file, what was expected and what was found. On failure *out is empty. */
int idx_read(const char *path, int min_dims, int max_dims, struct idx *out, struct err *e) ERR_MUST_CHECK;
void idx_done(struct idx *x);

#endif
