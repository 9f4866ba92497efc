/* Keys from bytes: sequences of several terminals, in one piece and torn, pastes, damage. */
#include "config.h"

#include "ui/input.h"

#include <stdio.h>
#include <string.h>

#include "tests/tap/tap.h"
#include "ui/keymap.h"

static const struct {
  const char *bytes;
  uint32_t code;
} keys[] = {
    {"a", 'a'},
    {"\r", '\r'},
    {"\003", 3},
    {"\xC3\xA9", 0xE9},
    {"\xF0\x9F\x98\x80", 0x1F600},
    {"\033[A", KEY_UP},
    {"\033OA", KEY_UP},
    {"\033[1;5C", KEY_RIGHT | KEY_CTRL},
    {"\033[1;2D", KEY_LEFT | KEY_SHIFT},
    {"\033[1;4B", KEY_DOWN | KEY_SHIFT | KEY_ALT},
    {"\033[Z", KEY_BACKTAB},
    {"\033[3~", KEY_DELETE},
    {"\033[5~", KEY_PAGE_UP},
    {"\033[6;5~", KEY_PAGE_DOWN | KEY_CTRL},
    {"\033[H", KEY_HOME},
    {"\033[1~", KEY_HOME},
    {"\033OP", KEY_F0 + 1},
    {"\033[11~", KEY_F0 + 1},
    {"\033[[A", KEY_F0 + 1},
    {"\033[15~", KEY_F0 + 5},
    {"\033[21~", KEY_F0 + 10},
    {"\033f", 'f' | KEY_ALT},
    {"\033\r", '\r' | KEY_ALT},
    {"\033[99~", KEY_NONE},
    {"\033[?1;2c", KEY_NONE}, /* a terminal's answer */
};
#define N_KEYS (sizeof keys / sizeof *keys)

static void test_table(void)
{
  for (size_t i = 0; i < N_KEYS; i++) {
    struct input in = {0};
    struct key k;
    size_t n = strlen(keys[i].bytes);
    input_feed(&in, keys[i].bytes, n);
    bool got = input_next(&in, false, &k);
    ok(got && k.code == keys[i].code && k.n_bytes == n && memcmp(k.bytes, keys[i].bytes, n) == 0,
       "row %zu: code %x, got %x", i, keys[i].code, got ? k.code : 0);
    ok(!input_next(&in, false, &k) && !input_is_waiting(&in), "row %zu: nothing is left", i);
    input_done(&in);
  }
}

/* Byte by byte: no key before the last byte, then the same one. */
static void test_torn(void)
{
  int n_early = 0, n_wrong = 0;
  for (size_t i = 0; i < N_KEYS; i++) {
    struct input in = {0};
    struct key k;
    size_t n = strlen(keys[i].bytes);
    for (size_t b = 0; b < n; b++) {
      input_feed(&in, keys[i].bytes + b, 1);
      bool got = input_next(&in, false, &k);
      n_early += got && b + 1 < n;
      n_wrong += b + 1 == n && (!got || k.code != keys[i].code);
    }
    input_done(&in);
  }
  is_int(n_early, 0, "torn sequences are no keys before they are whole");
  is_int(n_wrong, 0, "and the same keys then");
}

static void test_stream(void)
{
  struct input in = {0};
  struct key k;
  int n = 0;
  for (size_t i = 0; i < N_KEYS; i++)
    input_feed(&in, keys[i].bytes, strlen(keys[i].bytes));
  for (size_t i = 0; i < N_KEYS && input_next(&in, false, &k); i++)
    n += k.code == keys[i].code;
  is_int(n, N_KEYS, "all keys in one read");
  input_done(&in);
}

static void test_escape(void)
{
  struct input in = {0};
  struct key k;
  input_feed(&in, "\033", 1);
  ok(!input_next(&in, false, &k) && input_is_waiting(&in), "a lone ESC waits");
  ok(input_next(&in, true, &k) && k.code == KEY_ESC, "and is Esc when its time is over");
  input_feed(&in, "\033[", 2);
  ok(!input_next(&in, false, &k), "ESC [ waits");
  ok(input_next(&in, true, &k) && k.code == ('[' | KEY_ALT), "and is Alt-[ when its time is over");
  input_feed(&in, "\033\033[A", 4);
  ok(input_next(&in, false, &k) && k.code == KEY_ESC, "Esc before a sequence is Esc");
  ok(input_next(&in, false, &k) && k.code == KEY_UP, "and the sequence follows");
  input_feed(&in, "\xC3", 1);
  ok(!input_next(&in, false, &k), "half a character waits");
  ok(input_next(&in, true, &k) && k.code == 0xFFFD, "and is the replacement character in the end");
  input_done(&in);
}

static void test_paste(void)
{
  static const char text[] = "\033[200~a\r\nb\033[Ac\033[201~z";
  for (size_t cut = 1; cut < sizeof text - 1; cut++) {
    struct input in = {0};
    struct key k = {0}, last = {0};
    bool found = false;
    const char *part[] = {text, text + cut};
    size_t n[] = {cut, sizeof text - 1 - cut};
    for (int i = 0; i < 2; i++) {
      input_feed(&in, part[i], n[i]);
      while (input_next(&in, false, &k)) {
        found |= k.code == KEY_PASTE && k.n_bytes == 8 && memcmp(k.bytes, "a\r\nb\033[Ac", 8) == 0;
        last = k;
      }
    }
    if (!found || last.code != 'z')
      ok(false, "paste cut at %zu", cut);
    input_done(&in);
  }
  ok(true, "a paste is one key wherever it is cut; keys in it are text; what follows is a key");
}

/* Any bytes: every one is taken, none twice, and it ends. */
static void test_noise(void)
{
  struct input in = {0};
  struct key k;
  uint32_t seed = 12345;
  size_t fed = 0, taken = 0;
  for (int i = 0; i < 20000; i++) {
    static const char interesting[] = "\033\033\033[[O0123456789;;~ABCZ\xC3\xA9\xF0";
    seed = seed * 1664525 + 1013904223;
    char c = seed >> 31 ? interesting[(seed >> 8) % (sizeof interesting - 1)] : (char)(seed >> 16);
    input_feed(&in, &c, 1);
    fed++;
    while (!in.in_paste && input_next(&in, (seed >> 5) % 7 == 0, &k))
      taken += k.code == KEY_PASTE ? 0 : k.n_bytes;
  }
  while (!in.in_paste && input_next(&in, true, &k))
    taken += k.n_bytes;
  is_int(taken, fed, "20000 bytes of noise are all taken");
  input_done(&in);
}

/* No key of the workbench is bound twice in one place. */
static void test_keymap(void)
{
  int n_double = 0;
  for (const struct keymap_row *a = keymap_table; a->name; a++) {
    ok(a->help && *a->help, "%s has a help text", a->name);
    for (const struct keymap_row *b = a + 1; b->name; b++)
      n_double += a->code != KEY_NONE && a->code == b->code && (a->where & b->where);
  }
  is_int(n_double, 0, "no key is bound twice");
  ok(keymap_find(WHERE_PANE, 'q') && !keymap_find(WHERE_PROMPT, 'q'), "q is the workbench's outside the prompt alone");
}

int main(void)
{
  test_table();
  test_torn();
  test_stream();
  test_escape();
  test_paste();
  test_noise();
  test_keymap();
  return tap_done();
}
