/* A fixed pool of threads, created once for a run's life. It is the only parallelism of the program's compute: BLAS is
 * held at one thread and large products are split over this pool, so that two pools never fight for the cores.
 *
 * The split is static: a function of n, grain and the number of threads alone. */
#ifndef BASE_POOL_H
#define BASE_POOL_H

#include <stddef.h>

#include "base/err.h"

struct pool;

/* n_threads counts the caller; 1 makes pool_for() a plain call. 1 <= n_threads <= POOL_MAX. */
#define POOL_MAX 64
struct pool *pool_create(int n_threads, struct err *e) ERR_MUST_CHECK;
void pool_free(struct pool *p);
int pool_threads(const struct pool *p); /* NULL counts as 1 */

/* Calls fn(ctx, begin, end, worker) on disjoint contiguous ranges that cover [0, n), each but the last a multiple of
 * `grain` long, at most one a thread; returns when all are done. Work smaller than two grains stays on the caller.
 * p may be NULL: then fn runs once, here. Not re-entrant; one caller at a time. */
typedef void pool_fn(void *ctx, size_t begin, size_t end, int worker);
void pool_for(struct pool *p, size_t n, size_t grain, pool_fn *fn, void *ctx);

int cpu_count(void); /* processors this process may run on */

#endif
