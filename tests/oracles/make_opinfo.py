"""Writes what PyTorch's own tests of its ops (OpInfo) give to them, and what PyTorch answers: opinfo/FAMILY.npz.

  make_opinfo.py [FAMILY...]     families are the files ../opinfo/FAMILY.cpp with a table; without any, all of them
  make_opinfo.py --unmapped      prints the entries of op_db that no table maps
Needs PyTorch 2.15 for the CPU and three packages: `pip install torch numpy expecttest hypothesis`.

The rows of the tables say which entries are taken. Samples are drawn in Float32 (where the op has no Float32: in
ComplexF32, Int64 or Bool); the Float64 run of the test takes the same values; PyTorch answers in Float64.
Of an entry's samples at most 40 small ones are taken, spread over all of them. With every sample stand the outputs, the
gradient of sum(w * output) by every input that PyTorch differentiates by, and the gradient of sum(w * gradient); w is
what `weights` gives, so nobody stores it.

Format, read by ../opinfo/reader.cpp: an .npz with `calls` (text, a sample a line), `tensors` (eleven numbers: type,
offset, rank, eight sizes as PyTorch has them) and the pools `f32`, `f64`, `i64`, `u8` that hold their elements, equal
ones once. A complex tensor is its parts in turn. The order in memory is PyTorch's; column-major with the dims reversed
it is rosin's. Float64 values have 38 bits of mantissa, which compresses; the bounds of the test are wider.
"""

import argparse
import hashlib
import itertools
import math
import pathlib
import random
import re
import sys
import urllib.parse

import numpy as np
import torch
from torch.testing._internal.common_methods_invocations import op_db

HERE = pathlib.Path(__file__).resolve().parent
TABLES = HERE.parent / "opinfo"
SAMPLES, ELEMENTS, KEPT = 40, 1000, 4000  # per entry; of a sample's inputs; of all that is stored for a sample
TYPES = (torch.float32, torch.complex64, torch.int64, torch.bool)
WIDE = {torch.float32: torch.float64, torch.complex64: torch.complex128}
ROW = re.compile(r'^\s*\{"([^"]+)",', re.MULTILINE)


def entry_name(op):
    return f"{op.name}/{op.variant_test_name}" if op.variant_test_name else op.name


def families():
    """Family -> names of its rows."""
    tables = {path.stem: ROW.findall(path.read_text(encoding="utf-8")) for path in sorted(TABLES.glob("*.cpp"))}
    return {family: names for family, names in tables.items() if names}


def weights(count, which):
    """What the elements of the which-th array count in the sums that are differentiated."""
    k = torch.arange(count, dtype=torch.float64)
    return ((7 * k + 3 * which) % 11 - 4.5) / 8


def tensors_of(value):
    """All tensors in nested lists and dicts, in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [tensor for one in value for tensor in tensors_of(one)]
    return []


def mapped(function, value):
    """The same nesting with function(tensor) for tensors."""
    if isinstance(value, torch.Tensor):
        return function(value)
    if isinstance(value, dict):
        return {key: mapped(function, one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [mapped(function, one) for one in value] if not isinstance(value, torch.Size) else list(value)
    return value


def widened(tensor):
    wide = tensor.detach().clone().to(WIDE.get(tensor.dtype, tensor.dtype))
    return wide.requires_grad_(tensor.requires_grad)


class Family:
    """The file of one family, as it grows."""

    def __init__(self):
        self.lines, self.tensors, self.known = [], [], {}
        self.pools = {"f32": [], "f64": [], "i64": [], "u8": []}
        self.sizes = dict.fromkeys(self.pools, 0)

    def pool_of(self, tensor):
        """(type, pool, elements) of a tensor."""
        tensor = tensor.float() if tensor.dtype == torch.bfloat16 else tensor
        array = np.ascontiguousarray(tensor.contiguous().numpy(force=True)).reshape(tuple(tensor.shape))
        kind = array.dtype.kind
        if kind == "c":
            array = array.view(array.real.dtype) if array.ndim else np.array([array.real, array.imag])
        if kind == "b":
            return "b", "u8", array.astype(np.uint8)
        if kind in "iu":
            return "i", "i64", array.astype(np.int64)
        with np.errstate(over="ignore", invalid="ignore"):
            single = array.astype(np.float32)
        if np.array_equal(single.astype(array.dtype), array, equal_nan=True):
            return kind, "f32", single
        return kind + "w", "f64", shortened(array)

    def add(self, tensor, mark="@"):
        kind, pool, elements = self.pool_of(tensor)
        key = (kind, tuple(tensor.shape), hashlib.sha256(elements.tobytes()).digest())
        if key not in self.known:
            code = ("b", "i", "f", "fw", "c", "cw").index(kind)
            sizes = list(tensor.shape) + [0] * (8 - tensor.ndim)
            self.known[key] = len(self.tensors)
            self.tensors.append([code, self.sizes[pool], tensor.ndim, *sizes])
            self.pools[pool].append(elements.reshape(-1))
            self.sizes[pool] += elements.size
        return f"{mark}{self.known[key]}"

    def text(self, value):
        """A value of a call as words."""
        if isinstance(value, torch.Tensor):
            return self.add(value, "&" if value.requires_grad else "@")
        if value is None:
            return "-"
        if isinstance(value, (bool, np.bool_)):
            return "t" if value else "f"
        if isinstance(value, (int, np.integer)):
            return f"i{int(value)}"
        if isinstance(value, float):
            return f"d{value!r}"
        if isinstance(value, slice):
            return " ".join(["slice[", *(self.text(one) for one in (value.start, value.stop, value.step)), "]"])
        if isinstance(value, (list, tuple)):
            return " ".join(["[", *(self.text(one) for one in value), "]"])
        if value is Ellipsis:
            return "s..."
        if isinstance(value, (str, torch.dtype, torch.layout, torch.memory_format, torch.device)):
            return "s" + urllib.parse.quote(str(value).removeprefix("torch."), safe="->,=.")
        raise TypeError(f"a value of type {type(value).__name__}")

    def write(self, path):
        arrays = {name: np.concatenate(parts) for name, parts in self.pools.items() if parts}
        calls = np.frombuffer("\n".join(self.lines).encode() + b"\n", dtype=np.uint8)
        np.savez_compressed(path, calls=calls, tensors=np.array(self.tensors, dtype=np.int64).reshape(-1), **arrays)


def shortened(array):
    """Float64 values rounded to 38 bits of mantissa."""
    bits = np.ascontiguousarray(array, dtype=np.float64).view(np.uint64)
    with np.errstate(all="ignore"):
        rounded = ((bits + np.uint64(1 << 13)) & ~np.uint64((1 << 14) - 1)).view(np.float64)
    return np.where(np.isfinite(rounded) & np.isfinite(array), rounded, array)


def through_u_s_v(out):
    u, s, v = out
    count = s.shape[-1]
    return [s, u[..., :count] * s.unsqueeze(-2) @ v[..., :count, :]]


def triangle_norms(out):
    return [out[0] @ out[1], out[1].abs()]


# Where an output is free in a sign or a phase: what is the same for all choices; the row computes it too.
PROCESS = {
    "linalg.svd": through_u_s_v,
    "linalg.qr": triangle_norms,
    "svd": lambda out: through_u_s_v((out[0], out[1], out[2].mH)),
    "linalg.eigh": lambda out: [out[0], (out[1] * out[0].unsqueeze(-2)) @ out[1].mT],
}


def outputs(name, op, call, process):
    result = op(*call[0], **call[1])
    result = PROCESS[name](result) if name in PROCESS else process(result)
    if isinstance(result, (bool, int, float)):
        result = torch.tensor(result)
    return tensors_of(list(result) if isinstance(result, tuple) else result)


def weighted(arrays, first=0):
    """The number that is differentiated."""
    total = torch.zeros((), dtype=torch.float64)
    for which, out in enumerate(arrays, first):
        if out is None or not (out.requires_grad and (out.is_floating_point() or out.is_complex())):
            continue
        parts = [out.real, out.imag] if out.is_complex() else [out]
        for number, part in enumerate(parts):
            total = total + (weights(part.numel(), which + number) * part.reshape(-1).double()).sum()
    return total


def derivative(value, inputs, again):
    if not value.requires_grad:
        return None
    return torch.autograd.grad(value, inputs, create_graph=again, allow_unused=True)


def call_of(name, sample):
    """Places and names of a sample; a list of places in brackets is a tensor."""
    places = [sample.input, *sample.args]
    if name == "__getitem__":
        inside = sample.args[0] if isinstance(sample.args[0], tuple) else (sample.args[0],)
        places[1] = [torch.tensor(one) if isinstance(one, list) else one for one in inside]
    return [places, dict(sample.kwargs)]


def called(name, op, call, process):
    fresh = mapped(lambda one: one.clone() if one.requires_grad else one, call)  # ops may write to their inputs
    if name == "__getitem__":
        fresh[0][1] = tuple(fresh[0][1])
    return outputs(name, op, fresh, process)


def type_words(wide, narrow):
    """The types of an output in Float32 and Float64 runs, where those are not the run's."""
    names = [str(out.dtype).removeprefix("torch.") for out in (narrow, wide)]
    plain = names in (["float32", "float64"], ["complex64", "complex128"])
    return "" if plain or not (wide.is_floating_point() or wide.is_complex()) else ":" + ",".join(names)


def answer(name, op, sample):
    """Call, outputs, their types, gradients and second gradients (None where PyTorch has none) of one sample."""
    call = mapped(widened, call_of(name, sample))
    inputs = [one for one in tensors_of(call) if one.requires_grad]
    out = called(name, op, call, sample.output_process_fn_grad)
    narrow = called(name, op, mapped(lambda one: one.detach().clone(), call_of(name, sample)), lambda result: result)
    types = [type_words(*both) for both in zip(out, narrow)]
    value = weighted(out)
    try:
        first = derivative(value, inputs, again=True)
    except (RuntimeError, NotImplementedError):
        return call, out, types, None, None
    try:
        second = derivative(weighted(first), inputs, again=False) if first else None
    except (RuntimeError, NotImplementedError):
        second = None
    return call, out, types, first, second


def elements(*nested):
    return sum(tensor.numel() for tensor in tensors_of(list(nested)))


def chosen(samples):
    """At most SAMPLES of the small ones, spread evenly; where all are large, the smallest."""
    def size(one):
        return elements(one.input, one.args, one.kwargs)

    small = [one for one in samples if size(one) <= ELEMENTS]
    if not small:
        return [one for one in sorted(samples, key=size)[:1] if size(one) <= 20 * ELEMENTS]
    if len(small) > SAMPLES:
        small = [small[k * len(small) // SAMPLES] for k in range(SAMPLES)]
    return small


def add_entry(family, name, op):
    torch.manual_seed(0)
    np.random.seed(0)
    random.seed(0)
    supported = op.supported_dtypes("cpu")
    dtype = next(one for one in TYPES if one in supported)
    grad = op.supports_autograd and dtype in WIDE
    samples = chosen(list(itertools.islice(op.sample_inputs("cpu", dtype, requires_grad=grad), 400)))
    family.lines.append(f"op {name} " + str(dtype).removeprefix("torch."))
    answers = [(elements(one[0], one[1], one[3], one[4]), one)
               for one in (answer(name, op, sample) for sample in samples)]
    kept = [one for size, one in answers if size <= KEPT] or [one for size, one in answers if size <= 10 * KEPT][:1]
    family.lines += [line(family, *one) for one in kept]
    return len(kept)


def line(family, call, out, types, first, second):
    """A sample as the text of one line."""
    narrow = mapped(lambda t: t.detach().to({w: n for n, w in WIDE.items()}.get(t.dtype, t.dtype))
                    .requires_grad_(t.requires_grad), call)
    words = [family.text(one) for one in narrow[0]] + ["|"]
    words += [f"{key}= {family.text(one)}" for key, one in narrow[1].items()] + ["|"]
    words += [family.text(one) + types[place] for place, one in enumerate(out)]
    for gradients in (first, second):
        if gradients:
            words += ["|", *(family.text(None if one is None else one.detach()) for one in gradients)]
    return " ".join(words)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("families", nargs="*")
    parser.add_argument("--unmapped", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    tables, entries = families(), {entry_name(op): op for op in op_db}
    if arguments.unmapped:
        print("\n".join(sorted(entries.keys() - set(itertools.chain(*tables.values())))))
        return
    for family in arguments.families or tables:
        file = Family()
        for name in tables[family]:
            kept = add_entry(file, name, entries[name])
            if not kept:
                sys.exit(f"{name}: no sample is small enough")
        path = HERE / "opinfo" / f"{family}.npz"
        file.write(path)
        print(f"{family}: {len(tables[family])} entries, {sum(not l.startswith('op ') for l in file.lines)} samples, "
              f"{math.ceil(path.stat().st_size / 1000)} kB")


if __name__ == "__main__":
    main()
