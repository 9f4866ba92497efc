-- Handlers: fewer bits as training goes on, a larger batch when rounding noise outweighs sampling noise, and a step back
-- when the loss is no number any more.
--
--     bitdial run handlers.lua [DATA [STEPS]]
local bd = require "bitdial"

local data, n_steps = arg[1] or "auto", tonumber(arg[2]) or 1000

local run = bd.run { model = "mlp", data = data, seed = 1, recipe = "paper", bits = 8, batch = 128, eval_every = n_steps // 4 }

local bits_at = { [n_steps // 4] = 6, [n_steps // 2] = 4 }
local last_change = 0

run:on("step", function(r)
  if bits_at[r.step] then
    r.bits = bits_at[r.step]
    print(("step %d: %d bits"):format(r.step, r.bits))
  end
  if r.var_quant > r.var_data and r.batch < 1024 and r.step >= last_change + 50 then
    r.batch = 2 * r.batch
    last_change = r.step
    print(("step %d: rounding noise above sampling noise, batch %d"):format(r.step, r.batch))
  end
end)

run:on("eval", function(r, loss, accuracy)
  print(("step %d: held out: loss %.4f, accuracy %.2f %%"):format(r.step, loss, 100 * accuracy))
end)

run:train(n_steps)
