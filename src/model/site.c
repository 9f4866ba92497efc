/* The table of quantization sites. */
#include "config.h"

#include "model/site.h"

#include "model/names.h"

const char *const site_names[SITE_COUNT + 1] = {
#define SITE(id, name, phase, help) name,
#include "model/site.def"
#undef SITE
    NULL};

static const char *const site_helps[SITE_COUNT] = {
#define SITE(id, name, phase, help) help,
#include "model/site.def"
#undef SITE
};

const char *site_help(enum site s)
{
  return site_helps[s];
}

int site_find(const char *name, enum site *out, struct err *e)
{
  int i = names_find("site", name, site_names, e);
  if (i < 0)
    return -1;
  *out = (enum site)i;
  return 0;
}
