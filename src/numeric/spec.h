/* A spec is what a site does to its numbers: format, rounding mode, scaling granularity and rule, random bits. */
#ifndef NUMERIC_SPEC_H
#define NUMERIC_SPEC_H

#include "numeric/format.h"

enum rounding { /* the table in round.def names and describes them */
#define ROUNDING(id, name, ...) ROUND_##id,
#include "numeric/round.def"
#undef ROUNDING
                ROUND_COUNT
};

enum granularity { GRAIN_TENSOR, GRAIN_ROW, GRAIN_COLUMN, GRAIN_BLOCK, GRAIN_COUNT };

enum scale_rule {
  SCALE_NONE,    /* 1 */
  SCALE_ABSMAX,  /* absmax / largest code */
  SCALE_POW2,    /* the power of two that brings absmax just inside the range */
  SCALE_FIXED,   /* spec.fixed_scale */
  SCALE_DELAYED, /* from the largest absmax of the last 16 steps; of this one where there are none */
  SCALE_ABSMEAN, /* mean of |x|: deterministic ternary (BitNet b1.58) and binary (XNOR-Net) */
  SCALE_FLOOR,   /* MX v1.0 */
  SCALE_RCEIL,
  SCALE_EVEN,
  SCALE_NVFP4, /* E4M3 block scales under one fp32 tensor scale */
  SCALE_RULES
};

struct spec {
  const struct format *format;
  enum rounding rounding;
  enum granularity granularity;
  enum scale_rule scale;
  int block;         /* elements a scale along a row when granularity is GRAIN_BLOCK */
  int random_bits;   /* 32, 16 or 8 an element, or k for the k-bit modes */
  bool no_saturate;  /* overflow to Inf or NaN where the format has it; default saturates */
  bool flush;        /* subnormals to zero */
  float fixed_scale; /* SCALE_FIXED; > 0 */
  float eps;         /* of sr_eps and signed_sr_eps */
  float clip;        /* absmax is multiplied by this before the scale is formed; 0 means 1 (no clipping) */
  int zero_point;    /* uintN with SCALE_NONE or SCALE_FIXED; other rules choose their own */
  bool feedback;     /* error feedback: what rounding took from an element is added to it at the next step */
};

/* The format's default scaling by recipe (DESIGN, Semantics, Scale), 32 random bits, saturating. */
struct spec spec_default(const struct format *f, enum rounding r);

/* Nothing to do: the values pass unchanged. */
bool spec_is_identity(const struct spec *s);
bool spec_is_stochastic(const struct spec *s);

/* Whether the parts fit together; a message says what is allowed. */
int spec_check(const struct spec *s, struct err *e) ERR_MUST_CHECK;

bool spec_equal(const struct spec *a, const struct spec *b);

/* One field by name, in text, for knobs: "format" "rounding" "granularity" "scale" "block" "random_bits" "saturate"
 * "subnormals" "fixed_scale" "eps" "clip" "zero_point" "error_feedback". Setting `format` keeps the rounding and takes
 * the format's default scaling; setting `rounding` keeps random_bits where the mode takes them, else takes 32.
 * spec_set() leaves *s as it was when it fails. */
int spec_set(struct spec *s, const char *field, const char *value, struct err *e) ERR_MUST_CHECK;
int spec_get(const struct spec *s, const char *field, char *out, size_t n_bytes); /* -1: no such field */
extern const char *const spec_fields[];                                           /* NULL-terminated */

const char *rounding_name(enum rounding r);
const char *rounding_help(enum rounding r);
int rounding_find(const char *name, enum rounding *out, struct err *e) ERR_MUST_CHECK;
extern const char *const granularity_names[GRAIN_COUNT + 1]; /* NULL-terminated */
extern const char *const scale_rule_names[SCALE_RULES + 1];

#endif
