/* The pipe that signal handlers and other threads write to. */
#include "config.h"

#include "ui/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

static int ends[2] = {-1, -1};
static volatile sig_atomic_t end_number;
static atomic_bool woken; /* a wake byte is in the pipe: one is enough */

static const struct {
  int number;
  char byte;
} caught[] = {{SIGWINCH, SIGNALS_WINCH}, {SIGTERM, SIGNALS_END},  {SIGHUP, SIGNALS_END},
              {SIGINT, SIGNALS_END},     {SIGTSTP, SIGNALS_STOP}, {SIGCONT, SIGNALS_CONT},
              /* these end a program too when nobody handles them, and would leave the terminal as it is */
              {SIGUSR1, SIGNALS_END},    {SIGUSR2, SIGNALS_END},  {SIGALRM, SIGNALS_END},
              {SIGVTALRM, SIGNALS_END},  {SIGIO, SIGNALS_END}};
/* A reader that went away is an error of the write; so is a file at its size limit. What stty tostop or a background
 * start would do to us is nothing to stop for. */
static const int ignored[] = {SIGPIPE, SIGXFSZ, SIGTTOU, SIGTTIN};
#define N_CAUGHT (sizeof caught / sizeof *caught)
#define N_IGNORED (sizeof ignored / sizeof *ignored)
static struct sigaction before[N_CAUGHT + N_IGNORED];

static void on_signal(int number)
{
  int saved = errno;
  for (size_t i = 0; i < N_CAUGHT; i++)
    if (caught[i].number == number) {
      if (caught[i].byte == SIGNALS_END)
        end_number = number;
      ssize_t k = write(ends[1], &caught[i].byte, 1); /* full: the loop has enough to look at */
      (void)k;
    }
  errno = saved;
}

int signals_begin(struct err *e)
{
  if (pipe(ends) != 0)
    return err_set(e, "cannot make a pipe: %s", strerror(errno));
  for (int i = 0; i < 2; i++) {
    fcntl(ends[i], F_SETFD, FD_CLOEXEC);
    fcntl(ends[i], F_SETFL, O_NONBLOCK);
  }
  end_number = 0;
  atomic_store(&woken, false);
  struct sigaction a = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
  sigemptyset(&a.sa_mask);
  for (size_t i = 0; i < N_CAUGHT; i++)
    sigaction(caught[i].number, &a, &before[i]);
  a.sa_handler = SIG_IGN;
  for (size_t i = 0; i < N_IGNORED; i++)
    sigaction(ignored[i], &a, &before[N_CAUGHT + i]);
  return 0;
}

void signals_end(void)
{
  if (ends[0] < 0)
    return;
  /* What remains is to save and to go. A window that closes sends SIGHUP more than once, the kernel and the shell each
   * theirs; the next must not end us in the middle. */
  for (size_t i = 0; i < N_CAUGHT; i++)
    if (caught[i].number == SIGHUP)
      signal(SIGHUP, SIG_IGN);
    else
      sigaction(caught[i].number, &before[i], NULL);
  for (size_t i = 0; i < N_IGNORED; i++)
    sigaction(ignored[i], &before[N_CAUGHT + i], NULL);
  close(ends[0]);
  close(ends[1]);
  ends[0] = ends[1] = -1;
}

int signals_fd(void)
{
  return ends[0];
}

int signals_next(void)
{
  char byte;
  if (read(ends[0], &byte, 1) != 1)
    return 0;
  if (byte == SIGNALS_WAKE)
    atomic_store(&woken, false);
  return byte;
}

int signals_which_end(void)
{
  return end_number;
}

void signals_wake(void)
{
  const char byte = SIGNALS_WAKE;
  if (!atomic_exchange(&woken, true) && write(ends[1], &byte, 1) != 1)
    atomic_store(&woken, false);
}

void signals_suspend(void)
{
  /* SIGSTOP rather than SIGTSTP: the kernel ignores the latter's default action in an orphaned process group, where a
   * shell such as ssh's command would leave us with a half-restored screen. The whole group stops, as with the key. */
  kill(0, SIGSTOP);
}
