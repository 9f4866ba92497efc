/* 128-bit content hashes (XXH3) of weights, data and files: to compare, not to sign. */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stddef.h>

struct hash; /* streaming state */
struct hash *hash_create(void);
void hash_add(struct hash *h, const void *data, size_t n_bytes);
/* Writes 32 lower-case hex digits and frees the state. */
void hash_finish(struct hash *h, char hex[33]);
void hash_buffer(const void *data, size_t n_bytes, char hex[33]);

#endif
