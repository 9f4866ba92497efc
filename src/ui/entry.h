/* How an entry at the prompt looks: prompt, text of one or several lines, cursor, wrapped at the pane's width. */
#ifndef UI_ENTRY_H
#define UI_ENTRY_H

#include "ui/cell.h"

struct entry {
  const char *prompt; /* bytes 1 and 2, readline's marks of invisible parts, are skipped */
  const char *more;   /* what begins the lines after the first */
  const char *text;   /* UTF-8; control characters show as ^X */
  size_t point;       /* byte before which the cursor stands */
};
/* Rows that it takes at w columns, with a row for the cursor behind the last column. */
int entry_rows(const struct entry *e, int w);
/* Draws as many rows as r has, those around the cursor; the cursor's cell in *cursor_x, *cursor_y. */
void entry_draw(const struct entry *e, struct grid *g, struct rect r, int *cursor_x, int *cursor_y);

#endif
