"""special.txt: erfinv, erfc, Bessel functions, hypot, signs. Values by mpmath or NumPy; gradients by PyTorch."""

import mpmath as mp
import numpy as np
import torch

from . import text
from .binary import float_pairs
from .gradient import gradient_case
from .unary import FLOATS, FOUR, HALVES, INF, NAN, spread, uniform


def inverse(x):
    return mp.nan if abs(x) > 1 else mp.erfinv(x)


def ordinary(rng, dtype):
    digits = text.FORMATS[dtype][0]
    near_one = [s * (1 - 2.0**-k) for k in range(1, digits + 1, 2) for s in (1, -1)]
    return uniform(rng, -1, 1, 24) + near_one + spread(rng, -30, -1, 12)


def edges(dtype):
    """Both sides of where the approximations meet, and the neighbours of 1."""
    digits, smallest = text.FORMATS[dtype]
    meet = text.neighbours(mp.mpf("0.85"), dtype) + text.neighbours(mp.sqrt(1 - mp.exp(-5)), dtype)
    meet += text.neighbours(1 - 2 * mp.exp(-25), dtype)
    least = 2.0 ** (smallest - digits + 1)
    return [1.0, -1.0, 2.0, -2.0, 1 + 2.0 ** (1 - digits), 1 - 2.0**-digits], meet, [least, -3 * least, 2.0**smallest]


def moderate(rng, dtype):
    tail = 9 if dtype == "Float32" else 26
    return uniform(rng, -tail, tail, 24) + uniform(rng, -2, 2, 12) + spread(rng, -30, 1, 12)


def wide(rng, dtype):
    """Both sides of where series end, and far beyond."""
    meet = text.neighbours(mp.mpf(8 if dtype == "Float32" else 16), dtype)
    top = float(mp.log(text.largest(dtype)))
    return moderate(rng, dtype) + meet + uniform(rng, -top, top, 12)


EIGHT = {"Float32": "ulp=8", "Float64": "ulp=16"}
# name: (exact function, ordinary arguments, values at Inf and -Inf, what gives the gradient)
FUNCTIONS = {
    "erfc": (mp.erfc, moderate, (0.0, 2.0), torch.erfc),
    "i0": (lambda x: mp.besseli(0, x), wide, (INF, INF), torch.special.i0),
    "i0e": (lambda x: mp.besseli(0, x) * mp.exp(-abs(x)), wide, (0.0, 0.0), torch.special.i0e),
    "i1": (lambda x: mp.besseli(1, x), wide, (INF, -INF), torch.special.i1),
    "i1e": (lambda x: mp.besseli(1, x) * mp.exp(-abs(x)), wide, (0.0, -0.0), torch.special.i1e),
}


def write_functions(file, rng):
    for name, (function, arguments, (high, low), gradient) in FUNCTIONS.items():
        for dtype in FLOATS:
            points = text.rounded(arguments(rng, dtype), dtype)
            expected = np.array([text.round_real(function(mp.mpf(float(x))), dtype) for x in points])
            text.case(file, name, dtype, [points], [expected], EIGHT[dtype], samples="normal")
            ends = [text.round_real(function(mp.mpf(0)), dtype)] * 2
            if name.startswith("i1"):
                ends[1] = -0.0
            special = np.array([0.0, -0.0, INF, -INF, NAN])
            text.case(file, name, dtype, [special], [np.array([*ends, high, low, NAN])], "exact", samples="special")
        for dtype in HALVES:
            points = text.rounded(uniform(rng, -3, 3, 12), dtype)
            expected = np.array([text.round_real(function(mp.mpf(float(x))), dtype) for x in points])
            text.case(file, name, dtype, [points], [expected], "ulp=1", samples="normal")
        gradient_case(file, name, gradient, [text.dyadic(rng, (3, 4), -3.0, 3.0)], rng)


def write_pairs(file, rng):
    """hypot and copysign of ordinary pairs and of all pairs of special values; signbit of these."""
    for dtype in FLOATS + HALVES:
        a, b = float_pairs(rng, dtype)
        sizes = [mp.sqrt(mp.mpf(float(x)) ** 2 + mp.mpf(float(y)) ** 2) for x, y in zip(a[:26], b[:26])]
        with np.errstate(all="ignore"):
            special = np.hypot(a[26:], b[26:])
        expected = np.concatenate([[text.round_real(x, dtype) for x in sizes], text.rounded(special, dtype)])
        text.case(file, "hypot", dtype, [a, b], [expected], "ulp=2")
        text.case(file, "copysign", dtype, [a, b], [np.copysign(a, b)], "exact")
        text.case(file, "signbit", dtype, [b], [("Bool", np.signbit(b))], "exact")
    pair = [text.dyadic(rng, (3, 4), 0.5, 3.0), text.dyadic(rng, (3, 4), -3.0, -0.5)]
    gradient_case(file, "hypot", torch.hypot, pair, rng)
    gradient_case(file, "copysign", torch.copysign, pair, rng)


def write(file):
    rng = np.random.default_rng(22)
    for dtype in FLOATS:
        ends, meet, small = edges(dtype)
        for samples, points in (("normal", ordinary(rng, dtype) + meet), ("edge", ends), ("subnormal", small)):
            points = text.rounded(points, dtype)
            expected = np.array([text.round_real(inverse(mp.mpf(float(x))), dtype) for x in points])
            text.case(file, "erfinv", dtype, [points], [expected], FOUR[dtype], samples=samples)
        special = np.array([0.0, -0.0, INF, -INF, NAN])
        text.case(file, "erfinv", dtype, [special], [np.array([0.0, -0.0, NAN, NAN, NAN])], "exact", samples="special")
    for dtype in HALVES:
        points = text.rounded(uniform(rng, -1, 1, 12), dtype)
        expected = np.array([text.round_real(inverse(mp.mpf(float(x))), dtype) for x in points])
        text.case(file, "erfinv", dtype, [points], [expected], "ulp=1", samples="normal")
    gradient_case(file, "erfinv", torch.erfinv, [text.dyadic(rng, (3, 4), -0.875, 0.875)], rng)
    write_functions(file, rng)
    write_pairs(file, rng)
