/* Cells: UTF-8, widths, clipping. The decoder is compared with what Unicode 15 (table 3-8 and 3-11) asks for. */
#include "config.h"

#include "ui/cell.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "tests/tap/tap.h"

static void test_decode(void)
{
  static const struct {
    const char *bytes;
    uint32_t want[6];
  } row[] = {
      {"a", {'a'}},
      {"\xC3\xA9", {0xE9}},
      {"\xE2\x86\x92", {0x2192}},
      {"\xF0\x9F\x98\x80", {0x1F600}},
      {"\xC0\xAF", {0xFFFD, 0xFFFD}},                              /* overlong */
      {"\xE0\x80\xAF", {0xFFFD, 0xFFFD, 0xFFFD}},                  /* overlong */
      {"\xED\xA0\x80", {0xFFFD, 0xFFFD, 0xFFFD}},                  /* surrogate */
      {"\xF4\x91\x92\x93", {0xFFFD, 0xFFFD, 0xFFFD, 0xFFFD}},      /* beyond U+10FFFF */
      {"\xE1\x80\xE2\xF0\x91\x41", {0xFFFD, 0xFFFD, 0xFFFD, 'A'}}, /* maximal parts */
      {"\xF0\x9F", {0xFFFD}},                                      /* cut short */
      {"\xFF\x41\x80", {0xFFFD, 'A', 0xFFFD}},
  };
  for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
    const char *p = row[i].bytes;
    bool same = true;
    int n = 0;
    for (uint32_t ch; (ch = cell_decode(&p)); n++)
      same &= n < 6 && ch == row[i].want[n];
    ok(same && row[i].want[n] == 0, "decoding row %d", (int)i);
  }
  int wrong = 0;
  for (uint32_t ch = 1; ch <= 0x10FFFF; ch++) {
    char utf8[5] = "";
    const char *p = utf8;
    if (ch >= 0xD800 && ch < 0xE000)
      continue;
    int n = cell_encode(ch, utf8);
    wrong += cell_decode(&p) != ch || p != utf8 + n;
  }
  is_int(wrong, 0, "every code point comes back from its UTF-8");
}

static void test_text(void)
{
  struct grid g = {0};
  grid_resize(&g, 8, 2);
  is_int(grid_text(&g, 0, 0, "e\xCC\x81|\xE6\xBC\xA2|\033[\x7F", STYLE_BOLD), 8, "columns of mixed text");
  char *d = grid_dump(&g);
  is_str(d, "e|\xE6\xBC\xA2|\xEF\xBF\xBD[\xEF\xBF\xBD\n\n", "combining marks dropped, controls replaced");
  mem_free(d);
  is_int(g.cell[2].ch, 0x6F22, "a wide character in its left cell");
  is_int(g.cell[3].ch, 0, "and 0 in its right one");
  grid_put(&g, 3, 0, 'x', STYLE_NORMAL);
  is_int(g.cell[2].ch, ' ', "overwriting the right half blanks the left");
  grid_put(&g, 2, 0, 0x6F22, STYLE_NORMAL);
  grid_put(&g, 2, 0, 'y', STYLE_NORMAL);
  is_int(g.cell[3].ch, ' ', "overwriting the left half blanks the right");
  grid_put(&g, 2, 1, 0x6F22, STYLE_NORMAL);
  grid_put(&g, 3, 1, 0x6F22, STYLE_NORMAL);
  ok(g.cell[10].ch == ' ' && g.cell[11].ch == 0x6F22 && g.cell[12].ch == 0, "one wide character over half another");
  grid_clear(&g);
  grid_put(&g, 7, 0, 0x6F22, STYLE_NORMAL);
  is_int(g.cell[7].ch, ' ', "half a character at the right edge is a blank");
  grid_put(&g, -1, 0, 0x6F22, STYLE_NORMAL);
  is_int(g.cell[0].ch, ' ', "and at the left edge");
  is_int(grid_text(&g, 5, 1, "abcdef", STYLE_NORMAL), 3, "clipped at the right");
  is_int(grid_text_max(&g, 0, 1, 4, "abc\xE6\xBC\xA2", STYLE_NORMAL), 3,
         "a wide character that does not fit is left out");
  is_int(grid_textf(&g, 0, 0, STYLE_NORMAL, "%d%%", 42), 3, "formatted");
  is_int(grid_text(&g, 0, 0, "a\tb", STYLE_NORMAL), 5, "tabs to the next multiple of four");
  is_int(grid_text(&g, 9, 0, "abc", STYLE_NORMAL), 0, "outside: nothing");
  grid_text(&g, 0, -1, "abc", STYLE_NORMAL);
  grid_text(&g, 0, 2, "abc", STYLE_NORMAL);
  grid_put(&g, -5, -5, 'x', STYLE_NORMAL);
  d = grid_dump(&g);
  is_str(d, "a   b\nabc  abc\n", "dump without trailing spaces");
  mem_free(d);
  is_int(cell_text_width("a\xE6\xBC\xA2\t\xCC\x81"
                         "b"),
         5, "text width");
  is_int(cell_width(0x202E), 0, "direction overrides are never shown");
  is_int(cell_width(0x9B), -1, "C1 controls are controls");
  is_int(cell_width(0x28FF), 1, "braille is narrow");
  grid_done(&g);
  ok(g.cell == NULL && g.w == 0, "done");
}

int main(void)
{
  test_decode();
  test_text();
  return tap_done();
}
