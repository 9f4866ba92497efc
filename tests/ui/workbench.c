/* A session of the real program: live plots, a knob turned, mistakes, every size of the screen, the prompt, leaving. */
#include "config.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "tests/tap/tap.h"

#ifdef HAVE_VTERM
#include "term.h"

static const char *const quick[] = {"--data", "spirals", "--threads", "1", "--speed", "300", "--eval-every", "0", NULL};

/* The places of the plots at 80x24. */
#define LOSS 0, 0, 40, 13
#define VARIANCE 41, 0, 80, 13
#define BRAILLE 0x2801, 0x28FF
#define MARK 0x250A, 0x250A

static void check(struct term *t, bool passed, const char *what)
{
  if (!ok(passed, "%s", what))
    term_show(t);
}

static bool plots_have_curves(struct term *t, void *ctx)
{
  (void)ctx;
  return term_has(t, LOSS, BRAILLE) && term_has(t, VARIANCE, BRAILLE);
}

static bool plots_have_marks(struct term *t, void *ctx)
{
  (void)ctx;
  return term_has(t, LOSS, MARK) && term_has(t, VARIANCE, MARK);
}

/* Steps as the status pane shows them; -1: not there. */
static long step_shown(struct term *t)
{
  const char *at = strstr(term_text(t), "step  ");
  return at ? strtol(at + 4, NULL, 10) : -1;
}

static bool step_is_beyond(struct term *t, void *ctx)
{
  return step_shown(t) > *(long *)ctx;
}

static bool goes_on(struct term *t)
{
  long now = step_shown(t);
  return term_wait(t, step_is_beyond, &now);
}

static bool picture_differs(struct term *t, void *ctx)
{
  return strncmp(term_text(t), ctx, 1500) != 0;
}

static void test_live(struct term *t)
{
  check(t, term_wait_text(t, "gradient variance"), "the first frame has the plots' titles");
  check(t, term_wait_text(t, "running"), "the run goes");
  check(t, term_wait(t, plots_have_curves, NULL), "both plots have curves");
  check(t, goes_on(t), "the step in the status pane rises");
  char *before = strdup(term_text(t));
  check(t, term_wait(t, picture_differs, before), "the plots move");
  free(before);
  ok(!plots_have_marks(t, NULL), "no mark before a change");
}

static void test_turn(struct term *t)
{
  term_send(t, "bits = 4\r");
  check(t, term_wait_text(t, "bits      4 "), "bits = 4 shows in the status pane");
  check(t, term_wait(t, plots_have_marks, NULL), "bits = 4 is a mark on both plots");
  check(t, term_wait_text(t, "bits 8 -> 4"), "and a line among the events");
  check(t, goes_on(t), "the run goes on after it");
}

static void test_mistakes(struct term *t)
{
  term_send(t, "bits = 99\r");
  check(t, term_wait_text(t, "bits = 99: must be"), "bits = 99 is refused with a message");
  term_send(t, "bitz = 3\r");
  check(t, term_wait_text(t, "did you mean 'bits'"), "bitz = 3 names the near miss");
  check(t, strstr(term_text(t), "bits      4 ") != NULL, "bits is still 4");
  check(t, goes_on(t), "the run goes on after both");
}

static void test_sizes(struct term *t)
{
  static const struct {
    int w, h;
    const char *text; /* to be seen; NULL: nothing to see, only to survive */
  } sizes[] = {{200, 60, "lr_scaling"}, {20, 5, "too small"}, {1, 1, NULL},   {120, 40, "gradient variance"},
               {64, 20, "loss"},        {30, 8, "loss"},      {300, 3, NULL}, {80, 24, "events"}};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    term_resize(t, sizes[i].w, sizes[i].h);
    if (!sizes[i].text)
      term_pump(t, 0.2);
    else if (!ok(term_wait_text(t, sizes[i].text), "%dx%d shows \"%s\"", sizes[i].w, sizes[i].h, sizes[i].text))
      term_show(t);
  }
  check(t, term_wait(t, plots_have_marks, NULL), "back at 80x24 both plots have their mark");
  check(t, goes_on(t), "the run goes on through all sizes");
}

/* With room for output. */
static void test_prompt(struct term *t)
{
  term_resize(t, 130, 50);
  term_wait_text(t, "lr_scaling");
  term_send(t, "6 * 7\r");
  check(t, term_wait_text(t, "\n42"), "an expression prints its value");
  term_send(t, "local function f() error('boom') end f()\r");
  check(t, term_wait_text(t, "boom") && term_wait_text(t, "stack traceback"),
        "a Lua error shows message and traceback");
  check(t, goes_on(t), "the run goes on after a Lua error");
  term_send(t, "while true do end\r");
  check(t, term_wait_text(t, "C-c stops it"), "a loop without an end shows as running");
  check(t, goes_on(t), "the screen moves meanwhile");
  term_send(t, "\003");
  check(t, term_wait_text(t, "interrupted"), "Ctrl-C stops it");
  term_send(t, "for i = 1, 2 do\r");
  check(t, term_wait_text(t, "\n>>"), "an unfinished chunk asks for more");
  term_send(t, "print('row' .. i)\rend\r");
  check(t, term_wait_text(t, "row1\nrow2"), "and runs when it is whole");
  term_send(t, "round\t");
  check(t, term_wait_text(t, "> rounding"), "Tab completes a knob");
  term_send(t, " = \"\t\t");
  check(t, term_wait_text(t, "sr_eps"), "Tab lists the values of a knob");
  term_send(t, "\003");
  check(t, term_wait_no_text(t, "> rounding = \""), "Ctrl-C clears the line");
  term_send(t, "\033[200~print('pa' .. 'ste 1')\nprint('pa' .. 'ste 2')\033[201~");
  check(t, term_wait_text(t, ">> print('pa' .. 'ste 2')"), "a paste of two lines is an entry of two lines");
  term_pump(t, 0.2);
  check(t, strstr(term_text(t), "paste 1") == NULL, "it is not run by being pasted");
  term_send(t, "\r");
  check(t, term_wait_text(t, "paste 1\npaste 2"), "Enter runs it as one chunk");
  term_send(t, "while true do print('flood') end\r");
  term_wait_text(t, "flood\nflood\nflood\nflood");
  term_send(t, "\003");
  term_send(t, "'dry' .. ' land'\r");
  check(t, term_wait_text(t, "dry land"), "a flood of output ends at Ctrl-C and leaves the prompt whole");
  term_send(t, "os.execute('echo stray line; echo stray error >&2')\r");
  check(t, term_wait_text(t, "stray error") && strstr(term_text(t), "stray line"),
        "what child processes write goes among the events");
}

/* The step once it has not moved for a while: the one under way at a pause still ends. */
static long settled_step(struct term *t)
{
  long before = -1;
  for (int i = 0; i < 50 && step_shown(t) != before; i++) {
    before = step_shown(t);
    term_pump(t, 0.3);
  }
  return before;
}

static void test_panes(struct term *t)
{
  term_resize(t, 80, 24);
  term_send(t, "\033");
  check(t, term_wait_text(t, "next pane"), "Esc leaves the prompt");
  term_send(t, " ");
  check(t, term_wait_text(t, "paused"), "Space pauses");
  long before = settled_step(t);
  term_pump(t, 0.3);
  is_int(step_shown(t), before, "a paused run stands still");
  term_send(t, ".");
  check(t, term_wait(t, step_is_beyond, &before), ". does a step");
  term_pump(t, 0.2);
  is_int(step_shown(t), before + 1, "and only one");
  term_send(t, "x");
  check(t, term_wait_text(t, "steps"), "x changes the axis to steps");
  term_send(t, "e");
  check(t, term_wait_no_text(t, "events"), "e expands the pane");
  term_send(t, "e");
  check(t, term_wait_text(t, "events"), "and back");
  term_send(t, "?");
  check(t, term_wait_text(t, "any other key closes"), "? shows the keys");
  term_send(t, "z");
  check(t, term_wait_no_text(t, "any other key closes"), "any key closes the help");
  term_send(t, " ");
  check(t, term_wait_text(t, "running") && goes_on(t), "Space lets it go on");
  term_send(t, "q");
  check(t, term_wait_text(t, "Quit, and finish"), "q asks while the run goes");
  term_send(t, "n");
  check(t, term_wait_no_text(t, "Quit, and finish"), "n stays");
  term_send(t, "i");
  check(t, term_wait_text(t, "Tab complete"), "i goes back to the prompt");
}

/* The one journal; "" when there is none. */
static void read_journal(const char *home, char *out, size_t n)
{
  char dir[512], path[1024];
  *out = '\0';
  snprintf(dir, sizeof dir, "%s/XDG_STATE_HOME/bitdial/runs", home);
  DIR *d = opendir(dir);
  for (struct dirent *e; d && (e = readdir(d));) {
    if (!strstr(e->d_name, ".jsonl"))
      continue;
    snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
    FILE *f = fopen(path, "r");
    size_t k = f ? fread(out, 1, n - 1, f) : 0;
    out[k] = '\0';
    if (f)
      fclose(f);
  }
  if (d)
    closedir(d);
}

static void test_leaving(struct term *t, const char *home)
{
  static char journal[16 << 20];
  term_send(t, "\004");
  ok(term_wait_exit(t), "Ctrl-D on an empty line leaves");
  ok(WIFEXITED(t->status) && WEXITSTATUS(t->status) == 0, "with exit status 0");
  ok(term_is_restored(t), "the terminal is as before: modes, screen, cursor");
  check(t, strstr(term_text(t), "bitdial replay") != NULL, "the normal screen has a summary that says how to repeat");
  read_journal(home, journal, sizeof journal);
  ok(strstr(journal, "\"kind\":\"set\"") && strstr(journal, "\"bits\""), "the journal has the change");
  ok(strstr(journal, "\"kind\":\"end\"") != NULL, "and an end");
}

static void test_history(void)
{
  struct term t;
  term_start(&t, 80, 24, quick);
  term_wait_text(&t, "running");
  term_send(&t, "\022bits = 9");
  check(&t, term_wait_text(&t, "(reverse-i-search)`bits = 9': bits = 99"), "Ctrl-R finds the other session's entry");
  term_send(&t, "\003");
  check(&t, term_wait_no_text(&t, "reverse-i-search"), "Ctrl-C ends the search");
  term_send(&t, "\033[A");
  check(&t, term_wait_text(&t, "> os.execute("), "Up shows the last entry of the other session");
  term_send(&t, "\003quit()\r");
  ok(term_wait_exit(&t) && WIFEXITED(t.status) && WEXITSTATUS(t.status) == 0, "quit() leaves");
  ok(term_is_restored(&t), "and restores the terminal");
  term_free(&t);
}

/* The text of a field of the journal's last line. */
static void end_field(const char *path, const char *field, char *out, size_t n)
{
  char line[65536], key[64];
  snprintf(key, sizeof key, "\"%s\":\"", field);
  *out = '\0';
  FILE *f = fopen(path, "r");
  while (f && fgets(line, sizeof line, f)) {
    const char *at = strstr(line, "\"kind\":\"end\"") ? strstr(line, key) : NULL;
    if (at)
      snprintf(out, n, "%.*s", (int)strcspn(at + strlen(key), "\""), at + strlen(key));
  }
  if (f)
    fclose(f);
}

/* The same script with and without a screen, which is drawn and typed at meanwhile, ends in the same weights. */
static void test_script(const char *home)
{
  static const char text[] =
      "local bd = require 'bitdial'\n"
      "local run = bd.run { model = 'mlp', data = 'spirals', batch = 64, lr = 0.02, threads = 1,\n"
      "                     speed = tonumber(arg[2]), journal = arg[1] }\n"
      "run:on('step', function(r) if r.step == 40 then r.bits = 4 end end)\n"
      "print('begun ' .. #arg)\n"
      "run:train(150)\n"
      "run:close()\n"
      "quit()\n";
  char script[512], with[512], without[512], command[2048], a[64], b[64];
  snprintf(script, sizeof script, "%s/s.lua", home);
  snprintf(with, sizeof with, "%s/with.jsonl", home);
  snprintf(without, sizeof without, "%s/without.jsonl", home);
  FILE *f = fopen(script, "w");
  fputs(text, f);
  fclose(f);
  struct term t;
  term_start(&t, 80, 24, (const char *const[]){script, with, "150", NULL});
  check(&t, term_wait_text(&t, "begun 2"), "a script runs in the workbench");
  check(&t, term_wait_text(&t, "running") && term_wait(&t, plots_have_marks, NULL), "its run is on the plots");
  term_send(&t, "6 * 7\r");
  check(&t, term_wait_text(&t, "\n42"), "the prompt answers while the script waits for its run");
  ok(term_wait_exit(&t) && WIFEXITED(t.status) && WEXITSTATUS(t.status) == 0, "quit() in the script leaves");
  ok(term_is_restored(&t), "and restores the terminal");
  term_free(&t);
  snprintf(command, sizeof command, "'%s' run --quiet '%s' '%s' 0 >'%s/out' 2>&1", getenv("BITDIAL"), script, without,
           home);
  is_int(system(command), 0, "the same script runs without a screen");
  end_field(with, "weights_hash", a, sizeof a);
  end_field(without, "weights_hash", b, sizeof b);
  ok(strlen(a) == 32, "the journal has a hash of the weights");
  is_str(a, b, "with and without a screen the weights are the same, bit for bit");
}

int main(void)
{
  struct term t;
  const char *home = term_home();
  term_start(&t, 80, 24, quick);
  test_live(&t);
  test_turn(&t);
  test_mistakes(&t);
  test_sizes(&t);
  test_prompt(&t);
  test_panes(&t);
  test_leaving(&t, home);
  term_free(&t);
  test_history();
  test_script(home);
  term_home_done();
  return tap_done();
}

#else
int main(void)
{
  tap_skip("built without libvterm (libvterm-dev)");
  return tap_done();
}
#endif
