"""The workloads: one table of sizes, their prime variants, and the files of initial parameters and data that every
side starts from. Standard library only. Read next: bench.py (runs them), peer.py (how a peer is asked)."""
import array
import dataclasses
import json
import math
import pathlib
import random
import sys


@dataclasses.dataclass(frozen=True)
class Workload:
    name: str
    kind: str  # mlp | lenet | chain | tiny
    sizes: dict
    steps: int  # in one repeat
    activation: str = ""  # of the mlp's hidden layer
    loss: str = ""  # mse | logitcrossentropy; empty: forward only
    threads: tuple = (1, 2)
    layouts: tuple = ("",)  # memory orders of images that the peers try
    first_step: bool = False  # what counts is the first step of a fresh process
    about: str = ""
    goal: tuple = ()  # ("x", least ratio) | (" ms", most) | (" ns an op", most)


IMAGES = dict(batch=128, image=28, channels=1, conv1=6, conv2=16, dense1=120, dense2=84, classes=10)
DIGITS = dict(batch=128, inputs=784, hidden=256, outputs=10)
TABLE = {w.name: w for w in [
    Workload("C1", "mlp", dict(batch=200, inputs=24, hidden=8, outputs=2), 3000, "tanh", "mse", about="MLP 24-8-2",
             goal=("x", 4)),
    Workload("C3", "lenet", IMAGES, 40, loss="logitcrossentropy", layouts=("nchw", "nhwc"), about="LeNet-5 b128",
             goal=("x", 1)),
    Workload("C4", "mlp", DIGITS, 200, "relu", "logitcrossentropy", about="MLP 784-256-10 b128",
             goal=("x", 1)),
    Workload("C8", "chain", dict(elements=1_000_000), 200, about="gelu(x + b), 10 ops, 1 M elements"),
    Workload("C9", "tiny", dict(elements=8, ops=100), 10_000, threads=(1,), about="100 dependent ops on 8 elements",
             goal=(" ns an op", 40)),
    Workload("C10", "mlp", DIGITS, 1, "relu", "logitcrossentropy", (1,), first_step=True, about="first step of C4",
             goal=(" ms", 5)),
]}


def is_prime(n):
    return n > 1 and all(n % d for d in range(2, math.isqrt(n) + 1))


def nearest_prime(n):
    """The prime nearest to n, the greater of two; 1 stays 1 (a size-1 dimension is a case of its own)."""
    if n == 1:
        return 1
    return next(p for distance in range(n) for p in (n + distance, n - distance) if is_prime(p))


def prime_variant(sizes):
    return {name: nearest_prime(n) for name, n in sizes.items()}


def flat_features(s):
    """Features per image behind the second pooling of LeNet (kernels 5x5 without padding, pools 2x2)."""
    side = ((s["image"] - 4) // 2 - 4) // 2
    return s["conv2"] * side * side


def shapes(workload, s):
    """Name -> row-major shape of each array; 2-D weights are (in, out), kernels (out, in, rows, columns)."""
    if workload.kind == "chain":
        return {"x": (s["elements"],), "b": (s["elements"],)}
    if workload.kind == "tiny":
        return {"x": (s["elements"],), "scale": (s["elements"],), "shift": (s["elements"],)}
    if workload.kind == "mlp":
        data = {"x": (s["batch"], s["inputs"]), "y": (s["batch"], s["outputs"])}
        return data | dense("hidden", s["inputs"], s["hidden"]) | dense("out", s["hidden"], s["outputs"])
    data = {"x": (s["batch"], s["channels"], s["image"], s["image"]), "y": (s["batch"], s["classes"])}
    return (data | conv("conv1", s["channels"], s["conv1"]) | conv("conv2", s["conv1"], s["conv2"])
            | dense("dense1", flat_features(s), s["dense1"]) | dense("dense2", s["dense1"], s["dense2"])
            | dense("dense3", s["dense2"], s["classes"]))


def dense(name, inputs, outputs):
    return {f"{name}.weight": (inputs, outputs), f"{name}.bias": (outputs,)}


def conv(name, inputs, outputs):
    return {f"{name}.weight": (outputs, inputs, 5, 5), f"{name}.bias": (outputs,)}


def values(workload, name, shape, rng):
    """The numbers of one array: Glorot-uniform weights, constant biases, one-hot labels, uniform data."""
    count = math.prod(shape)
    if name.endswith(".bias"):
        # Where a relu is switched on by rounding, Adam takes a whole step: two right LeNets would differ by 1e-4.
        return [1.0 if workload.kind == "lenet" else 0.0] * count
    if name == "y" and workload.loss == "logitcrossentropy":
        labels = [rng.randrange(shape[1]) for _ in range(shape[0])]
        return [float(label == k) for label in labels for k in range(shape[1])]
    low, high = (0.5, 0.9) if name == "scale" else (-1.0, 1.0)
    if name.endswith(".weight"):
        area = math.prod(shape[2:])
        high = math.sqrt(6 / ((shape[0] + shape[1]) * area))
        low = -high
    return [rng.uniform(low, high) for _ in range(count)]


def write_inputs(workload, sizes, folder):
    """Writes NAME.f32 (little-endian float32, row-major) for each array and manifest.json; returns the folder."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    rng = random.Random(1)
    arrays = []
    for name, shape in shapes(workload, sizes).items():
        numbers = array.array("f", values(workload, name, shape, rng))
        if sys.byteorder == "big":
            numbers.byteswap()
        (folder / f"{name}.f32").write_bytes(numbers.tobytes())
        arrays.append({"name": name, "shape": list(shape), "file": f"{name}.f32"})
    manifest = {"workload": workload.name, "sizes": sizes, "arrays": arrays}
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=1))
    return folder
