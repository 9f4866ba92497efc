/* The one theme. Series colours are those of Okabe and Ito (Color Universal Design, 2008), moved to those of the 256
 * that keep a contrast of at least 3 (WCAG 2) against both white and black; red is kept for what went wrong, purple for
 * marks.
 */
#include "config.h"

#include "ui/theme.h"

const struct look theme_table[THEME_N_STYLES] = {
    [STYLE_NORMAL] = {-1, -1, -1, 0, 0},
    [STYLE_DIM] = {-1, 8, 245, 0, LOOK_DIM},
    [STYLE_BOLD] = {-1, -1, -1, LOOK_BOLD, LOOK_BOLD},
    [STYLE_TITLE] = {-1, -1, -1, LOOK_BOLD, LOOK_BOLD},
    [STYLE_FOCUS] = {6, 6, 30, LOOK_BOLD | LOOK_REVERSE, LOOK_BOLD | LOOK_REVERSE},
    [STYLE_MARK] = {5, 13, 133, 0, 0},
    [STYLE_ERROR] = {1, 9, 160, LOOK_BOLD, LOOK_BOLD | LOOK_REVERSE},
    [STYLE_GOOD] = {2, 2, 28, 0, 0},
    [STYLE_PROMPT] = {6, 6, 30, LOOK_BOLD, LOOK_BOLD},
    [STYLE_REVERSE] = {-1, -1, -1, LOOK_REVERSE, LOOK_REVERSE},
    [STYLE_SERIES + 0] = {4, 12, 26, 0, 0},  /* blue */
    [STYLE_SERIES + 1] = {3, 3, 166, 0, 0},  /* orange */
    [STYLE_SERIES + 2] = {2, 2, 28, 0, 0},   /* green */
    [STYLE_SERIES + 3] = {6, 6, 30, 0, 0},   /* sky */
    [STYLE_SERIES + 4] = {3, 3, 100, 0, 0},  /* yellow, darkened */
    [STYLE_SERIES + 5] = {1, 1, 131, 0, 0},  /* vermilion, paled */
    [STYLE_SERIES + 6] = {-1, 8, 245, 0, 0}, /* grey */
    [STYLE_SERIES + 7] = {-1, -1, -1, 0, 0},
};
