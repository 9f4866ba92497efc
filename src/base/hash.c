/* XXH3, 128 bits, written as its canonical (big-endian) form in hex: what `xxhsum -H2` prints for the same bytes. */
#include "config.h"

#include "base/hash.h"

#include <xxhash.h>

#include "base/err.h"

struct hash; /* an XXH3_state_t behind an opaque name */

static XXH3_state_t *state_of(struct hash *h)
{
  return (XXH3_state_t *)h;
}

static void write_hex(XXH128_hash_t sum, char hex[33])
{
  XXH128_canonical_t c;
  XXH128_canonicalFromHash(&c, sum);
  for (int i = 0; i < 16; i++) {
    hex[2 * i] = "0123456789abcdef"[c.digest[i] >> 4];
    hex[2 * i + 1] = "0123456789abcdef"[c.digest[i] & 15];
  }
  hex[32] = '\0';
}

struct hash *hash_create(void)
{
  XXH3_state_t *s = XXH3_createState();
  if (!s || XXH3_128bits_reset(s) != XXH_OK)
    die("out of memory for a hash");
  return (struct hash *)s;
}

void hash_add(struct hash *h, const void *data, size_t n_bytes)
{
  if (n_bytes > 0 && XXH3_128bits_update(state_of(h), data, n_bytes) != XXH_OK)
    die("hash_add: bad state");
}

void hash_finish(struct hash *h, char hex[33])
{
  write_hex(XXH3_128bits_digest(state_of(h)), hex);
  XXH3_freeState(state_of(h));
}

void hash_buffer(const void *data, size_t n_bytes, char hex[33])
{
  write_hex(XXH3_128bits(data, n_bytes), hex);
}
