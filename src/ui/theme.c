/* The one theme. Series colours are those of Okabe and Ito (Color Universal Design, 2008), moved to the nearest of the
 * 256 that has contrast of at least 3 against both white and black; red is kept for what went wrong. */
#include "config.h"

#include "ui/theme.h"

const struct look theme_table[THEME_N_STYLES] = {
    [STYLE_NORMAL] = {-1, -1, -1, 0, 0},
    [STYLE_DIM] = {-1, 8, 245, 0, LOOK_DIM},
    [STYLE_BOLD] = {-1, -1, -1, LOOK_BOLD, LOOK_BOLD},
    [STYLE_TITLE] = {-1, -1, -1, LOOK_BOLD, LOOK_BOLD},
    [STYLE_FOCUS] = {6, 6, 37, LOOK_BOLD | LOOK_REVERSE, LOOK_BOLD | LOOK_REVERSE},
    [STYLE_MARK] = {3, 3, 172, 0, 0},
    [STYLE_ERROR] = {1, 9, 160, LOOK_BOLD, LOOK_BOLD | LOOK_REVERSE},
    [STYLE_GOOD] = {2, 2, 35, 0, 0},
    [STYLE_PROMPT] = {6, 6, 37, LOOK_BOLD, LOOK_BOLD},
    [STYLE_REVERSE] = {-1, -1, -1, LOOK_REVERSE, LOOK_REVERSE},
    [STYLE_SERIES + 0] = {4, 12, 32, 0, 0},  /* blue */
    [STYLE_SERIES + 1] = {3, 3, 172, 0, 0},  /* orange */
    [STYLE_SERIES + 2] = {2, 2, 35, 0, 0},   /* green */
    [STYLE_SERIES + 3] = {5, 13, 169, 0, 0}, /* purple */
    [STYLE_SERIES + 4] = {6, 6, 37, 0, 0},   /* sky */
    [STYLE_SERIES + 5] = {1, 1, 166, 0, 0},  /* vermilion */
    [STYLE_SERIES + 6] = {-1, 8, 245, 0, 0}, /* grey */
    [STYLE_SERIES + 7] = {-1, -1, -1, 0, 0},
};
