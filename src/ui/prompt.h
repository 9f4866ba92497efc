/* The line editor of the prompt: readline fed with our keys, drawn by us. It never writes to the terminal and never
 * sees its size. The only user of readline. */
#ifndef UI_PROMPT_H
#define UI_PROMPT_H

#include "script/vm.h"
#include "ui/cell.h"

struct prompt_config {
  struct vm *vm; /* for completion */
  void *ctx;
  void (*enter)(void *ctx, const char *text); /* an entry, of one line or several */
  void (*quit)(void *ctx);                    /* Ctrl-D on an empty line */
  void (*list)(void *ctx, const char *text);  /* completions to choose from: a few lines of output */
  int (*list_width)(void *ctx);               /* columns for them */
};
void prompt_begin(const struct prompt_config *c);
void prompt_end(void);

void prompt_key(const char *bytes, size_t n);  /* one key as it came */
void prompt_paste(const char *text, size_t n); /* one edit, never executed */
bool prompt_clear(void);                       /* Ctrl-C: ends a search, empties the line; whether there was any */
/* Esc means something to readline now: it ends a search, or vi's insert mode. */
bool prompt_takes_esc(void);
void prompt_set_incomplete(bool incomplete); /* which prompt to show */
const char *prompt_history_problem(void);    /* NULL: none; told once */

/* Rows that the line takes at w columns. */
int prompt_rows(int w);
/* Draws as many rows as r has, those around the cursor; the cursor's cell in *cursor_x, *cursor_y. */
void prompt_draw(struct grid *g, struct rect r, int *cursor_x, int *cursor_y);

#endif
