/* Repeating a journal: its header makes the run, its lines are followed one by one. */
#include "config.h"

#include "train/replay.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "numeric/quantize.h"
#include "tensor/gemm.h"
#include "train/record.h"
#include "train/run_impl.h"

struct replay {
  const char *path;
  uint64_t to_step;
  bool (*progress)(void *ctx, uint64_t step, double loss);
  void *ctx;
  struct replay_result *result;
  struct run *run;
  bool stop; /* reached to_step, or can go no further */
};

/* -- the header */

static void add_note(struct replay_result *r, const char *what, const char *then, const char *now)
{
  size_t n = strlen(r->note);
  if (strcmp(then, now) != 0)
    snprintf(r->note + n, sizeof r->note - n, "%s%s %.80s then, %.80s now", n ? "; " : "", what, then, now);
}

/* What may make the bits differ although nothing is wrong. */
static void compare_machines(struct replay *p, const json_t *h)
{
  char rounds[16];
  snprintf(rounds, sizeof rounds, "%d", RNG_SITE_ROUNDS);
  const struct {
    const char *key, *what, *now;
  } facts[] = {{"program", "program", PACKAGE_STRING},
               {"isa", "quantizers", quantize_isa()},
               {"blas_core", "BLAS core", gemm_core_type()},
               {"blas", "BLAS", gemm_config()},
               {"rng", "generator", "philox4x32"},
               {"rng_rounds", "generator rounds", rounds}};
  for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
    char then[256];
    const json_t *v = json_object_get(h, facts[i].key);
    if (v && record_value_text(v, then, sizeof then, NULL) == 0)
      add_note(p->result, facts[i].what, then, facts[i].now);
  }
}

static int set_text(struct knobs *k, enum knob_id id, const char *text, struct err *e)
{
  return knob_parse(&(struct knob_ref){.id = id}, text, &k->at[id], e);
}

/* The knobs of the header, with what they stood for then: the data that "auto" was, the threads that there were. */
static int read_knobs(const json_t *h, struct knobs *k, struct err *e)
{
  char number[32];
  uint64_t threads;
  const char *data = record_text(json_object_get(h, "data"), "name", e);
  if (!data || record_int(h, "threads", &threads, e))
    return -1;
  if (record_read_knobs(json_object_get(h, "knobs"), json_object_get(h, "sites"), k, e))
    return -1;
  snprintf(number, sizeof number, "%" PRIu64, threads);
  return set_text(k, KNOB_THREADS, number, e) || set_text(k, KNOB_DATA, data, e) ? -1 : 0;
}

/* A file that the journal names: where it was, or beside the journal. Checks that it is still the same. Caller
 * mem_free()s. */
static char *find_file(const struct replay *p, const json_t *o, struct err *e)
{
  char hex[33];
  const char *path = record_text(o, "path", NULL), *hash = record_text(o, "hash", NULL);
  if (!path || !hash) {
    err_set(e, "the state that it began with was not kept: it cannot be repeated");
    return NULL;
  }
  char *found = mem_strdup(path);
  const char *slash = strrchr(p->path, '/'), *leaf = strrchr(path, '/');
  if (access(found, R_OK) != 0) {
    mem_free(found);
    found = mem_printf("%.*s%s", slash ? (int)(slash - p->path + 1) : 0, p->path, leaf ? leaf + 1 : path);
  }
  if (state_file_hash(found, hex, e) == 0 && strcmp(hex, hash) == 0)
    return found;
  if (access(found, R_OK) == 0)
    err_set(e, "%s is not the file that was loaded then: its contents differ", found);
  else
    err_set(e, "%s, which was loaded then, is not there", path);
  mem_free(found);
  return NULL;
}

static int load_start(struct replay *p, const json_t *start, struct err *e)
{
  if (!json_is_object(start))
    return 0;
  char *path = find_file(p, start, e);
  int status = path ? run_load(p->run, path, e) : -1;
  mem_free(path);
  return status;
}

static int read_header(struct replay *p, const json_t *h, struct err *e)
{
  struct knobs k;
  struct model_desc d;
  uint64_t version;
  if (record_int(h, "version", &version, e))
    return -1;
  if (version != JOURNAL_VERSION)
    return err_set(e, "it is of version %" PRIu64 "; this program reads %d", version, JOURNAL_VERSION);
  const char *hash = record_text(json_object_get(h, "data"), "hash", e);
  if (!hash || read_knobs(h, &k, e) || record_read_model(json_object_get(h, "model"), &d, e))
    return -1;
  compare_machines(p, h);
  const char *name = json_string_value(json_object_get(h, "name"));
  p->run = run_create(&(struct run_config){.model = &d, .knobs = &k, .name = name ? name : "replay"}, e);
  desc_done(&d);
  if (!p->run)
    return -1;
  p->run->no_evals = true;
  if (strcmp(hash, dataset_hash(run_dataset(p->run))) != 0)
    return err_set(e, "the data %s is not what it was then: its contents differ", dataset_name(run_dataset(p->run)));
  return load_start(p, json_object_get(h, "start"), e);
}

/* -- lines */

static int follow_set(struct replay *p, const json_t *o, struct err *e)
{
  char text[256];
  uint64_t step;
  const char *knob = record_text(o, "knob", e);
  if (!knob || record_int(o, "step", &step, e) || record_value_text(json_object_get(o, "value"), text, sizeof text, e))
    return -1;
  if (step > p->to_step) {
    p->stop = true;
    return 0;
  }
  if (step != run_n_steps(p->run) + 1)
    return err_set(e, "a change at step %" PRIu64 " stands after step %" PRIu64, step, run_n_steps(p->run));
  return run_set(p->run, knob, text, e);
}

static int follow_step(struct replay *p, const json_t *o, struct err *e)
{
  uint64_t step;
  double want;
  if (record_int(o, "step", &step, e) || record_real(o, "loss", &want, e))
    return -1;
  if (step > p->to_step) {
    p->stop = true;
    return 0;
  }
  if (step != run_n_steps(p->run) + 1)
    return err_set(e, "step %" PRIu64 " stands after step %" PRIu64 ": lines are missing", step, run_n_steps(p->run));
  enum step_result result = run_step(p->run, e);
  if (result == STEP_FAILED)
    return -1;
  p->stop = result == STEP_DIVERGED; /* it did not then */
  double got = result == STEP_OK ? run_metric(p->run, METRIC_LOSS) : 0;
  if ((result == STEP_DIVERGED || got != want) && !p->result->first_mismatch)
    p->result->first_mismatch = step;
  if (result == STEP_OK)
    p->result->n_steps++;
  if (p->progress && !p->progress(p->ctx, step, got))
    return err_set(e, "interrupted");
  return 0;
}

/* A rewind may repeat many steps: whoever stops the replay stops it there too. */
static bool stop_rewind(void *ctx, uint64_t step)
{
  struct replay *p = ctx;
  return p->progress && !p->progress(p->ctx, step, NAN);
}

static int follow_event(struct replay *p, const json_t *o, struct err *e)
{
  uint64_t step;
  const char *name = record_text(o, "name", e);
  if (!name || record_int(o, "step", &step, e))
    return -1;
  if (strcmp(name, "rewind") == 0)
    return run_rewind_unless(p->run, step, stop_rewind, p, e);
  if (strcmp(name, "load") != 0)
    return 0;
  char *path = find_file(p, o, e);
  int status = path ? run_load(p->run, path, e) : -1;
  mem_free(path);
  return status;
}

static int follow_end(struct replay *p, const json_t *o, struct err *e)
{
  uint64_t step;
  const char *hash = record_text(o, "weights_hash", e);
  if (!hash || record_int(o, "step", &step, e))
    return -1;
  if (step != run_n_steps(p->run))
    return err_set(e, "the end at step %" PRIu64 " stands after step %" PRIu64 ": lines are missing", step,
                   run_n_steps(p->run));
  p->result->has_end = true;
  str_copy(p->result->want_hash, sizeof p->result->want_hash, hash);
  return 0;
}

static int follow(struct replay *p, const json_t *o, struct err *e)
{
  static const struct {
    const char *kind;
    int (*fn)(struct replay *p, const json_t *o, struct err *e);
  } kinds[] = {{"set", follow_set}, {"step", follow_step}, {"event", follow_event}, {"end", follow_end}};
  const char *kind = record_text(o, "kind", e);
  if (!kind)
    return -1;
  bool header = strcmp(kind, "header") == 0;
  if (!p->run)
    return header ? read_header(p, o, e) : err_set(e, "it does not begin with a header");
  if (header)
    return err_set(e, "a second header: two journals in one file?");
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (strcmp(kinds[i].kind, kind) == 0)
      return kinds[i].fn(p, o, e);
  return 0; /* evaluations and probes decide nothing */
}

/* A last line without its end is what a killed process leaves: it is not there. */
static int follow_lines(struct replay *p, FILE *f, struct err *e)
{
  char *line = NULL; /* of getline(): free()d, not mem_free()d */
  size_t cap = 0;
  ssize_t n;
  int status = 0;
  for (int number = 1; !p->stop && (n = getline(&line, &cap, f)) > 0 && line[n - 1] == '\n'; number++) {
    json_error_t why;
    json_t *o = json_loadb(line, (size_t)n, JSON_REJECT_DUPLICATES, &why);
    status = o ? follow(p, o, e) : err_set(e, "%s", number == 1 ? "not a journal of bitdial" : why.text);
    json_decref(o);
    if (status) {
      err_prefix(e, "%s:%d", p->path, number);
      break;
    }
  }
  int bad = ferror(f);
  free(line);
  if (status == 0 && bad)
    return err_set(e, "%s: cannot be read", p->path);
  if (status == 0 && !p->run)
    return err_set(e, "%s: empty or without a whole line: not a journal of bitdial", p->path);
  return status;
}

int replay_journal(const char *path, uint64_t to_step, bool (*progress)(void *ctx, uint64_t step, double loss),
                   void *ctx, struct replay_result *out, struct err *e)
{
  struct replay p = {.path = path, .to_step = to_step, .progress = progress, .ctx = ctx, .result = out};
  memset(out, 0, sizeof *out);
  FILE *f = fopen(path, "r");
  if (!f)
    return err_set(e, "%s: %s", path, strerror(errno));
  int status = follow_lines(&p, f, e);
  fclose(f);
  if (p.run) {
    run_weights_hash(p.run, out->got_hash);
    out->same_hash = out->has_end && strcmp(out->got_hash, out->want_hash) == 0;
    p.run->finished = true;
    run_free(p.run);
  }
  return status;
}
