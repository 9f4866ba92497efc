/* bitdial replay: repeats a journal and says whether the run came out the same. */
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "cmd_signal.h"
#include "cmd_tables.h"
#include "tensor/gemm.h"
#include "train/replay.h"

struct watch {
  bool live;
  double shown_at;
};

static bool on_step(void *ctx, uint64_t step, double loss)
{
  struct watch *w = ctx;
  double now = clock_mono_s();
  if (w->live && now - w->shown_at > 0.1) {
    if (isnan(loss))
      fprintf(stderr, "\r\033[Kstep %" PRIu64 ", again after a rewind", step);
    else
      fprintf(stderr, "\r\033[Kstep %" PRIu64 "  loss %.4f", step, loss);
    w->shown_at = now;
  }
  return !signal_caught();
}

static void report(const struct replay_result *r, bool same)
{
  if (r->note[0])
    printf("note: %s\n", r->note);
  if (r->first_mismatch)
    printf("differs: the loss of step %" PRIu64 " is not the journal's\n", r->first_mismatch);
  if (r->has_end)
    printf("weights %s, journal %s\n", r->got_hash, r->want_hash);
  if (same && r->has_end)
    printf("reproduced: %" PRIu64 " steps, losses and final weights bit for bit\n", r->n_steps);
  else if (same)
    printf("reproduced: %" PRIu64 " steps, every loss bit for bit (no end line to compare weights with)\n", r->n_steps);
  else
    printf("not reproduced\n");
}

int cmd_replay(int argc, char **argv)
{
  const struct command *c = command_find("replay");
  struct cmd_args a;
  struct err e;
  int status = cmd_parse(c, argc, argv, &a);
  if (status >= 0)
    return status;
  bool quiet = a.value[REPLAY_QUIET];
  uint64_t to = a.value[REPLAY_TO] ? strtoull(a.value[REPLAY_TO], NULL, 10) : UINT64_MAX;
  struct watch w = {.live = !quiet && isatty(STDERR_FILENO)};
  struct replay_result r = {0};
  if (cmd_check_count("to", a.value[REPLAY_TO], &e) != 0) {
    status = cmd_usage_error(c, &e);
  } else {
    gemm_init();
    signal_begin(NULL);
    int failed = replay_journal(a.rest[0], to, on_step, &w, &r, &e) != 0;
    if (w.shown_at > 0)
      fputs("\r\033[K", stderr);
    if (signal_caught()) {
      fprintf(stderr, "bitdial replay: interrupted after %" PRIu64 " steps\n", r.n_steps);
      status = STATUS_INTERRUPTED;
    } else if (failed) {
      status = cmd_fail(c, &e);
    } else {
      bool same = r.first_mismatch == 0 && (!r.has_end || r.same_hash);
      if (!quiet)
        report(&r, same);
      status = same ? STATUS_DONE : STATUS_FAILED;
    }
    signal_end();
  }
  cmd_args_done(&a);
  return status;
}
