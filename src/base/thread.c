/* The signal mask of new threads. */
#include "config.h"

#include "base/thread.h"

#include <signal.h>
#include <stddef.h>

int thread_start(pthread_t *out, void *(*fn)(void *ctx), void *ctx)
{
  static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
  sigset_t mask, before;
  sigfillset(&mask);
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
    sigdelset(&mask, faults[i]);
  pthread_sigmask(SIG_SETMASK, &mask, &before);
  int status = pthread_create(out, NULL, fn, ctx);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return status;
}
