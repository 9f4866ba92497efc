/* The lock of the Lua state: fair, so that a handler at a step boundary and a prompt chunk in a loop take turns. */
#ifndef SCRIPT_LUA_LOCK_H
#define SCRIPT_LUA_LOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct lua_lock {
  pthread_mutex_t mutex;
  pthread_cond_t turn;
  uint64_t next, serving; /* tickets; free when equal */
};
void lua_lock_init(struct lua_lock *l);
void lua_lock_done(struct lua_lock *l);
void lua_lock_take(struct lua_lock *l);
bool lua_lock_try(struct lua_lock *l);
void lua_lock_give(struct lua_lock *l);
bool lua_lock_wanted(struct lua_lock *l); /* by the holder: somebody waits */

#endif
