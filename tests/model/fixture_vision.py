#!/usr/bin/env python3
"""Loss, gradients and running statistics of a small convolutional network: the numbers that tests/model/vision.c compares
with. The network is written as its layers' definitions; gradients come from reverse-mode differentiation of single
operations, so that nobody derived them. All in double.

conv 1->3 3x3, relu, max 2x2, conv 3->4 3x3 stride 2 padding 1 without bias, batch norm, gelu, mean 3x3, linear 4->3;
12x12 images, batch 3; parameters 0.6 sin(1.7 (i+1)), inputs cos(2.3 i), both rounded to fp32."""
import math
import struct


class Value:
    """A number that remembers what it was made from."""

    def __init__(self, v, parents=()):
        self.v, self.parents, self.grad = v, parents, 0.0

    def __add__(self, o):
        o = value(o)
        return Value(self.v + o.v, ((self, 1.0), (o, 1.0)))

    def __mul__(self, o):
        o = value(o)
        return Value(self.v * o.v, ((self, o.v), (o, self.v)))

    def __sub__(self, o):
        return self + value(o) * -1.0

    def apply(self, f, slope):
        return Value(f(self.v), ((self, slope(self.v)),))


def value(x):
    return x if isinstance(x, Value) else Value(x)


def backward(root):
    order, seen, stack = [], set(), [(root, False)]
    while stack:
        node, done = stack.pop()
        if done:
            order.append(node)
        elif id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            stack.extend((p, False) for p, _ in node.parents)
    root.grad = 1.0
    for node in reversed(order):
        for p, slope in node.parents:
            p.grad += slope * node.grad


def total(xs):
    s = Value(0.0)
    for x in xs:
        s = s + x
    return s


def conv(x, w, bias, stride, pad):
    h, v = len(x[0]), len(x[0][0])
    k = len(w[0][0])
    span = lambda n: range(-pad, n + pad - k + 1, stride)
    return [[[total([x[c][y + i][z + j] * f[c][i][j] for c in range(len(x)) for i in range(k) for j in range(k)
                     if 0 <= y + i < h and 0 <= z + j < v] + ([bias[o]] if bias else []))
              for z in span(v)] for y in span(h)] for o, f in enumerate(w)]


def max2(x):
    return [[[max((c[y + i][z + j] for i in (0, 1) for j in (0, 1)), key=lambda a: a.v)
              for z in range(0, len(c[0]), 2)] for y in range(0, len(c), 2)] for c in x]


relu = lambda a: a.apply(lambda v: max(v, 0.0), lambda v: float(v > 0))
rsqrt = lambda a: a.apply(lambda v: v ** -0.5, lambda v: -0.5 * v ** -1.5)
phi = lambda v: 0.5 * math.erfc(-v / math.sqrt(2))
gelu = lambda a: a * a.apply(phi, lambda v: math.exp(-v * v / 2) / math.sqrt(2 * math.pi))
each = lambda f, x: [[[f(v) for v in row] for row in c] for c in x]


def norm(batch, gamma, beta, running):
    """running: means and variances to use, or None: the batch's, which are returned."""
    out, stats = [[[[None] * len(r) for r in c] for c in x] for x in batch], []
    for c in range(len(gamma)):
        flat = [v for x in batch for row in x[c] for v in row]
        n = len(flat)
        if running:
            mean, var = value(running[c]), value(running[len(gamma) + c])
        else:
            mean = total(flat) * (1 / n)
            var = total([(v - mean) * (v - mean) for v in flat]) * (1 / n)
        stats.append((mean.v, var.v * n / (n - 1)))
        scale = rsqrt(var + 1e-5) * gamma[c]
        for b, x in enumerate(batch):
            for i, row in enumerate(x[c]):
                for j, v in enumerate(row):
                    out[b][c][i][j] = (v - mean) * scale + beta[c]
    return out, stats


def cross_entropy(y, t):
    top = max(v.v for v in y)
    s = total([(v - top).apply(math.exp, math.exp) for v in y])
    return s.apply(math.log, lambda v: 1 / v) + top - y[t]


def fp32(v):
    return struct.unpack("f", struct.pack("f", v))[0]


B, LABELS, SHAPES = 3, [2, 0, 1], [(3, 1, 3, 3), (3,), (4, 3, 3, 3), (4,), (4,), (4,), (4,), (3, 4), (3,)]
size = lambda s: math.prod(s)
params = [Value(fp32(0.6 * math.sin(1.7 * (i + 1)))) for i in range(sum(map(size, SHAPES)))]
images = [[[[Value(fp32(math.cos(2.3 * (b * 144 + y * 12 + x)))) for x in range(12)] for y in range(12)]] for b in range(B)]


def shaped(flat, shape):
    if len(shape) == 1:
        return list(flat)
    n = len(flat) // shape[0]
    return [shaped(flat[i * n : i * n + n], shape[1:]) for i in range(shape[0])]


tensors, at = [], 0
for s in SHAPES:
    tensors.append(shaped(params[at : at + size(s)], s))
    at += size(s)
w1, b1, w2, gamma, beta, run_mean, run_var, w3, b3 = tensors


def loss_of(running):
    middle = [conv(max2(each(relu, conv(x, w1, b1, 1, 0))), w2, None, 2, 1) for x in images]
    normed, stats = norm(middle, gamma, beta, running)
    losses = []
    for x, t in zip(normed, LABELS):
        f = [total([v for row in c for v in row]) * (1 / 9) for c in each(gelu, x)]
        y = [total([a * b for a, b in zip(f, row)]) + b3[k] for k, row in enumerate(w3)]
        losses.append(cross_entropy(y, t))
    return total(losses) * (1 / B), stats


def table(name, values):
    print("static const float %s[] = {" % name)
    for i in range(0, len(values), 7):
        print("    " + ", ".join("%.9g" % v for v in values[i : i + 7]) + ",")
    print("};")


loss, stats = loss_of(None)
backward(loss)
running = [0.9 * r.v + 0.1 * s[0] for r, s in zip(run_mean, stats)] + [0.9 * r.v + 0.1 * s[1] for r, s in zip(run_var, stats)]
# evaluation of a variance below 0 has no meaning: the test puts its own there
print("/* Made by tests/model/fixture_vision.py. */")
print("static const double vision_loss = %.12g;" % loss.v)
table("vision_grad", [p.grad for p in params])
table("vision_running", running)
print("static const double vision_eval_loss = %.12g; /* with running variances 0.5, 1, 1.5, 2 */"
      % loss_of([Value(v) for v in running[:4] + [0.5, 1.0, 1.5, 2.0]])[0].v)
