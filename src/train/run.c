/* A run from its making to its end, and what it tells about itself. */
#include "config.h"

#include "train/run.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/str.h"
#include "tensor/gemm.h"
#include "train/run_impl.h"

const struct metric_info metric_table[METRIC_COUNT] = {
#define METRIC(id, metric_name, metric_unit, log, text)                                                                \
  {.name = (metric_name), .unit = (metric_unit), .log_axis = (log), .help = (text)},
#include "train/metric.def"
#undef METRIC
};

/* The knob `threads` says how many; a pool that is given is used where it fits. The knob then holds the real number. */
static int choose_pool(struct run *r, struct pool *given, struct err *e)
{
  struct knob_value *v = &r->knobs.at[KNOB_THREADS];
  int wanted = (int)v->i;
  if (!wanted)
    wanted = given ? pool_threads(given) : cpu_count();
  if (wanted > POOL_MAX)
    wanted = POOL_MAX;
  if (given && pool_threads(given) == wanted) {
    r->pool = given;
  } else {
    r->own_pool = r->pool = pool_create(wanted, e);
    if (!r->pool)
      return -1;
  }
  v->i = wanted;
  snprintf(v->text, sizeof v->text, "%d", wanted);
  return 0;
}

static int check_fit(const struct run *r, struct err *e)
{
  size_t n_in = dataset_n_inputs(r->data), n_classes = dataset_n_classes(r->data);
  if (r->model.n_inputs != n_in)
    return err_set(e, "model %s takes %zu inputs but a sample of %s has %zu values", r->model.name, r->model.n_inputs,
                   dataset_name(r->data), n_in);
  if (r->model.n_outputs < n_classes)
    return err_set(e, "model %s has %zu outputs but %s has %zu classes", r->model.name, r->model.n_outputs,
                   dataset_name(r->data), n_classes);
  return 0;
}

static int build(struct run *r, const struct run_config *c, struct err *e)
{
  uint64_t seed = (uint64_t)knob_int(&r->knobs, KNOB_SEED);
  if (choose_pool(r, c->pool, e))
    return -1;
  r->data = dataset_open(r->knobs.at[KNOB_DATA].text, seed, e);
  if (!r->data || check_fit(r, e))
    return -1;
  r->sampler = sampler_create(dataset_size(r->data, SPLIT_TRAIN), seed, e);
  if (!r->sampler)
    return -1;
  r->graph = graph_create(&r->model, seed, 1, e);
  if (!r->graph || run_make_room(r, &r->knobs, e) ||
      optimizer_init(&r->optimizer, r->knobs.at[KNOB_OPTIMIZER].text, r->graph, e))
    return -1;
  r->n_before = (size_t)graph_n_layers(r->graph) * SITE_COUNT;
  r->before = mem_alloc(r->n_before * sizeof *r->before);
  return 0;
}

struct run *run_create_quiet(const struct run_config *c, struct err *e)
{
  gemm_init();
  struct run *r = mem_alloc(sizeof *r);
  str_copy(r->name, sizeof r->name, c->name ? c->name : "run");
  desc_copy(&r->model, c->model);
  r->knobs = *c->knobs;
  r->sink = c->sink;
  r->at.lr_batch = (uint64_t)knob_int(&r->knobs, KNOB_BATCH);
  for (int m = 0; m < METRIC_COUNT; m++)
    r->metric[m] = NAN;
  if (build(r, c, e)) {
    r->finished = true;
    run_free(r);
    return NULL;
  }
  r->next = r->knobs;
  return r;
}

int run_open_journal(struct run *r, const char *path, const struct run_start *start, struct err *e)
{
  if (!path)
    return 0;
  r->journal = journal_create(path, r, start, e);
  if (!r->journal)
    return -1;
  r->journal_path = mem_strdup(path);
  return 0;
}

struct run *run_create(const struct run_config *c, struct err *e)
{
  struct run *r = run_create_quiet(c, e);
  if (!r)
    return NULL;
  if (run_open_journal(r, c->journal_path, NULL, e)) {
    r->finished = true;
    run_free(r);
    return NULL;
  }
  if (knob_int(&r->knobs, KNOB_SNAPSHOT_EVERY))
    snapshots_take(r);
  return r;
}

int run_finish(struct run *r, const char *reason, struct err *e)
{
  char hash[33];
  int status = 0;
  if (r->finished)
    return 0;
  r->finished = true;
  if (r->journal) {
    run_weights_hash(r, hash);
    status = journal_end(r->journal, r, reason, hash, e);
    /* Closing tries once more to write what is left; its own message matters only if there is none yet. */
    if (journal_close(r->journal, status ? NULL : e))
      status = -1;
    r->journal = NULL;
  }
  run_tell(r, EVENT_END, r->at.step, NULL, "%s after %llu steps", reason, (unsigned long long)r->at.step);
  return status;
}

void run_free(struct run *r)
{
  if (!r)
    return;
  (void)!run_finish(r, "stopped", NULL); /* whoever cares for the journal's last words calls run_finish() */
  (void)!journal_close(r->journal, NULL);
  snapshots_clear(r);
  changes_done(&r->snapshots.history);
  changes_done(&r->queue);
  for (size_t i = 0; i < r->n_before; i++)
    quant_state_done(&r->before[i]);
  mem_free(r->before);
  optimizer_done(&r->optimizer);
  mem_buffer_free(r->batch.x);
  mem_buffer_free(r->batch.labels);
  mem_buffer_free(r->batch.index);
  graph_free(r->graph);
  sampler_free(r->sampler);
  dataset_free(r->data);
  pool_free(r->own_pool);
  desc_done(&r->model);
  mem_free(r->journal_path);
  mem_free(r);
}

void run_tell(const struct run *r, enum event_kind kind, uint64_t step, const char *mark, const char *fmt, ...)
{
  if (!r->sink.event || r->silent)
    return;
  char text[512];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  r->sink.event(r->sink.ctx, r, kind, step, r->at.examples, text, mark);
}

int run_flush(struct run *r, struct err *e)
{
  return r->journal ? journal_flush(r->journal, e) : 0;
}

uint64_t run_n_steps(const struct run *r)
{
  return r->at.step;
}

uint64_t run_n_examples(const struct run *r)
{
  return r->at.examples;
}

double run_epoch(const struct run *r)
{
  return (double)r->at.examples / (double)dataset_size(r->data, SPLIT_TRAIN);
}

double run_metric(const struct run *r, enum metric m)
{
  return r->metric[m];
}

double run_seconds(const struct run *r)
{
  return r->seconds;
}

const char *run_name(const struct run *r)
{
  return r->name;
}

const struct knobs *run_knobs(const struct run *r)
{
  return &r->knobs;
}

const struct knobs *run_next_knobs(const struct run *r)
{
  return &r->next;
}

struct graph *run_graph(struct run *r)
{
  return r->graph;
}

const struct dataset *run_dataset(const struct run *r)
{
  return r->data;
}

const struct model_desc *run_model(const struct run *r)
{
  return &r->model;
}

const char *run_journal_path(const struct run *r)
{
  return r->journal_path;
}

void run_weights_hash(struct run *r, char hex[33])
{
  hash_buffer(graph_weights(r->graph), graph_n_weights(r->graph) * sizeof(float), hex);
}

uint64_t run_target_steps(const struct run *r)
{
  uint64_t steps = (uint64_t)knob_int(&r->next, KNOB_STEPS);
  double epochs = knob_real(&r->next, KNOB_EPOCHS);
  if (steps || epochs <= 0)
    return steps;
  double batch = (double)knob_int(&r->next, KNOB_BATCH);
  double left = epochs * (double)dataset_size(r->data, SPLIT_TRAIN) - (double)r->at.examples;
  return r->at.step + (left > 0 ? (uint64_t)ceil(left / batch) : 0);
}

void run_set_sink(struct run *r, const struct run_sink *s)
{
  r->sink = *s;
}

struct run_memory run_memory(const struct run *r)
{
  struct graph_memory m = graph_memory(r->graph);
  return (struct run_memory){
      .weights = m.weights,
      .gradients = m.gradients,
      .optimizer = optimizer_bytes(&r->optimizer),
      .activations = m.activations + m.scratch,
      .snapshots = r->snapshots.n_bytes,
  };
}
