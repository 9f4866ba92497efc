/* SIGINT, SIGTERM, SIGHUP and SIGPIPE without a screen: the first asks the work to stop at the next step boundary, a
 * second SIGINT ends the program at once (status 130). */
#ifndef CMD_SIGNAL_H
#define CMD_SIGNAL_H

#include <stdbool.h>

struct vm;

/* vm: its Lua code is interrupted too; may be NULL. */
void signal_begin(struct vm *vm);
void signal_end(void); /* default actions again */
bool signal_caught(void);

#endif
