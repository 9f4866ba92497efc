/* One layer of a graph, and the table of layer kinds. A new kind is one file that defines a `struct layer_type`, one
 * row in layer_types[] and one line in layer.h; the graph knows none of them by name.
 *
 * The graph calls init() once, in the order of the description, then forward() from first to last and backward() from
 * last to first. It owns all memory: a layer says in init() what it needs, and allocates nothing later. */
#ifndef MODEL_LAYER_H
#define MODEL_LAYER_H

#include "model/graph.h"
#include "numeric/quantize.h"

#define LAYER_INPUTS 2 /* a residual sum has two */
#define LAYER_RANK DESC_RANK
/* Parts of a batch that are summed apart, whatever the number of threads; no more threads than that are used there. */
#define LAYER_PARTS 16

/* Of one sample: {784}, {1, 28, 28}, {tokens, width}. */
struct shape {
  int rank;
  size_t dim[LAYER_RANK];
};
size_t shape_size(const struct shape *s);
bool shape_equal(const struct shape *a, const struct shape *b);
struct shape shape_flat(size_t n);

/* Working memory shared by all layers, one at a time; each buffer as large as the largest need. */
struct scratch {
  float *x; /* rows x layer.scratch_x: quantized X */
  float *g; /* rows x layer.scratch_g: quantized G */
  float *w; /* layer.scratch_w: W of the backward product's own draw */
  float *parts; /* layer.scratch_parts */
  float *x_sq, *x_var, *g_sq, *g_var; /* rows x layer.scratch_rows each: row sums */
};

/* The quantized weight and what it was made from, so that forward, backward and micro-batches share one. */
struct weight_copy {
  float *q; /* layer.n_weight_copy values, or NULL */
  bool valid, from_training;
  struct spec spec;
  uint64_t seed, step;
  enum rng_stream stream;
  uint32_t draw;
};

struct layer {
  const struct layer_type *type;
  const char *name;
  int index, n_inputs;
  int input[LAYER_INPUTS]; /* indices of layers before it; -1: the model's input */
  struct shape in[LAYER_INPUTS], out;
  size_t n_in, n_out; /* values a sample: of the first input, of the output */
  struct param *param;
  int n_params;
  uint32_t tensor; /* number of its activations in random counters; its parameters follow */

  /* Needs, set by init(). */
  size_t scratch_x, scratch_g, scratch_w, scratch_rows, scratch_parts, n_weight_copy;
  void *own; /* what the kind keeps for itself, from mem_alloc(); the graph frees it */

  /* Buffers, placed by the graph. y may be the input's own buffer where the type is in_place. */
  const float *x[LAYER_INPUTS];
  float *y;
  const float *dy;         /* gradient of the output */
  float *dx[LAYER_INPUTS]; /* NULL where nothing before takes a gradient */
  bool dx_add[LAYER_INPUTS];

  /* State. */
  const float *weight; /* W as the last forward pass used it */
  struct weight_copy copy;
  struct quant_state state[SITE_COUNT];
  float act_history[16]; /* state[SITE_ACT] before the last forward pass, for share_act */
  int n_act_history;
  struct layer_sums sums;
};

/* What one pass gives a layer. */
struct layer_call {
  const struct pass *pass;
  size_t rows;
  const struct scratch *scratch;
};

/* A parameter is declared in init() with layer_add_param(). */
struct layer_setup {
  const struct layer_desc *desc;
  const char *const *input_name; /* for messages */
  struct param **params;         /* growing list of the graph */
  size_t *n_params;
};

struct layer_type {
  const char *name, *help;
  const char *const *options; /* NULL-terminated; any other is refused with the near miss */
  int n_inputs;      /* 2: the second is the layer whose index is the option "other" */
  bool in_place;     /* forward may overwrite its first input, backward its output's gradient */
  bool keeps_output; /* backward reads y: what follows must not overwrite it */
  bool has_sites;    /* it quantizes: faults can show at its sites */
  /* Checks options and in[], sets out and the needs, declares parameters. */
  int (*init)(struct layer *l, const struct layer_setup *s, struct err *e);
  void (*init_weights)(struct layer *l, uint64_t seed); /* NULL: no parameters */
  void (*forward)(struct layer *l, const struct layer_call *c);
  /* Reads dy; writes or adds to dx[], sets or adds to the parameters' gradients. */
  void (*backward)(struct layer *l, const struct layer_call *c);
  void (*commit)(struct layer *l); /* graph_commit(); NULL: it has no buffers */
};

extern const struct layer_type linear_type, conv2d_type, relu_type, gelu_type, silu_type;
extern const struct layer_type maxpool2d_type, avgpool2d_type, batch_norm1d_type, batch_norm2d_type;
extern const struct layer_type dropout_type, flatten_type, add_type;

extern const struct layer_type *const layer_types[]; /* NULL-terminated */
const struct layer_type *layer_type_find(const char *name, struct err *e) ERR_MUST_CHECK;

/* For init(). Size of an option that must be a whole number in 1 .. 2^31-1; `otherwise` where it is not given, or 0 for
 * an option that must be. */
int layer_size_option(const struct layer *l, const struct layer_setup *s, const char *key, size_t otherwise,
                      size_t *out, struct err *e) ERR_MUST_CHECK;
/* The same for an option that is a number in [least, most]. */
int layer_real_option(const struct layer *l, const struct layer_setup *s, const char *key, double otherwise,
                      double least, double most, double *out, struct err *e) ERR_MUST_CHECK;
/* in[0] as an image: channels x height x width. */
int layer_image_input(const struct layer *l, const struct layer_setup *s, struct err *e) ERR_MUST_CHECK;
int layer_check_options(const struct layer_type *t, const struct layer_desc *d, struct err *e) ERR_MUST_CHECK;
void layer_add_param(struct layer *l, const struct layer_setup *s, const char *leaf, int rank, const size_t *shape,
                     bool decays);
/* State beside the parameters: saved with them, never trained. */
void layer_add_buffer(struct layer *l, const struct layer_setup *s, const char *leaf, size_t n);

/* Uniform in [-bound, bound): PyTorch's default for linear and convolution with bound = 1/sqrt(fan in). */
void param_init_uniform(struct param *p, uint64_t seed, double bound);

/* Training alone moves what is carried from step to step: scale histories, running statistics. */
bool pass_trains(const struct pass *p);

/* Part `i` of `n` of the rows 0 .. rows-1: [begin, end). A function of these three alone. */
struct row_range {
  size_t begin, end;
};
struct row_range layer_part(size_t rows, size_t n, size_t i);
size_t layer_n_parts(size_t rows); /* LAYER_PARTS, or fewer where there are not as many rows */

/* A site at work. Returns `x` itself where the spec passes values unchanged, else `out`, filled. Evaluation rounds
 * stochastic specs to nearest even. `rng_site` names the draw: the site's own, or that of the one it shares with.
 * `slot` is the sample slot of row 0, 0 for weights. */
struct site_use {
  const struct spec *spec;
  enum site rng_site;
  uint32_t tensor;
  size_t first_slot;
  struct quant_state *state;
};
const float *site_apply(const struct site_use *u, const struct pass *p, const float *x, size_t rows, size_t cols,
                        float *out, const struct quant_sums *sums);

/* Activations (or gradients) of `l` through a site of its own. */
const float *layer_quantize(struct layer *l, const struct layer_call *c, enum site site, const float *x, size_t cols,
                            float *out, const struct quant_sums *sums);
/* Its saved input for the weight gradient: site bact, or act's very draw where share_act says so. */
const float *layer_quantize_saved(struct layer *l, const struct layer_call *c, const float *x, size_t cols, float *out,
                                  const struct quant_sums *sums);
/* Parameter `p` of `l` (rows x cols) for the forward product: quantized once a step. */
const float *layer_weight(struct layer *l, const struct layer_call *c, struct param *p, size_t rows, size_t cols);
/* The same for the product that makes dX: the forward's copy, or bweight's own draw. */
const float *layer_weight_back(struct layer *l, const struct layer_call *c, struct param *p, size_t rows, size_t cols);

#endif
