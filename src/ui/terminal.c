/* Terminal modes, standard streams and the way out after a crash. All state that a signal handler reads is set before
 * the handlers are, and changed with them in place only by single stores. */
#include "config.h"

#include "ui/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "base/mem.h"

#define PASTE_ON "\033[?2004h"
#define PASTE_OFF "\033[?2004l"

static struct {
  int tty;      /* the terminal; -1: not open */
  int saved[3]; /* the standard streams from before */
  int capture;  /* reading end of what goes to 1 and 2 */
  struct termios before;
  char leave[256];
  volatile sig_atomic_t n_leave;
  volatile sig_atomic_t is_raw; /* the screen is up: there is something to give back */
} t = {.tty = -1, .capture = -1, .saved = {-1, -1, -1}};

static int set_cloexec(int fd)
{
  fcntl(fd, F_SETFD, FD_CLOEXEC);
  return fd;
}

/* A copy of a standard stream, out of the way of 0, 1 and 2. */
static int keep(int fd)
{
  return fcntl(fd, F_DUPFD_CLOEXEC, 10);
}

static int redirect_streams(struct err *e)
{
  int pipes[2], null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (null < 0 || pipe(pipes) != 0) {
    if (null >= 0)
      close(null);
    return err_set(e, "cannot set up the screen: %s", strerror(errno));
  }
  for (int fd = 0; fd < 3; fd++)
    t.saved[fd] = keep(fd);
  t.capture = set_cloexec(pipes[0]);
  fcntl(t.capture, F_SETFL, O_NONBLOCK);
  dup2(null, STDIN_FILENO);
  dup2(pipes[1], STDOUT_FILENO);
  dup2(pipes[1], STDERR_FILENO);
  close(null);
  close(pipes[1]);
  return 0;
}

int terminal_begin(struct err *e)
{
  const char *name = ttyname(STDOUT_FILENO);
  /* opened anew: flags set on it are not those of the shell's own descriptor */
  t.tty = name ? open(name, O_RDWR | O_NOCTTY | O_CLOEXEC) : -1;
  if (t.tty < 0)
    t.tty = keep(STDOUT_FILENO);
  if (t.tty < 0 || tcgetattr(t.tty, &t.before) != 0)
    return err_set(e, "cannot use the terminal: %s", strerror(errno));
  if (t.tty < 10) {
    int high = keep(t.tty);
    close(t.tty);
    t.tty = high;
  }
  return redirect_streams(e);
}

int terminal_fd(void)
{
  return t.tty;
}

int terminal_capture_fd(void)
{
  return t.capture;
}

/* Async-signal-safe. */
static void put(const char *s, size_t n)
{
  while (n > 0) {
    ssize_t k = write(t.tty, s, n);
    if (k < 0 && errno == EINTR)
      continue;
    if (k <= 0)
      return;
    s += k;
    n -= (size_t)k;
  }
}

void terminal_set_leave(const char *sequence)
{
  size_t n = strlen(sequence);
  if (n >= sizeof t.leave)
    n = sizeof t.leave - 1;
  t.n_leave = 0;
  memcpy(t.leave, sequence, n);
  t.n_leave = (sig_atomic_t)n;
}

void terminal_enter(void)
{
  struct termios raw = t.before;
  /* cfmakeraw() without the output part, which curses manages: signals become keys, CR and NL stay apart */
  raw.c_iflag &= ~(tcflag_t)(IGNBRK | BRKINT | PARMRK | ISTRIP | INLCR | IGNCR | ICRNL | IXON);
  raw.c_lflag &= ~(tcflag_t)(ECHO | ECHONL | ICANON | ISIG | IEXTEN);
  raw.c_cc[VMIN] = 1;
  raw.c_cc[VTIME] = 0;
  t.is_raw = 1;
  tcsetattr(t.tty, TCSADRAIN, &raw);
  put(PASTE_ON, sizeof PASTE_ON - 1);
}

void terminal_leave(void)
{
  put(PASTE_OFF, sizeof PASTE_OFF - 1);
  tcsetattr(t.tty, TCSADRAIN, &t.before);
  t.is_raw = 0;
}

static void restore_streams(void)
{
  for (int fd = 0; fd < 3; fd++)
    if (t.saved[fd] >= 0)
      dup2(t.saved[fd], fd);
}

void terminal_restore(void)
{
  int saved_errno = errno;
  if (t.is_raw) {
    t.is_raw = 0;
    put(PASTE_OFF, sizeof PASTE_OFF - 1);
    put(t.leave, (size_t)t.n_leave);
    tcsetattr(t.tty, TCSANOW, &t.before);
  }
  restore_streams();
  errno = saved_errno;
}

/* ---- fatal signals ---- */

static const int fatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS, SIGTRAP, SIGQUIT, SIGXCPU};
#define N_FATAL (sizeof fatal / sizeof *fatal)
static struct sigaction old_action[N_FATAL];
static bool is_catching;

/* Gives the terminal back, then lets the signal do what it did before us: core dump, sanitizer report. */
static void on_fatal(int number)
{
  terminal_restore();
  for (size_t i = 0; i < N_FATAL; i++)
    if (fatal[i] == number)
      sigaction(number, &old_action[i], NULL);
  raise(number); /* pending until we return: it is blocked here */
}

void terminal_catch_fatal(void)
{
  /* a stack of its own, since the signal may say that the screen's thread has filled its; other threads use theirs */
  static char stack[64 * 1024];
  stack_t s = {.ss_sp = stack, .ss_size = sizeof stack};
  sigaltstack(&s, NULL);
  struct sigaction a = {.sa_handler = on_fatal, .sa_flags = SA_ONSTACK};
  sigfillset(&a.sa_mask);
  for (size_t i = 0; i < N_FATAL; i++)
    sigaction(fatal[i], &a, &old_action[i]);
  is_catching = true;
  die_set_hook(terminal_restore);
}

void terminal_end(void)
{
  die_set_hook(NULL);
  for (size_t i = 0; i < N_FATAL && is_catching; i++)
    sigaction(fatal[i], &old_action[i], NULL);
  if (is_catching)
    sigaltstack(&(stack_t){.ss_flags = SS_DISABLE}, NULL);
  is_catching = false;
  if (t.is_raw)
    terminal_leave();
  restore_streams();
  for (int fd = 0; fd < 3; fd++) {
    if (t.saved[fd] >= 0)
      close(t.saved[fd]);
    t.saved[fd] = -1;
  }
  if (t.capture >= 0)
    close(t.capture);
  if (t.tty >= 0)
    close(t.tty);
  t.capture = t.tty = -1;
}
