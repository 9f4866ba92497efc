#!/usr/bin/env python3
"""Loss and gradients of a small MLP in plain double arithmetic: the numbers that tests/model/graph.c compares with.
4-5-3 with ReLU, batch 3; weights 0.6 sin(1.7 (i+1)) over the whole block, inputs cos(2.3 i), both rounded to fp32."""
import math
import struct

N_IN, N_HIDDEN, N_OUT, BATCH, LABELS = 4, 5, 3, 3, [2, 0, 1]


def fp32(v):
    return struct.unpack("f", struct.pack("f", v))[0]


n1, n2 = N_HIDDEN * N_IN, N_OUT * N_HIDDEN
n = n1 + N_HIDDEN + n2 + N_OUT
w = [fp32(0.6 * math.sin(1.7 * (i + 1))) for i in range(n)]
x = [fp32(math.cos(2.3 * i)) for i in range(BATCH * N_IN)]
b1, w2, b2 = w[n1 : n1 + N_HIDDEN], w[n1 + N_HIDDEN : n - N_OUT], w[n - N_OUT :]
grad, loss = [0.0] * n, 0.0
for s in range(BATCH):
    xs = x[s * N_IN : (s + 1) * N_IN]
    h = [b1[k] + sum(w[k * N_IN + j] * xs[j] for j in range(N_IN)) for k in range(N_HIDDEN)]
    a = [max(v, 0) for v in h]
    y = [b2[k] + sum(w2[k * N_HIDDEN + j] * a[j] for j in range(N_HIDDEN)) for k in range(N_OUT)]
    e = [math.exp(v - max(y)) for v in y]
    loss += (math.log(sum(e)) + max(y) - y[LABELS[s]]) / BATCH
    d = [e[k] / sum(e) - (k == LABELS[s]) for k in range(N_OUT)]
    da = [sum(d[k] * w2[k * N_HIDDEN + j] for k in range(N_OUT)) for j in range(N_HIDDEN)]
    dh = [da[j] if h[j] > 0 else 0 for j in range(N_HIDDEN)]
    for k in range(N_HIDDEN):
        for j in range(N_IN):
            grad[k * N_IN + j] += dh[k] * xs[j] / BATCH
        grad[n1 + k] += dh[k] / BATCH
    for k in range(N_OUT):
        for j in range(N_HIDDEN):
            grad[n1 + N_HIDDEN + k * N_HIDDEN + j] += d[k] * a[j] / BATCH
        grad[n - N_OUT + k] += d[k] / BATCH
print("%.12g" % loss)
print(", ".join("%.9g" % v for v in grad))
