/* Going elsewhere in a run's life: saving and loading files, going back to an earlier step, forking a second run. Each
 * is journalled, so that a replay goes the same way. */
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "train/run_impl.h"

int run_save(struct run *r, const char *path, struct err *e)
{
  if (state_file_save(r, path, e))
    return -1;
  run_tell(r, EVENT_SNAPSHOT, r->at.step, NULL, "saved %s", path);
  return 0;
}

/* -- loading */

static int journal_load(struct run *r, const char *path, uint64_t to, const char *hash, struct err *e)
{
  if (!r->journal)
    return 0;
  char *absolute = realpath(path, NULL); /* of libc: free()d, not mem_free()d */
  struct jsonl *o = journal_event(r->journal, to, "load");
  jsonl_int(o, "from", (int64_t)r->at.step);
  jsonl_str(o, "path", absolute ? absolute : path);
  jsonl_str(o, "hash", hash);
  free(absolute);
  return journal_event_end(r->journal, e);
}

int run_load(struct run *r, const char *path, struct err *e)
{
  struct state s;
  struct optimizer fresh;
  char hash[33];
  bool whole;
  if (r->finished)
    return err_set(e, "%s is finished", r->name);
  if (state_file_hash(path, hash, e) || state_file_read(r, path, &s, &whole, e))
    return -1;
  if (state_prepare(r, &s, &fresh, e) || journal_load(r, path, s.at.step, hash, e)) {
    optimizer_done(&fresh);
    state_done(&s);
    return -1;
  }
  uint64_t from = r->at.step;
  state_commit(r, &s, &fresh);
  state_done(&s);
  snapshots_clear(r);
  if (knob_int(&r->knobs, KNOB_SNAPSHOT_EVERY))
    snapshots_take(r);
  if (whole)
    run_tell(r, EVENT_REWIND, r->at.step, "load", "loaded %s: step %" PRIu64 " -> %" PRIu64, path, from, r->at.step);
  else
    run_tell(r, EVENT_REWIND, r->at.step, "load", "loaded weights from %s", path);
  return 0;
}

/* -- rewinding */

struct way_back {
  uint64_t step; /* where it leads */
  run_stop *stop;
  void *ctx;
};

/* Repeats the steps up to the one wanted with the changes that were made then. */
static int repeat_until(struct run *r, const struct way_back *w, struct err *e)
{
  const struct changes *h = &r->snapshots.history;
  size_t next = 0;
  while (r->at.step < w->step) {
    uint64_t now = r->at.step + 1;
    if (w->stop && w->stop(w->ctx, now))
      return err_set(e, "interrupted while step %" PRIu64 " was repeated on the way to %" PRIu64, now, w->step);
    while (next < h->n && h->at[next].step < now)
      next++;
    for (; next < h->n && h->at[next].step == now; next++) {
      char name[64];
      knob_ref_name(&h->at[next].ref, name, sizeof name);
      if (run_set(r, name, h->at[next].text, e))
        return -1;
    }
    if (run_step_silently(r, e) != STEP_OK)
      return err_prefix(e, "repeating step %" PRIu64, now);
  }
  return 0;
}

static int journal_rewind(struct run *r, uint64_t from, struct err *e)
{
  if (!r->journal)
    return 0;
  struct jsonl *o = journal_event(r->journal, r->at.step, "rewind");
  jsonl_int(o, "from", (int64_t)from);
  return journal_event_end(r->journal, e);
}

/* The present state and the queue are kept aside until all is done, so that a failure leaves the run as it was. */
static int go_back(struct run *r, const struct state *s, const struct way_back *w, struct err *e)
{
  struct state present;
  uint64_t from = r->at.step;
  if (state_capture(r, &present, e))
    return -1;
  struct changes queue = r->queue;
  struct knobs next = r->next;
  memset(&r->queue, 0, sizeof r->queue);
  int status = state_restore(r, s, e) || repeat_until(r, w, e) || journal_rewind(r, from, e) ? -1 : 0;
  struct err lost;
  if (status && state_restore(r, &present, &lost))
    die("%s: %s, and the state before it cannot be restored: %s", r->name, e ? e->msg : "rewind failed", lost.msg);
  state_done(&present);
  if (status) {
    changes_done(&r->queue);
    r->queue = queue;
    r->next = next;
  } else {
    changes_done(&queue);
  }
  return status;
}

int run_rewind(struct run *r, uint64_t step, struct err *e)
{
  return run_rewind_unless(r, step, NULL, NULL, e);
}

int run_rewind_unless(struct run *r, uint64_t step, run_stop *stop, void *ctx, struct err *e)
{
  const struct way_back way = {step, stop, ctx};
  uint64_t from = r->at.step;
  if (r->finished)
    return err_set(e, "%s is finished", r->name);
  if (step > from)
    return err_set(e, "cannot go back to step %" PRIu64 ": only %" PRIu64 " are done", step, from);
  const struct state *s = snapshots_find(r, step);
  if (!s && r->snapshots.n)
    return err_set(e, "no snapshot leads to step %" PRIu64 ": the earliest that is kept is of step %" PRIu64, step,
                   r->snapshots.at[0]->at.step);
  if (!s)
    return err_set(e, "no snapshot is kept: see snapshot_every and snapshot_mb");
  if (go_back(r, s, &way, e))
    return -1;
  snapshots_cut(r, step);
  run_tell(r, EVENT_REWIND, step, "rewind", "rewind: step %" PRIu64 " -> %" PRIu64, from, step);
  return 0;
}

/* -- forking */

static int copy_state(struct run *to, struct run *from, struct err *e)
{
  struct state s;
  if (state_capture(from, &s, e))
    return -1;
  for (int i = 0; i < KNOB_COUNT; i++)
    if (knob_table[i].when == KNOB_AT_START)
      s.knobs.at[i] = to->knobs.at[i];
  int status = state_restore(to, &s, e);
  state_done(&s);
  for (size_t i = 0; status == 0 && i < from->queue.n; i++) {
    char name[64];
    knob_ref_name(&from->queue.at[i].ref, name, sizeof name);
    status = run_set(to, name, from->queue.at[i].text, e);
  }
  return status;
}

/* A journal that another run writes keeps its state file too: asked before ours would take that one's place. */
static int check_journal_free(const char *path, struct err *e)
{
  struct stat st;
  if (stat(path, &st) != 0 || !S_ISREG(st.st_mode))
    return 0;
  struct line_file *f = line_file_create(path, e);
  return f ? line_file_close(f, e) : -1;
}

/* The state is kept in a file beside the journal: without it the journal could not be replayed. */
static int begin_journal(struct run *f, const struct run *from, const char *path, struct err *e)
{
  struct run_start start = {.step = f->at.step, .from = from->name};
  if (!path)
    return 0;
  if (check_journal_free(path, e))
    return -1;
  char *file = strcmp(path, "-") == 0 ? NULL : mem_printf("%s.start.safetensors", path);
  if (file && (state_file_save(f, file, e) || state_file_hash(file, start.hash, e))) {
    mem_free(file);
    return -1;
  }
  char *absolute = file ? realpath(file, NULL) : NULL;
  start.path = absolute ? absolute : file;
  int status = run_open_journal(f, path, &start, e);
  if (status && file)
    unlink(file);
  free(absolute);
  mem_free(file);
  return status;
}

static void tell_fork(struct run *r, const struct run *f)
{
  struct run_memory m = run_memory(f);
  char size[16];
  str_si((double)(m.weights + m.gradients + m.optimizer + m.activations + m.snapshots), size);
  run_tell(r, EVENT_FORK, r->at.step, "fork", "fork %s at step %" PRIu64 ": takes %sB", f->name, r->at.step, size);
  if (!r->journal)
    return;
  struct err e;
  struct jsonl *o = journal_event(r->journal, r->at.step, "fork");
  jsonl_str(o, "run", f->name);
  if (journal_event_end(r->journal, &e))
    run_tell(r, EVENT_NOTE, r->at.step, NULL, "%s", e.msg);
}

struct run *run_fork(struct run *r, const struct run_config *c, struct err *e)
{
  struct run_config config = *c;
  struct knobs k = r->knobs;
  str_copy(k.at[KNOB_DATA].text, sizeof k.at[KNOB_DATA].text, dataset_name(r->data)); /* "auto" as it was resolved */
  config.model = &r->model;
  config.knobs = &k;
  struct run *f = run_create_quiet(&config, e);
  if (!f)
    return NULL;
  if (copy_state(f, r, e) || begin_journal(f, r, c->journal_path, e)) {
    f->finished = true;
    run_free(f);
    return NULL;
  }
  f->snapshots.history_from = f->at.step;
  if (knob_int(&f->knobs, KNOB_SNAPSHOT_EVERY))
    snapshots_take(f);
  tell_fork(r, f);
  return f;
}
