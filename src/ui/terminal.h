/* The terminal as a file: its modes saved and given back, in a signal handler too, and the standard streams kept off
 * the screen. Nothing here draws. */
#ifndef UI_TERMINAL_H
#define UI_TERMINAL_H

#include <stdbool.h>

#include "base/err.h"

/* Opens the terminal under standard input and output, remembers its modes, and puts pipes under the file descriptors
 * 0, 1 and 2: libraries and child processes neither write on the screen nor take its keys. What they write can be
 * read from terminal_capture_fd(). */
int terminal_begin(struct err *e) ERR_MUST_CHECK;
int terminal_fd(void);         /* of the terminal, for reading keys and for the screen */
int terminal_capture_fd(void); /* never blocks */

/* What must be written to leave the screen; screen.c knows it once curses is up. Copied. */
void terminal_set_leave(const char *sequence);
/* Keys come raw and pastes are bracketed, or the modes are those from before. Modes alone: curses draws. */
void terminal_enter(void);
void terminal_leave(void);

/* Gives back everything, once; async-signal-safe. Also die()'s hook and what fatal signals do first. */
void terminal_restore(void);
void terminal_catch_fatal(void);

/* Gives back modes and standard streams, in order; called on every way out of ui_main(). */
void terminal_end(void);

#endif
