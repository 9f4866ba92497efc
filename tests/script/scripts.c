/* Lua scripts run as `bitdial run` runs them: the Lua tests beside this file, and the shipped examples. */
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../tap/tap.h"
#include "base/clock.h"
#include "fixture.h"

static struct fixture f;

static int run_file(const char *path, int n_args, const char *const *args, struct err *e)
{
  f.n_out = 0;
  f.out[0] = '\0';
  *e = (struct err){""};
  return vm_run_file(f.vm, path, n_args, (char *const *)(uintptr_t)args, e);
}

/* One check of ours for each line of a Lua test that is one. */
static void count_checks(void)
{
  int n = 0;
  for (char *line = strtok(f.out, "\n"); line; line = strtok(NULL, "\n")) {
    bool passed = strncmp(line, "ok - ", 5) == 0;
    if (passed || strncmp(line, "not ok - ", 9) == 0) {
      ok(passed, "%s", strstr(line, "- ") + 2);
      n++;
    } else {
      tap_note("%s", line);
    }
  }
  ok(n > 30, "the script came to its end: %d checks", n);
}

static void test_session(void)
{
  struct err e;
  char dir[1024];
  snprintf(dir, sizeof dir, "%s", source_path("tests/script"));
  const char *const args[] = {dir, "second"};
  is_int(run_file(source_path("tests/script/session.lua"), 2, args, &e), 0, "session.lua runs: %s", e.msg);
  count_checks();
  is_str(says(&f, "#bd.runs(), bd.runs()[1].bits"), "4  4", "what it set last was committed");
  eval(&f, "for _, r in ipairs(bd.runs()) do r:close() end");
}

static void test_examples(void)
{
  static const struct {
    const char *name;
    const char *const args[3];
    int n_args;
    const char *want;
  } row[] = {
      {"first-session", {"spirals", "5"}, 2, "batch 1024       step    25"},
      {"handlers", {"spirals", "20"}, 2, "step 10: 4 bits"},
      {"sweep", {"spirals", "5", "1"}, 3, "   4  rne"},
  };
  for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
    char path[128];
    struct err e;
    snprintf(path, sizeof path, "lua/examples/%s.lua", row[i].name);
    int status = run_file(source_path(path), row[i].n_args, row[i].args, &e);
    if (!ok(status == 0 && said(&f, row[i].want), "%s runs: %s", path, e.msg))
      tap_note("%s", f.out);
  }
}

static void test_failures(void)
{
  struct err e;
  ok(run_file("nowhere.lua", 0, NULL, &e) != 0 && strstr(e.msg, "nowhere.lua"), "a missing script: %s", e.msg);
  write_file("s.lua", "local x = = 3\n");
  ok(run_file("s.lua", 0, NULL, &e) != 0 && strstr(e.msg, "s.lua:1:"), "a syntax error: %s", e.msg);
  write_file("s.lua", "local function f() error('deep') end\nlocal function g() f() end\ng()\n");
  ok(run_file("s.lua", 0, NULL, &e) != 0 && strstr(e.msg, "s.lua:1: deep") && strstr(e.msg, "s.lua:3: in main chunk"),
     "an error has its traceback");
  write_file("s.lua", "print('before') os.exit(true) print('after')\n");
  ok(run_file("s.lua", 0, NULL, &e) == 0 && said(&f, "before") && !said(&f, "after"), "os.exit(true) ends it well");
  write_file("s.lua", "os.exit(3)\n");
  ok(run_file("s.lua", 0, NULL, &e) != 0 && strstr(e.msg, "3"), "os.exit(3) does not: %s", e.msg);
}

/* quit() in a handler ends the script that waits for training. */
static void test_quit_in_handler(void)
{
  struct err e;
  char text[2048];
  snprintf(text, sizeof text,
           "r = bd.run { model = '%s', data = 'spirals', batch = 16 }\n"
           "r:on('step', function(r) if r.step == 7 then quit() end end)\n"
           "pcall(r.train, r, 1000000000)\nprint('on')\n",
           source_path("tests/script/tiny.lua"));
  write_file("s.lua", text);
  ok(run_file("s.lua", 0, NULL, &e) == 0 && vm_quitting(f.vm) && !said(&f, "on"), "quit() in a handler: %s", e.msg);
  eval(&f, "r:close()");
}

static void *interrupt_soon(void *ctx)
{
  clock_sleep_s(0.2);
  vm_interrupt(ctx);
  return NULL;
}

static void test_interrupt(void)
{
  struct err e;
  char text[2048];
  snprintf(text, sizeof text,
           "r = bd.run { model = '%s', data = 'spirals', batch = 16 }\npcall(r.train, r, 1000000000)\nprint('on')\n",
           source_path("tests/script/tiny.lua"));
  write_file("s.lua", text);
  pthread_t t;
  pthread_create(&t, NULL, interrupt_soon, f.vm);
  int status = run_file("s.lua", 0, NULL, &e);
  pthread_join(t, NULL);
  ok(status != 0 && vm_interrupted(f.vm) && !said(&f, "on"), "an interrupt ends a script that trains: %s", e.msg);
  const char *state = says(&f, "r.state");
  ok(strcmp(state, "\"running\"") != 0, "and its run stands still: %s", state);
  unlink("s.lua");
}

int main(void)
{
  fixture_begin(&f, false);
  test_session();
  test_examples();
  test_failures();
  test_quit_in_handler();
  test_interrupt();
  fixture_end(&f);
  return tap_done();
}
