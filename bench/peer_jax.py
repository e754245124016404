"""The workloads in JAX: one jit program per step, whose parameters and optimiser state are donated. JAX takes its
number of threads from the processors it may use, which sides.py sets. Read peer.py first."""
import math

import jax
import jax.numpy as jnp
import numpy
from jax import lax

import peer


def mlp(p, x, activation):
    hidden = activation(x @ p["hidden.weight"] + p["hidden.bias"])
    return hidden @ p["out.weight"] + p["out.bias"]


def conv(x, kernel, bias, layout):
    order = ("NCHW", "OIHW", "NCHW") if layout == "nchw" else ("NHWC", "HWIO", "NHWC")
    y = lax.conv_general_dilated(x, kernel, (1, 1), "VALID", dimension_numbers=order)
    return y + (bias[:, None, None] if layout == "nchw" else bias)


def max_pool(x, layout):
    """As a maximum over reshaped blocks: its gradient is much faster than reduce_window's on the CPU."""
    at = 2 if layout == "nchw" else 1
    for axis in (at, at + 1):
        half = x.shape[axis] // 2
        x = lax.slice_in_dim(x, 0, 2 * half, axis=axis)
        x = x.reshape(*x.shape[:axis], half, 2, *x.shape[axis + 1:]).max(axis + 1)
    return x


def lenet(p, x, layout):
    for name in ("conv1", "conv2"):
        x = max_pool(jax.nn.relu(conv(x, p[f"{name}.weight"], p[f"{name}.bias"], layout)), layout)
    x = (x if layout == "nchw" else x.transpose(0, 3, 1, 2)).reshape(x.shape[0], -1)
    for name in ("dense1", "dense2"):
        x = jax.nn.relu(x @ p[f"{name}.weight"] + p[f"{name}.bias"])
    return x @ p["dense3.weight"] + p["dense3.bias"]


def chain(x, b):
    z = x + b
    return (jnp.tanh((z * z * z * 0.044715 + z) * 0.7978845608) + 1) * z * 0.5


def tiny(x, scale, shift, ops):
    for i in range(ops):
        x = x + shift if i % 2 else x * scale
    return x


def loss_function(workload, layout):
    def loss(p, x, y):
        if workload.kind == "lenet":
            out = lenet(p, x, layout)
        else:
            out = mlp(p, x, jnp.tanh if workload.activation == "tanh" else jax.nn.relu)
        if workload.loss == "mse":
            return jnp.mean((out - y) ** 2)
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(out), y[:, None], axis=1))
    return loss


def adam(p, g, state):
    first, second, time = state
    time = time + 1
    first = jax.tree.map(lambda m, a: 0.9 * m + 0.1 * a, first, g)
    second = jax.tree.map(lambda v, a: 0.999 * v + 0.001 * a * a, second, g)
    c1, c2 = (-jnp.expm1(time * math.log(beta)) for beta in (0.9, 0.999))  # 1 - beta^time, exact in Float32
    p = jax.tree.map(lambda a, m, v: a - 1e-3 * (m / c1) / (jnp.sqrt(v / c2) + 1e-8), p, first, second)
    return p, (first, second, time)


class Training:
    def __init__(self, workload, arrays, layout):
        x, y = arrays.pop("x"), arrays.pop("y")
        if layout == "nhwc":
            x = x.transpose(0, 2, 3, 1)
            arrays = {n: a.transpose(2, 3, 1, 0) if a.ndim == 4 else a for n, a in arrays.items()}
        self.x, self.y = jnp.asarray(x), jnp.asarray(y if workload.loss == "mse" else y.argmax(1))
        self.initial = arrays
        gradient = jax.value_and_grad(loss_function(workload, layout))

        def step(p, state, x, y):
            loss, g = gradient(p, x, y)
            return loss, *adam(p, g, state)

        self.program = jax.jit(step, donate_argnums=(0, 1))
        self.reset()

    def reset(self):
        def zeros():
            return {n: jnp.zeros(a.shape) for n, a in self.initial.items()}
        self.params = {n: jnp.array(a) for n, a in self.initial.items()}
        self.state = zeros(), zeros(), jnp.zeros(())
        jax.block_until_ready((self.params, self.state))

    def step(self):
        loss, self.params, self.state = self.program(self.params, self.state, self.x, self.y)
        return loss

    def wait(self, result):
        jax.block_until_ready((result, self.params, self.state))

    def value(self, result):
        return float(result)


class Forward:
    def __init__(self, function, arrays):
        self.arrays = [jnp.asarray(a) for a in arrays.values()]
        self.program = jax.jit(function)

    def reset(self):
        pass

    def step(self):
        return self.program(*self.arrays)

    def wait(self, result):
        result.block_until_ready()

    def value(self, result):
        return float(numpy.asarray(result, numpy.float64).mean())


def make_session(workload, arrays, sizes, mode, layout):
    jax.jit(lambda a: a @ a)(jnp.ones((4, 4))).block_until_ready()  # loads what any first use loads
    if workload.kind == "chain":
        return Forward(chain, arrays)
    if workload.kind == "tiny":
        return Forward(lambda *a: tiny(*a, sizes["ops"]), arrays)
    return Training(workload, arrays, layout)


if __name__ == "__main__":
    peer.serve(jax.__version__, make_session, jax.clear_caches)
