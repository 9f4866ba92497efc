/* The lock of the Lua state: exclusion, and turns for everybody. */
#include "config.h"

#include "script/lua_lock.h"

#include <sched.h>
#include <stdatomic.h>

#include "../tap/tap.h"

enum { N_ROUNDS = 2000 };

static struct lua_lock lock;
static int inside, worst; /* under the lock */
static atomic_int n_waiter_turns;
static atomic_bool stop;

static void *count_inside(void *ctx)
{
  (void)ctx;
  for (int i = 0; i < N_ROUNDS; i++) {
    lua_lock_take(&lock);
    int now = ++inside;
    if (i % 16 == 0)
      sched_yield(); /* let the others in, if the lock does */
    if (inside != now || now > worst)
      worst = now;
    inside--;
    lua_lock_give(&lock);
  }
  return NULL;
}

static void *take_turns(void *ctx)
{
  (void)ctx;
  while (!atomic_load(&stop)) {
    lua_lock_take(&lock);
    atomic_fetch_add(&n_waiter_turns, 1);
    lua_lock_give(&lock);
  }
  return NULL;
}

static void test_exclusion(void)
{
  pthread_t t[3];
  for (int i = 0; i < 3; i++)
    pthread_create(&t[i], NULL, count_inside, NULL);
  for (int i = 0; i < 3; i++)
    pthread_join(t[i], NULL);
  is_int(worst, 1, "never two threads inside");
}

/* A holder that gives the lock back and takes it again must find that the waiter had its turn: always, not mostly. */
static void test_fairness(void)
{
  pthread_t t;
  pthread_create(&t, NULL, take_turns, NULL);
  int missed = 0, n_seen = 0;
  lua_lock_take(&lock);
  for (int i = 0; i < 200; i++) {
    while (!lua_lock_wanted(&lock))
      ;
    int before = atomic_load(&n_waiter_turns);
    lua_lock_give(&lock);
    lua_lock_take(&lock);
    n_seen++;
    missed += atomic_load(&n_waiter_turns) == before;
  }
  atomic_store(&stop, true);
  lua_lock_give(&lock);
  pthread_join(t, NULL);
  is_int(n_seen, 200, "all rounds done");
  is_int(missed, 0, "who waits is next");
}

int main(void)
{
  lua_lock_init(&lock);
  ok(lua_lock_try(&lock), "a free lock can be tried");
  ok(!lua_lock_try(&lock), "a held one cannot");
  ok(!lua_lock_wanted(&lock), "nobody waits for it");
  lua_lock_give(&lock);
  test_exclusion();
  test_fairness();
  lua_lock_done(&lock);
  return tap_done();
}
