/* --help of the program and of each command, --version. */
#include "config.h"

#include <curses.h>
#include <lua.h>
#include <stdio.h>
#include <string.h>
#include <readline/readline.h>

#include "cmd.h"
#include "cmd_text.h"
#include "numeric/quantize.h"
#include "tensor/gemm.h"

enum { COLUMN = 26 }; /* where the text beside an option begins */

static void add_row(struct str *out, const char *left, const char *text)
{
  str_addf(out, "  %s", left);
  int at = 2 + (int)strlen(left);
  if (at > COLUMN - 2) {
    str_addc(out, '\n');
    at = 0;
  }
  text_wrap(out, at, COLUMN, text);
}

static void add_option(struct str *out, const struct cmd_option *o)
{
  struct str left = {0};
  str_addf(&left, "--%s%s%s", o->name, o->arg ? " " : "", o->arg ? o->arg : "");
  add_row(out, left.s, o->help);
  str_done(&left);
}

static void add_knob(struct str *out, enum knob_id id)
{
  const struct knob *k = &knob_table[id];
  struct str left = {0}, text = {0}, allowed = {0};
  char name[64];
  text_option_name(k->name, name, sizeof name);
  text_knob_allowed(id, &allowed);
  str_addf(&left, "--%s %s", name, text_knob_arg(k));
  str_addf(&text, "%s", k->help);
  if (allowed.n)
    str_addf(&text, " (%s)", allowed.s);
  add_row(out, left.s, text.s);
  str_done(&left);
  str_done(&text);
  str_done(&allowed);
}

static void add_sites(struct str *out)
{
  str_add(out, "\nSites, each with its own spec: --site.SITE.FIELD VALUE\n");
  for (int s = 0; s < SITE_COUNT; s++)
    add_row(out, site_names[s], site_help((enum site)s));
  struct str fields = {0};
  for (size_t i = 0; spec_fields[i]; i++)
    str_addf(&fields, "%s%s", i ? ", " : "", spec_fields[i]);
  add_row(out, "FIELD", fields.s);
  str_done(&fields);
}

static void add_commands(struct str *out)
{
  str_add(out, "\nCommands (bitdial COMMAND --help says more):\n");
  for (const struct command *c = command_table; c->name; c++)
    if (*c->name)
      add_row(out, c->name, c->help);
}

void cmd_help(const struct command *c, struct str *out)
{
  bool top = !*c->name;
  str_addf(out, "Usage: bitdial%s%s %s\n", top ? "" : " ", c->name, c->usage);
  if (top)
    str_add(out, "       bitdial COMMAND [ARGUMENT]...\n");
  str_addc(out, '\n');
  struct str sentence = {0};
  str_addf(&sentence, "%s.", c->help);
  text_wrap(out, 0, 0, sentence.s);
  str_done(&sentence);
  if (c->details) {
    str_addc(out, '\n');
    text_wrap(out, 0, 0, c->details);
  }
  if (top)
    add_commands(out);
  str_add(out, "\nOptions:\n");
  for (const struct cmd_option *o = c->options; o && o->name; o++)
    add_option(out, o);
  add_row(out, "--help", "print this text");
  if (top)
    add_row(out, "--KNOB VALUE", "a knob of the opening run; 'bitdial train --help' lists them");
  else if (c->takes_knobs) {
    str_add(out, "\nKnobs:\n");
    for (int k = 0; k < KNOB_COUNT; k++)
      add_knob(out, (enum knob_id)k);
    add_sites(out);
  }
  if (top)
    str_add(out, "\nExit status: 0 done; 1 the run or script failed; 2 wrong usage; 130 interrupted.\n");
}

void cmd_version(struct str *out)
{
  gemm_init(); /* OpenBLAS names its core once it has looked at the processor */
  str_addf(out, "%s\n", PACKAGE_STRING);
  str_add(out, "Licence GPL-3.0-or-later: free software, without warranty; see COPYING.\n\n");
  str_addf(out, "quantizers  %s\n", quantize_isa());
  str_addf(out, "BLAS        %s\n", gemm_config());
  str_addf(out, "BLAS core   %s\n", gemm_core_type());
  str_addf(out, "generator   Philox4x32-%d for rounding, Philox4x32-10 else\n", RNG_SITE_ROUNDS);
  str_addf(out, "processors  %d\n", cpu_count());
  str_addf(out, "Lua         %s\n", LUA_RELEASE);
  str_addf(out, "ncurses     %s\n", curses_version());
  str_addf(out, "readline    %s\n", rl_library_version);
}
