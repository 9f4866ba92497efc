/* What the workbench leaves on the normal screen. */
#include "config.h"

#include <math.h>

#include "base/mem.h"
#include "ui/workbench.h"

#define PLOT_W 78
#define PLOT_H 11

static void add_metric(struct str *out, const struct run_status *s, enum metric m, const char *label, double factor,
                       const char *unit)
{
  if (!isnan(s->metric[m]))
    str_addf(out, "  %s %.4g%s", label, factor * s->metric[m], unit);
}

static void add_plot(struct workbench *wb, const struct run_status *s, struct str *out)
{
  const struct store_run *r = store_find(&wb->store, s->run_id);
  if (!r || !r->series[X_EXAMPLES][METRIC_LOSS])
    return;
  struct plot_series series[] = {{r->series[X_EXAMPLES][METRIC_LOSS], "train", 0},
                                 {r->series[X_EXAMPLES][METRIC_EVAL_LOSS], "held out", 1}};
  struct plot p = {.title = "loss",
                   .x_label = "examples",
                   .series = series,
                   .n_series = series[1].series ? 2 : 1,
                   .mark = r->mark[X_EXAMPLES],
                   .n_marks = r->n_marks,
                   .glyphs = wb->glyphs};
  struct grid g = {0};
  grid_resize(&g, PLOT_W, PLOT_H);
  plot_draw(&p, &g, (struct rect){0, 0, PLOT_W, PLOT_H});
  char *text = grid_dump(&g);
  str_add(out, text);
  mem_free(text);
  grid_done(&g);
}

void summary_add(struct workbench *wb, const struct run_status *s, struct str *out)
{
  static const char *const state[] = {[ENGINE_IDLE] = "stands still",
                                      [ENGINE_RUNNING] = "stopped",
                                      [ENGINE_PAUSED] = "stopped while paused",
                                      [ENGINE_DIVERGED] = "diverged",
                                      [ENGINE_FAILED] = "failed"};
  if (s->run_id == wb->run_id)
    add_plot(wb, s, out);
  str_addf(out, "%s: %s on %s, %llu steps, %.2f epochs, %s\n", s->name, s->model, s->data, (unsigned long long)s->step,
           s->epoch, state[s->state]);
  struct str metrics = {0};
  add_metric(&metrics, s, METRIC_LOSS, "loss", 1, "");
  add_metric(&metrics, s, METRIC_EVAL_LOSS, "held out", 1, "");
  add_metric(&metrics, s, METRIC_EVAL_ACCURACY, "accuracy", 100, " %");
  if (metrics.n)
    str_addf(out, "%s\n", metrics.s);
  str_done(&metrics);
  if (*s->journal)
    str_addf(out, "  journal %s\n  repeat it with: bitdial replay %s\n", s->journal, s->journal);
}
