/* Completion at the prompt. Words come from the tables, which need no lock; names that Lua code made come from the Lua
 * state when its lock is free, read raw, so that nothing runs and nothing waits. */
#include "config.h"

#include "script/vm_impl.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct words {
  char **word;
  size_t n, cap;
  const char *head; /* what stands before the last part of the path, with its '.' or ':' */
  size_t n_head;
  const char *part; /* what is typed of the last part */
  size_t n_part;
  bool names_only; /* no word with other letters than those of names */
};

static bool is_name_char(char c)
{
  return isalnum((unsigned char)c) || c == '_';
}

static void add_word(struct words *w, const char *word)
{
  if (strncmp(word, w->part, w->n_part) != 0)
    return;
  for (const char *c = word; w->names_only && *c; c++)
    if (!is_name_char(*c))
      return;
  if (w->n == w->cap) {
    w->cap = w->cap ? 2 * w->cap : 64;
    w->word = mem_realloc(w->word, w->cap * sizeof *w->word);
  }
  w->word[w->n++] = mem_printf("%.*s%s", (int)w->n_head, w->head, word);
}

static void add_all(struct words *w, const char *const *list)
{
  for (; list && *list; list++)
    add_word(w, *list);
}

static void add_rows(struct words *w, const struct method_row *row)
{
  for (; row->name; row++)
    add_word(w, row->name);
}

static void add_knobs(struct words *w)
{
  for (int i = 0; i < KNOB_COUNT; i++)
    add_word(w, knob_table[i].name);
}

static void add_run_fields(struct words *w)
{
  add_knobs(w);
  for (int m = 0; m < METRIC_COUNT; m++)
    add_word(w, metric_table[m].name);
  for (const struct field_row *f = field_table; f->name; f++)
    add_word(w, f->name);
}

static const char *const lua_words[] = {
    "and", "break", "do", "else",   "elseif", "end",  "false", "for",   "function", "goto", "if",   "in", "local",
    "nil", "not",   "or", "repeat", "return", "then", "true",  "until", "while",    "run",  "site", "bd", NULL};

static void add_globals(struct words *w)
{
  add_knobs(w);
  add_all(w, lua_words);
  add_rows(w, prompt_table);
  for (const struct method_row *m = method_table; m->name; m++)
    if (strcmp(m->name, "load") != 0)
      add_word(w, m->name);
}

/* Of the path "a.b.c": what the tables know about a.b. Returns whether they do. */
static bool add_known(struct words *w)
{
  char path[64];
  if (w->n_head == 0) {
    add_globals(w);
    return true;
  }
  snprintf(path, sizeof path, "%.*s", (int)(w->n_head < 63 ? w->n_head : 63), w->head);
  if (strcmp(path, "run:") == 0) {
    add_rows(w, method_table);
  } else if (strcmp(path, "run.") == 0) {
    add_run_fields(w);
  } else if (strcmp(path, "bd.") == 0) {
    add_rows(w, module_table);
  } else {
    const char *site = strstr(path, "site.");
    if (!site || (site != path && site[-1] != '.'))
      return false;
    bool inner = strchr(site + 5, '.') != NULL;
    add_all(w, inner ? spec_fields : site_names);
  }
  return true;
}

/* Part `part` of the value on top of the stack, raw, or through a table as __index. */
static void step_into(lua_State *L, const char *part, size_t n)
{
  if (!lua_istable(L, -1)) {
    lua_pop(L, 1);
    lua_pushnil(L);
    return;
  }
  lua_pushlstring(L, part, n);
  if (lua_rawget(L, -2) == LUA_TNIL && luaL_getmetafield(L, -2, "__index") == LUA_TTABLE) {
    lua_pushlstring(L, part, n);
    lua_rawget(L, -2);
    lua_replace(L, -3);
    lua_pop(L, 1);
  }
  lua_replace(L, -2);
}

static void add_table_keys(lua_State *L, struct words *w)
{
  lua_pushnil(L);
  while (lua_next(L, -2)) {
    bool fits = lua_type(L, -2) == LUA_TSTRING && (w->head[w->n_head - !!w->n_head] != ':' || lua_isfunction(L, -1));
    lua_pop(L, 1);
    if (fits)
      add_word(w, lua_tostring(L, -1));
  }
}

/* Keys that the Lua state has at the path; protected, as a string that is made may need memory. */
static int add_from_state(lua_State *L)
{
  struct words *w = lua_touserdata(L, 1);
  lua_pushglobaltable(L);
  for (const char *p = w->head, *end = w->head + w->n_head; p < end;) {
    const char *q = p;
    while (is_name_char(*q))
      q++;
    step_into(L, p, (size_t)(q - p));
    p = q + 1;
  }
  if (bind_run_test(L, -1)) { /* a variable that holds a run */
    if (w->head[w->n_head - 1] == ':')
      add_rows(w, method_table);
    else
      add_run_fields(w);
    return 0;
  }
  if (lua_istable(L, -1)) {
    add_table_keys(L, w);
    if (luaL_getmetafield(L, -1, "__index") == LUA_TTABLE)
      add_table_keys(L, w);
  }
  return 0;
}

static void complete_path(struct vm *vm, struct words *w)
{
  w->names_only = true;
  bool known = add_known(w);
  if ((known && w->n_head) || !lua_lock_try(&vm->lock))
    return;
  lua_pushcfunction(vm->L, add_from_state);
  lua_pushlightuserdata(vm->L, w);
  if (lua_pcall(vm->L, 1, 0, 0) != LUA_OK)
    lua_pop(vm->L, 1);
  lua_lock_give(&vm->lock);
}

/* Index of the quote that is open at the end, or `end`. */
static size_t open_quote(const char *line, size_t end)
{
  size_t at = end;
  for (size_t i = 0; i < end; i++) {
    if (at == end && (line[i] == '"' || line[i] == '\''))
      at = i;
    else if (at != end && line[i] == '\\')
      i++;
    else if (at != end && line[i] == line[at])
      at = end;
  }
  return at;
}

/* Start of the path that ends at `end`: "run.site.gwei". */
static size_t path_start(const char *line, size_t end)
{
  while (end && (is_name_char(line[end - 1]) || line[end - 1] == '.' || line[end - 1] == ':'))
    end--;
  return end;
}

/* The knob that the quote at `quote` is a value of: "bits", "site.gweight.format"; false when it is none. */
static bool knob_before(const char *line, size_t quote, struct knob_ref *out)
{
  size_t end = quote;
  while (end && isspace((unsigned char)line[end - 1]))
    end--;
  if (end < 2 || line[end - 1] != '=' || strchr("=~<>", line[end - 2]))
    return false;
  end--;
  while (end && isspace((unsigned char)line[end - 1]))
    end--;
  size_t start = path_start(line, end);
  char path[128];
  snprintf(path, sizeof path, "%.*s", (int)(end - start), line + start);
  const char *site = strstr(path, "site.");
  const char *last = strrchr(path, '.');
  return knob_find(site ? site : last ? last + 1 : path, out, NULL) == 0;
}

static void add_topic(void *ctx, const char *topic)
{
  add_word(ctx, topic);
}

/* Whether help is asked for: `? nam`, help("nam, help "nam. */
static bool asks_help(const char *line, size_t end)
{
  while (end && (isspace((unsigned char)line[end - 1]) || line[end - 1] == '('))
    end--;
  return (end == 1 && *line == '?') || (end >= 4 && strncmp(line + end - 4, "help", 4) == 0);
}

static void gather(struct vm *vm, const char *line, size_t end, struct words *w)
{
  size_t quote = open_quote(line, end), start = path_start(line, end);
  if (quote != end) {
    struct knob_ref ref;
    w->part = line + quote + 1;
    w->n_part = end - quote - 1;
    if (knob_before(line, quote, &ref))
      add_all(w, knob_choices(&ref));
    else if (asks_help(line, quote))
      help_each_topic(add_topic, w);
    return;
  }
  w->head = line + start;
  w->n_head = end - start;
  while (w->n_head && is_name_char(w->head[w->n_head - 1]))
    w->n_head--;
  w->part = w->head + w->n_head;
  w->n_part = end - start - w->n_head;
  if (asks_help(line, start) && *line == '?')
    help_each_topic(add_topic, w);
  else if (w->n_part == 0 || !isdigit((unsigned char)*w->part))
    complete_path(vm, w);
}

static int compare_words(const void *a, const void *b)
{
  return strcmp(*(char *const *)a, *(char *const *)b);
}

void vm_complete(struct vm *vm, const char *line, size_t end, void (*add)(void *ctx, const char *word), void *ctx)
{
  struct words w = {.head = "", .part = ""};
  gather(vm, line, end, &w);
  if (w.n)
    qsort(w.word, w.n, sizeof *w.word, compare_words);
  for (size_t i = 0; i < w.n; i++)
    if (i == 0 || strcmp(w.word[i], w.word[i - 1]) != 0)
      add(ctx, w.word[i]);
  for (size_t i = 0; i < w.n; i++)
    mem_free(w.word[i]);
  mem_free(w.word);
}
