/* The pseudo-terminal and the screen behind it. */
#include "config.h"

#include "term.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <vterm.h>

#include "tests/tap/tap.h"

static char home[256];

static double now_s(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- the test's directory ---- */

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *f)
{
  (void)st;
  (void)type;
  (void)f;
  return remove(path);
}

void term_home_done(void)
{
  if (*home)
    nftw(home, remove_one, 16, FTW_DEPTH | FTW_PHYS);
  *home = '\0';
}

const char *term_home(void)
{
  static const char *const xdg[] = {"XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"};
  static const char *const unset[] = {"NO_COLOR", "LC_CTYPE", "LANG",  "INPUTRC",
                                      "ESCDELAY", "COLUMNS",  "LINES", "BITDIAL_ISA"};
  const char *tmp = getenv("TMPDIR");
  char path[320];
  snprintf(home, sizeof home, "%s/bitdial-ui-XXXXXX", tmp ? tmp : "/tmp");
  if (!mkdtemp(home))
    tap_bail("mkdtemp: %s", strerror(errno));
  setenv("HOME", home, 1);
  for (size_t i = 0; i < sizeof xdg / sizeof *xdg; i++) {
    snprintf(path, sizeof path, "%s/%s", home, xdg[i]);
    setenv(xdg[i], path, 1);
  }
  for (size_t i = 0; i < sizeof unset / sizeof *unset; i++)
    unsetenv(unset[i]);
  setenv("TERM", "xterm-256color", 1);
  setenv("LC_ALL", "C.UTF-8", 1);
  setenv("OPENBLAS_NUM_THREADS", "1", 1);
  return home;
}

/* ---- the program ---- */

static int on_property(VTermProp property, VTermValue *v, void *ctx)
{
  struct term *t = ctx;
  if (property == VTERM_PROP_ALTSCREEN)
    t->alternate = v->boolean;
  if (property == VTERM_PROP_CURSORVISIBLE)
    t->cursor_visible = v->boolean;
  return 1;
}

static void make_screen(struct term *t)
{
  static const VTermScreenCallbacks callbacks = {.settermprop = on_property};
  t->vt = vterm_new(t->h, t->w);
  vterm_set_utf8(t->vt, 1);
  t->screen = vterm_obtain_screen(t->vt);
  vterm_screen_set_callbacks(t->screen, &callbacks, t);
  vterm_screen_enable_altscreen(t->screen, 1);
  vterm_screen_reset(t->screen, 1);
}

static void exec_program(const char *slave, const char *const *args)
{
  const char *program = getenv("BITDIAL"), *argv[32] = {program};
  for (int i = 0; args[i] && i < 30; i++)
    argv[i + 1] = args[i];
  setsid();
  int fd = open(slave, O_RDWR); /* the session's terminal from now on */
  for (int i = 0; i < 3; i++)
    dup2(fd, i);
  if (fd > 2)
    close(fd);
  tcsetpgrp(0, getpid());
  signal(SIGPIPE, SIG_DFL);
  setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0}); /* crashes are part of the tests */
  execv(program, (char *const *)argv);
  _exit(127);
}

void term_start(struct term *t, int w, int h, const char *const *args)
{
  if (!getenv("BITDIAL") || access(getenv("BITDIAL"), X_OK) != 0)
    tap_bail("BITDIAL must name the program to test");
  *t = (struct term){.w = w, .h = h, .cursor_visible = true};
  t->fd = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (t->fd < 0 || grantpt(t->fd) != 0 || unlockpt(t->fd) != 0)
    tap_bail("no pseudo-terminal: %s", strerror(errno));
  ioctl(t->fd, TIOCSWINSZ, &(struct winsize){.ws_row = (unsigned short)h, .ws_col = (unsigned short)w});
  make_screen(t);
  tcgetattr(t->fd, &t->before);
  char *slave = ptsname(t->fd);
  t->pid = fork();
  if (t->pid == 0)
    exec_program(slave, args);
  if (t->pid < 0)
    tap_bail("fork: %s", strerror(errno));
}

void term_free(struct term *t)
{
  if (!t->exited) {
    kill(t->pid, SIGKILL);
    waitpid(t->pid, &t->status, 0);
  }
  vterm_free(t->vt);
  close(t->fd);
  free(t->raw);
}

void term_send(struct term *t, const char *bytes)
{
  for (size_t n = strlen(bytes); n > 0;) {
    ssize_t k = write(t->fd, bytes, n);
    if (k < 0 && errno != EINTR)
      return;
    if (k > 0) {
      bytes += k;
      n -= (size_t)k;
    }
  }
}

void term_resize(struct term *t, int w, int h)
{
  t->w = w;
  t->h = h;
  vterm_set_size(t->vt, h, w);
  ioctl(t->fd, TIOCSWINSZ, &(struct winsize){.ws_row = (unsigned short)h, .ws_col = (unsigned short)w});
}

/* ---- reading ---- */

static void keep_raw(struct term *t, const char *bytes, size_t n)
{
  if (t->n_raw + n > t->cap_raw) {
    t->cap_raw = 2 * (t->n_raw + n);
    t->raw = realloc(t->raw, t->cap_raw);
  }
  memcpy(t->raw + t->n_raw, bytes, n);
  t->n_raw += n;
}

/* One read, waiting at most that long; false: nothing came. */
static bool pump_once(struct term *t, double seconds)
{
  struct pollfd f = {.fd = t->fd, .events = POLLIN};
  char bytes[8192];
  if (poll(&f, 1, seconds > 0 ? (int)(seconds * 1e3) : 0) <= 0)
    return false;
  ssize_t n = read(t->fd, bytes, sizeof bytes);
  if (n <= 0) { /* EIO: the other side is closed */
    poll(NULL, 0, 5);
    return false;
  }
  keep_raw(t, bytes, (size_t)n);
  vterm_input_write(t->vt, bytes, (size_t)n);
  return true;
}

void term_pump(struct term *t, double seconds)
{
  double end = now_s() + seconds;
  do
    pump_once(t, end - now_s());
  while (now_s() < end);
}

static void look_for_exit(struct term *t)
{
  t->exited = t->exited || waitpid(t->pid, &t->status, WNOHANG) == t->pid;
}

bool term_wait(struct term *t, bool (*fn)(struct term *t, void *ctx), void *ctx)
{
  double end = now_s() + TERM_WAIT_S;
  for (;;) {
    look_for_exit(t);
    pump_once(t, t->exited ? 0.01 : 0.05);
    while (pump_once(t, 0))
      ;
    if (fn(t, ctx))
      return true;
    if (t->exited || now_s() > end) /* nothing more will come */
      return false;
  }
}

static bool has_text(struct term *t, void *ctx)
{
  return strstr(term_text(t), ctx) != NULL;
}

static bool has_no_text(struct term *t, void *ctx)
{
  return strstr(term_text(t), ctx) == NULL;
}

bool term_wait_text(struct term *t, const char *text)
{
  return term_wait(t, has_text, (void *)text);
}

bool term_wait_no_text(struct term *t, const char *text)
{
  return term_wait(t, has_no_text, (void *)text);
}

static bool has_exited(struct term *t, void *ctx)
{
  (void)ctx;
  return t->exited;
}

bool term_wait_exit(struct term *t)
{
  bool ended = term_wait(t, has_exited, NULL);
  while (pump_once(t, 0.01)) /* what it wrote last */
    ;
  return ended;
}

/* ---- looking ---- */

uint32_t term_char(struct term *t, int x, int y)
{
  VTermScreenCell cell;
  if (x < 0 || y < 0 || x >= t->w || y >= t->h || !vterm_screen_get_cell(t->screen, (VTermPos){y, x}, &cell))
    return 0;
  return cell.chars[0] == (uint32_t)-1 ? 0 : cell.chars[0] ? cell.chars[0] : ' ';
}

static size_t encode(uint32_t ch, char *out)
{
  if (ch < 0x80)
    return out[0] = (char)ch, 1;
  if (ch < 0x800)
    return out[0] = (char)(0xC0 | ch >> 6), out[1] = (char)(0x80 | (ch & 0x3F)), 2;
  if (ch < 0x10000)
    return out[0] = (char)(0xE0 | ch >> 12), out[1] = (char)(0x80 | (ch >> 6 & 0x3F)),
           out[2] = (char)(0x80 | (ch & 0x3F)), 3;
  return out[0] = (char)(0xF0 | ch >> 18), out[1] = (char)(0x80 | (ch >> 12 & 0x3F)),
         out[2] = (char)(0x80 | (ch >> 6 & 0x3F)), out[3] = (char)(0x80 | (ch & 0x3F)), 4;
}

const char *term_text(struct term *t)
{
  static char *text;
  size_t n = 0;
  text = realloc(text, (size_t)t->h * ((size_t)t->w * 4 + 1) + 1);
  for (int y = 0; y < t->h; y++) {
    size_t end = n;
    for (int x = 0; x < t->w; x++) {
      uint32_t ch = term_char(t, x, y);
      n += ch ? encode(ch, text + n) : 0;
      end = ch && ch != ' ' ? n : end;
    }
    n = end;
    text[n++] = '\n';
  }
  text[n] = '\0';
  return text;
}

bool term_has(struct term *t, int x0, int y0, int x1, int y1, uint32_t first, uint32_t last)
{
  for (int y = y0; y < y1; y++)
    for (int x = x0; x < x1; x++) {
      uint32_t ch = term_char(t, x, y);
      if (ch >= first && ch <= last)
        return true;
    }
  return false;
}

void term_cursor(struct term *t, int *x, int *y)
{
  VTermPos p;
  vterm_state_get_cursorpos(vterm_obtain_state(t->vt), &p);
  *x = p.col;
  *y = p.row;
}

bool term_is_restored(struct term *t)
{
  struct termios after;
  tcgetattr(t->fd, &after);
  bool same = after.c_iflag == t->before.c_iflag && after.c_oflag == t->before.c_oflag &&
              after.c_cflag == t->before.c_cflag && after.c_lflag == t->before.c_lflag &&
              memcmp(after.c_cc, t->before.c_cc, sizeof after.c_cc) == 0;
  if (!same)
    tap_note("modes differ: iflag %x %x oflag %x %x lflag %x %x", t->before.c_iflag, after.c_iflag, t->before.c_oflag,
             after.c_oflag, t->before.c_lflag, after.c_lflag);
  if (t->alternate || !t->cursor_visible)
    tap_note("alternate screen %d, cursor visible %d", t->alternate, t->cursor_visible);
  return same && !t->alternate && t->cursor_visible;
}

void term_show(struct term *t)
{
  char *copy = strdup(term_text(t)), *rest = copy;
  for (char *line; (line = strsep(&rest, "\n")) && rest;)
    tap_note("|%s", line);
  free(copy);
}

/* 30-38, 40-48, 90-97, 100-107 as parameters; 39 and 49 are the terminal's own. */
static bool is_colour(const char *s, size_t n)
{
  int value = 0;
  for (size_t i = 0; i <= n; i++) {
    if (i < n && s[i] >= '0' && s[i] <= '9') {
      value = value * 10 + (s[i] - '0');
      continue;
    }
    bool named = (value >= 30 && value <= 38) || (value >= 40 && value <= 48);
    bool bright = (value >= 90 && value <= 97) || (value >= 100 && value <= 107);
    if (named || bright)
      return true;
    value = 0;
  }
  return false;
}

bool term_wrote_colour(struct term *t)
{
  for (size_t i = 0; i + 1 < t->n_raw; i++) {
    if (t->raw[i] != '\033' || t->raw[i + 1] != '[')
      continue;
    size_t end = i + 2;
    while (end < t->n_raw && strchr("0123456789;:", t->raw[end]))
      end++;
    if (end < t->n_raw && t->raw[end] == 'm' && is_colour(t->raw + i + 2, end - i - 2))
      return true;
  }
  return false;
}
