/* bitdial bench: the table of benches, how time is taken, and how results are printed. */
#include "config.h"

#include "cmd_bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cmd_tables.h"
#include "io/jsonl.h"
#include "numeric/quantize.h"
#include "tensor/gemm.h"

enum { OPT_JSON, OPT_RUNS };

const struct cmd_option bench_options[] = {
    [OPT_JSON] = {"json", NULL, "print JSON, one object a line"},
    [OPT_RUNS] = {"runs", "N", "measure each case N times; by default enough for a steady median"},
    {0},
};

static const struct {
  const char *name, *help;
  int (*fn)(struct bench *b, struct err *e);
} benches[] = {
    {"quantize", "fp32 to fp32 on one thread, against memcpy of the same array", bench_quantize},
    {"step", "one training step of a 784-512-256-10 net, against the same step in fp32", bench_step},
};
enum { N_BENCHES = sizeof benches / sizeof *benches };

const char bench_details[] =
    "quantize: fp32 to fp32 on one thread, against memcpy of the same array. step: one training step of a "
    "784-512-256-10 net, against the same step in fp32. Without a name all of them run. What is compared is measured "
    "in "
    "turn, so that other load on the machine falls on both; a ratio is the median over the runs, and above 1 where we "
    "are the faster. BITDIAL_ISA=scalar, avx2 or avx512 chooses the kernels.";

static int by_value(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(double *v, int n)
{
  qsort(v, (size_t)n, sizeof *v, by_value);
  return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

static double timed(const struct bench_work *w)
{
  double start = clock_mono_s();
  for (int i = 0; i < w->repeat; i++)
    w->fn(w->ctx);
  return (clock_mono_s() - start) / w->repeat;
}

void bench_measure(const struct bench_work *work, int n, int runs, struct bench_time *out)
{
  double *t[BENCH_WORKS], *ratio = mem_alloc((size_t)runs * sizeof *ratio);
  for (int w = 0; w < n; w++) {
    t[w] = mem_alloc((size_t)runs * sizeof *t[w]);
    timed(&work[w]);
  }
  for (int r = 0; r < runs; r++)
    for (int w = 0; w < n; w++)
      t[w][r] = timed(&work[w]);
  for (int w = n - 1; w >= 0; w--) { /* the first last: sorting loses which run a time belongs to */
    for (int r = 0; r < runs; r++)
      ratio[r] = t[0][r] / t[w][r];
    out[w].ratio = median(ratio, runs);
    out[w].median_s = median(t[w], runs);
    out[w].min_s = t[w][0];
    mem_free(t[w]);
  }
  mem_free(ratio);
}

static struct bench_field *field_add(struct bench_row *r, const char *key)
{
  struct bench_field *f = &r->field[r->n_fields++];
  f->key = key;
  return f;
}

void bench_text(struct bench_row *r, const char *key, const char *text)
{
  field_add(r, key)->text = text;
}

void bench_number(struct bench_row *r, const char *key, double number)
{
  field_add(r, key)->number = number;
}

void bench_ratio(struct bench_row *r, const char *key, double ratio)
{
  r->ratio[r->n_ratios++] = (struct bench_field){.key = key, .number = ratio};
}

static void print_json(const struct bench *b, const struct bench_row *r)
{
  struct jsonl j = {0};
  jsonl_begin(&j);
  jsonl_str(&j, "case", b->name);
  for (int i = 0; i < r->n_fields; i++)
    if (r->field[i].text)
      jsonl_str(&j, r->field[i].key, r->field[i].text);
    else
      jsonl_int(&j, r->field[i].key, (int64_t)r->field[i].number);
  jsonl_str(&j, "isa", quantize_isa());
  jsonl_real(&j, "median_s", r->time.median_s);
  jsonl_real(&j, "min_s", r->time.min_s);
  jsonl_int(&j, "runs", r->runs);
  if (r->rate_name)
    jsonl_real(&j, r->rate_name, r->rate);
  for (int i = 0; i < r->n_ratios; i++)
    jsonl_real(&j, r->ratio[i].key, r->ratio[i].number);
  puts(jsonl_end(&j));
  jsonl_done(&j);
}

static int column_width(const char *key)
{
  int n = (int)strlen(key);
  return n < 8 ? 8 : n;
}

static void print_head(const struct bench *b, const struct bench_row *r)
{
  printf("%s%s (kernels: %s)\n", b->any ? "\n" : "", b->name, quantize_isa());
  for (int i = 0; i < r->n_fields; i++)
    printf("%-*s  ", column_width(r->field[i].key), r->field[i].key);
  printf("%10s  %10s", "median", "min");
  if (r->rate_name)
    printf("  %*s", column_width(r->rate_name), r->rate_name);
  for (int i = 0; i < r->n_ratios; i++)
    printf("  %*s", column_width(r->ratio[i].key), r->ratio[i].key);
  putchar('\n');
}

static const char *duration(double s, char out[16])
{
  if (s < 1e-3)
    snprintf(out, 16, "%.1f us", s * 1e6);
  else
    snprintf(out, 16, s < 1 ? "%.2f ms" : "%.2f s", s < 1 ? s * 1e3 : s);
  return out;
}

static void print_line(const struct bench_row *r)
{
  char a[16], c[16], si[16];
  for (int i = 0; i < r->n_fields; i++)
    if (r->field[i].text)
      printf("%-*s  ", column_width(r->field[i].key), r->field[i].text);
    else
      printf("%-*.0f  ", column_width(r->field[i].key), r->field[i].number);
  printf("%10s  %10s", duration(r->time.median_s, a), duration(r->time.min_s, c));
  if (r->rate_name)
    printf("  %*s", column_width(r->rate_name), str_si(r->rate, si));
  for (int i = 0; i < r->n_ratios; i++)
    printf("  %*.3f", column_width(r->ratio[i].key), r->ratio[i].number);
  putchar('\n');
}

void bench_print(struct bench *b, const struct bench_row *r)
{
  static const char *headed;
  if (b->json) {
    print_json(b, r);
  } else {
    if (headed != b->name)
      print_head(b, r);
    headed = b->name;
    print_line(r);
  }
  b->any = true;
  fflush(stdout);
}

static int run_benches(const char *name, struct bench *b, struct err *e)
{
  const char *names[N_BENCHES + 1] = {0};
  bool found = false;
  for (int i = 0; i < N_BENCHES; i++) {
    names[i] = benches[i].name;
    if (name && strcmp(name, names[i]) != 0)
      continue;
    found = true;
    b->name = names[i];
    if (benches[i].fn(b, e) != 0)
      return STATUS_FAILED;
  }
  if (found)
    return ferror(stdout) ? (err_set(e, "standard output: cannot be written"), STATUS_FAILED) : STATUS_DONE;
  const char *near = str_nearest(name, names);
  err_set(e, "unknown bench '%s'%s%s%s: there are quantize and step", name, near ? "; did you mean '" : "",
          near ? near : "", near ? "'?" : "");
  return STATUS_USAGE;
}

int cmd_bench(int argc, char **argv)
{
  const struct command *c = command_find("bench");
  struct cmd_args a;
  struct err e;
  int status = cmd_parse(c, argc, argv, &a);
  if (status >= 0)
    return status;
  struct bench b = {.json = a.value[OPT_JSON]};
  const char *runs = a.value[OPT_RUNS];
  if (cmd_check_count("runs", runs, &e) != 0) {
    status = cmd_usage_error(c, &e);
  } else if (runs && (atol(runs) < 1 || atol(runs) > 1000000)) {
    err_set(&e, "--runs %s: expected 1 to 1000000", runs);
    status = cmd_usage_error(c, &e);
  } else {
    b.runs = runs ? atoi(runs) : 0;
    gemm_init();
    status = run_benches(a.n_rest ? a.rest[0] : NULL, &b, &e);
    if (status == STATUS_USAGE)
      cmd_usage_error(c, &e);
    else if (status == STATUS_FAILED)
      cmd_fail(c, &e);
  }
  cmd_args_done(&a);
  return status;
}
