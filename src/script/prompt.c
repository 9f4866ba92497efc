/* The prompt: its global names, expressions that print, chunks that go on, and what is left of a chunk's errors. */
#include "config.h"

#include "script/vm_impl.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

#define CHUNK_NAME "=prompt"

static const struct method_row *find_row(const struct method_row *table, const char *name)
{
  for (; table->name; table++)
    if (strcmp(table->name, name) == 0)
      return table;
  return NULL;
}

static int need_current(lua_State *L, const char *what)
{
  int id = atomic_load(&vm_of(L)->current_run);
  if (id == 0)
    vm_refuse(L, "%s: there is no run; bd.run { model = \"mlp\" } makes one", what);
  return id;
}

/* A method as a plain function of the prompt: pause() is run:pause(). Upvalue 1: the method's name. */
static int call_method(lua_State *L)
{
  const struct method_row *m = find_row(method_table, lua_tostring(L, lua_upvalueindex(1)));
  bind_run_push(L, need_current(L, m->name));
  lua_insert(L, 1);
  return m->fn(L);
}

static int print_globals(lua_State *L)
{
  struct str text = {0};
  lua_pushglobaltable(L);
  lua_newtable(L);
  lua_pushnil(L);
  while (lua_next(L, -3)) {
    static const char *const own =
        " _G _VERSION arg assert bd collectgarbage coroutine debug dofile error getmetatable "
        "help io ipairs load loadfile math next os package pairs pcall print quit rawequal "
        "rawget rawlen rawset require select setmetatable string table tonumber tostring "
        "type utf8 warn who xpcall ";
    char word[64];
    if (lua_type(L, -2) == LUA_TSTRING)
      snprintf(word, sizeof word, " %.60s ", lua_tostring(L, -2));
    if (lua_type(L, -2) == LUA_TSTRING && !strstr(own, word)) {
      lua_pushvalue(L, -2);
      lua_insert(L, -2);
      lua_settable(L, -4);
    } else {
      lua_pop(L, 1);
    }
  }
  pretty_add(L, -1, &text);
  str_addc(&text, '\n');
  vm_print(vm_of(L), text.s);
  str_done(&text);
  return 0;
}

const struct method_row prompt_table[] = {
    {"help", "[name]", "what a knob, metric, format, recipe, method or function is", help_print},
    {"who", "", "the global names that you made", print_globals},
    {NULL, NULL, NULL, NULL},
};

/* Methods whose names Lua has already, or that make no sense without a run in hand. */
static bool is_prompt_method(const char *name)
{
  return strcmp(name, "load") != 0 && find_row(method_table, name);
}

static int refuse_near(lua_State *L, const char *name, const char *near)
{
  return vm_refuse(L, "no knob '%s': did you mean '%s'? (_G.%s is a variable of that name)", name, near, name);
}

/* Reads of a global at the prompt: knobs, then Lua's globals, then run, site and the methods of the current run. */
static int env_index(lua_State *L)
{
  const char *name = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : "";
  if (setting_is_knob(name)) {
    setting_push(L, need_current(L, name), name);
    return 1;
  }
  lua_pushglobaltable(L);
  lua_pushvalue(L, 2);
  if (lua_rawget(L, -2) != LUA_TNIL)
    return 1;
  int current = atomic_load(&vm_of(L)->current_run);
  if (strcmp(name, "run") == 0 && current) {
    bind_run_push(L, current);
  } else if (strcmp(name, "site") == 0) {
    bind_site_push(L, need_current(L, name));
  } else if (is_prompt_method(name)) {
    lua_pushstring(L, name);
    lua_pushcclosure(L, call_method, 1);
  } else {
    const char *near = setting_near_knob(name);
    if (near)
      return refuse_near(L, name, near);
    lua_pushnil(L);
  }
  return 1;
}

static int env_newindex(lua_State *L)
{
  const char *name = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : "";
  if (setting_is_knob(name)) {
    setting_set(L, need_current(L, name), name, 3);
    return 0;
  }
  lua_pushglobaltable(L);
  lua_pushvalue(L, 2);
  if (lua_rawget(L, -2) == LUA_TNIL) {
    const char *near = setting_near_knob(name);
    if (near)
      return refuse_near(L, name, near);
  }
  lua_pop(L, 1);
  lua_pushvalue(L, 2);
  lua_pushvalue(L, 3);
  lua_rawset(L, -3);
  return 0;
}

/* pairs(_ENV) and the like see Lua's globals. */
static int env_pairs(lua_State *L)
{
  lua_getglobal(L, "next");
  lua_pushglobaltable(L);
  lua_pushnil(L);
  return 3;
}

void prompt_open(lua_State *L)
{
  static const luaL_Reg functions[] = {
      {"__index", env_index}, {"__newindex", env_newindex}, {"__pairs", env_pairs}, {NULL, NULL}};
  lua_newtable(L);
  luaL_newlib(L, functions);
  lua_setmetatable(L, -2);
  vm_of(L)->prompt_env = luaL_ref(L, LUA_REGISTRYINDEX);
  for (const struct method_row *m = prompt_table; m->name; m++)
    lua_register(L, m->name, m->fn);
}

/* What was typed, and how it is to be taken. */
struct entry_text {
  char *code;    /* the code, with "= " and "? " taken away */
  bool silent;   /* ends in ';' */
  bool is_value; /* began with '=': an expression for certain */
};

static char *help_call(const char *topic)
{
  size_t n = strlen(topic);
  while (n && isspace((unsigned char)topic[n - 1]))
    n--;
  if (n >= 2 && (*topic == '"' || *topic == '\'') && topic[n - 1] == *topic)
    topic++, n -= 2;
  return n ? mem_printf("help [==[%.*s]==]", (int)n, topic) : mem_strdup("help()");
}

static struct entry_text take_apart(const char *chunk)
{
  while (isspace((unsigned char)*chunk))
    chunk++;
  struct entry_text t = {0};
  if (*chunk == '?') {
    chunk++;
    while (isspace((unsigned char)*chunk))
      chunk++;
    t.code = help_call(chunk);
    return t;
  }
  t.is_value = *chunk == '=';
  t.code = mem_strdup(chunk + t.is_value);
  size_t n = strlen(t.code);
  while (n && isspace((unsigned char)t.code[n - 1]))
    n--;
  t.silent = n && t.code[n - 1] == ';';
  return t;
}

static bool ends_early(lua_State *L)
{
  static const char mark[] = "<eof>";
  size_t n;
  const char *msg = lua_tolstring(L, -1, &n);
  return msg && n >= sizeof mark - 1 && strcmp(msg + n - (sizeof mark - 1), mark) == 0;
}

/* Compiles as an expression, else as statements; leaves the function or the message. The line ends with a newline, so
 * that an unfinished string is an error and only what may go on in the next line ends at <eof>. */
static int compile(lua_State *L, const struct entry_text *t)
{
  char *as_value = mem_printf("return %s\n", t->code);
  int status = luaL_loadbufferx(L, as_value, strlen(as_value), CHUNK_NAME, "t");
  mem_free(as_value);
  if (status == LUA_OK || t->is_value)
    return status;
  bool early = ends_early(L);
  lua_pop(L, 1);
  char *as_code = mem_printf("%s\n", t->code);
  status = luaL_loadbufferx(L, as_code, strlen(as_code), CHUNK_NAME, "t");
  mem_free(as_code);
  if (status != LUA_OK && early && !ends_early(L)) { /* "1 +": an expression that goes on */
    lua_pop(L, 1);
    lua_pushliteral(L, "unfinished expression near <eof>");
  }
  return status;
}

/* Prints the values on the stack, keeps the first as _. */
static int print_values(lua_State *L)
{
  int n = lua_gettop(L);
  if (n == 0)
    return 0;
  lua_pushglobaltable(L);
  lua_pushvalue(L, 1);
  lua_setfield(L, -2, "_");
  lua_pop(L, 1);
  struct str text = {0};
  for (int i = 1; i <= n; i++) {
    str_add(&text, i > 1 ? "  " : "");
    pretty_add(L, i, &text);
  }
  str_addc(&text, '\n');
  vm_print(vm_of(L), text.s);
  str_done(&text);
  return 0;
}

static int run_chunk(struct entry *en, bool show, struct str *why)
{
  lua_State *L = en->L;
  lua_rawgeti(L, LUA_REGISTRYINDEX, en->vm->prompt_env);
  lua_setupvalue(L, -2, 1);
  if (entry_call(en, 0, LUA_MULTRET, why) != 0)
    return -1;
  if (show && !en->stopping) {
    lua_pushcfunction(L, print_values);
    lua_insert(L, 1);
    if (entry_call(en, lua_gettop(L) - 1, 0, why) != 0)
      return -1;
  }
  struct err e;
  if (setting_commit(en, &e) == 0)
    return 0;
  str_add(why, e.msg);
  return -1;
}

static enum vm_result evaluate(struct entry *en, const struct entry_text *t)
{
  lua_State *L = en->L;
  struct str why = {0};
  if (compile(L, t) != LUA_OK) {
    if (ends_early(L))
      return VM_INCOMPLETE;
    str_add(&why, lua_tostring(L, -1));
  } else if (run_chunk(en, !t->silent, &why) == 0 && !en->interrupted) {
    return en->stopping ? VM_QUIT : VM_OK;
  }
  if (en->stopping && !en->interrupted) { /* quit(3) */
    str_done(&why);
    return VM_QUIT;
  }
  str_addc(&why, '\n');
  vm_print(en->vm, en->interrupted ? "interrupted\n" : why.s);
  str_done(&why);
  return VM_ERROR;
}

enum vm_result vm_eval(struct vm *vm, const char *chunk)
{
  struct entry_text t = take_apart(chunk);
  struct entry en;
  entry_begin(&en, vm, ENTRY_PROMPT);
  enum vm_result result = evaluate(&en, &t);
  atomic_store(&vm->interrupted, en.interrupted);
  entry_end(&en);
  mem_free(t.code);
  return result;
}
