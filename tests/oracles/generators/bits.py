"""bits.txt: ops on the bits of integers and of Bool, by NumPy in the type itself."""

import numpy as np

from . import text

LOGIC = {"bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor}
SHIFTS = {"left_shift": np.left_shift, "right_shift": np.right_shift}
INTEGERS = text.INTEGERS | {"Int16": np.int16, "UInt16": np.uint16, "UInt64": np.uint64}


def python_numbers(values):
    """Numbers beyond Int64 too."""
    return np.array([int(v) for v in values.ravel(order="F")], dtype=object).reshape(values.shape, order="F")


def numbers(rng, kind, count):
    """Random bits, and the ends of the type."""
    info = np.iinfo(kind)
    drawn = rng.integers(info.min, info.max, count, dtype=kind, endpoint=True)
    return np.concatenate([drawn, np.array([info.max, info.min, info.max, info.min, 0, 1, 5, 100], dtype=kind)])


def counts(rng, kind, size):
    """Those of places, and those outside: the number of bits, more, the highest, and negative ones."""
    info = np.iinfo(kind)
    outside = [info.bits, info.bits + 1, info.max, info.bits - 1] + ([-1, -info.bits, info.min] if info.min else [])
    inside = rng.integers(0, info.bits, size - len(outside))
    return rng.permutation(np.array([int(n) for n in inside] + outside, dtype=kind))


def write_types(file, rng):
    for dtype, kind in INTEGERS.items():
        a, b = numbers(rng, kind, 24), rng.permutation(numbers(rng, kind, 24))
        pair = [python_numbers(a), python_numbers(b)]
        for name, function in LOGIC.items():
            text.case(file, name, dtype, pair, [python_numbers(function(a, b))], "exact")
        text.case(file, "bitwise_not", dtype, [pair[0]], [python_numbers(np.bitwise_not(a))], "exact")
        for name, function in SHIFTS.items():
            n = counts(rng, kind, a.size)
            inputs = [pair[0], python_numbers(n)]
            text.case(file, name, dtype, inputs, [python_numbers(function(a, n))], "exact")


def write_shapes(file, rng):
    """Sizes meet from the first dimension on; two types give the one that holds both; Bool counts as 0 and 1."""
    a, row = rng.integers(-100, 100, (3, 1)), rng.integers(0, 8, (1, 4))
    flags, others = np.array([0, 0, 1, 1], dtype=bool), np.array([0, 1, 0, 1], dtype=bool)
    for name, function in (LOGIC | SHIFTS).items():
        wide = function(a.astype(np.int8), row.astype(np.int32))
        text.case(file, name, "Int8", [a, ("Int32", row)], [("Int32", wide)], "exact")
        mixed = function(a.astype(np.int8), row.astype(np.uint8))
        text.case(file, name, "Int8", [a, ("UInt8", row)], [("Int16", mixed)], "exact")
        text.case(file, name, "Int64", [np.zeros((0, 3)), np.ones((1, 3))], [np.zeros((0, 3))], "exact",
                  samples="empty")  # fmt: skip
    for name, function in LOGIC.items():
        text.case(file, name, "Bool", [flags, others], [function(flags, others)], "exact")
        numbers_too = function(flags, np.array([7, 6, 5, 4], dtype=np.int32))
        text.case(file, name, "Int32", [("Bool", flags), np.array([7, 6, 5, 4])], [numbers_too], "exact")
    text.case(file, "bitwise_not", "Bool", [flags], [np.bitwise_not(flags)], "exact")
    for name, function in SHIFTS.items():
        shifted = function(flags.astype(np.int32), others.astype(np.int32))
        text.case(file, name, "Bool", [flags, others], [("Int32", shifted)], "exact")


def write(file):
    rng = np.random.default_rng(21)
    write_types(file, rng)
    write_shapes(file, rng)
