/* How threads are born here: with the signals blocked that are for the thread that has the terminal. */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H

#include <pthread.h>

/* As pthread_create(); returns its error number. Signals that a fault of the thread itself raises stay open, so that
 * their handler can restore the terminal whichever thread it was. */
int thread_start(pthread_t *out, void *(*fn)(void *ctx), void *ctx);

#endif
