/* The places of a training step where numbers are quantized (DESIGN, Quantization sites). */
#ifndef MODEL_SITE_H
#define MODEL_SITE_H

#include "numeric/spec.h"

enum site { /* never renumber: random streams depend on it */
#define SITE(id, name, phase, help) SITE_##id,
#include "model/site.def"
#undef SITE
  SITE_COUNT
};

extern const char *const site_names[SITE_COUNT + 1]; /* NULL-terminated */
const char *site_help(enum site s);
int site_find(const char *name, enum site *out, struct err *e) ERR_MUST_CHECK;

/* All specs of a run, and how draws are shared between forward and backward. */
struct site_specs {
  struct spec at[SITE_COUNT];
  bool share_act;    /* bact uses act's very draw (biased when stochastic: THEORY section 5) */
  bool share_weight; /* bweight uses weight's very draw */
};

#endif
