/* The manual page and bash's completion, from the same tables as --help. */
#include "config.h"

#include <string.h>

#include "cmd.h"
#include "cmd_text.h"
#include "model/site.h"
#include "train/recipe.h"
#include "train/run.h"
#include "ui/keymap.h"

/* Text for troff: hyphens that may be copied, no accidental escapes, no line that looks like a request. */
static void roff(struct str *out, const char *text)
{
  bool line_start = out->n == 0 || out->s[out->n - 1] == '\n';
  for (; *text; text++) {
    if (line_start && (*text == '.' || *text == '\''))
      str_add(out, "\\&");
    line_start = *text == '\n';
    if (*text == '-')
      str_add(out, "\\-");
    else if (*text == '\\')
      str_add(out, "\\e");
    else if (*text == '\'')
      str_add(out, "\\(aq");
    else if (*text == '^')
      str_add(out, "\\(ha");
    else
      str_addc(out, *text);
  }
}

/* A tagged paragraph; arg may be NULL. */
static void item(struct str *out, const char *prefix, const char *tag, const char *arg, const char *text)
{
  str_add(out, ".TP\n\\fB");
  roff(out, prefix);
  roff(out, tag);
  str_add(out, "\\fR");
  if (arg) {
    str_add(out, " \\fI");
    roff(out, arg);
    str_add(out, "\\fR");
  }
  str_addc(out, '\n');
  roff(out, text);
  str_add(out, ".\n");
}

static void commands(struct str *out)
{
  str_add(out, ".SH COMMANDS\nEvery command prints what it takes with ");
  roff(out, "--help.\n");
  for (const struct command *c = command_table; c->name; c++) {
    str_add(out, ".SS \\fBbitdial");
    str_addf(out, "%s%s\\fR ", *c->name ? " " : "", c->name);
    roff(out, c->usage);
    str_addc(out, '\n');
    roff(out, c->help);
    str_add(out, ".\n");
    if (c->details) {
      str_add(out, ".PP\n");
      roff(out, c->details);
      str_addc(out, '\n');
    }
    for (const struct cmd_option *o = c->options; o && o->name; o++)
      item(out, "--", o->name, o->arg, o->help);
    if (c->takes_knobs)
      str_add(out, ".PP\nEvery knob (below) is an option too.\n");
  }
}

static void knobs(struct str *out)
{
  str_add(out, ".SH KNOBS\nAs options ");
  roff(out, "--lr-scaling and --lr_scaling");
  str_add(out, " are the same. Knobs marked * are fixed once a run is made; the others may be turned while it "
               "goes on.\n");
  for (int k = 0; k < KNOB_COUNT; k++) {
    struct str text = {0}, allowed = {0};
    char name[64];
    text_option_name(knob_table[k].name, name, sizeof name);
    if (knob_table[k].when == KNOB_AT_START)
      strcat(name, "*");
    text_knob_allowed((enum knob_id)k, &allowed);
    str_addf(&text, "%s%s%s%s", knob_table[k].help, allowed.n ? " (" : "", allowed.n ? allowed.s : "",
             allowed.n ? ")" : "");
    item(out, "--", name, text_knob_arg(&knob_table[k]), text.s);
    str_done(&text);
    str_done(&allowed);
  }
}

static void sites(struct str *out)
{
  str_add(out, ".SH SITES\nPlaces of a training step where numbers are quantized. Each has a spec whose fields are set "
               "by ");
  roff(out, "--site.SITE.FIELD VALUE; the fields are");
  for (size_t i = 0; spec_fields[i]; i++)
    str_addf(out, "%s %s", i ? "," : "", spec_fields[i]);
  str_add(out, ".\n");
  for (int s = 0; s < SITE_COUNT; s++)
    item(out, "", site_names[s], NULL, site_help((enum site)s));
}

static void numbers(struct str *out)
{
  static const struct {
    const char *name, *help;
  } rounding[] = {
#define ROUNDING(id, name, stochastic, help) {name, help},
#include "numeric/round.def"
#undef ROUNDING
  };
  str_add(out, ".SH RECIPES\n");
  for (const struct recipe *r = recipe_table; r->name; r++)
    item(out, "", r->name, NULL, r->help);
  str_add(out, ".SH ROUNDING MODES\n");
  for (size_t i = 0; i < sizeof rounding / sizeof *rounding; i++)
    item(out, "", rounding[i].name, NULL, rounding[i].help);
  str_add(out, ".SH FORMATS\n");
  for (size_t i = 0; i < format_count(); i++)
    str_addf(out, "%s%s", i ? ", " : "", format_at(i)->name);
  str_add(out, "; and by rule any eXmY, with a suffix ieee, fn, fin or fnuz where wanted, and intN.\n");
  str_add(out, ".SH METRICS\nFields of the journal's ");
  roff(out, "`step' and `eval' lines.\n");
  for (int m = 0; m < METRIC_COUNT; m++)
    item(out, "", metric_table[m].name, metric_table[m].unit, metric_table[m].help);
}

static void keys(struct str *out)
{
  static const char *const where[] = {
      [WHERE_PANE] = "in a pane", [WHERE_PROMPT] = "at the prompt", [WHERE_BOTH] = "anywhere"};
  str_add(out, ".SH KEYS\nOf the workbench. ");
  roff(out, "C- is Control, S- is Shift.\n");
  for (const struct keymap_row *k = keymap_table; k->name; k++) {
    struct str text = {0};
    str_addf(&text, "%s: %s", where[k->where], k->help);
    item(out, "", k->name, NULL, text.s);
    str_done(&text);
  }
}

static const char *const environment[][2] = {
    {"BITDIAL_DATA", "where models/ and lua/ are looked for first, before the installed data directory"},
    {"BITDIAL_DATASETS", "directory of data sets, instead of /usr/share/datasets"},
    {"BITDIAL_ISA", "instruction set of the quantizers: scalar, avx2 or avx512, instead of the processor's best"},
    {"NO_COLOR", "when set and not empty, the screen uses no colour"},
    {"TERM", "the terminal; the workbench does not open where it is dumb"},
    {"XDG_STATE_HOME", "holds bitdial/history and the journals of the workbench; ~/.local/state by default"},
};

static const char *const statuses[][2] = {
    {"0", "done"}, {"1", "the run or script failed"}, {"2", "wrong usage"}, {"130", "interrupted"}};

void cmd_man(struct str *out)
{
  str_add(out, ".\\\" Made from the program's tables by the build; do not edit.\n");
  str_add(out, ".TH BITDIAL 1 \"\" \"" PACKAGE_STRING "\" \"User Commands\"\n");
  str_add(out, ".SH NAME\nbitdial \\- workbench for training neural networks with few bits\n");
  str_add(out, ".SH SYNOPSIS\n.nf\n");
  for (const struct command *c = command_table; c->name; c++) {
    str_addf(out, "\\fBbitdial%s%s\\fR ", *c->name ? " " : "", c->name);
    roff(out, c->usage);
    str_addc(out, '\n');
  }
  str_add(out, ".fi\n.SH DESCRIPTION\n");
  roff(out, command_table[0].help);
  str_add(out, ".\n");
  commands(out);
  knobs(out);
  sites(out);
  numbers(out);
  keys(out);
  str_add(out, ".SH ENVIRONMENT\n");
  for (size_t i = 0; i < sizeof environment / sizeof *environment; i++)
    item(out, "", environment[i][0], NULL, environment[i][1]);
  str_add(out, ".SH EXIT STATUS\n");
  for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
    item(out, "", statuses[i][0], NULL, statuses[i][1]);
}

/* Words after an option: a knob's choices, file names where the argument is a file. */
static void completion_values(struct str *out)
{
  for (int k = 0; k < KNOB_COUNT; k++) {
    struct knob_ref ref = {.id = (enum knob_id)k};
    const char *const *choice = knob_choices(&ref);
    if (!choice && knob_table[k].type != KNOB_BOOL)
      continue;
    char name[64];
    text_option_name(knob_table[k].name, name, sizeof name);
    str_addf(out, "    --%s) words=\"", name);
    if (!choice)
      str_add(out, "true false");
    for (size_t i = 0; choice && choice[i]; i++)
      str_addf(out, "%s%s", i ? " " : "", choice[i]);
    str_add(out, "\" ;;\n");
  }
}

void cmd_bash_completion(struct str *out)
{
  str_add(out, "# bash completion for bitdial; made from the program's tables by the build\n"
               "_bitdial()\n{\n  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} words=\n"
               "  COMPREPLY=()\n  case $prev in\n");
  completion_values(out);
  str_add(out, "  esac\n  if [[ $words ]]; then\n"
               "    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n    return\n  fi\n");
  struct str knob_words = {0};
  for (int k = 0; k < KNOB_COUNT; k++) {
    char name[64];
    text_option_name(knob_table[k].name, name, sizeof name);
    str_addf(&knob_words, " --%s", name);
  }
  str_add(out, "  case ${COMP_WORDS[1]} in\n");
  for (const struct command *c = command_table; c->name; c++) {
    if (!*c->name)
      continue;
    str_addf(out, "    %s) words=\"--help", c->name);
    for (const struct cmd_option *o = c->options; o && o->name; o++)
      str_addf(out, " --%s", o->name);
    str_addf(out, "%s\" ;;\n", c->takes_knobs ? knob_words.s : "");
  }
  str_add(out, "    *) words=\"--help --version");
  for (const struct command *c = command_table; c->name; c++)
    if (*c->name)
      str_addf(out, " %s", c->name);
  for (const struct cmd_option *o = command_table[0].options; o && o->name; o++)
    str_addf(out, " --%s", o->name);
  str_addf(out, "%s\" ;;\n  esac\n", command_table[0].takes_knobs ? knob_words.s : "");
  str_done(&knob_words);
  str_add(out, "  if [[ $cur == -* || $COMP_CWORD == 1 ]]; then\n"
               "    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n  fi\n}\n"
               "complete -o default -F _bitdial bitdial\n");
}
