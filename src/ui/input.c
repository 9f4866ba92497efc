/* The keys of terminals that follow ECMA-48 as xterm, tmux, the Linux console and rxvt speak it: two tables, one for
 * CSI/SS3 finals, one for numbers before '~'. */
#include "config.h"

#include "ui/input.h"

#include <string.h>

#include "ui/cell.h"

#define PASTE_BEGIN "\033[200~"
#define PASTE_END "\033[201~"
#define MAX_SEQUENCE 32

static const struct {
  char final;
  uint32_t code;
} finals[] = {{'A', KEY_UP},     {'B', KEY_DOWN},   {'C', KEY_RIGHT},   {'D', KEY_LEFT},
              {'H', KEY_HOME},   {'F', KEY_END},    {'Z', KEY_BACKTAB}, {'P', KEY_F0 + 1},
              {'Q', KEY_F0 + 2}, {'R', KEY_F0 + 3}, {'S', KEY_F0 + 4}};

static const struct {
  int number;
  uint32_t code;
} numbers[] = {{1, KEY_HOME},      {2, KEY_INSERT},  {3, KEY_DELETE},   {4, KEY_END},      {5, KEY_PAGE_UP},
               {6, KEY_PAGE_DOWN}, {7, KEY_HOME},    {8, KEY_END},      {11, KEY_F0 + 1},  {12, KEY_F0 + 2},
               {13, KEY_F0 + 3},   {14, KEY_F0 + 4}, {15, KEY_F0 + 5},  {17, KEY_F0 + 6},  {18, KEY_F0 + 7},
               {19, KEY_F0 + 8},   {20, KEY_F0 + 9}, {21, KEY_F0 + 10}, {23, KEY_F0 + 11}, {24, KEY_F0 + 12}};

void input_feed(struct input *in, const char *bytes, size_t n)
{
  if (in->used == in->pending.n) {
    str_clear(&in->pending);
    in->used = 0;
  }
  str_addn(&in->pending, bytes, n);
}

void input_done(struct input *in)
{
  str_done(&in->pending);
  str_done(&in->paste);
}

bool input_is_waiting(const struct input *in)
{
  return !in->in_paste && in->used < in->pending.n;
}

/* xterm's modifier parameter: 1 + (1 Shift, 2 Alt, 4 Ctrl). */
static uint32_t modifiers(int parameter)
{
  int bits = parameter > 1 ? parameter - 1 : 0;
  return (bits & 1 ? KEY_SHIFT : 0) | (bits & 2 ? KEY_ALT : 0) | (bits & 4 ? KEY_CTRL : 0);
}

static uint32_t find_final(char c)
{
  for (size_t i = 0; i < sizeof finals / sizeof *finals; i++)
    if (finals[i].final == c)
      return finals[i].code;
  return KEY_NONE;
}

static uint32_t find_number(int n)
{
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    if (numbers[i].number == n)
      return numbers[i].code;
  return KEY_NONE;
}

/* Length of the control sequence that s begins with, its meaning in *code; 0: not whole yet. s[0] is ESC. */
static size_t parse_csi(const char *s, size_t n, uint32_t *code)
{
  int parameter[2] = {0, 0}, at = 0;
  if (n > 3 && s[2] == '[') { /* the Linux console's F1 to F5: ESC [ [ A */
    *code = s[3] >= 'A' && s[3] <= 'E' ? KEY_F0 + 1u + (uint32_t)(s[3] - 'A') : KEY_NONE;
    return 4;
  }
  for (size_t i = 2; i < n; i++) {
    char c = s[i];
    if (c >= '0' && c <= '9') {
      if (at < 2 && parameter[at] < 1000)
        parameter[at] = parameter[at] * 10 + (c - '0');
    } else if (c == ';') {
      at++;
    } else if (c >= 0x40 && c <= 0x7E && !(i == 2 && c == '[')) {
      uint32_t base = c == '~' ? find_number(parameter[0]) : find_final(c);
      *code = base == KEY_NONE ? base : base | modifiers(parameter[1]);
      return i + 1;
    } else if (c < 0x20 || i >= MAX_SEQUENCE) { /* not a sequence: what came is dropped */
      *code = KEY_NONE;
      return i;
    }
  }
  return 0;
}

static size_t utf8_length(unsigned char c)
{
  return c < 0xC2 ? 1 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : c < 0xF5 ? 4 : 1;
}

/* Length of the key at the start of s[0..n), n > 0; 0: not whole yet. */
static size_t parse_key(const char *s, size_t n, bool final, uint32_t *code)
{
  if (*s == KEY_ESC && n > 1 && (s[1] == '[' || s[1] == 'O')) {
    size_t k = s[1] == '[' ? parse_csi(s, n, code) : n > 2 ? 3 : 0;
    if (k == 3 && s[1] == 'O')
      *code = find_final(s[2]);
    if (k > 0 || !final)
      return k;
  }
  if (*s == KEY_ESC) {
    if (n == 1) {
      *code = KEY_ESC;
      return final;
    }
    if (s[1] == KEY_ESC) { /* Esc, then another key */
      *code = KEY_ESC;
      return 1;
    }
    size_t k = parse_key(s + 1, n - 1, final, code);
    *code |= KEY_ALT;
    return k > 0 ? k + 1 : 0;
  }
  size_t k = utf8_length((unsigned char)*s);
  if (k > n && !final)
    return 0;
  k = k < n ? k : n;
  char one[8] = {0};
  memcpy(one, s, k);
  const char *at = one;
  *code = cell_decode(&at);
  return k;
}

/* Moves pasted bytes over; returns whether the paste is whole. */
static bool take_paste(struct input *in)
{
  const char *s = in->pending.s + in->used;
  size_t n = in->pending.n - in->used;
  const char *end = memmem(s, n, PASTE_END, sizeof PASTE_END - 1);
  if (end) {
    str_addn(&in->paste, s, (size_t)(end - s));
    in->used += (size_t)(end - s) + sizeof PASTE_END - 1;
    in->in_paste = false;
    return true;
  }
  size_t kept = n < sizeof PASTE_END - 2 ? n : sizeof PASTE_END - 2; /* may be a part of the end */
  str_addn(&in->paste, s, n - kept);
  in->used += n - kept;
  return false;
}

bool input_next(struct input *in, bool final, struct key *out)
{
  size_t n = in->pending.n - in->used;
  const char *s = in->pending.s ? in->pending.s + in->used : "";
  if (!in->in_paste && n >= sizeof PASTE_BEGIN - 1 && memcmp(s, PASTE_BEGIN, sizeof PASTE_BEGIN - 1) == 0) {
    in->used += sizeof PASTE_BEGIN - 1;
    in->in_paste = true;
    str_clear(&in->paste);
  }
  if (in->in_paste) {
    if (in->used == in->pending.n || !take_paste(in))
      return false;
    *out = (struct key){KEY_PASTE, in->paste.s ? in->paste.s : "", in->paste.n};
    return true;
  }
  if (n == 0)
    return false;
  size_t k = parse_key(s, n, final, &out->code);
  if (k == 0)
    return false;
  out->bytes = s;
  out->n_bytes = k;
  in->used += k;
  return true;
}
