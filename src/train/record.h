/* Runs as JSON: knobs, specs of sites and model descriptions, written into journals and state files and read back. */
#ifndef TRAIN_RECORD_H
#define TRAIN_RECORD_H

#include <jansson.h>

#include "base/str.h"
#include "model/desc.h"
#include "train/knob.h"

/* {"batch": 128, "lr": 0.05, "optimizer": "sgd", ...} and {"act": {"format": "fp32", ...}, ...} */
void record_knobs(struct str *out, const struct knobs *k);
void record_sites(struct str *out, const struct site_specs *s);
void record_model(struct str *out, const struct model_desc *d);
void record_value(struct str *out, const struct knob_value *v);

/* `sites` decides the derived knobs. On failure *k is unchanged; a message names what is missing or wrong. */
int record_read_knobs(const json_t *knobs, const json_t *sites, struct knobs *k, struct err *e) ERR_MUST_CHECK;
/* Caller desc_done()s. */
int record_read_model(const json_t *model, struct model_desc *d, struct err *e) ERR_MUST_CHECK;

/* Typed access to members of an object. Numbers may be the strings "NaN", "Infinity", "-Infinity". */
int record_int(const json_t *o, const char *key, uint64_t *out, struct err *e) ERR_MUST_CHECK;
int record_real(const json_t *o, const char *key, double *out, struct err *e) ERR_MUST_CHECK;
const char *record_text(const json_t *o, const char *key, struct err *e) ERR_MUST_CHECK; /* borrowed from o */
/* A value as text for knobs_set(), whatever its type. */
int record_value_text(const json_t *v, char *out, size_t n_bytes, struct err *e) ERR_MUST_CHECK;

#endif
