/* The values of all knobs of a run. recipe, bits, format, rounding and the share knobs have no value of their own: they
 * act on the specs of the sites and are read off them. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "train/knob.h"
#include "train/recipe.h"

static int set_recipe(struct knobs *k, const struct knob_value *v, struct err *e)
{
  return recipe_apply(v->text, &k->sites, e);
}

static int set_bits(struct knobs *k, const struct knob_value *v, struct err *e)
{
  return recipe_set_bits(&k->sites, (int)v->i, e);
}

static int set_format(struct knobs *k, const struct knob_value *v, struct err *e)
{
  return recipe_set_format(&k->sites, v->text, e);
}

static int set_rounding(struct knobs *k, const struct knob_value *v, struct err *e)
{
  return recipe_set_rounding(&k->sites, v->text, e);
}

/* A site that takes another's draw says what holds: its spec becomes the other's. */
static int set_share_act(struct knobs *k, const struct knob_value *v, struct err *e)
{
  (void)e;
  k->sites.share_act = v->b;
  if (v->b)
    k->sites.at[SITE_BACT] = k->sites.at[SITE_ACT];
  return 0;
}

static int set_share_weight(struct knobs *k, const struct knob_value *v, struct err *e)
{
  (void)e;
  k->sites.share_weight = v->b;
  if (v->b)
    k->sites.at[SITE_BWEIGHT] = k->sites.at[SITE_WEIGHT];
  return 0;
}

static int (*const setters[KNOB_COUNT])(struct knobs *k, const struct knob_value *v, struct err *e) = {
    [KNOB_RECIPE] = set_recipe,     [KNOB_BITS] = set_bits,           [KNOB_FORMAT] = set_format,
    [KNOB_ROUNDING] = set_rounding, [KNOB_SHARE_ACT] = set_share_act, [KNOB_SHARE_WEIGHT] = set_share_weight,
};

/* Writes what the sites say into the values of the derived knobs. */
void knobs_refresh(struct knobs *k)
{
  struct knob_value *bits = &k->at[KNOB_BITS];
  bits->i = recipe_bits(&k->sites);
  if (bits->i)
    snprintf(bits->text, sizeof bits->text, "%d", (int)bits->i);
  else
    str_copy(bits->text, sizeof bits->text, "mixed");
  str_copy(k->at[KNOB_FORMAT].text, sizeof k->at[KNOB_FORMAT].text, recipe_format(&k->sites));
  str_copy(k->at[KNOB_ROUNDING].text, sizeof k->at[KNOB_ROUNDING].text, recipe_rounding(&k->sites));
  const struct {
    enum knob_id id;
    bool on;
  } share[] = {{KNOB_SHARE_ACT, k->sites.share_act}, {KNOB_SHARE_WEIGHT, k->sites.share_weight}};
  for (int i = 0; i < 2; i++) {
    k->at[share[i].id].b = share[i].on;
    str_copy(k->at[share[i].id].text, sizeof k->at[share[i].id].text, share[i].on ? "true" : "false");
  }
}

void knobs_defaults(struct knobs *k)
{
  struct err e;
  memset(k, 0, sizeof *k);
  for (int i = 0; i < KNOB_COUNT; i++)
    if (knob_parse(&(struct knob_ref){.id = (enum knob_id)i}, knob_table[i].default_text, &k->at[i], &e))
      die("default of a knob: %s", e.msg);
  if (recipe_apply(knob_table[KNOB_RECIPE].default_text, &k->sites, &e))
    die("default recipe: %s", e.msg);
  knobs_refresh(k);
}

/* Nothing is ignored in silence: a spec that would have no effect is refused. */
static int check_site(const struct site_specs *s, enum site at, struct err *e)
{
  const struct spec *spec = &s->at[at];
  if (at == SITE_COMM && !spec_is_identity(spec))
    return err_set(e, "it has no effect in a run of one process: there is no gradient to send");
  if (at == SITE_BWEIGHT && s->share_weight && !spec_equal(spec, &s->at[SITE_WEIGHT]))
    return err_set(e, "it has no effect while share_weight is true: bweight takes weight's draw; set share_weight = "
                      "false first");
  if (at == SITE_BACT && s->share_act && !spec_equal(spec, &s->at[SITE_ACT]))
    return err_set(e, "it has no effect while share_act is true: bact takes act's draw; set share_act = false first");
  return 0;
}

static int set_site(struct knobs *k, const struct knob_ref *ref, const struct knob_value *v, struct err *e)
{
  char name[64];
  struct site_specs new = k->sites;
  knob_ref_name(ref, name, sizeof name);
  if (spec_set(&new.at[ref->site], ref->field, v->text, e) || spec_check(&new.at[ref->site], e) ||
      check_site(&new, ref->site, e))
    return err_prefix(e, "%s = %.100s", name, v->text);
  if (ref->site == SITE_WEIGHT && new.share_weight)
    new.at[SITE_BWEIGHT] = new.at[SITE_WEIGHT]; /* what shares its draw says what holds */
  if (ref->site == SITE_ACT && new.share_act)
    new.at[SITE_BACT] = new.at[SITE_ACT];
  k->sites = new;
  knobs_refresh(k);
  return 0;
}

int knobs_set(struct knobs *k, const struct knob_ref *ref, const char *text, struct err *e)
{
  struct knob_value v;
  if (knob_parse(ref, text, &v, e))
    return -1;
  if (ref->id == KNOB_COUNT)
    return set_site(k, ref, &v, e);
  if (setters[ref->id]) {
    if (setters[ref->id](k, &v, e))
      return -1;
    k->at[ref->id] = v;
    knobs_refresh(k);
    return 0;
  }
  k->at[ref->id] = v;
  return 0;
}

void knobs_get(const struct knobs *k, const struct knob_ref *ref, struct knob_value *out)
{
  if (ref->id < KNOB_COUNT) {
    *out = k->at[ref->id];
    return;
  }
  char text[sizeof out->text];
  if (spec_get(&k->sites.at[ref->site], ref->field, text, sizeof text))
    die("spec field \"%s\" has no value", ref->field);
  knob_site_value(ref->field, text, out);
}
