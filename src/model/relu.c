/* ReLU, in place of its input wherever nobody else reads that. */
#include "config.h"

#include "model/layer.h"
#include "tensor/vec.h"

static int relu_init(struct layer *l, const struct layer_setup *s, struct err *e)
{
  (void)s, (void)e;
  l->out = l->in[0];
  return 0;
}

static void relu_forward(struct layer *l, const struct layer_call *c)
{
  vec_relu(c->pass->pool, l->x[0], c->rows * l->n_out, l->y);
}

static void relu_backward(struct layer *l, const struct layer_call *c)
{
  if (l->dx[0])
    vec_relu_back(c->pass->pool, l->y, l->dy, c->rows * l->n_out, l->dx_add[0], l->dx[0]);
}

const struct layer_type relu_type = {
    .name = "relu",
    .help = "max(x, 0)",
    .options = (const char *const[]){NULL},
    .n_inputs = 1,
    .in_place = true,
    .keeps_output = true,
    .init = relu_init,
    .forward = relu_forward,
    .backward = relu_backward,
};
