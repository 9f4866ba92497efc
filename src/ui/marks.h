/* Vertical dashed lines where something was changed, with labels above that keep out of each other's way. */
#ifndef UI_MARKS_H
#define UI_MARKS_H

#include "ui/plot.h"

/* Rows, at most max_rows, that the labels take above an area w columns wide; 0: no mark has a label in the span. */
int marks_rows(const struct plot *p, const struct axis *x, int w, int max_rows);

/* Draws, after the data, the marks' lines down through labels and area (both as wide, labels.h may be 0) and their
 * labels into the rows of `labels`. The newest mark is served first: an older label that would touch it takes another
 * row, loses its first word (the knob's name), or is left out, its line stays. */
void marks_draw(const struct plot *p, const struct axis *x, struct grid *g, struct rect labels, struct rect area);

#endif
