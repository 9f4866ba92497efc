/* The shared parts of the tests of the Lua layer. */
#include "config.h"

#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../tap/tap.h"
#include "tensor/gemm.h"

static void keep_output(void *ctx, const char *text)
{
  struct fixture *f = ctx;
  pthread_mutex_lock(&f->lock);
  size_t n = strlen(text), room = sizeof f->out - 1 - f->n_out;
  n = n < room ? n : room;
  memcpy(f->out + f->n_out, text, n);
  f->n_out += n;
  f->out[f->n_out] = '\0';
  pthread_mutex_unlock(&f->lock);
}

void fixture_begin(struct fixture *f, bool interactive)
{
  struct err e;
  memset(f, 0, sizeof *f);
  pthread_mutex_init(&f->lock, NULL);
  gemm_init();
  f->engine = engine_create(1, &e);
  if (!f->engine)
    tap_bail("engine: %s", e.msg);
  struct vm_config c = {.engine = f->engine, .interactive = interactive, .print = keep_output, .ctx = f};
  f->vm = vm_create(&c, &e);
  if (!f->vm)
    tap_bail("vm: %s", e.msg);
}

void fixture_end(struct fixture *f)
{
  engine_free(f->engine);
  vm_free(f->vm);
  pthread_mutex_destroy(&f->lock);
}

int fixture_run(struct fixture *f)
{
  struct err e;
  char model[1024];
  snprintf(model, sizeof model, "%s", source_path("tests/script/tiny.lua"));
  const char *const pairs[] = {"model", model, "data", "spirals", "batch", "16", "seed", "1", "schedule", "constant"};
  int id = vm_make_run(f->vm, pairs, sizeof pairs / sizeof *pairs / 2, "/dev/null", &e);
  if (id < 0)
    tap_bail("run: %s", e.msg);
  return id;
}

enum vm_result eval(struct fixture *f, const char *chunk)
{
  pthread_mutex_lock(&f->lock);
  f->n_out = 0;
  f->out[0] = '\0';
  pthread_mutex_unlock(&f->lock);
  return vm_eval(f->vm, chunk);
}

const char *says(struct fixture *f, const char *chunk)
{
  eval(f, chunk);
  if (f->n_out && f->out[f->n_out - 1] == '\n')
    f->out[--f->n_out] = '\0';
  return f->out;
}

bool said(struct fixture *f, const char *part)
{
  pthread_mutex_lock(&f->lock);
  bool has = strstr(f->out, part) != NULL;
  pthread_mutex_unlock(&f->lock);
  return has;
}

const char *source_path(const char *relative)
{
  static char path[2][1024];
  static int turn;
  const char *top = getenv("top_srcdir");
  turn = !turn;
  snprintf(path[turn], sizeof path[turn], "%s/%s", top ? top : ".", relative);
  return path[turn];
}

const char *write_file(const char *name, const char *text)
{
  FILE *f = fopen(name, "w");
  if (!f || fputs(text, f) < 0 || fclose(f) != 0)
    tap_bail("cannot write %s", name);
  return name;
}
