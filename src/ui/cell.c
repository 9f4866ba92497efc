/* The grid of cells and the little of UTF-8 that it needs. A cell holds one code point, so combining characters are
 * dropped rather than stacked; control characters become U+FFFD, so that no text can drive the terminal. Wide
 * characters take two cells, and overwriting one half blanks the other. */
#include "config.h"

#include "ui/cell.h"

#include <stdarg.h>
#include <string.h>
#include <wchar.h>

#include "base/mem.h"
#include "base/str.h"

#define REPLACEMENT 0xFFFDu
#define TAB_COLUMNS 4

uint32_t cell_decode(const char **utf8)
{
  const unsigned char *p = (const unsigned char *)*utf8;
  uint32_t ch = p[0];
  if (ch == 0)
    return 0;
  int n = ch < 0x80 ? 0 : ch >= 0xC2 && ch < 0xE0 ? 1 : ch >= 0xE0 && ch < 0xF0 ? 2 : ch >= 0xF0 && ch < 0xF5 ? 3 : -1;
  *utf8 += 1;
  if (n <= 0)
    return n == 0 ? ch : REPLACEMENT;
  ch &= 0x3Fu >> n;
  for (int i = 1; i <= n; i++) {
    unsigned lo = 0x80, hi = 0xBF;
    if (i == 1) { /* overlong forms, surrogates and what is beyond U+10FFFF (table 3-7) */
      lo = p[0] == 0xE0 ? 0xA0 : p[0] == 0xF0 ? 0x90 : 0x80;
      hi = p[0] == 0xED ? 0x9F : p[0] == 0xF4 ? 0x8F : 0xBF;
    }
    if (p[i] < lo || p[i] > hi)
      return REPLACEMENT;
    ch = ch << 6 | (p[i] & 0x3Fu);
    *utf8 += 1;
  }
  return ch;
}

int cell_encode(uint32_t ch, char out[4])
{
  if (ch > 0x10FFFF || (ch >= 0xD800 && ch < 0xE000))
    ch = REPLACEMENT;
  if (ch < 0x80) {
    out[0] = (char)ch;
    return 1;
  }
  int n = ch < 0x800 ? 2 : ch < 0x10000 ? 3 : 4;
  for (int i = n - 1; i > 0; i--, ch >>= 6)
    out[i] = (char)(0x80 | (ch & 0x3F));
  out[0] = (char)((0xF00u >> n & 0xFF) | ch);
  return n;
}

/* For locales whose wcwidth() knows ASCII alone (C, POSIX): the blocks that matter, not every character of Unicode. */
struct range {
  uint32_t first, last;
};
static const struct range zero_width[] = {
    {0x0300, 0x036F}, {0x0483, 0x0489}, {0x0591, 0x05BD}, {0x0610, 0x061A},   {0x064B, 0x065F}, {0x200B, 0x200F},
    {0x202A, 0x202E}, {0x2060, 0x2064}, {0x2066, 0x206F}, {0x20D0, 0x20F0},   {0x302A, 0x302D}, {0x3099, 0x309A},
    {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F}, {0xFEFF, 0xFEFF}, {0xE0001, 0xE01EF},
};
static const struct range wide[] = {
    {0x1100, 0x115F},   {0x2E80, 0x303E},   {0x3041, 0x33FF},   {0x3400, 0x4DBF},
    {0x4E00, 0x9FFF},   {0xA000, 0xA4CF},   {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},
    {0xFE30, 0xFE6F},   {0xFF00, 0xFF60},   {0xFFE0, 0xFFE6},   {0x1F300, 0x1F64F},
    {0x1F680, 0x1F6FF}, {0x1F900, 0x1F9FF}, {0x20000, 0x2FFFD}, {0x30000, 0x3FFFD},
};

static bool is_in(uint32_t ch, const struct range *r, size_t n)
{
  for (size_t i = 0; i < n; i++)
    if (ch >= r[i].first && ch <= r[i].last)
      return true;
  return false;
}

int cell_width(uint32_t ch)
{
  if (ch < 0x20 || (ch >= 0x7F && ch < 0xA0) || ch == 0x2028 || ch == 0x2029 || ch > 0x10FFFF ||
      (ch >= 0xD800 && ch < 0xE000))
    return -1;
  if (ch < 0x7F || (ch >= 0x2500 && ch < 0x2600) || (ch >= 0x2800 && ch < 0x2900)) /* and what plots are made of */
    return 1;
  if (is_in(ch, zero_width, sizeof zero_width / sizeof *zero_width)) /* never shown, whatever the locale says */
    return 0;
  int w = wcwidth((wchar_t)ch);
  if (w >= 0)
    return w;
  return is_in(ch, wide, sizeof wide / sizeof *wide) ? 2 : 1;
}

/* What is put for a code point of text at a column of that text: *ch may change; returns its columns. */
static int shown(uint32_t *ch, int column)
{
  if (*ch == '\t') {
    *ch = ' ';
    return TAB_COLUMNS - column % TAB_COLUMNS;
  }
  int w = cell_width(*ch);
  if (w < 0)
    *ch = REPLACEMENT;
  return w < 0 ? 1 : w;
}

int cell_text_width(const char *utf8)
{
  int n = 0;
  for (uint32_t ch; (ch = cell_decode(&utf8));)
    n += shown(&ch, n);
  return n;
}

void grid_resize(struct grid *g, int w, int h)
{
  w = w > 0 ? w : 0;
  h = h > 0 ? h : 0;
  if (w != g->w || h != g->h || !g->cell) {
    mem_free(g->cell);
    g->cell = mem_alloc(((size_t)w * (size_t)h + 1) * sizeof *g->cell);
    g->w = w;
    g->h = h;
  }
  grid_clear(g);
}

void grid_done(struct grid *g)
{
  mem_free(g->cell);
  *g = (struct grid){0};
}

void grid_clear(struct grid *g)
{
  for (size_t i = 0, n = (size_t)g->w * (size_t)g->h; i < n; i++)
    g->cell[i] = (struct cell){.ch = ' ', .style = STYLE_NORMAL};
}

/* One cell, which is inside; the other half of a wide character that stood here goes. */
static void set(struct grid *g, int x, int y, uint32_t ch, enum style s)
{
  struct cell *c = &g->cell[(size_t)y * (size_t)g->w + (size_t)x];
  if (c->ch == 0 && x > 0)
    c[-1].ch = ' ';
  if (x + 1 < g->w && c[1].ch == 0)
    c[1].ch = ' ';
  *c = (struct cell){.ch = ch, .style = (uint8_t)s};
}

void grid_put(struct grid *g, int x, int y, uint32_t ch, enum style s)
{
  int w = ch == 0 ? 1 : cell_width(ch);
  if (ch == 0)
    ch = ' ';
  if (w < 0) {
    ch = REPLACEMENT;
    w = 1;
  }
  if (w == 0 || y < 0 || y >= g->h || x >= g->w || x + w <= 0)
    return;
  if (w == 1) {
    set(g, x, y, ch, s);
  } else if (x < 0) { /* half of it is outside: a blank, since no terminal shows half a character */
    set(g, 0, y, ' ', s);
  } else if (x + 1 >= g->w) {
    set(g, x, y, ' ', s);
  } else {
    set(g, x, y, ' ', s);
    set(g, x + 1, y, ' ', s);
    struct cell *c = &g->cell[(size_t)y * (size_t)g->w + (size_t)x];
    c[0].ch = ch;
    c[1].ch = 0;
  }
}

int grid_text_max(struct grid *g, int x, int y, int max_w, const char *utf8, enum style s)
{
  int n = 0;
  for (uint32_t ch; (ch = cell_decode(&utf8));) {
    int w = shown(&ch, n);
    if (n + w > max_w)
      break;
    if (ch == ' ')
      for (int i = 0; i < w; i++)
        grid_put(g, x + n + i, y, ' ', s);
    else
      grid_put(g, x + n, y, ch, s);
    n += w;
  }
  return n;
}

int grid_text(struct grid *g, int x, int y, const char *utf8, enum style s)
{
  return x < g->w ? grid_text_max(g, x, y, g->w - x, utf8, s) : 0;
}

int grid_textf(struct grid *g, int x, int y, enum style s, const char *fmt, ...)
{
  struct str text = {0};
  va_list ap;
  va_start(ap, fmt);
  str_vaddf(&text, fmt, ap);
  va_end(ap);
  int n = text.s ? grid_text(g, x, y, text.s, s) : 0;
  str_done(&text);
  return n;
}

char *grid_dump(const struct grid *g)
{
  char *out = mem_alloc((size_t)g->h * ((size_t)g->w * 4 + 1) + 1);
  size_t n = 0;
  for (int y = 0; y < g->h; y++) {
    const struct cell *row = g->cell + (size_t)y * (size_t)g->w;
    int end = g->w;
    while (end > 0 && row[end - 1].ch == ' ')
      end--;
    for (int x = 0; x < end; x++)
      if (row[x].ch)
        n += (size_t)cell_encode(row[x].ch, out + n);
    out[n++] = '\n';
  }
  out[n] = 0;
  return out;
}
