-- A model small enough for tests of seconds.
return function(o)
  return model { linear(16), relu(), linear(o.classes), defaults = { lr = 0.05 } }
end
