"""What every side of a comparison starts from: the arrays of a workload by their names, and the files that hold them.
Standard library only. Read first: workloads.py."""
import array
import json
import math
import pathlib
import random
import sys


def flat_features(s):
    """Features per image behind the second pooling of LeNet (kernels 5x5 without padding, pools 2x2)."""
    side = ((s["image"] - 4) // 2 - 4) // 2
    return s["conv2"] * side * side


def dense(name, inputs, outputs):
    return {f"{name}.weight": (inputs, outputs), f"{name}.bias": (outputs,)}


def conv(name, inputs, outputs, size=5, bias=True):
    kernel = {f"{name}.weight": (outputs, inputs, size, size)}
    return kernel | {f"{name}.bias": (outputs,)} if bias else kernel


def norm(name, channels, statistics=True):
    """A layer of normalisation by PyTorch's names."""
    both = {f"{name}.weight": (channels,), f"{name}.bias": (channels,)}
    running = {f"{name}.running_mean": (channels,), f"{name}.running_var": (channels,)}
    return both | running if statistics else both


def chain_shapes(s):
    return {"x": (s["elements"],), "b": (s["elements"],)}


def tiny_shapes(s):
    return {"x": (s["elements"],), "scale": (s["elements"],), "shift": (s["elements"],)}


def mlp_shapes(s):
    data = {"x": (s["batch"], s["inputs"]), "y": (s["batch"], s["outputs"])}
    return data | dense("hidden", s["inputs"], s["hidden"]) | dense("out", s["hidden"], s["outputs"])


def deep_shapes(s):
    data = {"x": (s["batch"], s["inputs"]), "y": (s["batch"], s["outputs"])}
    return (data | dense("hidden1", s["inputs"], s["hidden1"]) | dense("hidden2", s["hidden1"], s["hidden2"])
            | dense("out", s["hidden2"], s["outputs"]))


def image_shapes(s):
    return {"x": (s["batch"], s["channels"], s["image"], s["image"]), "y": (s["batch"], s["classes"])}


def lenet_shapes(s):
    return (image_shapes(s) | conv("conv1", s["channels"], s["conv1"]) | conv("conv2", s["conv1"], s["conv2"])
            | dense("dense1", flat_features(s), s["dense1"]) | dense("dense2", s["dense1"], s["dense2"])
            | dense("dense3", s["dense2"], s["classes"]))


def cnn_shapes(s):
    """Six convolutions, of which every second doubles the channels of the one before."""
    found, channels = image_shapes(s), s["channels"]
    for i in range(6):
        out = s["conv"] << i // 2
        found |= conv(f"conv{i + 1}", channels, out, 3, bias=False) | norm(f"bn{i + 1}", out)
        channels = out
    return found | {"fc.weight": (s["classes"], channels), "fc.bias": (s["classes"],)}


def resnet_shapes(s):
    """torchvision's ResNet-18 by its names."""
    found = image_shapes(s) | conv("conv1", s["channels"], 64, 7, bias=False) | norm("bn1", 64)
    channels = 64
    for stage in range(4):
        width = 64 << stage
        for block in range(2):
            name = f"layer{stage + 1}.{block}."
            found |= conv(name + "conv1", channels, width, 3, bias=False) | norm(name + "bn1", width)
            found |= conv(name + "conv2", width, width, 3, bias=False) | norm(name + "bn2", width)
            if channels != width:
                found |= conv(name + "downsample.0", channels, width, 1, bias=False)
                found |= norm(name + "downsample.1", width)
            channels = width
    return found | {"fc.weight": (s["classes"], channels), "fc.bias": (s["classes"],)}


def gpt_shapes(s):
    """GPT-2 by the names of Hugging Face; the head is the embedding of tokens."""
    width = s["width"]
    found = {"x": (s["batch"], s["tokens"]), "y": (s["batch"], s["tokens"]),
             "transformer.wte.weight": (s["vocabulary"], width), "transformer.wpe.weight": (s["tokens"], width)}
    for i in range(s["layers"]):
        name = f"transformer.h.{i}."
        found |= norm(name + "ln_1", width, False) | dense(name + "attn.c_attn", width, 3 * width)
        found |= dense(name + "attn.c_proj", width, width) | norm(name + "ln_2", width, False)
        found |= dense(name + "mlp.c_fc", width, 4 * width) | dense(name + "mlp.c_proj", 4 * width, width)
    return found | norm("transformer.ln_f", width, False)


def lstm_shapes(s):
    """Gates stand in the order input, forget, cell, output; each layer has one bias."""
    found = {"x": (s["batch"], s["tokens"], s["inputs"]), "y": (s["batch"], s["outputs"])}
    inputs = s["inputs"]
    for layer in ("lstm1", "lstm2"):
        found |= {f"{layer}.input.weight": (inputs, 4 * s["hidden"]),
                  f"{layer}.hidden.weight": (s["hidden"], 4 * s["hidden"]), f"{layer}.bias": (4 * s["hidden"],)}
        inputs = s["hidden"]
    return found | dense("out", s["hidden"], s["outputs"])


def depthwise_shapes(s):
    return {"x": (s["batch"], s["channels"], s["image"], s["image"]),
            "kernel": (s["channels"], 1, s["kernel"], s["kernel"])}


def op_shapes(s):
    """What any op of bench_ops may take; `columns` stand one behind the other."""
    full = (s["columns"], s["features"])
    picked = {"indices": (s["indices"],), "w": (s["indices"], s["features"])} if "indices" in s else {}
    return {"x": full, "y": full, "z": full, "scale": (s["features"],), "shift": (s["features"],)} | picked


KINDS = {"chain": chain_shapes, "tiny": tiny_shapes, "mlp": mlp_shapes, "deep": deep_shapes, "lenet": lenet_shapes,
         "cnn": cnn_shapes, "resnet": resnet_shapes, "gpt": gpt_shapes, "lstm": lstm_shapes,
         "depthwise": depthwise_shapes, "op": op_shapes}
REPEATED = 1_000_003  # numbers of a long array that differ: more would take Python minutes
NAMED = ("cnn", "resnet", "gpt")  # models by PyTorch's names: their arrays are in one safetensors file


def shapes(workload, s):
    """Name -> row-major shape of each array; 2-D weights are (in, out), kernels (out, in, rows, columns). Those of a
    model that is in NAMED are as PyTorch has them."""
    return KINDS[workload.kind](s)


def values(workload, sizes, name, shape, rng):
    """The numbers of one array: Glorot-uniform weights, constant biases, one-hot labels, uniform data. Statistics that
    are used are uniform, those that training begins with 0 and 1."""
    count = math.prod(shape)
    if ".running_" in name and not workload.loss:
        return [rng.uniform(0.5, 1.5) if name.endswith("_var") else rng.uniform(-0.1, 0.1) for _ in range(count)]
    if name.endswith((".bias", ".running_mean")):
        # Where a relu is switched on by rounding, Adam takes a whole step: two right LeNets would differ by 1e-4.
        return [1.0 if workload.kind == "lenet" else 0.0] * count
    if name.endswith(".running_var") or name.endswith(".weight") and len(shape) == 1:
        return [1.0] * count
    if name == "indices" or workload.kind == "gpt" and name in ("x", "y"):
        return [float(rng.randrange(sizes.get("vocabulary") or sizes["columns"])) for _ in range(count)]
    if name == "y" and workload.loss == "logitcrossentropy":
        labels = [rng.randrange(shape[1]) for _ in range(shape[0])]
        return [float(label == k) for label in labels for k in range(shape[1])]
    low, high = (0.5, 0.9) if name == "scale" else (-1.0, 1.0)
    if name.endswith(".weight"):
        area = math.prod(shape[2:])
        high = math.sqrt(6 / ((shape[0] + shape[1]) * area))
        low = -high
    few = [rng.uniform(low, high) for _ in range(min(count, REPEATED))]
    return (few * (count // len(few) + 1))[:count]


def write_inputs(workload, sizes, folder):
    """Writes NAME.f32 (little-endian float32, row-major) for each array, or model.safetensors for the arrays of a model
    by PyTorch's names, and manifest.json; returns the folder."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    rng = random.Random(1)
    arrays, model = [], {}
    for name, shape in shapes(workload, sizes).items():
        numbers = array.array("f", values(workload, sizes, name, shape, rng))
        if sys.byteorder == "big":
            numbers.byteswap()
        if workload.kind in NAMED and name not in ("x", "y"):
            model[name] = shape, numbers.tobytes()
        else:
            (folder / f"{name}.f32").write_bytes(numbers.tobytes())
            arrays.append({"name": name, "shape": list(shape), "file": f"{name}.f32", "offset": 0})
    if model:
        arrays += write_safetensors(folder, "model.safetensors", model)
    manifest = {"workload": workload.name, "op": workload.op, "activation": workload.activation, "loss": workload.loss,
                "autocast": workload.autocast, "compared": workload.compared, "sizes": sizes, "arrays": arrays}
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=1))
    return folder


def write_safetensors(folder, file, model):
    """The arrays as a file of safetensors, and where each stands in it, as entries of the manifest."""
    header, at = {}, 0
    for name, (shape, data) in model.items():
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    (folder / file).write_bytes(b"".join([len(text).to_bytes(8, "little"), text, *(d for _, d in model.values())]))
    return [{"name": name, "shape": entry["shape"], "file": file, "offset": 8 + len(text) + entry["data_offsets"][0]}
            for name, entry in header.items()]
