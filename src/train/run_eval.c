/* Evaluation on the held-out split. It rounds to nearest and takes no random numbers, so it moves nothing that training
 * reads. */
#include "config.h"

#include <math.h>

#include "train/run_impl.h"

static double evaluate_rows(struct run *r, size_t first, size_t n, size_t *n_correct)
{
  struct batch_buffers *b = &r->batch;
  struct pass p = {
      .sites = &r->knobs.sites,
      .seed = (uint64_t)knob_int(&r->knobs, KNOB_SEED),
      .stream = RNG_PROBE,
      .global_batch = n,
      .evaluate = true,
      .pool = r->pool,
  };
  for (size_t i = 0; i < n; i++)
    b->index[i] = (uint32_t)(first + i);
  dataset_gather(r->data, SPLIT_TEST, b->index, n, b->x, b->labels);
  struct loss_result l = graph_forward(r->graph, &p, b->x, b->labels, n);
  *n_correct += l.n_correct;
  return l.loss * (double)n;
}

static void publish(struct run *r, uint64_t step)
{
  const struct {
    enum metric m;
    double value;
  } values[] = {{METRIC_EVAL_LOSS, r->eval_loss}, {METRIC_EVAL_ACCURACY, r->eval_accuracy}};
  for (int i = 0; i < 2; i++) {
    r->metric[values[i].m] = values[i].value;
    if (r->sink.metric && !r->silent)
      r->sink.metric(r->sink.ctx, r, values[i].m, step, r->at.examples, values[i].value);
  }
  run_tell(r, EVENT_EVAL, step, NULL, "held-out loss %.4f, accuracy %.2f %%", r->eval_loss, 100 * r->eval_accuracy);
}

/* Chunks as large as the smallest that run_make_room() ever reserves. */
int run_evaluate(struct run *r, double *loss, double *accuracy, struct err *e)
{
  size_t n = dataset_size(r->data, SPLIT_TEST), n_correct = 0, rows = EVAL_ROWS;
  double sum = 0;
  int status = 0;
  if (n == 0)
    return err_set(e, "%s has no held-out split to evaluate on", dataset_name(r->data));
  if (!r->evaluated) {
    for (size_t first = 0; first < n; first += rows)
      sum += evaluate_rows(r, first, n - first < rows ? n - first : rows, &n_correct);
    r->eval_loss = sum / (double)n;
    r->eval_accuracy = (double)n_correct / (double)n;
    r->evaluated = true;
    publish(r, r->at.step);
    if (r->journal)
      status = journal_eval(r->journal, r, r->eval_loss, r->eval_accuracy, e);
  }
  *loss = r->eval_loss;
  *accuracy = r->eval_accuracy;
  return status;
}

int run_evaluate_due(struct run *r, uint64_t examples_before, struct err *e)
{
  uint64_t every = (uint64_t)knob_int(&r->knobs, KNOB_EVAL_EVERY);
  size_t n_train = dataset_size(r->data, SPLIT_TRAIN);
  bool epoch_end = examples_before / n_train != r->at.examples / n_train;
  double loss, accuracy;
  if (r->silent || r->no_evals || dataset_size(r->data, SPLIT_TEST) == 0)
    return 0;
  if (!epoch_end && (every == 0 || r->at.step % every != 0))
    return 0;
  return run_evaluate(r, &loss, &accuracy, e);
}
