/* Inside of the script layer: the virtual machine, its entries and what its files give each other.
 *
 * Locks. There are two: the engine's (held: every run stands at a step boundary) and the Lua lock (held: nobody else
 * uses the Lua state). The order is engine first, Lua second:
 *   - The engine's thread calls our hook with the engine held and takes the Lua lock for the handlers.
 *   - Any other thread that runs Lua holds the Lua lock alone. Before it takes the engine, or waits for it in any way,
 *     it gives the Lua lock back: vm_hold_run() and vm_release(), vm_outside() and vm_inside(). Between these calls it
 *     must not touch Lua. (setting_commit() takes the Lua lock while it holds the engine, which is the order.)
 * So nobody ever waits for the engine while holding the Lua lock, and there is no cycle. Handing the Lua state to
 * another thread inside a C function is sound, because each entry has a Lua thread (coroutine) of its own: this is what
 * lua_lock() and lua_unlock() of the reference implementation are for.
 * A chunk gives the lock away at calls into this module alone, so Lua code between two such calls is never interleaved
 * with a handler.
 *
 * Entries. Each time a thread goes into Lua (a prompt chunk, a script, the handlers of one boundary) it makes a struct
 * entry on its stack. The entry collects the knobs set in it; they are committed together (setting.c). */
#ifndef SCRIPT_VM_IMPL_H
#define SCRIPT_VM_IMPL_H

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stdatomic.h>

#include "base/str.h"
#include "script/lua_lock.h"
#include "script/vm.h"

/* What the layer remembers of a run beside the engine. Under the Lua lock. */
struct run_note {
  struct run_note *next;
  int id;
  bool has_view;      /* knobs were committed at view_step and may still be queued */
  uint64_t view_step; /* steps done at that moment */
  struct knobs view;  /* what the run will have after its next step's start */
  bool eval_known;    /* last evaluation that handlers were told of */
  double eval_loss, eval_accuracy;
};

struct handler;

struct vm {
  lua_State *L; /* main Lua thread: only makes others and is read for completion */
  size_t n_bytes, max_bytes; /* Lua's memory */
  struct engine *engine;
  bool interactive;
  void (*print)(void *ctx, const char *text);
  void *print_ctx;
  char *journal_path; /* for the first run, or NULL */
  struct lua_lock lock;
  _Atomic int64_t interrupt_ns; /* when it was last asked for; CLOCK_MONOTONIC */
  atomic_bool interrupted, quitting;
  int exit_status; /* of quit(n) and os.exit(n) */
  atomic_int current_run;
  int n_made;
  struct run_note *notes;
  struct handler *handlers;
  int last_handler_id;
  atomic_int n_handlers;
  lua_State *handler_thread;
  int prompt_env; /* reference in the registry */
};

enum entry_kind { ENTRY_PROMPT, ENTRY_SCRIPT, ENTRY_HANDLER };

struct pending; /* setting.c */

struct entry {
  struct vm *vm;
  enum entry_kind kind;
  lua_State *L; /* the entry's own Lua thread */
  int thread_ref;
  int64_t start_ns;
  bool stopping; /* interrupted or quitting: pcall() does not catch it */
  bool interrupted;
  struct pending *pending;
  char refused[1024]; /* message of the last refused setting: needs no traceback at the prompt */
};

/* entry.c */
void entry_begin(struct entry *en, struct vm *vm, enum entry_kind kind); /* takes the Lua lock */
void entry_end(struct entry *en);  /* drops what is pending, gives the lock back */
struct entry *entry_current(void); /* of this thread; NULL outside Lua */
/* Calls the function and its arguments on en->L. 0, or -1 with message and traceback in `why`. */
int entry_call(struct entry *en, int n_args, int n_results, struct str *why);
/* Runs a C function protected, with `ud` as its one argument (light userdata). */
int entry_protect(struct entry *en, lua_CFunction fn, void *ud, struct err *e);
bool entry_interrupted(struct entry *en);
int entry_quit(lua_State *L); /* unwinds to the entry; raises */
void entry_install(lua_State *L); /* the hook, pcall, xpcall, os.exit, quit */
int64_t entry_now_ns(void);

struct vm *vm_of(lua_State *L);
/* Gives the Lua lock back and takes it again; nothing on the engine's thread, which owns both. */
void vm_outside(struct vm *vm);
void vm_inside(struct vm *vm);
void vm_breathe(struct vm *vm); /* lets a waiting handler or chunk in */
/* Leaves Lua and holds the engine; NULL when the run is gone. vm_release() goes back, always. */
struct run *vm_hold_run(struct vm *vm, int run_id);
void vm_release(struct vm *vm);
/* Raises. The message of a refused setting or a wrong argument; with its place when not typed at the prompt. */
int vm_refuse(lua_State *L, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void vm_print(struct vm *vm, const char *text);
struct run_note *vm_note(struct vm *vm, int run_id); /* made when new */
void vm_forget(struct vm *vm, int run_id);

/* setting.c */
void setting_set(lua_State *L, int run_id, const char *knob, int value_index); /* raises */
void setting_set_spec(lua_State *L, int run_id, enum site s, int value_index); /* a table, or a format's name */
void setting_push(lua_State *L, int run_id, const char *knob);                 /* value set last; raises */
int setting_commit(struct entry *en, struct err *e) ERR_MUST_CHECK;
void setting_commit_or_raise(lua_State *L);
void setting_drop(struct entry *en);
void setting_refresh(struct vm *vm, int run_id, const struct knobs *k, uint64_t step); /* after load, rewind, fork */
/* Text of a Lua value as knobs take it; returns false where it has none. */
bool setting_text(lua_State *L, int index, char *out, size_t n_bytes);
/* Raises: says why a value for which setting_text() returned false is none. */
void setting_refuse_value(lua_State *L, const char *knob, int index);
/* Raises unless the value at `t` can describe a site: the name of a format, or a table of spec fields. */
void setting_check_spec(lua_State *L, enum site s, int t);
/* As setting_push() shows it: numbers and booleans as such. */
void setting_push_value(lua_State *L, const struct knob_value *v);
bool setting_is_knob(const char *name);          /* exact, a row of the table */
const char *setting_near_knob(const char *name); /* a knob that it looks like, or NULL */

/* bind_run.c */
void bind_run_open(lua_State *L);
void bind_run_push(lua_State *L, int run_id); /* the one object of that run */
int bind_run_check(lua_State *L, int index);  /* run id; raises */
int bind_run_test(lua_State *L, int index);   /* run id, or 0 */
void bind_site_push(lua_State *L, int run_id);
struct field_row {
  const char *name, *help;
  void (*push)(lua_State *L, const struct run_status *s);
};
extern const struct field_row field_table[]; /* ends with a NULL name */
struct method_row {
  const char *name, *args, *help;
  lua_CFunction fn;
};
extern const struct method_row method_table[]; /* bind_method.c; ends with a NULL name */

/* bind_site.c */
void bind_site_open(lua_State *L);

/* bind_module.c */
void bind_module_open(lua_State *L);
extern const struct method_row module_table[];

/* make_run.c */
struct make_request {
  const char *const *pairs; /* knob, value, ... */
  size_t n_pairs;
  const char *journal; /* path, or NULL */
  const char *name;    /* or NULL: "runN" */
};
int make_run(lua_State *L, const struct make_request *m, struct err *e) ERR_MUST_CHECK; /* run id or -1 */
int make_run_from_table(lua_State *L);                                                  /* bd.run{...} */
/* Table at `index` to knob, value pairs in the order of the knob table; raises. Strings are anchored on the stack. */
size_t make_run_pairs(lua_State *L, int index, const char ***pairs, const char **name, const char **journal);
char *make_run_journal(struct vm *vm, const char *asked, struct err *e); /* caller frees; NULL with empty e: none */

/* model_file.c */
int model_file_read(lua_State *L, const char *name, const char *const *options, size_t n_options,
                    struct model_desc *out, struct err *e) ERR_MUST_CHECK;

/* handler.c */
int handler_add(lua_State *L);    /* run:on(event, fn) */
int handler_remove(lua_State *L); /* run:off(id) */
void handler_forget_run(struct vm *vm, int run_id);
void handler_install(struct vm *vm);
void handler_free_all(struct vm *vm);

/* prompt.c */
void prompt_open(lua_State *L);
extern const struct method_row prompt_table[]; /* functions of the prompt beside the methods */

/* pretty.c */
void pretty_add(lua_State *L, int index, struct str *out);

/* help.c */
int help_print(lua_State *L); /* help([name]) */
void help_each_topic(void (*fn)(void *ctx, const char *topic), void *ctx);

#endif
