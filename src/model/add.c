/* The sum of two layers' outputs: what closes a residual branch. */
#include "config.h"

#include "model/layer.h"
#include "tensor/vec.h"

static int add_init(struct layer *l, const struct layer_setup *s, struct err *e)
{
  size_t a = shape_size(&l->in[0]), b = shape_size(&l->in[1]);
  if (a != b)
    return err_set(e, "%s adds %zu values of %s to %zu of %s", l->name, b, s->input_name[1], a, s->input_name[0]);
  if (l->in[0].rank > 1 && l->in[1].rank > 1 && !shape_equal(&l->in[0], &l->in[1]))
    return err_set(e, "%s adds %zu x %zu x %zu of %s to %zu x %zu x %zu of %s", l->name, l->in[1].dim[0],
                   l->in[1].dim[1], l->in[1].dim[2], s->input_name[1], l->in[0].dim[0], l->in[0].dim[1],
                   l->in[0].dim[2], s->input_name[0]);
  l->out = l->in[0];
  return 0;
}

static void add_forward(struct layer *l, const struct layer_call *c)
{
  vec_add(c->pass->pool, l->x[0], l->x[1], c->rows * l->n_out, l->y);
}

static void add_backward(struct layer *l, const struct layer_call *c)
{
  for (int i = l->n_inputs - 1; i >= 0; i--) { /* the first last: its gradient may lie in place of dy */
    if (!l->dx[i])
      continue;
    if (l->dx_add[i])
      vec_add(c->pass->pool, l->dx[i], l->dy, c->rows * l->n_out, l->dx[i]);
    else
      vec_copy(c->pass->pool, l->dy, c->rows * l->n_out, l->dx[i]);
  }
}

const struct layer_type add_type = {
    .name = "add",
    .help = "the sum of two layers' outputs",
    .options = (const char *const[]){"other", NULL},
    .n_inputs = 2,
    .in_place = true,
    .init = add_init,
    .forward = add_forward,
    .backward = add_backward,
};
