/* Every row of the files of expected values in tests/numeric/vectors, through the library. Other files of the same
 * kinds can be given as arguments: vectors.t FILE...; the header line tells the kind. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>

#include "helper.h"

enum { MAX_GROUPS = 600, LINE_BYTES = 1 << 16 };

/* Rows that share format and mode: one test each. */
struct group {
  char name[64];
  long n_rows, n_bad;
};
static struct group groups[MAX_GROUPS];
static int n_groups;

static struct group *group_of(const char *a, const char *b)
{
  char name[64];
  snprintf(name, sizeof name, "%s %s", a, b);
  for (int i = 0; i < n_groups; i++)
    if (strcmp(groups[i].name, name) == 0)
      return &groups[i];
  if (n_groups == MAX_GROUPS)
    tap_bail("more than %d kinds of rows", MAX_GROUPS);
  struct group *g = &groups[n_groups++];
  *g = (struct group){0};
  strcpy(g->name, name);
  return g;
}

static void mismatch(struct group *g, long line, const char *what, uint32_t got, uint32_t want)
{
  if (g->n_bad++ < 5)
    tap_note("line %ld: %s is %08x, expected %08x", line, what, got, want);
}

static uint32_t hex(const char *s)
{
  return (uint32_t)strtoul(s, NULL, 16);
}

static enum rounding find_mode(const char *name)
{
  enum rounding r;
  struct err e;
  if (rounding_find(name, &r, &e))
    tap_bail("%s", e.msg);
  return r;
}

static void check_spec(const struct spec *s)
{
  struct err e;
  if (spec_check(s, &e))
    tap_bail("%s", e.msg);
}

/* format,mode,saturate,input,random_bits,k,expected */
static void float_row(char **f, long line)
{
  struct group *g = group_of(f[0], f[1]);
  struct spec s = spec_default(find_format(f[0]), find_mode(f[1]));
  struct kernel_plan p;
  s.no_saturate = atoi(f[2]) == 0;
  s.scale = SCALE_NONE;
  if (atoi(f[5]))
    s.random_bits = atoi(f[5]);
  check_spec(&s);
  kernel_plan_init(&p, &s, s.format, 1);
  float y = kernel_round_one(&p, float_of(hex(f[3])), (uint32_t)strtoul(f[4], NULL, 10)), want = float_of(hex(f[6]));
  g->n_rows++;
  if (!same(y, want))
    mismatch(g, line, "result", bits_of(y), bits_of(want));
}

/* format,scheme,mode,scale,zero_point,input,random_bits,k,expected_int,dequant */
static void int_row(char **f, long line)
{
  bool affine = strcmp(f[1], "affine") == 0;
  char name[32];
  snprintf(name, sizeof name, "%s%s", affine ? "u" : "", f[0]);
  struct group *g = group_of(name, f[2]);
  struct spec s = spec_default(find_format(name), find_mode(f[2]));
  struct kernel_plan p;
  s.scale = SCALE_FIXED;
  s.fixed_scale = float_of(hex(f[3]));
  s.zero_point = atoi(f[4]);
  if (atoi(f[7]))
    s.random_bits = atoi(f[7]);
  check_spec(&s);
  kernel_plan_init(&p, &s, s.format, s.fixed_scale);
  p.zero_point = (float)s.zero_point;
  float x = float_of(hex(f[5])), y = kernel_round_one(&p, x, (uint32_t)strtoul(f[6], NULL, 10));
  int code = (int)lrint((double)y / (double)s.fixed_scale) + s.zero_point;
  g->n_rows++;
  if (!same(y, float_of(hex(f[9]))))
    mismatch(g, line, "value", bits_of(y), hex(f[9]));
  else if (code != atoi(f[8]))
    mismatch(g, line, "code", (uint32_t)code, (uint32_t)atoi(f[8]));
}

static size_t parse_list(char *text, float *out)
{
  size_t n = 0;
  for (char *end; *text; text = end + (*end == ' '))
    out[n++] = float_of((uint32_t)strtoul(text, &end, 16));
  return n;
}

static void compare_block(struct group *g, const struct spec *s, char *inputs, char *outputs, long line,
                          bool sign_of_zero, float *scale)
{
  float x[256], y[256], want[256];
  struct quant_info info;
  size_t n = parse_list(inputs, x);
  if (parse_list(outputs, want) != n)
    tap_bail("line %ld: lists of different lengths", line);
  check_spec(s);
  quantize(s, x, 1, n, NULL, y, NULL, NULL, NULL, &info);
  g->n_rows++;
  *scale = info.scale;
  for (size_t i = 0; i < n; i++)
    if (sign_of_zero ? !same(y[i], want[i]) : y[i] != want[i]) {
      mismatch(g, line, "an element", bits_of(y[i]), bits_of(want[i]));
      return;
    }
}

/* format,scale_rule,kind,scale_e8m0,inputs(32),dequant(32) */
static void mx_row(char **f, long line)
{
  struct group *g = group_of(f[0], f[1]);
  struct spec s = spec_default(find_format(f[0]), ROUND_RNE);
  struct err e;
  float scale;
  if (spec_set(&s, "scale", f[1], &e))
    tap_bail("%s", e.msg);
  compare_block(g, &s, f[4], f[5], line, true, &scale);
  if (scale != ldexpf(1, (int)hex(f[3]) - 127))
    mismatch(g, line, "scale", bits_of(scale), bits_of(ldexpf(1, (int)hex(f[3]) - 127)));
}

/* variant,kind,n,tensor_amax,s_global,scale_e4m3,inputs,dequant. The file writes every zero as +0; bitdial keeps the
 * sign of the input, as it does for MX. */
static void nvfp4_row(char **f, long line)
{
  struct group *g = group_of(f[0], f[1]);
  struct spec s = spec_default(find_format(f[0]), ROUND_RNE);
  float scale;
  compare_block(g, &s, f[6], f[7], line, false, &scale);
}

static const struct kind {
  const char *header; /* the line's beginning */
  int n_fields;
  void (*row)(char **fields, long line);
} kinds[] = {
    {"format,mode,saturate,", 7, float_row},
    {"format,scheme,mode,", 10, int_row},
    {"format,scale_rule,", 6, mx_row},
    {"variant,kind,n,", 8, nvfp4_row},
};

static void check_file(const char *path)
{
  static char line[LINE_BYTES];
  gzFile in = gzopen(path, "rb");
  if (!in || !gzgets(in, line, sizeof line))
    tap_bail("%s: cannot be read", path);
  const struct kind *kind = NULL;
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (strncmp(line, kinds[i].header, strlen(kinds[i].header)) == 0)
      kind = &kinds[i];
  if (!kind)
    tap_bail("%s: unknown kind", path);
  n_groups = 0;
  long n = 1;
  while (gzgets(in, line, sizeof line)) {
    char *field[12] = {0}, *rest = line;
    int n_fields = 0;
    line[strcspn(line, "\r\n")] = '\0';
    n++;
    while (rest && n_fields < 12)
      field[n_fields++] = strsep(&rest, ",");
    if (n_fields != kind->n_fields)
      tap_bail("%s: line %ld: %d fields, not %d", path, n, n_fields, kind->n_fields);
    kind->row(field, n);
  }
  gzclose(in);
  const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
  for (int i = 0; i < n_groups; i++)
    ok(groups[i].n_bad == 0, "%s: %s: %ld of %ld rows differ", base, groups[i].name, groups[i].n_bad, groups[i].n_rows);
  ok(n > 500, "%s: %ld rows", base, n - 1);
}

int main(int argc, char **argv)
{
  static const char *const files[] = {"float_small.csv", "int.csv", "mx.csv.gz", "nvfp4.csv.gz"};
  for (int i = 1; i < argc; i++)
    check_file(argv[i]);
  for (size_t i = 0; argc == 1 && i < sizeof files / sizeof *files; i++) {
    char path[4096];
    const char *top = getenv("top_srcdir");
    snprintf(path, sizeof path, "%s/tests/numeric/vectors/%s", top ? top : ".", files[i]);
    check_file(path);
  }
  return tap_done();
}
