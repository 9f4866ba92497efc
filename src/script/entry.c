/* Ways into Lua: entries with their own Lua thread, protected calls with traceback, interruption and quitting, and the
 * order of the two locks (vm_impl.h). */
#include "config.h"

#include "script/vm_impl.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"

/* Instructions between two looks at the interrupt flag: some ten microseconds. */
#define HOOK_COUNT 1000
/* A handler is interrupted only when it had run this long when Ctrl-C came: it was meant for the chunk otherwise. */
#define HANDLER_GRACE_NS 100000000

static _Thread_local struct entry *current;

static char quit_mark; /* its address is the error value that unwinds to the entry */

struct entry *entry_current(void)
{
  return current;
}

int64_t entry_now_ns(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

struct vm *vm_of(lua_State *L)
{
  return *(struct vm **)lua_getextraspace(L);
}

void entry_begin(struct entry *en, struct vm *vm, enum entry_kind kind)
{
  if (current)
    die("entry_begin: this thread is in Lua already");
  memset(en, 0, sizeof *en);
  en->vm = vm;
  en->kind = kind;
  lua_lock_take(&vm->lock);
  current = en;
  en->start_ns = entry_now_ns();
  if (kind != ENTRY_HANDLER) { /* whoever starts a chunk has not quit */
    atomic_store(&vm->quitting, false);
    vm->exit_status = 0;
  }
  en->thread_ref = LUA_NOREF;
  if (kind == ENTRY_HANDLER) { /* one for all boundaries: a new one each step would be garbage */
    en->L = vm->handler_thread;
    return;
  }
  en->L = lua_newthread(vm->L);
  en->thread_ref = luaL_ref(vm->L, LUA_REGISTRYINDEX);
}

void entry_end(struct entry *en)
{
  struct vm *vm = en->vm;
  setting_drop(en);
  lua_settop(en->L, 0);
  luaL_unref(vm->L, LUA_REGISTRYINDEX, en->thread_ref);
  current = NULL;
  lua_lock_give(&vm->lock);
}

void vm_outside(struct vm *vm)
{
  if (current->kind != ENTRY_HANDLER)
    lua_lock_give(&vm->lock);
}

void vm_inside(struct vm *vm)
{
  if (current->kind != ENTRY_HANDLER)
    lua_lock_take(&vm->lock);
}

void vm_breathe(struct vm *vm)
{
  if (current->kind == ENTRY_HANDLER || !lua_lock_wanted(&vm->lock))
    return;
  vm_outside(vm);
  vm_inside(vm);
}

struct run *vm_hold_run(struct vm *vm, int run_id)
{
  vm_outside(vm);
  engine_lock(vm->engine);
  return engine_run(vm->engine, run_id);
}

void vm_release(struct vm *vm)
{
  engine_unlock(vm->engine);
  vm_inside(vm);
}

/* Lua frames on the stack; one: the code stands directly in the chunk that was typed. */
static int n_lua_frames(lua_State *L)
{
  lua_Debug ar;
  int n = 0;
  for (int level = 0; lua_getstack(L, level, &ar); level++) {
    lua_getinfo(L, "S", &ar);
    n += *ar.what != 'C';
  }
  return n;
}

int vm_refuse(lua_State *L, const char *fmt, ...)
{
  struct entry *en = current;
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(en->refused, sizeof en->refused, fmt, ap);
  va_end(ap);
  bool typed = en->kind == ENTRY_PROMPT && n_lua_frames(L) <= 1;
  if (typed) {
    lua_pushstring(L, en->refused);
    return lua_error(L);
  }
  struct err plain;
  str_copy(plain.msg, sizeof plain.msg, en->refused);
  *en->refused = '\0';
  return luaL_error(L, "%s", plain.msg);
}

/* Message handler of every protected call. */
static int add_traceback(lua_State *L)
{
  if (lua_touserdata(L, 1) == &quit_mark)
    return 1;
  const char *msg = lua_tostring(L, 1);
  if (!msg) {
    msg = luaL_tolstring(L, 1, NULL);
    msg = lua_pushfstring(L, "(error value: %s)", msg);
  }
  if (*current->refused && strcmp(msg, current->refused) == 0)
    return lua_pushstring(L, msg), 1;
  luaL_traceback(L, L, msg, 1);
  return 1;
}

int entry_call(struct entry *en, int n_args, int n_results, struct str *why)
{
  lua_State *L = en->L;
  int at = lua_gettop(L) - n_args; /* of the function */
  lua_pushcfunction(L, add_traceback);
  lua_insert(L, at);
  int status = lua_pcall(L, n_args, n_results, at);
  lua_remove(L, at);
  if (status == LUA_OK)
    return 0;
  if (lua_touserdata(L, -1) == &quit_mark) {
    lua_pop(L, 1);
    if (en->vm->exit_status == 0)
      return 0;
    str_addf(why, "the script quit with status %d", en->vm->exit_status);
    return -1;
  }
  const char *msg = lua_tostring(L, -1);
  str_add(why, msg ? msg : "error without a message");
  lua_pop(L, 1);
  return -1;
}

int entry_protect(struct entry *en, lua_CFunction fn, void *ud, struct err *e)
{
  lua_pushcfunction(en->L, fn);
  lua_pushlightuserdata(en->L, ud);
  if (lua_pcall(en->L, 1, 0, 0) == LUA_OK)
    return 0;
  const char *msg = lua_tostring(en->L, -1);
  err_set(e, "%s", msg ? msg : "error without a message");
  lua_pop(en->L, 1);
  return -1;
}

bool entry_interrupted(struct entry *en)
{
  int64_t asked = atomic_load_explicit(&en->vm->interrupt_ns, memory_order_relaxed);
  int64_t grace = en->kind == ENTRY_HANDLER ? HANDLER_GRACE_NS : 0;
  if (asked < en->start_ns + grace)
    return false;
  en->stopping = en->interrupted = true;
  return true;
}

static void on_count(lua_State *L, lua_Debug *ar)
{
  (void)ar;
  if (current && entry_interrupted(current))
    luaL_error(L, "interrupted");
}

/* pcall() and xpcall() of lbaselib.c, but for one thing: an interrupt or quit() goes through them, so that
 * `while true do pcall(f) end` can be stopped. */
static int finish_pcall(lua_State *L, int status, lua_KContext extra)
{
  if (status == LUA_OK || status == LUA_YIELD)
    return lua_gettop(L) - (int)extra;
  if (current && current->stopping)
    return lua_error(L);
  lua_pushboolean(L, 0);
  lua_pushvalue(L, -2);
  return 2;
}

static int lua_pcall_fn(lua_State *L)
{
  luaL_checkany(L, 1);
  lua_pushboolean(L, 1);
  lua_insert(L, 1);
  return finish_pcall(L, lua_pcallk(L, lua_gettop(L) - 2, LUA_MULTRET, 0, 0, finish_pcall), 0);
}

static int lua_xpcall_fn(lua_State *L)
{
  int n = lua_gettop(L);
  luaL_checktype(L, 2, LUA_TFUNCTION);
  lua_pushboolean(L, 1);
  lua_pushvalue(L, 1);
  lua_rotate(L, 3, 2);
  return finish_pcall(L, lua_pcallk(L, n - 2, LUA_MULTRET, 2, 2, finish_pcall), 2);
}

/* quit([status]) and os.exit([status]): unwinds to the entry, so that journals are finished and the terminal restored.
 * The process ends in main.c alone. */
static int lua_quit(lua_State *L)
{
  struct vm *vm = vm_of(L);
  int status = lua_isboolean(L, 1) ? !lua_toboolean(L, 1) : (int)luaL_optinteger(L, 1, 0);
  vm->exit_status = status;
  atomic_store(&vm->quitting, true);
  return entry_quit(L);
}

int entry_quit(lua_State *L)
{
  current->stopping = true;
  lua_pushlightuserdata(L, &quit_mark);
  return lua_error(L);
}

void entry_install(lua_State *L)
{
  lua_sethook(L, on_count, LUA_MASKCOUNT, HOOK_COUNT); /* threads made from now on inherit it */
  lua_register(L, "pcall", lua_pcall_fn);
  lua_register(L, "xpcall", lua_xpcall_fn);
  lua_register(L, "quit", lua_quit);
  lua_getglobal(L, LUA_OSLIBNAME);
  lua_pushcfunction(L, lua_quit);
  lua_setfield(L, -2, "exit");
  lua_getglobal(L, LUA_DBLIBNAME);
  lua_pushnil(L); /* it would take the interrupt's hook away */
  lua_setfield(L, -2, "sethook");
  lua_pop(L, 2);
}
