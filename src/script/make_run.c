/* Runs made from knobs: defaults of the table, then the model's own, then those given. */
#include "config.h"

#include "script/vm_impl.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/paths.h"

/* A value that must be known before the model is: the last one given, or the default. */
static int find_value(const struct make_request *m, enum knob_id id, struct knob_value *out, struct err *e)
{
  const char *text = knob_table[id].default_text;
  struct knob_ref ref;
  for (size_t i = 0; i < m->n_pairs; i++)
    if (knob_find(m->pairs[2 * i], &ref, NULL) == 0 && ref.id == id)
      text = m->pairs[2 * i + 1];
  ref = (struct knob_ref){.id = id};
  return knob_parse(&ref, text, out, e);
}

static int set_knob(struct knobs *k, const char *knob, const char *value, struct err *e)
{
  struct knob_ref ref;
  return knob_find(knob, &ref, e) != 0 || knobs_set(k, &ref, value, e) != 0 ? -1 : 0;
}

/* Reads the model for the sizes of the data set. */
static int read_model(lua_State *L, const char *name, const struct dataset *d, struct model_desc *out, struct err *e)
{
  char inputs[32], classes[32];
  snprintf(inputs, sizeof inputs, "inputs=%zu", dataset_n_inputs(d));
  snprintf(classes, sizeof classes, "classes=%zu", dataset_n_classes(d));
  return model_file_read(L, name, (const char *const[]){inputs, classes}, 2, out, e);
}

static int gather_knobs(const struct make_request *m, const struct model_desc *d, struct knobs *k, struct err *e)
{
  knobs_defaults(k);
  for (int i = 0; i < d->n_knob_defaults; i++)
    if (set_knob(k, d->knob_default[i].knob, d->knob_default[i].value, e) != 0)
      return err_prefix(e, "defaults of the model %s", d->name);
  for (size_t i = 0; i < m->n_pairs; i++)
    if (set_knob(k, m->pairs[2 * i], m->pairs[2 * i + 1], e) != 0)
      return -1;
  return 0;
}

/* Makes the run and gives it to the engine, outside Lua: it takes a while. */
static int create_run(struct vm *vm, const struct make_request *m, const struct model_desc *d, const struct knobs *k,
                      const char *name, struct err *e)
{
  struct run_config c = {.model = d, .knobs = k, .journal_path = m->journal, .name = name};
  int id = -1;
  vm_outside(vm);
  engine_lock(vm->engine);
  c.pool = engine_pool(vm->engine);
  struct run *r = run_create(&c, e);
  engine_unlock(vm->engine);
  if (r)
    id = engine_add(vm->engine, r);
  vm_inside(vm);
  return id;
}

static int make_with_data(lua_State *L, const struct make_request *m, const char *model, const struct dataset *data,
                          struct err *e)
{
  struct vm *vm = vm_of(L);
  struct model_desc d;
  struct knobs k;
  char name[32];
  snprintf(name, sizeof name, "run%d", vm->n_made + 1);
  if (read_model(L, model, data, &d, e) != 0)
    return -1;
  int id = -1;
  if (gather_knobs(m, &d, &k, e) == 0)
    id = create_run(vm, m, &d, &k, m->name ? m->name : name, e);
  desc_done(&d);
  if (id < 0)
    return -1;
  vm->n_made++;
  atomic_store(&vm->current_run, id);
  return id;
}

int make_run(lua_State *L, const struct make_request *m, struct err *e)
{
  struct vm *vm = vm_of(L);
  struct knob_value model, data, seed;
  if (find_value(m, KNOB_MODEL, &model, e) || find_value(m, KNOB_DATA, &data, e) || find_value(m, KNOB_SEED, &seed, e))
    return -1;
  vm_outside(vm);
  struct dataset *set = dataset_open(data.text, (uint64_t)seed.i, e); /* the run shares it */
  vm_inside(vm);
  if (!set)
    return -1;
  int id = make_with_data(L, m, model.text, set, e);
  dataset_free(set);
  return id;
}

char *make_run_journal(struct vm *vm, const char *asked, struct err *e)
{
  char *configured = vm->journal_path;
  vm->journal_path = NULL; /* the first run's alone */
  if (asked || configured) {
    char *path = asked ? mem_strdup(asked) : configured;
    if (asked)
      mem_free(configured);
    return path;
  }
  if (!vm->interactive)
    return NULL;
  char leaf[64], stamp[32];
  time_t now = time(NULL);
  struct tm tm;
  strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", localtime_r(&now, &tm));
  snprintf(leaf, sizeof leaf, "runs/%s-%d-%d.jsonl", stamp, (int)getpid(), vm->n_made + 1);
  return paths_xdg("state", leaf, e);
}

struct pair_list {
  const char **pair;
  size_t n, cap;
};

static void add_pair(lua_State *L, struct pair_list *p, const char *knob, int value_index)
{
  char text[256];
  if (!setting_text(L, value_index, text, sizeof text))
    setting_refuse_value(L, knob, value_index);
  if (p->n == p->cap)
    vm_refuse(L, "too many knobs");
  luaL_checkstack(L, 8, NULL);
  p->pair[2 * p->n] = lua_pushstring(L, knob); /* both stay on the stack, and so alive */
  p->pair[2 * p->n + 1] = lua_pushstring(L, text);
  p->n++;
}

static void check_keys(lua_State *L, int t, bool for_run)
{
  lua_pushnil(L);
  while (lua_next(L, t)) {
    lua_pop(L, 1);
    struct knob_ref ref;
    struct err e;
    if (lua_type(L, -1) != LUA_TSTRING)
      vm_refuse(L, "knobs go by name: %s = value", "batch");
    const char *key = lua_tostring(L, -1);
    bool own = strcmp(key, "site") == 0 || (for_run && (strcmp(key, "name") == 0 || strcmp(key, "journal") == 0));
    if (!own && knob_find(key, &ref, &e) != 0)
      vm_refuse(L, "%s", e.msg);
  }
}

static void add_site_field(lua_State *L, struct pair_list *p, enum site s, const char *field)
{
  char knob[64];
  snprintf(knob, sizeof knob, "site.%s.%s", site_names[s], field);
  int top = lua_gettop(L);
  add_pair(L, p, knob, top);
}

/* site = { gweight = { format = "e4m1" }, act = "bf16" } */
static void add_sites(lua_State *L, struct pair_list *p, int t)
{
  if (!lua_istable(L, t))
    vm_refuse(L, "site: needs a table such as { gweight = { format = \"e4m1\" } }");
  lua_pushnil(L);
  while (lua_next(L, t)) {
    enum site s;
    struct err e;
    if (site_find(lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : luaL_typename(L, -2), &s, &e) != 0)
      vm_refuse(L, "%s", e.msg);
    setting_check_spec(L, s, -1);
    lua_pop(L, 1);
  }
  for (int s = 0; s < SITE_COUNT; s++) {
    luaL_checkstack(L, 4, NULL);
    int type = lua_getfield(L, t, site_names[s]);
    int spec = lua_gettop(L);
    if (type == LUA_TSTRING)
      add_site_field(L, p, (enum site)s, "format");
    else if (type == LUA_TTABLE)
      for (int i = 0; spec_fields[i]; i++)
        if (luaL_checkstack(L, 4, NULL), lua_getfield(L, spec, spec_fields[i]) != LUA_TNIL)
          add_site_field(L, p, (enum site)s, spec_fields[i]);
  }
}

/* Optional text field that is no knob. */
static const char *text_field(lua_State *L, int t, const char *key)
{
  luaL_checkstack(L, 2, NULL);
  if (lua_getfield(L, t, key) == LUA_TNIL || (lua_isboolean(L, -1) && !lua_toboolean(L, -1)))
    return NULL;
  if (lua_type(L, -1) != LUA_TSTRING)
    vm_refuse(L, "%s must be a string", key);
  return lua_tostring(L, -1);
}

size_t make_run_pairs(lua_State *L, int index, const char ***pairs, const char **name, const char **journal)
{
  int t = lua_absindex(L, index);
  check_keys(L, t, name != NULL);
  struct pair_list p = {.cap = KNOB_COUNT + SITE_COUNT * 16};
  p.pair = lua_newuserdatauv(L, 2 * p.cap * sizeof *p.pair, 0);
  for (int i = 0; i < KNOB_COUNT; i++) { /* a table has no order: recipe comes before bits, as in the knob table */
    luaL_checkstack(L, 4, NULL);
    if (lua_getfield(L, t, knob_table[i].name) != LUA_TNIL)
      add_pair(L, &p, knob_table[i].name, lua_gettop(L));
  }
  if (lua_getfield(L, t, "site") != LUA_TNIL)
    add_sites(L, &p, lua_gettop(L));
  if (name)
    *name = text_field(L, t, "name");
  if (journal)
    *journal = text_field(L, t, "journal");
  *pairs = p.pair;
  return p.n;
}

static void say_notice(struct vm *vm, int id)
{
  char text[512] = "";
  struct run *r = vm_hold_run(vm, id);
  const char *notice = r ? dataset_notice(run_dataset(r)) : NULL;
  if (notice)
    snprintf(text, sizeof text, "note: %s\n", notice);
  vm_release(vm);
  if (*text)
    vm_print(vm, text);
}

int make_run_from_table(lua_State *L)
{
  struct vm *vm = vm_of(L);
  if (lua_gettop(L) == 0)
    lua_newtable(L);
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_settop(L, 1);
  if (entry_current()->kind == ENTRY_HANDLER)
    vm_refuse(L, "a handler cannot make a run");
  struct make_request m = {0};
  const char **pairs, *asked;
  m.n_pairs = make_run_pairs(L, 1, &pairs, &m.name, &asked);
  m.pairs = pairs;
  struct err e = {""};
  lua_getfield(L, 1, "journal");
  bool off = lua_isboolean(L, -1) && !lua_toboolean(L, -1);
  char *journal = off ? NULL : make_run_journal(vm, asked, &e);
  if (!journal && *e.msg)
    vm_refuse(L, "%s", e.msg);
  m.journal = journal;
  int id = make_run(L, &m, &e);
  mem_free(journal);
  if (id < 0)
    vm_refuse(L, "%s", e.msg);
  say_notice(vm, id);
  bind_run_push(L, id);
  return 1;
}
