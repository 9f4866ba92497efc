/* bitdial without a command: the workbench. */
#include "config.h"

#include <stdio.h>

#include "cmd_session.h"
#include "cmd_tables.h"
#include "ui/ui.h"

static int open_workbench(const struct command *c, const struct cmd_args *a)
{
  struct err e;
  struct session s;
  if (ui_check_terminal(&e) != 0) {
    fprintf(stderr,
            "bitdial: %s\nWithout a screen: 'bitdial run SCRIPT.lua' runs a script, 'bitdial train' one run "
            "(--help lists the options).\n",
            e.msg);
    return STATUS_FAILED;
  }
  if (session_begin(&s, a, false, NULL, &e) != 0)
    return cmd_fail(c, &e);
  struct ui_config u = {
      .engine = s.engine,
      .script = a->n_rest ? a->rest[0] : NULL,
      .n_args = a->n_rest ? a->n_rest - 1 : 0,
      .args = a->n_rest ? a->rest + 1 : NULL,
      .no_color = a->value[TOP_NO_COLOR],
      .no_unicode = a->value[TOP_NO_UNICODE],
      .start = !a->value[TOP_PAUSED],
      .journal_path = a->value[TOP_LOG],
      .pairs = a->pairs,
      .n_pairs = a->n_pairs,
  };
  int status = ui_main(&u, &e) != 0 ? cmd_fail(c, &e) : STATUS_DONE;
  session_end(&s);
  return status;
}

int cmd_workbench(int argc, char **argv)
{
  const struct command *c = command_find("");
  struct cmd_args a;
  int status = cmd_parse(c, argc, argv, &a);
  if (status >= 0)
    return status;
  if (a.value[TOP_VERSION]) {
    struct str text = {0};
    cmd_version(&text);
    status = cmd_print(&text);
  } else {
    status = open_workbench(c, &a);
  }
  cmd_args_done(&a);
  return status;
}
