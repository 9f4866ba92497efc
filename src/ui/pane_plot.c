/* The two plots: which series, which span, which marks. */
#include "config.h"

#include <math.h>

#include "ui/workbench.h"

const double smooth_steps[] = {0, 0.6, 0.9, 0.97};
const int n_smooth_steps = sizeof smooth_steps / sizeof *smooth_steps;

static const struct plot_row {
  enum pane_id pane;
  enum metric metric;
  const char *label;
  int color;
  int min_w; /* columns of the pane from which on it is shown */
} rows[] = {
    /* drawn in this order: the later over the earlier */
    {PANE_LOSS, METRIC_LOSS, "train", 0, 0},
    {PANE_LOSS, METRIC_EVAL_LOSS, "held out", 1, 0},
    {PANE_VARIANCE, METRIC_VAR_A, "a", 3, 76},
    {PANE_VARIANCE, METRIC_VAR_G, "g", 4, 76},
    {PANE_VARIANCE, METRIC_VAR_DATA, "data", 0, 0},
    {PANE_VARIANCE, METRIC_VAR_QUANT, "quant", 1, 0},
    {PANE_VARIANCE, METRIC_GRAD_VARIANCE, "total", 2, 0},
};
#define N_ROWS (sizeof rows / sizeof *rows)

/* The last x of any series that both plots show. */
static double newest_x(const struct workbench *wb, const struct store_run *r, double *oldest)
{
  double last = -INFINITY;
  *oldest = INFINITY;
  for (size_t i = 0; i < N_ROWS; i++) {
    const struct series *s = r->series[wb->x_unit][rows[i].metric];
    size_t n = s ? series_n_blocks(s) : 0;
    if (n == 0)
      continue;
    last = fmax(last, series_block(s, n - 1)->x1);
    *oldest = fmin(*oldest, series_block(s, 0)->x0);
  }
  return last;
}

/* The span when zoomed or frozen; its end moves by 16ths of its length, so that the picture stands still in between. */
static void set_span(struct workbench *wb, const struct store_run *r, struct plot *p)
{
  double first, last = newest_x(wb, r, &first);
  if (!(last > first) || (wb->zoom == 0 && !wb->frozen))
    return;
  if (wb->frozen)
    last = fmin(last, wb->frozen_to[wb->x_unit]);
  double all = exp2(ceil(log2(fmax(last - first, 1)))), span = ldexp(all, -wb->zoom);
  p->x1 = ceil(last / (span / 16)) * (span / 16);
  p->x0 = wb->zoom == 0 ? fmin(first, 0) : fmax(p->x1 - span, fmin(first, 0));
}

void pane_plot_draw(struct workbench *wb, enum pane_id which, struct rect r)
{
  struct store_run *run = store_find(&wb->store, wb->run_id);
  struct plot_series series[N_ROWS];
  const struct plot_view *view = &wb->view[which];
  struct plot p = {
      .title = which == PANE_LOSS ? "loss" : "gradient variance",
      .x_label = wb->x_unit == X_EXAMPLES ? "examples" : "steps",
      .series = series,
      .log_y = view->log_y,
      .smooth = smooth_steps[view->smooth],
      .focus = wb->focus == which,
      .glyphs = wb->glyphs,
  };
  for (size_t i = 0; i < N_ROWS; i++) {
    const struct plot_row *row = &rows[i];
    struct series *s = run ? run->series[wb->x_unit][row->metric] : NULL;
    if (row->pane != which || r.w < row->min_w || (row->min_w > 0 && !s))
      continue;
    series[p.n_series++] = (struct plot_series){s, row->label, row->color};
  }
  if (run) {
    p.mark = run->mark[wb->x_unit];
    p.n_marks = run->n_marks;
    set_span(wb, run, &p);
  }
  plot_draw(&p, &wb->grid, r);
}
