/* Small files for the data tests, in a directory of their own that is removed at the end. */
#ifndef TESTS_DATA_FILES_H
#define TESTS_DATA_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void files_begin(void); /* makes the directory */
void files_end(void);   /* removes it with what the calls below wrote */

const char *files_dir(void);
/* Path of a name in it; lives until the ninth next call. */
const char *files_path(const char *name);

void files_write(const char *name, const void *bytes, size_t n);
void files_write_gz(const char *name, const void *bytes, size_t n);
/* Keeps the first n bytes. */
void files_cut(const char *name, size_t n);
/* Inverts one byte. */
void files_flip(const char *name, size_t at);
size_t files_size(const char *name);

/* The bytes of an idx file of unsigned bytes; returns how many. out holds 4 + 4*n_dims + n. */
size_t files_idx(uint8_t *out, int n_dims, const uint32_t *dim, const uint8_t *data, size_t n);

#endif
