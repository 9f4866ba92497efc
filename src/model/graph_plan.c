/* Which layer's output and gradient lie where, and the buffers that are made from it. */
#include "config.h"

#include <string.h>

#include "base/mem.h"
#include "model/graph_impl.h"

/* Values a sample are padded to a cache line, so that every buffer starts on one. */
static size_t padded(size_t n)
{
  return (n + 15) / 16 * 16;
}

static void place_outputs(struct graph *g, const int *n_users)
{
  struct graph_plan *p = &g->plan;
  for (int i = 0; i < g->n_layers; i++) {
    const struct layer *l = &g->layer[i];
    int from = l->input[0];
    if (l->type->in_place && from >= 0 && n_users[from] == 1 && !g->layer[from].type->keeps_output) {
      p->y_at[i] = p->y_at[from];
      continue;
    }
    p->y_at[i] = p->y_width;
    p->y_width += padded(l->n_out);
  }
}

/* Gradient places, handed out while walking backward: the first user met writes an output's gradient, others add. */
struct slots {
  size_t *width;
  bool *busy;
  int n;
};

static int slot_take(struct slots *s, size_t width)
{
  int best = -1;
  for (int i = 0; i < s->n; i++)
    if (!s->busy[i] && (best < 0 || s->width[i] > s->width[best]))
      best = i;
  if (best < 0)
    best = s->n++;
  s->busy[best] = true;
  if (s->width[best] < width)
    s->width[best] = width;
  return best;
}

static void place_input_gradients(struct graph *g, struct layer *l, int *slot, struct slots *s, const bool *needed)
{
  bool passed_on = false;
  for (int k = 0; k < l->n_inputs; k++) {
    int from = l->input[k];
    l->dx_add[k] = false;
    if (from < 0 || !needed[from])
      continue;
    if (slot[from] >= 0) {
      l->dx_add[k] = true;
    } else if (l->type->in_place && k == 0) {
      slot[from] = slot[l->index];
      passed_on = true;
    } else {
      slot[from] = slot_take(s, padded(g->layer[from].n_out));
    }
  }
  if (!passed_on)
    s->busy[slot[l->index]] = false;
}

static void place_gradients(struct graph *g, const bool *needed)
{
  int n = g->n_layers;
  int *slot = mem_alloc((size_t)n * sizeof *slot);
  struct slots s = {mem_alloc((size_t)n * sizeof *s.width), mem_alloc((size_t)n * sizeof *s.busy), 0};
  for (int i = 0; i < n; i++)
    slot[i] = -1;
  slot[n - 1] = slot_take(&s, padded(g->layer[n - 1].n_out));
  for (int i = n - 1; i >= 0; i--)
    if (slot[i] >= 0)
      place_input_gradients(g, &g->layer[i], slot, &s, needed);
  struct graph_plan *p = &g->plan;
  for (int i = 0; i < n; i++) {
    p->dy_at[i] = slot[i] < 0 ? PLAN_NONE : 0;
    for (int k = 0; k < slot[i]; k++)
      p->dy_at[i] += s.width[k];
  }
  for (int k = 0; k < s.n; k++)
    p->dy_width += s.width[k];
  mem_free(slot);
  mem_free(s.width);
  mem_free(s.busy);
}

int plan_make(struct graph *g, struct err *e)
{
  size_t n = (size_t)g->n_layers;
  int *n_users = mem_alloc(n * sizeof *n_users);
  bool *needed = mem_alloc(n * sizeof *needed); /* a parameter at this layer or before it takes this gradient */
  g->plan.y_at = mem_alloc(n * sizeof *g->plan.y_at);
  g->plan.dy_at = mem_alloc(n * sizeof *g->plan.dy_at);
  for (int i = 0; i < g->n_layers; i++) {
    const struct layer *l = &g->layer[i];
    needed[i] = l->n_params > 0;
    for (int k = 0; k < l->n_inputs; k++)
      if (l->input[k] >= 0) {
        n_users[l->input[k]]++;
        needed[i] = needed[i] || needed[l->input[k]];
      }
  }
  int status = 0;
  for (int i = 0; i + 1 < g->n_layers && status == 0; i++)
    if (n_users[i] == 0)
      status = err_set(e, "the output of %s is used by no other layer", g->layer[i].name);
  if (status == 0) {
    place_outputs(g, n_users);
    place_gradients(g, needed);
  }
  mem_free(n_users);
  mem_free(needed);
  return status;
}

void plan_done(struct graph_plan *p)
{
  mem_free(p->y_at);
  mem_free(p->dy_at);
}

/* Largest needs over the layers, a sample. */
struct needs {
  size_t x, g, rows;
};

static struct needs needs_of(const struct graph *g)
{
  struct needs n = {0};
  for (int i = 0; i < g->n_layers; i++) {
    const struct layer *l = &g->layer[i];
    n.x = l->scratch_x > n.x ? l->scratch_x : n.x;
    n.g = l->scratch_g > n.g ? l->scratch_g : n.g;
    n.rows = l->scratch_rows > n.rows ? l->scratch_rows : n.rows;
  }
  return (struct needs){padded(n.x), padded(n.g), n.rows};
}

/* Takes n bytes, rounded to cache lines, from a block; from NULL it only counts. */
static void *carve(char *block, size_t *at, size_t n_bytes)
{
  size_t here = *at;
  *at += (n_bytes + 63) / 64 * 64;
  return block ? block + here : NULL;
}

static size_t carve_rows(char *block, const struct needs *n, size_t rows, struct graph_buffers *b)
{
  size_t at = 0, f = sizeof(float);
  b->scratch.x = carve(block, &at, rows * n->x * f);
  b->scratch.g = carve(block, &at, rows * n->g * f);
  b->scratch.x_sq = carve(block, &at, rows * n->rows * f);
  b->scratch.x_var = carve(block, &at, rows * n->rows * f);
  b->scratch.g_sq = carve(block, &at, rows * n->rows * f);
  b->scratch.g_var = carve(block, &at, rows * n->rows * f);
  b->row_loss = carve(block, &at, rows * sizeof *b->row_loss);
  b->row_correct = carve(block, &at, rows * sizeof *b->row_correct);
  return at;
}

int buffers_create(const struct graph *g, size_t max_rows, struct graph_buffers *b, struct err *e)
{
  struct needs n = needs_of(g);
  *b = (struct graph_buffers){0};
  size_t widest = g->plan.y_width + g->plan.dy_width + n.x + n.g + 4 * n.rows + 16;
  if (max_rows > SIZE_MAX / 2 / sizeof(float) / widest)
    return err_set(e, "a batch of %zu samples is more than memory can address", max_rows);
  b->max_rows = max_rows;
  b->y_bytes = max_rows * g->plan.y_width * sizeof(float);
  b->dy_bytes = max_rows * g->plan.dy_width * sizeof(float);
  b->rows_bytes = carve_rows(NULL, &n, max_rows, b);
  b->y = mem_buffer(b->y_bytes, "activations", e);
  b->dy = b->y ? mem_buffer(b->dy_bytes, "gradients of activations", e) : NULL;
  b->rows = b->dy ? mem_buffer(b->rows_bytes, "scratch of the layers", e) : NULL;
  if (!b->rows) {
    buffers_done(b);
    return err_prefix(e, "no room for a batch of %zu", max_rows);
  }
  carve_rows(b->rows, &n, max_rows, b);
  return 0;
}

void buffers_done(struct graph_buffers *b)
{
  mem_buffer_free(b->y);
  mem_buffer_free(b->dy);
  mem_buffer_free(b->rows);
  *b = (struct graph_buffers){0};
}

void buffers_bind(struct graph *g)
{
  struct graph_buffers *b = &g->buf;
  const struct graph_plan *p = &g->plan;
  for (int i = 0; i < g->n_layers; i++) {
    struct layer *l = &g->layer[i];
    l->y = b->y + p->y_at[i] * b->max_rows;
    l->dy = p->dy_at[i] == PLAN_NONE ? NULL : b->dy + p->dy_at[i] * b->max_rows;
    for (int k = 0; k < l->n_inputs; k++) {
      int from = l->input[k];
      l->x[k] = from < 0 ? NULL : b->y + p->y_at[from] * b->max_rows;
      l->dx[k] = from < 0 || p->dy_at[from] == PLAN_NONE ? NULL : b->dy + p->dy_at[from] * b->max_rows;
    }
  }
}
