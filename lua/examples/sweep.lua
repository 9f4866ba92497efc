-- Where rounding to nearest stops to learn and stochastic rounding goes on: held-out accuracy by bits and rounding.
--
--     bitdial run sweep.lua [DATA [STEPS [SEEDS]]]
local bd = require "bitdial"

local data, n_steps, n_seeds = arg[1] or "auto", tonumber(arg[2]) or 500, tonumber(arg[3]) or 3

local function accuracy(bits, rounding, seed)
  local run = bd.run {
    model = "mlp", data = data, seed = seed, steps = n_steps,
    recipe = "paper", bits = bits, rounding = rounding, eval_every = 0,
  }
  local trained, why = pcall(run.train, run)
  local result = 0 -- a run that diverged has learned nothing
  if trained then
    _, result = run:eval()
  else
    print(("  %d bits %s, seed %d: %s"):format(bits, rounding, seed, why))
  end
  run:close()
  return result
end

print "bits  rounding  accuracy in %: mean (smallest, largest)"
for _, bits in ipairs { 8, 6, 5, 4 } do
  for _, rounding in ipairs { "sr", "rne" } do
    local sum, least, most = 0, math.huge, -math.huge
    for seed = 1, n_seeds do
      local a = 100 * accuracy(bits, rounding, seed)
      sum, least, most = sum + a, math.min(least, a), math.max(most, a)
    end
    print(("%4d  %-8s  %.2f (%.2f, %.2f)"):format(bits, rounding, sum / n_seeds, least, most))
  end
end
