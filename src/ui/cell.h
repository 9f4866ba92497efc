/* A picture of the screen in memory: panes write cells, screen.c copies what changed to the terminal: no curses. */
#ifndef UI_CELL_H
#define UI_CELL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum style { /* what a cell means; the theme decides how it looks */
  STYLE_NORMAL,
  STYLE_DIM,    /* axes, hints */
  STYLE_BOLD,
  STYLE_TITLE,  /* pane titles */
  STYLE_FOCUS,  /* title of the pane that has the keys */
  STYLE_MARK,   /* vertical line of a knob change */
  STYLE_ERROR,
  STYLE_GOOD,
  STYLE_PROMPT,
  STYLE_REVERSE,
  STYLE_SERIES, /* STYLE_SERIES + i, i < STYLE_N_SERIES */
  STYLE_LAST = STYLE_SERIES + 8
};
#define STYLE_N_SERIES 8

struct cell {
  uint32_t ch; /* code point; 0: the right half of a wide character */
  uint8_t style;
};

struct grid {
  int w, h;
  struct cell *cell; /* h rows of w */
};
void grid_resize(struct grid *g, int w, int h); /* blank afterwards; {0} is an empty grid */
void grid_done(struct grid *g);
void grid_clear(struct grid *g);
/* Writing outside is clipped. Text is UTF-8; returns the columns written. */
void grid_put(struct grid *g, int x, int y, uint32_t ch, enum style s);
int grid_text(struct grid *g, int x, int y, const char *utf8, enum style s);
int grid_textf(struct grid *g, int x, int y, enum style s, const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* At most max_w columns of the text: a wide character that would reach beyond is left out. */
int grid_text_max(struct grid *g, int x, int y, int max_w, const char *utf8, enum style s);
/* The grid as UTF-8 lines without trailing spaces; caller mem_free()s. */
char *grid_dump(const struct grid *g);

/* Takes one code point off *utf8, which moves on; 0 at the end. Bytes that are not UTF-8 read as U+FFFD, one for each
 * maximal part of a sequence (Unicode 15, section 3.9). */
uint32_t cell_decode(const char **utf8);
/* Bytes written to out (1 to 4), without a NUL. */
int cell_encode(uint32_t ch, char out[4]);
/* Columns of a code point: 0 (combining, format), 1 or 2; -1 for a control character, which is never put in a cell.
 * The locale's wcwidth() where it knows the character, since curses believes it; a short table elsewhere. */
int cell_width(uint32_t ch);
/* Columns that grid_text() needs for the text. */
int cell_text_width(const char *utf8);

/* How plots are drawn: what the terminal can show. */
enum glyphs { GLYPHS_BRAILLE, GLYPHS_BLOCK, GLYPHS_ASCII };

/* Where something is drawn, in cells. */
struct rect {
  int x, y, w, h;
};

#endif
