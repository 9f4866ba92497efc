/* Methods of a run: training, evaluation, files, rewind and fork. */
#include "config.h"

#include "script/vm_impl.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"

static int refuse_in_handler(lua_State *L, const char *what)
{
  if (entry_current()->kind == ENTRY_HANDLER)
    return vm_refuse(L, "%s waits for training, which waits for this handler", what);
  return 0;
}

static bool poll_stop(void *ctx)
{
  struct entry *en = ctx;
  return entry_interrupted(en) || atomic_load(&en->vm->quitting);
}

/* Waits until the run stands still; an interrupt, or quit() in a handler, pauses it first. Raises unless all steps were
 * done. */
static void wait_for_run(lua_State *L, int id)
{
  struct vm *vm = vm_of(L);
  struct entry *en = entry_current();
  struct err e;
  vm_outside(vm);
  bool quit = false, again = true;
  int status = 0;
  while (again) {
    status = engine_wait(vm->engine, id, poll_stop, en, &e);
    quit = atomic_load(&vm->quitting);
    if (en->interrupted || quit)
      engine_pause(vm->engine, id);
    engine_lock(vm->engine); /* the step under way ends, and the handlers of the last one */
    engine_unlock(vm->engine);
    again = status != 0 && !en->interrupted && !quit && engine_state(vm->engine, id, NULL, NULL) == ENGINE_RUNNING;
  } /* again: a handler of "diverged" went back and on */
  vm_inside(vm);
  if (en->interrupted)
    luaL_error(L, "interrupted");
  if (quit)
    entry_quit(L);
  if (status != 0)
    vm_refuse(L, "%s", e.msg);
}

static void go(struct vm *vm, int id, uint64_t n_steps)
{
  vm_outside(vm);
  engine_go(vm->engine, id, n_steps);
  vm_inside(vm);
}

static uint64_t check_steps(lua_State *L, int index, uint64_t otherwise)
{
  if (lua_isnoneornil(L, index))
    return otherwise;
  int is_int;
  lua_Integer n = lua_tointegerx(L, index, &is_int);
  if (!is_int || n < 1)
    vm_refuse(L, "steps must be a whole number of at least 1, not %s", luaL_tolstring(L, index, NULL));
  return (uint64_t)n;
}

/* Steps that are left of what the knobs `steps` and `epochs` ask for; ENGINE_FOREVER where they give no end. */
static uint64_t steps_to_target(lua_State *L, int id)
{
  struct vm *vm = vm_of(L);
  struct run *r = vm_hold_run(vm, id);
  uint64_t target = r ? run_target_steps(r) : 0, done = r ? run_n_steps(r) : 0;
  vm_release(vm);
  if (!r)
    vm_refuse(L, "run %d is closed", id);
  if (target && done >= target)
    vm_refuse(L, "the run has done its %llu steps; run:train(n) does n more", (unsigned long long)target);
  return target ? target - done : ENGINE_FOREVER;
}

static int run_train(lua_State *L)
{
  int id = bind_run_check(L, 1);
  bool at_prompt = entry_current()->kind == ENTRY_PROMPT;
  refuse_in_handler(L, "run:train()");
  uint64_t n = check_steps(L, 2, 0);
  setting_commit_or_raise(L);
  if (n == 0)
    n = steps_to_target(L, id);
  if (n == ENGINE_FOREVER && !at_prompt)
    vm_refuse(L, "for how long? run:train(n) does n steps; or set steps or epochs of the run");
  go(vm_of(L), id, n);
  if (at_prompt)
    return 0;
  wait_for_run(L, id);
  lua_settop(L, 1);
  return 1;
}

static int run_step_n(lua_State *L)
{
  int id = bind_run_check(L, 1);
  refuse_in_handler(L, "run:step()");
  uint64_t n = check_steps(L, 2, 1);
  setting_commit_or_raise(L);
  go(vm_of(L), id, n);
  wait_for_run(L, id);
  lua_settop(L, 1);
  return entry_current()->kind == ENTRY_PROMPT ? 0 : 1;
}

static int run_wait(lua_State *L)
{
  int id = bind_run_check(L, 1);
  refuse_in_handler(L, "run:wait()");
  setting_commit_or_raise(L);
  wait_for_run(L, id);
  lua_settop(L, 1);
  return entry_current()->kind == ENTRY_PROMPT ? 0 : 1;
}

static int run_pause(lua_State *L)
{
  int id = bind_run_check(L, 1);
  setting_commit_or_raise(L);
  engine_pause(vm_of(L)->engine, id);
  return 0;
}

/* Goes on with what was left when it was paused; without an end where nothing was. */
static int run_resume(lua_State *L)
{
  int id = bind_run_check(L, 1);
  setting_commit_or_raise(L);
  uint64_t left = 0;
  struct err why;
  enum engine_state s = engine_state(vm_of(L)->engine, id, &left, &why);
  if (s == ENGINE_RUNNING)
    return 0;
  go(vm_of(L), id, left ? 0 : ENGINE_FOREVER);
  return 0;
}

/* Work on the run at a boundary: fn() runs with the engine held and must not touch Lua. */
struct held {
  int (*fn)(struct run *r, struct held *h);
  const char *path;
  uint64_t step;
  double loss, accuracy;
  struct run_config config; /* fork */
  const char *const *pairs;
  size_t n_pairs;
  struct run *made;
  struct knobs knobs;
  struct err e;
};

static void work_held(lua_State *L, int id, struct held *h)
{
  setting_commit_or_raise(L);
  struct vm *vm = vm_of(L);
  struct run *r = vm_hold_run(vm, id);
  int status = r ? h->fn(r, h) : err_set(&h->e, "run %d is closed", id);
  vm_release(vm);
  if (status != 0)
    vm_refuse(L, "%s", h->e.msg);
}

static int held_eval(struct run *r, struct held *h)
{
  return run_evaluate(r, &h->loss, &h->accuracy, &h->e);
}

static int run_eval(lua_State *L)
{
  struct held h = {.fn = held_eval};
  work_held(L, bind_run_check(L, 1), &h);
  lua_pushnumber(L, h.loss);
  lua_pushnumber(L, h.accuracy);
  return 2;
}

static int held_save(struct run *r, struct held *h)
{
  return run_save(r, h->path, &h->e);
}

static int run_save_file(lua_State *L)
{
  struct held h = {.fn = held_save, .path = luaL_checkstring(L, 2)};
  work_held(L, bind_run_check(L, 1), &h);
  return 0;
}

static int held_load(struct run *r, struct held *h)
{
  int status = run_load(r, h->path, &h->e);
  h->knobs = *run_knobs(r);
  h->step = run_n_steps(r);
  return status;
}

static int run_load_file(lua_State *L)
{
  int id = bind_run_check(L, 1);
  struct held h = {.fn = held_load, .path = luaL_checkstring(L, 2)};
  work_held(L, id, &h);
  setting_refresh(vm_of(L), id, &h.knobs, h.step);
  return 0;
}

static bool stop_rewind(void *ctx, uint64_t step)
{
  (void)step;
  return entry_interrupted(ctx);
}

static int held_rewind(struct run *r, struct held *h)
{
  int status = run_rewind_unless(r, h->step, stop_rewind, entry_current(), &h->e);
  h->knobs = *run_knobs(r);
  h->step = run_n_steps(r);
  return status;
}

static int run_rewind_to(lua_State *L)
{
  int id = bind_run_check(L, 1), is_int;
  lua_Integer step = lua_tointegerx(L, 2, &is_int);
  if (!is_int || step < 0)
    vm_refuse(L, "run:rewind(step) needs a step of at least 0");
  struct held h = {.fn = held_rewind, .step = (uint64_t)step};
  work_held(L, id, &h);
  setting_refresh(vm_of(L), id, &h.knobs, h.step);
  return 0;
}

/* Checks the changes first, on top of what is queued, so that a refused one leaves no half-made run behind. */
static int held_fork(struct run *r, struct held *h)
{
  h->knobs = *run_next_knobs(r);
  for (size_t i = 0; i < h->n_pairs; i++) {
    struct knob_ref ref;
    if (knob_find(h->pairs[2 * i], &ref, &h->e) || knobs_set(&h->knobs, &ref, h->pairs[2 * i + 1], &h->e))
      return -1;
  }
  h->made = run_fork(r, &h->config, &h->e);
  for (size_t i = 0; h->made && i < h->n_pairs; i++)
    if (run_set(h->made, h->pairs[2 * i], h->pairs[2 * i + 1], &h->e) != 0) {
      run_free(h->made);
      h->made = NULL;
    }
  h->step = run_n_steps(r);
  return h->made ? 0 : -1;
}

static int run_fork_off(lua_State *L)
{
  struct vm *vm = vm_of(L);
  int id = bind_run_check(L, 1);
  if (lua_isnoneornil(L, 2)) {
    lua_settop(L, 1);
    lua_newtable(L);
  }
  luaL_checktype(L, 2, LUA_TTABLE);
  const char **pairs, *name = NULL, *asked = NULL;
  struct held h = {.fn = held_fork, .e = {""}};
  h.n_pairs = make_run_pairs(L, 2, &pairs, &name, &asked);
  h.pairs = pairs;
  setting_commit_or_raise(L); /* before there is anything to free */
  char own[32];
  snprintf(own, sizeof own, "run%d", vm->n_made + 1);
  char *journal = make_run_journal(vm, asked, &h.e);
  if (!journal && *h.e.msg)
    vm_refuse(L, "%s", h.e.msg);
  h.config = (struct run_config){.name = name ? name : own, .journal_path = journal, .pool = engine_pool(vm->engine)};
  struct run *r = vm_hold_run(vm, id);
  int status = r ? held_fork(r, &h) : err_set(&h.e, "run %d is closed", id);
  vm_release(vm);
  mem_free(journal);
  if (status != 0)
    vm_refuse(L, "%s", h.e.msg);
  vm_outside(vm);
  int made = engine_add(vm->engine, h.made);
  vm_inside(vm);
  vm->n_made++;
  setting_refresh(vm, made, &h.knobs, h.step);
  bind_run_push(L, made);
  return 1;
}

static int run_close(lua_State *L)
{
  struct vm *vm = vm_of(L);
  int id = bind_run_check(L, 1);
  refuse_in_handler(L, "run:close()");
  setting_commit_or_raise(L);
  struct err e;
  vm_outside(vm);
  int status = engine_remove(vm->engine, id, &e);
  vm_inside(vm);
  handler_forget_run(vm, id); /* now that nobody can add one */
  vm_forget(vm, id);
  if (atomic_load(&vm->current_run) == id)
    atomic_store(&vm->current_run, 0);
  if (status != 0)
    vm_refuse(L, "%s", e.msg);
  return 0;
}

static int run_use(lua_State *L)
{
  int id = bind_run_check(L, 1);
  struct run_status s;
  if (engine_status(vm_of(L)->engine, id, &s) != 0)
    vm_refuse(L, "run %d is closed", id);
  atomic_store(&vm_of(L)->current_run, id);
  return 0;
}

const struct method_row method_table[] = {
    {"train", "[n]", "train n steps, or as many as `steps` or `epochs` say; the prompt starts them and returns",
     run_train},
    {"step", "[n]", "train n steps (1) and wait for them", run_step_n},
    {"wait", "", "wait until the run stands still", run_wait},
    {"pause", "", "stop after the step under way", run_pause},
    {"resume", "", "go on after a pause", run_resume},
    {"eval", "", "loss and accuracy on the held-out split", run_eval},
    {"on", "event, fn",
     "call fn(run, ...) after each \"step\", \"eval\" (loss, accuracy) or when \"diverged\"; returns a number for off",
     handler_add},
    {"off", "number", "take a handler away", handler_remove},
    {"save", "path", "write weights and all other state as safetensors", run_save_file},
    {"load", "path", "go on from a saved state, bit for bit", run_load_file},
    {"rewind", "step", "go back to the state at that step", run_rewind_to},
    {"fork", "[{knob = value, ...}]", "a second run from this very state", run_fork_off},
    {"use", "", "make it the run whose knobs are plain names at the prompt", run_use},
    {"close", "", "finish its journal and free it", run_close},
    {NULL, NULL, NULL, NULL},
};
