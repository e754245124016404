"""The workloads in PyTorch, in the modes eager | compile | compile reduce-overhead | compile max-autotune.
(reduce-overhead adds CUDA graphs only: on a CPU it is compile). Compiled training is one program for forward, backward
and Adam, which is its fastest form. Read peer.py first."""
import math

import torch
import torch.nn.functional as F

import inputs
import peer


def mlp(p, x, activation):
    hidden = getattr(torch, activation)(F.linear(x, p["hidden.weight"], p["hidden.bias"]))
    return F.linear(hidden, p["out.weight"], p["out.bias"])


def lenet(p, x):
    x = F.max_pool2d(F.conv2d(x, p["conv1.weight"], p["conv1.bias"]).relu(), 2)
    x = F.max_pool2d(F.conv2d(x, p["conv2.weight"], p["conv2.bias"]).relu(), 2).flatten(1)
    x = F.linear(x, p["dense1.weight"], p["dense1.bias"]).relu()
    x = F.linear(x, p["dense2.weight"], p["dense2.bias"]).relu()
    return F.linear(x, p["dense3.weight"], p["dense3.bias"])


def chain(x, b):
    z = x + b
    return (torch.tanh((z * z * z * 0.044715 + z) * 0.7978845608) + 1) * z * 0.5


def deep(p, x, activation):
    for layer in ("hidden1", "hidden2"):
        x = getattr(torch, activation)(F.linear(x, p[f"{layer}.weight"], p[f"{layer}.bias"]))
    return F.linear(x, p["out.weight"], p["out.bias"])


def batch_norm(p, name, x):
    """By the statistics of the batch, or by the running ones where they are there."""
    mean, variance = p.get(f"{name}.running_mean"), p.get(f"{name}.running_var")
    return F.batch_norm(x, mean, variance, p[f"{name}.weight"], p[f"{name}.bias"], training=mean is None)


def cnn(p, x):
    for i in range(1, 7):
        x = F.relu(batch_norm(p, f"bn{i}", F.conv2d(x, p[f"conv{i}.weight"], padding=1)))
        if i in (2, 4):
            x = F.max_pool2d(x, 2)
    return F.linear(x.mean((2, 3)), p["fc.weight"], p["fc.bias"])


def residual(p, name, x, stride):
    y = F.conv2d(x, p[f"{name}.conv1.weight"], stride=stride, padding=1)
    y = F.conv2d(F.relu(batch_norm(p, f"{name}.bn1", y)), p[f"{name}.conv2.weight"], padding=1)
    if f"{name}.downsample.0.weight" in p:
        x = batch_norm(p, f"{name}.downsample.1", F.conv2d(x, p[f"{name}.downsample.0.weight"], stride=stride))
    return F.relu(batch_norm(p, f"{name}.bn2", y) + x)


def resnet(p, x):
    x = F.relu(batch_norm(p, "bn1", F.conv2d(x, p["conv1.weight"], stride=2, padding=3)))
    x = F.max_pool2d(x, 3, 2, 1)
    for stage in range(1, 5):
        for block in range(2):
            x = residual(p, f"layer{stage}.{block}", x, 1 if stage == 1 or block else 2)
    return F.linear(x.mean((2, 3)), p["fc.weight"], p["fc.bias"])


def attention(p, name, x, heads):
    q, k, v = ((part.unflatten(-1, (heads, -1)).transpose(1, 2)) for part in
               (x @ p[f"{name}.c_attn.weight"] + p[f"{name}.c_attn.bias"]).chunk(3, -1))
    y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
    return y @ p[f"{name}.c_proj.weight"] + p[f"{name}.c_proj.bias"]


def layer_norm(p, name, x):
    return F.layer_norm(x, x.shape[-1:], p[f"{name}.weight"], p[f"{name}.bias"])


def gpt(p, tokens, layers, heads):
    table = p["transformer.wte.weight"]
    x = F.embedding(tokens, table) + p["transformer.wpe.weight"]
    for i in range(layers):
        name = f"transformer.h.{i}"
        x = x + attention(p, name + ".attn", layer_norm(p, name + ".ln_1", x), heads)
        y = layer_norm(p, name + ".ln_2", x) @ p[f"{name}.mlp.c_fc.weight"] + p[f"{name}.mlp.c_fc.bias"]
        x = x + F.gelu(y, approximate="tanh") @ p[f"{name}.mlp.c_proj.weight"] + p[f"{name}.mlp.c_proj.bias"]
    return (layer_norm(p, "transformer.ln_f", x) @ table.t()).transpose(1, 2)


def lstm(p, x):
    """As torch.nn.LSTM computes it, whose second bias is nothing but zeros here."""
    weights, hidden = [], p["lstm1.hidden.weight"].shape[1]
    for layer in ("lstm1", "lstm2"):
        bias = p[f"{layer}.bias"]
        weights += [p[f"{layer}.input.weight"], p[f"{layer}.hidden.weight"], bias, torch.zeros_like(bias)]
    start = x.new_zeros(2, x.shape[0], hidden)
    y, _, _ = torch.lstm(x, (start, start), weights, True, 2, 0.0, True, False, True)
    return F.linear(y[:, -1], p["out.weight"], p["out.bias"])


def model_of(workload, sizes):
    """Of parameters and x."""
    if workload.kind in ("mlp", "deep"):
        network = mlp if workload.kind == "mlp" else deep
        return lambda p, x: network(p, x, workload.activation)
    if workload.kind == "gpt":
        return lambda p, x: gpt(p, x, sizes["layers"], sizes["heads"])
    return {"lenet": lenet, "cnn": cnn, "resnet": resnet, "lstm": lstm}[workload.kind]


def softmax(x, y):
    return (x.softmax(1) * y).sum()


def layernorm(x, scale, shift, y):
    return (F.layer_norm(x, x.shape[1:], scale, shift) * y).sum()


def picked(x, indices, w):
    return (F.embedding(indices, x) * w).sum()


def epoch(x):
    for places in torch.randperm(len(x)).split(128):
        batch = x[places]
    return batch


# Name -> (function, names of its arrays), and for gradients how many of these the gradient is of.
OPS = {
    "softmax_gradient": (softmax, "x y", 1), "layernorm_gradient": (layernorm, "x scale shift y", 3),
    "axpb": (lambda x: 2 * x + 1, "x"), "multiply_add": (lambda x, y, z: x * y + z, "x y z"),
    "half_add": (lambda x, y: x + y, "half.x half.y"),
    "half_softmax": (lambda x: x.softmax(1), "half.x"), "tanh": (torch.tanh, "x"),
    "gelu": (lambda x: F.gelu(x, approximate="tanh"), "x"),
    "sum_within": (lambda x: x.sum(1), "x"), "sum_across": (lambda x: x.sum(0), "x"),
    "logsumexp": (lambda x: x.logsumexp(1), "x"), "argmax": (lambda x: x.argmax(1), "x"),
    "cumsum": (lambda x: x.cumsum(1), "x"), "cumsum_across": (lambda x: x.cumsum(0), "x"),
    "transposed": (lambda x: x.t().contiguous(), "x"),
    "sorted": (lambda x: x.flatten().sort()[0], "x"), "top": (lambda x: x.flatten().topk(10)[0], "x"),
    "int_matmul": (lambda x, y: x @ y, "int.x int.y"),
    "gathered": (lambda x, i: F.embedding(i, x), "x int.indices"),
    "gather_gradient": (picked, "x int.indices w", 1),
    "normal": (torch.randn_like, "x"), "uniform": (torch.rand_like, "x"), "epoch": (epoch, "x"),
}


def op_array(arrays, name):
    """An array, or with a prefix what it becomes as a Float16 or an integer (of 1000 times the number)."""
    prefix, _, rest = name.rpartition(".")
    tensor = torch.from_numpy(arrays[rest])
    if prefix == "half":
        return tensor.half()
    if prefix == "int":
        return tensor.int() if rest == "indices" else (1000 * tensor).int()
    return tensor


def loss_function(workload, sizes):
    model = model_of(workload, sizes)
    error = F.mse_loss if workload.loss == "mse" else F.cross_entropy


    def loss(p, x, y):
        with torch.autocast("cpu", torch.bfloat16, enabled=workload.autocast):
            return error(model(p, x), y)
    return loss


def compiled(function, mode):
    return torch.compile(function, fullgraph=True, dynamic=False, mode=mode.partition(" ")[2] or None)


class Training:
    """What both ways to train share: data, initial parameters and their memory order."""

    def __init__(self, workload, arrays, sizes, layout):
        tensors = {name: torch.from_numpy(a) for name, a in peer.used(workload, arrays).items()}
        self.x, y = tensors.pop("x"), tensors.pop("y")
        if workload.loss == "labels":
            self.x, y = self.x.long(), y.long()
        self.y = y.argmax(1) if workload.loss == "logitcrossentropy" else y
        order = torch.channels_last if layout == "nhwc" else torch.contiguous_format
        if self.x.ndim == 4:
            self.x = self.x.contiguous(memory_format=order)
        turned = workload.kind not in inputs.NAMED
        self.initial = {n: t.t().contiguous() if t.ndim == 2 and turned else t for n, t in tensors.items()}
        self.params = {n: t.clone(memory_format=order if t.ndim == 4 else torch.contiguous_format)
                       for n, t in self.initial.items()}
        self.loss = loss_function(workload, sizes)

    def reset(self):
        with torch.no_grad():
            for name, start in self.initial.items():
                self.params[name].copy_(start)

    def wait(self, result):
        pass  # PyTorch on the CPU is done when the call returns

    def value(self, result):
        return result.item()


class EagerTraining(Training):
    def __init__(self, *args):
        super().__init__(*args)
        leaves = [p.requires_grad_() for p in self.params.values()]
        self.optimiser = torch.optim.Adam(leaves, lr=1e-3, fused=True)

    def reset(self):
        super().reset()
        self.optimiser.state.clear()

    def step(self):
        loss = self.loss(self.params, self.x, self.y)
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()
        return loss.detach()


class CompiledTraining(Training):
    def __init__(self, mode, *args):
        super().__init__(*args)
        self.state = {n: (torch.zeros_like(p), torch.zeros_like(p)) for n, p in self.params.items()}
        self.time = torch.zeros(())
        self.program = compiled(self.whole_step(), mode)

    def whole_step(self):
        gradient = torch.func.grad_and_value(self.loss)

        def step(params, state, time, x, y):
            grads, loss = gradient(params, x, y)
            time.add_(1)
            c1, c2 = (-torch.expm1(time * math.log(beta)) for beta in (0.9, 0.999))  # 1 - beta^time
            for name, p in params.items():
                (m, v), g = state[name], grads[name]
                m.mul_(0.9).add_(g, alpha=0.1)
                v.mul_(0.999).addcmul_(g, g, value=0.001)
                p.sub_(1e-3 * (m / c1) / ((v / c2).sqrt() + 1e-8))
            return loss
        return step

    def reset(self):
        super().reset()
        self.time.zero_()
        for pair in self.state.values():
            for moment in pair:
                moment.zero_()

    @torch.no_grad()
    def step(self):
        return self.program(self.params, self.state, self.time, self.x, self.y)


class Forward:
    """A function of tensors, run again and again."""

    def __init__(self, function, tensors, mode):
        self.tensors = tensors
        self.function = function if mode == "eager" else compiled(function, mode)

    def reset(self):
        pass

    @torch.inference_mode()
    def step(self):
        return self.function(*self.tensors)

    def wait(self, result):
        pass

    def value(self, result):
        return result.double().abs().mean().item()


class Gradient(Forward):
    """The gradient of a function by its first `count` tensors; its result is the first of them."""

    def __init__(self, function, tensors, mode, count):
        self.leaves = [t.requires_grad_(mode == "eager") for t in tensors[:count]]
        if mode == "eager":
            super().__init__(lambda *t: torch.autograd.grad(function(*t), self.leaves)[0], tensors, mode)
        else:
            both = torch.func.grad(function, argnums=tuple(range(count)))
            super().__init__(lambda *t: both(*t), tensors, mode)

    def step(self):
        result = self.function(*self.tensors)
        return result[0] if isinstance(result, tuple) else result


def inference(workload, arrays, sizes, mode, layout):
    training = Training(workload, {"y": arrays["x"]} | arrays, sizes, layout)
    model = model_of(workload, sizes)
    return Forward(lambda x: model(training.params, x), [training.x], mode)


def depthwise(arrays, mode, layout):
    order = torch.channels_last if layout == "nhwc" else torch.contiguous_format
    tensors = [torch.from_numpy(arrays[name]).contiguous(memory_format=order) for name in ("x", "kernel")]
    return Forward(lambda x, kernel: F.conv2d(x, kernel, padding=1, groups=len(kernel)), tensors, mode)


def op_session(workload, arrays, mode):
    function, names, *count = OPS[workload.op]
    tensors = [op_array(arrays, name) for name in names.split()]
    return Gradient(function, tensors, mode, *count) if count else Forward(function, tensors, mode)


def make_session(workload, arrays, sizes, mode, layout):
    tensors = [torch.from_numpy(a) for a in arrays.values()]
    if workload.kind == "op":
        return op_session(workload, arrays, mode)
    if workload.kind == "depthwise":
        return depthwise(arrays, mode, layout)
    if workload.kind == "chain":
        return Forward(chain, tensors, mode)
    if workload.kind == "tiny":
        return Forward(lambda *a: peer.tiny(*a, sizes["ops"]), tensors, mode)
    if not workload.loss:
        return inference(workload, arrays, sizes, mode, layout)
    if mode == "eager":
        return EagerTraining(workload, arrays, sizes, layout)
    return CompiledTraining(mode, workload, arrays, sizes, layout)


def warm_up(mode):
    x = torch.ones(4, 4, requires_grad=True)
    function = torch.relu if mode == "eager" else compiled(lambda a: (a @ a).relu(), mode)
    function(x).sum().backward()
    torch.optim.Adam([x], fused=True).step()  # its first step imports the compiler, which takes 160 MB


if __name__ == "__main__":
    torch.set_num_threads(peer.threads())
    peer.serve(torch.__version__, warm_up, make_session, torch.compiler.reset)
