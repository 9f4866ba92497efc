/* The command line: a table of commands, each with its options, from which parsing, --help, the manual page and the
 * shell's completion are made. */
#ifndef CMD_H
#define CMD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/str.h"

enum { STATUS_DONE = 0, STATUS_FAILED = 1, STATUS_USAGE = 2, STATUS_INTERRUPTED = 130 };

struct cmd_option {
  const char *name; /* without dashes; NULL ends a table */
  const char *arg;  /* what follows it; NULL: nothing */
  const char *help; /* one sentence without a final stop */
};
#define CMD_OPTIONS 24

/* How words that are no options are taken. */
enum cmd_rest {
  REST_NONE,
  REST_ONE,    /* exactly one */
  REST_SCRIPT, /* a script and what belongs to it: options it does not share with bitdial are the script's */
};

struct command {
  const char *name; /* "" is the workbench; NULL ends the table */
  const char *usage;
  const char *help;    /* one sentence without a final stop */
  const char *details; /* paragraphs, or NULL */
  const struct cmd_option *options;
  bool takes_knobs; /* every knob is an option */
  enum cmd_rest rest;
  bool rest_optional;
  int (*fn)(int argc, char **argv); /* argv[0] is the command's name; returns the exit status */
};
extern const struct command command_table[];
const struct command *command_find(const char *name); /* NULL: none */

/* Arguments after parsing. */
struct cmd_args {
  const char *value[CMD_OPTIONS]; /* by row of the command's options: the text, "" where it takes none, NULL: absent */
  const char **pairs;             /* knob, value, knob, value, ...: the general before the particular */
  size_t n_pairs;                 /* knobs */
  char **rest;
  int n_rest;
};
/* Returns -1 to go on, or the exit status after it printed help or what is wrong. */
int cmd_parse(const struct command *c, int argc, char **argv, struct cmd_args *out) ERR_MUST_CHECK;
void cmd_args_done(struct cmd_args *a);
/* Value given for a knob, the last one; NULL: none. */
const char *cmd_args_knob(const struct cmd_args *a, const char *knob);

/* "bitdial train: MESSAGE" to standard error; the second adds where to find help. Both return the exit status. */
int cmd_fail(const struct command *c, const struct err *e);
int cmd_usage_error(const struct command *c, const struct err *e);

/* Texts made from the tables. */
void cmd_help(const struct command *c, struct str *out);
void cmd_version(struct str *out);
void cmd_man(struct str *out);
void cmd_bash_completion(struct str *out);
/* Prints a text whole; standard output that is full or closed is a failure. */
int cmd_print(struct str *text);

/* The commands. */
int cmd_workbench(int argc, char **argv);
int cmd_run(int argc, char **argv);
int cmd_train(int argc, char **argv);
int cmd_replay(int argc, char **argv);

#endif
