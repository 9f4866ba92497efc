/* Changes of knobs: queued and checked when they are made, applied between two steps, whole or not at all. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "train/run_impl.h"

void changes_add(struct changes *c, uint64_t step, const struct knob_ref *ref, const char *text)
{
  if (c->n == c->cap) {
    c->cap = c->cap ? 2 * c->cap : 8;
    c->at = mem_realloc(c->at, c->cap * sizeof *c->at);
  }
  c->at[c->n++] = (struct change){.step = step, .ref = *ref, .text = mem_strdup(text)};
}

void changes_clear(struct changes *c)
{
  for (size_t i = 0; i < c->n; i++)
    mem_free(c->at[i].text);
  c->n = 0;
}

void changes_done(struct changes *c)
{
  changes_clear(c);
  mem_free(c->at);
  memset(c, 0, sizeof *c);
}

int run_set(struct run *r, const char *knob, const char *value, struct err *e)
{
  struct knob_ref ref;
  if (knob_find(knob, &ref, e))
    return -1;
  if (ref.id < KNOB_COUNT && knob_table[ref.id].when == KNOB_AT_START)
    return err_set(e, "%s is fixed once a run is made", knob_table[ref.id].name);
  if (r->queue.n >= QUEUE_MAX)
    return err_set(e, "%d changes wait for the next step already: %s = %.100s is one too many", QUEUE_MAX, knob, value);
  if (knobs_set(&r->next, &ref, value, e))
    return -1;
  changes_add(&r->queue, 0, &ref, value);
  return 0;
}

size_t run_n_queued(const struct run *r)
{
  return r->queue.n;
}

/* Those that stay were accepted in this order before. */
void run_unqueue(struct run *r, size_t n)
{
  while (r->queue.n > n)
    mem_free(r->queue.at[--r->queue.n].text);
  r->next = r->knobs;
  for (size_t i = 0; i < r->queue.n; i++)
    if (knobs_set(&r->next, &r->queue.at[i].ref, r->queue.at[i].text, NULL))
      die("%s: a change that was queued is refused now", r->name);
}

int run_get(const struct run *r, const char *knob, struct knob_value *out, struct err *e)
{
  struct knob_ref ref;
  if (knob_find(knob, &ref, e))
    return -1;
  knobs_get(&r->next, &ref, out);
  return 0;
}

int run_make_room(struct run *r, const struct knobs *k, struct err *e)
{
  size_t rows = (size_t)knob_int(k, KNOB_BATCH);
  if (rows < EVAL_ROWS)
    rows = EVAL_ROWS;
  if (rows <= r->batch.max_rows)
    return 0;
  struct batch_buffers b = {.max_rows = rows};
  b.x = mem_buffer(rows * r->model.n_inputs * sizeof *b.x, "the batch", e);
  b.labels = b.x ? mem_buffer(rows * sizeof *b.labels, "the batch's labels", e) : NULL;
  b.index = b.labels ? mem_buffer(rows * sizeof *b.index, "the batch's order", e) : NULL;
  struct batch_buffers old = b;
  int status = b.index ? graph_reserve(r->graph, rows, e) : -1;
  if (status == 0) {
    old = r->batch;
    r->batch = b;
  }
  mem_buffer_free(old.x);
  mem_buffer_free(old.labels);
  mem_buffer_free(old.index);
  return status;
}

/* One change and what it does, worked out before any of it is done. */
struct applied {
  const struct change *change;
  struct knob_value value, previous;
  bool counts; /* it changes something */
};

static bool same_knobs(const struct knobs *a, const struct knobs *b)
{
  for (int i = 0; i < KNOB_COUNT; i++)
    if (strcmp(a->at[i].text, b->at[i].text) != 0)
      return false;
  for (int s = 0; s < SITE_COUNT; s++)
    if (!spec_equal(&a->sites.at[s], &b->sites.at[s]))
      return false;
  return a->sites.share_act == b->sites.share_act && a->sites.share_weight == b->sites.share_weight;
}

struct plan {
  struct knobs knobs;
  struct applied *list;
  size_t n;
  uint64_t lr_batch;
  bool optimizer_set;
  struct optimizer optimizer; /* the new one, where it changes */
};

static int plan_changes(struct run *r, struct plan *p, struct err *e)
{
  p->knobs = r->knobs;
  p->lr_batch = r->at.lr_batch;
  for (size_t i = 0; i < r->queue.n; i++) {
    struct applied *a = &p->list[i];
    struct knobs before = p->knobs;
    a->change = &r->queue.at[i];
    knobs_get(&p->knobs, &a->change->ref, &a->previous);
    if (knobs_set(&p->knobs, &a->change->ref, a->change->text, e))
      return -1;
    knobs_get(&p->knobs, &a->change->ref, &a->value);
    /* setting lr again means it anew for the present batch, see train/schedule.h */
    uint64_t batch = (uint64_t)knob_int(&before, KNOB_BATCH);
    bool lr = a->change->ref.id == KNOB_LR;
    a->counts = !same_knobs(&before, &p->knobs) || (lr && p->lr_batch != batch);
    if (a->counts && (lr || a->change->ref.id == KNOB_LR_SCALING))
      p->lr_batch = batch;
    /* there and back at one boundary empties the moments as at two, so that a replay may gather boundaries */
    p->optimizer_set |= a->change->ref.id == KNOB_OPTIMIZER && strcmp(a->previous.text, a->value.text) != 0;
    p->n++;
  }
  return 0;
}

static int plan_resources(struct run *r, struct plan *p, struct err *e)
{
  const char *name = p->knobs.at[KNOB_OPTIMIZER].text;
  if (run_make_room(r, &p->knobs, e))
    return err_prefix(e, "batch = %s", p->knobs.at[KNOB_BATCH].text);
  if (p->optimizer_set && optimizer_init(&p->optimizer, name, r->graph, e))
    return err_prefix(e, "optimizer = %s", name);
  return 0;
}

static int write_changes(struct run *r, const struct plan *p, struct err *e)
{
  for (size_t i = 0; r->journal && !r->silent && i < p->n; i++) {
    const struct applied *a = &p->list[i];
    if (a->counts && journal_set(r->journal, r->at.step + 1, &a->change->ref, &a->value, &a->previous, e))
      return -1;
  }
  return 0;
}

static void tell_change(const struct run *r, const struct applied *a)
{
  char name[64], mark[96];
  knob_ref_name(&a->change->ref, name, sizeof name);
  if (a->change->ref.id < KNOB_COUNT)
    snprintf(mark, sizeof mark, "%s %.24s", name, a->value.text);
  else if (strcmp(a->change->ref.field, "format") == 0 || strcmp(a->change->ref.field, "rounding") == 0)
    snprintf(mark, sizeof mark, "%s %.24s", site_names[a->change->ref.site], a->value.text);
  else
    snprintf(mark, sizeof mark, "%s %s %.16s", site_names[a->change->ref.site], a->change->ref.field, a->value.text);
  if (strcmp(a->previous.text, a->value.text) == 0)
    run_tell(r, EVENT_SET, r->at.step + 1, mark, "%s %.200s", name, a->value.text);
  else
    run_tell(r, EVENT_SET, r->at.step + 1, mark, "%s %.200s -> %.200s", name, a->previous.text, a->value.text);
}

static void commit(struct run *r, struct plan *p)
{
  r->knobs = p->knobs;
  r->at.lr_batch = p->lr_batch;
  r->evaluated = false; /* with other specs of the forward pass it may be another result */
  if (p->optimizer.type) {
    optimizer_done(&r->optimizer);
    r->optimizer = p->optimizer;
    memset(&p->optimizer, 0, sizeof p->optimizer);
  }
  for (size_t i = 0; i < p->n; i++) {
    if (!p->list[i].counts)
      continue;
    struct change c = *p->list[i].change;
    c.step = r->at.step + 1;
    snapshots_note_change(r, &c);
    tell_change(r, &p->list[i]);
  }
  if (!r->silent)
    snapshots_thin(r);
}

/* A change that cannot be made (no memory) is dropped with all that was queued beside it, and the message says so;
 * one that cannot be journalled stays in the queue. */
int run_apply_changes(struct run *r, struct err *e)
{
  if (r->queue.n == 0)
    return 0;
  struct plan *p = mem_alloc(sizeof *p);
  p->list = mem_alloc(r->queue.n * sizeof *p->list);
  int status = 0;
  bool drop = true;
  if (plan_changes(r, p, e) || plan_resources(r, p, e)) {
    status = -1;
    r->next = r->knobs;
  } else if (write_changes(r, p, e)) {
    status = -1;
    drop = false;
  } else {
    commit(r, p);
  }
  optimizer_done(&p->optimizer);
  mem_free(p->list);
  mem_free(p);
  if (drop)
    changes_clear(&r->queue);
  return status;
}
