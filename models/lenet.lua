-- LeNet: two layers of 5x5 convolutions, 16 and 32 filters, then 128 hidden units; images of one channel, 28x28.
return function(o)
  return model {
    inputs = { 1, 28, 28 },
    conv2d(16, 5), maxpool2d(2), relu(), -- ReLU behind the pooling: the same values from a quarter of the work
    conv2d(32, 5), maxpool2d(2), relu(),
    flatten(),
    linear(128), relu(),
    linear(o.classes or 10),
    loss = "cross_entropy",
    defaults = { lr = 0.05, momentum = 0.9, schedule = "cosine" },
  }
end
