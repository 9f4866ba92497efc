/* Knobs: every setting of a run, declared once in knob.def. Options of the command line, fields in Lua, completion,
 * help, the status pane, the journal and the manual page loop over this table. */
#ifndef TRAIN_KNOB_H
#define TRAIN_KNOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "model/site.h"

enum knob_type { KNOB_INT, KNOB_REAL, KNOB_BOOL, KNOB_ENUM, KNOB_TEXT };

enum knob_when {
  KNOB_AT_STEP,  /* may be turned while the run goes on; takes effect between two steps */
  KNOB_AT_START, /* fixed once the run is made: model, data, seed, threads */
};

enum knob_id {
#define KNOB(id, name, ...) KNOB_##id,
#include "train/knob.def"
#undef KNOB
  KNOB_COUNT
};

struct knob {
  const char *name;
  enum knob_type type;
  enum knob_when when;
  const char *default_text;
  double min, max;              /* INT and REAL, inclusive */
  bool min_open;                /* min itself is not allowed */
  const char *const *choices;   /* ENUM: NULL-terminated; for TEXT: suggestions, or NULL */
  const char *unit;             /* "examples", "steps", "" */
  const char *help;             /* one sentence */
};

extern const struct knob knob_table[KNOB_COUNT];
extern const char *const knob_rounding_names[]; /* NULL-terminated */
extern const char *const lr_scaling_names[];    /* NULL-terminated */

struct knob_value {
  enum knob_type type;
  union {
    int64_t i;
    double r;
    bool b;
  };
  char text[256]; /* ENUM and TEXT; for the others the value as it is printed */
};

/* Besides the table there are site knobs "site.SITE.FIELD" (model/site.h, numeric/spec.h). A knob reference names
 * either. */
struct knob_ref {
  enum knob_id id;  /* KNOB_COUNT: a site knob */
  enum site site;
  const char *field; /* borrowed from spec_fields[] */
};
/* Also accepts '-' for '_'. The message names the near miss. */
int knob_find(const char *name, struct knob_ref *out, struct err *e) ERR_MUST_CHECK;
/* The name as in the table, or "site.gweight.format". */
void knob_ref_name(const struct knob_ref *k, char *out, size_t n_bytes);

/* Parses and checks type and range of a value given as text: the only place that does. */
int knob_parse(const struct knob_ref *k, const char *text, struct knob_value *out, struct err *e) ERR_MUST_CHECK;

/* The value of a field of a spec as spec_get() writes it, typed. */
void knob_site_value(const char *field, const char *text, struct knob_value *out);

/* All values of a run. Derived knobs (recipe, bits, format, rounding) act on `sites`; the last write wins. */
struct knobs {
  struct knob_value at[KNOB_COUNT];
  struct site_specs sites;
};

void knobs_defaults(struct knobs *k);

/* Makes bits, format, rounding and the share knobs say what `sites` does, after `sites` was written directly. */
void knobs_refresh(struct knobs *k);

/* Applies one value to a copy's worth of state: on failure *k is unchanged and the message says what is allowed. */
int knobs_set(struct knobs *k, const struct knob_ref *ref, const char *text, struct err *e) ERR_MUST_CHECK;
/* The value as it holds now. bits, format and rounding are what the sites say, or "mixed" (bits: i = 0); recipe is the
 * one set last, whatever was changed of it since. */
void knobs_get(const struct knobs *k, const struct knob_ref *ref, struct knob_value *out);

/* Choices for completion: NULL-terminated, borrowed; NULL where there are none. */
const char *const *knob_choices(const struct knob_ref *k);

static inline int64_t knob_int(const struct knobs *k, enum knob_id id)
{
  return k->at[id].i;
}
static inline double knob_real(const struct knobs *k, enum knob_id id)
{
  return k->at[id].r;
}

#endif
