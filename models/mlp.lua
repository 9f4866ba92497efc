-- A multilayer perceptron: linear layers with ReLU between them; 784-512-256-10 on Fashion-MNIST.
return function(o) -- o.inputs and o.classes are those of the data set
  return model {
    inputs = o.inputs,
    linear(512), relu(),
    linear(256), relu(),
    linear(o.classes or 10),
    loss = "cross_entropy",
    defaults = { lr = 0.05, momentum = 0.9, schedule = "cosine" },
  }
end
