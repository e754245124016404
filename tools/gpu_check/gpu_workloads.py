"""What ./run gpu-check measures: one table of workloads with sizes and goals, and the numbers that they start from.
The same numbers are made by workloads.cpp. Read next: measure.py (runs them), peer_torch.py, peer_jax.py."""
import dataclasses
import math


@dataclasses.dataclass(frozen=True)
class Workload:
    name: str
    step: str  # kernels | steps
    kind: str
    sizes: dict
    short: dict  # sizes where only the way is tried
    about: str
    goal_ms: float = 0  # of one NVIDIA H200; 0: the ratios alone count
    ratios: dict = dataclasses.field(default_factory=dict)  # peer's time / ours at least: eager, compile, jax
    tolerance: float = 1e-3  # of the compared values, relative


HALF = 3e-2  # BFloat16 beside what a peer keeps in Float32


def ratios(eager, compiled, jax):
    return {"eager": eager, "compile": compiled, "jax": jax}


GPT_SHORT = dict(batch=2, time=8, width=8, heads=2, layers=1, vocabulary=16)
NORM, NORM_SHORT = dict(features=4096, rows=16384), dict(features=16, rows=8)
TABLE = {w.name: w for w in [
    Workload("G1", "steps", "mlp", dict(batch=128, inputs=784, hidden=256, classes=10),
             dict(batch=8, inputs=12, hidden=8, classes=4), "MLP 784-256-10 b128, Adam", 0.030, ratios(6, 4, 2)),
    Workload("G2", "steps", "lenet", dict(batch=2048, image=28), dict(batch=2, image=16), "LeNet-5 b2048, Adam", 0.40,
             ratios(8, 2.5, 1.5)),
    Workload("G3", "steps", "resnet", dict(batch=512, image=32, depth=18, width=64, classes=10, half=1),
             dict(batch=2, image=8, depth=4, width=4, classes=4, half=1), "ResNet-18 on 32x32 b512, BFloat16", 5.5,
             ratios(1.4, 1.1, 1.15), HALF),
    Workload("G4", "steps", "resnet", dict(batch=256, image=224, depth=50, width=64, classes=1000, half=1),
             {}, "ResNet-50 on 224x224 b256, BFloat16", 64, ratios(1.3, 1.1, 1.15), HALF),
    Workload("G5", "steps", "gpt", dict(batch=32, time=1024, width=768, heads=12, layers=12, vocabulary=50304, half=1),
             {}, "GPT-2 124M b32 T1024, BFloat16, AdamW", 69.7, ratios(1.5, 1.12, 1.12), HALF),
    Workload("G6", "steps", "gpt", dict(batch=64, time=256, width=384, heads=6, layers=6, vocabulary=96, half=1),
             GPT_SHORT | dict(half=1), "GPT of 6 layers, width 384, b64 T256, BFloat16", 3.2,
             ratios(2, 1.25, 1.2), HALF),
    Workload("G7", "steps", "gpt", dict(batch=12, time=64, width=128, heads=4, layers=4, vocabulary=96),
             GPT_SHORT, "GPT of 4 layers, width 128, b12 T64", 0.35, ratios(8, 3, 2)),
    Workload("G8", "kernels", "layernorm_backward", NORM, NORM_SHORT, "LayerNorm backward, BFloat16", 0.110,
             ratios(2, 2.1, 1.5), HALF),
    Workload("G8b", "kernels", "rmsnorm_backward", NORM, NORM_SHORT, "RMSNorm backward, BFloat16", 0.110,
             ratios(2, 2.1, 1.5), HALF),
    Workload("G9", "kernels", "rmsnorm", NORM, NORM_SHORT, "RMSNorm, BFloat16", 0.072, ratios(1.1, 1.05, 1.05), HALF),
    Workload("G10", "kernels", "attention", dict(head=128, time=4096, heads=16, batch=2),
             dict(head=8, time=16, heads=2, batch=1), "causal attention and its gradient, BFloat16", 0,
             ratios(1.2, 1.2, 1.1), HALF),
    Workload("G11", "kernels", "adam", dict(elements=124_000_000, arrays=100), dict(elements=64, arrays=2),
             "Adam on 124 M parameters", 0.90, ratios(1.3, 1.05, 1.05)),
    Workload("G12", "kernels", "chain", dict(elements=64_000_000), dict(elements=100), "ten elementwise ops, 256 MB",
             0.14, ratios(6, 1, 1)),
    Workload("G13", "kernels", "tiny", dict(ops=100), dict(ops=10), "100 dependent ops on 8 elements", 0.010,
             ratios(40, 1.5, 1.5)),
    Workload("G15", "kernels", "product", dict(size=8192), dict(size=16), "product of 8192x8192, BFloat16", 1.42,
             ratios(1, 1, 1), HALF),
]}
# What comes first where time runs out: what tells most in the least time.
ORDER = ["G1", "G12", "G8", "G7", "G2", "G9", "G11", "G13", "G15", "G10", "G6", "G3", "G5", "G4", "G8b"]


class Numbers:
    """As the class of that name in workloads.hpp: element i of array n is the same number everywhere. Shapes are
    row-major here, so in the other order."""

    def __init__(self):
        self.arrays = 0

    def _mixed(self, shape):
        import numpy
        self.arrays += 1
        x = numpy.arange(math.prod(shape), dtype=numpy.uint32)
        x += numpy.uint32(self.arrays * 0x9E3779B9 & 0xFFFFFFFF)
        x = (x ^ (x >> numpy.uint32(16))) * numpy.uint32(0x85EBCA6B)
        x = (x ^ (x >> numpy.uint32(13))) * numpy.uint32(0xC2B2AE35)
        return x ^ (x >> numpy.uint32(16))

    def uniform(self, shape, scale):
        import numpy
        unit = (self._mixed(shape) >> numpy.uint32(8)).astype(numpy.float32) * numpy.float32(2.0**-24)
        return ((2 * unit - 1) * numpy.float32(scale)).reshape(shape)

    def whole(self, shape, bound):
        import numpy
        return (self._mixed(shape) % numpy.uint32(bound)).astype(numpy.int32).reshape(shape)

    def weight(self, shape, inputs):
        return self.uniform(shape, 1 / math.sqrt(inputs))


# --- Parameters in the order of training_workloads.cpp, by name; x and y are made first.

def mlp_parameters(n, s):
    x, y = n.uniform((s["batch"], s["inputs"]), 1), n.whole((s["batch"],), s["classes"])
    return x, y, dense(n, "hidden", s["inputs"], s["hidden"]) | dense(n, "out", s["hidden"], s["classes"])


def dense(n, name, inputs, outputs):
    import numpy
    return {f"{name}.weight": n.weight((inputs, outputs), inputs), f"{name}.bias": numpy.zeros(outputs, numpy.float32)}


def lenet_parameters(n, s):
    import numpy
    image = s["image"]
    side = ((image - 4) // 2 - 4) // 2
    x, y = n.uniform((s["batch"], 1, image, image), 1), n.whole((s["batch"],), 10)
    p = {"first.weight": n.weight((6, 1, 5, 5), 25), "first.bias": numpy.zeros(6, numpy.float32)}
    p |= {"second.weight": n.weight((16, 6, 5, 5), 150), "second.bias": numpy.zeros(16, numpy.float32)}
    return x, y, p | dense(n, "wide", 16 * side * side, 120) | dense(n, "narrow", 120, 84) | dense(n, "out", 84, 10)


def gpt_parameters(n, s):
    import numpy
    width = s["width"]
    x = n.whole((s["batch"], s["time"]), s["vocabulary"])
    y = n.whole((s["batch"] * s["time"],), s["vocabulary"])
    p = {"tokens": n.uniform((s["vocabulary"], width), 0.02), "places": n.uniform((s["time"], width), 0.02)}

    def norm(name):
        return {f"{name}.scale": numpy.ones(width, numpy.float32), f"{name}.bias": numpy.zeros(width, numpy.float32)}

    for i in range(s["layers"]):
        p |= norm(f"{i}.before") | norm(f"{i}.middle") | dense(n, f"{i}.inputs", width, 3 * width)
        p |= dense(n, f"{i}.project", width, width) | dense(n, f"{i}.wide", width, 4 * width)
        p |= dense(n, f"{i}.narrow", 4 * width, width)
    return x, y, p | norm("last")


def resnet_plan(s):
    """The blocks of a ResNet: lists of (name, side, in, out, stride), and the convolution beside each, or None; with
    the first convolution and the features of the last layer."""
    large, bottleneck = s["image"] > 64, s["depth"] == 50
    counts = {50: (3, 4, 6, 3), 18: (2, 2, 2, 2)}.get(s["depth"], (1, 1))
    first = ("first", 7 if large else 3, 3, s["width"], 2 if large else 1)
    blocks, width_in = [], s["width"]
    for stage, count in enumerate(counts):
        width = s["width"] << stage
        out = 4 * width if bottleneck else width
        for i in range(count):
            stride, name = 2 if i == 0 and stage > 0 else 1, f"{stage}.{i}"
            units = [(f"{name}.a", 1, width_in, width, 1)] if bottleneck else []
            units.append((f"{name}.b", 3, width if bottleneck else width_in, width, stride))
            units.append((f"{name}.c", 1, width, out, 1) if bottleneck else (f"{name}.c", 3, width, width, 1))
            beside = (f"{name}.beside", 1, width_in, out, stride) if stride != 1 or width_in != out else None
            blocks.append((units, beside))
            width_in = out
    return first, blocks, width_in


def resnet_parameters(n, s):
    import numpy
    x = n.uniform((s["batch"], 3, s["image"], s["image"]), 1)
    y = n.whole((s["batch"],), s["classes"])
    first, blocks, features = resnet_plan(s)
    p = {}
    for name, side, inputs, outputs, _ in [first, *(u for units, beside in blocks for u in [*units, beside] if u)]:
        p[f"{name}.weight"] = n.weight((outputs, inputs, side, side), side * side * inputs)
        p |= {f"{name}.scale": numpy.ones(outputs, numpy.float32), f"{name}.bias": numpy.zeros(outputs, numpy.float32)}
    return x, y, p | dense(n, "out", features, s["classes"])


PARAMETERS = {"mlp": mlp_parameters, "lenet": lenet_parameters, "gpt": gpt_parameters, "resnet": resnet_parameters}
