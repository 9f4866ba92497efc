/* Signals as bytes in a pipe: handlers only write, the loop acts. */
#ifndef UI_SIGNALS_H
#define UI_SIGNALS_H

#include "base/err.h"

enum { SIGNALS_WINCH = 'w', SIGNALS_END = 't', SIGNALS_STOP = 'z', SIGNALS_CONT = 'c', SIGNALS_WAKE = 'k' };

int signals_begin(struct err *e) ERR_MUST_CHECK; /* after curses, which sets handlers of its own */
void signals_end(void);                          /* the handlers from before; SIGHUP is ignored from then on */
int signals_fd(void);                            /* readable: something came */
int signals_next(void);                          /* one of the above; 0: no more */
int signals_which_end(void);                     /* SIGTERM, SIGHUP or another that asked to end; 0: none */
void signals_wake(void);                         /* from any thread: lets the loop look around */

/* Stops the process as Ctrl-Z does, and returns when it goes on. */
void signals_suspend(void);

#endif
