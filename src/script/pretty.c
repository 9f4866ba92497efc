/* Values as the prompt prints them: strings quoted, tables on one line where they fit, else one entry a line. */
#include "config.h"

#include "script/vm_impl.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define MAX_DEPTH 4
#define MAX_ENTRIES 100
#define LINE_WIDTH 76

static void add_value(lua_State *L, int index, int depth, int indent, struct str *out);

static bool is_identifier(const char *s)
{
  if (!(isalpha((unsigned char)*s) || *s == '_'))
    return false;
  for (; *s; s++)
    if (!(isalnum((unsigned char)*s) || *s == '_'))
      return false;
  return true;
}

/* A key to sort by: numbers first, in order, then names, then all others. */
struct key {
  int rank; /* 0 number, 1 string, 2 other */
  double number;
  const char *name; /* of a string: lives in the table */
  int ref;          /* index in the list of keys on the stack */
};

static int compare_keys(const void *a, const void *b)
{
  const struct key *x = a, *y = b;
  if (x->rank != y->rank)
    return x->rank - y->rank;
  if (x->rank == 0)
    return (x->number > y->number) - (x->number < y->number);
  return x->rank == 1 ? strcmp(x->name, y->name) : x->ref - y->ref;
}

static bool has_tostring(lua_State *L, int index)
{
  if (luaL_getmetafield(L, index, "__tostring") == LUA_TNIL)
    return false;
  lua_pop(L, 1);
  return true;
}

static int to_string(lua_State *L)
{
  luaL_tolstring(L, 1, NULL);
  return 1;
}

static void add_string(const char *s, size_t n, struct str *out)
{
  str_addc(out, '"');
  for (size_t i = 0; i < n; i++) {
    unsigned char c = (unsigned char)s[i];
    if (c == '"' || c == '\\')
      str_addf(out, "\\%c", c);
    else if (c == '\n')
      str_add(out, "\\n");
    else if (c < 32 || c == 127)
      str_addf(out, "\\%03d", c);
    else
      str_addc(out, (char)c);
  }
  str_addc(out, '"');
}

static void add_key(lua_State *L, int index, const struct key *k, int depth, struct str *out)
{
  if (k->rank == 1 && is_identifier(k->name)) {
    str_add(out, k->name);
  } else {
    str_addc(out, '[');
    add_value(L, index, depth, 0, out);
    str_addc(out, ']');
  }
  str_add(out, " = ");
}

/* Keys of the table at `t` that are not in its array part 1..n, into the table that is pushed. */
static size_t gather_keys(lua_State *L, int t, lua_Integer n, struct key **keys)
{
  size_t n_keys = 0, cap = 0;
  *keys = NULL;
  lua_newtable(L);
  int list = lua_gettop(L);
  lua_pushnil(L);
  while (lua_next(L, t)) {
    lua_pop(L, 1);
    if (lua_isinteger(L, -1) && lua_tointeger(L, -1) >= 1 && lua_tointeger(L, -1) <= n)
      continue;
    if (n_keys == cap) {
      cap = cap ? 2 * cap : 16;
      *keys = mem_realloc(*keys, cap * sizeof **keys);
    }
    struct key *k = &(*keys)[n_keys];
    int type = lua_type(L, -1);
    *k = (struct key){.rank = type == LUA_TNUMBER ? 0 : type == LUA_TSTRING ? 1 : 2, .ref = (int)++n_keys};
    if (type == LUA_TNUMBER)
      k->number = lua_tonumber(L, -1);
    else if (type == LUA_TSTRING)
      k->name = lua_tostring(L, -1);
    lua_pushvalue(L, -1);
    lua_rawseti(L, list, k->ref);
  }
  if (n_keys)
    qsort(*keys, n_keys, sizeof **keys, compare_keys);
  return n_keys;
}

/* Joins entries "a", "b" in one line or in many. */
static void add_entries(const struct str *entry, size_t n, size_t n_left, int indent, struct str *out)
{
  size_t width = (size_t)indent + 4;
  bool many = false;
  for (size_t i = 0; i < n; i++) {
    width += entry[i].n + 2;
    many = many || strchr(entry[i].s, '\n');
  }
  many = many || width > LINE_WIDTH;
  str_add(out, many ? "{" : "{ ");
  for (size_t i = 0; i < n; i++) {
    if (many)
      str_addf(out, "\n%*s", indent + 2, "");
    str_add(out, entry[i].s);
    if (many || i + 1 < n || n_left)
      str_add(out, many ? "," : ", ");
  }
  if (n_left)
    str_addf(out, many ? "\n%*s... and %zu more" : "%.*s... and %zu more", many ? indent + 2 : 0, "", n_left);
  if (many)
    str_addf(out, "\n%*s}", indent, "");
  else
    str_add(out, " }");
}

static void add_table(lua_State *L, int t, int depth, int indent, struct str *out)
{
  luaL_checkstack(L, 12, NULL);
  lua_Integer n_array = (lua_Integer)lua_rawlen(L, t);
  struct key *keys;
  size_t n_keys = gather_keys(L, t, n_array, &keys);
  int list = lua_gettop(L);
  size_t n_all = (size_t)n_array + n_keys, n = n_all < MAX_ENTRIES ? n_all : MAX_ENTRIES;
  struct str *entry = mem_alloc((n + 1) * sizeof *entry);
  for (size_t i = 0; i < n; i++) {
    if (i < (size_t)n_array) {
      lua_rawgeti(L, t, (lua_Integer)i + 1);
    } else {
      const struct key *k = &keys[i - (size_t)n_array];
      lua_rawgeti(L, list, k->ref);
      add_key(L, lua_gettop(L), k, depth + 1, &entry[i]);
      lua_rawget(L, t);
    }
    add_value(L, lua_gettop(L), depth + 1, indent + 2, &entry[i]);
    lua_pop(L, 1);
  }
  if (n == 0)
    str_add(out, "{}");
  else
    add_entries(entry, n, n_all - n, indent, out);
  for (size_t i = 0; i < n; i++)
    str_done(&entry[i]);
  mem_free(entry);
  mem_free(keys);
  lua_pop(L, 1);
}

static void add_value(lua_State *L, int index, int depth, int indent, struct str *out)
{
  size_t n;
  if (lua_type(L, index) == LUA_TSTRING) {
    const char *s = lua_tolstring(L, index, &n);
    add_string(s, n, out);
  } else if (depth > 0 && lua_type(L, index) == LUA_TNUMBER && !lua_isinteger(L, index)) {
    str_addf(out, "%.6g", (double)lua_tonumber(L, index)); /* alone it has all its digits */
  } else if (lua_istable(L, index) && !has_tostring(L, index)) {
    if (depth >= MAX_DEPTH)
      str_add(out, "{...}");
    else
      add_table(L, index, depth, indent, out);
  } else {
    lua_pushcfunction(L, to_string);
    lua_pushvalue(L, index);
    bool failed = lua_pcall(L, 1, 1, 0) != LUA_OK; /* an error must not unwind through our strings */
    const char *s = lua_tolstring(L, -1, &n);
    str_add(out, failed ? "<error in __tostring: " : "");
    str_addn(out, s ? s : "?", s ? n : 1);
    str_add(out, failed ? ">" : "");
    lua_pop(L, 1);
  }
}

void pretty_add(lua_State *L, int index, struct str *out)
{
  add_value(L, lua_absindex(L, index), 0, 0, out);
}
