-- A script as users write them: the module, runs, knobs, handlers, files. arg[1]: directory of the tests.
package.path = arg[1] .. "/?.lua;" .. package.path
local check = require "check"
local bd = require "bitdial"
local model = arg[1] .. "/tiny.lua"

check.is(arg[2], "second", "arguments arrive in arg")
check.is(select(2, ...), "second", "and as ...")
check.is(bd, _G.bd, "bd is the module")
check.is(bits, nil, "knobs are no globals of a script")
check.is(bitz, nil, "nor are unknown names an error")

local run = bd.run { model = model, data = "spirals", batch = 16, recipe = "paper", bits = 8, lr = 0.1, seed = 3, name = "first" }
check.is(run.name, "first", "name of a run")
check.is(run.dataset, "spirals", "its data set")
check.is(run.n_weights, 2 * 16 + 16 + 16 * 2 + 2, "its weights")
check.is(run.lr, 0.1, "options win over the model's defaults")
check.is(run.batch, 16, "batch")
check.is(run.journal, nil, "no journal unless asked for")
check.is(run.state, "idle", "a new run stands still")

check.is(run:train(10), run, "train returns the run")
check.is(run.step, 10, "when it is done")
check.ok(run.loss > 0, "there is a loss")
check.ok(run.epoch > 0 and run.epoch < 1, "a part of an epoch")
check.fails(function() run:train() end, "how long", "train() needs an end in a script")
run.steps = 12
run:train()
check.is(run.step, 12, "which the knob steps can give")
check.fails(function() run:train() end, "12 steps", "and no further")
run.steps = 0

run.batch, run.rounding = 32, "rne"
check.is(run.batch, 32, "knobs set, not yet in effect, read as set")
local examples = run.examples
run:step()
check.is(run.examples - examples, 32, "step() does one, with the new batch")
check.is(run.rounding, "rne", "rounding")

-- the order of a table's fields does not matter: recipe comes before bits
for _ = 1, 5 do
  local r = bd.run { bits = 4, recipe = "paper", model = model, data = "spirals", site = { gact = { format = "e4m1" } } }
  check.is(r.site.gweight.format, "e2m1", "bits over recipe")
  check.is(r.site.gact.format, "e4m1", "a site over bits")
  r:close()
end

-- the same script gives the same numbers
local function losses(seed)
  local r = bd.run { model = model, data = "spirals", batch = 16, seed = seed }
  local list = {}
  r:on("step", function(r) list[#list + 1] = ("%a"):format(r.loss) end)
  r:train(20)
  r.bits = 4
  r:train(20)
  r:close()
  return table.concat(list, " ")
end
local one = losses(5)
check.is(losses(5), one, "the same seed, the same losses, bit for bit")
check.ok(losses(6) ~= one, "another seed, others")

-- a fork sees the same batches
local a = bd.run { model = model, data = "spirals", batch = 16, recipe = "fp32" }
a:train(5)
local b = a:fork {}
a:train(5)
b:train(5)
check.is(b.loss, a.loss, "a fork without changes goes the same way")
local c = a:fork { lr = 0.5 }
check.is(c.lr, 0.5, "a fork with a change")
check.is(a.lr, 0.05, "leaves the first as it was")
a.recipe = "paper"
local d = a:fork { bits = 4 } -- which asks for what is set, though no step was done with it
check.is(d.bits, 4, "a fork of a run with a change that waits")
check.is(d.recipe, "paper", "has that change")
d:step()
check.is(d.bits, 4, "and trains with it")
d:close()
check.fails(function() d:on("step", print) end, "closed", "no handlers for a closed run")
check.fails(function() d:close() end, "run", "nor is it closed twice")
local log = os.tmpname()
local e = a:fork { journal = log }
check.fails(function() a:fork { journal = log } end, "another run writes it", "one journal, one run")
e:close()
os.remove(log)
os.remove(log .. ".start.safetensors")
check.fails(function() for i = 1, 1e6 do a.lr = i % 2 + 1 end end, "wait to take effect", "changes without end")

local seen = 0
for _, r in ipairs(bd.runs()) do
  if r == run or r == a or r == b or r == c then seen = seen + 1 end
end
check.is(seen, 4, "bd.runs() has them all")

check.fails(function() run.bitz = 1 end, "bits", "a near miss")
check.fails(function() run.batch = 0 end, "session.lua:", "errors name the line of the script")
check.fails(function() bd.run { model = model, data = "idx:/nowhere" } end, "/nowhere", "missing data")
check.fails(function() bd.run { model = model, data = "spirals", journal = "/nowhere/x.jsonl" } end, "/nowhere",
  "a journal that cannot be written")
check.fails(function() run:save("/nowhere/x.safetensors") end, "/nowhere", "a file that cannot be saved")

local names = {}
for _, knob in ipairs(bd.knobs()) do names[knob.name] = knob end
check.is(names.batch.min, 1, "bd.knobs(): range")
check.is(names.rounding.choices[1], "rne", "and choices")
check.is(names.seed.live, false, "and whether it can be turned")
local formats = {}
for _, format in ipairs(bd.formats()) do formats[format.name] = format end
check.is(formats.e4m3.max, 448, "bd.formats(): largest of e4m3 (OCP OFP8)")
check.is(formats.bf16.bits, 16, "width of bf16")

local x = 0
local co = coroutine.wrap(function() for i = 1, 3 do run:step() coroutine.yield(i) end end)
for _ = 1, 3 do x = x + co() end
check.is(x, 6, "run methods within coroutines")

run.bits = 4 -- at the end of a script: takes effect all the same
