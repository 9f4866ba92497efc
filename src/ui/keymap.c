/* The table of keys. */
#include "config.h"

#include "ui/keymap.h"

#include <stddef.h>

const struct keymap_row keymap_table[] = {
#define KEY(where, code, name, action, argument, hint, help) {where, code, name, action, argument, hint, help},
#include "ui/keymap.def"
#undef KEY
    {0},
};

const struct keymap_row *keymap_find(int where, uint32_t code)
{
  for (const struct keymap_row *k = keymap_table; k->name; k++)
    if ((k->where & where) && k->code == code && k->action != ACTION_NONE)
      return k;
  return NULL;
}
