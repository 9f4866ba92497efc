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
  double first, last;   /* NaN where that value was not finite; the mean for a push of several values */
};

struct series;
struct series *series_create(size_t max_blocks); /* e.g. 4096 */
void series_free(struct series *s);
/* x does not fall (one that does counts as the last x; a NaN x is dropped). n values merged: min..max with that sum;
 * n_bad NaN or Inf among them, not counted in n. A min or max that is not finite makes all n of them bad. */
void series_push(struct series *s, double x, double min, double max, double sum, uint64_t n, uint64_t n_bad);
/* Drops what is after x (a rewind). A block that reaches beyond x cannot be divided and goes whole: what was abandoned
 * never stays on the screen, at the price of at most one block (a 1/2048th of the history) before x. */
void series_cut(struct series *s, double x);
size_t series_n_blocks(const struct series *s);
const struct series_block *series_block(const struct series *s, size_t i);
/* All points with x0 <= x <= x1 merged; n = n_bad = 0 where there are none. O(log blocks + blocks in the span).
 * Blocks that reach over an end of the span count whole: an extreme is never hidden. */
struct series_block series_span(const struct series *s, double x0, double x1);
/* The newest value; NaN: none, or it was NaN or Inf. */
double series_last(const struct series *s);
/* The index of the first block that ends at or after x; series_n_blocks() where none does. O(log blocks). */
size_t series_find(const struct series *s, double x);
/* Mean of a block's finite values, within min..max even where the sum overflowed; NaN where n is 0. */
double series_mean(const struct series_block *b);

#endif
