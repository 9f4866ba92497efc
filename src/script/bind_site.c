/* run.site and run.site.gweight: specs as fields. */
#include "config.h"

#include "script/vm_impl.h"

#include <stdio.h>
#include <string.h>

#define SITES "bitdial.sites"
#define SITE "bitdial.site"

struct site_object {
  int run_id;
  enum site site;
};

void bind_site_push(lua_State *L, int run_id)
{
  struct site_object *o = lua_newuserdatauv(L, sizeof *o, 0);
  *o = (struct site_object){run_id, 0};
  luaL_setmetatable(L, SITES);
}

static enum site check_site(lua_State *L, int index)
{
  enum site s;
  struct err e;
  if (site_find(luaL_checkstring(L, index), &s, &e) != 0)
    vm_refuse(L, "%s", e.msg);
  return s;
}

static int sites_index(lua_State *L)
{
  const struct site_object *o = luaL_checkudata(L, 1, SITES);
  enum site s = check_site(L, 2);
  struct site_object *one = lua_newuserdatauv(L, sizeof *one, 0);
  *one = (struct site_object){o->run_id, s};
  luaL_setmetatable(L, SITE);
  return 1;
}

static int sites_newindex(lua_State *L)
{
  const struct site_object *o = luaL_checkudata(L, 1, SITES);
  enum site s = check_site(L, 2);
  const struct site_object *from = luaL_testudata(L, 3, SITE);
  if (from) { /* run.site.gact = run.site.gweight: all fields */
    lua_newtable(L);
    for (int i = 0; spec_fields[i]; i++) {
      char knob[64];
      snprintf(knob, sizeof knob, "site.%s.%s", site_names[from->site], spec_fields[i]);
      setting_push(L, from->run_id, knob);
      lua_setfield(L, -2, spec_fields[i]);
    }
    lua_replace(L, 3);
  }
  setting_set_spec(L, o->run_id, s, 3);
  return 0;
}

static const char *check_field(lua_State *L, enum site s, int index)
{
  const char *name = luaL_checkstring(L, index);
  for (int i = 0; spec_fields[i]; i++)
    if (strcmp(spec_fields[i], name) == 0)
      return spec_fields[i];
  const char *near = str_nearest(name, spec_fields);
  vm_refuse(L, "site.%s has no field '%s'%s%s%s; ? \"site\" lists them", site_names[s], name,
            near ? ": did you mean '" : "", near ? near : "", near ? "'?" : "");
  return NULL;
}

static int site_index(lua_State *L)
{
  const struct site_object *o = luaL_checkudata(L, 1, SITE);
  char knob[64];
  snprintf(knob, sizeof knob, "site.%s.%s", site_names[o->site], check_field(L, o->site, 2));
  setting_push(L, o->run_id, knob);
  return 1;
}

static int site_newindex(lua_State *L)
{
  const struct site_object *o = luaL_checkudata(L, 1, SITE);
  char knob[64];
  snprintf(knob, sizeof knob, "site.%s.%s", site_names[o->site], check_field(L, o->site, 2));
  setting_set(L, o->run_id, knob, 3);
  return 0;
}

/* One line: "e4m1 sr tensor pow2". */
static void add_spec(lua_State *L, int run_id, enum site s, luaL_Buffer *b)
{
  static const char *const shown[] = {"format", "rounding", "granularity", "scale"};
  for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
    char knob[64];
    snprintf(knob, sizeof knob, "site.%s.%s", site_names[s], shown[i]);
    luaL_addstring(b, i ? " " : "");
    setting_push(L, run_id, knob);
    luaL_tolstring(L, -1, NULL);
    lua_remove(L, -2);
    luaL_addvalue(b);
  }
}

static int site_tostring(lua_State *L)
{
  const struct site_object *o = luaL_checkudata(L, 1, SITE);
  luaL_Buffer b;
  luaL_buffinit(L, &b);
  add_spec(L, o->run_id, o->site, &b);
  luaL_pushresult(&b);
  return 1;
}

static int sites_tostring(lua_State *L)
{
  const struct site_object *o = luaL_checkudata(L, 1, SITES);
  luaL_Buffer b;
  luaL_buffinit(L, &b);
  for (int s = 0; s < SITE_COUNT; s++) {
    char head[32];
    snprintf(head, sizeof head, "%s%-8s ", s ? "\n" : "", site_names[s]);
    luaL_addstring(&b, head);
    add_spec(L, o->run_id, (enum site)s, &b);
  }
  luaL_pushresult(&b);
  return 1;
}

/* pairs(): over a plain copy. Upvalue 1: the names. */
static int copy_pairs(lua_State *L)
{
  const char *const *names = lua_touserdata(L, lua_upvalueindex(1));
  lua_newtable(L);
  for (int i = 0; names[i]; i++) {
    lua_getfield(L, 1, names[i]);
    lua_setfield(L, -2, names[i]);
  }
  lua_getglobal(L, "next");
  lua_insert(L, -2);
  lua_pushnil(L);
  return 3;
}

static void open_type(lua_State *L, const char *type, const luaL_Reg *functions, const char *const *names)
{
  luaL_newmetatable(L, type);
  luaL_setfuncs(L, functions, 0);
  lua_pushlightuserdata(L, (void *)(uintptr_t)names);
  lua_pushcclosure(L, copy_pairs, 1);
  lua_setfield(L, -2, "__pairs");
  lua_pop(L, 1);
}

void bind_site_open(lua_State *L)
{
  static const luaL_Reg sites[] = {
      {"__index", sites_index}, {"__newindex", sites_newindex}, {"__tostring", sites_tostring}, {NULL, NULL}};
  static const luaL_Reg site[] = {
      {"__index", site_index}, {"__newindex", site_newindex}, {"__tostring", site_tostring}, {NULL, NULL}};
  open_type(L, SITES, sites, site_names);
  open_type(L, SITE, site, spec_fields);
}
