"""The workloads of gpu_workloads.py in JAX: one jit program a step, with donated parameters and optimiser state. Talks
as peer_torch.py does, which is to be read first; its one mode is "jit"."""
import json
import math
import sys

import jax
import jax.numpy as jnp
from jax import lax

import gpu_workloads
import peer_times

MODES = ["jit"]


def linear(p, name, x):
    return x @ p[f"{name}.weight"].astype(x.dtype) + p[f"{name}.bias"].astype(x.dtype)


def mlp(p, x, _):
    return linear(p, "out", jax.nn.relu(linear(p, "hidden", x)))


def conv(x, w, stride=1, padding=0):
    return lax.conv_general_dilated(x, w.astype(x.dtype), (stride, stride), [(padding, padding)] * 2,
                                    dimension_numbers=("NCHW", "OIHW", "NCHW"))


def max_pool(x, window, stride, padding=0):
    pads = ((0, 0), (0, 0), (padding, padding), (padding, padding))
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, window, window), (1, 1, stride, stride), pads)


def lenet(p, x, _):
    for name in ("first", "second"):
        x = max_pool(jax.nn.relu(conv(x, p[f"{name}.weight"]) + p[f"{name}.bias"][:, None, None]), 2, 2)
    x = x.reshape(x.shape[0], -1)
    return linear(p, "out", jax.nn.relu(linear(p, "narrow", jax.nn.relu(linear(p, "wide", x)))))


def resnet(p, x, s):
    first, blocks, _ = gpu_workloads.resnet_plan(s)

    def unit(x, name, side, _inputs, _outputs, stride):
        x = conv(x, p[f"{name}.weight"], stride, side // 2)
        wide = x.astype(jnp.float32)
        mean, var = wide.mean((0, 2, 3), keepdims=True), wide.var((0, 2, 3), keepdims=True)
        y = (wide - mean) * lax.rsqrt(var + 1e-5)
        return (y * p[f"{name}.scale"][:, None, None] + p[f"{name}.bias"][:, None, None]).astype(x.dtype)

    x = jax.nn.relu(unit(x, *first))
    if s["image"] > 64:
        x = max_pool(x, 3, 2, 1)
    for units, beside in blocks:
        y = x
        for i, one in enumerate(units):
            y = unit(y, *one)
            y = jax.nn.relu(y) if i + 1 < len(units) else y
        x = jax.nn.relu(y + (unit(x, *beside) if beside else x))
    return linear(p, "out", x.mean((2, 3)))


def gpt(p, tokens, s):
    dtype = jnp.bfloat16 if s.get("half") else jnp.float32

    def norm(x, name):
        wide = x.astype(jnp.float32)
        y = (wide - wide.mean(-1, keepdims=True)) * lax.rsqrt(wide.var(-1, keepdims=True) + 1e-5)
        return (y * p[f"{name}.scale"] + p[f"{name}.bias"]).astype(x.dtype)

    x = (p["tokens"][tokens] + p["places"]).astype(dtype)
    for i in range(s["layers"]):
        parts = jnp.split(linear(p, f"{i}.inputs", norm(x, f"{i}.before")), 3, -1)
        q, k, v = (part.reshape(*part.shape[:2], s["heads"], -1) for part in parts)
        mixed = jax.nn.dot_product_attention(q, k, v, is_causal=True)
        x = x + linear(p, f"{i}.project", mixed.reshape(x.shape))
        x = x + linear(p, f"{i}.narrow", jax.nn.gelu(linear(p, f"{i}.wide", norm(x, f"{i}.middle"))))
    return (norm(x, "last") @ p["tokens"].astype(x.dtype).T).reshape(-1, s["vocabulary"])


MODELS = {"mlp": mlp, "lenet": lenet, "resnet": resnet, "gpt": gpt}


def updated(kind, p, g, state, t):
    """One parameter and its state after a step of the rule that training_workloads.cpp names."""
    if kind == "resnet":
        m = 0.9 * state[0] + g
        return p - 1e-2 * m, (m,)
    rate, decay = (3e-4, 0.01) if kind == "gpt" else (1e-3, 0.0)
    m, v = 0.9 * state[0] + 0.1 * g, 0.999 * state[1] + 0.001 * g * g
    c1, c2 = (-jnp.expm1(t * math.log(beta)) for beta in (0.9, 0.999))
    return p - rate * ((m / c1) / (jnp.sqrt(v / c2) + 1e-8) + decay * p), (m, v)


class Training:
    def __init__(self, kind, sizes, device):
        x, y, arrays = gpu_workloads.PARAMETERS[kind](gpu_workloads.Numbers(), sizes)
        dtype = jnp.bfloat16 if sizes.get("half") else jnp.float32
        self.x = jax.device_put(jnp.asarray(x) if kind == "gpt" else jnp.asarray(x, dtype), device)
        self.y = jax.device_put(jnp.asarray(y), device)
        self.p = {name: jax.device_put(jnp.asarray(array), device) for name, array in arrays.items()}
        kept = 1 if kind == "resnet" else 2
        self.state = {name: tuple(jnp.zeros_like(p) for _ in range(kept)) for name, p in self.p.items()}
        self.t = jax.device_put(jnp.zeros(()), device)

        def loss_of(p, x, y):
            logits = MODELS[kind](p, x, sizes).astype(jnp.float32)
            return -jnp.take_along_axis(jax.nn.log_softmax(logits), y[:, None], 1).mean()

        def step(p, state, t, x, y):
            loss, g = jax.value_and_grad(loss_of)(p, x, y)
            made = {name: updated(kind, p[name], g[name], state[name], t + 1) for name in p}
            return {n: m[0] for n, m in made.items()}, {n: m[1] for n, m in made.items()}, t + 1, loss
        self.program = jax.jit(step, donate_argnums=(0, 1, 2))

    def step(self):
        self.p, self.state, self.t, self.last = self.program(self.p, self.state, self.t, self.x, self.y)

    def value(self):
        return float(self.last)


class Kernel:
    def __init__(self, kind, sizes, device):
        n = gpu_workloads.Numbers()

        def make(shape, dtype=jnp.bfloat16):
            return jax.device_put(jnp.asarray(n.uniform(shape, 1), dtype), device)
        self.program, self.arguments = getattr(self, kind)(sizes, make)
        self.donated = kind == "adam"

    def step(self):
        self.last = self.program(*self.arguments)
        if self.donated:
            self.arguments = (*self.last, self.arguments[-1])

    def value(self):
        return float(jnp.abs(jax.tree.leaves(self.last)[0].astype(jnp.float32)).mean())

    @staticmethod
    def backward(f, dy):
        return jax.jit(lambda *a: jax.vjp(f, *a)[1](dy))

    def layernorm_backward(self, s, make):
        shape = (s["rows"], s["features"])
        x, dy, scale, bias = make(shape), make(shape), make(shape[1:]), make(shape[1:])

        def f(x, a, b):
            wide = x.astype(jnp.float32)
            y = (wide - wide.mean(-1, keepdims=True)) * lax.rsqrt(wide.var(-1, keepdims=True) + 1e-5)
            return y.astype(x.dtype) * a + b
        return self.backward(f, dy), (x, scale, bias)

    @staticmethod
    def rms(x, a):
        wide = x.astype(jnp.float32)
        return (wide * lax.rsqrt((wide * wide).mean(-1, keepdims=True) + 1e-5)).astype(x.dtype) * a

    def rmsnorm_backward(self, s, make):
        shape = (s["rows"], s["features"])
        x, dy, scale = make(shape), make(shape), make(shape[1:])
        return self.backward(self.rms, dy), (x, scale)

    def rmsnorm(self, s, make):
        return jax.jit(self.rms), (make((s["rows"], s["features"])), make((s["features"],)))

    def attention(self, s, make):
        shape = (s["batch"], s["time"], s["heads"], s["head"])
        q, k, v, dy = (make(shape) for _ in range(4))
        return self.backward(lambda *a: jax.nn.dot_product_attention(*a, is_causal=True), dy), (q, k, v)

    def adam(self, s, make):
        each = s["elements"] // s["arrays"]
        pairs = [(make((each,), jnp.float32), make((each,), jnp.float32)) for _ in range(s["arrays"])]
        p, g = [a for a, _ in pairs], [b for _, b in pairs]
        state = [(jnp.zeros_like(a), jnp.zeros_like(a)) for a in p]

        def step(p, state, t, g):
            made = [updated("adam", *one, t + 1) for one in zip(p, g, state)]
            return [m[0] for m in made], [m[1] for m in made], t + 1
        return jax.jit(step, donate_argnums=(0, 1, 2)), (p, state, jnp.zeros(()), g)

    def chain(self, s, make):
        def f(x, b):
            z = x + b
            return (jnp.tanh((z * z * z * 0.044715 + z) * 0.7978845608) + 1) * z * 0.5
        return jax.jit(f), (make((s["elements"],), jnp.float32), make((s["elements"],), jnp.float32))

    def tiny(self, s, make):
        def f(y, scale, shift):
            for i in range(s["ops"]):
                y = y + shift if i % 2 else y * scale
            return y
        return jax.jit(f), tuple(make((8,), jnp.float32) for _ in range(3))

    def product(self, s, make):
        a, b = make((s["size"], s["size"])), make((s["size"], s["size"]))
        return jax.jit(lambda a, b: b @ a), (a, b)


def measure(request, device):
    made = Training if request["kind"] in MODELS else Kernel
    session = made(request["kind"], request["sizes"], device)
    return peer_times.times_of(session, request, "jit", lambda: jax.block_until_ready(session.last))


def main():
    request = json.loads(sys.stdin.readline())
    kind, _, number = request["device"].partition(":")
    print(json.dumps({"version": jax.__version__}), flush=True)
    row = peer_times.row_of(lambda: measure(request, jax.devices(kind)[int(number or 0)]), "jit")
    print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
