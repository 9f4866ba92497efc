/* bitdial run: a script without a screen. */
#include "config.h"

#include <stdlib.h>

#include "cmd_progress.h"
#include "cmd_session.h"
#include "cmd_signal.h"
#include "cmd_tables.h"

static struct progress *begin_progress(const struct cmd_args *a, struct session *s)
{
  if (a->value[RUN_QUIET] || a->value[RUN_LOG])
    return NULL;
  struct progress_config c = {.engine = s->engine, .out = stderr, .every = 100};
  if (a->value[RUN_EVERY])
    c.every = strtoull(a->value[RUN_EVERY], NULL, 10);
  return progress_begin(&c);
}

static int run_script(const struct command *c, const struct cmd_args *a, struct session *s)
{
  struct err e;
  struct progress *p = begin_progress(a, s);
  signal_begin(s->vm);
  int failed = vm_run_file(s->vm, a->rest[0], a->n_rest - 1, a->rest + 1, &e) != 0;
  bool interrupted = signal_caught() || (failed && vm_interrupted(s->vm));
  int status = STATUS_DONE;
  if (interrupted)
    status = STATUS_INTERRUPTED;
  else if (failed)
    status = cmd_fail(c, &e);
  const char *reason = interrupted ? "interrupted" : failed ? "failed" : "done";
  if (session_finish_runs(s, reason, &e) != 0 && status == STATUS_DONE)
    status = cmd_fail(c, &e);
  progress_end(p);
  signal_end();
  if (interrupted)
    fprintf(stderr, "bitdial run: interrupted; journals are complete\n");
  return status;
}

int cmd_run(int argc, char **argv)
{
  const struct command *c = command_find("run");
  struct cmd_args a;
  struct err e;
  struct session s = {0};
  int status = cmd_parse(c, argc, argv, &a);
  if (status >= 0)
    return status;
  if (cmd_check_count("every", a.value[RUN_EVERY], &e) != 0)
    status = cmd_usage_error(c, &e);
  else if (session_begin(&s, &a, true, a.value[RUN_LOG], &e) != 0)
    status = cmd_fail(c, &e);
  else
    status = run_script(c, &a, &s);
  session_end(&s);
  cmd_args_done(&a);
  return status;
}
