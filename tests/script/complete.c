/* Completion: words of the tables, of Lua's globals, and values of knobs. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "../tap/tap.h"
#include "base/str.h"
#include "fixture.h"

static struct fixture f;
static struct vm *second; /* of the lock's test; freed after the engine, whose hook it has */

static void join(void *ctx, const char *word)
{
  struct str *s = ctx;
  str_addf(s, "%s%s", s->n ? " " : "", word);
}

/* All completions of the line, joined by spaces. */
static const char *words(const char *line)
{
  static struct str s;
  str_clear(&s);
  vm_complete(f.vm, line, strlen(line), join, &s);
  return s.n ? s.s : "";
}

static bool has(const char *line, const char *word)
{
  char padded[8192], want[128];
  snprintf(padded, sizeof padded, " %s ", words(line));
  snprintf(want, sizeof want, " %s ", word);
  return strstr(padded, want) != NULL;
}

static void test_names(void)
{
  is_str(words("round"), "rounding", "a knob");
  is_str(words("x = 3 + weight_"), "weight_decay", "anywhere in the line");
  is_str(words("run.weight_"), "run.weight_decay", "a knob as a field");
  is_str(words("run.eval_a"), "run.eval_accuracy", "a metric");
  is_str(words("run.var"), "run.var_a run.var_ag run.var_data run.var_g run.var_quant run.variance", "sorted");
  is_str(words("run:re"), "run:resume run:rewind", "methods");
  is_str(words("run.rewi"), "", "are not fields");
  is_str(words("run.site.gw"), "run.site.gweight", "sites");
  is_str(words("site.gweight.rou"), "site.gweight.rounding", "their fields");
  is_str(words("bd.for"), "bd.formats", "the module");
  is_str(words("string.gm"), "string.gmatch", "Lua's libraries");
  is_str(words("qui"), "quit", "functions of the prompt");
  is_str(words("funct"), "function", "Lua's words");
  is_str(words("zzz"), "", "nothing where nothing is");
  is_str(words("1."), "", "a number is no path");
  ok(has("", "bits") && has("", "print") && has("", "run"), "all of them for an empty line");
}

static void test_values(void)
{
  is_str(words("rounding = \"rn"), "rna rne rne_code", "values of a knob");
  ok(has("recipe = '", "paper") && has("recipe = '", "fp32"), "recipes");
  ok(has("run.rounding=\"s", "sr"), "of a field");
  ok(has("bd.run { recipe = \"p", "paper"), "in a table");
  ok(has("bd.run { data = \"sp", "spirals"), "data sets");
  ok(has("run.site.gweight.rounding = \"s", "sr"), "of a site");
  is_str(words("x == \"rn"), "", "not in a comparison");
  is_str(words("x = \"a\" .. round"), "rounding", "after a closed string");
  ok(has("help(\"gw", "gweight"), "topics of help");
  is_str(words("? gw"), "gweight", "after the question mark");
}

static void test_lua_names(void)
{
  eval(&f, "my_table = { alpha = 1, beta = function() end, ['not a name'] = 2 }; my_run = run");
  is_str(words("my_t"), "my_table", "a global");
  is_str(words("my_table."), "my_table.alpha my_table.beta", "fields of a table");
  is_str(words("my_table:"), "my_table:beta", "methods of it");
  is_str(words("my_run.weight_"), "my_run.weight_decay", "a variable that holds a run");
  is_str(words("my_run:rew"), "my_run:rewind", "and its methods");
  eval(&f, "object = setmetatable({ own = 1 }, { __index = { inherited = 2 } })");
  is_str(words("object."), "object.inherited object.own", "through a metatable");
  eval(&f, "trap = setmetatable({}, { __index = function() error('no') end })");
  is_str(words("trap.x.y"), "", "no function is called");
}

static void complete_inside(void *ctx, const char *text)
{
  (void)text;
  struct str *s = ctx;
  vm_complete(f.vm, "round", 5, join, s);
}

/* While Lua runs, here: within print(), the lock is taken. It must answer from the tables and not wait. */
static void test_locked(void)
{
  struct err e;
  struct str got = {0};
  struct vm *other = f.vm;
  struct vm_config c = {.engine = f.engine, .interactive = true, .print = complete_inside, .ctx = &got};
  f.vm = vm_create(&c, &e);
  if (!f.vm)
    tap_bail("vm: %s", e.msg);
  vm_eval(f.vm, "round_global = 1; print('x')");
  is_str(got.s, "rounding", "a taken lock: the tables' words, at once");
  str_clear(&got);
  vm_complete(f.vm, "round", 5, join, &got);
  is_str(got.s, "round_global rounding", "a free one: all");
  str_done(&got);
  second = f.vm;
  f.vm = other;
}

int main(void)
{
  fixture_begin(&f, true);
  fixture_run(&f);
  test_names();
  test_values();
  test_lua_names();
  test_locked();
  fixture_end(&f);
  vm_free(second);
  return tap_done();
}
