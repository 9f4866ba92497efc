/* Looking words up: sites, layer kinds, losses, options. */
#include "config.h"

#include "model/names.h"

#include <string.h>

#include "base/str.h"

int names_find(const char *what, const char *name, const char *const *names, struct err *e)
{
  struct str all = {0};
  for (int i = 0; names[i]; i++) {
    if (strcmp(name, names[i]) == 0) {
      str_done(&all);
      return i;
    }
    str_addf(&all, "%s%s", i ? " " : "", names[i]);
  }
  const char *near = str_nearest(name, names);
  if (near)
    err_set(e, "no %s \"%s\": did you mean \"%s\"? There are: %s", what, name, near, all.s);
  else
    err_set(e, "no %s \"%s\"; there are: %s", what, name, all.s ? all.s : "none");
  str_done(&all);
  return -1;
}
