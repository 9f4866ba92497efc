/* What styles look like: one table for all depths of colour. The background is always the terminal's own, so that it is
 * readable on light and dark. */
#ifndef UI_THEME_H
#define UI_THEME_H

#include <stdint.h>

#include "ui/cell.h"

enum { LOOK_BOLD = 1, LOOK_DIM = 2, LOOK_REVERSE = 4, LOOK_UNDERLINE = 8 };

#define THEME_N_STYLES (STYLE_LAST)

struct look {
  int16_t fg8, fg16, fg256; /* colour number; -1: the terminal's own */
  uint8_t attr;             /* LOOK_ bits */
  uint8_t mono;             /* LOOK_ bits where there is no colour */
};
extern const struct look theme_table[THEME_N_STYLES];

#endif
