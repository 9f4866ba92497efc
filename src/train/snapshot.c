/* Automatic snapshots in memory, and the changes of knobs made since the first of them: what rewind() needs.
 *
 * They stay within snapshot_mb. When one too many is there, the one goes whose loss opens the smallest gap relative to
 * its age, so that their spacing grows with age; the first and the newest stay as long as two fit. */
#include "config.h"

#include <string.h>

#include "base/mem.h"
#include "train/run_impl.h"

static size_t budget(const struct run *r)
{
  return (size_t)knob_int(&r->knobs, KNOB_SNAPSHOT_MB) << 20;
}

static void remove_at(struct snapshots *s, size_t i)
{
  s->n_bytes -= s->at[i]->n_bytes;
  state_done(s->at[i]);
  mem_free(s->at[i]);
  s->n--;
  memmove(&s->at[i], &s->at[i + 1], (s->n - i) * sizeof *s->at);
}

/* `next` is the step of a snapshot that is about to be added, or 0. */
static size_t least_useful(const struct snapshots *s, uint64_t next)
{
  uint64_t now = next ? next : s->at[s->n - 1]->at.step;
  size_t end = next ? s->n : s->n - 1; /* the newest stays */
  double least = 0;
  size_t found = 0; /* where there is nothing between first and newest: the first */
  for (size_t i = 1; i < end; i++) {
    uint64_t after = i + 1 < s->n ? s->at[i + 1]->at.step : next;
    double gap = (double)(after - s->at[i - 1]->at.step);
    double cost = gap / (double)(now - s->at[i]->at.step + 1);
    if (!found || cost < least) {
      least = cost;
      found = i;
    }
  }
  return found;
}

void snapshots_thin(struct run *r)
{
  struct snapshots *s = &r->snapshots;
  while (s->n && s->n_bytes > budget(r))
    remove_at(s, least_useful(s, 0));
}

void snapshots_take(struct run *r)
{
  struct snapshots *s = &r->snapshots;
  struct err e;
  size_t need = state_bytes(r);
  if (need > budget(r)) {
    if (!s->told_too_big)
      run_tell(r, EVENT_NOTE, r->at.step, NULL, "no automatic snapshots: one takes %zu MiB, snapshot_mb is %s",
               (need >> 20) + 1, r->knobs.at[KNOB_SNAPSHOT_MB].text);
    s->told_too_big = true;
    return;
  }
  if (s->n && s->at[s->n - 1]->at.step == r->at.step)
    return;
  while (s->n && (s->n == SNAPSHOTS_MAX || s->n_bytes + need > budget(r)))
    remove_at(s, least_useful(s, r->at.step));
  struct state *new = mem_alloc(sizeof *new);
  if (state_capture(r, new, &e)) {
    run_tell(r, EVENT_NOTE, r->at.step, NULL, "no snapshot: %s", e.msg);
    mem_free(new);
    return;
  }
  s->at[s->n] = new;
  s->n_bytes += s->at[s->n]->n_bytes;
  s->n++;
}

void snapshots_due(struct run *r)
{
  uint64_t every = (uint64_t)knob_int(&r->knobs, KNOB_SNAPSHOT_EVERY);
  if (every && r->at.step % every == 0) {
    snapshots_take(r);
    run_tell(r, EVENT_SNAPSHOT, r->at.step, NULL, "snapshot at step %llu", (unsigned long long)r->at.step);
  }
}

void snapshots_note_change(struct run *r, const struct change *c)
{
  struct changes *h = &r->snapshots.history;
  if (r->silent)
    return;
  if (h->n == HISTORY_MAX) { /* drops the older half, whole steps of it */
    size_t drop = HISTORY_MAX / 2;
    uint64_t last = h->at[drop - 1].step;
    while (drop < h->n && h->at[drop].step == last)
      drop++;
    for (size_t i = 0; i < drop; i++)
      mem_free(h->at[i].text);
    h->n -= drop;
    memmove(h->at, h->at + drop, h->n * sizeof *h->at);
    r->snapshots.history_from = last;
  }
  changes_add(h, c->step, &c->ref, c->text);
}

void snapshots_cut(struct run *r, uint64_t step)
{
  struct snapshots *s = &r->snapshots;
  while (s->n && s->at[s->n - 1]->at.step > step)
    remove_at(s, s->n - 1);
  while (s->history.n && s->history.at[s->history.n - 1].step > step)
    mem_free(s->history.at[--s->history.n].text);
}

void snapshots_clear(struct run *r)
{
  struct snapshots *s = &r->snapshots;
  while (s->n)
    remove_at(s, s->n - 1);
  changes_clear(&s->history);
  s->history_from = r->at.step;
}

const struct state *snapshots_find(const struct run *r, uint64_t step)
{
  const struct snapshots *s = &r->snapshots;
  for (size_t i = s->n; i-- > 0;)
    if (s->at[i]->at.step <= step)
      return s->at[i]->at.step == step || s->at[i]->at.step >= s->history_from ? s->at[i] : NULL;
  return NULL;
}
