/* A model described as plain data: what models/NAME.lua returns, once read. train writes it into the journal's header,
 * so that a run can be repeated without the file. */
#ifndef MODEL_DESC_H
#define MODEL_DESC_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#define DESC_NAME 32
#define DESC_OPTIONS 12
#define DESC_RANK 3

struct desc_option {
  char key[DESC_NAME];
  double value;
};

struct layer_desc {
  char kind[DESC_NAME]; /* "linear", "relu": a row of the layer table (layer.h) */
  char name[DESC_NAME]; /* unique in the model; made from kind and place where the file gives none */
  int input;            /* index of the layer whose output this one takes; -1: the model's input */
  struct desc_option option[DESC_OPTIONS]; /* e.g. linear: in, out, bias */
  int n_options;
};

struct model_desc {
  char name[DESC_NAME];
  char loss[DESC_NAME]; /* "cross_entropy" */
  size_t n_inputs;      /* values a sample */
  int input_rank;       /* of input_shape, whose product n_inputs is; 0: a flat list of values */
  size_t input_shape[DESC_RANK]; /* e.g. channels, height, width */
  size_t n_outputs;     /* classes */
  struct layer_desc *layer;
  int n_layers;
  struct { /* knobs whose default this model sets, in text: {"lr", "0.05"} */
    char knob[DESC_NAME];
    char value[64];
  } *knob_default;
  int n_knob_defaults;
};

struct layer_desc *desc_add_layer(struct model_desc *d, const char *kind, const char *name);
void desc_set_option(struct layer_desc *l, const char *key, double value);
double desc_option(const struct layer_desc *l, const char *key, double otherwise);
void desc_add_knob_default(struct model_desc *d, const char *knob, const char *value);
void desc_copy(struct model_desc *to, const struct model_desc *from); /* `to` is overwritten, not freed */
void desc_done(struct model_desc *d);

#endif
