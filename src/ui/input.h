/* Bytes from the terminal made into keys: characters, named keys with modifiers, pasted text. */
#ifndef UI_INPUT_H
#define UI_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

enum { /* beyond Unicode; combined with KEY_ modifiers by | */
       KEY_NONE = 0x200000,
       KEY_UP,
       KEY_DOWN,
       KEY_RIGHT,
       KEY_LEFT,
       KEY_HOME,
       KEY_END,
       KEY_INSERT,
       KEY_DELETE,
       KEY_PAGE_UP,
       KEY_PAGE_DOWN,
       KEY_BACKTAB,
       KEY_F0 = 0x200100, /* KEY_F0 + n is Fn */
       KEY_PASTE = 0x200200,
       KEY_MASK = 0x2FFFFF,
       KEY_ALT = 0x1000000,
       KEY_CTRL = 0x2000000, /* of named keys; Ctrl-A is the character 1 */
       KEY_SHIFT = 0x4000000,
};
#define KEY_ESC 27

struct key {
  uint32_t code;
  const char *bytes; /* as they came; of a paste, its text; borrowed until the next call */
  size_t n_bytes;
};

struct input { /* {0} is an empty one */
  struct str pending;
  size_t used;
  struct str paste;
  bool in_paste;
};
void input_feed(struct input *in, const char *bytes, size_t n);
/* The next whole key. final: what is begun will not go on (its time is over): a lone ESC is the key Esc. */
bool input_next(struct input *in, bool final, struct key *out);
/* Something is begun: wait INPUT_ESC_MS for the rest, then ask with final set. */
bool input_is_waiting(const struct input *in);
void input_done(struct input *in);

#define INPUT_ESC_MS 25 /* or $ESCDELAY */

#endif
