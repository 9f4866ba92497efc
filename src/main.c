/* bitdial: the way in. Finds the command and returns its exit status. */
#include "config.h"

#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"

/* Texts that the build asks for; not for people, so in no help. */
static const struct {
  const char *option;
  void (*make)(struct str *out);
} dumps[] = {{"--dump-man", cmd_man}, {"--dump-bash-completion", cmd_bash_completion}};

/* A word that is no command is a script when it looks like one or is a file. */
static bool is_script(const char *word)
{
  size_t n = strlen(word);
  return (n > 4 && strcmp(word + n - 4, ".lua") == 0) || strchr(word, '/') || access(word, F_OK) == 0;
}

static int unknown_command(const char *word)
{
  const char *names[32];
  size_t n = 0;
  for (const struct command *c = command_table; c->name && n < 31; c++)
    if (*c->name)
      names[n++] = c->name;
  names[n] = NULL;
  const char *near = str_nearest(word, names);
  struct err e;
  if (near)
    err_set(&e, "unknown command '%s'; did you mean '%s'?", word, near);
  else
    err_set(&e, "unknown command '%s'", word);
  return cmd_usage_error(&command_table[0], &e);
}

int main(int argc, char **argv)
{
  setlocale(LC_CTYPE, ""); /* not LC_NUMERIC: numbers are written and read the same everywhere */
  const char *word = argc > 1 ? argv[1] : "";
  for (size_t i = 0; i < sizeof dumps / sizeof *dumps; i++) {
    if (strcmp(word, dumps[i].option) != 0)
      continue;
    struct str text = {0};
    dumps[i].make(&text);
    return cmd_print(&text);
  }
  const struct command *c = *word && *word != '-' ? command_find(word) : NULL;
  if (c)
    return c->fn(argc - 1, argv + 1);
  if (*word && *word != '-' && !is_script(word))
    return unknown_command(word);
  return command_table[0].fn(argc, argv);
}
