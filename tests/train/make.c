/* Small runs for the tests of this layer. */
#include "config.h"

#include "make.h"

#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "tests/tap/tap.h"

void make_model(struct model_desc *d)
{
  static const int widths[] = {2, 24, 24, 2};
  memset(d, 0, sizeof *d);
  strcpy(d->name, "small");
  strcpy(d->loss, "cross_entropy");
  d->n_inputs = 2;
  d->n_outputs = 2;
  for (int i = 0; i < 3; i++) {
    char name[16];
    snprintf(name, sizeof name, "fc%d", i + 1);
    desc_set_option(desc_add_layer(d, "linear", name), "out", widths[i + 1]);
    if (i < 2)
      desc_add_layer(d, "relu", NULL);
  }
}

static int set_pairs(struct knobs *k, va_list ap, struct err *e)
{
  const char *knob;
  while ((knob = va_arg(ap, const char *))) {
    struct knob_ref ref;
    if (knob_find(knob, &ref, e) || knobs_set(k, &ref, va_arg(ap, const char *), e))
      return -1;
  }
  return 0;
}

static struct run *make(const char *journal_path, va_list ap, struct err *e)
{
  static const char *const base[][2] = {{"data", "spirals"}, {"seed", "7"}, {"threads", "1"}, {"batch", "64"}};
  struct knobs k;
  struct model_desc d;
  struct run *r = NULL;
  knobs_defaults(&k);
  for (int i = 0; i < 4; i++) {
    struct knob_ref ref;
    if (knob_find(base[i][0], &ref, e) || knobs_set(&k, &ref, base[i][1], e))
      return NULL;
  }
  make_model(&d);
  if (set_pairs(&k, ap, e) == 0)
    r = run_create(&(struct run_config){.model = &d, .knobs = &k, .journal_path = journal_path, .name = "test"}, e);
  desc_done(&d);
  return r;
}

struct run *make_run(const char *journal_path, ...)
{
  struct err e;
  va_list ap;
  va_start(ap, journal_path);
  struct run *r = make(journal_path, ap, &e);
  va_end(ap);
  if (!r)
    tap_bail("cannot make a run: %s", e.msg);
  return r;
}

struct run *try_run(struct err *e, const char *journal_path, ...)
{
  va_list ap;
  va_start(ap, journal_path);
  struct run *r = make(journal_path, ap, e);
  va_end(ap);
  return r;
}

void set(struct run *r, const char *knob, const char *value)
{
  struct err e;
  if (run_set(r, knob, value, &e))
    tap_bail("%s = %s: %s", knob, value, e.msg);
}

void steps(struct run *r, int n)
{
  struct err e;
  for (int i = 0; i < n; i++)
    if (run_step(r, &e) != STEP_OK)
      tap_bail("step %d: %s", (int)run_n_steps(r) + 1, e.msg);
}

const char *hash_of(struct run *r)
{
  static char hex[4][33];
  static int next;
  char *out = hex[next++ % 4];
  run_weights_hash(r, out);
  return out;
}

static char directory[64];

static void remove_directory(void)
{
  DIR *d = opendir(directory);
  struct dirent *f;
  while (d && (f = readdir(d))) {
    char path[400];
    snprintf(path, sizeof path, "%s/%s", directory, f->d_name);
    unlink(path);
  }
  if (d)
    closedir(d);
  rmdir(directory);
}

char *temp_path(const char *leaf)
{
  if (!*directory) {
    strcpy(directory, "/tmp/bitdial-train-XXXXXX");
    if (!mkdtemp(directory))
      tap_bail("no temporary directory");
    atexit(remove_directory);
  }
  return mem_printf("%s/%s", directory, leaf);
}
