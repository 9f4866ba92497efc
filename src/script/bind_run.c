/* Run objects: knobs, metrics and state as fields, methods from bind_method.c. */
#include "config.h"

#include "script/vm_impl.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"

#define RUN "bitdial.run"

static char objects_key; /* registry: run id -> object, so that a run is equal to itself; weak */

void bind_run_push(lua_State *L, int run_id)
{
  lua_rawgetp(L, LUA_REGISTRYINDEX, &objects_key);
  if (lua_rawgeti(L, -1, run_id) == LUA_TNIL) {
    lua_pop(L, 1);
    int *id = lua_newuserdatauv(L, sizeof *id, 0);
    *id = run_id;
    luaL_setmetatable(L, RUN);
    lua_pushvalue(L, -1);
    lua_rawseti(L, -3, run_id);
  }
  lua_remove(L, -2);
}

int bind_run_test(lua_State *L, int index)
{
  const int *id = luaL_testudata(L, index, RUN);
  return id ? *id : 0;
}

int bind_run_check(lua_State *L, int index)
{
  const int *id = luaL_testudata(L, index, RUN);
  if (!id)
    vm_refuse(L, "a run is needed here: write run:method(...) with a colon");
  return *id;
}

/* State as of now; while the run goes on, of its last boundary, so that reading never waits for a step. */
static int read_status(struct vm *vm, int run_id, struct run_status *s)
{
  vm_breathe(vm); /* `while run.step < 500 do end` must not keep a handler waiting for ever */
  if (engine_status(vm->engine, run_id, s) != 0)
    return -1;
  if (entry_current()->kind != ENTRY_HANDLER && s->state == ENGINE_RUNNING)
    return 0;
  struct run *r = vm_hold_run(vm, run_id);
  if (r) {
    s->step = run_n_steps(r);
    s->examples = run_n_examples(r);
    s->epoch = run_epoch(r);
    s->seconds = run_seconds(r);
    for (int m = 0; m < METRIC_COUNT; m++)
      s->metric[m] = run_metric(r, (enum metric)m);
    s->memory = run_memory(r);
  }
  vm_release(vm);
  return r ? 0 : -1;
}

static void push_step(lua_State *L, const struct run_status *s)
{
  lua_pushinteger(L, (lua_Integer)s->step);
}
static void push_examples(lua_State *L, const struct run_status *s)
{
  lua_pushinteger(L, (lua_Integer)s->examples);
}
static void push_epoch(lua_State *L, const struct run_status *s)
{
  lua_pushnumber(L, s->epoch);
}
static void push_steps_left(lua_State *L, const struct run_status *s)
{
  if (s->steps_left == ENGINE_FOREVER)
    lua_pushnumber(L, INFINITY);
  else
    lua_pushinteger(L, (lua_Integer)s->steps_left);
}
static void push_seconds(lua_State *L, const struct run_status *s)
{
  lua_pushnumber(L, s->seconds);
}
static void push_id(lua_State *L, const struct run_status *s)
{
  lua_pushinteger(L, s->run_id);
}
static void push_name(lua_State *L, const struct run_status *s)
{
  lua_pushstring(L, s->name);
}
static void push_data_name(lua_State *L, const struct run_status *s)
{
  lua_pushstring(L, s->data);
}
static void push_journal(lua_State *L, const struct run_status *s)
{
  if (*s->journal)
    lua_pushstring(L, s->journal);
  else
    lua_pushnil(L);
}
static void push_weights(lua_State *L, const struct run_status *s)
{
  lua_pushinteger(L, (lua_Integer)s->n_weights);
}

static const char *state_name(enum engine_state s)
{
  static const char *const name[] = {
      [ENGINE_IDLE] = "idle",         [ENGINE_RUNNING] = "running", [ENGINE_PAUSED] = "paused",
      [ENGINE_DIVERGED] = "diverged", [ENGINE_FAILED] = "failed",
  };
  return name[s];
}
static void push_state(lua_State *L, const struct run_status *s)
{
  lua_pushstring(L, state_name(s->state));
}

static void push_memory(lua_State *L, const struct run_status *s)
{
  const struct {
    const char *name;
    size_t n_bytes;
  } part[] = {{"weights", s->memory.weights},
              {"gradients", s->memory.gradients},
              {"optimizer", s->memory.optimizer},
              {"activations", s->memory.activations},
              {"snapshots", s->memory.snapshots}};
  lua_newtable(L);
  for (size_t i = 0; i < sizeof part / sizeof *part; i++) {
    lua_pushinteger(L, (lua_Integer)part[i].n_bytes);
    lua_setfield(L, -2, part[i].name);
  }
}

static void push_sites(lua_State *L, const struct run_status *s)
{
  bind_site_push(L, s->run_id);
}

static void push_parts(lua_State *L, const struct grad_variance *v)
{
  const struct {
    const char *name;
    double value;
  } part[] = {{"total", v->total}, {"data", v->data}, {"quant", v->quant}, {"a", v->a}, {"g", v->g}, {"ag", v->ag}};
  for (size_t i = 0; i < sizeof part / sizeof *part; i++) {
    lua_pushnumber(L, part[i].value);
    lua_setfield(L, -2, part[i].name);
  }
}

/* What run.variance shows, copied while the engine is held. */
struct variance_copy {
  bool known;
  struct grad_variance total;
  struct variance_layer {
    char name[DESC_NAME];
    struct grad_variance v;
  } * layer;
  int n_layers;
};

static void copy_variance(struct run *r, struct variance_copy *c)
{
  struct graph *g = run_graph(r);
  size_t batch = (size_t)knob_int(run_knobs(r), KNOB_BATCH);
  c->total = (struct grad_variance){
      .data = run_metric(r, METRIC_VAR_DATA),
      .a = run_metric(r, METRIC_VAR_A),
      .g = run_metric(r, METRIC_VAR_G),
      .ag = run_metric(r, METRIC_VAR_AG),
      .quant = run_metric(r, METRIC_VAR_QUANT),
      .total = run_metric(r, METRIC_GRAD_VARIANCE),
  };
  c->known = !isnan(c->total.quant);
  /* The layers' sums do not say which batch they are of. Where the batch changed since they were made (probe_every is
   * above 1) they are left out rather than scaled wrongly. */
  if (!c->known || variance_of_graph(g, batch).quant != c->total.quant)
    return;
  c->layer = mem_alloc((size_t)graph_n_layers(g) * sizeof *c->layer);
  for (int i = 0; i < graph_n_layers(g); i++) {
    const struct layer_sums *s = graph_layer_sums(g, i);
    if (s->norm2_samples == 0)
      continue; /* no parameters */
    struct variance_layer *l = &c->layer[c->n_layers++];
    str_copy(l->name, sizeof l->name, graph_layer_name(g, i));
    l->v = variance_of_layer(s, batch);
  }
}

static void push_variance(lua_State *L, const struct run_status *s)
{
  struct vm *vm = vm_of(L);
  struct variance_copy c = {0};
  struct run *r = vm_hold_run(vm, s->run_id);
  if (r)
    copy_variance(r, &c);
  vm_release(vm);
  if (!c.known) {
    lua_pushnil(L);
    return;
  }
  lua_newtable(L);
  push_parts(L, &c.total);
  if (c.layer) {
    lua_newtable(L);
    for (int i = 0; i < c.n_layers; i++) {
      lua_newtable(L);
      push_parts(L, &c.layer[i].v);
      lua_setfield(L, -2, c.layer[i].name);
    }
    lua_setfield(L, -2, "layer");
  }
  mem_free(c.layer);
}

const struct field_row field_table[] = {
    {"step", "steps done; run:step(n) does n more", push_step},
    {"examples", "examples seen", push_examples},
    {"epoch", "passes over the training split", push_epoch},
    {"state", "idle, running, paused, diverged or failed", push_state},
    {"steps_left", "steps still to do of those asked for", push_steps_left},
    {"seconds", "time spent training", push_seconds},
    {"variance", "variance of the last step's gradient: total, data, quant, a, g, ag, and layer.NAME of each",
     push_variance},
    {"site", "specs of the quantization sites: run.site.gweight.format = \"e4m1\"", push_sites},
    {"name", "what plots and messages call the run", push_name},
    {"id", "its number", push_id},
    {"dataset", "name of the data set in use", push_data_name},
    {"journal", "path of its journal, or nil", push_journal},
    {"n_weights", "number of weights", push_weights},
    {"memory", "bytes by use", push_memory},
    {NULL, NULL, NULL},
};

static const struct field_row *find_field(const char *name)
{
  for (const struct field_row *f = field_table; f->name; f++)
    if (strcmp(f->name, name) == 0)
      return f;
  return NULL;
}

static int find_metric(const char *name)
{
  for (int m = 0; m < METRIC_COUNT; m++)
    if (strcmp(metric_table[m].name, name) == 0)
      return m;
  return -1;
}

static const struct method_row *find_method(const char *name)
{
  for (const struct method_row *m = method_table; m->name; m++)
    if (strcmp(m->name, name) == 0)
      return m;
  return NULL;
}

/* The nearest of all that a run has. */
static const char *nearest_member(const char *name)
{
  const char *words[KNOB_COUNT + METRIC_COUNT + 64] = {0};
  size_t n = 0;
  for (int i = 0; i < KNOB_COUNT; i++)
    words[n++] = knob_table[i].name;
  for (int i = 0; i < METRIC_COUNT; i++)
    words[n++] = metric_table[i].name;
  for (const struct field_row *f = field_table; f->name; f++)
    words[n++] = f->name;
  for (const struct method_row *m = method_table; m->name; m++)
    words[n++] = m->name;
  return str_nearest(name, words);
}

static int refuse_member(lua_State *L, const char *name)
{
  const char *near = nearest_member(name);
  return vm_refuse(L, "a run has no '%s'%s%s%s", name, near ? ": did you mean '" : "", near ? near : "",
                   near ? "'?" : "; help \"run\" lists what it has");
}

static int run_index(lua_State *L)
{
  int id = bind_run_check(L, 1);
  const char *name = luaL_checkstring(L, 2);
  const struct field_row *f = find_field(name);
  int metric = find_metric(name);
  const struct method_row *m = find_method(name);
  if (!f && m) {
    lua_pushcfunction(L, m->fn);
    return 1;
  }
  if (!f && setting_is_knob(name)) { /* lr is a knob and a metric: the knob */
    setting_push(L, id, name);
    return 1;
  }
  if (!f && metric < 0)
    return refuse_member(L, name);
  struct run_status s;
  if (read_status(vm_of(L), id, &s) != 0)
    return vm_refuse(L, "run %d is closed", id);
  if (f)
    f->push(L, &s);
  else
    lua_pushnumber(L, s.metric[metric]);
  return 1;
}

static int run_newindex(lua_State *L)
{
  int id = bind_run_check(L, 1);
  const char *name = luaL_checkstring(L, 2);
  if (setting_is_knob(name)) {
    setting_set(L, id, name, 3);
    return 0;
  }
  if (strcmp(name, "site") == 0) { /* run.site = { gweight = {...}, ... } */
    if (!lua_istable(L, 3))
      return vm_refuse(L, "site: needs a table such as { gweight = { format = \"e4m1\" } }");
    bind_site_push(L, id);
    lua_pushnil(L);
    while (lua_next(L, 3)) {
      lua_pushvalue(L, -2);
      lua_insert(L, -2);
      lua_settable(L, -4);
    }
    return 0;
  }
  if (find_field(name) || find_metric(name) >= 0 || find_method(name))
    return vm_refuse(L, "%s of a run is read, not set", name);
  return refuse_member(L, name);
}

static int run_tostring(lua_State *L)
{
  const int *id = luaL_checkudata(L, 1, RUN);
  struct run_status s;
  char loss[32], step[32];
  if (!entry_current() || read_status(vm_of(L), *id, &s) != 0) {
    lua_pushfstring(L, "run %d, closed", *id);
    return 1;
  }
  str_double((double)s.step, step);
  if (s.step == 0)
    lua_pushfstring(L, "%s: step 0, %s", s.name, state_name(s.state));
  else
    lua_pushfstring(L, "%s: step %s, loss %s, %s", s.name, step, str_float((float)s.metric[METRIC_LOSS], loss),
                    state_name(s.state));
  return 1;
}

/* run.step is a number and run:step(n) steps. The second reads the field and then calls what it got, so numbers take a
 * call with a run as the first argument; every other call of a number is the error that it always was. */
static int number_call(lua_State *L)
{
  if (!bind_run_test(L, 2))
    return luaL_error(L, "attempt to call a number value");
  lua_pushcfunction(L, find_method("step")->fn);
  lua_replace(L, 1);
  lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
  return lua_gettop(L);
}

void bind_run_open(lua_State *L)
{
  static const luaL_Reg functions[] = {
      {"__index", run_index}, {"__newindex", run_newindex}, {"__tostring", run_tostring}, {NULL, NULL}};
  luaL_newmetatable(L, RUN);
  luaL_setfuncs(L, functions, 0);
  lua_pop(L, 1);
  lua_newtable(L);
  lua_newtable(L);
  lua_pushstring(L, "v");
  lua_setfield(L, -2, "__mode");
  lua_setmetatable(L, -2);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &objects_key);
  lua_pushinteger(L, 0);
  lua_newtable(L);
  lua_pushcfunction(L, number_call);
  lua_setfield(L, -2, "__call");
  lua_setmetatable(L, -2);
  lua_pop(L, 1);
}
