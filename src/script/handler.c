/* Handlers: Lua functions called at step boundaries, on the engine's thread, the engine held and then the Lua lock. */
#include "config.h"

#include "script/vm_impl.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

enum handler_event { ON_STEP, ON_EVAL, ON_DIVERGED, ON_COUNT };
static const char *const event_names[ON_COUNT + 1] = {"step", "eval", "diverged", NULL};

struct handler {
  struct handler *next;
  int id, run_id;
  enum handler_event event;
  int fn; /* reference in the registry */
};

static bool same_double(double a, double b)
{
  return a == b || (isnan(a) && isnan(b));
}

int handler_add(lua_State *L)
{
  struct vm *vm = vm_of(L);
  int run_id = bind_run_check(L, 1);
  const char *name = luaL_checkstring(L, 2);
  luaL_checktype(L, 3, LUA_TFUNCTION);
  int event = 0;
  while (event < ON_COUNT && strcmp(event_names[event], name) != 0)
    event++;
  if (event == ON_COUNT)
    vm_refuse(L, "no event '%s'; there are step, eval and diverged", name);
  lua_settop(L, 3);
  struct run *r = vm_hold_run(vm, run_id);
  double loss = r ? run_metric(r, METRIC_EVAL_LOSS) : NAN;
  double accuracy = r ? run_metric(r, METRIC_EVAL_ACCURACY) : NAN;
  vm_release(vm);
  struct run_status s; /* from here on the Lua lock is kept: a run that is closed now is forgotten after this */
  if (!r || engine_status(vm->engine, run_id, &s) != 0)
    vm_refuse(L, "run %d is closed", run_id);
  int fn = luaL_ref(L, LUA_REGISTRYINDEX);
  struct run_note *note = vm_note(vm, run_id);
  if (!note->eval_known) { /* an evaluation before there was a handler is no news */
    note->eval_known = true;
    note->eval_loss = loss;
    note->eval_accuracy = accuracy;
  }
  struct handler *h = mem_alloc(sizeof *h);
  *h = (struct handler){.id = ++vm->last_handler_id, .run_id = run_id, .event = (enum handler_event)event, .fn = fn};
  struct handler **at = &vm->handlers;
  while (*at)
    at = &(*at)->next;
  *at = h;
  atomic_fetch_add(&vm->n_handlers, 1);
  lua_pushinteger(L, h->id);
  return 1;
}

static bool take_away(struct vm *vm, int id)
{
  for (struct handler **at = &vm->handlers; *at; at = &(*at)->next) {
    struct handler *h = *at;
    if (h->id != id)
      continue;
    *at = h->next;
    luaL_unref(vm->L, LUA_REGISTRYINDEX, h->fn);
    mem_free(h);
    atomic_fetch_sub(&vm->n_handlers, 1);
    return true;
  }
  return false;
}

int handler_remove(lua_State *L)
{
  bind_run_check(L, 1);
  int id = (int)luaL_checkinteger(L, 2);
  if (!take_away(vm_of(L), id))
    vm_refuse(L, "no handler %d", id);
  return 0;
}

void handler_forget_run(struct vm *vm, int run_id)
{
  for (struct handler *h = vm->handlers, *next; h; h = next) {
    next = h->next;
    if (h->run_id == run_id)
      take_away(vm, h->id);
  }
}

void handler_free_all(struct vm *vm)
{
  while (vm->handlers) {
    struct handler *h = vm->handlers;
    vm->handlers = h->next;
    mem_free(h);
  }
}

/* What happened at this boundary, as far as handlers care. */
struct boundary {
  int run_id;
  uint64_t step;
  bool happened[ON_COUNT];
  double loss, accuracy;
};

static struct boundary look(struct vm *vm, int run_id, const struct run *r, enum step_result result)
{
  struct run_note *note = vm_note(vm, run_id);
  struct boundary b = {.run_id = run_id,
                       .step = run_n_steps(r),
                       .happened = {[ON_STEP] = result == STEP_OK, [ON_DIVERGED] = result == STEP_DIVERGED},
                       .loss = run_metric(r, METRIC_EVAL_LOSS),
                       .accuracy = run_metric(r, METRIC_EVAL_ACCURACY)};
  b.happened[ON_EVAL] = note->eval_known && result == STEP_OK &&
                        !(same_double(b.loss, note->eval_loss) && same_double(b.accuracy, note->eval_accuracy));
  note->eval_known = true;
  note->eval_loss = b.loss;
  note->eval_accuracy = b.accuracy;
  return b;
}

/* Calls one; an error is told and takes the handler away, so that it is not told again at every step. */
static void call_one(struct entry *en, const struct handler *h, const struct boundary *b)
{
  struct vm *vm = en->vm;
  lua_State *L = en->L;
  int id = h->id, n_args = 1; /* h may be gone after the call */
  enum handler_event event = h->event;
  en->start_ns = entry_now_ns();
  lua_settop(L, 0);
  lua_rawgeti(L, LUA_REGISTRYINDEX, h->fn);
  bind_run_push(L, b->run_id);
  if (event == ON_EVAL) {
    lua_pushnumber(L, b->loss);
    lua_pushnumber(L, b->accuracy);
    n_args = 3;
  }
  struct str why = {0};
  struct err refused;
  int status = entry_call(en, n_args, 0, &why);
  if (status == 0 && setting_commit(en, &refused) != 0) {
    str_add(&why, refused.msg);
    status = -1;
  }
  if (status != 0) {
    setting_drop(en);
    take_away(vm, id);
    char *text = mem_printf("handler of \"%s\" at step %llu: %s\nthe handler is off; the run is as it was\n",
                            event_names[event], (unsigned long long)b->step, why.s ? why.s : "unknown error");
    vm_print(vm, text);
    mem_free(text);
  }
  str_done(&why);
  en->stopping = en->interrupted = false;
}

/* A step that could not be done drops what was queued (no memory for a batch). */
static void forget_queued(struct vm *vm, int run_id)
{
  struct entry en;
  entry_begin(&en, vm, ENTRY_HANDLER);
  vm_note(vm, run_id)->has_view = false;
  entry_end(&en);
}

/* The engine's hook. Handlers that a handler adds are called from the next boundary on. */
static void on_boundary(void *ctx, int run_id, struct run *r, enum step_result result)
{
  struct vm *vm = ctx;
  if (result == STEP_FAILED)
    forget_queued(vm, run_id);
  if (atomic_load_explicit(&vm->n_handlers, memory_order_acquire) == 0)
    return;
  struct entry en;
  entry_begin(&en, vm, ENTRY_HANDLER);
  struct boundary b = look(vm, run_id, r, result);
  int last = vm->last_handler_id;
  for (int id = 0;;) { /* by id, as the list may change under us */
    const struct handler *h = vm->handlers;
    while (h && (h->id <= id || h->run_id != run_id || !b.happened[h->event]))
      h = h->next;
    if (!h || h->id > last)
      break;
    id = h->id;
    call_one(&en, h, &b);
  }
  entry_end(&en);
}

void handler_install(struct vm *vm)
{
  engine_set_hook(vm->engine, on_boundary, vm);
}
