/* The prompt: values, statements, knobs as plain names, unfinished chunks, errors, interruption, quitting. */
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../tap/tap.h"
#include "base/clock.h"
#include "fixture.h"

static struct fixture f;

static void test_values(void)
{
  is_str(says(&f, "1 + 1"), "2", "an expression prints its value");
  is_str(says(&f, "=7 // 2"), "3", "= before it is allowed");
  is_str(says(&f, "'a', 2.5, nil"), "\"a\"  2.5  nil", "several values on one line");
  is_str(says(&f, "1 + 1;"), "", "a semicolon silences");
  is_str(says(&f, "x = 41"), "", "a statement prints nothing");
  is_str(says(&f, "x + 1"), "42", "a new global is kept");
  is_str(says(&f, "_"), "42", "_ is the last value");
  is_str(says(&f, "print('a', 1, nil)"), "a\t1\tnil", "print goes to the sink");
  is_str(says(&f, "io.write('a', 1, '\\n');"), "a1", "io.write too");
  is_str(says(&f, "1 / 3, { 1 / 3 }"), "0.33333333333333  { 0.333333 }", "numbers in a table are short");
  is_str(says(&f, "{ 1, 2, x = { y = true } }"), "{ 1, 2, x = { y = true } }", "tables are printed");
  is_str(says(&f, "{ [3] = 'c', b = 2, a = 1 }"), "{ [3] = \"c\", a = 1, b = 2 }", "with sorted keys");
  is_str(says(&f, "{ { { { { 1 } } } } }"), "{ { { { {...} } } } }", "to a depth");
  is_str(says(&f, "t = {} t.t = t return 1"), "1", "return in a chunk");
  ok(strlen(says(&f, "t")) < 100, "a table that holds itself ends");
  is_str(says(&f, "setmetatable({}, { __tostring = function() error('x', 0) end }), 2"), "<error in __tostring: x>  2",
         "an error while printing is told");
}

static void test_unfinished(void)
{
  static const char *const row[] = {
      "for i = 1, 3 do", "f(", "x = ", "1 +", "x = [[abc", "function g()", "{ 1,", "run:train(", "if bits == 4 then",
      "-- [[\nfor k in"};
  for (size_t i = 0; i < sizeof row / sizeof *row; i++)
    is_int(eval(&f, row[i]), VM_INCOMPLETE, "goes on: %s", row[i]);
  is_int(eval(&f, "for i = 1, 3 do\nprint(i)\nend"), VM_OK, "a chunk of several lines");
  ok(said(&f, "1\n2\n3\n"), "runs");
  is_int(eval(&f, "x = = 2"), VM_ERROR, "nonsense is an error");
  ok(said(&f, "prompt:1:"), "with its place");
  is_int(eval(&f, "x = 'abc"), VM_ERROR, "an unfinished string is one too");
  is_int(eval(&f, ""), VM_OK, "nothing is fine");
  is_int(eval(&f, "  -- only a comment"), VM_OK, "and so is a comment");
}

static void test_no_run(void)
{
  is_int(eval(&f, "bits = 4"), VM_ERROR, "a knob without a run");
  ok(said(&f, "there is no run"), "says so");
  is_int(eval(&f, "pause()"), VM_ERROR, "a method without a run");
}

static void test_knobs(void)
{
  is_str(says(&f, "bits"), "8", "a knob is a name");
  is_str(says(&f, "bits = 4"), "", "and is set like one");
  is_str(says(&f, "bits, run.bits"), "4  4", "reading gives the value set last");
  is_str(says(&f, "batch = 2^5; return batch"), "32", "within the chunk too; 32.0 is 32");
  is_str(says(&f, "lr = lr / 2; return lr"), "0.025", "arithmetic with knobs");
  is_str(says(&f, "run.lr, run.rounding = 0.1, 'rne'; return lr, rounding"), "0.1  \"rne\"", "fields of run");
  is_str(says(&f, "nesterov"), "false", "a boolean");
  is_str(says(&f, "nesterov = true; return nesterov"), "true", "set");
  is_str(says(&f, "run == bd.current(), run == bd.runs()[1]"), "true  true", "a run is equal to itself");
  is_str(says(&f, "rounding = 'sr'; recipe = 'paper'; bits = 8"), "", "back");
}

/* Each: chunk, what the message must hold. The run must stay as it was. */
static void test_refused(void)
{
  static const struct {
    const char *chunk, *want;
  } row[] = {
      {"bitz = 4", "did you mean 'bits'"},
      {"print(bitz)", "did you mean 'bits'"},
      {"roundng = 'sr'", "did you mean 'rounding'"},
      {"run.bitz = 4", "did you mean 'bits'"},
      {"run.los = 4", "loss"},
      {"run.loss = 4", "is read, not set"},
      {"batch = 0", "batch"},
      {"batch = 0", "1048576"},
      {"batch = 'many'", "batch"},
      {"batch = 1.5", "batch"},
      {"lr = {}", "table"},
      {"lr = nil", "nil is no value"},
      {"rounding = ('s'):rep(5000)", "5000 bytes is no value for it: it is too long"},
      {"rounding = 'sr\\0'", "has a NUL in it"},
      {"run.site = 5", "needs a table"},
      {"require('bitdial').run { site = 'int8' }", "site: needs a table"},
      {"require('bitdial').run { site = { gweight = 3 } }", "site.gweight: needs the name of a format"},
      {"require('bitdial').run { site = { gweight = { formt = 'e4m1' } } }", "has no field 'formt'"},
      {"rounding = 'sx'", "rounding"},
      {"model = 'mlp'", "fixed once a run is made"},
      {"run.site.gweigt.format = 'e4m1'", "gweight"},
      {"run.site.gweight.formt = 'e4m1'", "format"},
      {"run.site.gweight.format = 'e99m1'", "e99m1"},
      {"run.site.gweight = { format = 'e4m1', color = 1 }", "color"},
      {"run.site.gweight = 3.5", "site.gweight"},
      {"bits = 3", "bits"},
      {"run:on('stop', print)", "step, eval and diverged"},
      {"run:rewind(-1)", "step"},
      {"run:train(0)", "at least 1"},
      {"run.train(5)", "colon"},
      {"help('nonsense')", "no help"},
      {"bd.run { bitz = 4 }", "bits"},
      {"bd.run { data = 'nowhere' }", "nowhere"},
      {"bd.run { model = 'mpl' }", "mlp"},
  };
  static const char state[] = "bits, batch, lr, rounding, run.site.gweight.format, run.step";
  char before[256];
  snprintf(before, sizeof before, "%s", says(&f, state));
  for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
    int result = eval(&f, row[i].chunk);
    if (!ok(result == VM_ERROR && said(&f, row[i].want), "refused: %s", row[i].chunk))
      tap_note("%s", f.out);
  }
  is_str(says(&f, state), before, "the run is as it was");
}

static void test_whole_or_not(void)
{
  eval(&f, "bits = 8; batch = 16");
  eval(&f, "bits = 4; batch = 0");
  is_str(says(&f, "bits, batch"), "8  16", "a chunk that fails sets nothing");
  eval(&f, "bits = 4; error('later')");
  is_str(says(&f, "bits"), "8", "an error after it neither");
  eval(&f, "run.site.gweight = { format = 'e4m1', rounding = 'sx' }");
  is_str(says(&f, "run.site.gweight.format"), says(&f, "run.site.gweight.format"), "a spec neither");
  is_str(says(&f, "pcall(function() site.gact = { format = 'e4m1', rounding = 'sx' } end); return site.gact.format"),
         "\"e4m3fin\"", "not even where the error is caught");
}

static void test_sites(void)
{
  is_str(says(&f, "run.site.gweight.format = 'e4m1'; return run.site.gweight.format, run.site.gact.format"),
         "\"e4m1\"  \"e4m3fin\"", "one site");
  is_str(says(&f, "site.gweight.rounding = 'rne'; return site.gweight.rounding"), "\"rne\"", "site is run.site");
  is_str(says(&f, "site.gact = { format = 'int8', rounding = 'rtz', random_bits = 16 }; "
                  "return site.gact.format, site.gact.rounding, site.gact.random_bits"),
         "\"int8\"  \"rtz\"  16", "a whole spec");
  is_str(says(&f, "site.gact = 'e4m1'; return site.gact.format"), "\"e4m1\"", "a format alone");
  is_str(says(&f, "site.gact = site.gweight; return site.gact.format, site.gact.rounding"), "\"e4m1\"  \"rne\"",
         "from another site");
  is_str(says(&f, "local n = 0; for k, v in pairs(site.gact) do n = n + 1 end; return n > 5"), "true",
         "pairs of a spec");
  ok(strstr(says(&f, "site"), "gweight") != NULL, "site prints");
  eval(&f, "recipe = 'paper'");
  is_str(says(&f, "site.gact.format"), "\"e4m3fin\"", "the last write wins");
}

static void test_errors(void)
{
  is_int(eval(&f, "local function inner() error('deep') end\nlocal function outer() inner() end\nouter()"), VM_ERROR,
         "an error in a function");
  ok(said(&f, "prompt:1: deep"), "message with its place");
  ok(said(&f, "stack traceback:"), "and traceback");
  ok(said(&f, "outer"), "that names the callers");
  eval(&f, "bitz = 4");
  ok(!said(&f, "traceback"), "a refused knob needs none");
  is_int(eval(&f, "error({})"), VM_ERROR, "an error that is no string");
  is_int(eval(&f, "error()"), VM_ERROR, "nor anything");
  is_int(eval(&f, "(3)()"), VM_ERROR, "calling a number");
  ok(said(&f, "attempt to call a number value"), "is the error it always was");
  is_int(eval(&f, "local function r() return 1 + r() end return r()"), VM_ERROR, "endless recursion ends");
}

static void test_training(void)
{
  is_int(eval(&f, "run:step(3)"), VM_OK, "run:step(n)");
  is_str(says(&f, "run.step, run.examples, run.state"), "3  48  \"idle\"", "did n steps of 16");
  is_str(says(&f, "run.loss > 0 and run.loss < 5"), "true", "there is a loss");
  is_str(says(&f, "step(2); return run.step"), "5", "step() is a function of the prompt");
  is_str(says(&f, "run:train(4)"), "", "train starts and returns");
  eval(&f, "run:wait()");
  is_str(says(&f, "run.step"), "9", "wait waits for it");
  is_str(says(&f, "local v = run.variance; return v.total == v.data + v.quant"), "true",
         "variance: total of its parts");
  is_str(says(&f, "local v = run.variance; local s = 0; for _, l in pairs(v.layer) do s = s + l.quant end; "
                  "return math.abs(s - v.quant) <= 1e-12 * v.quant and v.quant > 0, v.layer.fc1.a > 0"),
         "true  true", "layers sum up");
  is_str(says(&f, "local l, a = run:eval(); return l > 0, a > 0 and a <= 1, a == run.eval_accuracy"),
         "true  true  true", "evaluation");
  eval(&f, "run:train()");
  double t0 = clock_mono_s();
  while (strcmp(says(&f, "run.step > 50"), "true") != 0 && clock_mono_s() - t0 < 20)
    clock_sleep_s(0.002);
  is_str(says(&f, "run.state"), "\"running\"", "train() without an end goes on");
  eval(&f, "bits = 5");
  is_str(says(&f, "bits"), "5", "a knob set while it runs");
  eval(&f, "pause()");
  eval(&f, "pcall(run.wait, run)");
  ok(strcmp(says(&f, "run.state"), "\"running\"") != 0, "pause stops it: %s", f.out);
  is_str(says(&f, "bits"), "5", "the knob is in effect");
}

static void test_files(void)
{
  eval(&f, "run:step(2); n = run.step; l = run.loss; run:save('prompt-test.safetensors')");
  ok(access("prompt-test.safetensors", R_OK) == 0, "saved");
  eval(&f, "lr = 0.2; run:step(3); run:load('prompt-test.safetensors')");
  is_str(says(&f, "run.step == n, lr"), "true  0.1", "load brings back step and knobs");
  eval(&f, "run:step(3); a = run.loss; run:rewind(n)");
  is_str(says(&f, "run.step == n"), "true", "rewind goes back");
  eval(&f, "run:step(3)");
  is_str(says(&f, "run.loss == a"), "true", "and the same steps give the same loss");
  is_int(eval(&f, "run:load('not-there.safetensors')"), VM_ERROR, "a missing file");
  eval(&f, "b = run:fork { rounding = 'rne', name = 'arm' }");
  is_str(says(&f, "b.rounding, b.name, rounding, b.step == run.step"), "\"rne\"  \"arm\"  \"sr\"  true", "fork");
  is_int(eval(&f, "b2 = run:fork { rounding = 'sx' }"), VM_ERROR, "a fork with a bad knob is refused");
  is_str(says(&f, "#bd.runs()"), "2", "and leaves none behind");
  eval(&f, "b:close()");
  is_int(eval(&f, "b.step"), VM_ERROR, "a closed run");
  ok(said(&f, "closed"), "says so");
  is_str(says(&f, "#bd.runs()"), "1", "and is gone");
  unlink("prompt-test.safetensors");
}

static void test_help(void)
{
  eval(&f, "help()");
  ok(said(&f, "knobs") && said(&f, "bits") && said(&f, "gweight"), "help lists the topics");
  eval(&f, "help 'batch'");
  ok(said(&f, "examples a step") && said(&f, "1 to 1048576") && said(&f, "now 16"), "help on a knob");
  for (size_t i = 0; i < KNOB_COUNT; i++) {
    char chunk[64];
    snprintf(chunk, sizeof chunk, "? %s", knob_table[i].name);
    if (eval(&f, chunk) != VM_OK || !said(&f, knob_table[i].help))
      ok(false, "help on %s", knob_table[i].name);
  }
  static const char *const topic[] = {"e4m3",  "paper",     "sr",     "gweight", "loss",
                                      "train", "run:train", "bd.run", "run",     "int5"};
  for (size_t i = 0; i < sizeof topic / sizeof *topic; i++) {
    char chunk[64];
    snprintf(chunk, sizeof chunk, "? %s", topic[i]);
    ok(eval(&f, chunk) == VM_OK && f.n_out > 10, "? %s", topic[i]);
  }
  eval(&f, "? bitz");
  ok(said(&f, "did you mean 'bits'"), "a near miss");
  ok(eval(&f, "bd.formats()") == VM_OK && said(&f, "e4m3"), "bd.formats()");
  ok(eval(&f, "bd.recipes()") == VM_OK && said(&f, "paper"), "bd.recipes()");
  ok(eval(&f, "bd.knobs()") == VM_OK && said(&f, "weight_decay"), "bd.knobs()");
  ok(eval(&f, "bd.roundings()") == VM_OK && said(&f, "stochastic"), "bd.roundings()");
}

/* No knob may hide a function of Lua or of the prompt. */
static void test_names(void)
{
  for (int i = 0; i < KNOB_COUNT; i++) {
    char chunk[128];
    snprintf(chunk, sizeof chunk, "rawget(_G, '%s')", knob_table[i].name);
    if (strcmp(says(&f, chunk), "nil") != 0)
      ok(false, "the knob %s hides a global", knob_table[i].name);
  }
  is_str(says(&f, "load == _G.load"), "true", "load is Lua's");
}

static void *interrupt_soon(void *ctx)
{
  (void)ctx;
  clock_sleep_s(0.1);
  vm_interrupt(f.vm);
  return NULL;
}

static void test_interrupt(void)
{
  static const char *const row[] = {
      "while true do end",
      "while true do pcall(function() while true do end end) end",
      "local co = coroutine.wrap(function() while true do end end); co()",
      "while true do xpcall(error, function() end) end",
      "run:train(); run:wait()",
  };
  for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
    pthread_t t;
    pthread_create(&t, NULL, interrupt_soon, NULL);
    double t0 = clock_mono_s();
    int result = eval(&f, row[i]);
    double took = clock_mono_s() - t0;
    pthread_join(t, NULL);
    ok(result == VM_ERROR && vm_interrupted(f.vm) && said(&f, "interrupted"), "interrupted: %s", row[i]);
    ok(took < 5, "soon: %.2f s", took);
  }
  is_str(says(&f, "1 + 1"), "2", "and the prompt goes on");
  ok(!vm_interrupted(f.vm), "the next chunk was not interrupted");
  vm_interrupt(f.vm);
  is_str(says(&f, "1 + 1"), "2", "an interrupt while nothing runs is nobody's");
}

/* Memory without end is an error like another, and what was taken is given back. */
static void test_memory(void)
{
  struct err e;
  struct vm *vm = vm_create(&(struct vm_config){.engine = f.engine, .max_bytes = 8 << 20}, &e);
  if (!vm)
    tap_bail("%s", e.msg);
  write_file("eat.lua", "local s = ('x'):rep(1000)\n"
                        "for i = 1, 3 do\n"
                        "  local ok, why = pcall(function() local t = s while true do t = t .. t end end)\n"
                        "  assert(not ok and why == 'not enough memory', why)\n"
                        "end\n"
                        "assert(#s:rep(1000) == 1000000)\n"
                        "local t = {}\n"
                        "while true do t[#t + 1] = {} end\n");
  is_int(vm_run_file(vm, "eat.lua", 0, NULL, &e), -1, "a script that takes memory without end fails");
  ok(strstr(e.msg, "not enough memory"), "for lack of it: %s", e.msg);
  write_file("eat.lua", "assert(#('x'):rep(3 << 20) == 3 << 20)\n"); /* takes twice that while it is made */
  is_int(vm_run_file(vm, "eat.lua", 0, NULL, &e), 0, "and the memory is there again %s", e.msg);
  unlink("eat.lua");
  vm_free(vm);
}

static void test_quit(void)
{
  is_int(eval(&f, "quit()"), VM_QUIT, "quit()");
  is_int(eval(&f, "os.exit(0)"), VM_QUIT, "os.exit() does not end the process");
  is_int(eval(&f, "pcall(quit)"), VM_QUIT, "pcall does not stop it");
  is_int(eval(&f, "os.exit(3)"), VM_QUIT, "nor does a status");
  ok(vm_quitting(f.vm), "and it can be asked for");
}

int main(void)
{
  fixture_begin(&f, true);
  test_values();
  test_unfinished();
  test_no_run();
  fixture_run(&f);
  test_knobs();
  test_refused();
  test_whole_or_not();
  test_sites();
  test_errors();
  test_training();
  test_files();
  test_help();
  test_names();
  test_interrupt();
  test_memory();
  test_quit();
  fixture_end(&f);
  return tap_done();
}
