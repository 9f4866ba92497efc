/* A ticket lock on a condition variable. A plain mutex would do for exclusion, but it starves: a chunk that gives the
 * lock back and takes it again at once nearly always wins against a thread that must first wake up. */
#include "config.h"

#include "script/lua_lock.h"

void lua_lock_init(struct lua_lock *l)
{
  pthread_mutex_init(&l->mutex, NULL);
  pthread_cond_init(&l->turn, NULL);
  l->next = l->serving = 0;
}

void lua_lock_done(struct lua_lock *l)
{
  pthread_mutex_destroy(&l->mutex);
  pthread_cond_destroy(&l->turn);
}

void lua_lock_take(struct lua_lock *l)
{
  pthread_mutex_lock(&l->mutex);
  uint64_t ticket = l->next++;
  while (ticket != l->serving)
    pthread_cond_wait(&l->turn, &l->mutex);
  pthread_mutex_unlock(&l->mutex);
}

bool lua_lock_try(struct lua_lock *l)
{
  pthread_mutex_lock(&l->mutex);
  bool free = l->next == l->serving;
  if (free)
    l->next++;
  pthread_mutex_unlock(&l->mutex);
  return free;
}

void lua_lock_give(struct lua_lock *l)
{
  pthread_mutex_lock(&l->mutex);
  l->serving++;
  pthread_cond_broadcast(&l->turn);
  pthread_mutex_unlock(&l->mutex);
}

bool lua_lock_wanted(struct lua_lock *l)
{
  pthread_mutex_lock(&l->mutex);
  bool wanted = l->next - l->serving > 1;
  pthread_mutex_unlock(&l->mutex);
  return wanted;
}
