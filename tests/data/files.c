/* Writes and damages the small files of the data tests. */
#include "config.h"

#include "tests/data/files.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "tests/tap/tap.h"

static char dir[256];

void files_begin(void)
{
  const char *tmp = getenv("TMPDIR");
  snprintf(dir, sizeof dir, "%s/bitdial-data-XXXXXX", tmp && *tmp ? tmp : "/tmp");
  if (!mkdtemp(dir))
    tap_bail("mkdtemp %s", dir);
}

void files_end(void)
{
  DIR *d = opendir(dir);
  for (struct dirent *entry; d && (entry = readdir(d));)
    if (entry->d_name[0] != '.')
      unlink(files_path(entry->d_name));
  if (d)
    closedir(d);
  rmdir(dir);
}

const char *files_dir(void)
{
  return dir;
}

const char *files_path(const char *name)
{
  static char path[8][1024];
  static int at;
  at = (at + 1) % 8;
  snprintf(path[at], sizeof path[at], "%s/%s", dir, name);
  return path[at];
}

void files_write(const char *name, const void *bytes, size_t n)
{
  FILE *f = fopen(files_path(name), "wb");
  if (!f || fwrite(bytes, 1, n, f) != n || fclose(f) != 0)
    tap_bail("cannot write %s", files_path(name));
}

void files_write_gz(const char *name, const void *bytes, size_t n)
{
  gzFile f = gzopen(files_path(name), "wb");
  if (!f || gzwrite(f, bytes, (unsigned)n) != (int)n || gzclose(f) != Z_OK)
    tap_bail("cannot write %s", files_path(name));
}

void files_cut(const char *name, size_t n)
{
  if (truncate(files_path(name), (off_t)n) != 0)
    tap_bail("cannot cut %s", files_path(name));
}

void files_flip(const char *name, size_t at)
{
  FILE *f = fopen(files_path(name), "r+b");
  int c;
  if (!f || fseek(f, (long)at, SEEK_SET) != 0 || (c = fgetc(f)) == EOF || fseek(f, (long)at, SEEK_SET) != 0 ||
      fputc(c ^ 0xff, f) == EOF || fclose(f) != 0)
    tap_bail("cannot damage %s", files_path(name));
}

size_t files_size(const char *name)
{
  struct stat st;
  if (stat(files_path(name), &st) != 0)
    tap_bail("cannot stat %s", files_path(name));
  return (size_t)st.st_size;
}

size_t files_idx(uint8_t *out, int n_dims, const uint32_t *dim, const uint8_t *data, size_t n)
{
  uint8_t *p = out;
  *p++ = 0;
  *p++ = 0;
  *p++ = 8;
  *p++ = (uint8_t)n_dims;
  for (int i = 0; i < n_dims; i++)
    for (int shift = 24; shift >= 0; shift -= 8)
      *p++ = (uint8_t)(dim[i] >> shift);
  memcpy(p, data, n);
  return (size_t)(p - out) + n;
}
