-- The first session as a script: 8 bits, then 4, to nearest, stochastic again, a larger batch.
--
--     bitdial run first-session.lua [DATA [STEPS]]
local bd = require "bitdial"

local data, n_steps = arg[1] or "auto", tonumber(arg[2]) or 300

local run = bd.run {
  model = "mlp", data = data, seed = 1,
  recipe = "paper", bits = 8, batch = 128,
  lr = 0.05, schedule = "constant",
}

local function train(what)
  run:train(n_steps)
  local v = run.variance
  print(("%-16s step %5d  loss %.4f  gradient variance %.3e = data %.3e + rounding %.3e"):format(
    what, run.step, run.loss, v.total, v.data, v.quant))
end

train "8 bits"
run.bits = 4
train "4 bits"
run.rounding = "rne"
train "4 bits, rne"
run.rounding = "sr"
train "4 bits, sr"
run.batch = 1024
train "batch 1024"

local loss, accuracy = run:eval()
print(("held out: loss %.4f, accuracy %.2f %%"):format(loss, 100 * accuracy))
