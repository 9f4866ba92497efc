/* Learning rate schedules, one table row each. */
#include "config.h"

#include "train/schedule.h"

#include <math.h>
#include <string.h>

#include "base/err.h"
#include "train/knob.h"

static double factor_constant(double progress)
{
  (void)progress;
  return 1;
}

static double factor_linear(double progress)
{
  return 1 - progress;
}

/* Loshchilov and Hutter, SGDR (2017), equation 5, one cycle down to 0. */
static double factor_cosine(double progress)
{
  return 0.5 * (1 + cos(M_PI * progress));
}

/* The staircase of He et al. (2016) on CIFAR: a tenth at one half and again at three quarters. */
static double factor_step(double progress)
{
  return progress < 0.5 ? 1 : progress < 0.75 ? 0.1 : 0.01;
}

#define SCHEDULES(ROW)                                                                                                 \
  ROW("constant", "stays", factor_constant)                                                                            \
  ROW("linear", "falls to 0 in a straight line", factor_linear)                                                        \
  ROW("cosine", "falls to 0 along half a cosine", factor_cosine)                                                       \
  ROW("step", "a tenth after one half, a hundredth after three quarters", factor_step)

#define ROW(name, help, factor) {name, help, factor},
const struct schedule schedule_table[] = {SCHEDULES(ROW){NULL, NULL, NULL}};
#undef ROW
#define ROW(name, help, factor) name,
const char *const schedule_names[] = {SCHEDULES(ROW) NULL};
#undef ROW

double schedule_factor(const char *name, double warmup, double seen, double batch, double length)
{
  if (length <= 0)
    return 1;
  double rise = warmup * length;
  if (seen < rise)
    return fmin(1, (seen + batch) / rise);
  double progress = rise >= length ? 1 : fmin(1, (seen - rise) / (length - rise));
  for (const struct schedule *s = schedule_table; s->name; s++)
    if (strcmp(s->name, name) == 0)
      return s->factor(progress);
  die("schedule \"%s\" is not in the table", name);
}

static double scale_none(double ratio)
{
  (void)ratio;
  return 1;
}

static double scale_linear(double ratio)
{
  return ratio;
}

static const struct {
  const char *name;
  double (*factor)(double ratio);
} scalings[] = {
    {"none", scale_none},
    {"sqrt", sqrt},
    {"linear", scale_linear}, /* Goyal et al. 2017 */
};
const char *const lr_scaling_names[] = {"none", "sqrt", "linear", NULL};

double lr_scaling_factor(const char *name, double batch, double base_batch)
{
  for (size_t i = 0; i < sizeof scalings / sizeof *scalings; i++)
    if (strcmp(scalings[i].name, name) == 0)
      return scalings[i].factor(batch / base_batch);
  die("lr_scaling \"%s\" is not in the table", name);
}
