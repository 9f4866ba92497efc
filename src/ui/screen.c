/* Curses: start and end, colours by what the terminal has, and the copy of changed cells. Curses reads no keys here and
 * handles no signals: input.c and signals.c do. */
#include "config.h"

#include "ui/screen.h"

#include <curses.h>
#include <langinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <term.h>
#include <unistd.h>
#include <wchar.h>

#include "ui/terminal.h"
#include "ui/theme.h"

static struct {
  SCREEN *screen;
  FILE *out, *in;
  bool utf8, no_unicode, changed_size, redraw;
  int w, h, depth; /* depth: colours used; 0: none */
  struct grid shown;
  char description[64];
} s;

int screen_check(struct err *e)
{
  const char *term = getenv("TERM");
  int found;
  if (!term || !*term || strcmp(term, "dumb") == 0 || strcmp(term, "unknown") == 0)
    return err_set(e, "the terminal cannot place text (TERM is %s)", term && *term ? term : "not set");
  if (setupterm(NULL, STDOUT_FILENO, &found) != OK)
    return err_set(e,
                   found == 0 ? "this system does not know the terminal %s (TERM); 'TERM=xterm bitdial' may do"
                              : "no terminal descriptions are installed (TERM is %s)",
                   term);
  const char *place = tigetstr("cup");
  if (!place || place == (const char *)-1)
    return err_set(e, "the terminal %s cannot place the cursor (TERM)", term);
  del_curterm(cur_term);
  return 0;
}

/* The pair of a style's colour: style + 1. Terminals whose default colours curses cannot use go without colour, as any
 * background that we set could be the wrong one. */
static void start_colours(bool no_color)
{
  const char *wish = getenv("NO_COLOR");
  if (no_color || (wish && *wish) || !has_colors() || start_color() != OK || use_default_colors() != OK)
    return;
  s.depth = COLORS >= 256 ? 256 : COLORS >= 16 ? 16 : COLORS >= 8 ? 8 : 0;
  if (s.depth == 0 || COLOR_PAIRS <= THEME_N_STYLES) {
    s.depth = 0;
    return;
  }
  for (int i = 0; i < THEME_N_STYLES; i++) {
    const struct look *l = &theme_table[i];
    init_pair((short)(i + 1), s.depth == 256 ? l->fg256 : s.depth == 16 ? l->fg16 : l->fg8, -1);
  }
}

/* What leaves the screen, for signal handlers: curses' own functions may not be called there. */
static void tell_leave_sequence(void)
{
  static const char *const names[] = {"sgr0", "cnorm", "rmcup"};
  char all[256] = "";
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    const char *c = tigetstr(names[i]);
    if (c && c != (const char *)-1 && !strchr(c, '$') && strlen(all) + strlen(c) < sizeof all)
      strcat(all, c);
  }
  terminal_set_leave(all);
}

static void set_modes(void)
{
  raw();
  noecho();
  nonl();
  terminal_enter();
  def_prog_mode(); /* endwin() and back keep our modes */
}

int screen_begin(int fd, const struct screen_options *o, struct err *e)
{
  memset(&s, 0, sizeof s);
  int out = dup(fd), in = dup(fd);
  s.out = out >= 0 ? fdopen(out, "w") : NULL;
  s.in = in >= 0 ? fdopen(in, "r") : NULL;
  s.screen = s.out && s.in ? newterm(NULL, s.out, s.in) : NULL;
  if (!s.screen)
    return err_set(e, "cannot start the screen on this terminal (TERM is %s)", getenv("TERM"));
  set_term(s.screen);
  typeahead(-1);
  intrflush(stdscr, FALSE);
  leaveok(stdscr, FALSE);
  scrollok(stdscr, FALSE);
  s.utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
  s.no_unicode = o->no_unicode;
  start_colours(o->no_color);
  tell_leave_sequence();
  set_modes();
  screen_read_size();
  if (s.depth)
    snprintf(s.description, sizeof s.description, "%d colours, %s", s.depth, s.utf8 ? "UTF-8" : "ASCII");
  else
    snprintf(s.description, sizeof s.description, "no colour, %s", s.utf8 ? "UTF-8" : "ASCII");
  return 0;
}

void screen_end(void)
{
  if (!s.screen)
    return;
  screen_suspend();
  delscreen(s.screen);
  fclose(s.out);
  fclose(s.in);
  grid_done(&s.shown);
  s.screen = NULL;
}

void screen_suspend(void)
{
  if (isendwin())
    return;
  curs_set(1);
  endwin();
  terminal_leave();
}

void screen_resume(void)
{
  reset_prog_mode();
  terminal_enter();
  screen_read_size();
  s.redraw = true;
}

void screen_size(int *w, int *h)
{
  *w = s.w;
  *h = s.h;
}

void screen_read_size(void)
{
  struct winsize z;
  int w = COLS, h = LINES;
  if (ioctl(terminal_fd(), TIOCGWINSZ, &z) == 0 && z.ws_col > 0 && z.ws_row > 0) {
    w = z.ws_col;
    h = z.ws_row;
  }
  s.changed_size = s.changed_size || w != s.w || h != s.h;
  s.w = w;
  s.h = h;
}

void screen_redraw(void)
{
  s.redraw = true;
}

enum glyphs screen_glyphs(void)
{
  const char *term = getenv("TERM");
  /* the Linux console's fonts have no braille and not all blocks */
  bool console = term && (strcmp(term, "linux") == 0 || strncmp(term, "vt", 2) == 0);
  return !s.utf8 || s.no_unicode || console ? GLYPHS_ASCII : GLYPHS_BRAILLE;
}

const char *screen_description(void)
{
  return s.description;
}

static attr_t attributes(uint8_t look)
{
  return (look & LOOK_BOLD ? A_BOLD : 0) | (look & LOOK_DIM ? A_DIM : 0) | (look & LOOK_REVERSE ? A_REVERSE : 0) |
         (look & LOOK_UNDERLINE ? A_UNDERLINE : 0);
}

static void put_cell(int x, int y, const struct cell *c)
{
  wchar_t text[2] = {(wchar_t)c->ch, 0};
  const struct look *l = &theme_table[c->style < THEME_N_STYLES ? c->style : 0];
  if (c->ch > 0x7E && !s.utf8)
    text[0] = L'?';
  cchar_t out;
  short pair = s.depth ? (short)(c->style + 1) : 0;
  if (setcchar(&out, text, attributes(s.depth ? l->attr : l->mono), pair, NULL) == OK)
    mvadd_wch(y, x, &out); /* fails at the last cell, after it has written it */
}

static void follow_size(void)
{
  if (s.changed_size)
    resizeterm(s.h, s.w);
  s.changed_size = false;
  grid_resize(&s.shown, s.w, s.h);
  erase();
  clearok(curscr, TRUE);
  s.redraw = false;
}

static bool has_wide(const struct cell *row, int w)
{
  for (int x = 0; x < w; x++)
    if (row[x].ch == 0)
      return true;
  return false;
}

/* Only what changed goes to curses, which finds the cheapest way to write it. A row with a wide character goes whole:
 * half of one that is overwritten takes the other half with it. */
static void copy_row(const struct grid *g, int y)
{
  const struct cell *want = &g->cell[y * g->w];
  struct cell *have = &s.shown.cell[y * g->w];
  bool whole = has_wide(want, g->w) || has_wide(have, g->w), any = false;
  for (int x = 0; x < g->w; x++)
    any |= want[x].ch != have[x].ch || want[x].style != have[x].style;
  for (int x = 0; any && x < g->w; x++)
    if (want[x].ch && (whole || want[x].ch != have[x].ch || want[x].style != have[x].style))
      put_cell(x, y, &want[x]);
  memcpy(have, want, sizeof *want * (size_t)g->w);
}

void screen_show(const struct grid *g, int cursor_x, int cursor_y)
{
  if (s.changed_size || s.redraw || s.shown.w != g->w || s.shown.h != g->h)
    follow_size();
  if (g->w != s.w || g->h != s.h)
    return;
  for (int y = 0; y < g->h; y++)
    copy_row(g, y);
  bool visible = cursor_x >= 0 && cursor_x < g->w && cursor_y >= 0 && cursor_y < g->h;
  curs_set(visible);
  move(visible ? cursor_y : g->h - 1, visible ? cursor_x : g->w - 1);
  refresh();
}
