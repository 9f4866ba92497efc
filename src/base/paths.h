/* Where files are: the XDG directories and the program's own data (models/, lua/). */
#ifndef BASE_PATHS_H
#define BASE_PATHS_H

#include "base/err.h"

/* kind: "state", "config", "data" or "cache"; leaf: a file below it, or NULL. Makes the directory, not the file. Caller
 * mem_free()s; NULL and a message on failure. */
char *paths_xdg(const char *kind, const char *leaf, struct err *e) ERR_MUST_CHECK;

/* Finds a shipped file such as "models/mlp.lua": $BITDIAL_DATA, then the installed data directory.
 * Caller mem_free()s; NULL when it is in neither. */
char *paths_shipped(const char *relative);

/* Makes directory and parents. */
int paths_mkdirs(const char *path, struct err *e) ERR_MUST_CHECK;

#endif
