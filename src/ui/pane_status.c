/* What the run is and does: state, speed, knobs, memory. Fields stand in columns so that they keep their places while
 * their values change; a knob that was turned is marked for a while. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "ui/legend.h"
#include "ui/workbench.h"

#define FULL_W 26 /* a column with room for every knob's name */
#define LEAST_W 19
#define CHANGED_S 4 /* how long a turned knob is marked */
#define MAX_FIELDS 64

struct field {
  const char *label;
  char value[256];
  enum style style;
  bool wide; /* a row of its own */
};
struct fields {
  struct field at[MAX_FIELDS];
  int n;
  int n_first; /* rows of one column for what is to be seen without scrolling */
};

static struct field *add(struct fields *f, const char *label)
{
  struct field *at = &f->at[f->n < MAX_FIELDS - 1 ? f->n++ : f->n];
  *at = (struct field){.label = label, .style = STYLE_BOLD};
  return at;
}

static void add_si(struct fields *f, const char *label, double v, const char *unit)
{
  char text[16];
  struct field *at = add(f, label);
  snprintf(at->value, sizeof at->value, "%s%s", isnan(v) ? "-" : str_si(v, text), isnan(v) ? "" : unit);
}

static void add_bytes(struct fields *f, const char *label, size_t n)
{
  static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double v = (double)n;
  int i = 0;
  for (; v >= 1024 && i < 4; i++)
    v /= 1024;
  snprintf(add(f, label)->value, 32, v < 10 && i ? "%.1f %s" : "%.0f %s", v, unit[i]);
}

static void knob_text(const struct knobs *k, enum knob_id id, char *out, size_t n)
{
  struct knob_value v;
  knobs_get(k, &(struct knob_ref){.id = id}, &v);
  str_copy(out, n, v.text);
}

static void add_knob(struct workbench *wb, struct fields *f, enum knob_id id)
{
  struct field *at = add(f, knob_table[id].name);
  knob_text(&wb->status.knobs, id, at->value, sizeof at->value);
  if (wb->changed_at == 0 || clock_mono_s() - wb->changed_at > CHANGED_S)
    return;
  char before[256];
  knob_text(&wb->changed_from, id, before, sizeof before);
  if (strcmp(before, at->value) != 0)
    at->style = STYLE_MARK;
}

/* In the order of interest; the first six are what 80x24 shows. */
static const enum knob_id first_knobs[] = {KNOB_BITS,     KNOB_ROUNDING,     KNOB_BATCH,     KNOB_LR,
                                           KNOB_RECIPE,   KNOB_FORMAT,       KNOB_SCHEDULE,  KNOB_OPTIMIZER,
                                           KNOB_MOMENTUM, KNOB_WEIGHT_DECAY, KNOB_LR_SCALING};
static const enum knob_id later_knobs[] = {KNOB_EVAL_EVERY, KNOB_PROBE_EVERY, KNOB_SEED};
#define N_FIRST (sizeof first_knobs / sizeof *first_knobs)
#define N_LATER (sizeof later_knobs / sizeof *later_knobs)

static bool is_listed(enum knob_id id)
{
  for (size_t i = 0; i < N_FIRST; i++)
    if (first_knobs[i] == id)
      return true;
  for (size_t i = 0; i < N_LATER; i++)
    if (later_knobs[i] == id)
      return true;
  return id == KNOB_MODEL || id == KNOB_DATA;
}

static bool is_default(const struct knobs *k, enum knob_id id)
{
  struct knob_ref ref = {.id = id};
  struct knob_value usual, now;
  struct err e;
  knobs_get(k, &ref, &now);
  return knob_parse(&ref, knob_table[id].default_text, &usual, &e) == 0 && strcmp(now.text, usual.text) == 0;
}

/* After the first ones: the others that are not as usual. */
static void add_later_knobs(struct workbench *wb, struct fields *f)
{
  for (size_t i = 0; i < N_LATER; i++)
    add_knob(wb, f, later_knobs[i]);
  for (int id = 0; id < KNOB_COUNT; id++)
    if (!is_listed((enum knob_id)id) && !is_default(&wb->status.knobs, (enum knob_id)id))
      add_knob(wb, f, (enum knob_id)id);
}

/* "~/x" for what is in the home directory. */
static void add_path(struct fields *f, const char *label, const char *path)
{
  const char *home = getenv("HOME");
  struct field *at = add(f, label);
  at->wide = true;
  at->style = STYLE_NORMAL;
  size_t n = home ? strlen(home) : 0;
  if (n > 1 && strncmp(path, home, n) == 0 && path[n] == '/')
    snprintf(at->value, sizeof at->value, "~%s", path + n);
  else
    str_copy(at->value, sizeof at->value, *path ? path : "none");
}

static void gather(struct workbench *wb, struct fields *f)
{
  const struct run_status *s = &wb->status;
  const struct run_memory *m = &s->memory;
  snprintf(add(f, "step")->value, 32, "%llu", (unsigned long long)s->step);
  snprintf(add(f, "epoch")->value, 32, "%.2f", s->epoch);
  add_si(f, "speed", s->metric[METRIC_SAMPLES_PER_S], "/s");
  double accuracy = s->metric[METRIC_EVAL_ACCURACY];
  snprintf(add(f, "accuracy")->value, 32, isnan(accuracy) ? "-" : "%.2f %%", 100 * accuracy);
  for (size_t i = 0; i < N_FIRST; i++)
    add_knob(wb, f, first_knobs[i]);
  if (s->steps_left && s->steps_left != ENGINE_FOREVER)
    add_si(f, "left", (double)s->steps_left, " steps");
  add_si(f, "weights", (double)s->n_weights, "");
  add_bytes(f, "memory", m->weights + m->gradients + m->optimizer + m->activations + m->snapshots);
  add_path(f, "journal", s->journal);
  f->n_first = f->n + 2; /* the journal's name takes three rows of a narrow column */
  add_later_knobs(wb, f);
  add_si(f, "examples", (double)s->examples, "");
  add_bytes(f, "snapshots", m->snapshots);
}

static const struct {
  const char *text;
  enum style style;
} states[] = {
    [ENGINE_IDLE] = {"idle", STYLE_DIM},       [ENGINE_RUNNING] = {"running", STYLE_GOOD},
    [ENGINE_PAUSED] = {"paused", STYLE_MARK},  [ENGINE_DIVERGED] = {"DIVERGED", STYLE_ERROR},
    [ENGINE_FAILED] = {"FAILED", STYLE_ERROR},
};

static void draw_field(struct workbench *wb, const struct field *f, struct rect cell)
{
  struct grid *g = &wb->grid;
  int label_w = cell.w >= FULL_W - 1 ? 13 : 9;
  grid_text_max(g, cell.x, cell.y, label_w < cell.w ? label_w : cell.w, f->label, STYLE_DIM);
  legend_text(g, cell.x + label_w + 1, cell.y, cell.w - label_w - 1, f->value, f->style, wb->glyphs);
}

/* A long value over as many rows as it takes, at most to the row `end`; returns the next row. */
static int draw_wide_field(struct workbench *wb, const struct field *f, struct rect cell, int end)
{
  struct field part = *f;
  int w = cell.w >= FULL_W - 1 ? cell.w - 14 : cell.w - 10;
  const char *s = f->value;
  do {
    const char *from = s;
    for (int n = 0; *s && n < w; n++)
      cell_decode(&s);
    snprintf(part.value, sizeof part.value, "%.*s", (int)(s - from), from);
    draw_field(wb, &part, cell);
    part.label = "";
    cell.y++;
  } while (*s && w > 0 && cell.y < end);
  return cell.y;
}

/* Wide columns with full names where what matters fits then, else narrow ones. */
static int count_columns(const struct fields *f, struct rect r)
{
  int full = r.w / FULL_W > 1 ? r.w / FULL_W : 1, least = r.w / LEAST_W > 1 ? r.w / LEAST_W : 1;
  return (f->n_first + full - 1) / full <= r.h ? full : least;
}

/* Row-major; a wide field begins a row of its own. */
static void draw_fields(struct workbench *wb, const struct fields *f, int columns, struct rect r)
{
  int w = r.w / columns, column = 0, y = r.y;
  for (int i = wb->back[PANE_STATUS] * columns; i < f->n && y < r.y + r.h; i++) {
    if (f->at[i].wide) {
      y += column > 0;
      column = 0;
      if (y < r.y + r.h)
        y = draw_wide_field(wb, &f->at[i], (struct rect){r.x, y, r.w, 1}, r.y + r.h);
      continue;
    }
    draw_field(wb, &f->at[i], (struct rect){r.x + column * w, y, w - (column + 1 < columns), 1});
    column = (column + 1) % columns;
    y += column == 0;
  }
}

void pane_status_draw(struct workbench *wb, enum pane_id which, struct rect r)
{
  const struct run_status *s = &wb->status;
  if (!wb->run_id) {
    struct rect rest = pane_title(wb, which, r, "status", wb->lua.opening ? "loading ..." : "no run", STYLE_DIM);
    if (!wb->lua.opening && rest.h > 0)
      grid_text_max(&wb->grid, rest.x, rest.y, rest.w, "bd.run { model = \"mlp\" } makes one", STYLE_DIM);
    return;
  }
  struct rect rest = pane_title(wb, which, r, s->name, states[s->state].text, states[s->state].style);
  /* what it trains, at the right end of the title */
  char what[128];
  snprintf(what, sizeof what, " %s · %s", s->model, s->data);
  int w = legend_text_width(what, wb->glyphs), used = (int)strlen(s->name) + (int)strlen(states[s->state].text) + 3;
  if (used + w <= r.w)
    legend_text(&wb->grid, r.x + r.w - w, r.y, w, what, STYLE_DIM, wb->glyphs);
  struct fields f = {.n = 0};
  gather(wb, &f);
  int columns = count_columns(&f, rest), rows = (f.n + columns - 1) / columns + 2;
  int most = rows > rest.h ? rows - rest.h : 0;
  if (wb->back[which] > most)
    wb->back[which] = most;
  draw_fields(wb, &f, columns, rest);
}
