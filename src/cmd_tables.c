/* The table of commands and their options. */
#include "config.h"

#include "cmd_tables.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cmd_bench.h"
#include "cmd_formats.h"
#include "cmd_round.h"

static const struct cmd_option top_options[] = {
    [TOP_LOG] = {"log", "FILE", "write the run's journal to FILE instead of the state directory"},
    [TOP_PAUSED] = {"paused", NULL, "open the run without setting it going"},
    [TOP_NO_COLOR] = {"no-color", NULL, "use no colour, as NO_COLOR does"},
    [TOP_NO_UNICODE] = {"no-unicode", NULL, "draw with ASCII alone"},
    [TOP_VERSION] = {"version", NULL, "print the version and what this build computes with"},
    {0},
};

static const struct cmd_option run_options[] = {
    [RUN_LOG] = {"log", "FILE", "write the journal of the first run to FILE, - is standard output; no progress lines"},
    [RUN_EVERY] = {"every", "N", "steps between progress lines on standard error (100; 0: none)"},
    [RUN_QUIET] = {"quiet", NULL, "no progress lines"},
    {0},
};

static const struct cmd_option train_options[] = {
    [TRAIN_LOG] = {"log", "FILE", "write the journal to FILE; - is standard output"},
    [TRAIN_SAVE] = {"save", "FILE", "save weights and all state at the end (safetensors)"},
    [TRAIN_EVERY] = {"every", "N", "steps between progress lines (100; 0: none)"},
    [TRAIN_QUIET] = {"quiet", NULL, "no progress lines, only the result"},
    {0},
};

static const struct cmd_option replay_options[] = {
    [REPLAY_TO] = {"to", "STEP", "stop after that step"},
    [REPLAY_QUIET] = {"quiet", NULL, "say nothing; the exit status tells"},
    {0},
};

const struct command command_table[] = {
    {.name = "",
     .usage = "[OPTION]... [SCRIPT.lua [ARG]...]",
     .help = "An interactive workbench for training neural networks with few bits: opens on a live run, or runs the "
             "script there",
     .options = top_options,
     .takes_knobs = true,
     .rest = REST_SCRIPT,
     .rest_optional = true,
     .fn = cmd_workbench},
    {.name = "run",
     .usage = "[OPTION]... SCRIPT.lua [ARG]...",
     .help = "Run a Lua script without a screen",
     .details = "The script finds its arguments in the table `arg`. Options of bitdial may also follow the script; "
                "every other word there is the script's, and after -- all of them are. Without --log the metrics are "
                "lines on standard error. Ctrl-C once stops after the step with everything saved, twice at once.",
     .options = run_options,
     .rest = REST_SCRIPT,
     .fn = cmd_run},
    {.name = "train",
     .usage = "[OPTION]... [--KNOB VALUE]...",
     .help = "Train one run from options alone",
     .details = "Without --epochs and --steps it trains for 10 epochs. Ctrl-C once stops after the step with "
                "everything saved, twice at once.",
     .options = train_options,
     .takes_knobs = true,
     .fn = cmd_train},
    {.name = "replay",
     .usage = "[OPTION]... JOURNAL",
     .help = "Repeat a run from its journal and check it, step by step and in its final weights",
     .details = "Exit status 0 says that everything was the same bit for bit, 1 that it was not, or that the journal "
                "cannot be repeated.",
     .options = replay_options,
     .rest = REST_ONE,
     .fn = cmd_replay},
    {.name = "round",
     .usage = "--format F --mode M [OPTION]...",
     .help = "Round numbers, one a line, from standard input: a calculator and a filter",
     .details = round_details,
     .options = round_options,
     .fn = cmd_round},
    {.name = "formats",
     .usage = "[OPTION]... [FORMAT]",
     .help = "List the number formats, or one format's values and limits",
     .details = formats_details,
     .options = formats_options,
     .rest = REST_ONE,
     .rest_optional = true,
     .fn = cmd_formats},
    {.name = "bench",
     .usage = "[OPTION]... [quantize|step]",
     .help = "Measure this machine",
     .details = bench_details,
     .options = bench_options,
     .rest = REST_ONE,
     .rest_optional = true,
     .fn = cmd_bench},
    {0},
};

const struct command *command_find(const char *name)
{
  for (const struct command *c = command_table; c->name; c++)
    if (strcmp(c->name, name) == 0)
      return c;
  return NULL;
}

int cmd_check_count(const char *name, const char *text, struct err *e)
{
  if (!text)
    return 0;
  char *end;
  errno = 0;
  (void)strtoull(text, &end, 10);
  if (errno || end == text || *end || text[0] < '0' || text[0] > '9')
    return err_set(e, "--%s %s: expected a whole number", name, text);
  return 0;
}
