/* The rounding variance of a convolution's weight gradient, from one sample.
 *
 * dW[k][c,d] = (1/b) sum_i sum_p G_i[k][p] X_i[c][s p + d], with p a position, d an offset in the kernel, s the stride.
 * X and G are rounded before X is unfolded, so that one rounding error eps of X enters up to kernel^2 positions. Still,
 * in any ONE element (k, c, d) of dW each value of X occurs once at most, since p -> s p + d is injective. The terms of
 * the sum are then pairwise uncorrelated, as they were with a draw for every unfolded value, and with U_p, e_p the
 * unfolded row at p and the variances of its values, h those of G (THEORY sections 2 and 10),
 *
 *   Var dW[k][c,d] = (1/b^2) sum_i sum_p [ G_kp^2 e + h_kp X^2 + h_kp e ],  e, X^2 at (c, s p + d);
 *   trace          = (1/b^2) sum_i sum_p [ ||G_p||^2 ||e_p||_1 + ||U_p||^2 ||h_p||_1 + ||e_p||_1 ||h_p||_1 ].
 *
 * A shared draw correlates different elements of dW with each other; the trace does not see that. So no unfolding is
 * needed: ||U_p||^2 and ||e_p||_1 are sums under the window over maps of sum_c X^2 and sum_c e.
 *
 * For e and h serve the squared errors of the very draw that the step made, (q(x)-x)^2: E (q(x)-x)^2 = (x-lo)(hi-x)
 * where rounding is unbiased and nothing saturates. Tens of thousands of them are added up, so their own noise is below
 * a percent, and they cost no look at the grid. Where rounding is biased (sr_ff, sr_eps, ...) they are mean square
 * errors, the squared bias included. */
#include "config.h"

#include <string.h>

#include "model/conv2d.h"

/* sq[u] = sum over channels of x^2, err[u] = of (q-x)^2; n values a channel. */
static inline __attribute__((always_inline)) void channel_sums(const float *x, const float *q, size_t channels,
                                                               size_t n, float *restrict sq, float *restrict err)
{
  memset(sq, 0, n * sizeof *sq);
  memset(err, 0, n * sizeof *err);
  for (size_t c = 0; c < channels; c++) {
    const float *restrict v = x + c * n, *restrict w = q ? q + c * n : v;
    for (size_t u = 0; u < n; u++) {
      float d = w[u] - v[u];
      sq[u] += v[u] * v[u];
      err[u] += d * d;
    }
  }
}

typedef void channel_sums_fn(const float *x, const float *q, size_t channels, size_t n, float *sq, float *err);

static void channel_sums_any(const float *x, const float *q, size_t channels, size_t n, float *sq, float *err)
{
  channel_sums(x, q, channels, n, sq, err);
}

/* The same loop in wider registers; same operations in the same order, hence the same bits. */
#if defined(__x86_64__)
__attribute__((target("avx2"))) static void channel_sums_avx2(const float *x, const float *q, size_t channels, size_t n,
                                                              float *sq, float *err)
{
  channel_sums(x, q, channels, n, sq, err);
}
#endif

static channel_sums_fn *channel_sums_best(void)
{
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2"))
    return channel_sums_avx2;
#endif
  return channel_sums_any;
}

static double dot(const float *a, const float *b, size_t n)
{
  double lane[4] = {0};
  size_t i = 0;
  for (; i + 4 <= n; i += 4)
    for (size_t k = 0; k < 4; k++)
      lane[k] += (double)a[i + k] * b[i + k];
  for (; i < n; i++)
    lane[0] += (double)a[i] * b[i];
  return (lane[0] + lane[1]) + (lane[2] + lane[3]);
}

void conv2d_rounding(const struct conv2d *k, const float *x, const float *xq, const float *g, const float *gq,
                     float *const map[4], struct conv2d_sample *out)
{
  channel_sums_fn *sums = channel_sums_best();
  float *u_sq = map[2], *u_var = map[3], *g_sq = map[0], *g_var = map[1];
  sums(x, xq, k->win.channels, k->win.height * k->win.width, map[0], map[1]);
  window_sums(&k->win, map[0], u_sq);
  window_sums(&k->win, map[1], u_var);
  sums(g, gq, k->out, k->positions, g_sq, g_var); /* the maps of X are done with */
  out->a = dot(g_sq, u_var, k->positions);
  out->g = dot(u_sq, g_var, k->positions);
  out->ag = dot(u_var, g_var, k->positions);
}
