/* Handlers at step boundaries: when they run, what they may do, what an error in one does, and that chunks and handlers
 * never block each other. */
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../tap/tap.h"
#include "base/clock.h"
#include "fixture.h"

static struct fixture f;

static void test_step(void)
{
  eval(&f, "steps_told = {}; h = run:on('step', function(r) steps_told[#steps_told + 1] = r.step end); run:step(5)");
  is_str(says(&f, "#steps_told, steps_told[1], steps_told[5]"), "5  1  5", "once a step, with the step");
  eval(&f, "run:off(h); run:step(2)");
  is_str(says(&f, "#steps_told"), "5", "off takes it away");
  is_int(eval(&f, "run:off(h)"), VM_ERROR, "twice is an error");
}

/* What a handler sets takes effect at the next step, exactly: metrics of step 3 are those of batch 64. */
static void test_sets(void)
{
  eval(&f, "batch = 16; run:step(1); n = run.step; examples = {}");
  eval(&f, "h = run:on('step', function(r)\n"
           "  if r.step == n + 2 then r.batch = 64; r.bits = 4; read_back = r.batch end\n"
           "  examples[r.step - n] = r.examples\n"
           "end); run:step(4); run:off(h)");
  is_str(says(&f, "examples[2] - examples[1], examples[3] - examples[2], examples[4] - examples[3]"), "16  64  64",
         "in effect from the next step on");
  is_str(says(&f, "read_back, batch, bits"), "64  64  4", "and read back at once");
  eval(&f, "batch = 16; bits = 8");
}

static void test_knobs_by_name(void)
{
  eval(&f, "h = run:on('step', function() bits = 5 end); run:step(1); run:off(h)");
  is_str(says(&f, "bits"), "5", "knobs are plain names in a handler made at the prompt");
  eval(&f, "bits = 8");
}

static void test_error(void)
{
  eval(&f,
       "calls = 0; n = run.step; run:on('step', function(r) calls = calls + 1; r.bits = 4; error('on purpose') end)");
  int result = eval(&f, "run:step(3)");
  is_int(result, VM_OK, "an error in a handler is not one of the chunk");
  ok(said(&f, "on purpose") && said(&f, "traceback") && said(&f, "off"), "it is told, with traceback");
  is_str(says(&f, "calls, run.step - n"), "1  3", "the handler is off, the run goes on");
  is_str(says(&f, "bits"), "8", "what it set before the error is dropped");
  eval(&f, "run:on('step', function(r) r.batch = 0 end); run:step(2)");
  ok(said(&f, "batch"), "a refused knob in a handler is told");
  is_str(says(&f, "batch"), "16", "and changes nothing");
}

static void test_forbidden(void)
{
  static const char *const call[] = {"r:train(1)", "r:step(1)", "r:wait()", "r:close()"};
  for (size_t i = 0; i < sizeof call / sizeof *call; i++) {
    char chunk[128];
    snprintf(chunk, sizeof chunk, "run:on('step', function(r) %s end); run:step(1)", call[i]);
    eval(&f, chunk);
    ok(said(&f, "waits for this handler"), "%s in a handler is refused", call[i]);
  }
}

static void test_eval(void)
{
  eval(&f, "evals = {}; eval_every = 4; n = run.step\n"
           "h = run:on('eval', function(r, loss, accuracy) evals[#evals + 1] = { r.step, loss, accuracy } end)\n"
           "run:step(8); run:off(h); eval_every = 0");
  is_str(says(&f, "#evals"), "2", "once an evaluation");
  is_str(says(&f, "evals[2][2] == run.eval_loss and evals[2][3] == run.eval_accuracy and evals[1][1] % 4 == 0"), "true",
         "with loss and accuracy");
}

static void test_work_in_handler(void)
{
  eval(&f, "run:on('step', function(r) got = { r:eval() }; v = r.variance; r:pause() end); run:train(5)");
  eval(&f, "pcall(run.wait, run)");
  is_str(says(&f, "got[1] > 0, v.total > 0, run.state"), "true  true  \"paused\"",
         "eval, variance and pause in a handler");
  eval(&f, "for i = 1, 1000 do pcall(run.off, run, i) end; run:resume(); pcall(run.wait, run)");
  is_str(says(&f, "run.steps_left"), "0", "resume does the rest");
}

static void test_diverged(void)
{
  eval(&f, "n = run.step; why = nil; run:on('diverged', function(r) why = r.step end); lr = 1e6; momentum = 0");
  ok(eval(&f, "run:step(200)") == VM_ERROR, "divergence is an error of step()");
  tap_note("%s", f.out);
  is_str(says(&f, "why ~= nil, run.state"), "true  \"diverged\"", "and an event");
  eval(&f, "lr = 0.05; momentum = 0.9; run:rewind(n)");
  is_int(eval(&f, "run:step(2)"), VM_OK, "after a rewind it goes on");
  is_str(says(&f, "run.step - n"), "2", "from there");
}

/* The cycle that two locks could make: chunks on this thread call methods that need the engine while a handler on the
 * engine's thread needs Lua. Every kind of call, in a loop, on two threads at once. */
static const char busy_chunk[] = "for i = 1, 40 do\n"
                                 "  lr = 0.01 + i * 1e-4\n"
                                 "  local a, b = run.step, run.loss\n"
                                 "  local v = run.variance\n"
                                 "  if i % 10 == 0 then run:eval() end\n"
                                 "  local s = run.site.gweight.format\n"
                                 "end";

static void *evaluate_busily(void *ctx)
{
  for (int i = 0; i < 5; i++)
    if (vm_eval(ctx, busy_chunk) != VM_OK)
      return (void *)1;
  return NULL;
}

static void test_locks(void)
{
  pthread_t t;
  eval(&f, "count = 0; last = run.step; h = run:on('step', function(r) count = count + 1; r.momentum = 0.8 + (r.step % "
           "2) / 10 end)");
  eval(&f, "n = run.step; run:train()");
  pthread_create(&t, NULL, evaluate_busily, f.vm);
  for (int i = 0; i < 5; i++)
    is_int(vm_eval(f.vm, busy_chunk), VM_OK, "chunk %d among steps, handlers and another chunk", i);
  void *failed;
  pthread_join(t, &failed);
  ok(!failed, "the other thread's chunks too");
  ok(eval(&f, "while run.step < n + 500 do end") == VM_OK, "a loop that waits for a step lets the handler in");
  eval(&f, "pause(); pcall(run.wait, run); run:off(h)");
  is_str(says(&f, "count == run.step - n"), "true", "the handler saw every step");
}

static void *interrupt_later(void *ctx)
{
  clock_sleep_s(0.3);
  vm_interrupt(ctx);
  return NULL;
}

static void test_interrupt(void)
{
  pthread_t t;
  eval(&f, "run:on('step', function() while true do end end)");
  pthread_create(&t, NULL, interrupt_later, f.vm);
  eval(&f, "run:train(3)");
  double t0 = clock_mono_s();
  while (strcmp(says(&f, "run.steps_left"), "0") != 0 && clock_mono_s() - t0 < 20)
    clock_sleep_s(0.01);
  pthread_join(t, NULL);
  is_str(says(&f, "run.steps_left"), "0", "an endless handler can be interrupted, and the run goes on");
}

int main(void)
{
  alarm(300); /* a deadlock is a failure, not a test that never ends */
  fixture_begin(&f, true);
  fixture_run(&f);
  test_step();
  test_sets();
  test_knobs_by_name();
  test_error();
  test_forbidden();
  test_eval();
  test_work_in_handler();
  test_locks();
  test_interrupt();
  test_diverged();
  fixture_end(&f);
  return tap_done();
}
