"""elementwise.txt, second part: arithmetic, comparisons, logic, where, clamp, cast. By NumPy in the type itself."""

import ctypes
import ctypes.util
import math

import mpmath as mp
import numpy as np

from . import text
from .unary import FLOATS, HALVES, INF, NAN, uniform

C_LIBRARY = ctypes.CDLL(ctypes.util.find_library("m"))
C_LIBRARY.pow.argtypes, C_LIBRARY.pow.restype = [ctypes.c_double, ctypes.c_double], ctypes.c_double
SPECIAL = [0.0, -0.0, 1.0, -1.0, 2.5, INF, -INF, NAN]
ARITHMETIC = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "mod": np.mod,
    "floor_divide": np.floor_divide,
}
CHOICES = {"max": np.maximum, "min": np.minimum}
COMPARISONS = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
LOGIC = {"logical_and": np.logical_and, "logical_or": np.logical_or, "logical_xor": np.logical_xor}
NATIVE = {"Float16": np.float16, "Float32": np.float32, "Float64": np.float64, "BFloat16": np.float32}


def float_pairs(rng, dtype):
    """Ordinary pairs, equal ones, and all pairs of special values."""
    a = text.rounded(uniform(rng, -10, 10, 20) + [1.5, 1.5, -3.0, 7.0, 1e-3, 6.0], dtype)
    b = text.rounded(uniform(rng, -4, 4, 20) + [1.5, -1.5, 3.0, -3.5, 1e3, -0.25], dtype)
    grid = np.array(SPECIAL)
    return (np.concatenate([a, np.repeat(grid, len(grid))]), np.concatenate([b, np.tile(grid, len(grid))]))


def write_floats(file, rng):
    for dtype in FLOATS + HALVES:
        a, b = float_pairs(rng, dtype)
        native = [x.astype(NATIVE[dtype]) for x in (a, b)]
        with np.errstate(all="ignore"):
            for name, function in (ARITHMETIC | CHOICES).items():
                tol = "ulp=0" if name in CHOICES else "exact"
                text.case(file, name, dtype, [a, b], [text.rounded(function(*native).astype(np.float64), dtype)], tol)
            for name, function in COMPARISONS.items():
                text.case(file, name, dtype, [a, b], [("Bool", function(*native))], "exact")
    for dtype in FLOATS:
        write_range_limits(file, dtype)


def write_range_limits(file, dtype):
    """Arithmetic at the limits of the type: overflow, gradual underflow, rounding to even."""
    kind = NATIVE[dtype]
    big, tiny = float(np.finfo(kind).max), float(np.finfo(kind).tiny)
    eps, least = float(np.finfo(kind).eps), float(np.finfo(kind).smallest_subnormal)
    a = np.array([big, big, tiny, least, 1.0, 1.0, 1.0, -big, 3 * least])
    b = np.array([big, 2.0, 0.5, 0.5, eps / 2, 1.5 * eps, -eps / 4, 1.25, 2.0])
    with np.errstate(all="ignore"):
        for name in ("add", "sub", "mul", "div"):
            result = ARITHMETIC[name](a.astype(kind), b.astype(kind)).astype(np.float64)
            text.case(file, name, dtype, [a, b], [result], "exact", samples="subnormal")


def integer_pairs(rng, kind):
    info = np.iinfo(kind)
    low = max(info.min, -100)
    a = np.concatenate([rng.integers(low, 100, 10), [info.max, info.min, info.max, 7, 7, 5, 0]]).astype(kind)
    b = np.concatenate([rng.integers(1, 12, 10), [1, 1, info.max, 3, 7, 5, 9]]).astype(kind)
    if info.min < 0:
        b[::3] = -b[::3]
    return a, b


def write_integers(file, rng):
    """Arithmetic wraps; mod has the sign of the divisor, floor_divide is the quotient to it; div gives Float32."""
    for dtype, kind in text.INTEGERS.items():
        a, b = integer_pairs(rng, kind)
        pair = [a.astype(np.int64), b.astype(np.int64)]
        with np.errstate(over="ignore"):
            for name in ("add", "sub", "mul", "mod", "floor_divide", "max", "min"):
                function = (ARITHMETIC | CHOICES)[name]
                text.case(file, name, dtype, pair, [function(a, b).astype(np.int64)], "exact")
        for name, function in COMPARISONS.items():
            text.case(file, name, dtype, pair, [("Bool", function(a, b))], "exact")
        small = np.abs(pair[0]) < 2**24
        pair = [pair[0][small], pair[1][small]]
        quotient = pair[0].astype(np.float32) / pair[1].astype(np.float32)
        text.case(file, "div", dtype, pair, [("Float32", quotient.astype(np.float64))], "exact")
    divided = [np.array([5, -5, 0]), np.array([0, 0, 0])]
    for name in ("mod", "floor_divide"):
        text.case(file, name, "Int32", divided, [np.array([0, 0, 0])], "exact", samples="special")
    text.case(file, "div", "Int32", divided, [("Float32", np.array([INF, -INF, NAN]))], "exact", samples="special")


def write_mixed_types(file, rng):
    """An integer or Bool with a float gives that float; all of it broadcasts."""
    x = text.dyadic(rng, (3, 1))
    n = rng.integers(-5, 6, (1, 4))
    flags = rng.integers(0, 2, (3, 4)).astype(bool)
    for name in ("add", "mul", "sub"):
        function = ARITHMETIC[name]
        for dtype in ("Float32", "Float16", "Float64"):
            text.case(file, name, dtype, [(dtype, x), ("Int32", n)], [function(x, n)], "exact")
    text.case(file, "mul", "Float32", [("Float32", x), ("Bool", flags)], [x * flags], "exact")
    text.case(file, "lt", "Float32", [("Float32", x), ("Int32", n)], [("Bool", x < n)], "exact")
    a = text.dyadic(rng, (2, 3, 4))
    for shape in ((2,), (2, 1), (2, 3), (1, 3), (1, 1, 4)):  # sizes meet from the first dimension on, as in Julia
        b = text.dyadic(rng, shape)
        aligned = b.reshape(shape + (1,) * (3 - len(shape)))
        text.case(file, "add", "Float32", [a, b], [a + aligned], "exact")
        text.case(file, "sub", "Float32", [b, a], [aligned - a], "exact")
    text.case(file, "add", "Float32", [a, np.array(0.5)], [a + 0.5], "exact")
    text.case(file, "mul", "Float32", [np.zeros((0, 3)), text.dyadic(rng, (1, 3))], [np.zeros((0, 3))], "exact")


def write_complex(file, rng):
    a = text.dyadic(rng, 8) + 1j * text.dyadic(rng, 8)
    b = text.dyadic(rng, 8, 0.5, 2.0) + 1j * text.dyadic(rng, 8)
    for name in ("add", "sub", "mul", "div"):
        text.case(file, name, "ComplexF32", [a, b], [ARITHMETIC[name](a, b)], "rtol=1e-06 atol=1e-06")
    text.case(file, "neg", "ComplexF32", [a], [-a], "exact")
    text.case(file, "abs", "ComplexF32", [a], [("Float32", np.abs(a))], "rtol=1e-06")
    text.case(
        file,
        "eq",
        "ComplexF32",
        [a, np.where(np.arange(8) % 2, a, b)],
        [("Bool", a == np.where(np.arange(8) % 2, a, b))],
        "exact",
    )


def exact_power(x, y, dtype):
    """x^y rounded once; special arguments as in C's pow (x^0 = 1, 1^y = 1, a negative base needs an integer)."""
    if not (math.isfinite(x) and math.isfinite(y)) or x == 0 or (x < 0 and y != int(y)):
        return C_LIBRARY.pow(x, y)
    return text.round_real(mp.power(mp.mpf(x), mp.mpf(y)), dtype)


def write_power(file, rng):
    for dtype in FLOATS + HALVES:
        x = text.rounded(uniform(rng, 0.01, 20, 24) + [-2, -2, -3, -1.5, -0.5, 1 + 2.0**-7, 10, 10], dtype)
        y = text.rounded(uniform(rng, -5, 5, 24) + [3, -2, 5, 4, -3, 300, -4, 0.5], dtype)
        tol = {"Float32": "ulp=2", "Float64": "ulp=4"}.get(dtype, "ulp=1")
        expected = np.array([exact_power(a, b, dtype) for a, b in zip(x, y)])
        text.case(file, "pow", dtype, [x, y], [expected], tol, samples="normal")
        if dtype in HALVES:
            continue
        grid = np.array(SPECIAL + [0.5, -0.5, 2.0, 3.0, -3.0])
        x, y = np.repeat(grid, len(grid)), np.tile(grid, len(grid))
        expected = np.array([exact_power(a, b, dtype) for a, b in zip(x, y)])
        text.case(file, "pow", dtype, [x, y], [expected], tol, samples="special")
        big = 3e38 if dtype == "Float32" else 1.7e308
        x = text.rounded([big, 1 / big, 10, 0.1, 1.0000001, 1e-10, -10.0], dtype)
        y = text.rounded([2, 2, 400, 400, 1e9, 3.5, 401], dtype)
        expected = np.array([exact_power(a, b, dtype) for a, b in zip(x, y)])
        text.case(file, "pow", dtype, [x, y], [expected], tol, samples="edge")


def write_integer_powers(file, rng):
    """pow(x, n) with a C++ integer n multiplies in the type of x; of two integer arrays it gives Float32."""
    x = np.array([0, 1, 2, -3, 5, -1, 7])
    for n in (0, 1, 2, 3, 5):
        text.case(file, "pow", "Int32", [x], [x**n], "exact", n=n)
        for dtype, tol in (("Float32", "rtol=5e-07"), ("Float64", "rtol=1e-15")):
            points = text.rounded(x * 0.75, dtype)
            text.case(file, "pow", dtype, [points], [text.rounded(points**n, dtype)], tol, n=n)
    points = text.dyadic(rng, 8, 0.25, 3.0)
    for n in (-1, -2):
        text.case(file, "pow", "Float32", [points], [text.rounded(points ** float(n), "Float32")], "rtol=5e-07", n=n)
    y = np.array([3, 0, -2, 3, -1, 7, 2])
    expected = text.rounded([exact_power(float(a), float(b), "Float32") for a, b in zip(x, y)], "Float32")
    text.case(file, "pow", "Int32", [x, y], [("Float32", expected)], "ulp=2")


def write_angle_of_two(file, rng):
    grid = [0.0, -0.0, 1.0, -1.0, INF, -INF, NAN]
    for dtype in FLOATS:
        y, x = text.rounded(uniform(rng, -5, 5, 24), dtype), text.rounded(uniform(rng, -5, 5, 24), dtype)
        y[:4], x[4:8] = y[:4] * 2.0**-40, x[4:8] * 2.0**-40
        expected = np.array([text.round_real(mp.atan2(mp.mpf(a), mp.mpf(b)), dtype) for a, b in zip(y, x)])
        text.case(file, "atan2", dtype, [y, x], [expected], "ulp=4", samples="normal")
        y, x = np.repeat(grid, len(grid)), np.tile(grid, len(grid))
        expected = text.rounded(np.arctan2(y, x), dtype)
        text.case(file, "atan2", dtype, [y, x], [expected], "ulp=4", samples="special")


def write_sum_of_exponentials(file, rng):
    grid = [0.0, -0.0, 1.0, -1.0, INF, -INF, NAN]
    tolerances = {"Float32": "ulp=4 atol=1e-07", "Float64": "ulp=4 atol=2e-16"}
    for dtype in FLOATS:
        x, y = text.rounded(uniform(rng, -9, 9, 24), dtype), text.rounded(uniform(rng, -9, 9, 24), dtype)
        x[:4], y[2:6] = x[:4] * 1e6, y[2:6] * 1e6
        expected = [text.round_real(mp.log(mp.exp(mp.mpf(a)) + mp.exp(mp.mpf(b))), dtype) for a, b in zip(x, y)]
        text.case(file, "logaddexp", dtype, [x, y], [np.array(expected)], tolerances[dtype], samples="normal")
        x, y = np.repeat(grid, len(grid)), np.tile(grid, len(grid))
        expected = text.rounded(np.logaddexp(x, y), dtype)
        text.case(file, "logaddexp", dtype, [x, y], [expected], tolerances[dtype], samples="special")


def write_logic(file):
    a, b = np.array([0, 0, 1, 1], dtype=bool), np.array([0, 1, 0, 1], dtype=bool)
    for name in ("add", "sub", "mul"):  # Bool counts as Int32
        text.case(file, name, "Bool", [a, b], [("Int32", ARITHMETIC[name](a.astype(int), b.astype(int)))], "exact")
    for name, function in (LOGIC | {"eq": np.equal, "ne": np.not_equal}).items():
        text.case(file, name, "Bool", [a, b], [function(a, b)], "exact")
    text.case(file, "logical_not", "Bool", [a], [~a], "exact")


def write_selection(file, rng):
    for dtype in ("Float32", "Float64", "Float16", "BFloat16", "Int32", "Bool"):
        condition = rng.integers(0, 2, (3, 4)).astype(bool)
        a, b = [text.rounded(text.dyadic(rng, (3, 4)), dtype) for _ in range(2)]
        text.case(file, "where", dtype, [("Bool", condition), a, b], [np.where(condition, a, b)], "exact")
    column, row = text.dyadic(rng, (3, 1)), text.dyadic(rng, (1, 4))
    condition = rng.integers(0, 2, (3, 1)).astype(bool)
    text.case(file, "where", "Float32", [("Bool", condition), column, row], [np.where(condition, column, row)], "exact")
    nans = [("Bool", np.array([True, False])), np.array([1.0, NAN]), np.array([NAN, 2.0])]
    text.case(file, "where", "Float32", nans, [np.array([1.0, 2.0])], "exact", samples="special")
    points = np.array([-3.0, -1.0, -0.25, 0.0, 0.5, 1.5, 2.0, INF, -INF, NAN])
    for dtype in FLOATS + HALVES:
        text.case(file, "clamp", dtype, [points], [np.clip(points, -1.0, 1.5)], "exact", lo=-1.0, hi=1.5)
    integers = np.array([-9, -2, 0, 3, 8])
    text.case(file, "clamp", "Int32", [integers], [np.clip(integers, -2, 3)], "exact", lo=-2, hi=3)


def write_casts(file):
    write_casts_of_floats(file)
    write_casts_of_integers(file)


def write_casts_of_floats(file):
    """To integers: truncated, the nearest bound where it does not fit, NaN to 0; to Bool: not zero."""
    extreme = np.array([1e20, -1e20, 300.0, -300.0, INF, -INF, NAN])
    source = text.rounded(extreme, "Float32")
    for to, kind in text.INTEGERS.items():
        low, high = np.iinfo(kind).min, np.iinfo(kind).max
        result = [0 if math.isnan(x) else low if x < low else high if x > high else int(x) for x in extreme]
        text.case(file, "cast", "Float32", [source], [(to, np.array(result))], "exact", to=to, samples="special")
    floats = np.array([0.0, -0.0, 1.9, -1.9, 2.5, 100.0, -100.25, 3.0])
    for to in ("Int32", "Int64", "Int8", "Bool"):
        result = floats != 0 if to == "Bool" else np.trunc(floats).astype(np.int64)
        text.case(file, "cast", "Float32", [text.rounded(floats, "Float32")], [(to, result)], "exact", to=to)
    small = np.array([0.0, 1.9, 255.0])
    text.case(file, "cast", "Float32", [small], [("UInt8", np.array([0, 1, 255]))], "exact", to="UInt8")
    wide = np.array(
        [1 / 3, -2 / 3, 1e-50, 1e300, -1e300, 1 + 2.0**-24, 1 + 3 * 2.0**-24, 65519.9, 65520.0]
        + [2.0**-25, 1.5 * 2.0**-25, 1.00390625, 1.01171875, 3.4e38, INF, -INF, NAN, -0.0]
    )
    narrower = {"Float64": ("Float32", "Float16", "BFloat16"), "Float32": ("Float16", "BFloat16", "Float64")}
    for dtype, targets in narrower.items():
        values = text.rounded(wide, dtype)
        for to in targets:
            text.case(file, "cast", dtype, [values], [(to, text.rounded(values, to))], "exact", to=to)


def write_casts_of_integers(file):
    """Between integers: the low bits."""
    integers = np.array([0, 1, -1, 127, 128, 255, 256, -129, 2**24 + 1, -(2**24) - 3, 2**31 - 1])
    for to in ("Float32", "Float64", "Float16", "Bool", "Int64", "UInt8", "Int8", "UInt32"):
        result = integers != 0 if to == "Bool" else text.rounded(integers, to)
        text.case(file, "cast", "Int32", [integers], [(to, result)], "exact", to=to)
    long = np.array([2**53 + 1, -(2**62) - 1, 2**40 + 2**15, 5])
    for to in ("Float32", "Float64", "Int32"):
        text.case(file, "cast", "Int64", [long], [(to, text.rounded(long, to))], "exact", to=to)
    flags = np.array([True, False])
    for to in ("Float32", "Int32", "UInt8"):
        text.case(file, "cast", "Bool", [flags], [(to, text.rounded(flags, to))], "exact", to=to)


def write(file):
    rng = np.random.default_rng(2)
    write_floats(file, rng)
    write_integers(file, rng)
    write_mixed_types(file, rng)
    write_complex(file, rng)
    write_power(file, rng)
    write_integer_powers(file, rng)
    write_angle_of_two(file, rng)
    write_sum_of_exponentials(file, np.random.default_rng(12))
    write_logic(file)
    write_selection(file, rng)
    write_casts(file)
