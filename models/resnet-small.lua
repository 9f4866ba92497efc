-- A small residual network (He et al. 2016) for images of 28x28: three stages of residual blocks of 16, 32 and 64
-- channels, then the mean over the image. o.blocks: blocks a stage.
local n = 0 -- blocks made so far, for names

-- relu(x + norm(conv(relu(norm(conv(x)))))); x goes through a convolution of its own where its shape changes.
local function block(from, channels, stride)
  n = n + 1
  local name = "block" .. n
  local layers = {
    conv2d { channels, 3, stride = stride, padding = 1, bias = false, input = from },
    batch_norm2d(), relu(),
    conv2d { channels, 3, padding = 1, bias = false },
    batch_norm2d { name = name .. "_sum" },
  }
  local short = from
  if stride > 1 then
    short = name .. "_short"
    table.insert(layers, conv2d { channels, 1, stride = stride, bias = false, input = from })
    table.insert(layers, batch_norm2d { name = short })
  end
  table.insert(layers, add { other = short, input = name .. "_sum" })
  table.insert(layers, relu { name = name })
  return layers, name
end

return function(o)
  local layers = {
    inputs = { 1, 28, 28 },
    conv2d { 16, 3, padding = 1, bias = false }, batch_norm2d(), relu { name = "stem" },
    loss = "cross_entropy",
    defaults = { lr = 0.1, momentum = 0.9, weight_decay = 5e-4, schedule = "cosine" },
  }
  local from, made = "stem", nil
  for stage, channels in ipairs { 16, 32, 64 } do
    for i = 1, o.blocks or 1 do
      made, from = block(from, channels, stage > 1 and i == 1 and 2 or 1)
      table.insert(layers, made)
    end
  end
  table.insert(layers, avgpool2d())
  table.insert(layers, linear(o.classes or 10))
  return model(layers)
end
