/* The table of number formats and the rules that make the others: eXmY[ieee|fn|fin|fnuz], intN, uintN, q(WL,FL).
 * Formats are interned and live as long as the process. */
#include "config.h"

#include "numeric/format.h"

#include <ctype.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

/* Names that are listed, in that order; what they mean comes from the rules below. */
static const char *const listed[] = {
    "fp32",  "tf32",  "bf16",  "fp16",  "e5m2",   "e5m2fnuz", "e4m3",   "e4m3fnuz", "e4m3fin", "e4m2",   "e4m1",
    "e4m0",  "e3m2",  "e2m3",  "e2m1",  "int16",  "int8",     "int7",   "int6",     "int5",    "int4",   "int3",
    "int2",  "uint8", "uint4", "q(8,4)", "ternary", "binary", "mxfp8e4m3", "mxfp8e5m2", "mxfp6e3m2", "mxfp6e2m3",
    "mxfp4", "mxint8", "nvfp4",
};

struct float_name {
  const char *name, *alias; /* alias: other names, one space between */
  int exp_bits, frac_bits;
  enum float_kind kind;
};
/* Those whose name does not follow from the rule, and OCP's, which keep the plain name. */
static const struct float_name float_names[] = {
    {"fp32", "float32 binary32 f32 e8m23", 8, 23, FLOAT_IEEE},
    {"tf32", "e8m10", 8, 10, FLOAT_IEEE},
    {"bf16", "bfloat16 e8m7", 8, 7, FLOAT_IEEE},
    {"fp16", "binary16 float16 f16 half e5m10", 5, 10, FLOAT_IEEE},
    {"e5m2", "ocp_e5m2 e5m2ieee e5m2_ieee fp8_e5m2", 5, 2, FLOAT_IEEE},
    {"e4m3", "ocp_e4m3 e4m3fn e4m3_fn fp8_e4m3", 4, 3, FLOAT_FN},
    {"e3m2", "ocp_e3m2 e3m2fin fp6_e3m2", 3, 2, FLOAT_FIN},
    {"e2m3", "ocp_e2m3 e2m3fin fp6_e2m3", 2, 3, FLOAT_FIN},
    {"e2m1", "ocp_e2m1 e2m1fin fp4 fp4_e2m1", 2, 1, FLOAT_FIN},
};

struct block_name {
  const char *name, *alias, *element, *scale_rule;
  int block;
};
static const struct block_name block_names[] = {
    {"mxfp8e4m3", "mxfp8_e4m3 mxfp8", "e4m3", "rceil", 32}, {"mxfp8e5m2", "mxfp8_e5m2", "e5m2", "rceil", 32},
    {"mxfp6e3m2", "mxfp6_e3m2", "e3m2", "rceil", 32},       {"mxfp6e2m3", "mxfp6_e2m3 mxfp6", "e2m3", "rceil", 32},
    {"mxfp4", "mxfp4_e2m1 mxfp4e2m1", "e2m1", "rceil", 32}, {"mxint8", "mxint8_sym", "q(8,6)", "rceil", 32},
    {"nvfp4", "", "e2m1", "nvfp4", 16},
};

static const char *const kind_names[] = {"ieee", "fn", "fin", "fnuz"};
static const char *const family_names[] = {"float", "int", "uint", "fixed", "ternary", "binary", "block"};

#define MAX_FORMATS 512
static struct format *interned[MAX_FORMATS];
static size_t n_interned;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool is_word_of(const char *name, const char *words)
{
  size_t n = strlen(name);
  for (const char *w = words; *w; w += strcspn(w, " "), w += *w == ' ')
    if (strcspn(w, " ") == n && strncmp(w, name, n) == 0)
      return true;
  return false;
}

static void set_float(struct format *f, int exp_bits, int frac_bits, enum float_kind kind)
{
  f->family = FORMAT_FLOAT;
  f->exp_bits = exp_bits;
  f->frac_bits = frac_bits;
  f->kind = kind;
  f->total_bits = 1 + exp_bits + frac_bits;
  f->bias = kind == FLOAT_FNUZ ? 1 << (exp_bits - 1) : (1 << (exp_bits - 1)) - 1;
  f->emin = 1 - f->bias;
  int top = (1 << exp_bits) - 1 - f->bias; /* exponent of the largest field */
  double ulp_of_one = ldexp(1, -frac_bits);
  f->emax = kind == FLOAT_IEEE || (kind == FLOAT_FN && frac_bits == 0) ? top - 1 : top;
  f->max_finite = ldexp(2 - ulp_of_one, f->emax);
  if (kind == FLOAT_FN && frac_bits > 0)
    f->max_finite = ldexp(2 - 2 * ulp_of_one, f->emax);
  f->min_normal = ldexp(1, f->emin);
  f->min_subnormal = ldexp(1, f->emin - frac_bits);
  f->has_inf = kind == FLOAT_IEEE;
  f->has_nan = kind == FLOAT_FN || kind == FLOAT_FNUZ || (kind == FLOAT_IEEE && frac_bits > 0);
  f->has_neg_zero = kind != FLOAT_FNUZ;
}

static void set_codes(struct format *f, enum format_family family, int bits, int32_t lo, int32_t hi)
{
  f->family = family;
  f->total_bits = bits;
  f->code_min = lo;
  f->code_max = hi;
}

/* "eXmY" with an optional kind, '_' allowed before it. */
static bool parse_float(const char *name, struct format *f)
{
  int e, m, used = 0;
  if (sscanf(name, "e%1dm%2d%n", &e, &m, &used) != 2 || !used || !isdigit((unsigned char)name[1]))
    return false;
  if (!isdigit((unsigned char)name[3]))
    return false;
  const char *kind = name + used;
  kind += *kind == '_';
  int k = FLOAT_FIN;
  if (*kind) {
    for (k = 0; k < 4 && strcmp(kind, kind_names[k]); k++)
      ;
    if (k == 4)
      return false;
  }
  if (e < 2 || e > 8 || m < 0 || m > 23 || (e == 8 && k != FLOAT_IEEE))
    return false;
  set_float(f, e, m, (enum float_kind)k);
  snprintf(f->name, sizeof f->name, "e%dm%d%s", e, m, kind_names[k]);
  /* plain eXmY is the canonical name where OCP does not define that name otherwise */
  if (k == FLOAT_FIN && !(e == 4 && m == 3) && !(e == 5 && m == 2))
    snprintf(f->name, sizeof f->name, "e%dm%d", e, m);
  return true;
}

static bool parse_integer(const char *name, struct format *f)
{
  bool is_unsigned = *name == 'u';
  int bits, used = 0;
  if (sscanf(name + is_unsigned, "int%2d%n", &bits, &used) != 1 || name[is_unsigned + used] || bits < 2 || bits > 16)
    return false;
  if (is_unsigned)
    set_codes(f, FORMAT_UINT, bits, 0, (1 << bits) - 1);
  else
    set_codes(f, FORMAT_INT, bits, -((1 << (bits - 1)) - 1), (1 << (bits - 1)) - 1);
  snprintf(f->name, sizeof f->name, "%sint%d", is_unsigned ? "u" : "", bits);
  return true;
}

static bool parse_fixed(const char *name, struct format *f)
{
  int wl, fl, used = 0;
  if (sscanf(name, "q(%2d,%2d)%n", &wl, &fl, &used) != 2 || !used || name[used] || wl < 2 || wl > 16 || fl < 0 || fl > 30)
    return false;
  set_codes(f, FORMAT_FIXED, wl, -(1 << (wl - 1)), (1 << (wl - 1)) - 1);
  f->fixed_frac_bits = fl;
  snprintf(f->name, sizeof f->name, "q(%d,%d)", wl, fl);
  return true;
}

static bool parse_named_float(const char *name, struct format *f)
{
  for (size_t i = 0; i < sizeof float_names / sizeof *float_names; i++) {
    const struct float_name *n = &float_names[i];
    if (strcmp(name, n->name) && !is_word_of(name, n->alias))
      continue;
    set_float(f, n->exp_bits, n->frac_bits, n->kind);
    str_copy(f->name, sizeof f->name, n->name);
    return true;
  }
  return false;
}

static bool parse_other(const char *name, struct format *f)
{
  if (strcmp(name, "ternary") == 0)
    set_codes(f, FORMAT_TERNARY, 2, -1, 1);
  else if (strcmp(name, "binary") == 0)
    set_codes(f, FORMAT_BINARY, 1, -1, 1);
  else
    return false;
  str_copy(f->name, sizeof f->name, name);
  return true;
}

static bool parse_block(const char *name, struct format *f)
{
  for (size_t i = 0; i < sizeof block_names / sizeof *block_names; i++) {
    const struct block_name *b = &block_names[i];
    if (strcmp(name, b->name) && !is_word_of(name, b->alias))
      continue;
    f->family = FORMAT_BLOCK;
    f->element = format_find(b->element, NULL);
    f->total_bits = f->element->total_bits;
    f->block = b->block;
    f->scale_rule = b->scale_rule;
    str_copy(f->name, sizeof f->name, b->name);
    return true;
  }
  return false;
}

static const struct format *intern(const struct format *f)
{
  pthread_mutex_lock(&lock);
  const struct format *found = NULL;
  for (size_t i = 0; i < n_interned && !found; i++)
    if (strcmp(interned[i]->name, f->name) == 0)
      found = interned[i];
  if (!found && n_interned < MAX_FORMATS) {
    struct format *copy = mem_alloc(sizeof *copy);
    *copy = *f;
    found = interned[n_interned++] = copy;
  }
  pthread_mutex_unlock(&lock);
  return found;
}

const struct format *format_find(const char *name, struct err *e)
{
  char low[64];
  if (!str_copy(low, sizeof low, name))
    low[0] = 0;
  for (char *c = low; *c; c++)
    *c = (char)tolower((unsigned char)*c);
  static bool (*const rules[])(const char *, struct format *) = {parse_named_float, parse_float, parse_integer,
                                                                 parse_fixed,       parse_other, parse_block};
  for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
    struct format f = {0};
    if (rules[i](low, &f))
      return intern(&f);
  }
  const char *words[sizeof listed / sizeof *listed + 1] = {0};
  for (size_t i = 0; i < format_count(); i++)
    words[i] = listed[i];
  const char *near = str_nearest(low, words);
  err_set(e,
          "unknown number format '%.60s'%s%s%s: allowed are fp32 tf32 bf16 fp16, eXmY (X 2 to 7, Y 0 to 23) with ieee, fn, "
          "fin or fnuz behind it, int2 to int16, uint2 to uint16, q(WL,FL), ternary, binary, mxfp8e4m3 mxfp8e5m2 "
          "mxfp6e3m2 mxfp6e2m3 mxfp4 mxint8 nvfp4",
          name, near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
  return NULL;
}

size_t format_count(void)
{
  return sizeof listed / sizeof *listed;
}

const struct format *format_at(size_t i)
{
  return i < format_count() ? format_find(listed[i], NULL) : NULL;
}

const char *format_family_name(enum format_family f)
{
  return family_names[f];
}
