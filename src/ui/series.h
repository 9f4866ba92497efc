/* A series of points in constant memory: blocks of min, max, sum and count over equal spans of x, merged pairwise when
 * there are too many. Ten million points plot in the memory and the time of ten thousand. */
#ifndef UI_SERIES_H
#define UI_SERIES_H

#include <stddef.h>
#include <stdint.h>

struct series_block {
  double x0, x1;        /* first and last x */
  double min, max, sum; /* of the finite values */
  uint64_t n, n_bad;    /* finite values; NaN and Inf */
  double first, last;
};

struct series;
struct series *series_create(size_t max_blocks); /* e.g. 4096 */
void series_free(struct series *s);
/* x does not fall. n values merged: min..max with that sum; n_bad NaN or Inf among them. */
void series_push(struct series *s, double x, double min, double max, double sum, uint64_t n, uint64_t n_bad);
/* Drops what is after x (a rewind). */
void series_cut(struct series *s, double x);
size_t series_n_blocks(const struct series *s);
const struct series_block *series_block(const struct series *s, size_t i);
/* All points with x0 <= x <= x1 merged; n = n_bad = 0 where there are none. O(log blocks + blocks in the span). */
struct series_block series_span(const struct series *s, double x0, double x1);
double series_last(const struct series *s); /* NaN: none */

#endif
