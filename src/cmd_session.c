/* Makes and takes apart what a command needs to train. */
#include "config.h"

#include "cmd_session.h"

#include <stdlib.h>

#include "tensor/gemm.h"

enum { MAX_RUNS = 64 };

int session_begin(struct session *s, const struct cmd_args *a, bool with_vm, const char *journal_path, struct err *e)
{
  const char *threads = a ? cmd_args_knob(a, "threads") : NULL; /* parsed and checked before */
  int n = threads ? atoi(threads) : 0;
  *s = (struct session){0};
  gemm_init();
  s->engine = engine_create(n ? n : cpu_count(), e);
  if (!s->engine)
    return -1;
  if (!with_vm)
    return 0;
  struct vm_config c = {.engine = s->engine, .journal_path = journal_path};
  s->vm = vm_create(&c, e);
  if (!s->vm) {
    session_end(s);
    return -1;
  }
  return 0;
}

int session_finish_runs(struct session *s, const char *reason, struct err *e)
{
  int ids[MAX_RUNS], status = 0;
  int n = engine_run_ids(s->engine, ids, MAX_RUNS);
  for (int i = 0; i < n; i++)
    engine_pause(s->engine, ids[i]);
  engine_lock(s->engine);
  for (int i = 0; i < n; i++) {
    struct run *r = engine_run(s->engine, ids[i]);
    if (r && run_finish(r, reason, e) != 0)
      status = -1;
  }
  engine_unlock(s->engine);
  return status;
}

void session_end(struct session *s)
{
  if (s->engine)
    engine_free(s->engine); /* first: its thread may call handlers of the Lua state */
  if (s->vm)
    vm_free(s->vm);
  *s = (struct session){0};
}
