"""activations.txt: values by mpmath from NNlib's definitions, gradients by PyTorch away from the kinks."""

import math

import mpmath as mp
import numpy as np
import torch
import torch.nn.functional as functional

from . import text
from .gradient import gradient_case
from .unary import FLOATS, HALVES, spread, uniform

SELU_LAMBDA, SELU_ALPHA = mp.mpf("1.0507009873554805"), mp.mpf("1.6732632423543772")
TOLERANCES = {
    "Float32": "ulp=8 atol=1e-06",
    "Float64": "ulp=16 atol=2e-15",
    "Float16": "ulp=1 atol=1e-06",
    "BFloat16": "ulp=1 atol=1e-06",
}


def clamp(x, low, high):
    return min(max(x, mp.mpf(low)), mp.mpf(high))


def sigmoid(x):
    return 1 / (1 + mp.exp(-x))


def softplus(x):
    return mp.log1p(mp.exp(x))


def hardsigmoid(x):
    return clamp((x + 3) / 6, 0, 1)


def gelu(x):
    inner = mp.sqrt(2 / mp.pi) * (x + mp.mpf("0.044715") * x**3)
    return x * sigmoid(2 * inner)  # equals x/2 (1 + tanh(inner))


def softshrink(x):
    return x - mp.mpf(0.5) if x > 0.5 else x + mp.mpf(0.5) if x < -0.5 else mp.mpf(0)


ACTIVATIONS = {  # name: (exact function, PyTorch, kinks)
    "sigmoid": (sigmoid, torch.sigmoid, []),
    "hardsigmoid": (hardsigmoid, lambda t: torch.clamp((t + 3) / 6, 0, 1), [-3, 3]),  # theirs divides by a float 6
    "logsigmoid": (lambda x: -softplus(-x), functional.logsigmoid, []),
    "hardtanh": (lambda x: clamp(x, -1, 1), functional.hardtanh, [-1, 1]),
    "relu": (lambda x: max(x, mp.mpf(0)), torch.relu, [0]),
    "leakyrelu": (lambda x: x if x > 0 else x / 100, lambda t: functional.leaky_relu(t, 0.01), [0]),
    "relu6": (lambda x: clamp(x, 0, 6), functional.relu6, [0, 6]),
    "elu": (lambda x: x if x >= 0 else mp.expm1(x), functional.elu, [0]),
    "gelu": (gelu, lambda t: functional.gelu(t, approximate="tanh"), []),
    "gelu_sigmoid": (lambda x: x * sigmoid(mp.mpf("1.702") * x), lambda t: t * torch.sigmoid(1.702 * t), []),
    "gelu_erf": (lambda x: x / 2 * mp.erfc(-x / mp.sqrt(2)), functional.gelu, []),
    "swish": (lambda x: x * sigmoid(x), functional.silu, []),
    "hardswish": (lambda x: x * hardsigmoid(x), functional.hardswish, [-3, 3]),
    "lisht": (lambda x: x * mp.tanh(x), lambda t: t * torch.tanh(t), []),
    "selu": (lambda x: SELU_LAMBDA * (x if x > 0 else SELU_ALPHA * mp.expm1(x)), functional.selu, [0]),
    "celu": (lambda x: x if x >= 0 else mp.expm1(x), functional.celu, [0]),
    "trelu": (lambda x: x if x > 1 else mp.mpf(0), lambda t: functional.threshold(t, 1.0, 0.0), [1]),
    "softsign": (lambda x: x / (1 + abs(x)), functional.softsign, []),
    "softplus": (softplus, lambda t: functional.softplus(t, threshold=50), []),
    "logcosh": (lambda x: mp.log1p(2 * mp.sinh(x / 2) ** 2), lambda t: torch.log(torch.cosh(t)), []),
    "mish": (lambda x: x * mp.tanh(softplus(x)), functional.mish, []),
    "tanhshrink": (lambda x: x - mp.tanh(x), functional.tanhshrink, []),
    "softshrink": (softshrink, functional.softshrink, [-0.5, 0.5]),
}
# limits at -Inf and Inf; the others (0 * Inf or Inf / Inf when computed as defined) are left open
LIMITS = {
    "sigmoid": (0.0, 1.0),
    "hardsigmoid": (0.0, 1.0),
    "logsigmoid": (-math.inf, 0.0),
    "hardtanh": (-1.0, 1.0),
    "relu": (0.0, math.inf),
    "leakyrelu": (-math.inf, math.inf),
    "relu6": (0.0, 6.0),
    "elu": (-1.0, math.inf),
    "celu": (-1.0, math.inf),
    "softplus": (0.0, math.inf),
    "logcosh": (math.inf, math.inf),
    "lisht": (math.inf, math.inf),
    "trelu": (0.0, math.inf),
    "softshrink": (-math.inf, math.inf),
}
LEFT_OPEN_FOR_NAN = {"trelu", "softshrink"}
CHECKS = {
    "gelu": 0.8411919906082768,
    "gelu_erf": 0.8413447460685429,
    "selu": 1.0507009873554805,
    "tanhshrink": 0.23840584404423515,
    "softshrink": 0.5,
    "trelu": 0.0,
}  # at 1, from NNlib's tests


def points(rng, dtype):
    largest = 80 if dtype in ("Float32", "BFloat16") else 700 if dtype == "Float64" else 15
    special = [0.0, 1.0, -1.0, 0.5, -0.5, 3.0, -3.0, 6.0, 7.0]
    return text.rounded(
        uniform(rng, -6, 6, 20) + spread(rng, -12, 0, 6) + uniform(rng, -largest, largest, 6) + special, dtype
    )


def write_values(file, name, dtype, rng):
    x = points(rng, dtype)
    with mp.workdps(1500):  # x - tanh(x) and its like cancel
        expected = [text.round_real(ACTIVATIONS[name][0](mp.mpf(float(v))), dtype) for v in x]
    text.case(file, name, dtype, [x], [np.array(expected)], TOLERANCES[dtype], samples="normal")


def write_special(file, name, dtype):
    """NaN stays NaN (relu included); the limits at infinity."""
    x, expected = [], []
    if name not in LEFT_OPEN_FOR_NAN:
        x, expected = [math.nan], [math.nan]
    if name in LIMITS:
        x, expected = x + [-math.inf, math.inf], expected + list(LIMITS[name])
    if x:
        expected = text.rounded(np.array(expected), dtype)
        text.case(file, name, dtype, [np.array(x)], [expected], TOLERANCES[dtype], samples="special")


def write_gradient(file, name, rng):
    _, function, kinks = ACTIVATIONS[name]
    x = text.dyadic(rng, (4, 5), -4.0, 4.0) + 0.0625  # the kinks are multiples of 1/8
    assert not np.isin(x, kinks).any()
    gradient_case(file, name, function, [x], rng)


def write(file):
    rng = np.random.default_rng(4)
    for name, (function, _, _) in ACTIVATIONS.items():
        if name in CHECKS:
            assert abs(float(function(mp.mpf(1))) - CHECKS[name]) < 1e-15, name
        for dtype in FLOATS + HALVES:
            write_values(file, name, dtype, rng)
            write_special(file, name, dtype)
        write_gradient(file, name, rng)
    zero = np.array([0.0, 1.0, -1.0])
    gradient_case(file, "relu", torch.relu, [zero], rng, lambda g: g[0][0] == 0, edge="zero")
