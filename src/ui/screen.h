/* The terminal's screen: cells of a grid that changed are copied to it. The only user of curses. */
#ifndef UI_SCREEN_H
#define UI_SCREEN_H

#include "base/err.h"
#include "ui/cell.h"

struct screen_options {
  bool no_color, no_unicode;
};

/* Whether curses knows the terminal named by TERM and can place the cursor on it. */
int screen_check(struct err *e) ERR_MUST_CHECK;

/* Takes over the terminal `fd`, which terminal_begin() opened. */
int screen_begin(int fd, const struct screen_options *o, struct err *e) ERR_MUST_CHECK;
void screen_end(void);     /* the screen from before */
void screen_suspend(void); /* likewise, to come back */
void screen_resume(void);  /* draws everything anew at the next screen_show() */

void screen_size(int *w, int *h);
void screen_read_size(void); /* after SIGWINCH: asks the terminal */
void screen_redraw(void);    /* everything anew at the next screen_show() (Ctrl-L) */
enum glyphs screen_glyphs(void);
const char *screen_description(void); /* "256 colours, UTF-8": for people */

/* Brings the screen to the grid, which is as large as screen_size(). Cursor at (x, y); x < 0: hidden. */
void screen_show(const struct grid *g, int cursor_x, int cursor_y);

#endif
