/* bitdial bench: measures this machine. Each bench is a row of a table in cmd_bench.c. */
#ifndef CMD_BENCH_H
#define CMD_BENCH_H

#include <stdint.h>

#include "cmd.h"

extern const struct cmd_option bench_options[];
extern const char bench_details[];
int cmd_bench(int argc, char **argv);

/* What a bench is given, and where its results go. */
struct bench {
  bool json;
  int runs; /* asked for; 0: as many as the bench finds right */
  const char *name;
  bool any; /* something was printed */
};

/* One thing to measure: fn does `repeat` times the work; its time is divided by that. */
struct bench_work {
  void (*fn)(void *ctx);
  void *ctx;
  int repeat;
};
struct bench_time {
  double median_s, min_s;
  double ratio; /* median over the runs of time of work[0] / time of this one, in the same run */
};

/* Measures n <= BENCH_WORKS pieces of work in turn, `runs` times over after one that does not count, so that what
 * disturbs the machine disturbs all of them. */
enum { BENCH_WORKS = 5 };
void bench_measure(const struct bench_work *work, int n, int runs, struct bench_time *out);

/* A line of results: parameters of the case, then the times. */
struct bench_field {
  const char *key;
  const char *text; /* NULL: number */
  double number;
};
enum { BENCH_FIELDS = 8, BENCH_RATIOS = 3 };
struct bench_row {
  struct bench_field field[BENCH_FIELDS];
  int n_fields, runs;
  struct bench_time time;
  const char *rate_name; /* "elements_per_s", or NULL */
  double rate;
  struct bench_field ratio[BENCH_RATIOS]; /* shares and ratios; number alone counts */
  int n_ratios;
};
void bench_text(struct bench_row *r, const char *key, const char *text);
void bench_number(struct bench_row *r, const char *key, double number);
void bench_ratio(struct bench_row *r, const char *key, double ratio);
void bench_print(struct bench *b, const struct bench_row *r);

/* The benches. Return -1 and a message when they cannot run. */
int bench_quantize(struct bench *b, struct err *e) ERR_MUST_CHECK;
int bench_step(struct bench *b, struct err *e) ERR_MUST_CHECK;

#endif
