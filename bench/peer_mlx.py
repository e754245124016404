"""The workloads in MLX on the CPU, in the modes eager | compile. A step is one function from parameters and state to
their next values, as in JAX; what it returns is asked for at once, or MLX would put all steps off. MLX has one thread
for its ops and leaves products to OpenBLAS; sides.py limits its processors. Its convolutions take seconds for a network
like ResNet-18, so larger ones are left out (workloads.py). Images stand in NHWC, its only order. Read peer.py first."""
import math

import mlx.core as mx
import numpy

import peer


def relu(x):
    return mx.maximum(x, 0)


def max_pool(x):
    batch, rows, columns, channels = x.shape
    x = x[:, :rows // 2 * 2, :columns // 2 * 2]
    return x.reshape(batch, rows // 2, 2, columns // 2, 2, channels).max((2, 4))


def lenet(p, x):
    for name in ("conv1", "conv2"):
        x = max_pool(relu(mx.conv2d(x, p[f"{name}.weight"]) + p[f"{name}.bias"]))
    x = x.transpose(0, 3, 1, 2).reshape(x.shape[0], -1)
    for name in ("dense1", "dense2"):
        x = relu(x @ p[f"{name}.weight"] + p[f"{name}.bias"])
    return x @ p["dense3.weight"] + p["dense3.bias"]


def chain(x, b):
    z = x + b
    return (mx.tanh((z * z * z * 0.044715 + z) * 0.7978845608) + 1) * z * 0.5


def layer_norm(x, scale, shift):
    return mx.fast.layer_norm(x, scale, shift, 1e-5)


def attention(p, name, x, heads):
    parts = mx.split(x @ p[f"{name}.c_attn.weight"] + p[f"{name}.c_attn.bias"], 3, -1)
    q, k, v = (part.reshape(*part.shape[:2], heads, -1).transpose(0, 2, 1, 3) for part in parts)
    y = mx.fast.scaled_dot_product_attention(q, k, v, scale=q.shape[-1] ** -0.5, mask="causal")
    return y.transpose(0, 2, 1, 3).reshape(x.shape) @ p[f"{name}.c_proj.weight"] + p[f"{name}.c_proj.bias"]


def gelu(x):
    return 0.5 * x * (1 + mx.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))


def gpt(p, tokens, layers, heads):
    def norm(name, x):
        return layer_norm(x, p[f"{name}.weight"], p[f"{name}.bias"])
    table = p["transformer.wte.weight"]
    x = table[tokens] + p["transformer.wpe.weight"]
    for i in range(layers):
        name = f"transformer.h.{i}"
        x = x + attention(p, name + ".attn", norm(name + ".ln_1", x), heads)
        y = norm(name + ".ln_2", x) @ p[f"{name}.mlp.c_fc.weight"] + p[f"{name}.mlp.c_fc.bias"]
        x = x + gelu(y) @ p[f"{name}.mlp.c_proj.weight"] + p[f"{name}.mlp.c_proj.bias"]
    return norm("transformer.ln_f", x) @ table.T


def model_of(workload, sizes):
    """Of parameters and x."""
    if workload.kind in ("mlp", "deep"):
        network = peer.mlp if workload.kind == "mlp" else peer.deep
        return lambda p, x: network(p, x, mx.tanh if workload.activation == "tanh" else relu)
    if workload.kind == "gpt":
        return lambda p, x: gpt(p, x, sizes["layers"], sizes["heads"])
    return {"lenet": lenet}[workload.kind]


def loss_function(workload, sizes):
    model = model_of(workload, sizes)

    def loss(p, x, y):
        out = model(p, x)
        if workload.loss == "mse":
            return mx.mean((out - y) ** 2)
        picked = mx.take_along_axis(out, y[..., None], axis=-1)
        return mx.mean(mx.logsumexp(out, axis=-1, keepdims=True) - picked)
    return loss


# Name -> (function, names of its arrays), and for gradients how many of these the gradient is of.
OPS = {
    "softmax_gradient": (lambda x, y: (mx.softmax(x, -1, precise=True) * y).sum(), "x y", 1),
    "layernorm_gradient": (lambda x, a, b, y: (layer_norm(x, a, b) * y).sum(), "x scale shift y", 3),
    "axpb": (lambda x: 2 * x + 1, "x"), "multiply_add": (lambda x, y, z: x * y + z, "x y z"),
    "half_add": (lambda x, y: x + y, "half.x half.y"),
    "half_softmax": (lambda x: mx.softmax(x, -1, precise=True), "half.x"), "tanh": (mx.tanh, "x"), "gelu": (gelu, "x"),
    "sum_within": (lambda x: x.sum(1), "x"), "sum_across": (lambda x: x.sum(0), "x"),
    "logsumexp": (lambda x: mx.logsumexp(x, 1), "x"), "argmax": (lambda x: x.argmax(1), "x"),
    "cumsum": (lambda x: x.cumsum(1), "x"), "cumsum_across": (lambda x: x.cumsum(0), "x"),
    "transposed": (lambda x: mx.contiguous(x.T), "x"),
    "sorted": (lambda x: mx.sort(x.reshape(-1)), "x"), "top": (lambda x: mx.topk(x.reshape(-1), 10), "x"),
    "gathered": (lambda x, i: x[i], "x int.indices"),
    "gather_gradient": (lambda x, i, w: (x[i] * w).sum(), "x int.indices w", 1),
    "normal": (lambda x: mx.random.normal(x.shape, key=mx.random.key(0)), "x"),
    "uniform": (lambda x: mx.random.uniform(shape=x.shape, key=mx.random.key(0)), "x"),
}


def op_array(arrays, name):
    """An array, or with a prefix what it becomes as a Float16 or as integers."""
    prefix, _, rest = name.rpartition(".")
    types = {"half": mx.float16, "int": mx.int32, "": mx.float32}
    return mx.array(arrays[rest]).astype(types[prefix])


def adam(p, g, state):
    """The next parameters and state."""
    first, second, time = state
    time = time + 1
    first = {n: 0.9 * first[n] + 0.1 * g[n] for n in p}
    second = {n: 0.999 * second[n] + 0.001 * g[n] * g[n] for n in p}
    c1, c2 = (-mx.expm1(time * math.log(beta)) for beta in (0.9, 0.999))  # 1 - beta^time, exact in Float32
    p = {n: p[n] - 1e-3 * (first[n] / c1) / (mx.sqrt(second[n] / c2) + 1e-8) for n in p}
    return p, (first, second, time)


def in_order(arrays):
    """Images and kernels with the channels last."""
    return {n: a.transpose(0, 2, 3, 1) if a.ndim == 4 else a for n, a in arrays.items()}


class Training:
    def __init__(self, workload, arrays, sizes, mode):
        arrays = in_order(peer.used(workload, arrays))
        x, y = arrays.pop("x"), arrays.pop("y")
        if workload.loss == "labels":
            x, y = x.astype("int32"), y.astype("int32")
        self.x, self.y = mx.array(x), mx.array(y.argmax(1) if workload.loss == "logitcrossentropy" else y)
        self.initial = arrays
        gradient = mx.value_and_grad(loss_function(workload, sizes))

        def step(p, state, x, y):
            loss, g = gradient(p, x, y)
            return loss, *adam(p, g, state)

        self.program = step if mode == "eager" else mx.compile(step)
        self.reset()

    def reset(self):
        def zeros():
            return {n: mx.zeros(a.shape) for n, a in self.initial.items()}
        self.params = {n: mx.array(a) for n, a in self.initial.items()}
        self.state = zeros(), zeros(), mx.zeros(())
        mx.eval(self.params, self.state)

    def step(self):
        loss, self.params, self.state = self.program(self.params, self.state, self.x, self.y)
        mx.async_eval(loss, self.params, self.state)
        return loss

    def wait(self, result):
        mx.eval(result, self.params, self.state)

    def value(self, result):
        return result.item()


class Forward:
    def __init__(self, function, arrays, mode):
        self.arrays = [mx.array(a) for a in arrays]
        mx.eval(self.arrays)
        self.program = function if mode == "eager" else mx.compile(function)

    def reset(self):
        pass

    def step(self):
        result = self.program(*self.arrays)
        mx.async_eval(result)
        return result

    def wait(self, result):
        mx.eval(result)

    def value(self, result):
        first = result[0] if isinstance(result, tuple) else result
        return float(numpy.abs(numpy.array(first, numpy.float64)).mean())


def inference(workload, arrays, sizes, mode):
    model, p = model_of(workload, sizes), in_order(arrays)
    x = p.pop("x")
    p = {name: mx.array(a) for name, a in p.items() if name != "y"}
    return Forward(lambda x: model(p, x), [x], mode)


def op_session(workload, arrays, mode):
    function, names, *count = OPS[workload.op]
    if count:
        function = mx.grad(function, argnums=tuple(range(*count)))
    return Forward(function, [op_array(arrays, name) for name in names.split()], mode)


def make_session(workload, arrays, sizes, mode, layout):
    if workload.kind == "op":
        return op_session(workload, arrays, mode)
    if workload.kind == "depthwise":
        arrays = in_order(arrays)
        return Forward(lambda x, kernel: mx.conv2d(x, kernel, padding=1, groups=len(kernel)),
                       [arrays["x"], arrays["kernel"]], mode)
    if workload.kind == "chain":
        return Forward(chain, arrays.values(), mode)
    if workload.kind == "tiny":
        return Forward(lambda *a: peer.tiny(*a, sizes["ops"]), arrays.values(), mode)
    if not workload.loss:
        return inference(workload, arrays, sizes, mode)
    return Training(workload, arrays, sizes, mode)


def warm_up(mode):
    function = mx.grad(lambda a: relu(a @ a).sum())
    mx.eval((function if mode == "eager" else mx.compile(function))(mx.ones((4, 4))))


if __name__ == "__main__":
    mx.set_default_device(mx.cpu)
    peer.serve(mx.__version__, warm_up, make_session, mx.clear_cache)
