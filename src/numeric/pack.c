/* Codes and scales in memory. Encoding works on what the kernels give, values on the grid times the scale: dividing by
 * the scale comes within two roundings of the grid's value, so that the nearest code is the right one. */
#include "config.h"

#include "numeric/pack.h"

#include <math.h>
#include <string.h>

#include "numeric/code.h"
#include "numeric/quantize_impl.h"

enum { MAX_BITS = 16, TABLE_BITS = 8 };

/* What one scale a tensor needs, before the groups' own. */
struct tensor_scale {
  float scale; /* of the tensor; NVFP4: the second level */
  float zero_point;
};

/* A group's scale: E8M0 or E4M3 where the format says so, else fp32, with a zero point after it for uintN. */
static size_t group_scale_bytes(const struct spec *s)
{
  if (s->format->family == FORMAT_BLOCK)
    return 1;
  return s->format->family == FORMAT_UINT ? 8 : 4;
}

static const struct format *element_of(const struct spec *s)
{
  return s->format->element ? s->format->element : s->format;
}

static size_t row_bytes(const struct spec *s, size_t cols)
{
  return (cols * (size_t)element_of(s)->total_bits + 7) / 8;
}

static size_t group_of(const struct spec *s, size_t cols)
{
  if (!scale_needs_input(s) || s->granularity == GRAIN_TENSOR)
    return 0;
  return s->granularity == GRAIN_ROW ? cols : (size_t)s->block;
}

static size_t groups_a_row(const struct spec *s, size_t cols)
{
  size_t group = group_of(s, cols);
  return group ? (cols + group - 1) / group : 0;
}

static size_t codes_bytes(const struct spec *s, size_t rows, size_t cols)
{
  return (rows * row_bytes(s, cols) + 3) / 4 * 4;
}

bool pack_possible(const struct spec *s)
{
  return s->granularity != GRAIN_COLUMN && !s->feedback && element_of(s)->total_bits <= MAX_BITS;
}

size_t pack_bytes(const struct spec *s, size_t rows, size_t cols)
{
  return codes_bytes(s, rows, cols) + sizeof(struct tensor_scale) + rows * groups_a_row(s, cols) * group_scale_bytes(s);
}

/* -- codes */

static uint32_t bits_of(float x)
{
  uint32_t u;
  memcpy(&u, &x, sizeof u);
  return u;
}

/* The nearest code of t, which is within some 2^-22 of the grid or beyond its end; NaN and Inf as format_code(). */
static uint32_t code_of_float(const struct format *f, float t)
{
  float a = fabsf(t);
  uint32_t sign = (bits_of(t) >> 31) << (f->total_bits - 1), magnitude, code;
  if (!(a <= (float)f->max_finite)) {
    if (isinf(t) && !f->has_inf)
      t = copysignf((float)f->max_finite, t);
    return format_code(f, t, &code) ? 0 : code;
  }
  int drop = 23 - f->frac_bits;
  if (a < (float)f->min_normal && f->emin > -126)
    magnitude = (uint32_t)lrintf(a / (float)f->min_subnormal);
  else /* bf16's subnormals are fp32's */
    magnitude = ((bits_of(a) + (1u << (drop - 1))) >> drop) - ((uint32_t)(127 - f->bias) << f->frac_bits);
  return magnitude || f->has_neg_zero ? magnitude | sign : 0;
}

static uint32_t code_of(const struct format *f, float t, float zero_point)
{
  if (f->family == FORMAT_FLOAT)
    return code_of_float(f, t);
  if (f->family == FORMAT_BINARY)
    return t >= 0;
  float v = ldexpf(t, f->fixed_frac_bits) + zero_point;
  v = v > (float)f->code_max   ? (float)f->code_max
      : v > (float)f->code_min ? v
                               : (float)f->code_min; /* NaN: the least */
  return (uint32_t)lrintf(v) & ((1u << f->total_bits) - 1);
}

static void put_code(uint8_t *row, size_t column, int n_bits, uint32_t code)
{
  size_t bit = column * (size_t)n_bits;
  uint32_t v = code << (bit % 8);
  for (uint8_t *b = row + bit / 8; v; b++, v >>= 8)
    *b |= (uint8_t)v;
}

static uint32_t get_code(const uint8_t *row, size_t column, int n_bits)
{
  size_t bit = column * (size_t)n_bits, n_bytes = (bit % 8 + (size_t)n_bits + 7) / 8;
  uint32_t v = 0;
  for (size_t i = 0; i < n_bytes; i++)
    v |= (uint32_t)row[bit / 8 + i] << (8 * i);
  return v >> (bit % 8) & ((1u << n_bits) - 1);
}

void pack_begin_row(const struct quant_job *j, size_t row)
{
  memset(j->pack->codes + row * j->pack->row_bytes, 0, j->pack->row_bytes);
}

void pack_piece(const struct quant_job *j, const struct kernel_plan *p, const float *y, size_t offset, size_t n)
{
  const struct format *f = j->grid;
  uint8_t *row = j->pack->codes + offset / j->cols * j->pack->row_bytes;
  size_t column = offset % j->cols;
  bool non_finite = false;
  kernel_absmax(j->x + offset, n, &non_finite);
  if (non_finite)
    atomic_store_explicit(j->pack->non_finite, true, memory_order_relaxed);
  for (size_t i = 0; i < n; i++) {
    float t = p->scale != 0 ? y[i] / p->scale : y[i];
    uint32_t code = code_of(f, t, p->zero_point);
    if (f->total_bits == 8)
      row[column + i] = (uint8_t)code;
    else
      put_code(row, column + i, f->total_bits, code);
  }
}

/* -- scales */

static uint8_t *group_scale_at(const struct spec *s, uint8_t *scales, size_t cols, size_t offset)
{
  size_t index = offset / cols * groups_a_row(s, cols) + offset % cols / group_of(s, cols);
  return scales + index * group_scale_bytes(s);
}

void pack_scale(const struct quant_job *j, const struct kernel_plan *p, size_t offset)
{
  uint8_t *at = group_scale_at(j->spec, j->pack->group_scales, j->cols, offset);
  uint32_t code;
  if (j->spec->scale == SCALE_NVFP4) {
    *at = format_code(format_find("e4m3", NULL), p->scale, &code) ? 0 : (uint8_t)code;
  } else if (j->spec->format->family == FORMAT_BLOCK) {
    *at = (uint8_t)(ilogbf(p->scale) + 127);
  } else {
    memcpy(at, &p->scale, sizeof p->scale);
    if (j->spec->format->family == FORMAT_UINT)
      memcpy(at + sizeof p->scale, &p->zero_point, sizeof p->zero_point);
  }
}

int pack(const struct spec *s, const float *x, size_t rows, size_t cols, const struct quant_rng *rng, void *out,
         const struct quant_sums *sums, struct quant_state *state, struct pool *pool, struct quant_info *info)
{
  _Atomic bool non_finite = false;
  uint8_t *after_codes = (uint8_t *)out + codes_bytes(s, rows, cols);
  struct pack_target target = {.codes = out,
                               .row_bytes = row_bytes(s, cols),
                               .group_scales = after_codes + sizeof(struct tensor_scale),
                               .groups_a_row = groups_a_row(s, cols),
                               .non_finite = &non_finite};
  struct quant_job j = {
      .spec = s, .x = x, .rows = rows, .cols = cols, .n_draws = 1, .sums = sums, .pack = &target, .plan = {.scale = 1}};
  if (rng)
    j.rng[0] = *rng;
  quantize_job(&j, state, pool, info);
  struct tensor_scale t = {j.plan.scale, j.plan.zero_point};
  if (s->scale == SCALE_NVFP4)
    t.scale = nvfp4_scale_of(j.nvfp4_amax, 0, false).tensor;
  memcpy(after_codes, &t, sizeof t);
  return non_finite ? -1 : 0;
}

/* -- and back */

struct unpack_job {
  const struct spec *spec;
  const struct format *grid;
  const uint8_t *in;
  size_t rows, cols;
  float *y;
  struct kernel_plan plan;
  bool nvfp4_exact;
  float table[1 << TABLE_BITS];
};

static float value_of(const struct unpack_job *j, uint32_t code)
{
  return j->grid->total_bits <= TABLE_BITS ? j->table[code] : format_value(j->grid, code);
}

/* The plan's scale and the second factor of the group at offset. */
static void read_scale(const struct unpack_job *j, size_t offset, struct kernel_plan *p, float *post)
{
  const struct spec *s = j->spec;
  const uint8_t *after_codes = j->in + codes_bytes(s, j->rows, j->cols);
  struct tensor_scale t;
  memcpy(&t, after_codes, sizeof t);
  *post = 1;
  p->scale = t.scale;
  p->zero_point = t.zero_point;
  if (!group_of(s, j->cols))
    return;
  const uint8_t *at = group_scale_at(s, (uint8_t *)after_codes + sizeof t, j->cols, offset);
  if (s->scale == SCALE_NVFP4) {
    *post = t.scale;
    p->scale = format_value(format_find("e4m3", NULL), *at);
  } else if (s->format->family == FORMAT_BLOCK) {
    p->scale = ldexpf(1, *at - 127);
  } else {
    memcpy(&p->scale, at, sizeof p->scale);
    if (s->format->family == FORMAT_UINT)
      memcpy(&p->zero_point, at + sizeof p->scale, sizeof p->zero_point);
  }
}

static void unpack_group(const struct unpack_job *j, size_t offset, size_t n)
{
  struct kernel_plan p = j->plan;
  float post, *y = j->y + offset;
  const uint8_t *row = j->in + offset / j->cols * row_bytes(j->spec, j->cols);
  size_t column = offset % j->cols;
  int n_bits = j->grid->total_bits;
  read_scale(j, offset, &p, &post);
  double exact = (double)p.scale * (double)post;
  for (size_t i = 0; i < n; i++) {
    float v = value_of(j, n_bits == 8 ? row[column + i] : get_code(row, column + i, n_bits)) - p.zero_point;
    if (j->nvfp4_exact)
      y[i] = exact > 0 ? (float)((double)v * exact) : v;
    else
      y[i] = post == 1 ? v * p.scale : v * p.scale * post;
  }
  if (!j->nvfp4_exact)
    quantize_keep_finite(&p, post, y, n);
}

static void unpack_rows(void *ctx, size_t begin, size_t end, int worker)
{
  const struct unpack_job *j = ctx;
  size_t group = group_of(j->spec, j->cols), step = group ? group : j->cols;
  (void)worker;
  for (size_t r = begin; r < end; r++)
    for (size_t c = 0; c < j->cols; c += step)
      unpack_group(j, r * j->cols + c, j->cols - c < step ? j->cols - c : step);
}

void unpack(const struct spec *s, const void *in, size_t rows, size_t cols, float *y, struct pool *pool)
{
  struct unpack_job j = {.spec = s,
                         .grid = element_of(s),
                         .in = in,
                         .rows = rows,
                         .cols = cols,
                         .y = y,
                         .nvfp4_exact = strcmp(s->format->name, "nvfp4exact") == 0};
  if (!rows || !cols)
    return;
  kernel_plan_init(&j.plan, s, j.grid, 1);
  for (uint32_t c = 0; j.grid->total_bits <= TABLE_BITS && c < 1u << j.grid->total_bits; c++)
    j.table[c] = format_value(j.grid, c);
  pool_for(pool, rows, 1 + 4096 / cols, unpack_rows, &j);
}
