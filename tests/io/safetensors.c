/* A written file byte by byte; a round trip; and files that are damaged, cut short or lie, each refused with a message
 * that says how. */
#include "config.h"

#include "io/safetensors.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "tests/tap/tap.h"

static char dir[] = "/tmp/bitdial-st-XXXXXX";
static char *path;

static void put(const char *header, uint64_t length, size_t n_data)
{
  FILE *f = fopen(path, "wb");
  if (!f)
    tap_bail("cannot write %s", path);
  for (int i = 0; i < 8; i++)
    fputc((int)(length >> 8 * i & 255), f);
  fwrite(header, 1, strlen(header), f);
  for (size_t i = 0; i < n_data; i++)
    fputc((int)i, f);
  fclose(f);
}

static size_t slurp(unsigned char *out, size_t max)
{
  FILE *f = fopen(path, "rb");
  if (!f)
    return 0;
  size_t n = fread(out, 1, max, f);
  fclose(f);
  return n;
}

/* The format's description followed by hand: length (little-endian), header padded with spaces to a multiple of 8, the
 * larger element first, no holes. */
static void test_bytes(void)
{
  static const float w[] = {1.0f, -2.0f};
  static const uint8_t u[] = {7, 8, 9};
  const struct st_tensor t[] = {
      {.name = "u", .dtype = "U8", .rank = 1, .shape = {3}, .data = u},
      {.name = "w\"1", .dtype = "F32", .rank = 2, .shape = {1, 2}, .data = w},
  };
  static const char *const metadata[] = {"kind", "test"};
  static const char header[] = "{\"__metadata__\":{\"kind\":\"test\"},"
                               "\"w\\\"1\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[0,8]},"
                               "\"u\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[8,11]}}";
  struct err e = {""};
  is_int(safetensors_save(path, t, 2, metadata, 1, &e), 0, "save %s", e.msg);
  unsigned char got[512], want[512] = {0};
  size_t n_header = (sizeof header - 1 + 7) / 8 * 8, n_want = 8 + n_header + 8 + 3;
  want[0] = (unsigned char)n_header;
  memset(want + 8, ' ', n_header);
  memcpy(want + 8, header, sizeof header - 1);
  memcpy(want + 8 + n_header, "\x00\x00\x80\x3f\x00\x00\x00\xc0\x07\x08\x09", 11);
  size_t n_got = slurp(got, sizeof got);
  is_int(n_got, n_want, "size of the file");
  ok(n_got == n_want && memcmp(got, want, n_want) == 0, "the file, byte by byte");
}

static void test_round_trip(void)
{
  enum { N = 1000 };
  static double d[N];
  static uint16_t h[3];
  for (int i = 0; i < N; i++)
    d[i] = i * 0.1;
  const struct st_tensor t[] = {
      {.name = "half", .dtype = "BF16", .rank = 1, .shape = {3}, .data = h},
      {.name = "double", .dtype = "F64", .rank = 4, .shape = {2, 5, 10, 10}, .data = d},
      {.name = "scalar", .dtype = "F64", .rank = 0, .data = &d[7]},
      {.name = "empty", .dtype = "I8", .rank = 2, .shape = {0, 5}, .data = NULL},
  };
  static const char *const metadata[] = {"a", "1", "b", "zwei \xc3\xbc \"quoted\""};
  struct err e = {""};
  is_int(safetensors_save(path, t, 4, metadata, 2, &e), 0, "save %s", e.msg);
  struct st_file *f = safetensors_open(path, &e);
  if (!f)
    tap_bail("%s", e.msg);
  is_int(safetensors_count(f), 4, "four tensors");
  const struct st_tensor *x = safetensors_find(f, "double");
  ok(x && strcmp(x->dtype, "F64") == 0 && x->rank == 4 && x->shape[1] == 5 && x->shape[3] == 10, "shape and dtype");
  ok(x && (uintptr_t)x->data % 8 == 0 && memcmp(x->data, d, sizeof d) == 0, "aligned values");
  x = safetensors_find(f, "scalar");
  ok(x && x->rank == 0 && memcmp(x->data, &d[7], 8) == 0, "a scalar");
  x = safetensors_find(f, "empty");
  ok(x && x->rank == 2 && x->shape[0] == 0, "an empty one");
  ok(!safetensors_find(f, "nothing"), "one that is not there");
  is_str(safetensors_metadata(f, "b"), "zwei \xc3\xbc \"quoted\"", "metadata");
  is_str(safetensors_metadata(f, "c"), NULL, "metadata that is not there");
  ok(!safetensors_at(f, 4), "no fifth");

  /* Saved over while it is open: the reader keeps what it mapped. */
  static const float other[N];
  const struct st_tensor t2 = {.name = "z", .dtype = "F32", .rank = 1, .shape = {N}, .data = other};
  is_int(safetensors_save(path, &t2, 1, NULL, 0, &e), 0, "save over it %s", e.msg);
  ok(memcmp(safetensors_find(f, "double")->data, d, sizeof d) == 0, "the open one still has its values");
  safetensors_close(f);
  safetensors_close(NULL);
}

/* Others' files: unpadded header, a tensor off its alignment, spaces, unknown keys. */
static void test_foreign(void)
{
  static const char header[] = "{ \"a\" : {\"shape\":[3],\"dtype\":\"U8\",\"data_offsets\":[0,3],\"extra\":null}, "
                               "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[3,7]}}   ";
  struct err e = {""};
  put(header, sizeof header - 1, 7);
  struct st_file *f = safetensors_open(path, &e);
  ok(f != NULL, "opens %s", f ? "" : e.msg);
  if (!f)
    return;
  const struct st_tensor *b = safetensors_find(f, "b");
  ok(b && (uintptr_t)b->data % 4 == 0 && memcmp(b->data, "\3\4\5\6", 4) == 0, "an unaligned tensor is copied");
  safetensors_close(f);
  put("{}", 2, 0);
  f = safetensors_open(path, &e);
  ok(f && safetensors_count(f) == 0 && !safetensors_metadata(f, "x"), "no tensors at all");
  safetensors_close(f);
}

#define T(name, dtype, shape, offsets)                                                                                 \
  "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"
static const struct bad {
  const char *header, *says;
  size_t n_data;
} bad[] = {
    {"{" T("a", "F32", "[2]", "[0,8]") "}", "do not lie in the file's 7 bytes", 7},
    {"{" T("a", "F32", "[2]", "[0,8]") "}", "1 bytes after the last tensor", 9},
    {"{" T("a", "U8", "[8]", "[0,8]") "," T("b", "U8", "[8]", "[4,12]") "}", "tensor b overlaps a", 12},
    {"{" T("a", "U8", "[8]", "[0,8]") "," T("b", "U8", "[8]", "[0,8]") "}", "overlaps", 8},
    {"{" T("a", "U8", "[4]", "[0,4]") "," T("b", "U8", "[4]", "[8,12]") "}", "4 bytes before tensor b", 12},
    {"{" T("a", "U8", "[4]", "[4,8]") "}", "4 bytes before tensor a", 8},
    {"{" T("a", "F32", "[3]", "[0,8]") "}", "needs 12 bytes, its data_offsets give 8", 8},
    {"{" T("a", "F32", "[2]", "[8,0]") "}", "data_offsets 8 to 0", 8},
    {"{" T("a", "F32", "[2]", "[-8,0]") "}", "not two whole numbers", 8},
    {"{" T("a", "F32", "[2]", "[0,8,16]") "}", "not two whole numbers", 8},
    {"{" T("a", "F32", "[2]", "[0,8.0]") "}", "not two whole numbers", 8},
    {"{" T("a", "F32", "[2]", "[0,99999999999999999999]") "}", "damaged", 8},
    {"{" T("a", "F32", "[4611686018427387904,4]", "[0,8]") "}", "overflows", 8},
    {"{" T("a", "F32", "[4611686018427387905]", "[0,4]") "}", "overflows", 4},
    {"{" T("a", "F32", "[-2]", "[0,8]") "}", "shape[0]", 8},
    {"{" T("a", "F32", "2", "[0,8]") "}", "shape is missing or no array", 8},
    {"{" T("a", "F32", "[1,1,1,1,2]", "[0,8]") "}", "rank 5", 8},
    {"{" T("a", "F4", "[16]", "[0,8]") "}", "unknown dtype F4", 8},
    {"{" T("a", "F32", "[2]", "[0,8]") "," T("a", "F32", "[2]", "[0,8]") "}", "duplicate", 8},
    {"{\"a\":{\"shape\":[2],\"data_offsets\":[0,8]}}", "dtype is missing", 8},
    {"{\"a\":7}", "no object", 0},
    {"{\"__metadata__\":7}", "no object", 0},
    {"{\"__metadata__\":{\"k\":7}}", "no string", 0},
    {"{\"a\":", "damaged", 0},
    {"{}x", "damaged", 0},
    {"{\"\xff\":1}", "damaged", 0},
    {"[]", "does not begin with {", 0},
    {"", "too few", 0},
};

static void test_damaged(void)
{
  struct err e;
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    const struct bad *b = &bad[i];
    put(b->header, strlen(b->header), b->n_data);
    if (strcmp(b->says, "too few") == 0 && truncate(path, 5) != 0)
      tap_bail("cannot truncate");
    e.msg[0] = '\0';
    struct st_file *f = safetensors_open(path, &e);
    ok(!f && strstr(e.msg, b->says) && strstr(e.msg, path), "refused: %s", f ? b->header : e.msg + strlen(path) + 14);
    safetensors_close(f);
  }
  static const struct {
    uint64_t length;
    const char *says;
  } row[] = {{UINT64_MAX, "damaged one"}, {100000001, "damaged one"}, {100000000, "truncated"}, {3, "truncated"},
             {0, "does not begin"}};
  for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
    put("{}", row[i].length, 0);
    struct st_file *f = safetensors_open(path, &e);
    ok(!f && strstr(e.msg, row[i].says), "header length %llu: %s", (unsigned long long)row[i].length,
       f ? "taken" : e.msg + strlen(path) + 14);
    safetensors_close(f);
  }
}

/* A valid file cut at every length, and with every byte of its header changed: refused or read, never a crash (the
 * sanitizer build sees reads outside). A cut file is always refused. */
static void test_every_cut(void)
{
  static const float w[6];
  const struct st_tensor t[] = {
      {.name = "a", .dtype = "F32", .rank = 1, .shape = {4}, .data = w},
      {.name = "b", .dtype = "F32", .rank = 2, .shape = {1, 2}, .data = w},
  };
  struct err e = {""};
  unsigned char all[512], changed[512];
  is_int(safetensors_save(path, t, 2, NULL, 0, &e), 0, "save %s", e.msg);
  size_t n = slurp(all, sizeof all);
  int n_taken = 0;
  for (size_t cut = 0; cut < n; cut++) {
    FILE *f = fopen(path, "wb");
    fwrite(all, 1, cut, f);
    fclose(f);
    struct st_file *s = safetensors_open(path, &e);
    n_taken += s != NULL;
    safetensors_close(s);
  }
  is_int(n_taken, 0, "cut at each of %zu lengths: always refused", n);
  int n_bad = 0;
  for (size_t at = 0; at < n - sizeof w; at++)
    for (int bit = 0; bit < 8; bit++) {
      memcpy(changed, all, n);
      changed[at] ^= (unsigned char)(1 << bit);
      FILE *f = fopen(path, "wb");
      fwrite(changed, 1, n, f);
      fclose(f);
      struct st_file *s = safetensors_open(path, &e);
      for (size_t i = 0; s && i < safetensors_count(s); i++) {
        const struct st_tensor *x = safetensors_at(s, i);
        size_t bytes = safetensors_dtype_bytes(x->dtype);
        for (int k = 0; k < x->rank; k++)
          bytes *= x->shape[k];
        n_bad += bytes > sizeof w;
        n_bad += bytes > 0 && memcmp(x->data, w, bytes) != 0;
      }
      safetensors_close(s);
    }
  is_int(n_bad, 0, "one bit of the header changed, each in turn: refused or in bounds");
}

static void test_save_failures(void)
{
  static const float w[4096];
  struct st_tensor t = {.name = "w", .dtype = "F32", .rank = 1, .shape = {4096}, .data = w};
  struct err e = {""};
  unsigned char before[512], after[512];
  put("{}", 2, 0);
  size_t n = slurp(before, sizeof before);

  struct rlimit old, small;
  getrlimit(RLIMIT_FSIZE, &old);
  small = old;
  small.rlim_cur = 5000;
  setrlimit(RLIMIT_FSIZE, &small);
  int status = safetensors_save(path, &t, 1, NULL, 0, &e);
  setrlimit(RLIMIT_FSIZE, &old);
  is_int(status, -1, "no room: %s", e.msg);
  ok(slurp(after, sizeof after) == n && memcmp(before, after, n) == 0, "the old file is untouched");

  is_int(safetensors_save(dir, &t, 1, NULL, 0, &e), -1, "a directory: %s", e.msg);
  is_int(safetensors_save("/dev/null", &t, 1, NULL, 0, &e), -1, "a device: %s", e.msg);
  struct stat st;
  ok(stat("/dev/null", &st) == 0 && S_ISCHR(st.st_mode), "which is still one");
  char *nowhere = mem_printf("%s/no/x", dir);
  is_int(safetensors_save(nowhere, &t, 1, NULL, 0, &e), -1, "no directory: %s", e.msg);
  mem_free(nowhere);

  char *link = mem_printf("%s/link", dir);
  ok(symlink("x.safetensors", link) == 0 && safetensors_save(link, &t, 1, NULL, 0, &e) == 0, "through a link");
  ok(lstat(link, &st) == 0 && S_ISLNK(st.st_mode) && stat(path, &st) == 0 && st.st_size > 16384, "the link stays one");
  unlink(link);
  mem_free(link);

  t.dtype = "F33";
  is_int(safetensors_save(path, &t, 1, NULL, 0, &e), -1, "%s", e.msg);
  t.dtype = "F32";
  t.shape[0] = SIZE_MAX / 2;
  is_int(safetensors_save(path, &t, 1, NULL, 0, &e), -1, "%s", e.msg);
  const struct st_tensor two[] = {{.name = "x", .dtype = "U8", .rank = 1, .data = w},
                                  {.name = "x", .dtype = "U8", .rank = 1, .data = w}};
  is_int(safetensors_save(path, two, 2, NULL, 0, &e), -1, "%s", e.msg);
}

static void test_not_files(void)
{
  struct err e = {""};
  ok(!safetensors_open(dir, &e) && strstr(e.msg, "not a regular file"), "%s", e.msg);
  ok(!safetensors_open("/no/such/file", &e) && strstr(e.msg, "No such file"), "%s", e.msg);
  char *fifo = mem_printf("%s/fifo", dir);
  ok(mkfifo(fifo, 0600) == 0 && !safetensors_open(fifo, &e), "a fifo does not hang: %s", e.msg);
  unlink(fifo);
  mem_free(fifo);
}

int main(void)
{
  signal(SIGXFSZ, SIG_IGN);
  if (!mkdtemp(dir))
    tap_bail("no temporary directory");
  path = mem_printf("%s/x.safetensors", dir);
  test_bytes();
  test_round_trip();
  test_foreign();
  test_damaged();
  test_every_cut();
  test_save_failures();
  test_not_files();
  unlink(path);
  mem_free(path);
  is_int(rmdir(dir), 0, "nothing left behind, no temporary either");
  return tap_done();
}
