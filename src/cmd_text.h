/* Pieces shared by the texts made from the tables: help, manual page, completion. */
#ifndef CMD_TEXT_H
#define CMD_TEXT_H

#include "base/str.h"
#include "train/knob.h"

#define TEXT_COLUMNS 80

/* Words of `text` in lines of at most TEXT_COLUMNS, indented; the first line goes on at column `at`. Ends the line. */
void text_wrap(struct str *out, int at, int indent, const char *text);

/* "lr-scaling" for lr_scaling. */
void text_option_name(const char *knob, char *out, size_t n_bytes);

/* What may follow a knob: "N", "X", "true|false", "NAME", "TEXT". */
const char *text_knob_arg(const struct knob *k);

/* "1 to 1048576 examples; 128 by default", or the choices: what may be given for a knob. */
void text_knob_allowed(enum knob_id id, struct str *out);

#endif
