/* bitdial round: a calculator and a filter for millions of lines. Numbers are taken in batches, rounded by the very
 * code that training uses, and printed in the notation in which each came. */
#include "config.h"

#include "cmd_round.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/mem.h"
#include "numeric/random.h"
#include "numeric/scale.h"

enum {
  OPT_FORMAT,
  OPT_MODE,
  OPT_SCALE,
  OPT_ZERO_POINT,
  OPT_SATURATE,
  OPT_NO_SATURATE,
  OPT_SUBNORMALS,
  OPT_RANDOM_BITS,
  OPT_RANDOM_COLUMN,
  OPT_SEED,
  OPT_EPS,
  OPT_BITS,
};

const struct cmd_option round_options[] = {
    [OPT_FORMAT] = {"format", "F", "number format to round to; `bitdial formats` lists them"},
    [OPT_MODE] = {"mode", "M",
                  "rounding mode: rne (default), rna, rtz, ru, rd, ro, rne_code, sr, sr_ff, sr_f, sr_c, "
                  "sr_eq, sr_eps, signed_sr_eps, qr"},
    [OPT_SCALE] = {"scale", "S", "scale: x / S is rounded and multiplied by S (default 1)"},
    [OPT_ZERO_POINT] = {"zero-point", "Z", "zero point of uintN; intN with a zero point other than 0 is uintN"},
    [OPT_SATURATE] = {"saturate", NULL, "what is too large becomes the largest finite value (default)"},
    [OPT_NO_SATURATE] = {"no-saturate", NULL, "what is too large becomes Inf, or NaN where the format has no Inf"},
    [OPT_SUBNORMALS] = {"subnormals", "full|flush", "keep subnormal results (default) or make them zero"},
    [OPT_RANDOM_BITS] = {"random-bits", "K",
                         "random bits an element: 32 (default), 16 or 8; sr_ff, sr_f, sr_c: 1 to 32"},
    [OPT_RANDOM_COLUMN] = {"random-column", NULL, "each line has a second field, the random integer to use, below 2^K"},
    [OPT_SEED] = {"seed", "N", "seed of the random numbers where there is no random column (default 1)"},
    [OPT_EPS] = {"eps", "E", "eps of sr_eps and signed_sr_eps, in ulp (default 0)"},
    [OPT_BITS] = {"bits", NULL, "numbers are 0x and the 8 hex digits of an IEEE binary32, in and out"},
    {0},
};

const char round_details[] = "Reads one number a line, decimal or C hexadecimal, and prints one number a line in the "
                             "same notation; every NaN is "
                             "printed alike. Blank lines and what follows a # are skipped. In block formats as many "
                             "numbers as a block has share "
                             "a scale. Stops at the first line that is wrong, naming it: exit status 1.";

enum { BATCH = RANDOM_BUFFER, MAX_LINE = 4096, CACHE = 4096 };
enum notation { DECIMAL, HEX_FLOAT, BITS };

struct rounder {
  const struct command *command;
  struct spec spec;
  struct kernel_plan plan;
  bool is_block, bits, random_column, stochastic;
  size_t batch; /* numbers taken before they are rounded and printed */

  float x[BATCH];
  uint32_t random[BATCH];
  enum notation notation[BATCH];
  size_t n;
  uint64_t element; /* numbers printed so far */

  /* Decimals of values printed lately: small formats have few. */
  struct {
    uint32_t bits;
    char text[20];
  } cache[CACHE];
};

static uint32_t bits_of(float x)
{
  uint32_t u;
  memcpy(&u, &x, sizeof u);
  return u;
}

/* "0x" and exactly 8 hex digits. */
static bool parse_bits(const char *s, char **end, float *out)
{
  if (s[0] != '0' || (s[1] | 32) != 'x' || strspn(s + 2, "0123456789abcdefABCDEF") != 8)
    return false;
  uint32_t u = (uint32_t)strtoul(s, end, 16);
  memcpy(out, &u, sizeof u);
  return true;
}

static bool parse_float(const char *s, char **end, float *out)
{
  *out = strtof(s, end); /* beyond fp32 is Inf or 0, as IEEE 754 converts */
  return *end != s;
}

static bool is_blank(char c)
{
  return c == ' ' || c == '\t' || c == '\r';
}

static char *skip_blank(char *s)
{
  while (is_blank(*s))
    s++;
  return s;
}

static int bad_line(uint64_t line, struct err *e, const char *text, const char *why)
{
  return err_set(e, "line %llu: '%.60s': %s", (unsigned long long)line, text, why);
}

/* One line, NUL-terminated, into the batch; comments and blank ones leave it as it is. */
static int take_line(struct rounder *r, char *line, uint64_t number, struct err *e)
{
  line[strcspn(line, "#")] = '\0';
  char *s = skip_blank(line), *end = s;
  if (!*s)
    return 0;
  size_t last = strlen(s);
  while (is_blank(s[last - 1]))
    s[--last] = '\0';
  if (!(r->bits ? parse_bits : parse_float)(s, &end, &r->x[r->n]))
    return bad_line(number, e, s, r->bits ? "expected 0x and 8 hex digits" : "not a number");
  if (*end && !is_blank(*end))
    return bad_line(number, e, s, r->bits ? "expected 0x and 8 hex digits" : "not a number");
  const char *digits = s + (*s == '-' || *s == '+');
  r->notation[r->n] = r->bits ? BITS : digits[0] == '0' && (digits[1] | 32) == 'x' ? HEX_FLOAT : DECIMAL;
  char *second = skip_blank(end);
  if (!r->random_column && *second)
    return bad_line(number, e, s, "one number a line; a second field needs --random-column");
  if (r->random_column) {
    errno = 0;
    unsigned long long v = strtoull(second, &end, 0);
    if (!*second || *second == '-' || *skip_blank(end) || errno)
      return bad_line(number, e, s, "expected a number and a random integer");
    if (r->stochastic && v >> r->plan.k_bits)
      return bad_line(number, e, s, "the random integer is not below 2^random-bits");
    r->random[r->n] = (uint32_t)v;
  }
  r->n++;
  return 0;
}

static const char *decimal(struct rounder *r, float v)
{
  uint32_t u = bits_of(v), at = (u ^ u >> 12 ^ u >> 20) % CACHE;
  if (r->cache[at].bits != u || !r->cache[at].text[0]) {
    char text[32];
    r->cache[at].bits = u;
    str_copy(r->cache[at].text, sizeof r->cache[at].text, str_float(v, text));
  }
  return r->cache[at].text;
}

static void print_value(struct rounder *r, float v, enum notation notation)
{
  static const char digits[] = "0123456789abcdef";
  if (notation == BITS) {
    uint32_t u = isnan(v) ? 0x7fc00000u : bits_of(v);
    char text[] = "0x00000000";
    for (int i = 0; i < 8; i++)
      text[9 - i] = digits[u >> (4 * i) & 15];
    puts(text);
  } else if (isnan(v)) {
    puts("nan");
  } else if (notation == HEX_FLOAT) {
    printf("%a\n", (double)v);
  } else {
    puts(decimal(r, v));
  }
}

/* The batch's own scale, in block formats; as quantize() finds it. */
static void set_block_scale(struct rounder *r)
{
  const struct format *grid = r->spec.format->element;
  struct scale_input in;
  bool non_finite = false;
  scale_look(&r->spec, r->x, r->n, &in, &non_finite);
  kernel_plan_set_scale(&r->plan, scale_of_group(&r->spec, grid, &in).scale);
}

static int print_batch(struct rounder *r, struct err *e)
{
  if (r->n == 0)
    return 0;
  if (r->is_block)
    set_block_scale(r);
  if (r->stochastic && !r->random_column)
    random_fill(&r->plan, r->element, r->n, r->random);
  for (size_t i = 0; i < r->n; i++)
    print_value(r, kernel_round_one(&r->plan, r->x[i], r->random[i]), r->notation[i]);
  r->element += r->n;
  r->n = 0;
  if (r->batch == 1)
    fflush(stdout);
  return ferror(stdout) ? err_set(e, "standard output: %s", strerror(errno)) : 0;
}

static int round_lines(struct rounder *r, FILE *in, struct err *e)
{
  static char line[MAX_LINE];
  for (uint64_t number = 1; fgets(line, sizeof line, in); number++) {
    size_t n = strlen(line);
    if (n && line[n - 1] == '\n')
      line[n - 1] = '\0';
    else if (!feof(in))
      return bad_line(number, e, line, n + 1 < sizeof line ? "has a NUL byte" : "too long");
    if (take_line(r, line, number, e))
      return -1;
    if (r->n == r->batch && print_batch(r, e))
      return -1;
  }
  if (ferror(in))
    return err_set(e, "standard input: %s", strerror(errno));
  return print_batch(r, e);
}

static int parse_long(const char *option, const char *text, long lo, long hi, long *out, struct err *e)
{
  char *end;
  errno = 0;
  *out = strtol(text, &end, 10);
  if (errno || end == text || *end || *out < lo || *out > hi)
    return err_set(e, "--%s %s: expected a whole number from %ld to %ld", option, text, lo, hi);
  return 0;
}

static int set_scale(struct rounder *r, const struct cmd_args *a, struct err *e)
{
  const char *text = a->value[OPT_SCALE];
  char *end;
  if (r->is_block)
    return text ? err_set(e, "--scale: format %s finds its own scales", r->spec.format->name) : 0;
  r->spec.scale = SCALE_FIXED;
  r->spec.granularity = GRAIN_TENSOR;
  if (!text)
    return 0;
  if (!(r->bits && parse_bits(text, &end, &r->spec.fixed_scale)) && !parse_float(text, &end, &r->spec.fixed_scale))
    return err_set(e, "--scale %s: not a number", text);
  if (*end || !(r->spec.fixed_scale >= 0x1p-126f && r->spec.fixed_scale <= 0x1p126f))
    return err_set(e, "--scale %s: must be a number from 2^-126 to 2^126", text);
  return 0;
}

static int set_zero_point(struct rounder *r, const char *text, struct err *e)
{
  long z;
  if (!text)
    return 0;
  if (parse_long("zero-point", text, 0, 65535, &z, e))
    return -1;
  const struct format *f = r->spec.format;
  char name[16];
  snprintf(name, sizeof name, "uint%d", f->total_bits);
  if (f->family == FORMAT_INT && z != 0)
    r->spec.format = format_find(name, NULL);
  r->spec.zero_point = (int)z;
  return 0;
}

static int set_spec(struct rounder *r, const struct cmd_args *a, struct err *e)
{
  const char *const *v = a->value;
  enum rounding mode = ROUND_RNE;
  if (!v[OPT_FORMAT])
    return err_set(e, "--format F is needed");
  const struct format *f = format_find(v[OPT_FORMAT], e);
  if (!f || (v[OPT_MODE] && rounding_find(v[OPT_MODE], &mode, e)))
    return -1;
  if (f->family == FORMAT_BLOCK && strncmp(f->name, "nvfp4", 5) == 0)
    return err_set(e, "--format %s: its scales need the whole tensor; round its elements with --format %s --scale S",
                   f->name, f->element->name);
  if (v[OPT_SATURATE] && v[OPT_NO_SATURATE])
    return err_set(e, "--saturate and --no-saturate exclude each other");
  r->spec = spec_default(f, mode);
  r->is_block = f->family == FORMAT_BLOCK;
  r->bits = v[OPT_BITS];
  r->spec.no_saturate = v[OPT_NO_SATURATE];
  if (set_scale(r, a, e) || set_zero_point(r, v[OPT_ZERO_POINT], e))
    return -1;
  if (v[OPT_SUBNORMALS] && spec_set(&r->spec, "subnormals", v[OPT_SUBNORMALS], e))
    return -1;
  if (v[OPT_EPS] && spec_set(&r->spec, "eps", v[OPT_EPS], e))
    return -1;
  if (v[OPT_RANDOM_BITS] && spec_set(&r->spec, "random_bits", v[OPT_RANDOM_BITS], e))
    return -1;
  return spec_check(&r->spec, e);
}

static int set_up(struct rounder *r, const struct cmd_args *a, struct err *e)
{
  long seed = 1;
  if (set_spec(r, a, e))
    return -1;
  if (a->value[OPT_SEED] && parse_long("seed", a->value[OPT_SEED], 0, INT64_MAX, &seed, e))
    return -1;
  const struct format *f = r->spec.format;
  kernel_plan_init(&r->plan, &r->spec, r->is_block ? f->element : f, r->is_block ? 1 : r->spec.fixed_scale);
  r->plan.zero_point = (float)r->spec.zero_point;
  r->plan.key = rng_derive((uint64_t)seed, RNG_USER, 0, 0, 0);
  r->plan.shift = r->plan.key.k[0] ^ r->plan.key.k[1];
  r->plan.cols = UINT64_MAX; /* quasi-random: one row */
  r->stochastic = spec_is_stochastic(&r->spec);
  r->random_column = a->value[OPT_RANDOM_COLUMN];
  r->batch = r->is_block ? (size_t)f->block : isatty(STDIN_FILENO) ? 1 : BATCH;
  return 0;
}

int cmd_round(int argc, char **argv)
{
  const struct command *c = command_find("round");
  struct cmd_args a;
  struct err e;
  int status = cmd_parse(c, argc, argv, &a);
  if (status >= 0)
    return status;
  struct rounder *r = mem_alloc(sizeof *r);
  status = STATUS_DONE;
  if (set_up(r, &a, &e)) {
    status = cmd_usage_error(c, &e);
  } else if (round_lines(r, stdin, &e)) {
    struct err more;
    if (r->n)
      (void)print_batch(r, &more); /* what came before the bad line */
    fflush(stdout);
    status = cmd_fail(c, &e);
  } else if (fflush(stdout)) {
    err_set(&e, "standard output: %s", strerror(errno));
    status = cmd_fail(c, &e);
  }
  mem_free(r);
  cmd_args_done(&a);
  return status;
}
