/* Lines of text kept for scrolling, bounded: the prompt's output and the events. */
#ifndef UI_TEXT_H
#define UI_TEXT_H

#include "ui/cell.h"

struct text_line {
  char *s;
  enum style style;
  int indent; /* columns that continuation rows of a long line are moved by */
};
struct text { /* {0} with max_lines set is an empty one */
  struct text_line *line;
  size_t n, first, max_lines; /* a ring */
  bool open;                  /* the last line had no newline yet */
  size_t n_ever;              /* lines added since the start */
};
void text_init(struct text *t, size_t max_lines);
void text_done(struct text *t);
void text_clear(struct text *t);
/* Adds UTF-8 text of any number of lines; a part of a line is continued by the next call with the same style. */
void text_add(struct text *t, const char *utf8, enum style s);
void text_add_line(struct text *t, const char *utf8, enum style s, int indent);

/* Rows that the last n_lines take when wrapped at w columns, at most max. */
int text_rows(const struct text *t, size_t n_lines, int w, int max);
/* Draws the last rows that fit, `back` rows before the end, wrapped, from the bottom up. Returns how far back it could
 * go: at most `back`. */
int text_draw(const struct text *t, struct grid *g, struct rect r, int back, enum glyphs glyphs);

#endif
