-- Few bits on the gradients alone: where rounding to nearest stalls and stochastic rounding goes on. The sites gweight
-- and gact take the format; everything else stays as the recipe `paper` at 8 bits has it. Prints a Markdown table; the
-- one in doc/sr-vs-rne.md was made by
--
--     bitdial run sr-vs-rne.lua fashion-mnist 1000 3
--
-- Arguments: DATA, STEPS, SEEDS.
local bd = require "bitdial"

local data, n_steps, n_seeds = arg[1] or "auto", tonumber(arg[2]) or 1000, tonumber(arg[3]) or 3
local formats = { "e4m3fin", "e4m0", "e2m1", "int8", "int6", "int5", "int4", "int3" }

-- Held-out loss and accuracy after training; nothing where it diverged.
local function train(format, rounding, seed)
  local run = bd.run {
    model = "mlp", data = data, seed = seed, recipe = "paper", bits = 8, batch = 128,
    lr = 0.05, schedule = "cosine", steps = n_steps, eval_every = 0,
  }
  for _, site in ipairs { "gweight", "gact" } do
    run.site[site].format = format
    run.site[site].rounding = rounding
  end
  local trained, loss, accuracy = pcall(run.train, run)
  if trained then
    loss, accuracy = run:eval()
  else
    loss, accuracy = nil, nil
  end
  run:close()
  return loss, accuracy
end

local function column(values, form)
  if #values < n_seeds then
    return ("diverged %d of %d"):format(n_seeds - #values, n_seeds)
  end
  local sum = 0
  for _, v in ipairs(values) do
    sum = sum + v
  end
  table.sort(values)
  return (form .. " (" .. form .. " to " .. form .. ")"):format(sum / #values, values[1], values[#values])
end

print(("Held-out results after %d steps, batch 128, %d seeds: mean (least to most).\n"):format(n_steps, n_seeds))
print "| gradients | sr: accuracy % | rne: accuracy % | sr: loss | rne: loss |"
print "| --- | --- | --- | --- | --- |"
for _, format in ipairs(formats) do
  local cells = {}
  for i, rounding in ipairs { "sr", "rne" } do
    local losses, accuracies = {}, {}
    for seed = 1, n_seeds do
      local loss, accuracy = train(format, rounding, seed)
      if loss then
        losses[#losses + 1], accuracies[#accuracies + 1] = loss, 100 * accuracy
      end
    end
    cells[i], cells[i + 2] = column(accuracies, "%.2f"), column(losses, "%.3f")
  end
  print(("| %s | %s | %s | %s | %s |"):format(format, cells[1], cells[2], cells[3], cells[4]))
end
