/* The Lua layer: the module `bitdial`, models read from Lua files, and chunks evaluated for the prompt. One Lua state,
 * one lock: prompt chunks, scripts and handlers take it; the screen never does. */
#ifndef SCRIPT_VM_H
#define SCRIPT_VM_H

#include <stdbool.h>

#include "model/desc.h"
#include "train/engine.h"

struct vm;

struct vm_config {
  struct engine *engine;
  bool interactive; /* the prompt's rules: run:train() returns at once, knobs are globals */
  /* Where print() and values go; called with the Lua lock held, any thread. A line ends with '\n'; a text may hold
   * several, or a part of one (io.write). NULL: standard output. */
  void (*print)(void *ctx, const char *text);
  void *ctx;
  const char *journal_path; /* journal of the first run made, or NULL: the default place when interactive, none else */
  size_t max_bytes;         /* of Lua's own memory; 0: a quarter of the machine's */
};
struct vm *vm_create(const struct vm_config *c, struct err *e) ERR_MUST_CHECK;
/* No chunk may run, and no handler: after engine_free(), or with the hook taken away by engine_set_hook(). */
void vm_free(struct vm *vm);

/* models/NAME.lua (or a path ending in .lua) -> description. options: n pairs "key=value" handed to the file. */
int vm_load_model(struct vm *vm, const char *name, const char *const *options, size_t n_options, struct model_desc *out,
                  struct err *e) ERR_MUST_CHECK;

/* Runs a script file; args become `arg`. Returns 0, or -1 with message and traceback. Interrupted: -1,
 * vm_interrupted(). */
int vm_run_file(struct vm *vm, const char *path, int n_args, char *const *args, struct err *e) ERR_MUST_CHECK;

enum vm_result { VM_OK, VM_INCOMPLETE, VM_ERROR, VM_QUIT };
/* One prompt entry: an expression prints its value, a statement runs; INCOMPLETE asks for another line. Errors, with
 * traceback, go to print(). All knobs set in it take effect at one boundary. */
enum vm_result vm_eval(struct vm *vm, const char *chunk);

/* From any thread or a signal handler: stops the Lua code that runs, at its next instruction. */
void vm_interrupt(struct vm *vm);
bool vm_interrupted(const struct vm *vm); /* whether the last chunk ended by it */

bool vm_quitting(const struct vm *vm); /* quit() was called, by a script or a handler too */

/* Completions of the identifier path that ends at `line`[0..end): calls add() for each whole word, sorted. Knob names,
 * fields of run, values after `knob = "`. A word is the path as typed with its last part completed
 * ("run.site.gweight"); within quotes it is what stands between them. Never blocks: with the Lua lock taken it offers
 * the tables' words alone. */
void vm_complete(struct vm *vm, const char *line, size_t end, void (*add)(void *ctx, const char *word), void *ctx);

/* Makes a run from options in text ("knob", "value" pairs) and makes it current; returns its engine id or -1. */
int vm_make_run(struct vm *vm, const char *const *pairs, size_t n_pairs, const char *journal_path,
                struct err *e) ERR_MUST_CHECK;
int vm_current_run(struct vm *vm); /* engine id; 0: none */

#endif
