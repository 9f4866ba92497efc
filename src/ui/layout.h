/* Where panes are, for every size of the screen. */
#ifndef UI_LAYOUT_H
#define UI_LAYOUT_H

#include <stdbool.h>

#include "ui/cell.h"

enum pane_id { PANE_LOSS, PANE_VARIANCE, PANE_STATUS, PANE_EVENTS, PANE_PROMPT, PANE_COUNT };

struct layout {
  struct rect pane[PANE_COUNT]; /* w or h 0: not shown */
  struct rect footer;
  bool too_small; /* nothing but a message and the prompt's line */
};
/* expanded: the pane that takes the others' place; PANE_COUNT: none. input_rows: what the entry at the prompt takes. */
void layout_compute(struct layout *l, int w, int h, enum pane_id expanded, int input_rows);

#endif
