"""elementwise.txt, third part: gradients by PyTorch in Float64, and the edge rules that README.md states."""

import mpmath
import numpy as np
import torch

from . import text
from .gradient import gradient_case


class Digamma(torch.autograd.Function):
    """torch.digamma with a derivative to all digits; PyTorch's own has ten."""

    @staticmethod
    def forward(context, x):
        context.save_for_backward(x)
        return torch.digamma(x)

    @staticmethod
    def backward(context, cotangent):
        (x,) = context.saved_tensors
        slopes = [float(mpmath.psi(1, mpmath.mpf(value))) for value in x.flatten().tolist()]
        return cotangent * torch.tensor(slopes, dtype=torch.float64).reshape(x.shape)


SMOOTH = {  # op: (function, lowest argument, highest argument)
    "neg": (torch.neg, -2, 2),
    "sqrt": (torch.sqrt, 0.125, 4),
    "rsqrt": (torch.rsqrt, 0.125, 4),
    "cbrt": (lambda x: torch.sign(x) * x.abs() ** (1 / 3), 0.125, 4),
    "exp": (torch.exp, -2, 2),
    "exp2": (torch.exp2, -2, 2),
    "expm1": (torch.expm1, -2, 2),
    "log": (torch.log, 0.125, 4),
    "log2": (torch.log2, 0.125, 4),
    "log10": (torch.log10, 0.125, 4),
    "log1p": (torch.log1p, -0.75, 2),
    "asinh": (torch.asinh, -2, 2),
    "acosh": (torch.acosh, 1.125, 4),
    "atanh": (torch.atanh, -0.875, 0.875),
    "sin": (torch.sin, -4, 4),
    "cos": (torch.cos, -4, 4),
    "tan": (torch.tan, -1.25, 1.25),
    "asin": (torch.asin, -0.875, 0.875),
    "acos": (torch.acos, -0.875, 0.875),
    "atan": (torch.atan, -3, 3),
    "sinh": (torch.sinh, -2, 2),
    "cosh": (torch.cosh, -2, 2),
    "tanh": (torch.tanh, -2, 2),
    "erf": (torch.erf, -2, 2),
    "lgamma": (torch.lgamma, 0.125, 5),
    "digamma": (Digamma.apply, 0.125, 5),
    "square": (torch.square, -2, 2),
    "reciprocal": (torch.reciprocal, 0.125, 4),
}
PAIRS = {  # op: (function, range of the first argument, range of the second)
    "add": (torch.add, (-2, 2), (-2, 2)),
    "sub": (torch.sub, (-2, 2), (-2, 2)),
    "mul": (torch.mul, (-2, 2), (-2, 2)),
    "div": (torch.div, (-2, 2), (0.5, 2)),
    "pow": (torch.pow, (0.25, 3), (-2, 2)),
    "atan2": (torch.atan2, (0.25, 2), (-2, 2)),
    "logaddexp": (torch.logaddexp, (-2, 2), (-2, 2)),
}


def write_smooth(file, rng):
    for op, (function, low, high) in SMOOTH.items():
        gradient_case(file, op, function, [text.dyadic(rng, (3, 4), low, high)], rng)
    x = text.dyadic(rng, (3, 4), -2.0, 2.0) + 0.0625  # never zero
    gradient_case(file, "abs", torch.abs, [x], rng)
    gradient_case(file, "cbrt", lambda t: torch.sign(t) * t.abs() ** (1 / 3), [x], rng)


def write_pairs(file, rng):
    for op, (function, first, second) in PAIRS.items():
        inputs = [text.dyadic(rng, (3, 4), *first), text.dyadic(rng, (3, 4), *second)]
        gradient_case(file, op, function, inputs, rng)
        # sizes meet from the first dimension on, as in Julia: (3, 1) with (1, 2, 4)
        inputs = [text.dyadic(rng, (3, 1), *first), text.dyadic(rng, (1, 2, 4), *second)]
        gradient_case(file, op, lambda a, b: function(a.unsqueeze(2), b), inputs, rng)
    a, b = text.distinct(rng, (3, 4)), text.dyadic(rng, (3, 4)) + 0.0625
    gradient_case(file, "max", torch.maximum, [a, b], rng)
    gradient_case(file, "min", torch.minimum, [a, b], rng)
    gradient_case(file, "mod", torch.remainder, [a + 0.03125, np.abs(b)], rng)
    gradient_case(file, "clamp", lambda x: torch.clamp(x, -0.5, 0.75), [b], rng, lo=-0.5, hi=0.75)


def write_where(file, rng):
    condition = rng.integers(0, 2, (3, 4)).astype(bool)
    inputs = [condition, text.dyadic(rng, (3, 4)), text.dyadic(rng, (3, 4))]
    gradient_case(file, "where", torch.where, inputs, rng, types=["Bool", "Float64", "Float64"])
    inputs = [condition, text.dyadic(rng, (3, 1)), text.dyadic(rng, (1, 4))]
    gradient_case(file, "where", torch.where, inputs, rng, types=["Bool", "Float64", "Float64"])


def all_finite(grads):
    return all(np.isfinite(g).all() for g in grads)


def clamped(x):
    """Gradient 1 at the bounds; torch.clamp's there depends on its version."""
    return torch.where(x < -0.5, -0.5, torch.where(x > 0.75, 0.75, x))


def write_edges(file, rng):
    """abs'(0) = 0; sqrt'(0) = Inf; ties of max and min share; x^0 has gradient 0 by x, also at x = 0."""
    zero = np.array([0.0, 1.0, -1.0])
    gradient_case(file, "abs", torch.abs, [zero], rng, lambda g: g[0][0] == 0, edge="zero")
    gradient_case(file, "sqrt", torch.sqrt, [np.array([0.0, 1.0, 4.0])], rng, lambda g: np.isinf(g[0][0]), edge="zero")
    a, b = np.array([1.0, 2.0, -1.0, 0.0]), np.array([1.0, 1.0, -1.0, 0.5])
    gradient_case(file, "max", torch.maximum, [a, b], rng, lambda g: g[0][0] == g[1][0] != 0, edge="ties")
    gradient_case(file, "min", torch.minimum, [a, b], rng, lambda g: g[0][0] == g[1][0] != 0, edge="ties")
    x, y = np.array([0.0, 0.0, 0.0, 2.0, 0.0]), np.array([0.0, 1.0, 2.0, 0.0, 3.0])
    gradient_case(file, "pow", torch.pow, [x, y], rng, lambda g: g[0][0] == 0 and all_finite(g), edge="zero")
    x, y = np.array([-2.0, -1.5, -1.0]), np.array([2.0, 3.0, -1.0])
    gradient_case(file, "pow", lambda t: torch.pow(t, torch.tensor(y)), [x], rng, edge="negative", exponents=list(y))
    both = [np.array([0.0, 0.0, 1.0]), np.array([0.0, 1.0, 0.0])]
    gradient_case(file, "atan2", torch.atan2, both, rng, lambda g: g[0][0] == 0 == g[1][0], edge="zero")
    bounds = np.array([-0.5, 0.75, -1.0, 0.0])
    gradient_case(
        file,
        "clamp",
        clamped,
        [bounds],
        rng,
        lambda g: g[0][0] * g[0][1] != 0,
        lo=-0.5,
        hi=0.75,
        edge="bounds",
    )
    for op, function in (
        ("floor", torch.floor),
        ("ceil", torch.ceil),
        ("round", torch.round),
        ("trunc", torch.trunc),
        ("sign", torch.sign),
    ):
        gradient_case(file, op, function, [np.array([0.3125, -1.75, 2.5])], rng, lambda g: (g[0] == 0).all())
    flags = np.array([True, False])
    inputs = [flags, np.array([1.0, 2.0]), np.array([np.nan, np.inf])]
    gradient_case(
        file,
        "where",
        torch.where,
        inputs,
        rng,
        all_but_condition,
        types=["Bool", "Float64", "Float64"],
        edge="nonfinite",
    )


def all_but_condition(grads):
    """What was not chosen gets gradient 0, whatever its value."""
    return grads[1][1] == 0 and grads[2][0] == 0


def write(file):
    rng = np.random.default_rng(3)
    write_smooth(file, rng)
    write_pairs(file, rng)
    write_where(file, rng)
    write_edges(file, rng)
