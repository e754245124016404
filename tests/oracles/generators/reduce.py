"""reduce.txt: reductions over choices of dims, and running sums and products. By NumPy in Float64, rounded once.

Reduced dims stay with size 1; a case without the attribute dims (dim for argmax, argmin) reduces all of them to a
0-d array.
"""

import math

import numpy as np
import scipy.special
import torch

from . import text
from .gradient import gradient_case

DIMS = [None, (0,), (1,), (2,), (-1,), (0, 1), (0, 2), (1, 2), (0, 1, 2)]
SHAPE = (4, 3, 2)
ROUNDED = {
    "Float32": "rtol=2e-06 atol=1e-06",
    "Float64": "rtol=1e-13 atol=1e-14",
    "Float16": "ulp=1",
    "BFloat16": "ulp=1",
}


def reduced(function, x, dims, **keywords):
    """NumPy's reduction with rosin's shape rule."""
    return np.asarray(function(x, **keywords) if dims is None else function(x, axis=dims, keepdims=True, **keywords))


def attributes(dims):
    return {} if dims is None else {"dims": dims}


def norm(x, axis=None, keepdims=False, p=2.0):
    if p == math.inf:
        return np.max(np.abs(x), axis=axis, keepdims=keepdims)
    return np.sum(np.abs(x) ** p, axis=axis, keepdims=keepdims) ** (1 / p)


ROUNDING = {"sum": np.sum, "mean": np.mean, "logsumexp": scipy.special.logsumexp, "norm": norm}
CHOOSING = {"maximum": np.max, "minimum": np.min}


def write_floats(file, rng):
    for dtype in ("Float32", "Float64"):
        for dims in DIMS:
            x = text.rounded(rng.normal(size=SHAPE), dtype)
            for op, function in ROUNDING.items():
                expected = text.rounded(reduced(function, x, dims), dtype)
                text.case(file, op, dtype, [x], [expected], ROUNDED[dtype], **attributes(dims))
            for corrected in (True, False):
                if corrected and dims is not None and x.size == reduced(np.sum, x, dims).size:
                    continue
                for op, function in (("var", np.var), ("stddev", np.std)):
                    expected = text.rounded(reduced(function, x, dims, ddof=int(corrected)), dtype)
                    text.case(file, op, dtype, [x], [expected], ROUNDED[dtype], corrected=corrected, **attributes(dims))
            x = text.dyadic(rng, SHAPE, -1.5, 1.5, 0.5)
            expected = text.rounded(reduced(np.prod, x, dims), dtype)
            text.case(file, "prod", dtype, [x], [expected], ROUNDED[dtype], **attributes(dims))
    x = text.rounded(rng.normal(size=SHAPE), "Float32")
    for p in (1.0, 3.0, math.inf):
        for dims in ((0, 1, 2), (0,), (0, 2)):
            expected = text.rounded(reduced(norm, x, dims, p=p), "Float32")
            text.case(file, "norm", "Float32", [x], [expected], ROUNDED["Float32"], p=p, **attributes(dims))


def write_exact(file, rng):
    """Sums of small multiples of 1/8 are exact; choices are exact always. Integers and Bool sum in Int64."""
    for dtype in ("Float32", "Float16", "BFloat16", "Int32", "Int64", "UInt8"):
        for dims in DIMS:
            x = text.distinct(rng, SHAPE, 0.0 if "Int" in dtype else -1.5)
            x = (8 * x).astype(np.int64) if "Int" in dtype else x
            for op, function in (CHOOSING | {"sum": np.sum}).items():
                kind = "Int64" if op == "sum" and "Int" in dtype else dtype
                expected = text.rounded(reduced(function, x, dims), kind)
                text.case(file, op, dtype, [x], [(kind, expected)], "exact", **attributes(dims))
    for dims in (None, (0,), (1, 2)):
        flags = rng.integers(0, 2, SHAPE).astype(bool)
        text.case(file, "sum", "Bool", [flags], [("Int64", reduced(np.sum, flags, dims))], "exact", **attributes(dims))
        text.case(
            file,
            "mean",
            "Bool",
            [flags],
            [("Float32", text.rounded(reduced(np.mean, flags, dims), "Float32"))],
            "ulp=2",
            **attributes(dims)
        )
        x = rng.integers(-3, 4, SHAPE)
        text.case(
            file,
            "prod",
            "Int32",
            [x + (x == 0)],
            [("Int64", reduced(np.prod, x + (x == 0), dims))],
            "exact",
            **attributes(dims)
        )
        mean = text.rounded(reduced(np.mean, x, dims), "Float32")
        text.case(file, "mean", "Int32", [x], [("Float32", mean)], "ulp=2", **attributes(dims))


def write_places(file, rng):
    """argmax and argmin: the first of equal elements; without dims the place in column-major order."""
    for dtype in ("Float32", "Float64", "Int32"):
        for dims in (None, 0, 1, 2, -1):
            x = rng.integers(-4, 5, SHAPE)  # with ties
            x = x if dtype == "Int32" else x * 0.5
            for op, function in (("argmax", np.argmax), ("argmin", np.argmin)):
                found = function(x.ravel(order="F")) if dims is None else function(x, axis=dims, keepdims=True)
                text.case(
                    file,
                    op,
                    dtype,
                    [x],
                    [("Int32", np.asarray(found))],
                    "exact",
                    **({} if dims is None else {"dim": dims})
                )


def write_truth(file, rng):
    for dims in DIMS:
        x = rng.integers(0, 5, SHAPE) > 0
        text.case(file, "all", "Bool", [x], [reduced(np.all, x, dims)], "exact", **attributes(dims))
        text.case(file, "any", "Bool", [~x], [reduced(np.any, ~x, dims)], "exact", **attributes(dims))
    numbers = np.array([[0.0, 0.5, -0.0], [0.0, -1.0, math.nan]])
    for op, function in (("all", np.all), ("any", np.any)):
        text.case(file, op, "Float32", [numbers], [("Bool", reduced(function, numbers != 0, (0,)))], "exact", dims=0)


def write_special(file):
    """NaN wins maximum, minimum and the places; empty sums are 0, empty products 1, empty means NaN."""
    nan, inf = math.nan, math.inf
    x = np.array([[1.0, nan, 3.0, -inf], [2.0, 5.0, nan, inf], [0.0, -1.0, nan, 1.0]])
    for op, function in (CHOOSING | {"sum": np.sum}).items():
        with np.errstate(invalid="ignore"):
            text.case(file, op, "Float32", [x], [reduced(function, x, (0,))], "exact", dims=0, samples="special")
    for op, function in (("argmax", np.argmax), ("argmin", np.argmin)):
        text.case(
            file, op, "Float32", [x], [("Int32", function(x, axis=0, keepdims=True))], "exact", dim=0, samples="special"
        )
    x = np.array([[-inf, -inf], [1000.0, 1000.0], [-1000.0, -1001.0], [inf, 0.0], [-inf, 2.0], [nan, 1.0]])
    expected = text.rounded(
        np.array([-inf, 1000 + math.log(2), -1000 + math.log1p(math.exp(-1)), inf, 2, nan]), "Float32"
    )
    text.case(file, "logsumexp", "Float32", [x], [expected.reshape(6, 1)], "rtol=2e-06", dims=1, samples="special")
    empty = np.zeros((0, 3))
    for op, value in (("sum", 0.0), ("prod", 1.0), ("mean", nan), ("logsumexp", -inf)):
        text.case(file, op, "Float32", [empty], [np.full((1, 3), value)], "exact", dims=0, samples="empty")
        text.case(file, op, "Float32", [empty], [np.full((0, 1), value)], "exact", dims=1, samples="empty")
        text.case(file, op, "Float32", [empty], [np.array(value)], "exact", samples="empty")
    truth = np.zeros((0, 3), dtype=bool)
    text.case(file, "all", "Bool", [truth], [np.ones((1, 3), dtype=bool)], "exact", dims=0, samples="empty")
    text.case(file, "any", "Bool", [truth], [np.zeros((1, 3), dtype=bool)], "exact", dims=0, samples="empty")
    point = np.array(2.5)
    for op in ("sum", "prod", "mean", "maximum", "minimum"):
        text.case(file, op, "Float32", [point], [point], "exact", samples="scalar")


def write_long_sums(file, rng):
    """Sums over many elements: plain summation in order would miss these tolerances."""
    x = text.dyadic(rng, 3000, 0.0, 1.0, 0.0078125)
    rows = x.reshape(3, 1000, order="F")
    for op, function in (("sum", np.sum), ("mean", np.mean)):
        text.case(
            file,
            op,
            "Float32",
            [rows],
            [text.rounded(reduced(function, rows, (1,)), "Float32")],
            "rtol=1e-06",
            dims=1,
            samples="long",
        )
    text.case(
        file,
        "sum",
        "Float16",
        [text.rounded(rows[:1] + 1, "Float16")],
        [text.rounded(reduced(np.sum, text.rounded(rows[:1] + 1, "Float16"), None), "Float16")],
        "ulp=1",
        samples="long",
    )


def write_running(file, rng):
    for dtype in ("Float32", "Float64", "Int32"):
        for dims in (0, 1, 2, -1):
            x = text.dyadic(rng, SHAPE) if dtype != "Int32" else rng.integers(-3, 4, SHAPE)
            kind = "Int64" if dtype == "Int32" else dtype
            text.case(file, "cumsum", dtype, [x], [(kind, np.cumsum(x, axis=dims))], "exact", dim=dims)
            text.case(file, "cumprod", dtype, [x], [(kind, np.cumprod(x, axis=dims))], "exact", dim=dims)
    text.case(file, "cumsum", "Float32", [np.zeros((3, 0))], [np.zeros((3, 0))], "exact", dim=1, samples="empty")


def torch_norm(x, dim, p=2.0):
    return torch.linalg.vector_norm(x, ord=p, dim=dim, keepdim=dim is not None)


TORCH = {
    "sum": lambda x, dim: x.sum() if dim is None else x.sum(dim, keepdim=True),
    "mean": lambda x, dim: x.mean() if dim is None else x.mean(dim, keepdim=True),
    "maximum": lambda x, dim: x.amax() if dim is None else x.amax(dim, keepdim=True),
    "minimum": lambda x, dim: x.amin() if dim is None else x.amin(dim, keepdim=True),
    "var": lambda x, dim: x.var(dim, correction=1, keepdim=dim is not None),
    "stddev": lambda x, dim: x.std(dim, correction=1, keepdim=dim is not None),
    "logsumexp": lambda x, dim: torch.logsumexp(x, (0, 1, 2) if dim is None else dim, keepdim=dim is not None),
    "norm": torch_norm,
}


def products(x, dim):
    """torch.prod takes one dim; several are reduced one after the other."""
    if dim is None:
        return x.prod()
    for d in dim:
        x = x.prod(d, keepdim=True)
    return x


def write_gradients(file, rng):
    for op, function in (TORCH | {"prod": products}).items():
        for dims in (None, (1,), (0, 2)):
            extra = {"corrected": True} if op in ("var", "stddev") else {}
            gradient_case(
                file,
                op,
                lambda x: function(x, dims),
                [text.distinct(rng, SHAPE, -1.4375)],
                rng,
                **extra,
                **attributes(dims)
            )
    for p in (1.0, 3.0):
        gradient_case(
            file, "norm", lambda x: torch_norm(x, (0,), p), [text.distinct(rng, SHAPE, -1.4375)], rng, p=p, dims=0
        )
    for dims in (0, 1):
        gradient_case(file, "cumsum", lambda x: torch.cumsum(x, dims), [text.dyadic(rng, (4, 3))], rng, dim=dims)
        gradient_case(
            file, "cumprod", lambda x: torch.cumprod(x, dims), [text.dyadic(rng, (4, 3), 0.25)], rng, dim=dims
        )


def write_edges(file, rng):
    """Ties share; prod and cumprod with zeros; norm at 0 has gradient 0."""
    ties = np.array([[1.0, 2.0, 0.0], [1.0, 2.0, 0.0], [0.5, 2.0, 1.0]])
    shares = lambda g: g[0][0, 0] == g[0][1, 0] != 0 and g[0][0, 1] == g[0][1, 1] == g[0][2, 1] != 0
    gradient_case(file, "maximum", lambda x: TORCH["maximum"](x, (0,)), [ties], rng, shares, dims=0, edge="ties")
    gradient_case(file, "minimum", lambda x: TORCH["minimum"](x, (0,)), [-ties], rng, shares, dims=0, edge="ties")
    zeros = np.array([[2.0, 0.0, 0.0], [3.0, 4.0, 0.0], [-1.0, 0.5, 2.0]])
    gradient_case(
        file,
        "prod",
        lambda x: products(x, (0,)),
        [zeros],
        rng,
        lambda g: g[0][0, 1] != 0 == g[0][1, 1],
        dims=0,
        edge="zeros",
    )
    gradient_case(file, "prod", lambda x: x.prod(), [zeros[:, 1]], rng, edge="zeros")
    gradient_case(file, "cumprod", lambda x: torch.cumprod(x, 0), [zeros], rng, dim=0, edge="zeros")
    points = np.array([[0.0, 3.0], [0.0, 4.0]])
    gradient_case(
        file,
        "norm",
        lambda x: torch_norm(x, (0,)),
        [points],
        rng,
        lambda g: (g[0][:, 0] == 0).all(),
        dims=0,
        edge="zero",
    )
    equal, cotangent = np.full((3, 2), 1.5), np.array([[0.5, -1.0]])  # the limit is taken from no side: 0
    text.case(
        file,
        "stddev",
        "Float64",
        [equal],
        [np.zeros((1, 2))],
        "exact",
        [cotangent],
        [np.zeros((3, 2))],
        "exact",
        dims=0,
        corrected=True,
        edge="zero",
    )


RUNNING = {
    "cummax": (np.maximum.accumulate, lambda x, dim: torch.cummax(x, dim).values),
    "cummin": (np.minimum.accumulate, lambda x, dim: torch.cummin(x, dim).values),
    "logcumsumexp": (np.logaddexp.accumulate, torch.logcumsumexp),
}


def write_running_others(file, rng):
    """Of equal elements the last one takes the gradient of cummax and cummin, as in PyTorch."""
    for op, (function, differentiable) in RUNNING.items():
        exact = op != "logcumsumexp"
        for dtype in ("Float32", "Float64", "Int32") if exact else ("Float32", "Float64"):
            for dim in (0, 1, 2, -1):
                x = text.dyadic(rng, SHAPE) if dtype != "Int32" else rng.integers(-3, 4, SHAPE)
                expected = text.rounded(function(x, axis=dim), dtype) if dtype != "Int32" else function(x, axis=dim)
                text.case(file, op, dtype, [x], [expected], "exact" if exact else ROUNDED[dtype], dim=dim)
        text.case(file, op, "Float32", [np.zeros((3, 0))], [np.zeros((3, 0))], "exact", dim=1, samples="empty")
        for dim in (0, 1):
            gradient_case(file, op, lambda x: differentiable(x, dim), [text.distinct(rng, (4, 3))], rng, dim=dim)
    nan, inf = math.nan, math.inf
    x = np.array([[-inf, 1.0, -inf, 2.0], [-inf, nan, inf, 2.0], [1.0, 3.0, 0.0, -inf], [1.0, 2.0, 1.0, 2.0]])
    for op, (function, _) in RUNNING.items():
        with np.errstate(invalid="ignore"):
            expected = text.rounded(function(x, axis=0), "Float32")
        text.case(file, op, "Float32", [x], [expected], "rtol=2e-06 atol=1e-06", dim=0, samples="special")
    ties = np.array([[1.0, 2.0, 0.0], [1.0, 2.0, 0.0], [0.5, 3.0, 1.0], [1.0, 3.0, 1.0]])
    last = lambda g: g[0][0, 0] != 0 and g[0][2, 0] == 0 and g[0][3, 0] != 0
    gradient_case(file, "cummax", lambda x: torch.cummax(x, 0).values, [ties], rng, last, dim=0, edge="ties")
    gradient_case(file, "cummin", lambda x: torch.cummin(x, 0).values, [-ties], rng, last, dim=0, edge="ties")


def write(file):
    rng = np.random.default_rng(5)
    write_floats(file, rng)
    write_exact(file, rng)
    write_places(file, rng)
    write_truth(file, rng)
    write_special(file)
    write_long_sums(file, rng)
    write_running(file, rng)
    write_gradients(file, rng)
    write_edges(file, rng)
    write_running_others(file, np.random.default_rng(6))
