"""movement.txt: ops that only move elements. By NumPy with order="F"; gradients by PyTorch."""

import numpy as np
import torch

from . import text
from .gradient import column_major_reshape, gradient_case

TYPES = ["Float32", "Int32", "Bool", "Float64", "BFloat16"]
SHAPE = (4, 3, 2)


def sample(rng, dtype, shape):
    """Different elements wherever the type has enough."""
    if dtype == "Bool":
        return rng.integers(0, 2, shape).astype(bool)
    return text.rounded(text.distinct(rng, shape, -1.5) * (8 if dtype == "Int32" else 1), dtype)


TO_END = 2**63 - 1


def slices(ranges):
    """Attributes of slice: range0, range1, ... = start,stop,step; half-open, from 0, TO_END where there is no stop."""
    values = [(0 if r.start is None else r.start, TO_END if r.stop is None else r.stop, r.step or 1) for r in ranges]
    return {f"range{d}": value for d, value in enumerate(values)}


CALLS = [  # op, attributes, shape, NumPy, PyTorch
    (
        "reshape",
        {"shape": (6, 4)},
        SHAPE,
        lambda x: x.reshape((6, 4), order="F"),
        lambda x: column_major_reshape(x, (6, 4)),
    ),
    (
        "reshape",
        {"shape": (2, -1, 3)},
        SHAPE,
        lambda x: x.reshape((2, 4, 3), order="F"),
        lambda x: column_major_reshape(x, (2, 4, 3)),
    ),
    ("reshape", {"shape": (24,)}, SHAPE, lambda x: x.ravel(order="F"), lambda x: column_major_reshape(x, (24,))),
    ("reshape", {"shape": (1, 4, 1, 3, 2)}, SHAPE, lambda x: x.reshape((1, 4, 1, 3, 2), order="F"), None),
    ("permute", {"dims": (2, 0, 1)}, SHAPE, lambda x: x.transpose(2, 0, 1), lambda x: x.permute(2, 0, 1)),
    ("permute", {"dims": (1, 0, 2)}, SHAPE, lambda x: x.transpose(1, 0, 2), None),
    ("permute", {"dims": (2, 1, 0)}, SHAPE, lambda x: x.transpose(2, 1, 0), None),
    ("transpose", {}, (4, 3), lambda x: x.T, lambda x: x.T),
    ("transpose", {}, (4,), lambda x: x.reshape(1, 4), lambda x: x.reshape(1, 4)),
    ("transpose", {}, SHAPE, lambda x: x.transpose(1, 0, 2), lambda x: x.transpose(0, 1)),
    ("flip", {"dim": 0}, SHAPE, lambda x: np.flip(x, 0), lambda x: torch.flip(x, (0,))),
    ("flip", {"dim": 1}, SHAPE, lambda x: np.flip(x, 1), lambda x: torch.flip(x, (1,))),
    ("flip", {"dim": -1}, SHAPE, lambda x: np.flip(x, -1), None),
    ("flatten", {}, SHAPE, lambda x: x.reshape((12, 2), order="F"), lambda x: column_major_reshape(x, (12, 2))),
    ("flatten", {}, (4,), lambda x: x.reshape(1, 4), None),
    ("squeeze", {}, (4, 1, 2, 1), lambda x: x.reshape(4, 2), None),
    ("squeeze", {"dim": 1}, (4, 1, 2, 1), lambda x: x.reshape(4, 2, 1), None),
    ("unsqueeze", {"dim": 1}, (4, 2), lambda x: x.reshape(4, 1, 2), None),
    ("unsqueeze", {"dim": -1}, (4, 2), lambda x: x.reshape(4, 2, 1), None),
    (
        "expand",
        {"shape": (4, 3, 2)},
        (4, 3),
        lambda x: np.broadcast_to(x[:, :, None], SHAPE),
        lambda x: x.unsqueeze(2).expand(*SHAPE),
    ),
    ("expand", {"shape": (2, 3)}, (), lambda x: np.broadcast_to(x, (2, 3)), lambda x: x.expand(2, 3)),
    ("expand", {"shape": (4, 3, 2)}, (4, 1, 2), lambda x: np.broadcast_to(x, SHAPE), lambda x: x.expand(*SHAPE)),
    ("expand", {"shape": (4, 3, 2)}, (1, 1, 1), lambda x: np.broadcast_to(x, SHAPE), lambda x: x.expand(*SHAPE)),
    ("tile", {"times": 2, "dim": 0}, (2, 3), lambda x: np.tile(x, (2, 1)), lambda x: x.repeat(2, 1)),
    ("tile", {"times": 3, "dim": -1}, (2, 3), lambda x: np.tile(x, (1, 3)), lambda x: x.repeat(1, 3)),
    ("tile", {"times": 1, "dim": 0}, (2, 3), lambda x: x, None),
    (
        "repeat",
        {"times": 2, "dim": 0},
        (3, 2),
        lambda x: np.repeat(x, 2, 0),
        lambda x: torch.repeat_interleave(x, 2, 0),
    ),
    (
        "repeat",
        {"times": 3, "dim": 1},
        (3, 2),
        lambda x: np.repeat(x, 3, 1),
        lambda x: torch.repeat_interleave(x, 3, 1),
    ),
]
SLICES = [  # one range per dim
    (slice(1, 3), slice(None), slice(None)),
    (slice(None), slice(0, 3, 2), slice(1, 2)),
    (slice(-3, -1), slice(-2, 3), slice(None)),
    (slice(3, 0, -1), slice(None), slice(None)),
    (slice(3, 0, -2), slice(-1, 0, -1), slice(0, 1)),
    (slice(2, 2), slice(None), slice(None)),
    (slice(-1, None, -1), slice(None, None, 2), slice(1, None)),
    (slice(2, None, -2), slice(1, -1), slice(0, -1)),
]
PADS = [((1, 2), (0, 0), (0, 1)), ((0, 0), (2, 0), (1, 1))]  # (low, high) per dim


def write_calls(file, rng):
    for op, attributes, shape, function, _ in CALLS:
        for dtype in TYPES:
            x = sample(rng, dtype, shape)
            text.case(file, op, dtype, [x], [function(x)], "exact", **attributes)


def write_slices_and_pads(file, rng):
    for ranges in SLICES:
        for dtype in TYPES[:3]:
            x = sample(rng, dtype, SHAPE)
            text.case(file, "slice", dtype, [x], [x[ranges]], "exact", **slices(ranges))
    for pads in PADS:
        for dtype, value in (("Float32", 0.0), ("Float32", -1.5), ("Int32", 7), ("Bool", 0)):
            x = sample(rng, dtype, SHAPE)
            low, high = zip(*pads)
            padded = np.pad(x, pads, constant_values=value)
            text.case(file, "pad", dtype, [x], [padded], "exact", low=low, high=high, value=value)


def write_joins(file, rng):
    for dtype in TYPES:
        for dim in (0, 1, 2, -1):
            shapes = [[4, 3, 2] for _ in range(3)]
            for shape, size in zip(shapes, (2, 1, 3)):
                shape[dim] = size
            parts = [sample(rng, dtype, tuple(s)) for s in shapes]
            text.case(file, "concat", dtype, parts, [np.concatenate(parts, axis=dim)], "exact", dim=dim)
        for dim in (0, 1, 2, -1):
            parts = [sample(rng, dtype, (3, 2)) for _ in range(2)]
            text.case(file, "stack", dtype, parts, [np.stack(parts, axis=dim)], "exact", dim=dim)
    parts = [np.zeros((0, 2)), text.dyadic(rng, (3, 2))]
    text.case(file, "concat", "Float32", parts, [parts[1]], "exact", dim=0, samples="empty")


def write_empty_and_scalar(file):
    empty = np.zeros((0, 3))
    text.case(file, "reshape", "Float32", [empty], [np.zeros((3, 0, 2))], "exact", shape=(3, 0, 2), samples="empty")
    text.case(file, "transpose", "Float32", [empty], [empty.T], "exact", samples="empty")
    text.case(file, "flip", "Float32", [empty], [empty], "exact", dim=0, samples="empty")
    text.case(
        file,
        "pad",
        "Float32",
        [empty],
        [np.zeros((2, 3))],
        "exact",
        low=(1, 0),
        high=(1, 0),
        value=0.0,
        samples="empty",
    )
    text.case(
        file, "reshape", "Float32", [np.array([[2.5]])], [np.array(2.5)], "exact", shape="scalar", samples="scalar"
    )


def write_gradients(file, rng):
    for op, attributes, shape, _, function in CALLS:
        if function:
            gradient_case(file, op, function, [text.dyadic(rng, shape)], rng, **attributes)
    for ranges in SLICES[:3]:
        gradient_case(file, "slice", lambda x: x[ranges], [text.dyadic(rng, SHAPE)], rng, **slices(ranges))
    backwards = (slice(3, 0, -2), slice(None), slice(None))
    gradient_case(
        file, "slice", lambda x: torch.flip(x[1:4:2], (0,)), [text.dyadic(rng, SHAPE)], rng, **slices(backwards)
    )
    for pads in PADS:
        low, high = zip(*pads)
        flat = [n for pair in reversed(pads) for n in pair]  # PyTorch begins with the last dim
        gradient_case(
            file,
            "pad",
            lambda x: torch.nn.functional.pad(x, flat, value=0.5),
            [text.dyadic(rng, SHAPE)],
            rng,
            low=low,
            high=high,
            value=0.5,
        )
    parts = [text.dyadic(rng, (2, 3)), text.dyadic(rng, (1, 3)), text.dyadic(rng, (2, 3))]
    gradient_case(file, "concat", lambda *x: torch.cat(x, 0), parts, rng, dim=0)
    gradient_case(file, "stack", lambda *x: torch.stack(x, 1), parts[::2], rng, dim=1)


def write(file):
    rng = np.random.default_rng(6)
    write_calls(file, rng)
    write_slices_and_pads(file, rng)
    write_joins(file, rng)
    write_empty_and_scalar(file)
    write_gradients(file, rng)
