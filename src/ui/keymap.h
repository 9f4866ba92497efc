/* The table of keys (keymap.def) and the search in it. */
#ifndef UI_KEYMAP_H
#define UI_KEYMAP_H

#include "ui/input.h"

enum { WHERE_PANE = 1, WHERE_PROMPT = 2, WHERE_BOTH = 3 };

enum action {
  ACTION_NONE,
  ACTION_LEAVE_PROMPT,
  ACTION_TO_PROMPT,
  ACTION_FOCUS,
  ACTION_PAUSE,
  ACTION_STEP,
  ACTION_LOG_Y,
  ACTION_SMOOTH,
  ACTION_X_UNIT,
  ACTION_ZOOM_X,
  ACTION_EXPAND,
  ACTION_SCROLL,
  ACTION_SCROLL_PAGE,
  ACTION_TAIL,
  ACTION_FREEZE,
  ACTION_HELP,
  ACTION_QUIT,
  ACTION_REDRAW,
  ACTION_SUSPEND,
  ACTION_INTERRUPT,
  ACTION_ABORT,
};

struct keymap_row {
  int where;
  uint32_t code;
  const char *name;
  enum action action;
  int argument;
  const char *hint, *help;
};
extern const struct keymap_row keymap_table[]; /* ends with a NULL name */

/* NULL: no key of the workbench there. */
const struct keymap_row *keymap_find(int where, uint32_t code);

#endif
