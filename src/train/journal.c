/* Writing the journal. */
#include "config.h"

#include "train/journal.h"

#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "numeric/quantize.h"
#include "tensor/gemm.h"
#include "train/record.h"
#include "train/run_impl.h"

struct journal {
  struct line_file *file;
  struct jsonl line;
};

static struct jsonl *begin(struct journal *j, const char *kind)
{
  jsonl_begin(&j->line);
  jsonl_str(&j->line, "kind", kind);
  return &j->line;
}

static int end(struct journal *j, struct err *e)
{
  return line_file_write(j->file, jsonl_end(&j->line), e);
}

/* A line that people wait for: it is in the file when this returns. */
static int end_now(struct journal *j, struct err *e)
{
  return end(j, e) || line_file_flush(j->file, e) ? -1 : 0;
}

/* What the machine adds to the result: with the same facts the same journal gives the same bits. */
static void add_machine(struct jsonl *o, const struct run *r)
{
  jsonl_int(o, "threads", pool_threads(r->pool));
  jsonl_str(o, "isa", quantize_isa());
  jsonl_str(o, "blas", gemm_config());
  jsonl_str(o, "blas_core", gemm_core_type());
  jsonl_bool(o, "native", false);
  jsonl_str(o, "rng", "philox4x32");
  jsonl_int(o, "rng_rounds", RNG_SITE_ROUNDS);
}

static void add_data(struct jsonl *o, const struct run *r)
{
  struct jsonl data = {0};
  jsonl_begin(&data);
  jsonl_str(&data, "name", dataset_name(r->data));
  jsonl_str(&data, "hash", dataset_hash(r->data));
  jsonl_int(&data, "train", (int64_t)dataset_size(r->data, SPLIT_TRAIN));
  jsonl_int(&data, "test", (int64_t)dataset_size(r->data, SPLIT_TEST));
  jsonl_raw(o, "data", jsonl_end(&data));
  jsonl_done(&data);
}

static void add_start(struct jsonl *o, const struct run_start *s)
{
  struct jsonl start = {0};
  jsonl_begin(&start);
  jsonl_str(&start, "from", s->from);
  jsonl_int(&start, "step", (int64_t)s->step);
  jsonl_str(&start, "path", s->path);
  jsonl_str(&start, "hash", s->path ? s->hash : NULL);
  jsonl_raw(o, "start", jsonl_end(&start));
  jsonl_done(&start);
}

static int write_header(struct journal *j, struct run *r, const struct run_start *start, struct err *e)
{
  char now[32];
  struct str text = {0};
  struct jsonl *o = begin(j, "header");
  clock_utc(now, sizeof now);
  jsonl_int(o, "version", JOURNAL_VERSION);
  jsonl_str(o, "program", PACKAGE_STRING);
  jsonl_str(o, "time", now);
  jsonl_str(o, "name", r->name);
  jsonl_int(o, "seed", knob_int(&r->knobs, KNOB_SEED));
  add_machine(o, r);
  add_data(o, r);
  record_model(&text, &r->model);
  jsonl_raw(o, "model", text.s);
  str_clear(&text);
  record_knobs(&text, &r->knobs);
  jsonl_raw(o, "knobs", text.s);
  str_clear(&text);
  record_sites(&text, &r->knobs.sites);
  jsonl_raw(o, "sites", text.s);
  str_done(&text);
  jsonl_int(o, "micro_batch", knob_int(&r->knobs, KNOB_BATCH)); /* a batch is computed in one piece */
  jsonl_int(o, "weights", (int64_t)graph_n_weights(r->graph));
  if (start)
    add_start(o, start);
  if (end(j, e))
    return -1;
  (void)!line_file_flush(j->file, NULL); /* a full disk shows again at a step, when there is something to save */
  return 0;
}

struct journal *journal_create(const char *path, struct run *r, const struct run_start *start, struct err *e)
{
  struct line_file *file = line_file_create(path, e);
  if (!file)
    return NULL;
  struct journal *j = mem_alloc(sizeof *j);
  j->file = file;
  if (write_header(j, r, start, e) == 0)
    return j;
  (void)!journal_close(j, NULL); /* the first message is the one that tells */
  return NULL;
}

int journal_close(struct journal *j, struct err *e)
{
  if (!j)
    return 0;
  int status = line_file_close(j->file, e);
  jsonl_done(&j->line);
  mem_free(j);
  return status;
}

int journal_flush(struct journal *j, struct err *e)
{
  return line_file_flush(j->file, e);
}

int journal_step(struct journal *j, const struct run *r, const struct journal_step *s, struct err *e)
{
  size_t batch = (size_t)knob_int(&r->knobs, KNOB_BATCH);
  uint64_t examples = r->at.examples + batch;
  struct jsonl *o = begin(j, "step");
  jsonl_int(o, "step", (int64_t)r->at.step + 1);
  jsonl_real(o, "epoch", (double)examples / (double)dataset_size(r->data, SPLIT_TRAIN));
  jsonl_int(o, "examples", (int64_t)examples);
  jsonl_real(o, "loss", s->loss);
  const struct grad_variance *v = s->variance;
  if (v) {
    jsonl_real(o, "grad_variance", v->total);
    jsonl_real(o, "var_data", v->data);
    jsonl_real(o, "var_quant", v->quant);
    jsonl_real(o, "var_a", v->a);
    jsonl_real(o, "var_g", v->g);
    jsonl_real(o, "var_ag", v->ag);
  }
  jsonl_real(o, "grad_norm", s->grad_norm);
  jsonl_real(o, "lr", s->lr);
  jsonl_int(o, "batch", (int64_t)batch);
  jsonl_real(o, "samples_per_s", s->samples_per_s);
  return end(j, e);
}

int journal_set(struct journal *j, uint64_t step, const struct knob_ref *k, const struct knob_value *value,
                const struct knob_value *previous, struct err *e)
{
  char name[64];
  struct str v = {0}, p = {0};
  knob_ref_name(k, name, sizeof name);
  record_value(&v, value);
  record_value(&p, previous);
  struct jsonl *o = begin(j, "set");
  jsonl_int(o, "step", (int64_t)step);
  jsonl_str(o, "knob", name);
  jsonl_raw(o, "value", v.s);
  jsonl_raw(o, "previous", p.s);
  str_done(&v);
  str_done(&p);
  return end_now(j, e);
}

int journal_eval(struct journal *j, const struct run *r, double loss, double accuracy, struct err *e)
{
  struct jsonl *o = begin(j, "eval");
  jsonl_int(o, "step", (int64_t)r->at.step);
  jsonl_real(o, "epoch", run_epoch(r));
  jsonl_str(o, "split", "test");
  jsonl_real(o, "loss", loss);
  jsonl_real(o, "accuracy", accuracy);
  return end_now(j, e);
}

int journal_end(struct journal *j, const struct run *r, const char *reason, const char *weights_hash, struct err *e)
{
  char now[32];
  clock_utc(now, sizeof now);
  struct jsonl *o = begin(j, "end");
  jsonl_int(o, "step", (int64_t)r->at.step);
  jsonl_str(o, "reason", reason);
  jsonl_str(o, "weights_hash", weights_hash);
  jsonl_str(o, "time", now);
  return end_now(j, e);
}

struct jsonl *journal_event(struct journal *j, uint64_t step, const char *name)
{
  struct jsonl *o = begin(j, "event");
  jsonl_int(o, "step", (int64_t)step);
  jsonl_str(o, "name", name);
  return o;
}

int journal_event_end(struct journal *j, struct err *e)
{
  return end_now(j, e);
}
