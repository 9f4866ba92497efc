/* The virtual machine itself: made, freed, scripts run in it, interrupted from outside. */
#include "config.h"

#include "script/vm_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/paths.h"

void vm_print(struct vm *vm, const char *text)
{
  if (vm->print)
    vm->print(vm->print_ctx, text);
  else
    fputs(text, stdout);
}

static int lua_print(lua_State *L)
{
  int n = lua_gettop(L);
  luaL_Buffer line;
  luaL_buffinit(L, &line);
  for (int i = 1; i <= n; i++) {
    if (i > 1)
      luaL_addchar(&line, '\t');
    luaL_tolstring(L, i, NULL);
    luaL_addvalue(&line);
  }
  luaL_addstring(&line, "\n");
  luaL_pushresult(&line);
  vm_print(vm_of(L), lua_tostring(L, -1));
  return 0;
}

/* io.write(...) to standard output goes where print() goes; the screen owns the terminal. Upvalues: the real one,
 * io.output, io.stdout. */
static int lua_io_write(lua_State *L)
{
  int n = lua_gettop(L);
  lua_pushvalue(L, lua_upvalueindex(2));
  lua_call(L, 0, 1);
  bool to_stdout = lua_rawequal(L, -1, lua_upvalueindex(3));
  lua_pop(L, 1);
  if (!to_stdout) {
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, n, LUA_MULTRET);
    return lua_gettop(L);
  }
  luaL_Buffer text;
  luaL_buffinit(L, &text);
  for (int i = 1; i <= n; i++) {
    luaL_checkstring(L, i);
    lua_pushvalue(L, i);
    luaL_addvalue(&text);
  }
  luaL_pushresult(&text);
  vm_print(vm_of(L), lua_tostring(L, -1));
  lua_pushvalue(L, lua_upvalueindex(3));
  return 1;
}

static void redirect_output(lua_State *L)
{
  lua_register(L, "print", lua_print);
  lua_getglobal(L, LUA_IOLIBNAME);
  lua_getfield(L, -1, "write");
  lua_getfield(L, -2, "output");
  lua_getfield(L, -3, "stdout");
  lua_pushcclosure(L, lua_io_write, 3);
  lua_setfield(L, -2, "write");
  lua_pop(L, 1);
}

/* require() finds the shipped Lua files too: lua/NAME.lua. */
static void extend_path(lua_State *L)
{
  char *dir = paths_shipped("lua");
  if (!dir)
    return;
  lua_getglobal(L, LUA_LOADLIBNAME);
  lua_getfield(L, -1, "path");
  lua_pushfstring(L, "%s;%s/?.lua", lua_tostring(L, -1), dir);
  lua_setfield(L, -3, "path");
  lua_pop(L, 2);
  mem_free(dir);
}

static int open_all(lua_State *L)
{
  luaL_openlibs(L);
  entry_install(L);
  redirect_output(L);
  extend_path(L);
  bind_run_open(L);
  bind_site_open(L);
  bind_module_open(L);
  prompt_open(L);
  struct vm *vm = vm_of(L);
  vm->handler_thread = lua_newthread(L);
  luaL_ref(L, LUA_REGISTRYINDEX); /* for the state's life */
  return 0;
}

/* Lua's own allocator (realloc and free) with a bound: a loop that builds a string without end is an error in Lua, "not
 * enough memory", and not the end of the process and of the run in it. */
static void *allocate(void *ctx, void *p, size_t old, size_t n)
{
  struct vm *vm = ctx;
  old = p ? old : 0; /* for a new block `old` is the kind of object */
  if (n == 0) {
    free(p);
    vm->n_bytes -= old;
    return NULL;
  }
  if (n > old && (vm->n_bytes > vm->max_bytes || n - old > vm->max_bytes - vm->n_bytes))
    return NULL;
  void *q = realloc(p, n);
  if (q)
    vm->n_bytes += n - old; /* modulo 2^64: it may shrink */
  return q;
}

static void bound_memory(struct vm *vm, size_t max_bytes)
{
  vm->n_bytes = (size_t)lua_gc(vm->L, LUA_GCCOUNT) * 1024 + (size_t)lua_gc(vm->L, LUA_GCCOUNTB);
  vm->max_bytes = max_bytes ? max_bytes : (size_t)(mem_machine_bytes() / 4);
  lua_setallocf(vm->L, allocate, vm);
}

static int on_panic(lua_State *L)
{
  die("Lua: %s", lua_tostring(L, -1));
}

struct vm *vm_create(const struct vm_config *c, struct err *e)
{
  lua_State *L = luaL_newstate();
  if (!L) {
    err_set(e, "no memory for Lua");
    return NULL;
  }
  struct vm *vm = mem_alloc(sizeof *vm);
  *(struct vm **)lua_getextraspace(L) = vm;
  *vm = (struct vm){.L = L, .engine = c->engine, .interactive = c->interactive, .print = c->print, .print_ctx = c->ctx};
  vm->journal_path = c->journal_path ? mem_strdup(c->journal_path) : NULL;
  lua_lock_init(&vm->lock);
  bound_memory(vm, c->max_bytes);
  lua_pushcfunction(L, open_all);
  if (lua_pcall(L, 0, 0, 0) != LUA_OK) {
    err_set(e, "cannot start Lua: %s", lua_tostring(L, -1));
    vm_free(vm);
    return NULL;
  }
  lua_atpanic(L, on_panic);
  handler_install(vm);
  return vm;
}

void vm_free(struct vm *vm)
{
  if (!vm)
    return;
  lua_close(vm->L);
  handler_free_all(vm);
  while (vm->notes)
    vm_forget(vm, vm->notes->id);
  lua_lock_done(&vm->lock);
  mem_free(vm->journal_path);
  mem_free(vm);
}

struct run_note *vm_note(struct vm *vm, int run_id)
{
  for (struct run_note *n = vm->notes; n; n = n->next)
    if (n->id == run_id)
      return n;
  struct run_note *n = mem_alloc(sizeof *n);
  n->id = run_id;
  n->next = vm->notes;
  vm->notes = n;
  return n;
}

void vm_forget(struct vm *vm, int run_id)
{
  for (struct run_note **at = &vm->notes; *at; at = &(*at)->next) {
    struct run_note *n = *at;
    if (n->id != run_id)
      continue;
    *at = n->next;
    mem_free(n);
    return;
  }
}

static void set_args(lua_State *L, const char *path, int n_args, char *const *args)
{
  lua_createtable(L, n_args, 1);
  lua_pushstring(L, path);
  lua_rawseti(L, -2, 0);
  for (int i = 0; i < n_args; i++) {
    lua_pushstring(L, args[i]);
    lua_rawseti(L, -2, i + 1);
  }
  lua_setglobal(L, "arg");
}

struct script {
  const char *path;
  int n_args;
  char *const *args;
};

/* Loads the file and leaves the function and its arguments; raises. */
static int load_script(lua_State *L)
{
  const struct script *s = lua_touserdata(L, 1);
  lua_settop(L, 0);
  set_args(L, s->path, s->n_args, s->args);
  if (luaL_loadfile(L, s->path) != LUA_OK)
    return lua_error(L);
  luaL_checkstack(L, s->n_args, "too many arguments");
  for (int i = 0; i < s->n_args; i++)
    lua_pushstring(L, s->args[i]);
  return s->n_args + 1;
}

int vm_run_file(struct vm *vm, const char *path, int n_args, char *const *args, struct err *e)
{
  struct entry en;
  entry_begin(&en, vm, ENTRY_SCRIPT);
  struct script script = {path, n_args, args};
  struct str why = {0};
  lua_pushcfunction(en.L, load_script);
  lua_pushlightuserdata(en.L, &script);
  int status = 0;
  if (lua_pcall(en.L, 1, LUA_MULTRET, 0) != LUA_OK) { /* a syntax error: no traceback of ours around it */
    str_addf(&why, "%s", lua_tostring(en.L, -1));
    status = -1;
  } else {
    status = entry_call(&en, n_args, 0, &why);
  }
  struct err refused;
  if (status == 0 && setting_commit(&en, &refused) != 0) {
    str_add(&why, refused.msg);
    status = -1;
  }
  atomic_store(&vm->interrupted, en.interrupted);
  entry_end(&en);
  if (status != 0)
    err_set(e, "%s", why.s ? why.s : "unknown error");
  str_done(&why);
  return status;
}

void vm_interrupt(struct vm *vm)
{
  atomic_store(&vm->interrupt_ns, entry_now_ns());
}

bool vm_interrupted(const struct vm *vm)
{
  return atomic_load(&vm->interrupted);
}

bool vm_quitting(const struct vm *vm)
{
  return atomic_load(&vm->quitting);
}

int vm_current_run(struct vm *vm)
{
  return atomic_load(&vm->current_run);
}

struct model_request {
  const char *name;
  const char *const *options;
  size_t n_options;
  struct model_desc *out;
  struct err *e;
  int status;
};

static int load_model(lua_State *L)
{
  struct model_request *m = lua_touserdata(L, 1);
  m->status = model_file_read(L, m->name, m->options, m->n_options, m->out, m->e);
  return 0;
}

int vm_load_model(struct vm *vm, const char *name, const char *const *options, size_t n_options, struct model_desc *out,
                  struct err *e)
{
  struct entry en;
  struct model_request m = {name, options, n_options, out, e, -1};
  entry_begin(&en, vm, ENTRY_SCRIPT);
  int status = entry_protect(&en, load_model, &m, e);
  entry_end(&en);
  return status != 0 ? status : m.status;
}

struct run_request {
  struct make_request make;
  struct err *e;
  int id;
};

static int make_one(lua_State *L)
{
  struct run_request *r = lua_touserdata(L, 1);
  r->id = make_run(L, &r->make, r->e);
  return 0;
}

int vm_make_run(struct vm *vm, const char *const *pairs, size_t n_pairs, const char *journal_path, struct err *e)
{
  struct entry en;
  struct run_request r = {.make = {.pairs = pairs, .n_pairs = n_pairs}, .e = e, .id = -1};
  entry_begin(&en, vm, ENTRY_SCRIPT);
  struct err none = {""};
  char *journal = make_run_journal(vm, journal_path, &none);
  int status = 0;
  if (!journal && *none.msg) {
    status = err_set(e, "%s", none.msg);
  } else {
    r.make.journal = journal;
    status = entry_protect(&en, make_one, &r, e);
  }
  mem_free(journal);
  entry_end(&en);
  return status != 0 ? -1 : r.id;
}
