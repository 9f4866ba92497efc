/* Model files. models/NAME.lua returns a description, or a function that makes one from options:
 *
 *     return function(o)
 *       return model { linear(512), relu(), linear(o.classes) }
 *     end
 *
 * The file sees the layer kinds of model/layer.h as functions, model(), math, string, table and a few basics: neither
 * files nor the clock, so that a description is a function of its options. */
#include "config.h"

#include "script/vm_impl.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/paths.h"
#include "model/layer.h"
#include "model/names.h"

#define MAX_LAYERS 4096
#define MAX_NESTING 16

/* Names given to layers that have none: PyTorch's usual ones. */
static const char *name_stem(const char *kind)
{
  static const char *const stems[][2] = {{"linear", "fc"}, {"conv2d", "conv"}, {"batch_norm2d", "bn"}};
  for (size_t i = 0; i < sizeof stems / sizeof *stems; i++)
    if (strcmp(kind, stems[i][0]) == 0)
      return stems[i][1];
  return kind;
}

static bool is_layer(lua_State *L, int index)
{
  if (!lua_getmetatable(L, index))
    return false;
  luaL_getmetatable(L, "bitdial.layer");
  bool is = lua_rawequal(L, -1, -2);
  lua_pop(L, 2);
  return is;
}

/* linear(512), linear(784, 512), linear { 512, bias = false, name = "head" }: upvalue 1 is the row of layer_types[].
 * Numbers stand for the kind's options in order; `in` may be left out, as the layer before tells it. */
static int make_layer(lua_State *L)
{
  const struct layer_type *t = layer_types[lua_tointeger(L, lua_upvalueindex(1))];
  lua_newtable(L);
  int out = lua_gettop(L);
  int n_positional = 0;
  bool table = lua_istable(L, 1) && out == 2;
  if (table) {
    lua_pushnil(L);
    while (lua_next(L, 1)) {
      if (lua_type(L, -2) == LUA_TSTRING) {
        lua_pushvalue(L, -2);
        lua_pushvalue(L, -2);
        lua_settable(L, out);
      }
      lua_pop(L, 1);
    }
    n_positional = (int)luaL_len(L, 1);
  } else {
    n_positional = out - 1;
  }
  int n_options = 0;
  while (t->options[n_options])
    n_options++;
  bool skip_in = n_options > 0 && strcmp(t->options[0], "in") == 0 && n_positional < 2;
  for (int i = 1; i <= n_positional; i++) {
    int option = i - 1 + skip_in;
    if (option >= n_options)
      return luaL_error(L, "%s takes %d values at most, %d are given", t->name, n_options, n_positional);
    if (table)
      lua_geti(L, 1, i);
    else
      lua_pushvalue(L, i);
    lua_setfield(L, out, t->options[option]);
  }
  lua_pushstring(L, t->name);
  lua_setfield(L, out, "kind");
  luaL_setmetatable(L, "bitdial.layer");
  return 1;
}

static int make_model(lua_State *L)
{
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_settop(L, 1);
  luaL_newmetatable(L, "bitdial.model");
  lua_setmetatable(L, 1);
  return 1;
}

static void push_environment(lua_State *L)
{
  static const char *const allowed[] = {"assert", "error",  "ipairs", "math", "next",     "pairs",   "print",
                                        "select", "string", "table",  "type", "tonumber", "tostring"};
  luaL_newmetatable(L, "bitdial.layer");
  lua_pop(L, 1);
  lua_newtable(L);
  for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++) {
    if (lua_getglobal(L, allowed[i]) == LUA_TTABLE) { /* a copy: what the file does to it stays there */
      lua_newtable(L);
      lua_pushnil(L);
      while (lua_next(L, -3)) {
        lua_pushvalue(L, -2);
        lua_insert(L, -2);
        lua_settable(L, -4);
      }
      lua_remove(L, -2);
    }
    lua_setfield(L, -2, allowed[i]);
  }
  for (int i = 0; layer_types[i]; i++) {
    lua_pushinteger(L, i);
    lua_pushcclosure(L, make_layer, 1);
    lua_setfield(L, -2, layer_types[i]->name);
  }
  lua_pushcfunction(L, make_model);
  lua_setfield(L, -2, "model");
}

/* What is under way, for messages and for the protected part. */
struct reading {
  const char *path;
  const char *name;
  const char *const *options;
  size_t n_options;
  struct model_desc *out;
};

static void push_options(lua_State *L, const struct reading *r)
{
  lua_newtable(L);
  for (size_t i = 0; i < r->n_options; i++) {
    const char *eq = strchr(r->options[i], '=');
    if (!eq)
      luaL_error(L, "model option '%s' is not of the form key=value", r->options[i]);
    lua_pushlstring(L, r->options[i], (size_t)(eq - r->options[i]));
    if (!lua_stringtonumber(L, eq + 1))
      lua_pushstring(L, eq + 1);
    lua_settable(L, -3);
  }
}

/* The layer before `l` whose name is at the top of the stack. */
static int find_layer(lua_State *L, const struct reading *r, const struct layer_desc *l, const char *key)
{
  const char *name = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : NULL;
  if (!name)
    return luaL_error(L, "%s: layer %s: %s is a %s; it must be the name of a layer before it", r->path, l->name, key,
                      luaL_typename(L, -1));
  for (int i = 0; i < r->out->n_layers - 1; i++)
    if (strcmp(r->out->layer[i].name, name) == 0)
      return i;
  return luaL_error(L, "%s: layer %s: %s = \"%s\" names no layer before it", r->path, l->name, key, name);
}

static double option_number(lua_State *L, const struct reading *r, const struct layer_desc *l, const char *key)
{
  if (lua_isboolean(L, -1))
    return lua_toboolean(L, -1);
  if (lua_type(L, -1) == LUA_TNUMBER)
    return lua_tonumber(L, -1);
  if (lua_type(L, -1) == LUA_TSTRING) /* another layer, by name */
    return find_layer(L, r, l, key);
  luaL_error(L, "%s: layer %s: %s is a %s; it must be a number", r->path, l->name, key, luaL_typename(L, -1));
  return 0;
}

static void read_layer_options(lua_State *L, const struct reading *r, const struct layer_type *t, int at)
{
  struct layer_desc *l = &r->out->layer[r->out->n_layers - 1];
  at = lua_absindex(L, at);
  lua_pushnil(L);
  while (lua_next(L, at)) {
    const char *key = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : "?";
    bool own = strcmp(key, "kind") == 0 || strcmp(key, "name") == 0 || strcmp(key, "input") == 0;
    struct err e;
    if (strcmp(key, "input") == 0)
      l->input = find_layer(L, r, l, key);
    if (!own && names_find("option", key, t->options, &e) < 0)
      luaL_error(L, "%s: layer %s: %s", r->path, l->name, e.msg);
    if (!own)
      desc_set_option(l, key, option_number(L, r, l, key));
    lua_pop(L, 1);
  }
}

/* Names stand in journals, in files of weights and on the screen: printable, and not empty. */
static void check_name(lua_State *L, const struct reading *r, const char *what, int index)
{
  size_t n;
  const char *s = lua_tolstring(L, index, &n);
  for (size_t i = 0; s && i < n; i++)
    if ((unsigned char)s[i] < ' ' || s[i] == 127)
      luaL_error(L, "%s: the %s has a control character (code %d) in it", r->path, what, (unsigned char)s[i]);
  if (s && n == 0)
    luaL_error(L, "%s: the %s is empty", r->path, what);
}

static void read_layer(lua_State *L, const struct reading *r, int at)
{
  struct err e;
  lua_getfield(L, at, "kind");
  const struct layer_type *t = layer_type_find(luaL_checkstring(L, -1), &e);
  if (!t)
    luaL_error(L, "%s: layer %d: %s", r->path, r->out->n_layers + 1, e.msg);
  char name[2 * DESC_NAME];
  lua_getfield(L, at, "name");
  if (lua_isstring(L, -1)) {
    check_name(L, r, "name of a layer", -1);
    if (!str_copy(name, DESC_NAME, lua_tostring(L, -1)))
      luaL_error(L, "%s: the layer name '%s' is longer than %d letters", r->path, lua_tostring(L, -1), DESC_NAME - 1);
  } else {
    int n = 1;
    for (int i = 0; i < r->out->n_layers; i++)
      n += strcmp(r->out->layer[i].kind, t->name) == 0;
    snprintf(name, sizeof name, "%.20s%d", name_stem(t->name), n);
  }
  for (int i = 0; i < r->out->n_layers; i++)
    if (strcmp(r->out->layer[i].name, name) == 0)
      luaL_error(L, "%s: two layers are named '%s'", r->path, name);
  lua_pop(L, 2);
  if (r->out->n_layers == MAX_LAYERS)
    luaL_error(L, "%s: more than %d layers", r->path, MAX_LAYERS);
  desc_add_layer(r->out, t->name, name);
  read_layer_options(L, r, t, at);
}

/* Layers in the list at `at`; a list within it, as a loop makes them, counts as its layers. */
static void read_list(lua_State *L, const struct reading *r, int at, int depth)
{
  at = lua_absindex(L, at);
  if (depth > MAX_NESTING)
    luaL_error(L, "%s: lists of layers are nested more than %d deep", r->path, MAX_NESTING);
  luaL_checkstack(L, 8, NULL);
  lua_Integer n = luaL_len(L, at);
  for (lua_Integer i = 1; i <= n; i++) {
    lua_geti(L, at, i);
    if (is_layer(L, lua_gettop(L)))
      read_layer(L, r, lua_gettop(L));
    else if (lua_istable(L, -1))
      read_list(L, r, -1, depth + 1);
    else if (lua_isfunction(L, -1))
      luaL_error(L, "%s: item %d is a function: write the layer with parentheses, as in relu()", r->path, (int)i);
    else
      luaL_error(L, "%s: item %d is a %s, not a layer", r->path, (int)i, luaL_typename(L, -1));
    lua_pop(L, 1);
  }
}

static void read_defaults(lua_State *L, const struct reading *r, int at)
{
  if (lua_getfield(L, at, "defaults") == LUA_TNIL) {
    lua_pop(L, 1);
    return;
  }
  if (!lua_istable(L, -1))
    luaL_error(L, "%s: defaults must be a table of knobs", r->path);
  const char **pairs;
  int top = lua_gettop(L);
  size_t n = make_run_pairs(L, top, &pairs, NULL, NULL);
  for (size_t i = 0; i < n; i++)
    desc_add_knob_default(r->out, pairs[2 * i], pairs[2 * i + 1]);
  lua_settop(L, top - 1);
}

/* A count from the file, checked against what the data set has. */
static size_t read_size(lua_State *L, const struct reading *r, int at, const char *key, const char *option)
{
  lua_Integer own = 0, given = 0;
  if (lua_getfield(L, at, key) != LUA_TNIL) {
    int is_int;
    own = lua_tointegerx(L, -1, &is_int);
    if (!is_int || own < 1 || own > INT32_MAX)
      luaL_error(L, "%s: %s must be a whole number of at least 1", r->path, key);
  }
  push_options(L, r);
  lua_getfield(L, -1, option);
  given = lua_tointeger(L, -1);
  lua_pop(L, 3);
  if (own && given && own != given)
    luaL_error(L, "%s: %s = %d, but the data set has %d", r->path, key, (int)own, (int)given);
  return (size_t)(own ? own : given);
}

/* inputs = { 1, 28, 28 }: a shape, whose product then stands in its place. */
static void read_input_shape(lua_State *L, const struct reading *r, int at)
{
  struct model_desc *d = r->out;
  if (lua_getfield(L, at, "inputs") == LUA_TTABLE) {
    lua_Integer rank = luaL_len(L, -1), n = 1;
    if (rank < 1 || rank > DESC_RANK)
      luaL_error(L, "%s: inputs has %d dimensions; 1 to %d are possible", r->path, (int)rank, DESC_RANK);
    for (int i = 0; i < rank; i++) {
      int is_int;
      lua_geti(L, -1, i + 1);
      lua_Integer size = lua_tointegerx(L, -1, &is_int);
      if (!is_int || size < 1 || size > INT32_MAX / n)
        luaL_error(L, "%s: dimension %d of inputs must be a whole number of at least 1", r->path, i + 1);
      d->input_shape[i] = (size_t)size;
      n *= size;
      lua_pop(L, 1);
    }
    d->input_rank = (int)rank;
    lua_pushinteger(L, n);
    lua_setfield(L, at, "inputs");
  }
  lua_pop(L, 1);
}

static void read_sizes(lua_State *L, const struct reading *r, int at)
{
  struct model_desc *d = r->out;
  read_input_shape(L, r, at);
  d->n_inputs = read_size(L, r, at, "inputs", "inputs");
  if (d->n_inputs == 0)
    luaL_error(L, "%s: how many inputs? Say so in the file (inputs = 784)", r->path);
  size_t classes = read_size(L, r, at, "outputs", "classes");
  for (int i = d->n_layers - 1; i >= 0 && d->n_outputs == 0; i--)
    d->n_outputs = (size_t)desc_option(&d->layer[i], "out", 0);
  if (d->n_outputs == 0)
    d->n_outputs = classes ? classes : d->n_inputs;
  if (d->n_outputs < classes)
    luaL_error(L, "%s: the last layer, %s, gives %d values, but there are %d classes", r->path,
               d->layer[d->n_layers - 1].name, (int)d->n_outputs, (int)classes);
}

static const char *const model_keys[] = {"name", "inputs", "outputs", "loss", "defaults", NULL};

static void check_keys(lua_State *L, const struct reading *r, int at)
{
  struct err e;
  lua_pushnil(L);
  while (lua_next(L, at)) {
    lua_pop(L, 1);
    if (lua_type(L, -1) == LUA_TSTRING && names_find("field of a model", lua_tostring(L, -1), model_keys, &e) < 0)
      luaL_error(L, "%s: %s", r->path, e.msg);
  }
}

static void copy_field(lua_State *L, const struct reading *r, int at, const char *key, const char *otherwise, char *out)
{
  lua_getfield(L, at, key);
  if (!lua_isnoneornil(L, -1) && lua_type(L, -1) != LUA_TSTRING)
    luaL_error(L, "%s: %s is a %s; it must be a string", r->path, key, luaL_typename(L, -1));
  const char *s = luaL_optstring(L, -1, otherwise);
  check_name(L, r, key, -1);
  if (!str_copy(out, DESC_NAME, s))
    luaL_error(L, "%s: %s = '%s' is longer than %d letters", r->path, key, s, DESC_NAME - 1);
  lua_pop(L, 1);
}

/* Loads, runs and reads the file; raises. */
static int read_file(lua_State *L)
{
  const struct reading *r = lua_touserdata(L, 1);
  if (luaL_loadfilex(L, r->path, "t") != LUA_OK)
    return lua_error(L);
  push_environment(L);
  lua_setupvalue(L, -2, 1);
  lua_call(L, 0, 1);
  if (lua_isfunction(L, -1)) {
    push_options(L, r);
    lua_call(L, 1, 1);
  }
  if (!lua_istable(L, -1))
    return luaL_error(L, "%s: must return model { ... }, or a function that returns it; it returned %s", r->path,
                      lua_isnil(L, -1) ? "nothing" : luaL_typename(L, -1));
  int at = lua_gettop(L);
  if (is_layer(L, at))
    return luaL_error(L, "%s: returned a single layer; write model { ... } around it", r->path);
  check_keys(L, r, at);
  copy_field(L, r, at, "name", r->name, r->out->name);
  copy_field(L, r, at, "loss", "cross_entropy", r->out->loss);
  read_list(L, r, at, 0);
  if (r->out->n_layers == 0)
    return luaL_error(L, "%s: the model has no layers", r->path);
  read_sizes(L, r, at);
  read_defaults(L, r, at);
  return 0;
}

/* "mlp, resnet": the shipped ones; says which is near. */
static int unknown_model(const char *name, struct err *e)
{
  const char *names[65] = {0};
  int n = 0;
  char *dir_path = paths_shipped("models");
  DIR *dir = dir_path ? opendir(dir_path) : NULL;
  for (struct dirent *d; dir && n < 64 && (d = readdir(dir));) {
    size_t len = strlen(d->d_name);
    if (len > 4 && strcmp(d->d_name + len - 4, ".lua") == 0)
      names[n++] = mem_printf("%.*s", (int)(len - 4), d->d_name);
  }
  if (dir)
    closedir(dir);
  const char *near = str_nearest(name, names);
  struct str all = {0};
  for (int i = 0; i < n; i++)
    str_addf(&all, "%s%s", i ? ", " : "", names[i]);
  err_set(e, "no model '%s' in models/%s%s%s; %s%s; a path ending in .lua names a file of your own", name,
          near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "", n ? "there are: " : "none is installed",
          n ? all.s : "");
  str_done(&all);
  for (int i = 0; i < n; i++)
    mem_free((void *)(uintptr_t)names[i]);
  mem_free(dir_path);
  return -1;
}

static bool is_path(const char *name)
{
  size_t n = strlen(name);
  return n > 4 && strcmp(name + n - 4, ".lua") == 0;
}

static char *find_file(const char *name, struct err *e)
{
  if (is_path(name))
    return mem_strdup(name);
  char *relative = mem_printf("models/%s.lua", name);
  char *path = strchr(name, '/') ? NULL : paths_shipped(relative);
  mem_free(relative);
  if (!path)
    unknown_model(name, e);
  return path;
}

static void stem_of(const char *path, char *out)
{
  const char *slash = strrchr(path, '/');
  const char *base = slash ? slash + 1 : path;
  snprintf(out, DESC_NAME, "%.*s", (int)(strlen(base) - 4), base);
}

int model_file_read(lua_State *L, const char *name, const char *const *options, size_t n_options,
                    struct model_desc *out, struct err *e)
{
  memset(out, 0, sizeof *out);
  char *path = find_file(name, e);
  if (!path)
    return -1;
  char stem[DESC_NAME];
  stem_of(path, stem);
  struct reading r = {path, stem, options, n_options, out};
  luaL_checkstack(L, 4, NULL);
  lua_pushcfunction(L, read_file);
  lua_pushlightuserdata(L, &r);
  int status = lua_pcall(L, 1, 0, 0);
  if (status != LUA_OK) {
    const char *msg = lua_tostring(L, -1);
    msg = msg ? msg : "error without a message";
    if (strstr(msg, path))
      err_set(e, "%s", msg);
    else
      err_set(e, "%s: %s", path, msg);
    lua_pop(L, 1);
    desc_done(out);
  }
  mem_free(path);
  return status == LUA_OK ? 0 : -1;
}
