/* The threads that run Lua for the screen: one for the opening run and what is typed, one entry after the other; one
 * for a script, so that a run can be steered while the script waits for it. The screen gives them text and takes their
 * output, and never waits for them. */
#ifndef UI_WORKER_H
#define UI_WORKER_H

#include "base/str.h"
#include "script/vm.h"

struct worker;

struct worker_config {
  struct engine *engine;
  const char *journal_path; /* of the first run, or NULL */
  void (*wake)(void);       /* called, from any thread, when there is something to look at */
};
struct worker *worker_create(const struct worker_config *c, struct err *e) ERR_MUST_CHECK;
/* Interrupts what runs and ends the threads. False: Lua did not stop within the time (a long C function); nothing was
 * freed then and the process must end soon. */
bool worker_free(struct worker *w, double timeout_s);

struct vm *worker_vm(struct worker *w);

/* Queues work; done in order. */
void worker_open_run(struct worker *w, const char *const *pairs, size_t n_pairs, bool start);
/* At once, beside what is typed. Path and arguments are borrowed until worker_free(). */
void worker_run_script(struct worker *w, const char *path, int n_args, char *const *args);
/* One entry typed; with VM_INCOMPLETE the next one is put behind it. False: too many are waiting. */
bool worker_eval(struct worker *w, const char *text);
/* Stops what runs (a script and handlers too), drops what waits and what is unfinished. Returns whether there was an
 * entry or a script. */
bool worker_interrupt(struct worker *w);

struct worker_state {
  bool busy;       /* an entry runs */
  double seconds;  /* for how long */
  bool incomplete; /* the last entry goes on */
  bool opening;    /* the opening run is being made */
  bool script;     /* a script runs */
  bool quit;       /* quit() was called */
  int n_waiting;
};
void worker_state(struct worker *w, struct worker_state *out);

enum worker_kind { WORKER_OUTPUT, WORKER_ERROR };
/* Takes output that has come, into `out` (which is cleared first); false: none. One kind at a time, in order. */
bool worker_take_output(struct worker *w, struct str *out, enum worker_kind *kind);

#endif
