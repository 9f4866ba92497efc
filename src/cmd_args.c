/* Parses a command's arguments by its table of options, and by the table of knobs where it takes those. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "cmd.h"
#include "train/knob.h"

enum { NAME_BYTES = 64 };

/* Where parsing is. */
struct parse {
  const struct command *command;
  int argc, at;
  char **argv;
  struct cmd_args *out;
  struct err err;
};

static void where(const struct command *c)
{
  fprintf(stderr, "bitdial%s%s: ", *c->name ? " " : "", c->name);
}

/* A message quotes what was given, a damaged file's line among it: bytes that would command the terminal are shown. */
static void put_message(const char *msg)
{
  for (const unsigned char *p = (const unsigned char *)msg; *p; p++)
    if ((*p < ' ' && *p != '\n' && *p != '\t') || *p == 127)
      fprintf(stderr, "\\x%02x", *p);
    else
      fputc(*p, stderr);
  fputc('\n', stderr);
}

int cmd_fail(const struct command *c, const struct err *e)
{
  where(c);
  put_message(e->msg);
  return STATUS_FAILED;
}

int cmd_usage_error(const struct command *c, const struct err *e)
{
  where(c);
  put_message(e->msg);
  fprintf(stderr, "Try 'bitdial%s%s --help'.\n", *c->name ? " " : "", c->name);
  return STATUS_USAGE;
}

static int find_option(const struct command *c, const char *name)
{
  for (int i = 0; c->options && c->options[i].name; i++)
    if (strcmp(c->options[i].name, name) == 0)
      return i;
  return -1;
}

static int unknown_option(struct parse *p, const char *name)
{
  const char *words[CMD_OPTIONS + KNOB_COUNT + 2];
  size_t n = 0;
  for (int i = 0; p->command->options && p->command->options[i].name; i++)
    words[n++] = p->command->options[i].name;
  if (p->command->takes_knobs)
    for (int k = 0; k < KNOB_COUNT; k++)
      words[n++] = knob_table[k].name;
  words[n++] = "help";
  words[n] = NULL;
  char plain[NAME_BYTES]; /* knobs are written with '_' in their table, options mostly with '-' */
  str_copy(plain, sizeof plain, name);
  const char *near = str_nearest(plain, words);
  for (char *c = plain; *c; c++)
    if (*c == '-')
      *c = '_';
  if (!near)
    near = str_nearest(plain, words);
  if (!near)
    return err_set(&p->err, "unknown option --%s", name);
  char shown[NAME_BYTES];
  str_copy(shown, sizeof shown, near);
  for (char *c = shown; *c; c++)
    if (*c == '_')
      *c = '-';
  return err_set(&p->err, "unknown option --%s; did you mean --%s?", name, shown);
}

/* The word after the present one as its value, or an error. */
static const char *take_value(struct parse *p, const char *name, const char *inlined)
{
  if (inlined)
    return inlined;
  if (p->at + 1 >= p->argc || strncmp(p->argv[p->at + 1], "--", 2) == 0) {
    err_set(&p->err, "--%s needs a value", name);
    return NULL;
  }
  return p->argv[++p->at];
}

/* --nesterov alone is --nesterov=true; a word that is no truth value is left alone. */
static const char *take_bool(struct parse *p, const struct knob_ref *k, const char *inlined)
{
  struct knob_value v;
  if (inlined)
    return inlined;
  if (p->at + 1 < p->argc && knob_parse(k, p->argv[p->at + 1], &v, NULL) == 0)
    return p->argv[++p->at];
  return "true";
}

static int take_knob(struct parse *p, const char *name, const char *inlined)
{
  struct knob_ref k;
  struct knob_value v;
  struct err why;
  if (knob_find(name, &k, &why) != 0) {
    if (strncmp(name, "site.", 5) == 0)
      return err_set(&p->err, "--%s: %s", name, why.msg);
    return unknown_option(p, name);
  }
  bool is_bool = k.id < KNOB_COUNT && knob_table[k.id].type == KNOB_BOOL;
  const char *value = is_bool ? take_bool(p, &k, inlined) : take_value(p, name, inlined);
  if (!value)
    return -1;
  if (knob_parse(&k, value, &v, &why) != 0)
    return err_set(&p->err, "%s", why.msg);
  char full[NAME_BYTES];
  knob_ref_name(&k, full, sizeof full);
  struct cmd_args *a = p->out;
  a->pairs = mem_realloc(a->pairs, (a->n_pairs + 1) * 2 * sizeof *a->pairs);
  a->pairs[2 * a->n_pairs] = mem_strdup(full);
  a->pairs[2 * a->n_pairs + 1] = value;
  a->n_pairs++;
  return 0;
}

/* One word that starts with "--". Sets *foreign where it is the script's. */
static int take_option(struct parse *p, bool *foreign)
{
  const struct command *c = p->command;
  char name[NAME_BYTES];
  const char *word = p->argv[p->at] + 2, *equals = strchr(word, '=');
  size_t n = equals ? (size_t)(equals - word) : strlen(word);
  if (n >= sizeof name)
    return err_set(&p->err, "unknown option %s", p->argv[p->at]);
  memcpy(name, word, n);
  name[n] = '\0';
  const char *inlined = equals ? equals + 1 : NULL;

  int row = find_option(c, name);
  if (row < 0 && c->rest == REST_SCRIPT && p->out->n_rest > 0) {
    *foreign = true;
    return 0;
  }
  if (row < 0)
    return c->takes_knobs ? take_knob(p, name, inlined) : unknown_option(p, name);
  if (c->options[row].arg) {
    p->out->value[row] = take_value(p, name, inlined);
    return p->out->value[row] ? 0 : -1;
  }
  if (inlined)
    return err_set(&p->err, "--%s takes no value", name);
  p->out->value[row] = "";
  return 0;
}

static void take_rest(struct parse *p)
{
  p->out->rest[p->out->n_rest++] = p->argv[p->at];
}

static int check_rest(struct parse *p)
{
  const struct command *c = p->command;
  const struct cmd_args *a = p->out;
  if (c->rest == REST_NONE && a->n_rest > 0)
    return err_set(&p->err, "unexpected argument '%s'", a->rest[0]);
  if (c->rest == REST_ONE && a->n_rest > 1)
    return err_set(&p->err, "unexpected argument '%s'", a->rest[1]);
  if (c->rest != REST_NONE && a->n_rest == 0 && !c->rest_optional)
    return err_set(&p->err, "usage: bitdial%s%s %s", *c->name ? " " : "", c->name, c->usage);
  return 0;
}

static bool is_help(const char *word)
{
  return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

static int parse_all(struct parse *p)
{
  bool only_rest = false;
  for (p->at = 1; p->at < p->argc; p->at++) {
    const char *word = p->argv[p->at];
    bool foreign = false;
    bool in_script = p->command->rest == REST_SCRIPT && p->out->n_rest > 0;
    if (!only_rest && strcmp(word, "--") == 0) {
      only_rest = true;
      continue;
    }
    if (!only_rest && strncmp(word, "--", 2) == 0) {
      if (take_option(p, &foreign) != 0)
        return -1;
      if (!foreign)
        continue;
    } else if (!only_rest && !in_script && word[0] == '-' && word[1] != '\0') {
      return err_set(&p->err, "unknown option %s; options are written --NAME VALUE", word);
    }
    take_rest(p);
  }
  return check_rest(p);
}

/* A recipe sets all specs, bits and format those of many sites, rounding of some, a site's field one. Applied from the
 * general to the particular, the order in which options are written plays no role. */
static int rank(const char *knob)
{
  static const struct {
    enum knob_id id;
    int rank;
  } general[] = {{KNOB_RECIPE, 0}, {KNOB_FORMAT, 1}, {KNOB_BITS, 1}, {KNOB_ROUNDING, 2}};
  for (size_t i = 0; i < sizeof general / sizeof *general; i++)
    if (strcmp(knob, knob_table[general[i].id].name) == 0)
      return general[i].rank;
  return strncmp(knob, "site.", 5) == 0 ? 4 : 3;
}

/* Insertion sort: stable, and the list is short. */
static void order_pairs(struct cmd_args *a)
{
  for (size_t i = 1; i < a->n_pairs; i++)
    for (size_t j = i; j > 0 && rank(a->pairs[2 * j - 2]) > rank(a->pairs[2 * j]); j--)
      for (int k = 0; k < 2; k++) {
        const char *t = a->pairs[2 * j + k];
        a->pairs[2 * j + k] = a->pairs[2 * j - 2 + k];
        a->pairs[2 * j - 2 + k] = t;
      }
}

/* Values that are right one by one may not go together: bits = 12 in a family without such a width. Found here, it is
 * wrong usage and nothing was read yet. A model's own defaults are not known here, so where those could matter the run
 * itself finds it. */
static int check_together(const struct cmd_args *a, struct err *e)
{
  if (cmd_args_knob(a, "model") && !cmd_args_knob(a, "recipe"))
    return 0;
  struct knobs *k = mem_alloc(sizeof *k);
  knobs_defaults(k);
  int status = 0;
  for (size_t i = 0; i < a->n_pairs && status == 0; i++) {
    struct knob_ref ref;
    status = knob_find(a->pairs[2 * i], &ref, e);
    if (status == 0)
      status = knobs_set(k, &ref, a->pairs[2 * i + 1], e);
  }
  mem_free(k);
  return status;
}

int cmd_parse(const struct command *c, int argc, char **argv, struct cmd_args *out)
{
  *out = (struct cmd_args){.rest = mem_alloc(((size_t)argc + 1) * sizeof *out->rest)};
  struct parse p = {.command = c, .argc = argc, .argv = argv, .out = out};
  int status = -1;
  for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
    if (c->rest == REST_SCRIPT && argv[i][0] != '-')
      break; /* from the script's name on, --help may be the script's */
    if (is_help(argv[i])) {
      struct str text = {0};
      cmd_help(c, &text);
      status = cmd_print(&text);
      break;
    }
  }
  if (status < 0) {
    int wrong = parse_all(&p);
    order_pairs(out);
    if (wrong || check_together(out, &p.err) != 0)
      status = cmd_usage_error(c, &p.err);
  }
  if (status >= 0)
    cmd_args_done(out);
  return status;
}

void cmd_args_done(struct cmd_args *a)
{
  for (size_t i = 0; i < a->n_pairs; i++)
    mem_free((char *)a->pairs[2 * i]);
  mem_free(a->pairs);
  mem_free(a->rest);
  *a = (struct cmd_args){0};
}

const char *cmd_args_knob(const struct cmd_args *a, const char *knob)
{
  for (size_t i = a->n_pairs; i-- > 0;)
    if (strcmp(a->pairs[2 * i], knob) == 0)
      return a->pairs[2 * i + 1];
  return NULL;
}

int cmd_print(struct str *text)
{
  int status = STATUS_DONE;
  if ((text->s && fputs(text->s, stdout) == EOF) || fflush(stdout) != 0) {
    fprintf(stderr, "bitdial: standard output: %s\n", strerror(errno));
    status = STATUS_FAILED;
  }
  str_done(text);
  return status;
}
