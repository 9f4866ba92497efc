/* The workbench's screen and prompt. */
#ifndef UI_UI_H
#define UI_UI_H

#include "base/err.h"
#include "script/vm.h"

struct ui_config {
  struct engine *engine;
  const char *script;       /* runs in the workbench; NULL: none */
  int n_args;
  char *const *args;
  bool no_color, no_unicode;
  bool start;               /* set the current run going at once */
  const char *journal_path; /* --log */
  const char *const *pairs; /* knobs of the opening run */
  size_t n_pairs;
};

/* Why the workbench cannot open here (no terminal, TERM=dumb), or 0. */
int ui_check_terminal(struct err *e) ERR_MUST_CHECK;

/* Runs until the user leaves; restores the terminal in every case. */
int ui_main(const struct ui_config *c, struct err *e) ERR_MUST_CHECK;

#endif
