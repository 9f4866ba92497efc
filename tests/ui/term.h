/* A program on a pseudo-terminal, its screen read back through libvterm. Nothing sleeps: every wait is for a condition,
 * with a limit after which it has failed. */
#ifndef TESTS_UI_TERM_H
#define TESTS_UI_TERM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <termios.h>

#define TERM_WAIT_S 20 /* far more than anything needs: machines may be busy, sanitizers slow */

struct term {
  pid_t pid;
  int fd; /* the terminal's side of the pseudo-terminal */
  int w, h;
  void *vt, *screen;
  bool alternate, cursor_visible;
  char *raw; /* every byte that the program wrote */
  size_t n_raw, cap_raw;
  struct termios before;
  bool exited;
  int status; /* as of waitpid() */
};

/* A directory for the whole test, removed at the end, which is HOME and holds the XDG directories; sets the environment
 * of the programs to come: TERM=xterm-256color, LC_ALL=C.UTF-8, no NO_COLOR. */
const char *term_home(void);
void term_home_done(void);

/* Starts $BITDIAL with these arguments (NULL-terminated, without the program's name). */
void term_start(struct term *t, int w, int h, const char *const *args);
void term_free(struct term *t); /* kills what still runs */

void term_send(struct term *t, const char *bytes);
void term_resize(struct term *t, int w, int h);

/* Reads what has come, for at most that long. */
void term_pump(struct term *t, double seconds);
/* Until the screen holds the text; false after TERM_WAIT_S. */
bool term_wait_text(struct term *t, const char *text);
bool term_wait_no_text(struct term *t, const char *text);
/* Until fn() says so. */
bool term_wait(struct term *t, bool (*fn)(struct term *t, void *ctx), void *ctx);
/* Until the program has ended; false when it did not (it is killed then). */
bool term_wait_exit(struct term *t);

/* The screen as lines of UTF-8; valid until the next call. */
const char *term_text(struct term *t);
uint32_t term_char(struct term *t, int x, int y);
/* Whether a cell in the rectangle x0 <= x < x1, y0 <= y < y1 holds a character from first to last. */
bool term_has(struct term *t, int x0, int y0, int x1, int y1, uint32_t first, uint32_t last);
void term_cursor(struct term *t, int *x, int *y);
/* Modes of the terminal are those from before the program; the alternate screen is left and the cursor shown. */
bool term_is_restored(struct term *t);
/* Shows the screen as comment lines: for a failed check. */
void term_show(struct term *t);
/* Whether the program wrote any SGR that sets a colour. */
bool term_wrote_colour(struct term *t);

#endif
