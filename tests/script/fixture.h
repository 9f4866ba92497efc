/* What the tests of the Lua layer share: an engine, a virtual machine whose output is kept, and a small run. */
#ifndef TESTS_SCRIPT_FIXTURE_H
#define TESTS_SCRIPT_FIXTURE_H

#include <pthread.h>

#include "script/vm.h"

struct fixture {
  struct engine *engine;
  struct vm *vm;
  pthread_mutex_t lock;
  char out[65536]; /* what was printed since the last eval() */
  size_t n_out;
};

/* Bails out where it cannot be made. */
void fixture_begin(struct fixture *f, bool interactive);
void fixture_end(struct fixture *f);

/* A run of the small model on spirals, batch 16, seed 1; makes it current. */
int fixture_run(struct fixture *f);

/* Evaluates a prompt chunk; the output is f->out afterwards. */
enum vm_result eval(struct fixture *f, const char *chunk);
/* Output of that chunk without the last newline; valid until the next call. */
const char *says(struct fixture *f, const char *chunk);
bool said(struct fixture *f, const char *part); /* whether f->out has it */

/* A file of the source tree; valid until the call after the next. */
const char *source_path(const char *relative);
/* Writes a file into the current directory and returns its name. */
const char *write_file(const char *name, const char *text);

#endif
