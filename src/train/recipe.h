/* Recipes: named sets of specs for all sites, one table row each. */
#ifndef TRAIN_RECIPE_H
#define TRAIN_RECIPE_H

#include "model/site.h"

struct recipe {
  const char *name;
  const char *help;
};
extern const struct recipe recipe_table[];
extern const char *const recipe_names[]; /* NULL-terminated */

/* Fills all sites. */
int recipe_apply(const char *name, struct site_specs *out, struct err *e) ERR_MUST_CHECK;

/* bits: width of the sites weight bact bweight gweight gact that are quantized, within their family (DESIGN,
 * Semantics). format: of all of them. rounding: of the backward SR sites bact gweight gact. */
int recipe_set_bits(struct site_specs *s, int bits, struct err *e) ERR_MUST_CHECK;
int recipe_set_format(struct site_specs *s, const char *format, struct err *e) ERR_MUST_CHECK;
int recipe_set_rounding(struct site_specs *s, const char *rounding, struct err *e) ERR_MUST_CHECK;
/* What holds now; 0 or "mixed" where the sites differ. */
int recipe_bits(const struct site_specs *s);
const char *recipe_format(const struct site_specs *s);
const char *recipe_rounding(const struct site_specs *s);

#endif
