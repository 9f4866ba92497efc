/* The handlers of interruption for commands without a screen. */
#include "config.h"

#include "cmd_signal.h"

#include <signal.h>
#include <stddef.h>
#include <unistd.h>

#include "cmd.h"
#include "script/vm.h"

static volatile sig_atomic_t n_caught;
static struct vm *vm_to_stop; /* set before the handlers are */

static void on_signal(int number)
{
  if (++n_caught > 1 && number == SIGINT)
    _exit(STATUS_INTERRUPTED);
  if (vm_to_stop)
    vm_interrupt(vm_to_stop);
}

/* A reader that went away and a closed terminal end a run as SIGTERM does. */
static const int numbers[] = {SIGINT, SIGTERM, SIGPIPE, SIGHUP};

static void set_handlers(void (*handler)(int))
{
  struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART}, old;
  sigemptyset(&action.sa_mask);
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    sigaction(numbers[i], NULL, &old);
    if (numbers[i] == SIGHUP && old.sa_handler == SIG_IGN)
      continue; /* nohup */
    sigaction(numbers[i], &action, NULL);
  }
}

void signal_begin(struct vm *vm)
{
  n_caught = 0;
  vm_to_stop = vm;
  set_handlers(on_signal);
  signal(SIGXFSZ, SIG_IGN); /* a file at its size limit is an error of the write, as a full disk is */
}

void signal_end(void)
{
  set_handlers(SIG_DFL);
  vm_to_stop = NULL;
}

bool signal_caught(void)
{
  return n_caught > 0;
}
