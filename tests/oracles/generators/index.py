"""index.txt: ops by index, one-hot, sorting. By NumPy; gradients by PyTorch.

gather(x, i, dim): the slices of x along dim that i names; the shape of i takes the place of dim.
scatter(x, i, u, dim): a copy of x in which slice i[k] along dim is u's slice k (u is shaped as gather(x, i, dim)); of
repeated indices the last one stays. scatter_add: the same, with u added.
take_along(x, i, dim): NumPy's take_along_axis.
onehot(i, classes): the classes are the first dim; onecold: the first largest along it.
"""

import numpy as np
import torch

from . import text
from .gradient import gradient_case

SHAPE = (5, 4, 3)


def along(dim, index, rank=3):
    return tuple(index if d == dim % rank else slice(None) for d in range(rank))


def added(x, index, updates, dim):
    result = x.copy()
    np.add.at(result, along(dim, index, x.ndim), updates)
    return result


def assigned(x, index, updates, dim):
    result = x.copy()
    result[along(dim, index, x.ndim)] = updates
    return result


def write_gather(file, rng):
    for dtype in ("Float32", "Int32", "Bool", "BFloat16", "Float64"):
        for dim in (0, 1, 2, -1):
            x = text.rounded(text.dyadic(rng, SHAPE) * (8 if dtype == "Int32" else 1), dtype)
            for shape in ((6,), (2, 2), ()):
                index = rng.integers(0, SHAPE[dim], shape)
                kind = "Int64" if shape == (2, 2) else "Int32"
                result = np.take(x, index, axis=dim)
                text.case(file, "gather", dtype, [x, (kind, index)], [result], "exact", dim=dim)
    x = text.dyadic(rng, SHAPE)
    index = np.array([-1, 0, -5, 4])
    text.case(
        file,
        "gather",
        "Float32",
        [x, ("Int32", index)],
        [np.take(x, index, axis=0)],
        "exact",
        dim=0,
        samples="negative",
    )
    none = np.zeros((0,), dtype=np.int64)
    text.case(
        file, "gather", "Float32", [x, ("Int32", none)], [np.take(x, none, axis=1)], "exact", dim=1, samples="empty"
    )


def write_scatter(file, rng):
    for dtype in ("Float32", "Int32", "Float64"):
        for dim in (0, 1, 2, -1):
            x = text.rounded(text.dyadic(rng, SHAPE), dtype)
            for op, function, index in (
                ("scatter", assigned, rng.permutation(SHAPE[dim])[:2]),
                ("scatter_add", added, rng.integers(0, SHAPE[dim], 6)),
            ):
                shape = tuple(len(index) if d == dim % 3 else n for d, n in enumerate(SHAPE))
                updates = text.rounded(text.dyadic(rng, shape), dtype)
                result = function(x, index, updates, dim)
                text.case(file, op, dtype, [x, ("Int32", index), updates], [result], "exact", dim=dim)
    x, index = text.dyadic(rng, SHAPE), np.array([[1, 4, 1], [-5, 1, 2]])
    updates = text.dyadic(rng, (2, 3, 4, 3))
    flat_index, flat_updates = index.ravel(order="F"), updates.reshape((6, 4, 3), order="F")
    for op, function in (("scatter", assigned), ("scatter_add", added)):
        result = function(x, flat_index, flat_updates, 0)
        text.case(file, op, "Float32", [x, ("Int32", index), updates], [result], "exact", dim=0, samples="repeated")


REDUCTIONS = {"scatter_mul": "prod", "scatter_max": "amax", "scatter_min": "amin", "scatter_mean": "mean"}


def write_reductions(file, rng):
    """torch.index_reduce, which has no Int32 and no halves here; ties share the gradient in both."""
    for op, name in REDUCTIONS.items():
        for include in (1, 0) if op == "scatter_mean" else (1,):
            extra = {"include": include} if op == "scatter_mean" else {}

            def function(dim):
                return lambda t, i, u: torch.index_reduce(t, dim, i, u, name, include_self=bool(include))

            for dim in (0, 1, 2):
                index = rng.integers(0, SHAPE[dim], 6)
                shape = tuple(len(index) if d == dim else n for d, n in enumerate(SHAPE))
                count = int(np.prod(SHAPE))
                numbers = text.distinct(rng, (count + int(np.prod(shape)),), -3.0, 0.03125) + 0.015625
                x, updates = numbers[:count].reshape(SHAPE), numbers[count:].reshape(shape)
                types = ["Float64", "Int32", "Float64"]
                index_case(file, op, function(dim), [x, index, updates], rng, types, dim=dim, **extra)
            x, updates = np.floor(x * 2) / 2, np.floor(updates * 2) / 2  # with ties and zeros
            index_case(file, op, function(2), [x, index, updates], rng, types, dim=2, edge="ties", **extra)
            for dtype in ("Float32", "Int32") if op in ("scatter_max", "scatter_min") else ("Float32",):
                x, updates = text.rounded(x, dtype), text.rounded(updates, dtype)
                want = function(2)(*[torch.tensor(a) for a in (x, index, updates)]).numpy()
                inputs = [x, ("Int32", index), updates]
                text.case(file, op, dtype, inputs, [want], "rtol=1e-5", dim=2, **extra)


def write_take_along(file, rng):
    for dtype in ("Float32", "Int32"):
        for dim, size in ((0, 2), (1, 6), (-1, 3)):
            x = text.rounded(text.distinct(rng, SHAPE) * 8, dtype)
            shape = tuple(size if d == dim % 3 else n for d, n in enumerate(SHAPE))
            index = rng.integers(0, SHAPE[dim], shape)
            text.case(
                file, "take_along", dtype, [x, ("Int32", index)], [np.take_along_axis(x, index, dim)], "exact", dim=dim
            )


def write_onehot(file, rng):
    for shape in ((6,), (2, 3), ()):
        labels = rng.integers(0, 4, shape)
        hot = np.moveaxis(np.eye(4, dtype=bool)[labels], -1, 0)
        text.case(file, "onehot", "Int32", [labels], [("Bool", hot)], "exact", classes=4)
    for dtype in ("Float32", "Int32"):
        y = rng.integers(-3, 4, (4, 3, 2))  # with ties
        text.case(file, "onecold", dtype, [y], [("Int32", np.argmax(y, axis=0))], "exact")


def descending_order(x, dim):
    """Stable: equal elements keep their order."""
    size = x.shape[dim]
    backwards = np.flip(x, dim)
    return np.flip(size - 1 - np.argsort(backwards, axis=dim, kind="stable"), dim)


def write_sorting(file, rng):
    for dtype in ("Float32", "Float64", "Int32"):
        for dim in (0, 1, 2, -1):
            x = rng.integers(-6, 7, SHAPE) * (1 if dtype == "Int32" else 0.5)  # with ties
            for descending in (False, True):
                order = descending_order(x, dim) if descending else np.argsort(x, axis=dim, kind="stable")
                values = np.take_along_axis(x, order, dim)
                text.case(file, "sort", dtype, [x], [values], "exact", dim=dim, descending=descending)
                text.case(file, "argsort", dtype, [x], [("Int32", order)], "exact", dim=dim, descending=descending)
    x = np.array([3.0, np.nan, -np.inf, 0.0, np.inf, -0.0, np.nan, -0.5])  # NaN above Inf, -0 equal to 0
    for descending in (False, True):
        order = descending_order(x, 0) if descending else np.argsort(x, kind="stable")
        text.case(file, "sort", "Float32", [x], [x[order]], "exact", dim=0, descending=descending, samples="special")
        text.case(
            file,
            "argsort",
            "Float32",
            [x],
            [("Int32", order)],
            "exact",
            dim=0,
            descending=descending,
            samples="special",
        )


def write_topk(file, rng):
    """The k largest (smallest), the largest (smallest) first, and their places; of equal ones the first."""
    for dtype in ("Float32", "Int32"):
        for dim, k in ((0, 2), (0, 5), (1, 1), (2, 2), (-1, 3), (0, 0)):
            for largest in (True, False):
                x = rng.integers(-8, 9, SHAPE) * (1 if dtype == "Int32" else 0.5)
                order = descending_order(x, dim) if largest else np.argsort(x, axis=dim, kind="stable")
                order = np.take(order, np.arange(k), axis=dim)
                values = np.take_along_axis(x, order, dim)
                text.case(file, "topk", dtype, [x], [values, ("Int32", order)], "exact", dim=dim, k=k, largest=largest)


def index_case(file, op, function, inputs, rng, types=None, **attributes):
    gradient_case(file, op, function, inputs, rng, types=types or ["Float64"] * len(inputs), **attributes)


def write_gradients(file, rng):
    """Repeated indices add; sort and topk give their gradients to the chosen elements."""
    x, index = text.dyadic(rng, SHAPE), np.array([1, 0, 1, 1])
    updates = text.dyadic(rng, (4, 4, 3))
    index_case(
        file,
        "gather",
        lambda t, i: torch.index_select(t, 0, i),
        [x, index],
        rng,
        ["Float64", "Int32"],
        dim=0,
        edge="repeated",
    )
    index_case(
        file,
        "gather",
        lambda t, i: torch.index_select(t, 2, i),
        [x, index],
        rng,
        ["Float64", "Int32"],
        dim=2,
        edge="repeated",
    )
    types = ["Float64", "Int32", "Float64"]
    index_case(
        file,
        "scatter_add",
        lambda t, i, u: t.index_add(0, i, u),
        [x, index, updates],
        rng,
        types,
        dim=0,
        edge="repeated",
    )
    distinct, updates = np.array([3, 0]), text.dyadic(rng, (2, 4, 3))
    index_case(file, "scatter", lambda t, i, u: t.index_copy(0, i, u), [x, distinct, updates], rng, types, dim=0)
    repeated, last = np.array([3, 0, 3]), torch.tensor([1, 2])  # of equal indices the last one stays
    updates = text.dyadic(rng, (3, 4, 3))
    index_case(
        file,
        "scatter",
        lambda t, i, u: t.index_copy(0, i[last], u[last]),
        [x, repeated, updates],
        rng,
        types,
        dim=0,
        edge="repeated",
    )
    x, index = text.distinct(rng, SHAPE), rng.integers(0, 4, (5, 6, 3))
    index_case(file, "take_along", lambda t, i: torch.gather(t, 1, i), [x, index], rng, ["Float64", "Int32"], dim=1)
    for dim in (0, 1):
        index_case(file, "sort", lambda t: torch.sort(t, dim)[0], [x], rng, dim=dim, descending=False)
        index_case(file, "sort", lambda t: torch.sort(t, dim, descending=True)[0], [x], rng, dim=dim, descending=True)
    write_topk_gradient(file, rng, x)


def write_topk_gradient(file, rng, x):
    """Only the values have a gradient: the cotangent of the places is zero."""
    tensor = torch.tensor(x).requires_grad_()
    values, places = torch.topk(tensor, 2, dim=0)
    cotangent = text.dyadic(rng, tuple(values.shape), -1.0, 1.0)
    (gradient,) = torch.autograd.grad((torch.tensor(cotangent) * values).sum(), tensor)
    text.case(
        file,
        "topk",
        "Float64",
        [x],
        [values.detach().numpy(), ("Int32", places.numpy())],
        "exact",
        [cotangent, np.zeros_like(cotangent)],
        [gradient.numpy()],
        "exact",
        dim=0,
        k=2,
        largest=True,
    )


def write(file):
    rng = np.random.default_rng(7)
    write_gather(file, rng)
    write_scatter(file, rng)
    write_take_along(file, rng)
    write_onehot(file, rng)
    write_sorting(file, rng)
    write_topk(file, rng)
    write_gradients(file, rng)
    write_reductions(file, rng)
