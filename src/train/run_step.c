/* One training step. First what is queued of knobs takes effect, all of it or nothing; that stays, whatever becomes of
 * the step. Then nothing changes before it is known that the step can be done and is journalled: the sampler, the
 * scales' histories, the weights and the moments move together or not at all. */
#include "config.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "probe/variance.h"
#include "train/run_impl.h"
#include "train/schedule.h"

/* Samples a thread gathers at least. */
#define GATHER_GRAIN 32
/* Time over which the speed is averaged. */
#define RATE_S 1.0

struct gather_job {
  struct run *r;
};

static void gather_range(void *ctx, size_t begin, size_t end, int worker)
{
  struct run *r = ((struct gather_job *)ctx)->r;
  (void)worker;
  dataset_gather(r->data, SPLIT_TRAIN, r->batch.index + begin, end - begin, r->batch.x + begin * r->model.n_inputs,
                 r->batch.labels + begin);
}

/* Examples that the schedule spans; 0: no end. With `steps`, those seen plus those to come at the present batch. */
static double schedule_length(const struct run *r)
{
  uint64_t steps = (uint64_t)knob_int(&r->knobs, KNOB_STEPS);
  double batch = (double)knob_int(&r->knobs, KNOB_BATCH);
  if (!steps)
    return knob_real(&r->knobs, KNOB_EPOCHS) * (double)dataset_size(r->data, SPLIT_TRAIN);
  double left = steps > r->at.step ? (double)(steps - r->at.step) : 0;
  return (double)r->at.examples + left * batch;
}

static double step_lr(struct run *r)
{
  const struct knobs *k = &r->knobs;
  double batch = (double)knob_int(k, KNOB_BATCH), length = schedule_length(r);
  const char *schedule = k->at[KNOB_SCHEDULE].text;
  if (length == 0 && !r->told_no_end && strcmp(schedule, "constant") != 0) {
    r->told_no_end = true;
    run_tell(r, EVENT_NOTE, r->at.step, NULL, "schedule %s needs a length (epochs or steps): lr stays constant",
             schedule);
  }
  double f = schedule_factor(schedule, knob_real(k, KNOB_WARMUP), (double)r->at.examples, batch, length);
  return knob_real(k, KNOB_LR) * f * lr_scaling_factor(k->at[KNOB_LR_SCALING].text, batch, (double)r->at.lr_batch);
}

/* What a step works out before anything is changed. */
struct step {
  double loss, grad_norm, lr;
  bool measured;
  struct grad_variance variance;
  double started, seconds;
};

static bool probe_due(const struct run *r)
{
  uint64_t every = (uint64_t)knob_int(&r->knobs, KNOB_PROBE_EVERY);
  return every && (r->at.step + 1) % every == 0;
}

/* Forward and backward. Returns whether loss and gradient are finite. */
static bool compute(struct run *r, struct step *s)
{
  size_t batch = (size_t)knob_int(&r->knobs, KNOB_BATCH);
  struct gather_job job = {r};
  s->measured = probe_due(r) && !r->silent;
  struct pass p = {
      .sites = &r->knobs.sites,
      .seed = (uint64_t)knob_int(&r->knobs, KNOB_SEED),
      .step = r->at.step,
      .stream = RNG_SITE,
      .global_batch = batch,
      .want_sums = s->measured,
      .pool = r->pool,
  };
  sampler_next(r->sampler, batch, r->batch.index);
  pool_for(r->pool, batch, GATHER_GRAIN, gather_range, &job);
  s->loss = graph_forward(r->graph, &p, r->batch.x, r->batch.labels, batch).loss;
  s->grad_norm = NAN;
  if (!isfinite(s->loss))
    return false;
  graph_backward(r->graph, &p);
  s->grad_norm = sqrt(graph_gradient_norm2(r->graph, r->pool));
  if (s->measured)
    s->variance = variance_of_graph(r->graph, batch);
  return isfinite(s->grad_norm);
}

static void undo(struct run *r)
{
  quant_states_scatter(r->before, r->graph);
  graph_weights_changed(r->graph); /* quantized copies were made with the scales of this attempt */
  sampler_seek(r->sampler, r->at.examples);
}

static int journal_diverged(struct run *r, const struct step *s, const struct graph_fault *f, struct err *e)
{
  if (!r->journal || r->silent)
    return 0;
  struct jsonl *o = journal_event(r->journal, r->at.step + 1, "diverged");
  jsonl_real(o, "loss", s->loss);
  jsonl_real(o, "grad_norm", s->grad_norm);
  jsonl_str(o, "layer", f->layer_name);
  jsonl_str(o, "site", f->site);
  return journal_event_end(r->journal, e);
}

static enum step_result diverged(struct run *r, const struct step *s, struct err *e)
{
  struct graph_fault f = {0};
  unsigned long long step = r->at.step + 1;
  bool found = graph_find_fault(r->graph, &f), loss_bad = !isfinite(s->loss);
  const char *what = loss_bad ? "the loss" : "the gradient";
  const char *value = isnan(loss_bad ? s->loss : s->grad_norm) ? "NaN" : "infinite";
  undo(r);
  if (found)
    err_set(e, "step %llu diverged: %s is %s; the first bad value is in layer %s at site %s", step, what, value,
            f.layer_name, f.site);
  else
    err_set(e, "step %llu diverged: %s is %s, too large for fp32", step, loss_bad ? what : "the gradient's norm",
            value);
  struct err lost;
  if (journal_diverged(r, s, &f, &lost))
    run_tell(r, EVENT_NOTE, r->at.step, NULL, "%s", lost.msg);
  if (found)
    run_tell(r, EVENT_DIVERGED, step, "diverged", "%s is %s in layer %s at site %s; weights are those before step %llu",
             what, value, f.layer_name, f.site, step);
  else
    run_tell(r, EVENT_DIVERGED, step, "diverged", "%s is %s; weights are those before step %llu", what, value, step);
  return STEP_DIVERGED;
}

static void update_weights(struct run *r, const struct step *s)
{
  const struct knobs *k = &r->knobs;
  struct optimizer_args a = {
      .lr = (float)s->lr,
      .momentum = (float)knob_real(k, KNOB_MOMENTUM),
      .beta1 = (float)knob_real(k, KNOB_BETA1),
      .beta2 = (float)knob_real(k, KNOB_BETA2),
      .eps = (float)knob_real(k, KNOB_EPS),
      .weight_decay = (float)knob_real(k, KNOB_WEIGHT_DECAY),
      .nesterov = k->at[KNOB_NESTEROV].b,
  };
  struct optimizer_rng rng = {(uint64_t)knob_int(k, KNOB_SEED), r->at.step};
  optimizer_step(&r->optimizer, r->graph, &a, &k->sites, &rng, r->pool);
}

/* Averages the speed of about the last second; in the first second, of all there was. */
static void update_rate(struct run *r, const struct step *s)
{
  double dt = s->seconds, keep = exp(-dt / RATE_S);
  r->seconds += dt;
  r->rate_samples = r->rate_samples * keep + (double)knob_int(&r->knobs, KNOB_BATCH);
  r->rate_seconds = r->rate_seconds * keep + dt;
}

static double rate(const struct run *r)
{
  return r->rate_seconds > 0 ? r->rate_samples / r->rate_seconds : NAN;
}

static int journal_this_step(struct run *r, const struct step *s, struct err *e)
{
  struct journal_step line = {
      .loss = s->loss,
      .grad_norm = s->grad_norm,
      .lr = s->lr,
      .samples_per_s = rate(r),
      .variance = s->measured ? &s->variance : NULL,
  };
  return r->journal && !r->silent ? journal_step(r->journal, r, &line, e) : 0;
}

static void publish(struct run *r, const struct step *s)
{
  const struct grad_variance *v = &s->variance;
  const struct {
    enum metric m;
    bool known;
    double value;
  } values[] = {
      {METRIC_LOSS, true, s->loss},
      {METRIC_GRAD_VARIANCE, s->measured, v->total},
      {METRIC_VAR_DATA, s->measured, v->data},
      {METRIC_VAR_QUANT, s->measured, v->quant},
      {METRIC_VAR_A, s->measured, v->a},
      {METRIC_VAR_G, s->measured, v->g},
      {METRIC_VAR_AG, s->measured, v->ag},
      {METRIC_GRAD_NORM, true, s->grad_norm},
      {METRIC_LR, true, s->lr},
      {METRIC_SAMPLES_PER_S, !r->silent, rate(r)},
  };
  for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
    if (!values[i].known)
      continue;
    r->metric[values[i].m] = values[i].value;
    if (r->sink.metric && !r->silent)
      r->sink.metric(r->sink.ctx, r, values[i].m, r->at.step, r->at.examples, values[i].value);
  }
}

/* Behind the step: nothing here can undo it. A journal that is full shows again at the next step, before it begins. */
static void after_step(struct run *r, uint64_t examples_before)
{
  struct err e;
  if (run_evaluate_due(r, examples_before, &e))
    run_tell(r, EVENT_NOTE, r->at.step, NULL, "%s", e.msg);
  snapshots_due(r);
}

static enum step_result do_step(struct run *r, struct err *e)
{
  struct step s = {.started = clock_mono_s()};
  quant_states_gather(r->before, r->graph);
  s.lr = step_lr(r);
  if (!compute(r, &s))
    return diverged(r, &s, e);
  if (!r->silent) {
    /* the optimizer's time is known after the line is written: it goes to the next step's account */
    s.seconds = clock_mono_s() - s.started + r->seconds_carried;
    update_rate(r, &s);
  }
  if (journal_this_step(r, &s, e)) {
    undo(r);
    return STEP_FAILED;
  }
  double update_began = clock_mono_s();
  update_weights(r, &s);
  r->seconds_carried = clock_mono_s() - update_began;
  uint64_t examples_before = r->at.examples;
  r->at.step++;
  r->at.examples = sampler_position(r->sampler);
  r->evaluated = false;
  publish(r, &s);
  if (!r->silent)
    after_step(r, examples_before);
  return STEP_OK;
}

enum step_result run_step(struct run *r, struct err *e)
{
  if (r->finished) {
    err_set(e, "%s is finished: its journal is closed", r->name);
    return STEP_FAILED;
  }
  if (run_apply_changes(r, e))
    return STEP_FAILED;
  return do_step(r, e);
}

enum step_result run_step_silently(struct run *r, struct err *e)
{
  bool was = r->silent;
  r->silent = true;
  enum step_result result = run_apply_changes(r, e) ? STEP_FAILED : do_step(r, e);
  r->silent = was;
  return result;
}
