"""special.txt: erfinv. Values by mpmath, rounded once to the type; gradients by PyTorch."""

import mpmath as mp
import numpy as np
import torch

from . import text
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
