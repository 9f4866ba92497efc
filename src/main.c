/* bitdial: the way in. Finds the command and returns its exit status. */
#include "config.h"

#include <fcntl.h>
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

/* A standard stream that the caller closed would be the next file opened, and text for people end in a journal. */
static void fill_streams(void)
{
  int fd;
  do
    fd = open("/dev/null", O_RDWR);
  while (fd >= 0 && fd <= STDERR_FILENO);
  if (fd > STDERR_FILENO)
    close(fd);
}

/* Output that nobody got is no success. */
static int check_output(const struct command *c, int status)
{
  struct err e;
  if ((fflush(stdout) == 0 && !ferror(stdout)) || status != STATUS_DONE)
    return status;
  err_set(&e, "standard output: not all could be written");
  return cmd_fail(c, &e);
}

int main(int argc, char **argv)
{
  fill_streams();
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
    return check_output(c, c->fn(argc - 1, argv + 1));
  if (*word && *word != '-' && !is_script(word))
    return unknown_command(word);
  return command_table[0].fn(argc, argv);
}
