/* help(name): one text for each thing that has a name, from the tables that define it. */
#include "config.h"

#include "script/vm_impl.h"

#include <stdio.h>
#include <string.h>

#include "numeric/format.h"
#include "train/recipe.h"

/* A source of topics: visits its names; writes the text of one. */
struct topic_source {
  const char *title;
  const char *(*name)(int i); /* NULL: no more */
  void (*write)(lua_State *L, int i, struct str *out);
};

static const char *knob_name(int i)
{
  return i < KNOB_COUNT ? knob_table[i].name : NULL;
}

static void write_range(const struct knob *k, struct str *out)
{
  char lo[32], hi[32];
  str_addf(out, "  %s%s to %s%s%s\n", k->min_open ? "above " : "", str_double(k->min, lo), str_double(k->max, hi),
           k->unit && *k->unit ? " " : "", k->unit ? k->unit : "");
}

static void write_choices(const char *const *choices, struct str *out)
{
  str_add(out, " ");
  for (int c = 0; choices[c]; c++)
    str_addf(out, " %s", choices[c]);
  str_addc(out, '\n');
}

static void write_knob(lua_State *L, int i, struct str *out)
{
  const struct knob *k = &knob_table[i];
  str_addf(out, "%s: %s\n", k->name, k->help);
  if (k->type == KNOB_INT || k->type == KNOB_REAL)
    write_range(k, out);
  const char *const *choices = knob_choices(&(struct knob_ref){.id = (enum knob_id)i});
  if (choices)
    write_choices(choices, out);
  str_addf(out, "  default %s; %s\n", *k->default_text ? k->default_text : "none",
           k->when == KNOB_AT_STEP ? "takes effect between two steps" : "fixed once a run is made");
  int current = atomic_load(&vm_of(L)->current_run);
  if (current) {
    setting_push(L, current, k->name);
    str_addf(out, "  now %s\n", luaL_tolstring(L, -1, NULL));
    lua_pop(L, 2);
  }
}

static const char *metric_name(int i)
{
  return i < METRIC_COUNT ? metric_table[i].name : NULL;
}
static void write_metric(lua_State *L, int i, struct str *out)
{
  (void)L;
  const struct metric_info *m = &metric_table[i];
  str_addf(out, "run.%s: %s%s%s\n", m->name, m->help, m->unit && *m->unit ? ", in " : "", m->unit ? m->unit : "");
}

static const char *field_name(int i)
{
  return field_table[i].name;
}
static void write_field(lua_State *L, int i, struct str *out)
{
  (void)L;
  str_addf(out, "run.%s: %s\n", field_table[i].name, field_table[i].help);
}

static const char *method_name(int i)
{
  return method_table[i].name;
}
static void write_method(lua_State *L, int i, struct str *out)
{
  (void)L;
  str_addf(out, "run:%s(%s): %s\n", method_table[i].name, method_table[i].args, method_table[i].help);
}

static const char *module_name(int i)
{
  return module_table[i].name;
}
static void write_module(lua_State *L, int i, struct str *out)
{
  (void)L;
  str_addf(out, "bd.%s(%s): %s\n", module_table[i].name, module_table[i].args, module_table[i].help);
}

static const char *prompt_name(int i)
{
  return prompt_table[i].name;
}
static void write_prompt(lua_State *L, int i, struct str *out)
{
  (void)L;
  str_addf(out, "%s(%s): %s\n", prompt_table[i].name, prompt_table[i].args, prompt_table[i].help);
}

static const char *recipe_name(int i)
{
  return recipe_table[i].name;
}
static void write_recipe(lua_State *L, int i, struct str *out)
{
  (void)L;
  struct site_specs s;
  struct err e;
  str_addf(out, "recipe %s: %s\n", recipe_table[i].name, recipe_table[i].help);
  if (recipe_apply(recipe_table[i].name, &s, &e) != 0)
    return;
  for (int k = 0; k < SITE_COUNT; k++)
    if (!spec_is_identity(&s.at[k]))
      str_addf(out, "  %-8s %s %s, scale %s\n", site_names[k], s.at[k].format->name, rounding_name(s.at[k].rounding),
               scale_rule_names[s.at[k].scale]);
}

static const char *site_name(int i)
{
  return site_names[i];
}
static void write_site(lua_State *L, int i, struct str *out)
{
  (void)L;
  str_addf(out, "site %s: %s\n", site_names[i], site_help((enum site)i));
  str_addf(out, "  run.site.%s has the fields", site_names[i]);
  for (int f = 0; spec_fields[f]; f++)
    str_addf(out, "%s %s", f ? "," : "", spec_fields[f]);
  str_addc(out, '\n');
}

static const char *rounding_topic(int i)
{
  return i < ROUND_COUNT ? rounding_name((enum rounding)i) : NULL;
}
static void write_rounding(lua_State *L, int i, struct str *out)
{
  (void)L;
  str_addf(out, "rounding %s: %s\n", rounding_name((enum rounding)i), rounding_help((enum rounding)i));
}

static const char *format_topic(int i)
{
  return (size_t)i < format_count() ? format_at((size_t)i)->name : NULL;
}
static void write_format(lua_State *L, int i, struct str *out)
{
  (void)L;
  const struct format *f = format_at((size_t)i);
  char a[32], b[32], c[32];
  str_addf(out, "format %s: %s, %d bits", f->name, format_family_name(f->family), f->total_bits);
  if (f->family == FORMAT_FLOAT)
    str_addf(out, ": 1 sign, %d exponent, %d fraction\n  largest %s, smallest normal %s, smallest %s; %s, %s",
             f->exp_bits, f->frac_bits, str_double(f->max_finite, a), str_double(f->min_normal, b),
             str_double(f->frac_bits ? f->min_subnormal : f->min_normal, c), f->has_inf ? "Inf" : "no Inf",
             f->has_nan ? "NaN" : "no NaN");
  else if (f->family == FORMAT_BLOCK && f->element)
    str_addf(out, ": blocks of %d %s", f->block, f->element->name);
  else
    str_addf(out, ": codes %d to %d", f->code_min, f->code_max);
  if (f->family == FORMAT_FIXED)
    str_addf(out, ", step 2^-%d", f->fixed_frac_bits);
  str_addc(out, '\n');
}

static const struct topic_source source_table[] = {
    {"knobs", knob_name, write_knob},
    {"metrics", metric_name, write_metric},
    {"fields of a run", field_name, write_field},
    {"methods of a run", method_name, write_method},
    {"module bd", module_name, write_module},
    {"functions", prompt_name, write_prompt},
    {"recipes", recipe_name, write_recipe},
    {"sites", site_name, write_site},
    {"rounding modes", rounding_topic, write_rounding},
    {"formats", format_topic, write_format},
};
#define N_SOURCES (sizeof source_table / sizeof *source_table)

static void write_names(const struct topic_source *s, struct str *out)
{
  size_t column = 0;
  str_addf(out, "%s\n", s->title);
  for (int i = 0; s->name(i); i++) {
    size_t n = strlen(s->name(i)) + 1;
    if (i == 0 || column + n > 76) {
      str_add(out, i ? "\n " : " ");
      column = 1;
    }
    str_addf(out, " %s", s->name(i));
    column += n;
  }
  str_addc(out, '\n');
}

static void write_overview(struct str *out)
{
  str_add(out, "help \"bits\" or ? bits tells about one of these; at the prompt knobs are plain names: bits = 4\n");
  for (size_t s = 0; s < N_SOURCES; s++)
    write_names(&source_table[s], out);
}

/* All members of a run: what help "run" tells after the module's function. */
static void write_run(lua_State *L, struct str *out)
{
  for (int i = 0; field_table[i].name; i++)
    write_field(L, i, out);
  for (int i = 0; i < METRIC_COUNT; i++)
    write_metric(L, i, out);
  for (int i = 0; method_table[i].name; i++)
    write_method(L, i, out);
}

/* "run.site.gweight", "run:train", "bd.run": the last name counts. */
static const char *last_part(const char *topic)
{
  const char *last = topic;
  for (const char *c = topic; *c; c++)
    if ((*c == '.' || *c == ':') && c[1])
      last = c + 1;
  return last;
}

static bool write_topic(lua_State *L, const char *topic, struct str *out)
{
  for (size_t s = 0; s < N_SOURCES; s++)
    for (int i = 0; source_table[s].name(i); i++)
      if (strcmp(source_table[s].name(i), topic) == 0)
        source_table[s].write(L, i, out);
  if (strcmp(topic, "run") == 0)
    write_run(L, out);
  if (strcmp(topic, "site") == 0) {
    for (int s = 0; s < SITE_COUNT; s++)
      str_addf(out, "  %-8s %s\n", site_names[s], site_help((enum site)s));
    write_site(L, SITE_GWEIGHT, out);
  }
  return out->s != NULL;
}

static const char *nearest_topic(const char *topic)
{
  const char *best = NULL;
  for (size_t s = 0; s < N_SOURCES; s++)
    for (int i = 0; source_table[s].name(i); i++) {
      const char *near = str_nearest(topic, (const char *const[]){source_table[s].name(i), NULL});
      if (near && (!best || str_distance(topic, near) < str_distance(topic, best)))
        best = near;
    }
  return best;
}

void help_each_topic(void (*fn)(void *ctx, const char *topic), void *ctx)
{
  for (size_t s = 0; s < N_SOURCES; s++)
    for (int i = 0; source_table[s].name(i); i++)
      fn(ctx, source_table[s].name(i));
}

int help_print(lua_State *L)
{
  const char *topic = luaL_optstring(L, 1, "");
  struct str out = {0};
  struct err e;
  const struct format *by_rule;
  if (!*topic) {
    write_overview(&out);
  } else if (!write_topic(L, last_part(topic), &out)) {
    by_rule = format_find(topic, &e); /* int5, e3m4fn: formats that no table lists */
    if (by_rule)
      str_addf(&out, "format %s: %s, %d bits\n", by_rule->name, format_family_name(by_rule->family),
               by_rule->total_bits);
  }
  if (!out.s) {
    const char *near = nearest_topic(topic);
    return vm_refuse(L, "no help on '%s'%s%s%s; help() lists all topics", topic, near ? ": did you mean '" : "",
                     near ? near : "", near ? "'?" : "");
  }
  vm_print(vm_of(L), out.s);
  str_done(&out);
  return 0;
}
