/* Recipes: named sets of specs for all sites, one table row each. */
#ifndef TRAIN_RECIPE_H
#define TRAIN_RECIPE_H

#include "model/site.h"

struct recipe {
  const char *name;
  const char *help;
  /* Format and rounding of each site; a site that is not named is fp32. */
  struct {
    const char *format, *rounding;
  } at[SITE_COUNT];
};
extern const struct recipe recipe_table[]; /* ends with a row without a name */
extern const char *const recipe_names[];   /* NULL-terminated */

/* Fills all sites. */
int recipe_apply(const char *name, struct site_specs *out, struct err *e) ERR_MUST_CHECK;

/* bits: width of those of the sites weight bact bweight gweight gact that are quantized, within their family (DESIGN,
 * Semantics); a site that has that width already keeps its format, and a scaling that was set by hand stays. format: of
 * the same sites. rounding: of the backward SR sites bact gweight gact where they are quantized. A site at fp32 is not
 * quantized and stays so. On failure *s is unchanged. */
int recipe_set_bits(struct site_specs *s, int bits, struct err *e) ERR_MUST_CHECK;
int recipe_set_format(struct site_specs *s, const char *format, struct err *e) ERR_MUST_CHECK;
int recipe_set_rounding(struct site_specs *s, const char *rounding, struct err *e) ERR_MUST_CHECK;
/* What holds now; 0 or "mixed" where the sites differ; 32, "fp32", "rne" where none is quantized. */
int recipe_bits(const struct site_specs *s);
const char *recipe_format(const struct site_specs *s);
const char *recipe_rounding(const struct site_specs *s);

#endif
