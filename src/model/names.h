/* Looking a word up in a list of words, with a message that helps when it is not there. */
#ifndef MODEL_NAMES_H
#define MODEL_NAMES_H

#include "base/err.h"

/* Index in the NULL-terminated list, or -1 and "no WHAT "NAME": did you mean "X"? ...". */
int names_find(const char *what, const char *name, const char *const *names, struct err *e) ERR_MUST_CHECK;

#endif
