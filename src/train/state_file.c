/* A state as a safetensors file: the weights under the parameters' names, so that anything can read them; moments as
 * optimizer.momentN.NAME; what quantizers carry as quant.*; and one metadata entry with the rest as JSON. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/str.h"
#include "io/safetensors.h"
#include "train/record.h"
#include "train/run_impl.h"

#define METADATA_KEY "bitdial"
#define STATE_VERSION 1
#define N_HISTORY (sizeof((struct quant_state *)0)->history / sizeof(float))

/* -- names of the quantizers' states */

static void model_state_name(struct run *r, size_t i, char *out, size_t n_bytes)
{
  snprintf(out, n_bytes, "quant.%s.%s", graph_layer_name(r->graph, (int)(i / SITE_COUNT)), site_names[i % SITE_COUNT]);
}

static void optimizer_state_name(struct run *r, size_t i, char *out, size_t n_bytes)
{
  const char *param = graph_param(r->graph, i / OPTIMIZER_SITES)->name;
  size_t k = i % OPTIMIZER_SITES;
  if (k == 0)
    snprintf(out, n_bytes, "quant.%s.update", param);
  else
    snprintf(out, n_bytes, "quant.%s.state%zu", param, k);
}

typedef void state_namer(struct run *r, size_t i, char *out, size_t n_bytes);

/* -- writing */

struct tensor_list {
  struct st_tensor *at;
  size_t n, cap;
  float *history; /* room for the packed histories, one after the other */
  size_t n_histories;
};

static void add_tensor(struct tensor_list *l, char *name, int rank, const size_t *shape, const void *data)
{
  if (l->n == l->cap) {
    l->cap = l->cap ? 2 * l->cap : 32;
    l->at = mem_realloc(l->at, l->cap * sizeof *l->at);
  }
  struct st_tensor *t = &l->at[l->n++];
  *t = (struct st_tensor){.name = name, .dtype = "F32", .rank = rank, .data = data};
  memcpy(t->shape, shape, (size_t)rank * sizeof *shape);
}

static void list_done(struct tensor_list *l)
{
  for (size_t i = 0; i < l->n; i++)
    mem_free((char *)l->at[i].name);
  mem_free(l->at);
  mem_free(l->history);
}

static void add_params(struct tensor_list *l, struct run *r, const struct state *s)
{
  size_t n = graph_n_weights(r->graph);
  for (int m = 0; m <= s->optimizer->n_moments; m++)
    for (size_t i = 0; i < graph_n_params(r->graph); i++) {
      const struct param *p = graph_param(r->graph, i);
      char *name = m ? mem_printf("optimizer.moment%d.%s", m, p->name) : mem_strdup(p->name);
      add_tensor(l, name, p->rank, p->shape, s->block + (size_t)m * n + p->offset);
    }
}

/* A history is its absmaxes and, last, how many there have been. */
static void add_quant_states(struct tensor_list *l, struct run *r, const struct quant_state *q, size_t n,
                             state_namer *name_of)
{
  const size_t length = N_HISTORY + 1;
  for (size_t i = 0; i < n; i++) {
    char name[160];
    name_of(r, i, name, sizeof name);
    if (q[i].n_history) {
      float *h = l->history + l->n_histories++ * length;
      memcpy(h, q[i].history, sizeof q[i].history);
      h[N_HISTORY] = (float)q[i].n_history;
      add_tensor(l, mem_printf("%s.history", name), 1, &length, h);
    }
    if (q[i].n_residual)
      add_tensor(l, mem_printf("%s.residual", name), 1, &q[i].n_residual, q[i].residual);
  }
}

static void write_metadata(struct str *out, struct run *r, const struct state *s)
{
  struct jsonl o = {0};
  struct str text = {0};
  jsonl_begin(&o);
  jsonl_int(&o, "version", STATE_VERSION);
  jsonl_str(&o, "program", PACKAGE_STRING);
  jsonl_int(&o, "step", (int64_t)s->at.step);
  jsonl_int(&o, "examples", (int64_t)s->at.examples);
  jsonl_int(&o, "lr_batch", (int64_t)s->at.lr_batch);
  jsonl_str(&o, "optimizer", s->optimizer->name);
  jsonl_int(&o, "optimizer_steps", (int64_t)s->optimizer_t);
  jsonl_int(&o, "seed", knob_int(&s->knobs, KNOB_SEED));
  jsonl_int(&o, "threads", pool_threads(r->pool));
  jsonl_str(&o, "data", dataset_name(r->data));
  jsonl_str(&o, "data_hash", dataset_hash(r->data));
  record_model(&text, &r->model);
  jsonl_raw(&o, "model", text.s);
  str_clear(&text);
  record_knobs(&text, &s->knobs);
  jsonl_raw(&o, "knobs", text.s);
  str_clear(&text);
  record_sites(&text, &s->knobs.sites);
  jsonl_raw(&o, "sites", text.s);
  str_done(&text);
  str_add(out, jsonl_end(&o));
  jsonl_done(&o);
}

int state_file_save(struct run *r, const char *path, struct err *e)
{
  struct state s;
  struct tensor_list l = {0};
  struct str meta = {0};
  if (state_capture(r, &s, e))
    return -1;
  l.history = mem_alloc((s.n_model_state + s.n_optimizer_state + 1) * (N_HISTORY + 1) * sizeof(float));
  add_params(&l, r, &s);
  add_quant_states(&l, r, s.model_state, s.n_model_state, model_state_name);
  add_quant_states(&l, r, s.optimizer_state, s.n_optimizer_state, optimizer_state_name);
  write_metadata(&meta, r, &s);
  const char *pair[2] = {METADATA_KEY, meta.s};
  int status = safetensors_save(path, l.at, l.n, pair, 1, e);
  str_done(&meta);
  list_done(&l);
  state_done(&s);
  return status;
}

int state_file_hash(const char *path, char hex[33], struct err *e)
{
  struct stat st;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO would keep open() waiting for its writer */
  if (fd < 0)
    return err_set(e, "%s: %s", path, strerror(errno));
  if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) { /* /dev/zero has no end */
    close(fd);
    return err_set(e, "%s: not a regular file", path);
  }
  FILE *f = fdopen(fd, "rb");
  if (!f) {
    close(fd);
    return err_set(e, "%s: %s", path, strerror(errno));
  }
  char *buffer = mem_alloc(1 << 16);
  struct hash *h = hash_create();
  size_t n;
  while ((n = fread(buffer, 1, 1 << 16, f)) > 0)
    hash_add(h, buffer, n);
  hash_finish(h, hex);
  int bad = ferror(f);
  mem_free(buffer);
  fclose(f);
  return bad ? err_set(e, "%s: cannot be read", path) : 0;
}

/* -- reading */

static void shape_text(int rank, const size_t *shape, struct str *out)
{
  for (int i = 0; i < rank; i++)
    str_addf(out, "%s%zu", i ? "x" : "", shape[i]);
  if (rank == 0)
    str_add(out, "a scalar");
}

static int read_tensor(const struct st_file *f, const char *name, int rank, const size_t *shape, float *to,
                       struct err *e)
{
  const struct st_tensor *t = safetensors_find(f, name);
  size_t n = 1;
  if (!t)
    return err_set(e, "it has no tensor \"%s\"", name);
  if (strcmp(t->dtype, "F32") != 0)
    return err_set(e, "tensor \"%s\" is of type %s; F32 is needed", name, t->dtype);
  bool same = t->rank == rank;
  for (int i = 0; i < rank && same; i++) {
    same = t->shape[i] == shape[i];
    n *= shape[i];
  }
  if (!same) {
    struct str is = {0}, want = {0};
    shape_text(t->rank, t->shape, &is);
    shape_text(rank, shape, &want);
    err_set(e, "tensor \"%s\" is %s; this model's is %s", name, is.s, want.s);
    str_done(&is);
    str_done(&want);
    return -1;
  }
  memcpy(to, t->data, n * sizeof *to);
  return 0;
}

static int read_params(struct run *r, const struct st_file *f, struct state *s, int n_moments, struct err *e)
{
  size_t n = graph_n_weights(r->graph);
  for (int m = 0; m <= n_moments; m++)
    for (size_t i = 0; i < graph_n_params(r->graph); i++) {
      const struct param *p = graph_param(r->graph, i);
      char name[sizeof p->name + 32];
      if (m)
        snprintf(name, sizeof name, "optimizer.moment%d.%s", m, p->name);
      else
        str_copy(name, sizeof name, p->name);
      if (read_tensor(f, name, p->rank, p->shape, s->block + (size_t)m * n + p->offset, e))
        return -1;
    }
  return 0;
}

static int read_quant_states(struct run *r, const struct st_file *f, struct quant_state *q, size_t n,
                             state_namer *name_of, struct err *e)
{
  const size_t length = N_HISTORY + 1;
  float h[N_HISTORY + 1];
  for (size_t i = 0; i < n; i++) {
    char base[160], name[200];
    name_of(r, i, base, sizeof base);
    snprintf(name, sizeof name, "%s.history", base);
    if (safetensors_find(f, name)) {
      if (read_tensor(f, name, 1, &length, h, e))
        return -1;
      if (!(h[N_HISTORY] >= 0 && h[N_HISTORY] <= 1e6f))
        return err_set(e, "tensor \"%s\" is damaged", name);
      memcpy(q[i].history, h, sizeof q[i].history);
      q[i].n_history = (int)h[N_HISTORY];
    }
    snprintf(name, sizeof name, "%s.residual", base);
    const struct st_tensor *t = safetensors_find(f, name);
    if (t && t->rank == 1) {
      q[i].residual = mem_alloc((t->shape[0] + 1) * sizeof(float));
      q[i].n_residual = t->shape[0];
      if (read_tensor(f, name, 1, t->shape, q[i].residual, e))
        return -1;
    }
  }
  return 0;
}

/* The order of the samples and every draw are functions of the seed, and a position means nothing in other data. */
static int check_same_run(struct run *r, const json_t *o, struct err *e)
{
  uint64_t seed, threads;
  const char *hash = record_text(o, "data_hash", e), *data = hash ? record_text(o, "data", e) : NULL;
  if (!data || record_int(o, "seed", &seed, e) || record_int(o, "threads", &threads, e))
    return -1;
  if (seed != (uint64_t)knob_int(&r->knobs, KNOB_SEED))
    return err_set(e, "it was saved with seed %" PRIu64 " and this run has %s; make a run with seed = %" PRIu64, seed,
                   r->knobs.at[KNOB_SEED].text, seed);
  if (strcmp(hash, dataset_hash(r->data)) != 0)
    return err_set(e, "it was trained on %s, which is not the data of this run (%s)", data, dataset_name(r->data));
  if (threads != (uint64_t)pool_threads(r->pool))
    run_tell(r, EVENT_NOTE, r->at.step, NULL,
             "saved with %" PRIu64 " threads, goes on with %d: sums may differ in their last bits", threads,
             pool_threads(r->pool));
  return 0;
}

static const struct optimizer_type *find_optimizer(const char *name)
{
  for (const struct optimizer_type *t = optimizer_table; t->name; t++)
    if (strcmp(t->name, name) == 0)
      return t;
  return NULL;
}

static int read_counters(struct run *r, const json_t *o, struct state *s, struct err *e)
{
  if (record_int(o, "step", &s->at.step, e) || record_int(o, "examples", &s->at.examples, e) ||
      record_int(o, "lr_batch", &s->at.lr_batch, e) || record_int(o, "optimizer_steps", &s->optimizer_t, e))
    return -1;
  if (s->at.lr_batch == 0)
    return err_set(e, "\"lr_batch\" is 0");
  if (record_read_knobs(json_object_get(o, "knobs"), json_object_get(o, "sites"), &s->knobs, e))
    return -1;
  for (int i = 0; i < KNOB_COUNT; i++)
    if (knob_table[i].when == KNOB_AT_START)
      s->knobs.at[i] = r->knobs.at[i];
  for (int m = 0; m < METRIC_COUNT; m++)
    s->metric[m] = NAN;
  return 0;
}

static int read_whole(struct run *r, const struct st_file *f, const char *meta, struct state *s, struct err *e)
{
  json_error_t why;
  uint64_t version;
  json_t *o = json_loads(meta, JSON_REJECT_DUPLICATES, &why);
  if (!o)
    return err_set(e, "its metadata is damaged: %s", why.text);
  int status = -1;
  const char *name = record_text(o, "optimizer", e);
  const struct optimizer_type *type = name ? find_optimizer(name) : NULL;
  if (name && !type)
    err_set(e, "it has an unknown optimizer \"%.40s\"", name);
  else if (name && record_int(o, "version", &version, e) == 0 && version != STATE_VERSION)
    err_set(e, "it is of version %" PRIu64 "; this program reads %d", version, STATE_VERSION);
  else if (name && check_same_run(r, o, e) == 0 && state_init(r, type, s, e) == 0)
    status = read_counters(r, o, s, e) || read_params(r, f, s, type->n_moments, e) ||
                     read_quant_states(r, f, s->model_state, s->n_model_state, model_state_name, e) ||
                     read_quant_states(r, f, s->optimizer_state, s->n_optimizer_state, optimizer_state_name, e)
                 ? -1
                 : 0;
  json_decref(o);
  return status;
}

/* Someone else's weights: they begin here, with empty moments; all else stays as it is. */
static int read_weights(struct run *r, const struct st_file *f, struct state *s, struct err *e)
{
  return state_init(r, r->optimizer.type, s, e) || read_params(r, f, s, 0, e) ? -1 : 0;
}

int state_file_read(struct run *r, const char *path, struct state *out, bool *whole, struct err *e)
{
  memset(out, 0, sizeof *out);
  struct st_file *f = safetensors_open(path, e);
  if (!f)
    return -1;
  const char *meta = safetensors_metadata(f, METADATA_KEY);
  *whole = meta != NULL;
  int status = meta ? read_whole(r, f, meta, out, e) : read_weights(r, f, out, e);
  safetensors_close(f);
  if (status) {
    state_done(out);
    return err_prefix(e, "%s", path);
  }
  return 0;
}
