/* The module `bitdial`: making runs, and the tables as lists. */
#include "config.h"

#include "script/vm_impl.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "numeric/format.h"
#include "train/recipe.h"

/* A list of { name = ..., help = ..., ... } that prints as lines. */
#define LISTING "bitdial.listing"

static int listing_tostring(lua_State *L)
{
  lua_Integer n = luaL_len(L, 1);
  luaL_Buffer b;
  luaL_buffinit(L, &b);
  for (lua_Integer i = 1; i <= n; i++) {
    char head[64];
    lua_geti(L, 1, i);
    lua_getfield(L, -1, "name");
    lua_getfield(L, -2, "help");
    snprintf(head, sizeof head, "%s%-14s  ", i > 1 ? "\n" : "", lua_tostring(L, -2));
    lua_pushfstring(L, "%s%s", head, lua_tostring(L, -1));
    lua_replace(L, -4);
    lua_pop(L, 2);
    luaL_addvalue(&b);
  }
  luaL_pushresult(&b);
  return 1;
}

static void begin_list(lua_State *L)
{
  lua_newtable(L);
  luaL_setmetatable(L, LISTING);
}

/* Adds a row to the list below it and leaves the row on the stack. */
static void begin_row(lua_State *L, const char *name, const char *help)
{
  lua_newtable(L);
  lua_pushvalue(L, -1);
  lua_seti(L, -3, luaL_len(L, -3) + 1);
  lua_pushstring(L, name);
  lua_setfield(L, -2, "name");
  lua_pushstring(L, help);
  lua_setfield(L, -2, "help");
}

static void set_number(lua_State *L, const char *key, double v)
{
  lua_pushnumber(L, v);
  lua_setfield(L, -2, key);
}

static void set_integer(lua_State *L, const char *key, lua_Integer v)
{
  lua_pushinteger(L, v);
  lua_setfield(L, -2, key);
}

static void set_text(lua_State *L, const char *key, const char *v)
{
  lua_pushstring(L, v);
  lua_setfield(L, -2, key);
}

static void push_format(lua_State *L, const struct format *f)
{
  char help[128];
  switch (f->family) {
  case FORMAT_FLOAT:
    snprintf(help, sizeof help, "%2d bits: %d exponent, %d fraction; %.6g to %.6g", f->total_bits, f->exp_bits,
             f->frac_bits, f->frac_bits ? f->min_subnormal : f->min_normal, f->max_finite);
    break;
  case FORMAT_BLOCK:
    snprintf(help, sizeof help, "%2d bits: blocks of %d %s under a shared scale", f->total_bits, f->block,
             f->element ? f->element->name : "");
    break;
  case FORMAT_FIXED:
    snprintf(help, sizeof help, "%2d bits: codes %d to %d, step 2^-%d", f->total_bits, f->code_min, f->code_max,
             f->fixed_frac_bits);
    break;
  default:
    snprintf(help, sizeof help, "%2d bits: codes %d to %d, scaled", f->total_bits, f->code_min, f->code_max);
  }
  begin_row(L, f->name, help);
  set_integer(L, "bits", f->total_bits);
  set_text(L, "family", format_family_name(f->family));
  if (f->family == FORMAT_FLOAT) {
    set_integer(L, "exp_bits", f->exp_bits);
    set_integer(L, "frac_bits", f->frac_bits);
    set_number(L, "max", f->max_finite);
    set_number(L, "min_normal", f->min_normal);
    set_number(L, "min_subnormal", f->min_subnormal);
  } else if (f->family != FORMAT_BLOCK) {
    set_integer(L, "code_min", f->code_min);
    set_integer(L, "code_max", f->code_max);
  }
  lua_pop(L, 1);
}

static int list_formats(lua_State *L)
{
  begin_list(L);
  for (size_t i = 0; i < format_count(); i++)
    push_format(L, format_at(i));
  return 1;
}

static int list_roundings(lua_State *L)
{
  static const struct {
    const char *name, *help;
    bool stochastic;
  } row[] = {
#define ROUNDING(id, name, stochastic, help) {name, help, stochastic},
#include "numeric/round.def"
#undef ROUNDING
  };
  begin_list(L);
  for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
    begin_row(L, row[i].name, row[i].help);
    lua_pushboolean(L, row[i].stochastic);
    lua_setfield(L, -2, "stochastic");
    lua_pop(L, 1);
  }
  return 1;
}

static int list_recipes(lua_State *L)
{
  begin_list(L);
  for (const struct recipe *r = recipe_table; r->name; r++) {
    begin_row(L, r->name, r->help);
    lua_pop(L, 1);
  }
  return 1;
}

static int list_sites(lua_State *L)
{
  begin_list(L);
  for (int s = 0; s < SITE_COUNT; s++) {
    begin_row(L, site_names[s], site_help((enum site)s));
    lua_pop(L, 1);
  }
  return 1;
}

static int list_metrics(lua_State *L)
{
  begin_list(L);
  for (int m = 0; m < METRIC_COUNT; m++) {
    begin_row(L, metric_table[m].name, metric_table[m].help);
    set_text(L, "unit", metric_table[m].unit);
    lua_pop(L, 1);
  }
  return 1;
}

static void push_choices(lua_State *L, const char *const *choices)
{
  lua_newtable(L);
  for (int i = 0; choices[i]; i++) {
    lua_pushstring(L, choices[i]);
    lua_rawseti(L, -2, i + 1);
  }
  lua_setfield(L, -2, "choices");
}

static int list_knobs(lua_State *L)
{
  static const char *const type_name[] = {"int", "real", "bool", "enum", "text"};
  begin_list(L);
  for (int i = 0; i < KNOB_COUNT; i++) {
    const struct knob *k = &knob_table[i];
    begin_row(L, k->name, k->help);
    set_text(L, "type", type_name[k->type]);
    set_text(L, "default", k->default_text);
    lua_pushboolean(L, k->when == KNOB_AT_STEP);
    lua_setfield(L, -2, "live");
    if (k->type == KNOB_INT) {
      set_integer(L, "min", (lua_Integer)k->min);
      set_integer(L, "max", (lua_Integer)k->max);
    } else if (k->type == KNOB_REAL) {
      set_number(L, "min", k->min);
      set_number(L, "max", k->max);
    }
    const char *const *choices = knob_choices(&(struct knob_ref){.id = (enum knob_id)i});
    if (choices)
      push_choices(L, choices);
    lua_pop(L, 1);
  }
  return 1;
}

static int list_runs(lua_State *L)
{
  int ids[256];
  int n = engine_run_ids(vm_of(L)->engine, ids, 256);
  lua_newtable(L);
  for (int i = 0; i < n; i++) {
    bind_run_push(L, ids[i]);
    lua_rawseti(L, -2, i + 1);
  }
  return 1;
}

static int current_run(lua_State *L)
{
  int id = atomic_load(&vm_of(L)->current_run);
  if (id)
    bind_run_push(L, id);
  else
    lua_pushnil(L);
  return 1;
}

const struct method_row module_table[] = {
    {"run", "{ knob = value, ... }",
     "make a run; also name, journal = PATH or false, site = { gweight = { format = \"e4m1\" } }", make_run_from_table},
    {"runs", "", "all runs", list_runs},
    {"current", "", "the run that the prompt turns", current_run},
    {"knobs", "", "all knobs with type, range and help", list_knobs},
    {"recipes", "", "all recipes", list_recipes},
    {"formats", "", "the named number formats", list_formats},
    {"roundings", "", "all rounding modes", list_roundings},
    {"sites", "", "all quantization sites", list_sites},
    {"metrics", "", "all series that a run makes", list_metrics},
    {NULL, NULL, NULL, NULL},
};

static int open_module(lua_State *L)
{
  lua_newtable(L);
  for (const struct method_row *m = module_table; m->name; m++) {
    lua_pushcfunction(L, m->fn);
    lua_setfield(L, -2, m->name);
  }
  lua_pushcfunction(L, help_print);
  lua_setfield(L, -2, "help");
  lua_pushliteral(L, PACKAGE_VERSION);
  lua_setfield(L, -2, "version");
  return 1;
}

void bind_module_open(lua_State *L)
{
  static const luaL_Reg listing[] = {{"__tostring", listing_tostring}, {NULL, NULL}};
  luaL_newmetatable(L, LISTING);
  luaL_setfuncs(L, listing, 0);
  lua_pop(L, 1);
  luaL_requiref(L, "bitdial", open_module, false);
  lua_setglobal(L, "bd");
}
