/* idx files, good ones and every kind of damaged one: each gets its own clear message. */
#include "config.h"

#include "data/idx.h"

#include <string.h>
#include <sys/stat.h>

#include "tests/data/files.h"
#include "tests/tap/tap.h"

static uint8_t pixels[6 * 5 * 4];
static uint8_t bytes[4096];
static size_t n_bytes;

static void make_good(void)
{
  for (size_t i = 0; i < sizeof pixels; i++)
    pixels[i] = (uint8_t)(i * 7 + 3);
  n_bytes = files_idx(bytes, 3, (uint32_t[]){6, 5, 4}, pixels, sizeof pixels);
}

static void check_good(const char *name)
{
  struct idx x;
  struct err e = {""};
  int status = idx_read(files_path(name), 2, 4, &x, &e);
  ok(status == 0, "%s is read (%s)", name, e.msg);
  if (status != 0)
    return;
  ok(x.n_dims == 3 && x.dim[0] == 6 && x.dim[1] == 5 && x.dim[2] == 4, "%s: dimensions", name);
  ok(x.n == sizeof pixels && memcmp(x.data, pixels, sizeof pixels) == 0, "%s: values", name);
  idx_done(&x);
}

/* Fails, names the file, and says `why`. */
static void check_bad(const char *name, int min_dims, int max_dims, const char *why, const char *label)
{
  struct idx x;
  struct err e = {""};
  int status = idx_read(files_path(name), min_dims, max_dims, &x, &e);
  ok(status == -1 && strstr(e.msg, files_path(name)) && strstr(e.msg, why), "%s", label);
  if (status != -1 || !strstr(e.msg, why))
    tap_note("message: %s", e.msg);
  ok(x.data == NULL, "%s: nothing is left", label);
}

static void damaged_plain(void)
{
  files_write("cut-values", bytes, n_bytes - 1);
  check_bad("cut-values", 2, 4, "truncated", "values cut short");
  files_write("cut-header", bytes, 3);
  check_bad("cut-header", 2, 4, "truncated: the idx header needs 4 bytes", "header cut short");
  files_write("cut-dims", bytes, 9);
  check_bad("cut-dims", 2, 4, "truncated: the idx dimensions", "dimensions cut short");
  files_write("empty", bytes, 0);
  check_bad("empty", 2, 4, "truncated", "empty file");

  bytes[n_bytes] = 0x55;
  files_write("extra", bytes, n_bytes + 1);
  check_bad("extra", 2, 4, "bytes follow", "one byte too many");

  files_write("text", "P5 28 28 255\n", 13);
  check_bad("text", 2, 4, "not an idx file: it starts with 50 35 20 32", "another kind of file");

  uint8_t other[sizeof bytes];
  memcpy(other, bytes, n_bytes);
  other[2] = 0x0D;
  files_write("floats", other, n_bytes);
  check_bad("floats", 2, 4, "0x0d (float)", "values of another type");

  check_bad("good", 1, 1, "3 dimensions, expected 1", "images where labels are expected");
  uint8_t labels[16];
  size_t n = files_idx(labels, 1, (uint32_t[]){3}, (uint8_t[]){0, 1, 2}, 3);
  files_write("labels", labels, n);
  check_bad("labels", 2, 4, "1 dimensions, expected 2 to 4", "labels where images are expected");

  n = files_idx(other, 3, (uint32_t[]){6, 0, 4}, pixels, 0);
  files_write("zero", other, n);
  check_bad("zero", 2, 4, "dimension 2 is 0", "a dimension of 0");
  n = files_idx(other, 4, (uint32_t[]){0xffffffffu, 0xffffffffu, 0xffffffffu, 0xffffffffu}, pixels, 20);
  files_write("huge", other, n);
  check_bad("huge", 2, 4, "announces more values than", "dimensions whose product overflows");
  files_write_gz("huge.gz", other, n);
  check_bad("huge.gz", 2, 4, "announces more values than", "the same in gzip");

  check_bad("absent", 2, 4, "No such file", "no file");
  struct idx x;
  struct err e = {""};
  ok(idx_read(files_dir(), 2, 4, &x, &e) == -1 && strstr(e.msg, "not a regular file"), "a directory");
  if (mkfifo(files_path("fifo"), 0600) == 0)
    check_bad("fifo", 2, 4, "not a regular file", "a FIFO without a writer");
}

static void damaged_gzip(void)
{
  size_t size = files_size("good.gz");
  files_write_gz("cut.gz", bytes, n_bytes);
  files_cut("cut.gz", size / 2);
  check_bad("cut.gz", 2, 4, "truncated", "gzip cut in the middle");
  files_write_gz("cut-crc.gz", bytes, n_bytes);
  files_cut("cut-crc.gz", size - 4);
  check_bad("cut-crc.gz", 2, 4, "damaged at its end", "gzip without its whole trailer");
  files_write_gz("crc.gz", bytes, n_bytes);
  files_flip("crc.gz", size - 6); /* the CRC-32 is the last 8 to 5 bytes */
  check_bad("crc.gz", 2, 4, "damaged", "gzip with a wrong checksum");
  files_write_gz("extra.gz", bytes, n_bytes + 1);
  check_bad("extra.gz", 2, 4, "bytes follow", "gzip with one byte too many");
}

/* A flip of any one byte of the gzip file's body or trailer is noticed: the checksum covers all values. */
static void every_byte_counts(void)
{
  size_t size = files_size("good.gz"), missed = 0;
  for (size_t at = 10; at < size; at++) { /* the first 10 are gzip's own header: magic, flags, time, system */
    files_write_gz("flip.gz", bytes, n_bytes);
    files_flip("flip.gz", at);
    struct idx x;
    struct err e;
    if (idx_read(files_path("flip.gz"), 2, 4, &x, &e) == 0) {
      tap_note("flip of byte %zu was read", at);
      missed++;
      idx_done(&x);
    }
  }
  is_int(missed, 0, "each of %zu single-byte flips in a gzip file is noticed", size - 10);
}

int main(void)
{
  files_begin();
  make_good();
  files_write("good", bytes, n_bytes);
  files_write_gz("good.gz", bytes, n_bytes);
  check_good("good");
  check_good("good.gz");
  damaged_plain();
  damaged_gzip();
  every_byte_counts();
  files_end();
  return tap_done();
}
