/* The loop: waits for keys, signals, the worker and what libraries write, looks at the engine some thirty times a
 * second, and draws when something changed. */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "ui/prompt.h"
#include "ui/screen.h"
#include "ui/signals.h"
#include "ui/terminal.h"
#include "ui/workbench.h"

#define FRAME_S 0.033
#define IDLE_S 0.1  /* between looks while nothing runs */
#define SLOW_S 0.25 /* what counts seconds is drawn anew this often */
#define CAPTURE_KEPT 8192

/* What libraries and child processes wrote to 1 and 2: lines among the events. */
static void drain_captured(struct workbench *wb)
{
  char bytes[4096];
  ssize_t n;
  while ((n = read(terminal_capture_fd(), bytes, sizeof bytes)) > 0) {
    str_addn(&wb->captured, bytes, (size_t)n);
    if (wb->captured.n > 2 * CAPTURE_KEPT) {
      struct str end = {0};
      str_addn(&end, wb->captured.s + wb->captured.n - CAPTURE_KEPT, CAPTURE_KEPT);
      str_done(&wb->captured);
      wb->captured = end;
    }
    for (ssize_t i = 0; i < n; i++) {
      if (bytes[i] != '\n' && wb->captured_line.n < 1024)
        str_addc(&wb->captured_line, bytes[i] ? bytes[i] : '?');
      if (bytes[i] == '\n' || wb->captured_line.n >= 1024) {
        store_note(&wb->store, wb->captured_line.n ? wb->captured_line.s : "", STYLE_DIM);
        str_clear(&wb->captured_line);
      }
    }
    wb->dirty = true;
  }
}

static void drain_output(struct workbench *wb)
{
  static const enum style style[] = {[WORKER_OUTPUT] = STYLE_NORMAL, [WORKER_ERROR] = STYLE_ERROR};
  struct str text = {0};
  enum worker_kind kind;
  for (int i = 0; i < 32 && worker_take_output(wb->worker, &text, &kind); i++) {
    text_add(&wb->output, text.s, style[kind]);
    wb->dirty = true;
  }
  str_done(&text);
  const char *problem = prompt_history_problem();
  if (problem)
    store_note(&wb->store, problem, STYLE_ERROR);
}

/* Looks at the worker and the engine; what changed is to be drawn. */
static void look(struct workbench *wb)
{
  struct worker_state before = wb->lua;
  drain_output(wb);
  worker_state(wb->worker, &wb->lua);
  const struct worker_state *now = &wb->lua;
  if (now->quit)
    wb->leaving = true;
  prompt_set_incomplete(now->incomplete);
  wb->dirty |= before.busy != now->busy || before.incomplete != now->incomplete || before.opening != now->opening ||
               before.script != now->script;
  wb->dirty |= store_drain(&wb->store, engine_feed(wb->engine));
  int id = vm_current_run(worker_vm(wb->worker));
  static struct run_status s; /* some 20 KiB; one thread */
  if (id == 0 || engine_status(wb->engine, id, &s) != 0) {
    wb->dirty |= wb->run_id != 0;
    wb->run_id = 0;
    return;
  }
  bool same_run = id == wb->run_id;
  if (same_run && memcmp(&s.knobs, &wb->status.knobs, sizeof s.knobs) != 0) {
    wb->changed_from = wb->status.knobs;
    wb->changed_at = clock_mono_s();
    wb->dirty = true;
  }
  wb->dirty |= !same_run || s.state != wb->status.state || s.step != wb->status.step;
  wb->run_id = id;
  wb->status = s;
}

static void read_keys(struct workbench *wb)
{
  char bytes[4096];
  ssize_t n = read(terminal_fd(), bytes, sizeof bytes);
  if (n > 0)
    input_feed(&wb->input, bytes, (size_t)n);
  else if (n == 0 || (errno != EINTR && errno != EAGAIN))
    raise(SIGHUP); /* the terminal is gone */
}

static void take_keys(struct workbench *wb, bool final)
{
  struct key k;
  while (!wb->leaving && input_next(&wb->input, final, &k))
    workbench_key(wb, &k);
}

static void take_signals(struct workbench *wb)
{
  for (int s; (s = signals_next());) {
    if (s == SIGNALS_WINCH)
      screen_read_size();
    else if (s == SIGNALS_END)
      wb->leaving = true;
    else if (s == SIGNALS_STOP)
      workbench_suspend(wb);
    else if (s == SIGNALS_CONT) /* after another's SIGSTOP, too: the shell has used the terminal, perhaps still does */
      wb->hidden = true;
    wb->dirty |= s != SIGNALS_WAKE;
  }
}

/* After a stop: comes back when we are in the foreground, and touches nothing until then. */
static void come_back(struct workbench *wb)
{
  if (!wb->hidden || tcgetpgrp(terminal_fd()) != getpgrp())
    return;
  wb->hidden = false;
  screen_resume();
  wb->dirty = true;
}

static void draw(struct workbench *wb)
{
  int w, h;
  screen_size(&w, &h);
  grid_resize(&wb->grid, w, h);
  workbench_draw(wb);
  screen_show(&wb->grid, wb->cursor_x, wb->cursor_y);
  wb->dirty = false;
}

static bool is_counting(const struct workbench *wb, double now)
{
  return wb->lua.busy || (wb->changed_at > 0 && now - wb->changed_at < 5);
}

static int esc_delay_ms(void)
{
  const char *text = getenv("ESCDELAY");
  int ms = text ? atoi(text) : 0;
  return ms > 0 && ms <= 1000 ? ms : INPUT_ESC_MS;
}

/* Waits at most that long; returns whether a begun key had its time. */
static bool wait_for_something(struct workbench *wb, double seconds)
{
  struct pollfd f[] = {{.fd = wb->hidden ? -1 : terminal_fd(), .events = POLLIN},
                       {.fd = signals_fd(), .events = POLLIN},
                       {.fd = terminal_capture_fd(), .events = POLLIN}};
  bool begun = input_is_waiting(&wb->input);
  static double begun_at;
  double now = clock_mono_s(), esc = esc_delay_ms() / 1e3;
  if (begun && begun_at == 0)
    begun_at = now;
  if (begun && seconds > esc)
    seconds = esc;
  int ms = seconds > 0 ? (int)(seconds * 1e3 + 0.999) : 0;
  poll(f, 3, ms);
  if (f[0].revents & (POLLIN | POLLHUP | POLLERR))
    read_keys(wb);
  else if (begun && clock_mono_s() - begun_at >= esc) {
    begun_at = 0;
    return true;
  }
  if (!input_is_waiting(&wb->input) || (f[0].revents & POLLIN))
    begun_at = 0;
  return false;
}

void workbench_loop(struct workbench *wb)
{
  double drawn_at = 0, looked_at = 0;
  wb->dirty = true;
  while (!wb->leaving) {
    double now = clock_mono_s();
    bool moves = wb->lua.busy || (wb->run_id && wb->status.state == ENGINE_RUNNING);
    bool final = wait_for_something(wb, wb->dirty ? 0 : (moves ? FRAME_S : IDLE_S) - (now - looked_at));
    take_signals(wb);
    take_keys(wb, final);
    drain_captured(wb);
    look(wb);
    looked_at = now = clock_mono_s();
    come_back(wb);
    wb->dirty |= is_counting(wb, now) && now - drawn_at >= SLOW_S;
    if (wb->dirty && !wb->hidden && !wb->leaving) {
      draw(wb);
      drawn_at = now;
    }
  }
}
