"""The workloads of gpu_workloads.py in PyTorch: eager, torch.compile in three modes, and a whole step captured as a
graph by hand. Reads a request as one line of JSON {"kind", "sizes", "modes", "device", "seconds", "repeats",
"compared"} and prints a line for each mode: {"mode", "ms", "values", "first_ms"} or {"mode", "error"}.
Losses agree with ours because both start from the same numbers; BFloat16 is autocast on Float32 parameters."""
import functools
import json
import sys

import torch
import torch.nn.functional as F

import gpu_workloads
import peer_times

MODES = ["eager", "compile", "compile reduce-overhead", "compile max-autotune", "graph"]


# --- Models on dicts of parameters.

def mlp(p, x, _):
    hidden = F.relu(F.linear(x, p["hidden.weight"], p["hidden.bias"]))
    return F.linear(hidden, p["out.weight"], p["out.bias"])


def lenet(p, x, _):
    x = F.max_pool2d(F.relu(F.conv2d(x, p["first.weight"], p["first.bias"])), 2)
    x = F.max_pool2d(F.relu(F.conv2d(x, p["second.weight"], p["second.bias"])), 2).flatten(1)
    for name in ("wide", "narrow"):
        x = F.relu(F.linear(x, p[f"{name}.weight"], p[f"{name}.bias"]))
    return F.linear(x, p["out.weight"], p["out.bias"])


def resnet(p, x, s):
    first, blocks, _ = gpu_workloads.resnet_plan(s)

    def unit(x, name, side, _inputs, _outputs, stride):
        x = F.conv2d(x, p[f"{name}.weight"], stride=stride, padding=side // 2)
        return F.batch_norm(x, None, None, p[f"{name}.scale"], p[f"{name}.bias"], training=True)

    x = F.relu(unit(x, *first))
    if s["image"] > 64:
        x = F.max_pool2d(x, 3, 2, 1)
    for units, beside in blocks:
        y = x
        for i, one in enumerate(units):
            y = unit(y, *one)
            y = F.relu(y) if i + 1 < len(units) else y
        x = F.relu(y + (unit(x, *beside) if beside else x))
    return F.linear(x.mean((2, 3)), p["out.weight"], p["out.bias"])


def gpt(p, x, s):
    def norm(x, name):
        return F.layer_norm(x, x.shape[-1:], p[f"{name}.scale"], p[f"{name}.bias"])

    def layer(x, name):
        return F.linear(x, p[f"{name}.weight"], p[f"{name}.bias"])

    batch, tokens, width = *x.shape, s["width"]
    x = F.embedding(x, p["tokens"]) + p["places"]
    for i in range(s["layers"]):
        parts = layer(norm(x, f"{i}.before"), f"{i}.inputs").split(width, -1)
        q, k, v = (part.view(batch, tokens, s["heads"], -1).transpose(1, 2) for part in parts)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + layer(mixed.transpose(1, 2).reshape(batch, tokens, width), f"{i}.project")
        x = x + layer(F.gelu(layer(norm(x, f"{i}.middle"), f"{i}.wide"), approximate="tanh"), f"{i}.narrow")
    return F.linear(norm(x, "last"), p["tokens"]).flatten(0, 1)


MODELS = {"mlp": mlp, "lenet": lenet, "resnet": resnet, "gpt": gpt}


def compiled(function, mode):
    if not mode.startswith("compile"):
        return function
    return torch.compile(function, fullgraph=True, dynamic=False, mode=mode.partition(" ")[2] or None)


class Training:
    def __init__(self, kind, sizes, mode, device):
        x, y, arrays = gpu_workloads.PARAMETERS[kind](gpu_workloads.Numbers(), sizes)
        self.x, self.y = torch.from_numpy(x).to(device), torch.from_numpy(y).long().to(device)
        if self.x.ndim == 4:
            self.x = self.x.contiguous(memory_format=torch.channels_last)
        self.start = {name: self.tensor(name, array, device) for name, array in arrays.items()}
        self.p = {name: tensor.clone().requires_grad_() for name, tensor in self.start.items()}
        self.optimiser = self.make_optimiser(kind, device)
        model = compiled(lambda p, x: MODELS[kind](p, x, sizes), mode)
        half = bool(sizes.get("half"))

        def loss():
            with torch.autocast(device.type, torch.bfloat16, enabled=half):
                logits = model(self.p, self.x)
            return F.cross_entropy(logits.float(), self.y)
        self.loss = loss
        self.graph = None
        if mode == "graph":
            self.capture()

    @staticmethod
    def tensor(name, array, device):
        tensor = torch.from_numpy(array).to(device)
        if tensor.ndim == 4:
            return tensor.contiguous(memory_format=torch.channels_last)
        return tensor.t().contiguous() if name.endswith(".weight") and tensor.ndim == 2 else tensor

    def make_optimiser(self, kind, device):
        leaves = list(self.p.values())
        if kind == "resnet":
            return torch.optim.SGD(leaves, lr=1e-2, momentum=0.9, fused=True)
        more = {"fused": True, "capturable": device.type == "cuda"}
        if kind == "gpt":
            return torch.optim.AdamW(leaves, lr=3e-4, weight_decay=0.01, **more)
        return torch.optim.Adam(leaves, lr=1e-3, **more)

    def once(self):
        loss = self.loss()
        self.optimiser.zero_grad(set_to_none=self.graph is None)
        loss.backward()
        self.optimiser.step()
        return loss.detach()

    def capture(self):
        """The whole step as one graph; then back to the start."""
        aside = torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            for _ in range(3):
                self.once()
        torch.cuda.current_stream().wait_stream(aside)
        graph = torch.cuda.CUDAGraph()
        self.optimiser.zero_grad(set_to_none=True)
        with torch.cuda.graph(graph):
            self.last = self.loss()
            self.last.backward()
            self.optimiser.step()
        self.graph = graph
        with torch.no_grad():
            for name, tensor in self.p.items():
                tensor.copy_(self.start[name])
            for state in self.optimiser.state.values():
                for value in state.values():
                    if torch.is_tensor(value):
                        value.zero_()

    def step(self):
        if self.graph is None:
            self.last = self.once()
        else:
            self.graph.replay()

    def value(self):
        return self.last.item()


class Kernel:
    """A function of tensors, again and again; value: the mean of the first result's absolute values."""

    def __init__(self, kind, sizes, mode, device):
        n = gpu_workloads.Numbers()

        def make(shape, half=True):
            tensor = torch.from_numpy(n.uniform(shape, 1)).to(device)
            return tensor.bfloat16() if half else tensor
        self.function = getattr(self, kind)(sizes, mode, make)
        self.graph = None
        if mode == "graph":
            for _ in range(3):
                self.function()
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                self.last = self.function()
            self.graph = graph

    def step(self):
        if self.graph is None:
            self.last = self.function()
        else:
            self.graph.replay()

    def value(self):
        return self.last.detach().float().abs().mean().item()

    @staticmethod
    def backward(f, x, others, dy, mode):
        tensors = [x, *others]
        for tensor in tensors:
            tensor.requires_grad_()
        y = compiled(f, mode)(*tensors)
        return lambda: torch.autograd.grad(y, tensors, dy, retain_graph=True)[0]

    def layernorm_backward(self, s, mode, make):
        shape = (s["rows"], s["features"])
        x, dy, scale, bias = make(shape), make(shape), make(shape[1:]), make(shape[1:])
        return self.backward(lambda x, a, b: F.layer_norm(x, shape[1:], a, b), x, (scale, bias), dy, mode)

    def rmsnorm_backward(self, s, mode, make):
        shape = (s["rows"], s["features"])
        x, dy, scale = make(shape), make(shape), make(shape[1:])
        return self.backward(lambda x, a: F.rms_norm(x, shape[1:], a, 1e-5), x, (scale,), dy, mode)

    def rmsnorm(self, s, mode, make):
        x, scale = make((s["rows"], s["features"])), make((s["features"],))
        f = compiled(lambda: F.rms_norm(x, scale.shape, scale, 1e-5), mode)
        return torch.no_grad()(f)

    def attention(self, s, mode, make):
        shape = (s["batch"], s["time"], s["heads"], s["head"])
        q, k, v, dy = (make(shape) for _ in range(4))
        for tensor in (q, k, v):
            tensor.requires_grad_()

        def attend(*tensors):
            heads = (tensor.transpose(1, 2) for tensor in tensors)
            return F.scaled_dot_product_attention(*heads, is_causal=True).transpose(1, 2)
        f = compiled(attend, mode)
        return lambda: torch.autograd.grad(f(q, k, v), (q, k, v), dy)[0]

    def adam(self, s, mode, make):
        each = s["elements"] // s["arrays"]
        pairs = [(make((each,), False), make((each,), False)) for _ in range(s["arrays"])]
        tensors = [p for p, _ in pairs]
        for p, g in pairs:
            p.grad = g
        on_gpu = tensors[0].is_cuda
        optimiser = torch.optim.Adam(tensors, lr=1e-3, fused=True, capturable=on_gpu)

        def step():
            optimiser.step()
            return tensors[0]
        if not mode.startswith("compile"):
            return step
        plain = torch.optim.Adam(tensors, lr=1e-3, capturable=on_gpu)
        update = torch.compile(plain.step, mode=mode.partition(" ")[2] or None)

        def compiled_step():
            update()
            return tensors[0]
        return compiled_step

    def chain(self, s, mode, make):
        x, b = make((s["elements"],), False), make((s["elements"],), False)

        def f():
            z = x + b
            return (torch.tanh((z * z * z * 0.044715 + z) * 0.7978845608) + 1) * z * 0.5
        return compiled(f, mode)

    def tiny(self, s, mode, make):
        x, scale, shift = (make((8,), False) for _ in range(3))

        def f():
            y = x
            for i in range(s["ops"]):
                y = y + shift if i % 2 else y * scale
            return y
        return compiled(f, mode)

    def product(self, s, mode, make):
        a, b = make((s["size"], s["size"])), make((s["size"], s["size"]))
        return compiled(lambda: b @ a, mode)


def measure(request, mode, device):
    made = Training if request["kind"] in MODELS else Kernel
    session = made(request["kind"], request["sizes"], mode, device)
    wait = torch.cuda.synchronize if device.type == "cuda" else lambda: None
    return peer_times.times_of(session, request, mode, wait)


def main():
    request = json.loads(sys.stdin.readline())
    device = torch.device(request["device"])
    print(json.dumps({"version": torch.__version__}), flush=True)
    for mode in request["modes"]:
        row = peer_times.row_of(functools.partial(measure, request, mode, device), mode)
        print(json.dumps(row), flush=True)
        torch.compiler.reset()


if __name__ == "__main__":
    main()
