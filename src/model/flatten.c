/* Flatten: the values stay where they are, only the shape goes. */
#include "config.h"

#include "model/layer.h"
#include "tensor/vec.h"

static int flatten_init(struct layer *l, const struct layer_setup *s, struct err *e)
{
  (void)s, (void)e;
  l->out = shape_flat(l->n_in);
  return 0;
}

/* In place, these copies do nothing. */
static void flatten_forward(struct layer *l, const struct layer_call *c)
{
  vec_copy(c->pass->pool, l->x[0], c->rows * l->n_out, l->y);
}

static void flatten_backward(struct layer *l, const struct layer_call *c)
{
  size_t n = c->rows * l->n_out;
  if (!l->dx[0])
    return;
  if (l->dx_add[0])
    vec_add(c->pass->pool, l->dx[0], l->dy, n, l->dx[0]);
  else
    vec_copy(c->pass->pool, l->dy, n, l->dx[0]);
}

const struct layer_type flatten_type = {
    .name = "flatten",
    .help = "an image as a list of values",
    .options = (const char *const[]){NULL},
    .n_inputs = 1,
    .in_place = true,
    .init = flatten_init,
    .forward = flatten_forward,
    .backward = flatten_backward,
};
