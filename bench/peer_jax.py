"""The workloads in JAX: one jit program per step, whose parameters and optimiser state are donated. JAX takes its
number of threads from the processors it may use, which sides.py sets. Read peer.py first."""
import math

import jax
import jax.numpy as jnp
import numpy
from jax import lax

import peer


def conv(x, kernel, layout, stride=1, padding=0, groups=1):
    order = ("NCHW", "OIHW", "NCHW") if layout == "nchw" else ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(x, kernel, (stride, stride), [(padding, padding)] * 2, dimension_numbers=order,
                                    feature_group_count=groups)


def per_channel(a, layout):
    return a[:, None, None] if layout == "nchw" else a


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
        y = conv(x, p[f"{name}.weight"], layout) + per_channel(p[f"{name}.bias"], layout)
        x = max_pool(jax.nn.relu(y), layout)
    x = (x if layout == "nchw" else x.transpose(0, 3, 1, 2)).reshape(x.shape[0], -1)
    for name in ("dense1", "dense2"):
        x = jax.nn.relu(x @ p[f"{name}.weight"] + p[f"{name}.bias"])
    return x @ p["dense3.weight"] + p["dense3.bias"]


def chain(x, b):
    z = x + b
    return (jnp.tanh((z * z * z * 0.044715 + z) * 0.7978845608) + 1) * z * 0.5


def batch_norm(p, name, x, layout):
    """By the statistics of the batch, or by the running ones where they are there."""
    if f"{name}.running_mean" in p:
        mean, variance = (per_channel(p[f"{name}.running_{what}"], layout) for what in ("mean", "var"))
    else:
        places = (0, 2, 3) if layout == "nchw" else (0, 1, 2)
        mean, variance = x.mean(places, keepdims=True), x.var(places, keepdims=True)
    scale = per_channel(p[f"{name}.weight"], layout) * lax.rsqrt(variance + 1e-5)
    return (x - mean) * scale + per_channel(p[f"{name}.bias"], layout)


def places_mean(x, layout):
    return x.mean((2, 3) if layout == "nchw" else (1, 2))


def cnn(p, x, layout):
    for i in range(1, 7):
        x = jax.nn.relu(batch_norm(p, f"bn{i}", conv(x, p[f"conv{i}.weight"], layout, padding=1), layout))
        if i in (2, 4):
            x = max_pool(x, layout)
    return places_mean(x, layout) @ p["fc.weight"].T + p["fc.bias"]


def residual(p, name, x, stride, layout):
    y = conv(x, p[f"{name}.conv1.weight"], layout, stride, 1)
    y = conv(jax.nn.relu(batch_norm(p, f"{name}.bn1", y, layout)), p[f"{name}.conv2.weight"], layout, padding=1)
    if f"{name}.downsample.0.weight" in p:
        x = conv(x, p[f"{name}.downsample.0.weight"], layout, stride)
        x = batch_norm(p, f"{name}.downsample.1", x, layout)
    return jax.nn.relu(batch_norm(p, f"{name}.bn2", y, layout) + x)


def resnet(p, x, layout):
    x = jax.nn.relu(batch_norm(p, "bn1", conv(x, p["conv1.weight"], layout, 2, 3), layout))
    window = (1, 1, 3, 3) if layout == "nchw" else (1, 3, 3, 1)
    stride = (1, 1, 2, 2) if layout == "nchw" else (1, 2, 2, 1)
    around = [(0, 0) if w == 1 else (1, 1) for w in window]
    x = lax.reduce_window(x, -jnp.inf, lax.max, window, stride, around)
    for stage in range(1, 5):
        for block in range(2):
            x = residual(p, f"layer{stage}.{block}", x, 1 if stage == 1 or block else 2, layout)
    return places_mean(x, layout) @ p["fc.weight"].T + p["fc.bias"]


def layer_norm(x, scale, shift):
    mean = x.mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5) * scale + shift


def attention(p, name, x, heads):
    parts = jnp.split(x @ p[f"{name}.c_attn.weight"] + p[f"{name}.c_attn.bias"], 3, -1)
    q, k, v = (part.reshape(*part.shape[:2], heads, -1) for part in parts)
    y = jax.nn.dot_product_attention(q, k, v, is_causal=True).reshape(x.shape)
    return y @ p[f"{name}.c_proj.weight"] + p[f"{name}.c_proj.bias"]


def gpt(p, tokens, layers, heads):
    def norm(name, x):
        return layer_norm(x, p[f"{name}.weight"], p[f"{name}.bias"])
    table = p["transformer.wte.weight"]
    x = table[tokens] + p["transformer.wpe.weight"]
    for i in range(layers):
        name = f"transformer.h.{i}"
        x = x + attention(p, name + ".attn", norm(name + ".ln_1", x), heads)
        y = norm(name + ".ln_2", x) @ p[f"{name}.mlp.c_fc.weight"] + p[f"{name}.mlp.c_fc.bias"]
        x = x + jax.nn.gelu(y) @ p[f"{name}.mlp.c_proj.weight"] + p[f"{name}.mlp.c_proj.bias"]
    return norm("transformer.ln_f", x) @ table.T


def lstm_layer(p, name, x):
    """x (steps, batch, inputs) -> (steps, batch, hidden)."""
    weight = p[f"{name}.hidden.weight"]
    start = jnp.zeros((x.shape[1], weight.shape[0]))

    def step(state, gates):
        h, c = state
        i, f, g, o = jnp.split(gates + h @ weight, 4, -1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h
    return lax.scan(step, (start, start), x @ p[f"{name}.input.weight"] + p[f"{name}.bias"])[1]


def lstm(p, x):
    y = lstm_layer(p, "lstm2", lstm_layer(p, "lstm1", x.transpose(1, 0, 2)))
    return y[-1] @ p["out.weight"] + p["out.bias"]


def model_of(workload, sizes, layout):
    """Of parameters and x."""
    if workload.kind in ("mlp", "deep"):
        network = peer.mlp if workload.kind == "mlp" else peer.deep
        return lambda p, x: network(p, x, jnp.tanh if workload.activation == "tanh" else jax.nn.relu)
    if workload.kind == "gpt":
        return lambda p, x: gpt(p, x, sizes["layers"], sizes["heads"])
    if workload.kind == "lstm":
        return lstm
    network = {"lenet": lenet, "cnn": cnn, "resnet": resnet}[workload.kind]
    return lambda p, x: network(p, x, layout)


def loss_function(workload, sizes, layout):
    model = model_of(workload, sizes, layout)

    def loss(p, x, y):
        out = model(p, x)
        if workload.loss == "mse":
            return jnp.mean((out - y) ** 2)
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(out), y[..., None], axis=-1))
    return loss


def epoch(x):
    size = 128
    order = jax.random.permutation(jax.random.key(0), len(x))
    for at in range(0, len(x), size):
        batch = x[order[at:at + size]]
    return batch


# Name -> (function, names of its arrays), and for gradients how many of these the gradient is of.
OPS = {
    "softmax_gradient": (lambda x, y: (jax.nn.softmax(x) * y).sum(), "x y", 1),
    "layernorm_gradient": (lambda x, a, b, y: (layer_norm(x, a, b) * y).sum(), "x scale shift y", 3),
    "axpb": (lambda x: 2 * x + 1, "x"), "multiply_add": (lambda x, y, z: x * y + z, "x y z"),
    "half_add": (lambda x, y: x + y, "half.x half.y"),
    "half_softmax": (lambda x: jax.nn.softmax(x), "half.x"), "tanh": (jnp.tanh, "x"), "gelu": (jax.nn.gelu, "x"),
    "sum_within": (lambda x: x.sum(1), "x"), "sum_across": (lambda x: x.sum(0), "x"),
    "logsumexp": (lambda x: jax.nn.logsumexp(x, 1), "x"), "argmax": (lambda x: x.argmax(1), "x"),
    "cumsum": (lambda x: x.cumsum(1), "x"), "cumsum_across": (lambda x: x.cumsum(0), "x"),
    "transposed": (lambda x: x.T, "x"),
    "sorted": (lambda x: jnp.sort(x.ravel()), "x"), "top": (lambda x: lax.top_k(x.ravel(), 10)[0], "x"),
    "int_matmul": (lambda x, y: x @ y, "int.x int.y"),
    "gathered": (lambda x, i: x[i], "x int.indices"),
    "gather_gradient": (lambda x, i, w: (x[i] * w).sum(), "x int.indices w", 1),
    "normal": (lambda x: jax.random.normal(jax.random.key(0), x.shape), "x"),
    "uniform": (lambda x: jax.random.uniform(jax.random.key(0), x.shape), "x"),
}


def op_array(arrays, name):
    """An array, or with a prefix what it becomes as a Float16 or an integer (of 1000 times the number)."""
    prefix, _, rest = name.rpartition(".")
    if prefix == "half":
        return jnp.asarray(arrays[rest], jnp.float16)
    if prefix == "int":
        return jnp.asarray(arrays[rest] if rest == "indices" else 1000 * arrays[rest], jnp.int32)
    return jnp.asarray(arrays[rest])


def adam(p, g, state):
    first, second, time = state
    time = time + 1
    first = jax.tree.map(lambda m, a: 0.9 * m + 0.1 * a, first, g)
    second = jax.tree.map(lambda v, a: 0.999 * v + 0.001 * a * a, second, g)
    c1, c2 = (-jnp.expm1(time * math.log(beta)) for beta in (0.9, 0.999))  # 1 - beta^time, exact in Float32
    p = jax.tree.map(lambda a, m, v: a - 1e-3 * (m / c1) / (jnp.sqrt(v / c2) + 1e-8), p, first, second)
    return p, (first, second, time)


def in_order(arrays, layout):
    """Images and kernels in the memory order of the layout."""
    if layout != "nhwc":
        return arrays
    return {n: a if a.ndim != 4 else a.transpose((0, 2, 3, 1) if n == "x" else (2, 3, 1, 0)) for n, a in arrays.items()}


class Training:
    def __init__(self, workload, arrays, sizes, layout):
        arrays = in_order(peer.used(workload, arrays), layout)
        x, y = arrays.pop("x"), arrays.pop("y")
        if workload.loss == "labels":
            x, y = x.astype("int32"), y.astype("int32")
        self.x, self.y = jnp.asarray(x), jnp.asarray(y.argmax(1) if workload.loss == "logitcrossentropy" else y)
        self.initial = arrays
        gradient = jax.value_and_grad(loss_function(workload, sizes, layout))

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
        self.arrays = [jnp.asarray(a) for a in arrays]
        self.program = jax.jit(function)

    def reset(self):
        pass

    def step(self):
        return self.program(*self.arrays)

    def wait(self, result):
        jax.block_until_ready(result)

    def value(self, result):
        first = result[0] if isinstance(result, tuple) else result
        return float(numpy.abs(numpy.asarray(first, numpy.float64)).mean())


def inference(workload, arrays, sizes, layout):
    model, p = model_of(workload, sizes, layout), in_order(arrays, layout)
    x = p.pop("x")
    p = {name: jnp.asarray(a) for name, a in p.items() if name != "y"}
    return Forward(lambda x: model(p, x), [x])


def depthwise(arrays, layout):
    channels, arrays = len(arrays["kernel"]), in_order(arrays, layout)
    return Forward(lambda x, kernel: conv(x, kernel, layout, padding=1, groups=channels),
                   [arrays["x"], arrays["kernel"]])


def op_session(workload, arrays):
    if workload.op == "epoch":
        session = Forward(epoch, [arrays["x"]])
        session.program = epoch  # not one program: a loop of batches is what is looked at
        return session
    function, names, *count = OPS[workload.op]
    if count:
        function = jax.grad(function, argnums=tuple(range(*count)))
    return Forward(function, [op_array(arrays, name) for name in names.split()])


def make_session(workload, arrays, sizes, mode, layout):
    if workload.kind == "op":
        return op_session(workload, arrays)
    if workload.kind == "depthwise":
        return depthwise(arrays, layout)
    if workload.kind == "chain":
        return Forward(chain, arrays.values())
    if workload.kind == "tiny":
        return Forward(lambda *a: peer.tiny(*a, sizes["ops"]), arrays.values())
    if not workload.loss:
        return inference(workload, arrays, sizes, layout)
    return Training(workload, arrays, sizes, layout)


def warm_up(mode):
    jax.jit(jax.grad(lambda a: jax.nn.relu(a @ a).sum()))(jnp.ones((4, 4))).block_until_ready()


if __name__ == "__main__":
    peer.serve(jax.__version__, warm_up, make_session, jax.clear_caches)
