/* Codes: the bit patterns of a format's elements, and the values they stand for. */
#ifndef NUMERIC_CODE_H
#define NUMERIC_CODE_H

#include "numeric/format.h"

/* The value of a code of total_bits bits at scale 1: sign and magnitude for floats, two's complement for int, fixed and
 * ternary, plain for uint, 0 and 1 for -1 and 1 of binary. NaN and Inf where the format has them. f is not a block
 * format; its elements' format has the codes. */
float format_value(const struct format *f, uint32_t code);

/* The code of a value that is on the grid (format_value() gives it back). Returns -1 for a NaN or Inf that the format
 * cannot hold; the code is then that of zero. -0 is kept where the format has it. */
int format_code(const struct format *f, float value, uint32_t *code);

/* Whether the code is used: not -2^(B-1) of symmetric integers, not binary 10 of ternary. */
bool format_code_used(const struct format *f, uint32_t code);

#endif
