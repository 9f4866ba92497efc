/* The streaming variance estimate: a few divisions on the sums that the backward pass left behind. */
#include "config.h"

#include "probe/variance.h"

#include <math.h>

/* V_data = [ sum_i ||g_i||^2 - b (||dW_q||^2 - V_quant) ] / (b (b - 1)), THEORY section 10. Unbiased, so that it can
 * come out slightly negative where there is next to no data variance; it is not clipped. */
struct grad_variance variance_of_layer(const struct layer_sums *s, size_t b)
{
  struct grad_variance v = {.a = s->quant_a, .g = s->quant_g, .ag = s->quant_ag, .grad_norm2 = s->norm2_mean};
  double n = (double)b;
  v.quant = v.a + v.g + v.ag;
  v.data = b < 2 ? NAN : (s->norm2_samples - n * (s->norm2_mean - v.quant)) / (n * (n - 1));
  v.total = v.data + v.quant;
  return v;
}

struct grad_variance variance_of_graph(const struct graph *g, size_t b)
{
  struct layer_sums all = {0};
  for (int i = 0; i < graph_n_layers(g); i++) {
    const struct layer_sums *s = graph_layer_sums(g, i);
    all.norm2_samples += s->norm2_samples;
    all.norm2_mean += s->norm2_mean;
    all.quant_a += s->quant_a;
    all.quant_g += s->quant_g;
    all.quant_ag += s->quant_ag;
  }
  return variance_of_layer(&all, b);
}
