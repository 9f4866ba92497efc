/* Knobs set from Lua. Each value is checked at once against all that was set before; the changes of an entry wait in it
 * and are committed together while the engine is held, so that they take effect at one boundary. */
#include "config.h"

#include "script/vm_impl.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

struct change {
  char knob[64], value[256];
};

struct pending { /* of one run in one entry */
  struct pending *next;
  int run_id;
  struct knobs view; /* with the changes */
  struct change *change;
  size_t n, cap;
  size_t n_queued_before; /* of the run, when these were queued behind it */
};

#define MAX_CHANGES 1000 /* of a run in one entry: a loop without end may not eat the memory */

bool setting_text(lua_State *L, int index, char *out, size_t n_bytes)
{
  char number[32];
  switch (lua_type(L, index)) {
  case LUA_TBOOLEAN:
    return str_copy(out, n_bytes, lua_toboolean(L, index) ? "true" : "false");
  case LUA_TNUMBER: {
    lua_Integer i;
    if (lua_isinteger(L, index)) {
      i = lua_tointeger(L, index);
    } else if (!lua_numbertointeger(lua_tonumber(L, index), &i) || (lua_Number)i != lua_tonumber(L, index)) {
      return str_copy(out, n_bytes, str_double(lua_tonumber(L, index), number));
    } /* 2^9 is 512.0 in Lua, and means 512 */
    snprintf(number, sizeof number, LUA_INTEGER_FMT, (LUAI_UACINT)i);
    return str_copy(out, n_bytes, number);
  }
  case LUA_TSTRING: {
    size_t n;
    const char *s = lua_tolstring(L, index, &n);
    return strlen(s) == n && str_copy(out, n_bytes, s);
  }
  default:
    return false;
  }
}

void setting_push_value(lua_State *L, const struct knob_value *v)
{
  switch (v->type) {
  case KNOB_INT:
    if (strcmp(v->text, "mixed") == 0)
      lua_pushstring(L, v->text);
    else
      lua_pushinteger(L, v->i);
    return;
  case KNOB_REAL:
    lua_pushnumber(L, v->r);
    return;
  case KNOB_BOOL:
    lua_pushboolean(L, v->b);
    return;
  default:
    break;
  }
  if (strcmp(v->text, "true") == 0 || strcmp(v->text, "false") == 0)
    lua_pushboolean(L, *v->text == 't');
  else if (!lua_stringtonumber(L, v->text)) /* fields of specs come as text: block = 32 */
    lua_pushstring(L, v->text);
}

bool setting_is_knob(const char *name)
{
  for (int i = 0; i < KNOB_COUNT; i++)
    if (strcmp(knob_table[i].name, name) == 0)
      return true;
  return false;
}

const char *setting_near_knob(const char *name)
{
  size_t n = strlen(name);
  if (n < 3 || (name[n - 1] >= '0' && name[n - 1] <= '9')) /* x, lr2, data1: somebody's own variables */
    return NULL;
  const char *best = NULL;
  int best_distance = n <= 4 ? 2 : 3;
  for (int i = 0; i < KNOB_COUNT; i++) {
    int d = str_distance(name, knob_table[i].name);
    if (d < best_distance) {
      best_distance = d;
      best = knob_table[i].name;
    }
  }
  return best;
}

/* Knobs of the run as they were set last, by anybody, without this entry's own changes; -1: no such run. While the run
 * goes on this is a copy made at a boundary, so that nobody waits for a step. */
static int base_view(struct vm *vm, int run_id, struct knobs *out)
{
  struct run_status st;
  if (engine_status(vm->engine, run_id, &st) != 0)
    return -1;
  uint64_t step = st.step;
  *out = st.knobs;
  if (entry_current()->kind == ENTRY_HANDLER || st.state != ENGINE_RUNNING) {
    struct run *r = vm_hold_run(vm, run_id);
    if (r) {
      step = run_n_steps(r);
      *out = *run_knobs(r);
    }
    vm_release(vm);
    if (!r)
      return -1;
  }
  struct run_note *note = vm_note(vm, run_id);
  if (note->has_view && step <= note->view_step)
    *out = note->view;
  return 0;
}

static struct pending *find_pending(struct entry *en, int run_id)
{
  for (struct pending *p = en->pending; p; p = p->next)
    if (p->run_id == run_id)
      return p;
  return NULL;
}

static struct pending *need_pending(lua_State *L, int run_id)
{
  struct entry *en = entry_current();
  struct pending *p = find_pending(en, run_id);
  if (p)
    return p;
  struct knobs view;
  if (base_view(en->vm, run_id, &view) != 0)
    vm_refuse(L, "run %d is closed", run_id);
  p = mem_alloc(sizeof *p);
  p->run_id = run_id;
  p->view = view;
  p->next = en->pending;
  en->pending = p;
  return p;
}

static void add_change(struct pending *p, const char *knob, const char *value)
{
  if (p->n == p->cap) {
    p->cap = p->cap ? 2 * p->cap : 4;
    p->change = mem_realloc(p->change, p->cap * sizeof *p->change);
  }
  struct change *c = &p->change[p->n++];
  str_copy(c->knob, sizeof c->knob, knob);
  str_copy(c->value, sizeof c->value, value);
}

static int set_text(struct pending *p, const char *knob, const char *value, struct err *e)
{
  struct knob_ref ref;
  if (knob_find(knob, &ref, e) != 0)
    return -1;
  if (ref.id != KNOB_COUNT && knob_table[ref.id].when == KNOB_AT_START)
    return err_set(e, "%s is fixed once a run is made; bd.run { %s = ... } makes another one", knob, knob);
  if (p->n == MAX_CHANGES)
    return err_set(e, "%d changes wait to take effect already; a step has to come between (run:step())", MAX_CHANGES);
  if (knobs_set(&p->view, &ref, value, e) != 0)
    return -1;
  char name[64];
  knob_ref_name(&ref, name, sizeof name);
  add_change(p, name, value);
  return 0;
}

void setting_refuse_value(lua_State *L, const char *knob, int index)
{
  if (lua_type(L, index) == LUA_TSTRING)
    vm_refuse(L, "%s: a text of %d bytes is no value for it: it is too long, or has a NUL in it", knob,
              (int)lua_rawlen(L, index));
  vm_refuse(L, "%s: %s is no value for it; give a number, a string or a boolean", knob,
            lua_isnil(L, index) ? "nil" : lua_pushfstring(L, "a %s", luaL_typename(L, index)));
}

void setting_set(lua_State *L, int run_id, const char *knob, int value_index)
{
  char text[sizeof(struct knob_value)];
  struct err e;
  if (!setting_text(L, value_index, text, sizeof((struct knob_value *)0)->text))
    setting_refuse_value(L, knob, value_index);
  if (set_text(need_pending(L, run_id), knob, text, &e) != 0)
    vm_refuse(L, "%s", e.msg);
}

static bool is_spec_field(const char *name)
{
  for (int i = 0; spec_fields[i]; i++)
    if (strcmp(spec_fields[i], name) == 0)
      return true;
  return false;
}

/* All fields of the table at `t` are known; else the message. */
static int check_fields(lua_State *L, int t, enum site s, struct err *e)
{
  lua_pushnil(L);
  while (lua_next(L, t)) {
    lua_pop(L, 1);
    const char *name = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : NULL;
    if (name && is_spec_field(name))
      continue;
    struct str all = {0};
    for (int i = 0; spec_fields[i]; i++)
      str_addf(&all, "%s%s", i ? ", " : "", spec_fields[i]);
    err_set(e, "site.%s has no field '%s'; it has %s", site_names[s], name ? name : luaL_typename(L, -1), all.s);
    str_done(&all);
    lua_pop(L, 1);
    return -1;
  }
  return 0;
}

/* In the order of spec_fields, format first: it sets the format's own scaling, which the others then change. */
static int set_fields(lua_State *L, struct pending *p, int t, enum site s, struct err *e)
{
  for (int i = 0; spec_fields[i]; i++) {
    lua_getfield(L, t, spec_fields[i]);
    char text[256], knob[64];
    snprintf(knob, sizeof knob, "site.%s.%s", site_names[s], spec_fields[i]);
    bool given = !lua_isnil(L, -1);
    bool is_text = setting_text(L, -1, text, sizeof text);
    lua_pop(L, 1);
    if (given && !is_text)
      return err_set(e, "%s: needs a number, a string or a boolean", knob);
    if (given && set_text(p, knob, text, e) != 0)
      return -1;
  }
  return 0;
}

void setting_check_spec(lua_State *L, enum site s, int t)
{
  struct err e;
  t = lua_absindex(L, t);
  if (lua_type(L, t) == LUA_TSTRING)
    return;
  if (!lua_istable(L, t))
    vm_refuse(L, "site.%s: needs the name of a format, or a table such as { format = \"e4m1\", rounding = \"sr\" }",
              site_names[s]);
  if (check_fields(L, t, s, &e) != 0)
    vm_refuse(L, "%s", e.msg);
}

void setting_set_spec(lua_State *L, int run_id, enum site s, int value_index)
{
  value_index = lua_absindex(L, value_index);
  setting_check_spec(L, s, value_index);
  if (lua_type(L, value_index) == LUA_TSTRING) {
    char knob[64];
    snprintf(knob, sizeof knob, "site.%s.format", site_names[s]);
    setting_set(L, run_id, knob, value_index);
    return;
  }
  struct pending *p = need_pending(L, run_id);
  struct knobs view = p->view;
  size_t n = p->n;
  struct err e;
  if (set_fields(L, p, value_index, s, &e) == 0)
    return;
  p->view = view; /* whole or not at all */
  p->n = n;
  vm_refuse(L, "%s", e.msg);
}

void setting_push(lua_State *L, int run_id, const char *knob)
{
  struct entry *en = entry_current();
  struct pending *p = find_pending(en, run_id);
  struct knobs view;
  struct knob_ref ref;
  struct err e;
  if (knob_find(knob, &ref, &e) != 0)
    vm_refuse(L, "%s", e.msg);
  if (!p && base_view(en->vm, run_id, &view) != 0)
    vm_refuse(L, "run %d is closed", run_id);
  struct knob_value v;
  knobs_get(p ? &p->view : &view, &ref, &v);
  setting_push_value(L, &v);
}

void setting_drop(struct entry *en)
{
  while (en->pending) {
    struct pending *p = en->pending;
    en->pending = p->next;
    mem_free(p->change);
    mem_free(p);
  }
}

void setting_refresh(struct vm *vm, int run_id, const struct knobs *k, uint64_t step)
{
  struct run_note *note = vm_note(vm, run_id);
  note->has_view = true;
  note->view = *k;
  note->view_step = step;
}

/* Queues one run's changes; the engine is held. */
static int queue_changes(struct vm *vm, struct pending *p, struct err *e)
{
  struct run *r = engine_run(vm->engine, p->run_id);
  if (!r)
    return err_set(e, "run %d is closed", p->run_id);
  p->n_queued_before = run_n_queued(r);
  for (size_t i = 0; i < p->n; i++)
    if (run_set(r, p->change[i].knob, p->change[i].value, e) != 0) {
      run_unqueue(r, p->n_queued_before);
      return -1;
    }
  return 0;
}

/* Those of all runs or none: what was checked against a copy may be refused now, where another thread's change came
 * between. */
static int queue_all(struct vm *vm, struct pending *all, struct err *e)
{
  for (struct pending *p = all; p; p = p->next) {
    if (queue_changes(vm, p, e) == 0)
      continue;
    for (struct pending *done = all; done != p; done = done->next)
      run_unqueue(engine_run(vm->engine, done->run_id), done->n_queued_before);
    return -1;
  }
  return 0;
}

int setting_commit(struct entry *en, struct err *e)
{
  struct pending *all = en->pending;
  if (!all)
    return 0;
  struct vm *vm = en->vm;
  vm_outside(vm);
  engine_lock(vm->engine); /* held over all of them: one boundary */
  int status = queue_all(vm, all, e);
  vm_inside(vm);
  for (struct pending *p = all; p && status == 0; p = p->next) {
    const struct run *r = engine_run(vm->engine, p->run_id);
    setting_refresh(vm, p->run_id, run_next_knobs(r), run_n_steps(r));
  }
  engine_unlock(vm->engine);
  setting_drop(en);
  return status;
}

void setting_commit_or_raise(lua_State *L)
{
  struct err e;
  if (setting_commit(entry_current(), &e) != 0)
    vm_refuse(L, "%s", e.msg);
}
