/* What the commands share that train: an engine with its Lua layer, made and taken apart in one place. */
#ifndef CMD_SESSION_H
#define CMD_SESSION_H

#include "cmd.h"
#include "script/vm.h"

struct session {
  struct engine *engine;
  struct vm *vm; /* NULL: none asked for */
};

/* Threads: the value given for that knob, else one for each processor. journal_path: of the first run; may be NULL. */
int session_begin(struct session *s, const struct cmd_args *a, bool with_vm, const char *journal_path,
                  struct err *e) ERR_MUST_CHECK;
/* Ends the journals of all runs with that reason. The engine stands still afterwards. */
int session_finish_runs(struct session *s, const char *reason, struct err *e) ERR_MUST_CHECK;
void session_end(struct session *s);

#endif
