#!/usr/bin/env python3
"""Single ops and layers beside PyTorch eager, with one thread or more:
build/venv/bin/python bench/single.py [WORDS...] [--threads N] [--seconds S] [--worst N]

A line for each case whose name has one of the words (all without): milliseconds of PyTorch and of ours, forward and
with the gradients of all inputs, and how many times as fast ours is. The sides take turns, five times, each for
--seconds; a number is the least of all runs, so that a busy neighbour is felt little. Images are measured in both
memory orders of PyTorch, and the better one counts; ours come and go in the plain order. --worst N shows only those
where ours is slowest. Read first: single.cpp (our side, which has the same names).
"""
import argparse
import math
import os
import pathlib
import subprocess
import sys
import time

import torch
import torch.nn.functional as F

PROGRAM = pathlib.Path(__file__).resolve().parents[1] / "build" / "release" / "bench" / "bench_single"
ELEMENTS = [(1 << 20,)]
MATRIX = (1000, 1000)
LARGE, MIDDLE, SMALL, TINY = (8, 64, 112, 112), (8, 64, 56, 56), (8, 128, 28, 28), (8, 256, 14, 14)


def product(m, k, n):
    return [(k, m), (n, k)], lambda a, b: b @ a


def dense(inputs, outputs, batch):
    return [(batch, inputs), (inputs, outputs), (outputs,)], lambda x, w, b: torch.relu(torch.addmm(b, x, w))


def conv(x, w, **options):
    return [x, w], lambda x, w: F.conv2d(x, w, **options)


def normalised(x, function):
    channels = (x[1],)
    return [x, channels, channels], function


def labels(high, count):
    return torch.randint(0, high, (count,))


def elementwise():
    unary = {"abs": torch.abs, "atan": torch.atan, "cos": torch.cos, "erf": torch.erf, "exp": torch.exp,
             "expm1": torch.expm1, "gelu": lambda x: F.gelu(x, approximate="tanh"),
             "log of 2 + x": lambda x: torch.log(2 + x), "log1p of 2 + x": lambda x: torch.log1p(2 + x),
             "relu": torch.relu, "sigmoid": torch.sigmoid, "sin": torch.sin, "softplus": F.softplus,
             "sqrt of 2 + x": lambda x: torch.sqrt(2 + x), "swish": F.silu, "tan": torch.tan, "tanh": torch.tanh,
             "x of 2 + x by 1.7": lambda x: torch.pow(2 + x, 1.7), "clamp": lambda x: torch.clamp(x, -0.5, 0.5)}
    return {**{name: (ELEMENTS, function) for name, function in unary.items()},
            "add": (ELEMENTS * 2, torch.add), "divide": (ELEMENTS * 2, torch.divide),
            "where": (ELEMENTS * 2, lambda x, y: torch.where(x > y, x, y)),
            "add of a row": ([MATRIX, (1000, 1)], torch.add), "add of a column": ([MATRIX, (1000,)], torch.add)}


def of_matrices():
    one = {"sum": torch.sum, "sum of columns": lambda x: x.sum(1), "sum of rows": lambda x: x.sum(0),
           "mean of columns": lambda x: x.mean(1), "largest of columns": lambda x: x.max(1).values,
           "product of columns": lambda x: x.prod(1), "variance of columns": lambda x: x.var(1),
           "norm": lambda x: x.norm(), "norm of columns": lambda x: x.norm(dim=1),
           "logsumexp of columns": lambda x: x.logsumexp(1), "softmax of columns": lambda x: x.softmax(1),
           "softmax of rows": lambda x: x.softmax(0), "logsoftmax of columns": lambda x: x.log_softmax(1),
           "cumsum of columns": lambda x: x.cumsum(1), "cumsum of rows": lambda x: x.cumsum(0),
           "cumprod of columns": lambda x: x.cumprod(1), "sort of columns": lambda x: x.sort(1).values,
           "transpose": lambda x: x.t().contiguous(), "flip": lambda x: x.flip(1)}
    return {**{name: ([MATRIX], function) for name, function in one.items()},
            "repeat": ([(1000, 100)], lambda x: x.repeat(1, 10)),
            "join columns": ([MATRIX, MATRIX], lambda x, y: torch.cat([x, y], 1)),
            "join rows": ([MATRIX, MATRIX], lambda x, y: torch.cat([x, y], 0)),
            "heads in front": ([(16, 128, 8, 64)], lambda x: x.transpose(1, 2).contiguous())}


def products():
    return {**{f"product {n}": product(n, n, n) for n in (64, 128, 256, 512, 1024)},
            **{"product %d by %d by %d" % sizes: product(*sizes)
               for sizes in ((100, 100, 100), (1000, 1000, 1), (512, 512, 16), (512, 512, 32), (1000, 64, 1000))},
            "batched product 64": ([(96, 64, 64)] * 2, lambda a, b: b @ a),
            "batched product 128 by 32 by 128": ([(48, 32, 128), (48, 128, 32)], lambda a, b: b @ a),
            **{"dense %d to %d" % sizes[:2]: dense(*sizes)
               for sizes in ((784, 256, 128), (512, 512, 512), (256, 10, 128), (768, 3072, 128))}}


def convolutions():
    half, one = {"stride": 2, "padding": 1}, {"padding": 1}
    return {"conv 7x7 of 3": conv((4, 3, 224, 224), (64, 3, 7, 7), stride=2, padding=3),
            "conv 3x3 of 3": conv((64, 3, 32, 32), (32, 3, 3, 3), **one),
            "conv 5x5 of 1": conv((128, 1, 28, 28), (6, 1, 5, 5)),
            "conv 3x3 of 56": conv(MIDDLE, (64, 64, 3, 3), **one),
            "conv 3x3 of 28": conv(SMALL, (128, 128, 3, 3), **one),
            "conv 3x3 of 14": conv(TINY, (256, 256, 3, 3), **one),
            "conv 3x3 of 28 halved": conv(SMALL, (256, 128, 3, 3), **half),
            "conv 1x1 of 56": conv(MIDDLE, (256, 64, 1, 1)),
            "conv 1x1 of 14": conv(TINY, (512, 256, 1, 1)),
            "conv depthwise 3x3 of 56": conv(MIDDLE, (64, 1, 3, 3), padding=1, groups=64),
            "conv depthwise 7x7 of 14": conv(TINY, (256, 1, 7, 7), padding=3, groups=256),
            "conv of 8 groups": conv(SMALL, (128, 16, 3, 3), padding=1, groups=8),
            "conv dilated": conv(SMALL, (128, 128, 3, 3), padding=2, dilation=2),
            "conv of sequences": ([(8, 64, 1000), (64, 64, 9)], lambda x, w: F.conv1d(x, w, padding=4)),
            "transposed conv 4x4": ([SMALL, (128, 64, 4, 4)], lambda x, w: F.conv_transpose2d(x, w, **half))}


def pools():
    def enlarged(x):
        return F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=True)

    return {"maxpool 2x2 of 112": ([LARGE], lambda x: F.max_pool2d(x, 2)),
            "maxpool 3x3 of 112 halved": ([LARGE], lambda x: F.max_pool2d(x, 3, 2, 1)),
            "maxpool 3x3 of 28": ([SMALL], lambda x: F.max_pool2d(x, 3, 1, 1)),
            "meanpool 2x2 of 56": ([MIDDLE], lambda x: F.avg_pool2d(x, 2)),
            "meanpool of all": ([SMALL], lambda x: F.adaptive_avg_pool2d(x, 1)),
            "upsample nearest": ([SMALL], lambda x: F.interpolate(x, scale_factor=2)),
            "upsample bilinear": ([SMALL], enlarged)}


def normalisations():
    return {**{f"batchnorm of {name}": normalised(shape, batch_norm)
               for name, shape in (("56", MIDDLE), ("14", TINY), ("features", (1024, 256)))},
            "groupnorm of 56": normalised(MIDDLE, lambda x, w, b: F.group_norm(x, 8, w, b)),
            "groupnorm of 14": normalised(TINY, lambda x, w, b: F.group_norm(x, 32, w, b)),
            "instancenorm of 56": normalised(MIDDLE, lambda x, w, b: F.instance_norm(x, weight=w, bias=b)),
            "layernorm of 768": normalised((1024, 768), lambda x, w, b: F.layer_norm(x, w.shape, w, b)),
            "layernorm of 128": normalised((4096, 128), lambda x, w, b: F.layer_norm(x, w.shape, w, b))}


def sequences():
    def attention(causal):
        def attend(q, k, v):
            q, k, v = (part.view(4, 256, 8, 64).transpose(1, 2) for part in (q, k, v))
            return F.scaled_dot_product_attention(q, k, v, is_causal=causal).transpose(1, 2).reshape(4, 256, 512)
        return [(4, 256, 512)] * 3, attend

    classes, words = labels(1000, 512), labels(5000, 4096)
    return {"attention": attention(False), "attention causal": attention(True),
            "loss of labels 1000": ([(512, 1000)], lambda x: F.cross_entropy(x, classes)),
            "loss of squares": ([MATRIX, MATRIX], F.mse_loss),
            "embedding": ([(5000, 128)], lambda x: F.embedding(words, x))}


def rarer():
    def of_pixels(x):
        return F.cross_entropy(x, classes)

    classes, places = torch.randint(0, 21, (8, 64, 64)), labels(5000, 4096)
    return {"largest 10 of columns": ([MATRIX], lambda x: x.topk(10, 1).values),
            "lower triangle": ([MATRIX], torch.tril), "glu": ([(1000, 2000)], lambda x: F.glu(x, 1)),
            "pad of zeros": ([SMALL], lambda x: F.pad(x, (1, 1, 1, 1))),
            "pad of reflections": ([SMALL], lambda x: F.pad(x, (3, 3, 3, 3), mode="reflect")),
            "softmax of channels": ([MIDDLE], lambda x: x.softmax(1)),
            "pixel shuffle": ([SMALL], lambda x: F.pixel_shuffle(x, 2)),
            "windows 3x3": ([(8, 32, 28, 28)], lambda x: F.unfold(x, 3)),
            "image at points": ([SMALL, (8, 28, 28, 2)], lambda x, grid: F.grid_sample(x, grid, align_corners=False)),
            "rmsnorm of 768": ([(1024, 768), (768,)], lambda x, w: F.rms_norm(x, (768,), w)),
            "loss of pixels": ([(8, 21, 64, 64)], of_pixels), "loss of Huber": ([MATRIX, MATRIX], F.huber_loss),
            "scatter of sums": ([(5000, 128), (4096, 128)], lambda x, y: x.index_add(0, places, y)),
            "conv 3x3x3": ([(2, 32, 16, 16, 16), (32, 32, 3, 3, 3)], lambda x, w: F.conv3d(x, w, padding=1)),
            "maxpool 2x2x2": ([(4, 32, 16, 16, 16)], lambda x: F.max_pool3d(x, 2)),
            "transposed conv 2x2": ([SMALL, (128, 64, 2, 2)], lambda x, w: F.conv_transpose2d(x, w, stride=2))}


TYPES = {"bfloat16": torch.bfloat16, "float64": torch.float64}


def cases(names):
    """{name: (shapes of the inputs, row-major; what is computed of them)}; those of `names` in another type too."""
    families = elementwise, of_matrices, products, convolutions, pools, normalisations, sequences, rarer
    all_cases = {name: case for family in families for name, case in family().items()}
    in_types = [name for name in names if name.split(": ")[0] in TYPES]
    return {**all_cases, **{name: all_cases[name.split(": ")[1]] for name in in_types}}


def batch_norm(x, w, b):
    """In training where gradients are wanted, as ours."""
    means, variances = torch.zeros_like(w), torch.ones_like(w)
    return F.batch_norm(x, means.detach(), variances.detach(), w, b, training=x.requires_grad)


class Peer:
    """A case of PyTorch, forward or with gradients, in one memory order."""

    def __init__(self, shapes, function, with_gradients, order, dtype):
        self.function = function
        made = [(torch.rand(shape) * 2 - 1).to(dtype) for shape in shapes]
        if order is not None:
            made = [x.contiguous(memory_format=order) if x.dim() == 4 else x for x in made]
        self.inputs = [x.requires_grad_(with_gradients) for x in made]
        self.direction = torch.rand_like(self.function(*self.inputs).detach()) if with_gradients else None

    def run(self):
        if self.direction is None:
            return self.function(*self.inputs)
        return torch.autograd.grad(self.function(*self.inputs), self.inputs, self.direction)

    def milliseconds(self, seconds):
        best, start = math.inf, time.perf_counter()
        while time.perf_counter() - start < seconds or best == math.inf:
            begin = time.perf_counter()
            self.run()
            best = min(best, time.perf_counter() - begin)
        return 1e3 * best


class Ours:
    def __init__(self, threads):
        self.process = subprocess.Popen([PROGRAM], env={**os.environ, "ROSIN_NUM_THREADS": str(threads)},
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.names = self.process.stdout.readline().split("\t")[:-1]

    def milliseconds(self, name, seconds):
        self.process.stdin.write(f"{name}\t{seconds}\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())


def compared(ours, name, shapes, function, with_gradients, seconds):
    """The least milliseconds of PyTorch and of ours."""
    images = len(shapes[0]) == 4 and "heads" not in name
    orders = [torch.contiguous_format, torch.channels_last] if images else [None]
    dtype = TYPES.get(name.split(": ")[0], torch.float32)
    peers = [Peer(shapes, function, with_gradients, order, dtype) for order in orders]
    theirs, mine = math.inf, math.inf
    for _ in range(5):
        mine = min(mine, ours.milliseconds(name + "+" * with_gradients, seconds))
        theirs = min(theirs, *(peer.milliseconds(seconds) for peer in peers))
    return theirs, mine


def line(name, pairs):
    numbers = "".join(f"{theirs:10.3f}{mine:10.3f}{theirs / mine:8.2f}" for theirs, mine in pairs)
    return f"{name:34}{numbers}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("words", nargs="*")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0.05)
    parser.add_argument("--worst", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    ours = Ours(options.threads)
    table = cases(ours.names)
    if sorted(table) != sorted(ours.names):
        sys.exit(f"single.cpp and single.py differ: {sorted(set(table) ^ set(ours.names))}")
    measured = {}
    print(f"{'':34}{'forward: PyTorch, ours, ratio':>28}{'with gradients':>28}", flush=True)
    for name, (shapes, function) in table.items():
        if options.words and not any(word in name for word in options.words):
            continue
        measured[name] = [compared(ours, name, shapes, function, gradients, options.seconds)
                          for gradients in (False, True)]
        if not options.worst:
            print(line(name, measured[name]), flush=True)
    worst = sorted(measured, key=lambda name: min(theirs / mine for theirs, mine in measured[name]))
    for name in worst[:options.worst]:
        print(line(name, measured[name]))


if __name__ == "__main__":
    main()
