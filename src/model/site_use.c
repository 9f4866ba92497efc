/* Sites at work: which spec, which random numbers and which buffer a tensor meets on its way into a product. */
#include "config.h"

#include <string.h>

#include "model/layer.h"

/* Evaluation is deterministic: nearest even in place of anything stochastic. */
static struct spec spec_in_pass(const struct spec *s, const struct pass *p)
{
  struct spec out = *s;
  if (p->evaluate && spec_is_stochastic(s))
    out.rounding = ROUND_RNE;
  return out;
}

/* Training alone moves a scale's history: evaluation and probes read a copy of it, without the residual, and a weight
 * that they quantized may not stand in for training's own. */
bool pass_trains(const struct pass *p)
{
  return !p->evaluate && p->stream == RNG_SITE;
}

const float *site_apply(const struct site_use *u, const struct pass *p, const float *x, size_t rows, size_t cols,
                        float *out, const struct quant_sums *sums)
{
  struct spec spec = spec_in_pass(u->spec, p);
  if (spec_is_identity(&spec)) {
    if (sums && sums->row_sq)
      quantize_row_sq(x, rows, cols, sums->row_sq, p->pool);
    if (sums && sums->row_var)
      memset(sums->row_var, 0, rows * sizeof *sums->row_var);
    return x;
  }
  struct quant_rng rng = {
      .key = rng_derive(p->seed, p->stream, u->tensor, (uint32_t)u->rng_site, p->draw),
      .step = p->step,
      .first_element = (uint64_t)u->first_slot * cols,
  };
  struct quant_state copy = {0}, *state = u->state;
  if (state && !pass_trains(p)) {
    memcpy(copy.history, state->history, sizeof copy.history);
    copy.n_history = state->n_history;
    state = &copy;
  }
  quantize(&spec, x, rows, cols, &rng, out, sums, state, p->pool, NULL);
  if (state == &copy)
    quant_state_done(&copy);
  return out;
}

const float *layer_quantize(struct layer *l, const struct layer_call *c, enum site site, const float *x, size_t cols,
                            float *out, const struct quant_sums *sums)
{
  struct quant_state *state = &l->state[site];
  if (site == SITE_ACT) {
    memcpy(l->act_history, state->history, sizeof l->act_history);
    l->n_act_history = state->n_history;
  }
  struct site_use u = {&c->pass->sites->at[site], site, l->tensor, c->pass->first_slot, state};
  return site_apply(&u, c->pass, x, c->rows, cols, out, sums);
}

/* A shared draw is made again rather than kept: the same spec, key and scale history give the same bits, and no second
 * copy of every activation is held until the backward pass. */
const float *layer_quantize_saved(struct layer *l, const struct layer_call *c, const float *x, size_t cols, float *out,
                                  const struct quant_sums *sums)
{
  if (!c->pass->sites->share_act)
    return layer_quantize(l, c, SITE_BACT, x, cols, out, sums);
  struct quant_state again = {.n_history = l->n_act_history};
  memcpy(again.history, l->act_history, sizeof again.history);
  struct site_use u = {&c->pass->sites->at[SITE_ACT], SITE_ACT, l->tensor, c->pass->first_slot, &again};
  const float *q = site_apply(&u, c->pass, x, c->rows, cols, out, sums);
  quant_state_done(&again);
  return q;
}

static bool copy_is_current(const struct weight_copy *w, const struct spec *spec, const struct pass *p)
{
  if (!w->valid || !spec_equal(&w->spec, spec))
    return false;
  if ((spec->scale == SCALE_DELAYED || spec->feedback) && w->from_training != pass_trains(p))
    return false;
  return !spec_is_stochastic(spec) ||
         (w->seed == p->seed && w->step == p->step && w->stream == p->stream && w->draw == p->draw);
}

const float *layer_weight(struct layer *l, const struct layer_call *c, struct param *param, size_t rows, size_t cols)
{
  const struct pass *p = c->pass;
  struct spec spec = spec_in_pass(&p->sites->at[SITE_WEIGHT], p);
  if (spec_is_identity(&spec))
    return l->weight = param->w;
  struct weight_copy *w = &l->copy;
  if (!copy_is_current(w, &spec, p)) {
    struct site_use u = {&p->sites->at[SITE_WEIGHT], SITE_WEIGHT, param->tensor, 0, &l->state[SITE_WEIGHT]};
    site_apply(&u, p, param->w, rows, cols, w->q, NULL);
    w->valid = true;
    w->from_training = pass_trains(p);
    w->spec = spec;
    w->seed = p->seed;
    w->step = p->step;
    w->stream = p->stream;
    w->draw = p->draw;
  }
  return l->weight = w->q;
}

const float *layer_weight_back(struct layer *l, const struct layer_call *c, struct param *param, size_t rows,
                               size_t cols)
{
  const struct pass *p = c->pass;
  if (p->sites->share_weight)
    return l->weight;
  struct site_use u = {&p->sites->at[SITE_BWEIGHT], SITE_BWEIGHT, param->tensor, 0, &l->state[SITE_BWEIGHT]};
  return site_apply(&u, p, param->w, rows, cols, c->scratch->w, NULL);
}
