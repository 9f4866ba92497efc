/* The table of number formats and the rules that make the others: eXmY[ieee|fn|fin|fnuz], intN, uintN, q(WL,FL)[sym].
 * Formats are interned and live as long as the process. Names are compared in lower case and without '_' and '-', so
 * that ocp_e4m3, e4m3_fin and bfloat16 of other tools are found too. */
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

#define COUNT(a) (sizeof(a) / sizeof *(a))

/* Names that are listed, in that order; what they mean comes from the tables and rules below. */
static const char *const listed[] = {
    "fp32",        "tf32",      "bf16",      "fp16",  "e5m2",   "e5m2fnuz",   "e4m3",   "e4m3fnuz",
    "e4m3b11fnuz", "e4m3fin",   "e4m2",      "e4m1",  "e4m0",   "e3m2",       "e2m3",   "e2m1",
    "int16",       "int8",      "int7",      "int6",  "int5",   "int4",       "int3",   "int2",
    "uint16",      "uint8",     "uint4",     "uint2", "q(8,4)", "ternary",    "binary", "mxfp8e4m3",
    "mxfp8e5m2",   "mxfp6e3m2", "mxfp6e2m3", "mxfp4", "mxint8", "mxint8full", "nvfp4",  "nvfp4exact",
};

/* Floats whose name does not follow from the rule; alias: other names, one space between. */
static const struct float_name {
  const char *name, *alias;
  int exp_bits, frac_bits;
  enum float_kind kind;
  int bias; /* 0: by rule */
} float_names[] = {
    {"fp32", "float32 binary32 f32 float single e8m23 e8m23ieee", 8, 23, FLOAT_IEEE, 0},
    {"tf32", "tensorfloat32 e8m10 e8m10ieee", 8, 10, FLOAT_IEEE, 0},
    {"bf16", "bfloat16 e8m7 e8m7ieee", 8, 7, FLOAT_IEEE, 0},
    {"fp16", "binary16 float16 f16 half e5m10ieee", 5, 10, FLOAT_IEEE, 0},
    {"e5m2", "ocpe5m2 e5m2ieee fp8e5m2 float8e5m2", 5, 2, FLOAT_IEEE, 0},
    {"e4m3", "ocpe4m3 e4m3fn fp8e4m3 fp8e4m3fn float8e4m3fn", 4, 3, FLOAT_FN, 0},
    {"e5m2fnuz", "fp8e5m2fnuz float8e5m2fnuz", 5, 2, FLOAT_FNUZ, 0},
    {"e4m3fnuz", "fp8e4m3fnuz float8e4m3fnuz", 4, 3, FLOAT_FNUZ, 0},
    {"e4m3b11fnuz", "e4m3b11 float8e4m3b11fnuz", 4, 3, FLOAT_FNUZ, 11},
    {"e3m2", "ocpe3m2 e3m2fin fp6e3m2 float6e3m2fn", 3, 2, FLOAT_FIN, 0},
    {"e2m3", "ocpe2m3 e2m3fin fp6e2m3 float6e2m3fn", 2, 3, FLOAT_FIN, 0},
    {"e2m1", "ocpe2m1 e2m1fin fp4 fp4e2m1 float4e2m1fn", 2, 1, FLOAT_FIN, 0},
};

/* Floor is the rule of the MX specification; rceil never clips, so that SR stays unbiased. */
static const struct block_name {
  const char *name, *alias, *element, *scale_rule;
  int block;
} block_names[] = {
    {"mxfp8e4m3", "mxfp8", "e4m3", "rceil", 32}, {"mxfp8e5m2", "", "e5m2", "rceil", 32},
    {"mxfp6e3m2", "", "e3m2", "rceil", 32},      {"mxfp6e2m3", "mxfp6", "e2m3", "rceil", 32},
    {"mxfp4", "mxfp4e2m1", "e2m1", "rceil", 32}, {"mxint8", "mxint8sym", "q(8,6)sym", "rceil", 32},
    {"mxint8full", "", "q(8,6)", "rceil", 32},   {"nvfp4", "nvfp4tef32", "e2m1", "nvfp4", 16},
    {"nvfp4exact", "", "e2m1", "nvfp4", 16},
};

static const char *const kind_names[] = {"ieee", "fn", "fin", "fnuz"};
static const char *const family_names[] = {"float", "int", "uint", "fixed", "ternary", "binary", "block"};

static struct format **interned;
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

/* NUMERICS section 1, "Generic ExMy rule". bias 0: the rule's. */
static void set_float(struct format *f, int exp_bits, int frac_bits, enum float_kind kind, int bias)
{
  f->family = FORMAT_FLOAT;
  f->exp_bits = exp_bits;
  f->frac_bits = frac_bits;
  f->kind = kind;
  f->total_bits = 1 + exp_bits + frac_bits;
  f->bias = bias ? bias : kind == FLOAT_FNUZ ? 1 << (exp_bits - 1) : (1 << (exp_bits - 1)) - 1;
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

/* Decimal digits at *s, moved past; -1 where there are none or more than two. */
static int take_number(const char **s)
{
  int v = 0, n = 0;
  for (; isdigit((unsigned char)**s) && n < 3; n++)
    v = 10 * v + *(*s)++ - '0';
  return n == 1 || n == 2 ? v : -1;
}

/* "eXmY" with an optional kind. Without one, plain eXmY is fin where OCP does not define it otherwise. */
static bool parse_float(const char *s, struct format *f)
{
  if (*s++ != 'e')
    return false;
  int e = take_number(&s);
  if (*s++ != 'm')
    return false;
  int m = take_number(&s), k = FLOAT_FIN;
  if (*s)
    for (k = 0; k < 4 && strcmp(s, kind_names[k]); k++)
      ;
  /* 8 exponent bits: all but ieee would have values beyond fp32's */
  if (k == 4 || e < 2 || e > 8 || m < 0 || m > 23 || (e == 8 && k != FLOAT_IEEE))
    return false;
  set_float(f, e, m, (enum float_kind)k, 0);
  bool taken = (e == 4 && m == 3) || (e == 5 && m == 2); /* OCP's e4m3 and e5m2 are not fin */
  snprintf(f->name, sizeof f->name, "e%dm%d%s", e, m, k == FLOAT_FIN && !taken ? "" : kind_names[k]);
  return true;
}

static bool parse_integer(const char *s, struct format *f)
{
  bool is_unsigned = *s == 'u';
  s += is_unsigned;
  if (strncmp(s, "int", 3))
    return false;
  s += 3;
  int bits = take_number(&s);
  if (*s || bits < 2 || bits > 16)
    return false;
  int32_t top = 1 << (bits - 1);
  if (is_unsigned)
    set_codes(f, FORMAT_UINT, bits, 0, 2 * top - 1);
  else
    set_codes(f, FORMAT_INT, bits, 1 - top, top - 1);
  snprintf(f->name, sizeof f->name, "%sint%d", is_unsigned ? "u" : "", bits);
  return true;
}

/* q(WL,FL): two's complement; "sym" leaves the lowest code out. */
static bool parse_fixed(const char *s, struct format *f)
{
  if (*s++ != 'q' || *s++ != '(')
    return false;
  int wl = take_number(&s);
  if (*s++ != ',')
    return false;
  int fl = take_number(&s);
  if (*s++ != ')')
    return false;
  bool sym = strcmp(s, "sym") == 0;
  if ((*s && !sym) || wl < 2 || wl > 16 || fl < 0 || fl > 30)
    return false;
  set_codes(f, FORMAT_FIXED, wl, -(1 << (wl - 1)) + sym, (1 << (wl - 1)) - 1);
  f->fixed_frac_bits = fl;
  snprintf(f->name, sizeof f->name, "q(%d,%d)%s", wl, fl, sym ? "sym" : "");
  return true;
}

static bool parse_named_float(const char *name, struct format *f)
{
  for (size_t i = 0; i < COUNT(float_names); i++) {
    const struct float_name *n = &float_names[i];
    if (strcmp(name, n->name) && !is_word_of(name, n->alias))
      continue;
    set_float(f, n->exp_bits, n->frac_bits, n->kind, n->bias);
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
  for (size_t i = 0; i < COUNT(block_names); i++) {
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
  if (!found) {
    interned = mem_realloc(interned, (n_interned + 1) * sizeof *interned);
    struct format *copy = mem_alloc(sizeof *copy);
    *copy = *f;
    found = interned[n_interned++] = copy;
  }
  pthread_mutex_unlock(&lock);
  return found;
}

/* Lower case, without '_', '-' and blanks. */
static void plain_name(const char *name, char *out, size_t n_bytes)
{
  size_t n = 0;
  for (; *name && n + 1 < n_bytes; name++)
    if (*name != '_' && *name != '-' && *name != ' ')
      out[n++] = (char)tolower((unsigned char)*name);
  out[*name ? 0 : n] = '\0'; /* too long is no name */
}

static int unknown(const char *name, const char *plain, struct err *e)
{
  const char *words[COUNT(listed) + 1] = {0};
  memcpy(words, listed, sizeof listed);
  const char *near = str_nearest(plain, words);
  return err_set(e,
                 "unknown number format '%.60s'%s%s%s: allowed are fp32 tf32 bf16 fp16, eXmY (X 2 to 7, Y 0 to 23) "
                 "with ieee, fn, fin or fnuz behind it, e8mYieee, int2 to int16, uint2 to uint16, q(WL,FL), ternary, "
                 "binary, mxfp8e4m3 mxfp8e5m2 mxfp6e3m2 mxfp6e2m3 mxfp4 mxint8 nvfp4",
                 name, near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

const struct format *format_find(const char *name, struct err *e)
{
  static bool (*const rules[])(const char *, struct format *) = {parse_named_float, parse_float, parse_integer,
                                                                 parse_fixed,       parse_other, parse_block};
  char plain[64];
  plain_name(name, plain, sizeof plain);
  for (size_t i = 0; i < COUNT(rules); i++) {
    struct format f = {0};
    if (rules[i](plain, &f))
      return intern(&f);
  }
  unknown(name, plain, e);
  return NULL;
}

size_t format_count(void)
{
  return COUNT(listed);
}

const struct format *format_at(size_t i)
{
  return i < format_count() ? format_find(listed[i], NULL) : NULL;
}

const char *format_family_name(enum format_family f)
{
  return family_names[f];
}
