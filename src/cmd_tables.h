/* Rows of the commands' option tables, to read struct cmd_args by name. */
#ifndef CMD_TABLES_H
#define CMD_TABLES_H

#include "cmd.h"

enum { TOP_LOG, TOP_PAUSED, TOP_NO_COLOR, TOP_NO_UNICODE, TOP_VERSION };
enum { RUN_LOG, RUN_EVERY, RUN_QUIET };
enum { TRAIN_LOG, TRAIN_SAVE, TRAIN_EVERY, TRAIN_QUIET };
enum { REPLAY_TO, REPLAY_QUIET };

/* Whether the text given for --name is a whole number; NULL is fine. */
int cmd_check_count(const char *name, const char *text, struct err *e) ERR_MUST_CHECK;

#endif
