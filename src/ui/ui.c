/* The workbench from opening to leaving: what is set up in which order, and taken down in the opposite one whatever
 * happened in between. */
#include "config.h"

#include "ui/ui.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "ui/prompt.h"
#include "ui/screen.h"
#include "ui/signals.h"
#include "ui/terminal.h"
#include "ui/workbench.h"

#define MAX_OUTPUT_LINES 2000
#define MAX_RUNS 64
#define LUA_STOPS_WITHIN_S 3.0

int ui_check_terminal(struct err *e)
{
  if (!isatty(STDIN_FILENO))
    return err_set(e, "the workbench needs a terminal, and standard input is none");
  if (!isatty(STDOUT_FILENO))
    return err_set(e, "the workbench needs a terminal, and standard output is none");
  return screen_check(e);
}

/* ---- what the prompt asks for ---- */

static void on_enter(void *ctx, const char *text)
{
  struct workbench *wb = ctx;
  wb->back[PANE_PROMPT] = 0;
  bool more = wb->lua.incomplete;
  wb->lines_before = wb->output.n_ever;
  for (const char *s = text; *s || s == text;) { /* echoed as it was typed */
    size_t n = strcspn(s, "\n");
    char *line = mem_printf("%s%.*s", more ? ">> " : "> ", (int)n, s);
    text_add_line(&wb->output, line, STYLE_PROMPT, more ? 3 : 2);
    mem_free(line);
    more = true;
    s += n + (s[n] == '\n');
    if (!*s)
      break;
  }
  bool blank = text[strspn(text, " \t\n")] == '\0';
  if ((!blank || wb->lua.incomplete) && !worker_eval(wb->worker, text))
    text_add_line(&wb->output, "too many entries wait for Lua: not run. C-c stops what runs.", STYLE_ERROR, 0);
}

static void on_quit(void *ctx)
{
  ((struct workbench *)ctx)->leaving = true;
}

static void on_list(void *ctx, const char *text)
{
  struct workbench *wb = ctx;
  text_add(&wb->output, text, STYLE_DIM);
  wb->output.open = false;
}

static int list_width(void *ctx)
{
  struct workbench *wb = ctx;
  return wb->layout.pane[PANE_PROMPT].w;
}

/* ---- opening ---- */

/* The opening run's knobs where the command line gives no others: it goes on until it is stopped, slowly enough that
 * there is something to see for minutes. */
static const char *const opening[] = {"model", "mlp",   "data", "auto",     "recipe",     "paper",  "bits",
                                      "8",     "batch", "128",  "schedule", "constant",   "epochs", "0",
                                      "steps", "0",     "lr",   "0.02",     "eval_every", "200"};
#define N_OPENING (sizeof opening / sizeof *opening / 2)

static bool is_given(const struct ui_config *c, const char *knob)
{
  struct knob_ref want, ref;
  struct err e;
  if (knob_find(knob, &want, &e) != 0)
    return false;
  for (size_t i = 0; i < c->n_pairs; i++)
    if (knob_find(c->pairs[2 * i], &ref, &e) == 0 && ref.id == want.id && want.id != KNOB_COUNT)
      return true;
  return false;
}

/* A model other than ours, or a length that was asked for, brings its own defaults. */
static void open_first_run(struct workbench *wb)
{
  const struct ui_config *c = wb->config;
  const char **pairs = mem_alloc((2 * (N_OPENING + c->n_pairs) + 1) * sizeof *pairs);
  bool own = !is_given(c, "model") && !is_given(c, "epochs") && !is_given(c, "steps") && !is_given(c, "schedule");
  size_t n = 0;
  for (size_t i = 0; i < N_OPENING && own; i++) {
    if (is_given(c, opening[2 * i]))
      continue;
    pairs[2 * n] = opening[2 * i];
    pairs[2 * n + 1] = opening[2 * i + 1];
    n++;
  }
  memcpy(pairs + 2 * n, c->pairs, 2 * c->n_pairs * sizeof *pairs);
  worker_open_run(wb->worker, pairs, n + c->n_pairs, c->start);
  mem_free(pairs);
}

static void begin_work(struct workbench *wb)
{
  const struct ui_config *c = wb->config;
  if (c->script)
    worker_run_script(wb->worker, c->script, c->n_args, c->args);
  else
    open_first_run(wb);
  wb->lua.opening = !c->script; /* known before the thread has begun: the first frame says so */
  text_add_line(&wb->output, "bitdial " PACKAGE_VERSION ": type bits = 4, help(), or F1 for the keys", STYLE_DIM, 0);
}

static void init(struct workbench *wb, const struct ui_config *c)
{
  *wb = (struct workbench){.config = c, .engine = c->engine, .focus = PANE_PROMPT, .expanded = PANE_COUNT};
  wb->view[PANE_VARIANCE].log_y = true;
  wb->glyphs = screen_glyphs();
  store_init(&wb->store);
  text_init(&wb->output, MAX_OUTPUT_LINES);
}

static void done(struct workbench *wb)
{
  store_done(&wb->store);
  text_done(&wb->output);
  input_done(&wb->input);
  grid_done(&wb->grid);
  str_done(&wb->captured);
  str_done(&wb->captured_line);
}

/* ---- leaving ---- */

/* "x.jsonl" -> "x.safetensors". Caller frees. */
static char *snapshot_path(const char *journal)
{
  size_t n = strlen(journal);
  if (n > 6 && strcmp(journal + n - 6, ".jsonl") == 0)
    n -= 6;
  return mem_printf("%.*s.safetensors", (int)n, journal);
}

/* Asked to end from outside: all state is kept. */
static void save(struct run *r, struct str *out)
{
  struct err e;
  const char *journal = run_journal_path(r);
  char *path = journal ? snapshot_path(journal) : NULL;
  if (path && run_save(r, path, &e) == 0)
    str_addf(out, "  state saved in %s\n", path);
  else if (path)
    str_addf(out, "  the state could not be saved: %s\n", e.msg);
  mem_free(path);
}

static void finish_runs(struct workbench *wb, bool was_ended, struct str *out)
{
  int ids[MAX_RUNS], n = engine_run_ids(wb->engine, ids, MAX_RUNS);
  static struct run_status before[MAX_RUNS], after;
  struct err e;
  for (int i = 0; i < n; i++) {
    if (engine_status(wb->engine, ids[i], &before[i]) != 0)
      before[i].state = ENGINE_IDLE;
    engine_pause(wb->engine, ids[i]);
  }
  engine_lock(wb->engine); /* the step under way ends */
  for (int i = 0; i < n; i++) {
    struct run *r = engine_run(wb->engine, ids[i]);
    if (!r)
      continue;
    store_drain(&wb->store, engine_feed(wb->engine));
    if (engine_status(wb->engine, ids[i], &after) == 0) {
      after.state = before[i].state;
      summary_add(wb, &after, out);
    }
    if (was_ended)
      save(r, out);
    if (run_finish(r, was_ended ? "interrupted" : "stopped", &e) != 0)
      str_addf(out, "  the journal could not be finished: %s\n", e.msg);
  }
  engine_unlock(wb->engine);
}

/* What no one has seen yet: output of a script that quit, the end of what libraries wrote. */
static void print_rest(struct workbench *wb)
{
  struct str text = {0};
  enum worker_kind kind;
  while (worker_take_output(wb->worker, &text, &kind))
    fputs(text.s, kind == WORKER_ERROR ? stderr : stdout);
  str_done(&text);
  if (wb->captured.n)
    fwrite(wb->captured.s, 1, wb->captured.n, stderr);
}

/* The normal screen is back. Ends the process by the signal that asked for it. */
static void leave(struct workbench *wb)
{
  int number = signals_which_end();
  struct str summary = {0};
  signals_end();
  print_rest(wb);
  bool stopped = worker_free(wb->worker, LUA_STOPS_WITHIN_S);
  finish_runs(wb, number != 0, &summary);
  if (summary.n)
    fwrite(summary.s, 1, summary.n, stdout);
  fflush(stdout);
  str_done(&summary);
  if (!stopped)
    fprintf(stderr, "bitdial: Lua is in a function that cannot be interrupted; left it behind\n");
  if (number) {
    signal(number, SIG_DFL);
    raise(number);
  }
  if (!stopped)
    _exit(EXIT_FAILURE);
}

static int run_workbench(struct workbench *wb, struct err *e)
{
  struct worker_config w = {.engine = wb->engine, .journal_path = wb->config->journal_path, .wake = signals_wake};
  wb->worker = worker_create(&w, e);
  if (!wb->worker)
    return -1;
  struct prompt_config p = {.vm = worker_vm(wb->worker),
                            .ctx = wb,
                            .enter = on_enter,
                            .quit = on_quit,
                            .list = on_list,
                            .list_width = list_width};
  prompt_begin(&p);
  begin_work(wb);
  workbench_loop(wb);
  prompt_end();
  return 0;
}

int ui_main(const struct ui_config *c, struct err *e)
{
  if (c->journal_path && strcmp(c->journal_path, "-") == 0)
    return err_set(e, "--log -: the screen is on standard output; give a file, or use 'bitdial train'");
  struct screen_options o = {.no_color = c->no_color, .no_unicode = c->no_unicode};
  static struct workbench wb;
  int status = -1;
  if (terminal_begin(e) == 0 && screen_begin(terminal_fd(), &o, e) == 0) {
    terminal_catch_fatal();
    if (signals_begin(e) == 0) {
      init(&wb, c);
      status = run_workbench(&wb, e);
    }
  }
  screen_end();
  terminal_end();
  if (status == 0)
    leave(&wb);
  else
    signals_end();
  done(&wb);
  return status;
}
