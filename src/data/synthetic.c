/* Data sets that need no file, made from the seed: two spirals, and a teacher network's labels. */
#include "config.h"

#include <math.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/rng.h"
#include "data/dataset_impl.h"

/* Numbers of the streams under RNG_DATA. */
enum { STREAM_SPIRALS = 1, STREAM_TEACHER_WEIGHTS = 2, STREAM_TEACHER_INPUTS = 3 };

enum { SPIRALS_TRAIN = 8192, SPIRALS_TEST = 2048 };
enum { TEACHER_INPUTS = 32, TEACHER_HIDDEN = 64, TEACHER_CLASSES = 10, TEACHER_TRAIN = 16384, TEACHER_TEST = 4096 };

static const double pi = 3.14159265358979323846;

static int make_parts(struct dataset *d, size_t n_inputs, size_t n_classes, size_t n_train, size_t n_test,
                      struct err *e)
{
  d->n_inputs = n_inputs;
  d->n_classes = n_classes;
  size_t n[2] = {n_train, n_test};
  for (int s = 0; s < 2; s++) {
    struct part *p = &d->part[s];
    p->n = n[s];
    p->values = mem_buffer(n[s] * n_inputs * sizeof *p->values, "synthetic samples", e);
    p->labels = mem_buffer(n[s], "synthetic labels", e);
    if (!p->values || !p->labels)
      return -1;
  }
  return 0;
}

static void hash_parts(struct dataset *d)
{
  struct hash *h = hash_create();
  for (int s = 0; s < 2; s++) {
    hash_add(h, d->part[s].values, d->part[s].n * d->n_inputs * sizeof *d->part[s].values);
    hash_add(h, d->part[s].labels, d->part[s].n);
  }
  hash_finish(h, d->hash);
}

static struct rng data_rng(const struct dataset *d, uint32_t stream, enum split s)
{
  struct rng r;
  rng_init(&r, rng_derive(d->seed, RNG_DATA, stream, (uint32_t)s, 0), 0);
  return r;
}

/* Two spirals, one the other turned by half a turn (Lang and Witbrock 1988, "Learning to tell two spirals apart").
 * 1.75 turns; t = sqrt(u) spreads the points evenly along the arm; noise 0.02 of the radius. Both coordinates have
 * mean 0, and are scaled to a mean square of about 1: E[r^2] = E[t^2] = 1/2 is shared by two coordinates. */
int synthetic_open_spirals(struct dataset *d, const char *rest, struct err *e)
{
  (void)rest;
  if (make_parts(d, 2, 2, SPIRALS_TRAIN, SPIRALS_TEST, e) != 0)
    return -1;
  for (int s = 0; s < 2; s++) {
    struct part *p = &d->part[s];
    struct rng r = data_rng(d, STREAM_SPIRALS, (enum split)s);
    for (size_t i = 0; i < p->n; i++) {
      int label = (int)(i & 1);
      double t = sqrt(rng_uniform(&r));
      double angle = 2 * pi * 1.75 * t + pi * label;
      double noise_x = 0.02 * rng_normal(&r);
      double noise_y = 0.02 * rng_normal(&r);
      p->values[2 * i] = (float)(2 * (t * cos(angle) + noise_x));
      p->values[2 * i + 1] = (float)(2 * (t * sin(angle) + noise_y));
      p->labels[i] = (uint8_t)label;
    }
  }
  hash_parts(d);
  return 0;
}

struct teacher {
  double w1[TEACHER_HIDDEN][TEACHER_INPUTS];
  double w2[TEACHER_CLASSES][TEACHER_HIDDEN];
  double mean[TEACHER_CLASSES], dev[TEACHER_CLASSES]; /* of the outputs on the training inputs */
};

static void teacher_outputs(const struct teacher *t, const float *x, double out[TEACHER_CLASSES])
{
  double h[TEACHER_HIDDEN];
  for (int i = 0; i < TEACHER_HIDDEN; i++) {
    double sum = 0;
    for (int j = 0; j < TEACHER_INPUTS; j++)
      sum += t->w1[i][j] * x[j];
    h[i] = sum > 0 ? sum : 0;
  }
  for (int c = 0; c < TEACHER_CLASSES; c++) {
    double sum = 0;
    for (int i = 0; i < TEACHER_HIDDEN; i++)
      sum += t->w2[c][i] * h[i];
    out[c] = sum;
  }
}

static void teacher_init(struct teacher *t, struct dataset *d)
{
  struct rng r = data_rng(d, STREAM_TEACHER_WEIGHTS, SPLIT_TRAIN);
  for (int i = 0; i < TEACHER_HIDDEN; i++)
    for (int j = 0; j < TEACHER_INPUTS; j++)
      t->w1[i][j] = rng_normal(&r) / sqrt(TEACHER_INPUTS);
  for (int c = 0; c < TEACHER_CLASSES; c++)
    for (int i = 0; i < TEACHER_HIDDEN; i++)
      t->w2[c][i] = rng_normal(&r) / sqrt(TEACHER_HIDDEN);
}

/* Standardised outputs make every class about as frequent. */
static void teacher_measure(struct teacher *t, const struct part *p)
{
  double sum[TEACHER_CLASSES] = {0}, sum2[TEACHER_CLASSES] = {0}, out[TEACHER_CLASSES];
  for (size_t i = 0; i < p->n; i++) {
    teacher_outputs(t, p->values + i * TEACHER_INPUTS, out);
    for (int c = 0; c < TEACHER_CLASSES; c++) {
      sum[c] += out[c];
      sum2[c] += out[c] * out[c];
    }
  }
  for (int c = 0; c < TEACHER_CLASSES; c++) {
    t->mean[c] = sum[c] / (double)p->n;
    t->dev[c] = sqrt(sum2[c] / (double)p->n - t->mean[c] * t->mean[c]);
  }
}

static uint8_t teacher_label(const struct teacher *t, const float *x)
{
  double out[TEACHER_CLASSES];
  teacher_outputs(t, x, out);
  int best = 0;
  double best_value = -INFINITY;
  for (int c = 0; c < TEACHER_CLASSES; c++) {
    double v = (out[c] - t->mean[c]) / t->dev[c];
    if (v > best_value) {
      best = c;
      best_value = v;
    }
  }
  return (uint8_t)best;
}

/* Normal inputs, labelled by the largest standardised output of a random 32-64-10 ReLU network. */
int synthetic_open_teacher(struct dataset *d, const char *rest, struct err *e)
{
  (void)rest;
  if (make_parts(d, TEACHER_INPUTS, TEACHER_CLASSES, TEACHER_TRAIN, TEACHER_TEST, e) != 0)
    return -1;
  struct teacher *t = mem_alloc(sizeof *t);
  teacher_init(t, d);
  for (int s = 0; s < 2; s++) {
    struct part *p = &d->part[s];
    struct rng r = data_rng(d, STREAM_TEACHER_INPUTS, (enum split)s);
    for (size_t i = 0; i < p->n * TEACHER_INPUTS; i++)
      p->values[i] = (float)rng_normal(&r);
    if (s == SPLIT_TRAIN)
      teacher_measure(t, p);
    for (size_t i = 0; i < p->n; i++)
      p->labels[i] = teacher_label(t, p->values + i * TEACHER_INPUTS);
  }
  mem_free(t);
  hash_parts(d);
  return 0;
}
