/* Nice ticks. A linear tick is an integer times 1, 2 or 5 times a power of ten and is kept as integers, so that labels
 * carry no rounding noise; strtod makes the double nearest to it, subnormal or not. */
#include "config.h"

#include "ui/axis.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* mant x 10^exp; mant is 1, 2 or 5, and 25 where half of a 5 is needed. */
struct step {
  int mant, exp;
};

static double decimal(int64_t m, int exp)
{
  static const double power[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
  if (llabs(m) < 1LL << 53 && abs(exp) <= 22) /* both are exact, so one correctly rounded operation is enough */
    return exp < 0 ? (double)m / power[-exp] : (double)m * power[exp];
  char text[40];
  snprintf(text, sizeof text, "%llde%d", (long long)m, exp);
  return strtod(text, NULL);
}

/* A power of two by which the ends are multiplied before they are subtracted: keeps subnormals exact and the largest
 * doubles finite. */
static double safe_scale(double lo, double hi)
{
  double top = fmax(fabs(lo), fabs(hi));
  return top > 0x1p1000 ? 0x1p-10 : top < 0x1p-500 ? 0x1p500 : 1;
}

/* log10(hi - lo), also where the difference itself overflows. */
static double log10_span(double lo, double hi)
{
  double s = safe_scale(lo, hi);
  return log10(hi * s - lo * s) - log10(s);
}

static struct step step_back(struct step s)
{
  if (s.mant == 5)
    return (struct step){2, s.exp};
  return s.mant == 2 ? (struct step){1, s.exp} : (struct step){5, s.exp - 1};
}

/* Round outward to multiples of the step; unchanged where that overflows. */
static void round_out(double *lo, double *hi, struct step st)
{
  double step = decimal(st.mant, st.exp);
  double m_lo = floor(*lo / step), m_hi = ceil(*hi / step);
  if (!(step > 0) || !(fabs(m_lo) < 0x1p53) || !(fabs(m_hi) < 0x1p53))
    return;
  double new_lo = decimal((int64_t)m_lo * st.mant, st.exp), new_hi = decimal((int64_t)m_hi * st.mant, st.exp);
  *lo = isfinite(new_lo) ? fmin(*lo, new_lo) : *lo;
  *hi = isfinite(new_hi) ? fmax(*hi, new_hi) : *hi;
}

static double clamp(double v, double lo, double hi)
{
  return fmin(fmax(v, lo), hi);
}

/* The range is final: what axis_frac() needs of it, since it is called for every point. */
static void finish(struct axis *a)
{
  a->unit = safe_scale(a->lo, a->hi);
  a->from = a->log ? log10(a->lo) : a->lo * a->unit;
  a->length = a->log ? log10(a->hi) - a->from : a->hi * a->unit - a->from;
}

static void set_range(struct axis *a, double lo, double hi, bool log)
{
  double least = log ? 0x1p-1074 : -DBL_MAX;
  *a = (struct axis){.log = log};
  a->lo = clamp(isnan(lo) ? (log ? 1 : 0) : lo, least, DBL_MAX);
  a->hi = clamp(isnan(hi) ? a->lo : hi, least, DBL_MAX);
  if (a->lo < a->hi)
    return;
  double c = a->lo; /* a constant: a tenth of it around it, a third of a decade where log, two ulps at least */
  double d = c == 0 ? 1 : fabs(c) / 10;
  a->lo = clamp(log ? c / 2 : c - d, least, DBL_MAX);
  a->hi = clamp(log ? c * 2 : c + d, least, DBL_MAX);
  if (!(a->lo < c))
    a->lo = clamp(nextafter(c, -INFINITY), least, DBL_MAX);
  if (!(a->hi > c))
    a->hi = clamp(nextafter(c, INFINITY), least, DBL_MAX);
}

void axis_set(struct axis *a, double lo, double hi, bool log)
{
  set_range(a, lo, hi, log);
  finish(a);
}

static void fit_range(struct axis *a, double lo, double hi, bool log)
{
  if (!(lo <= hi)) {
    set_range(a, log ? 1 : 0, log ? 10 : 1, log);
    return;
  }
  set_range(a, lo, hi, log);
  lo = a->lo;
  hi = a->hi;
  if (log) { /* whole twentieths of the decades spanned, or of one decade, on the exponents */
    double l = log10(lo), h = log10(hi);
    double q = exp2(ceil(log2(fmax(h - l, 0.01) / 20)));
    double new_lo = pow(10, floor(l / q) * q), new_hi = pow(10, ceil(h / q) * q);
    a->lo = new_lo > 0 ? fmin(lo, new_lo) : lo;
    a->hi = isfinite(new_hi) ? fmax(hi, new_hi) : hi;
    return;
  }
  if (lo > 0 && lo < hi / 8)
    lo = 0;
  if (hi < 0 && hi > lo / 8)
    hi = 0;
  double e = log10_span(lo, hi) - log10(20);
  struct step st = {1, (int)floor(e)};
  double f = e - floor(e);
  st.mant = f < log10(2) ? 1 : f < log10(5) ? 2 : 5;
  round_out(&lo, &hi, st);
  a->lo = lo;
  a->hi = hi;
}

void axis_fit(struct axis *a, double lo, double hi, bool log)
{
  fit_range(a, lo, hi, log);
  finish(a);
}

double axis_frac(const struct axis *a, double v)
{
  if (isnan(v) || (a->log && !(v > 0)))
    return NAN;
  if (!(a->length > 0)) /* neighbouring doubles can share a logarithm */
    return v <= a->lo ? 0 : 1;
  return clamp(((a->log ? log10(v) : v * a->unit) - a->from) / a->length, -1e6, 1e6);
}

/* Digits of m x 10^exp as plain decimal: exp <= 0 places after the point, or zeros behind. */
static void print_plain(char *out, size_t size, int64_t m, int exp, const char *unit)
{
  char digits[24];
  unsigned long long u = m < 0 ? 0ULL - (unsigned long long)m : (unsigned long long)m;
  int n_frac = exp < 0 ? -exp : 0;
  if (m == 0) {
    snprintf(out, size, "0");
    return;
  }
  int n = snprintf(digits, sizeof digits, "%llu", u);
  for (; n <= n_frac && n + 1 < (int)sizeof digits;
       n++) { /* a zero before the point, and behind it to the first digit */
    memmove(digits + 1, digits, (size_t)n + 1);
    digits[0] = '0';
  }
  int n_int = n > n_frac ? n - n_frac : 1;
  snprintf(out, size, "%s%.*s%s%s%.*s%s", m < 0 ? "-" : "", n_int, digits, n_frac ? "." : "", digits + n_int,
           exp > 0 && exp < 8 ? exp : 0, "00000000", unit);
}

/* How all ticks of one axis are written: m x 10^exp over 10^power, with a unit behind. */
struct notation {
  int power;
  char unit[8];
};

/* Plain from 0.001 to 9999; k, M, G and T above, an exponent elsewhere. `top` is the exponent of the largest tick's
 * first digit. */
static struct notation notation_for(int top)
{
  static const char si[] = " kMGT";
  struct notation n = {0, ""};
  if (top >= 4 && top < 15) {
    n.power = top / 3 * 3;
    n.unit[0] = si[top / 3];
  } else if (top >= 15 || top < -2) {
    n.power = top;
    snprintf(n.unit, sizeof n.unit, "e%d", top);
  }
  return n;
}

static int first_digit_exp(int64_t m, int exp)
{
  for (m = m < 0 ? -m : m; m >= 10; m /= 10)
    exp++;
  return exp;
}

static void add_tick(struct axis *a, double v)
{
  if (a->n_ticks < AXIS_MAX_TICKS && v >= a->lo && v <= a->hi && (a->n_ticks == 0 || v > a->tick[a->n_ticks - 1].v))
    a->tick[a->n_ticks++].v = v;
}

static void measure_labels(struct axis *a)
{
  a->label_w = 0;
  for (int i = 0; i < a->n_ticks; i++) {
    int w = (int)strlen(a->tick[i].label);
    a->label_w = w > a->label_w ? w : a->label_w;
  }
}

/* The multiples of the step within lo .. hi, which are relative to the axis's offset. */
struct multiples {
  int64_t first, last;
};
static struct multiples multiples_in(double lo, double hi, struct step st)
{
  double step = decimal(st.mant, st.exp);
  if (!(step > 0) || !(fabs(lo / step) < 1e15) || !(fabs(hi / step) < 1e15))
    return (struct multiples){1, 0};
  struct multiples m = {(int64_t)ceil(lo / step - 0.5), (int64_t)floor(hi / step + 0.5)};
  while (m.first <= m.last && decimal(m.first * st.mant, st.exp) < lo)
    m.first++;
  while (m.first <= m.last && decimal(m.last * st.mant, st.exp) > hi)
    m.last--;
  return m;
}

/* The finest step with at most max ticks. */
static struct step choose_step(double lo, double hi, double log_span, int max)
{
  struct step st = {1, (int)floor(log_span) + 1};
  for (int i = 0; i < 9; i++) { /* three steps a decade: finer by 1000 is past any max */
    struct step finer = step_back(st);
    struct multiples m = multiples_in(lo, hi, finer);
    if (m.last < m.first && decimal(finer.mant, finer.exp) == 0)
      break;
    if (m.last - m.first + 1 > max)
      break;
    st = finer;
  }
  return st;
}

static void label_ticks(struct axis *a, struct multiples m, struct step st)
{
  int64_t big = llabs(m.first) > llabs(m.last) ? m.first : m.last;
  struct notation n = notation_for(first_digit_exp(big * st.mant, st.exp));
  a->n_ticks = 0;
  for (int64_t i = m.first; i <= m.last; i++) {
    int before = a->n_ticks;
    add_tick(a, a->offset + decimal(i * st.mant, st.exp));
    if (a->n_ticks == before)
      continue;
    char *label = a->tick[before].label;
    const char *plus = a->offset_label[0] && i > 0 ? "+" : "";
    snprintf(label, AXIS_LABEL, "%s", plus);
    print_plain(label + strlen(plus), AXIS_LABEL - strlen(plus), i * st.mant, st.exp - n.power, n.unit);
  }
}

/* More digits than this between the range and its width, and labels become relative; fewer where an exponent follows.
 */
static int max_digits(double top)
{
  return top < -2 || top >= 15 ? 2 : 4;
}

static void place_linear(struct axis *a, int max)
{
  double span = log10_span(a->lo, a->hi);
  double top = log10(fmax(fabs(a->lo), fabs(a->hi)));
  double lo = a->lo, hi = a->hi;
  if (top - span > max_digits(top)) {
    int exp = (int)ceil(span) + 1;
    double k = round((lo / 2 + hi / 2) / decimal(1, exp));
    if (fabs(k) < 0x1p53) { /* else the range is a few ulps of subnormals */
      a->offset = decimal((int64_t)k, exp);
      snprintf(a->offset_label, sizeof a->offset_label, "%.*g", fabs(k) < 1e15 ? 15 : 17, a->offset);
      lo -= a->offset;
      hi -= a->offset;
    }
  }
  struct step st = choose_step(lo, hi, span, max);
  struct multiples m = multiples_in(lo, hi, st);
  if (m.last - m.first < 1) { /* a single tick tells no scale: half the step, if that is not a crowd */
    struct step half = st.mant == 5 ? (struct step){25, st.exp - 1} : step_back(st);
    struct multiples h = multiples_in(lo, hi, half);
    if (max > 1 && h.last - h.first + 1 <= max + 1 && h.last > h.first) {
      st = half;
      m = h;
    }
  }
  label_ticks(a, m, st);
}

/* Ticks of a log axis: these mantissas at every `every`-th power of ten. */
struct log_set {
  int n_mants, mant[3], every;
};

/* Puts and labels the set's ticks within the range. Returns how many; above `room` there are too many. */
static int put_log_ticks(struct axis *a, const struct log_set *s, int room)
{
  int first = (int)floor(log10(a->lo)) - 1, last = (int)ceil(log10(a->hi)) + 1, count = 0;
  bool plain = decimal(1, -2) <= a->lo && a->hi < 1e4;
  for (int e = first; e <= last; e++) {
    for (int i = 0; e % s->every == 0 && i < s->n_mants; i++) {
      double v = decimal(s->mant[i], e);
      if (!(v > 0) || v < a->lo || v > a->hi)
        continue;
      if (++count > room)
        return count;
      struct axis_tick *t = &a->tick[count - 1];
      t->v = v;
      if (plain)
        print_plain(t->label, AXIS_LABEL, s->mant[i], e, "");
      else
        snprintf(t->label, AXIS_LABEL, "%de%d", s->mant[i], e);
    }
  }
  a->n_ticks = count;
  return count;
}

/* The finest set that has at most max ticks. */
static void place_log(struct axis *a, int max)
{
  static const struct log_set fine[] = {{3, {1, 2, 5}, 1}, {2, {1, 3}, 1}};
  for (size_t i = 0; i < sizeof fine / sizeof *fine; i++)
    if (put_log_ticks(a, &fine[i], max) <= max)
      return;
  static const int every[] = {1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000}; /* doubles have 633 decades */
  for (size_t i = 0; i < sizeof every / sizeof *every; i++) {
    struct log_set decades = {1, {1}, every[i]};
    if (put_log_ticks(a, &decades, max) <= max)
      break;
  }
  if (a->n_ticks < 2 && max > 1) /* a single tick tells no scale: rather one more than wanted */
    put_log_ticks(a, &fine[1], max + 1);
}

void axis_place(struct axis *a, int max_ticks)
{
  int max = max_ticks < AXIS_MAX_TICKS - 1 ? max_ticks : AXIS_MAX_TICKS - 1;
  a->n_ticks = 0;
  a->offset = 0;
  a->offset_label[0] = 0;
  if (max > 0 && a->log)
    place_log(a, max);
  if (max > 0 && a->n_ticks < 2 && (!a->log || a->hi / a->lo < 20)) /* within a decade 1, 2, 5 can be too coarse */
    place_linear(a, max);
  measure_labels(a);
}

/* "4.51e-3": as axis labels are, without the padded exponent of printf. */
static void print_exponent(char out[AXIS_LABEL], double v)
{
  char text[AXIS_LABEL];
  snprintf(text, sizeof text, "%.2e", v);
  char *e = strchr(text, 'e');
  int exp = e ? atoi(e + 1) : 0;
  snprintf(out, AXIS_LABEL, "%.*se%d", e ? (int)(e - text) : 0, text, exp);
}

const char *axis_number(double v, char out[AXIS_LABEL])
{
  static const char si[] = "kMGT";
  if (isnan(v) || isinf(v)) {
    snprintf(out, AXIS_LABEL, "%s", isnan(v) ? "NaN" : v > 0 ? "Inf" : "-Inf");
    return out;
  }
  double m = fabs(v);
  if (v == 0)
    snprintf(out, AXIS_LABEL, "0");
  else if (m < 0.009995 || m >= 999.95e12)
    print_exponent(out, v);
  else if (m < 9999.5) { /* %.4g with its zeros kept: a changing number keeps its width */
    int n_frac = 3 - (int)floor(log10(m * 1.00005));
    snprintf(out, AXIS_LABEL, "%.*f", n_frac < 0 ? 0 : n_frac > 4 ? 4 : n_frac, v);
  } else {
    int i = 0;
    for (m /= 1e3; m >= 999.95 && i < 3; i++)
      m /= 1e3;
    snprintf(out, AXIS_LABEL, "%s%.*f%c", v < 0 ? "-" : "", m < 99.995 ? 2 : 1, m, si[i]);
  }
  return out;
}
