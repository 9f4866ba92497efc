/* The table of knobs, parsing, and the knobs that act on sites. */
#include "config.h"

#include "train/knob.h"

#include <stdio.h>
#include <string.h>

#include "tests/tap/tap.h"
#include "train/optimizer.h"
#include "train/recipe.h"
#include "train/schedule.h"

static struct knobs k;
static struct err e;

static int put(const char *name, const char *value)
{
  struct knob_ref ref;
  return knob_find(name, &ref, &e) || knobs_set(&k, &ref, value, &e) ? -1 : 0;
}

static const char *get(const char *name)
{
  static struct knob_value v[4];
  static int next;
  struct knob_ref ref;
  struct knob_value *out = &v[next++ % 4];
  if (knob_find(name, &ref, &e))
    tap_bail("%s", e.msg);
  knobs_get(&k, &ref, out);
  return out->text;
}

static void refused(const char *name, const char *value, const char *part)
{
  struct knobs before = k;
  ok(put(name, value) != 0, "%s = %s is refused", name, value);
  if (!ok(strstr(e.msg, part) != NULL, "with \"%s\" in the message", part))
    tap_note("%s", e.msg);
  ok(memcmp(&before, &k, sizeof k) == 0, "and nothing changed");
}

static void test_table(void)
{
  int good = 1;
  knobs_defaults(&k);
  for (int i = 0; i < KNOB_COUNT; i++) {
    const struct knob *t = &knob_table[i];
    struct knob_value v;
    struct knob_ref ref;
    int row = t->name && t->help && *t->help && t->help[strlen(t->help) - 1] != '.' &&
              (t->type != KNOB_ENUM || t->choices);
    row = row && ((t->type != KNOB_INT && t->type != KNOB_REAL) || t->min < t->max);
    row = row && knob_find(t->name, &ref, &e) == 0 && ref.id == (enum knob_id)i;
    row = row && knob_parse(&ref, t->default_text, &v, &e) == 0;
    for (int j = 0; j < i; j++)
      row = row && strcmp(knob_table[j].name, t->name) != 0;
    knobs_get(&k, &ref, &v);
    row = row && strcmp(v.text, t->default_text) == 0;
    if (!row)
      tap_note("row %s", t->name);
    good &= row;
  }
  ok(good, "every row has a name of its own, a help, a range, and a default that parses and holds");
  int n = 0;
  while (optimizer_names[n])
    ok(strcmp(optimizer_table[n].name, optimizer_names[n]) == 0, "optimizer %s is listed", optimizer_names[n]), n++;
  for (n = 0; schedule_names[n]; n++)
    ok(strcmp(schedule_table[n].name, schedule_names[n]) == 0, "schedule %s is listed", schedule_names[n]);
  for (n = 0; recipe_names[n]; n++)
    ok(put("recipe", recipe_names[n]) == 0 && strcmp(recipe_table[n].name, recipe_names[n]) == 0 &&
           strcmp(get("recipe"), recipe_names[n]) == 0,
       "recipe %s can be set", recipe_names[n]);
}

static void test_names(void)
{
  struct knob_ref ref;
  char name[64];
  ok(knob_find("lr-scaling", &ref, &e) == 0 && ref.id == KNOB_LR_SCALING, "'-' for '_'");
  ok(knob_find("site.gweight.random-bits", &ref, &e) == 0 && ref.id == KNOB_COUNT && ref.site == SITE_GWEIGHT &&
         strcmp(ref.field, "random_bits") == 0,
     "a site knob");
  knob_ref_name(&ref, name, sizeof name);
  is_str(name, "site.gweight.random_bits", "and its name");
  ok(knob_find("bitz", &ref, &e) != 0 && strstr(e.msg, "\"bits\""), "bitz names bits: %s", e.msg);
  ok(knob_find("xyzzyx", &ref, &e) != 0 && strstr(e.msg, "batch"), "a strange word gets the list");
  ok(knob_find("site.gwieght.format", &ref, &e) != 0 && strstr(e.msg, "gweight"), "a misspelt site: %s", e.msg);
  ok(knob_find("site.gweight.fromat", &ref, &e) != 0 && strstr(e.msg, "site.gweight.format"), "a misspelt field: %s",
     e.msg);
  ok(knob_find("site.gweight", &ref, &e) != 0 && strstr(e.msg, "rounding"), "a site without a field lists them: %s",
     e.msg);
  ok(knob_find("site.", &ref, NULL) != 0 && knob_find("", &ref, NULL) != 0, "nothing, without a message wanted");
}

static void test_values(void)
{
  knobs_defaults(&k);
  refused("batch", "0", "batch = 0: must be 1 to 1048576");
  refused("batch", "1048577", "must be 1 to 1048576");
  refused("batch", "12.5", "must be a whole number");
  refused("batch", "12x", "must be a whole number");
  refused("batch", "", "must be a whole number");
  refused("seed", "9007199254740993", "must be");
  refused("lr", "-0.1", "must be 0 to 1e+06");
  refused("lr", "nan", "must be a number");
  refused("lr", "inf", "must be a number");
  refused("lr", "0,1", "must be a number");
  refused("eps", "0", "above 0, at most 1");
  refused("nesterov", "perhaps", "true or false");
  refused("optimizer", "adam", "did you mean adamw");
  refused("optimizer", "bfgs", "sgd, adamw");
  refused("schedule", "cosin", "did you mean cosine");
  refused("rounding", "srr", "rounding = srr");
  refused("format", "e4m3fni", "format = e4m3fni");
  refused("recipe", "papr", "paper");
  refused("data", "", "must not be empty");
  ok(put("batch", "1e3") == 0 && knob_int(&k, KNOB_BATCH) == 1000 && strcmp(get("batch"), "1000") == 0, "1e3 is 1000");
  ok(put("batch", "128.0") == 0 && knob_int(&k, KNOB_BATCH) == 128, "128.0 is 128");
  ok(put("lr", "1e-3") == 0 && knob_real(&k, KNOB_LR) == 1e-3 && strcmp(get("lr"), "0.001") == 0, "1e-3 is 0.001");
  ok(put("nesterov", "on") == 0 && strcmp(get("nesterov"), "true") == 0, "on is true");
  ok(put("rounding", "stochastic") == 0 && strcmp(get("rounding"), "sr") == 0, "an alias gets the mode's own name");
}

/* What DESIGN says of bits, format and rounding. */
static void test_sites(void)
{
  static const struct {
    const char *bits, *format;
  } floats[] = {{"7", "e4m2"}, {"6", "e4m1"}, {"5", "e4m0"}, {"4", "e2m1"}, {"16", "bf16"}, {"8", "e4m3fin"}};
  static const char *const wide[] = {"weight", "bact", "bweight", "gweight", "gact"};
  char name[64], want[32];
  knobs_defaults(&k);
  for (int i = 0; i < 6; i++) {
    int all = put("bits", floats[i].bits) == 0;
    const struct format *f = format_find(floats[i].format, &e);
    struct spec plain = spec_default(f, ROUND_RNE);
    for (int s = 0; s < 5; s++) {
      snprintf(name, sizeof name, "site.%s.format", wide[s]);
      all = all && strcmp(get(name), f->name) == 0;
    }
    ok(all && k.sites.at[SITE_GACT].scale == plain.scale, "bits = %s: %s at five sites, with its scaling",
       floats[i].bits, floats[i].format);
    is_str(get("bits"), floats[i].bits, "bits tells");
    is_str(get("format"), floats[i].format, "format tells");
    ok(spec_is_identity(&k.sites.at[SITE_ACT]), "act stays fp32");
    is_str(get("rounding"), "sr", "rounding stays");
    is_str(get("site.weight.rounding"), "rne", "that of weight too");
  }
  refused("bits", "3", "16 (bf16), 8 (e4m3fin), 7 (e4m2), 6 (e4m1), 5 (e4m0), 4 (e2m1)");
  refused("bits", "32", "must be 2 to 16");

  ok(put("recipe", "int8") == 0, "recipe int8");
  for (int b = 2; b <= 16; b++) {
    char text[16];
    snprintf(text, sizeof text, "%d", b);
    snprintf(want, sizeof want, "int%d", b);
    ok(put("bits", text) == 0 && strcmp(get("site.gweight.format"), want) == 0 && strcmp(get("bits"), text) == 0 &&
           k.sites.at[SITE_GWEIGHT].scale == SCALE_ABSMAX,
       "bits = %d in the integers: %s", b, want);
  }
  is_str(get("site.act.format"), "int8", "act of int8 is not among what bits turns");
  ok(put("site.gweight.granularity", "row") == 0 && put("bits", "4") == 0, "rows, then 4 bits");
  is_str(get("site.gweight.granularity"), "row", "a scaling set by hand stays within the family");

  ok(put("recipe", "paper") == 0 && put("rounding", "rne") == 0, "paper, rne");
  is_str(get("site.gact.rounding"), "rne", "gact is rne");
  is_str(get("rounding"), "rne", "rounding says so");
  ok(put("site.gact.rounding", "sr") == 0, "one site back to sr");
  is_str(get("rounding"), "mixed", "rounding is mixed");
  ok(put("site.gweight.format", "e4m1") == 0, "one site to e4m1");
  is_str(get("bits"), "mixed", "bits is mixed");
  is_int(knob_int(&k, KNOB_BITS), 0, "as a number 0");
  ok(put("recipe", "paper") == 0, "the recipe again");
  is_str(get("bits"), "8", "undoes all of it");
  is_str(get("rounding"), "sr", "undoes all of it");

  ok(put("site.bact.format", "fp32") == 0 && put("bits", "4") == 0, "bact at fp32, then bits");
  is_str(get("site.bact.format"), "fp32", "a site that is not quantized stays so");
  is_str(get("bits"), "4", "and does not count");

  ok(put("recipe", "fp8") == 0 && put("bits", "8") == 0, "fp8 has 8 bits already");
  is_str(get("site.gweight.format"), "e5m2", "so its formats stay");

  ok(put("recipe", "fp32") == 0, "fp32");
  is_str(get("bits"), "32", "has 32 bits");
  refused("bits", "4", "no site that it acts on is quantized");
  refused("format", "e4m1", "no site that it acts on is quantized");
  refused("rounding", "sr", "no site that it acts on is quantized");
  ok(put("recipe", "paper") == 0, "paper");
  refused("format", "fp32", "recipe = fp32");
  refused("format", "mxfp999", "mxfp999");
}

static void test_no_silence(void)
{
  knobs_defaults(&k);
  refused("site.comm.format", "bf16", "no effect");
  refused("site.bweight.format", "e4m1", "share_weight = false");
  ok(put("site.weight.format", "e4m1") == 0, "weight alone");
  is_str(get("site.bweight.format"), "e4m1", "takes bweight along while they share a draw");
  ok(put("share_weight", "false") == 0 && put("site.bweight.format", "e4m2") == 0, "apart when not");
  is_str(get("site.weight.format"), "e4m1", "each has its own");
  ok(put("share_act", "true") == 0, "share_act");
  refused("site.bact.format", "e4m1", "share_act = false");
  is_str(get("site.bact.format"), get("site.act.format"), "what shares a draw says what holds: act's spec");
  ok(put("share_weight", "true") == 0, "share_weight again");
  is_str(get("site.bweight.format"), "e4m1", "bweight says weight's spec");
  ok(put("site.update.format", "bf16") == 0 && put("site.state.format", "bf16") == 0, "update and state do something");
  refused("site.gact.random_bits", "40", "site.gact.random_bits = 40");
  refused("site.gact.random_bits", "12", "random_bits = 12");
  refused("site.gact.scale", "rceil", "block formats");
  refused("site.gact.rounding", "up", "site.gact.rounding = up");
}

static const char *const *choices(const char *name)
{
  struct knob_ref ref;
  if (knob_find(name, &ref, &e))
    tap_bail("%s", e.msg);
  return knob_choices(&ref);
}

static void test_choices(void)
{
  int formats = 0;
  for (const char *const *c = choices("format"); *c; c++)
    formats += strcmp(*c, "e4m1") == 0 || strcmp(*c, "int8") == 0;
  ok(formats == 2, "choices of format are those of the table");
  is_str(choices("site.act.granularity")[0], "tensor", "choices of a site's granularity");
  is_str(choices("nesterov")[0], "true", "choices of a truth value");
  ok(!choices("batch"), "none of a number");
}

int main(void)
{
  test_table();
  test_names();
  test_values();
  test_sites();
  test_no_silence();
  test_choices();
  return tap_done();
}
