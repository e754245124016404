"""The workloads in PyTorch, in the modes eager | compile | compile reduce-overhead | compile max-autotune.
(reduce-overhead adds CUDA graphs only: on a CPU it is compile). Compiled training is one program for forward, backward
and Adam, which is its fastest form. Read peer.py first."""
import math

import torch
import torch.nn.functional as F

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


def tiny(x, scale, shift, ops):
    for i in range(ops):
        x = x + shift if i % 2 else x * scale
    return x


def loss_function(workload):
    model = (lambda p, x: mlp(p, x, workload.activation)) if workload.kind == "mlp" else lenet
    error = F.mse_loss if workload.loss == "mse" else F.cross_entropy
    return lambda p, x, y: error(model(p, x), y)


def compiled(function, mode):
    return torch.compile(function, fullgraph=True, dynamic=False, mode=mode.partition(" ")[2] or None)


class Training:
    """What both ways to train share: data, initial parameters and their memory order."""

    def __init__(self, workload, arrays, layout):
        tensors = {name: torch.from_numpy(a) for name, a in arrays.items()}
        self.x, y = tensors.pop("x"), tensors.pop("y")
        self.y = y if workload.loss == "mse" else y.argmax(1)
        order = torch.channels_last if layout == "nhwc" else torch.contiguous_format
        if self.x.ndim == 4:
            self.x = self.x.contiguous(memory_format=order)
        self.initial = {n: t.t().contiguous() if t.ndim == 2 else t for n, t in tensors.items()}
        self.params = {n: t.clone(memory_format=order if t.ndim == 4 else torch.contiguous_format)
                       for n, t in self.initial.items()}
        self.loss = loss_function(workload)

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
    """A function of the arrays, run again and again."""

    def __init__(self, function, arrays, mode):
        self.arrays = [torch.from_numpy(a) for a in arrays.values()]
        self.function = function if mode == "eager" else compiled(function, mode)

    def reset(self):
        pass

    @torch.inference_mode()
    def step(self):
        return self.function(*self.arrays)

    def wait(self, result):
        pass

    def value(self, result):
        return result.double().mean().item()


def make_session(workload, arrays, sizes, mode, layout):
    warm_up(mode)
    if workload.kind == "chain":
        return Forward(chain, arrays, mode)
    if workload.kind == "tiny":
        return Forward(lambda *a: tiny(*a, sizes["ops"]), arrays, mode)
    if mode == "eager":
        return EagerTraining(workload, arrays, layout)
    return CompiledTraining(mode, workload, arrays, layout)


def warm_up(mode):
    """Loads what any first use loads, so that a first step's time is that of the step."""
    x = torch.ones(4, 4, requires_grad=True)
    function = torch.relu if mode == "eager" else compiled(lambda a: (a @ a).relu(), mode)
    function(x).sum().backward()


if __name__ == "__main__":
    torch.set_num_threads(peer.threads())
    peer.serve(torch.__version__, make_session, torch.compiler.reset)
