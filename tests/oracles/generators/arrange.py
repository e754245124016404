"""arrange.txt: einsum and its relatives, diagonals, borders, roll, set; searching and counting. NumPy; gradients by
PyTorch, whose einsum, tensordot, kron, roll, quantile and the like are other code than NumPy's.

set(x, value): range0=START,STOP,STEP or AT0=INDEX for each dim; pad: mode and widths=LOW,HIGH,LOW,HIGH.
"""

import numpy as np
import torch

from . import text
from .gradient import gradient_case

EQUATIONS = [
    ("ij,jk->ik", [(3, 4), (4, 2)]),
    ("ij,jk", [(3, 4), (4, 2)]),
    ("ij->ji", [(3, 4)]),
    ("ij->", [(3, 4)]),
    ("ii->i", [(3, 3)]),
    ("ii", [(3, 3)]),
    ("iij->ij", [(3, 3, 2)]),
    ("iji->j", [(3, 2, 3)]),
    ("i,j->ij", [(3,), (4,)]),
    ("i,i->", [(3,), (3,)]),
    ("ijb,jkb->ikb", [(3, 4, 2), (4, 2, 2)]),
    ("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)]),
    ("ij,kj->ik", [(3, 4), (2, 4)]),
    ("ijk,k->ij", [(3, 4, 2), (2,)]),
    ("ij,ij->ij", [(3, 4), (3, 4)]),
    ("ij,i,j->", [(3, 4), (3,), (4,)]),
    ("ab,bc,cd->da", [(2, 3), (3, 4), (4, 2)]),
    ("bqhd,bkhd->bhqk", [(2, 3, 2, 4), (2, 5, 2, 4)]),
    ("...i,i->...", [(2, 3, 4), (4,)]),
    ("ij...,jk...->ik...", [(2, 3, 4), (3, 2, 4)]),
    ("i...->...", [(3, 2, 2)]),
    ("ijk,ij,k->", [(3, 4, 2), (3, 4), (2,)]),
]


def write_einsum(file, rng):
    for equation, shapes in EQUATIONS:
        inputs = [text.dyadic(rng, shape, -1.0, 1.0) for shape in shapes]
        torch_way = gradient_values(lambda *x: torch.einsum(equation, *x), inputs)
        assert np.allclose(torch_way, np.einsum(equation, *inputs)), equation
        gradient_case(file, "einsum", lambda *x: torch.einsum(equation, *x), inputs, rng, equation=equation)


def gradient_values(function, inputs):
    return function(*[torch.tensor(x) for x in inputs]).numpy()


def write_products(file, rng):
    def inputs(*shapes):
        return [text.dyadic(rng, shape, -1.0, 1.0) for shape in shapes]

    for dims, shapes in ((2, [(2, 3, 4), (3, 4, 5)]), (1, [(2, 3), (3, 4)]), (0, [(2, 2), (3,)])):
        gradient_case(file, "tensordot", lambda a, b: torch.tensordot(a, b, dims), inputs(*shapes), rng, dims=dims)
    pairs = ([0, 2], [3, 0])
    call = inputs((2, 3, 4), (4, 5, 2, 2))
    gradient_case(file, "tensordot", lambda a, b: torch.tensordot(a, b, pairs), call, rng, a="0,2", b="3,0")
    gradient_case(file, "kron", torch.kron, inputs((2, 3), (2, 2)), rng)
    for k, shape in ((0, (3, 4)), (1, (3, 4)), (-2, (3, 4)), (0, (3, 3, 2)), (4, (3, 4))):

        def diagonal(x):
            y = torch.diagonal(x, k, 0, 1)
            return y.permute(-1, *range(y.dim() - 1))

        gradient_case(file, "diagonal", diagonal, inputs(shape), rng, k=k)
    for k in (0, 2, -1):
        gradient_case(file, "diagm", lambda v: torch.diag(v, k), inputs((3,)), rng, k=k)
    gradient_case(file, "trace", torch.trace, inputs((3, 3)), rng)


MODES = {"reflect": "reflect", "symmetric": "symmetric", "repeat": "edge", "circular": "wrap"}  # ours: NumPy's


def write_borders(file, rng):
    for mode, name in MODES.items():
        x = text.dyadic(rng, (4, 3))
        for widths in (((1, 2), (2, 1)), ((3, 0), (0, 2))):
            places = np.pad(np.arange(12).reshape(4, 3), widths, name)
            gradient_case(
                file,
                "pad",
                lambda t: t.reshape(-1)[torch.tensor(places.copy())],
                [x],
                rng,
                mode=mode,
                widths=[w for pair in widths for w in pair],
            )
    for shift, dim in ((2, 0), (-1, 1), (7, 0), (0, 0)):
        x = [text.dyadic(rng, (4, 3))]
        gradient_case(file, "roll", lambda t: torch.roll(t, shift, dim), x, rng, shift=shift, dim=dim)


def write_set(file, rng):
    x = text.dyadic(rng, (5, 4))

    def case(key, shape, **attributes):
        value = text.dyadic(rng, shape)

        def function(a, v):
            index = np.zeros((5, 4), bool)
            index[key] = True
            places = np.full((5, 4), -1)
            places[key] = np.arange(int(np.prod(np.empty((5, 4))[key].shape))).reshape(np.empty((5, 4))[key].shape)
            spread = v.expand(np.empty((5, 4))[key].shape).reshape(-1)[torch.tensor(np.maximum(places, 0))]
            return torch.where(torch.tensor(index), spread, a)

        gradient_case(file, "set", function, [x, value], rng, **attributes)

    case(np.s_[1:3], (2, 4), range0="1,3,1")
    case(np.s_[:, 2], (5,), range0="0,5,1", at1=2)
    case(np.s_[-1, 1:], (3,), at0=-1, range1="1,4,1")
    case(np.s_[::2, 1::2], (3, 2), range0="0,5,2", range1="1,4,2")
    case(np.s_[3:0:-1], (3, 1), range0="3,0,-1")
    case(np.s_[2, 3], (), at0=2, at1=3)


def write_search(file, rng):
    for dtype in ("Float64", "Float32"):
        sorted_values = np.array([-1.0, 0.0, 0.0, 0.5, 2.0, 2.0, 7.0])
        values = np.array([[-2.0, -1.0, 0.0, 0.25], [2.0, 7.0, 8.0, np.nan]])
        for right in (False, True):
            places = np.searchsorted(sorted_values, values, "right" if right else "left")
            text.case(file, "searchsorted", dtype, [sorted_values, values], [("Int32", places)], "exact", right=right)
    numbers = np.array([0, 3, 1, 3, 5, 3, 2])
    counts = ("Int64", np.bincount(numbers, minlength=7))
    text.case(file, "bincount", "Int32", [("Int32", numbers)], [counts], "exact", classes=7)
    weights = [text.dyadic(rng, (7,))]
    index = torch.tensor(numbers)
    gradient_case(file, "weighted", lambda w: torch.zeros(7).double().index_add(0, index, w), weights, rng)
    x = np.concatenate([rng.uniform(-1, 2, 40), [0.0, 0.25, 0.5, 1.0, -0.001, 1.001]])
    counts = ("Int64", np.histogram(x, 4, (0.0, 1.0))[0])
    text.case(file, "histogram", "Float64", [x], [counts], "exact", bins=4, low=0.0, high=1.0)
    own = np.random.default_rng(62)
    for bins, low, high in [(10, -0.3, 0.7), (7, 1e6, 1e6 + 1), (97, -3.0, 3.0)]:
        edges = np.linspace(low, high, bins + 1)
        beside = [np.nextafter(edges, low - 1), np.nextafter(edges, high + 1)]
        x = np.concatenate([edges, *beside, own.uniform(low, high, 60), [np.nan, np.inf, -np.inf]])
        counts = ("Int64", np.histogram(x[~np.isnan(x)], bins, (low, high))[0])
        text.case(file, "histogram", "Float64", [x], [counts], "exact", bins=bins, low=low, high=high)
    for q in (0.0, 0.25, 0.5, 0.9, 1.0):
        x = [text.distinct(rng, (5, 4))]
        for dim in (0, 1):
            call = lambda t, d=dim: torch.quantile(t, q, d, keepdim=True)  # noqa: E731
            gradient_case(file, "quantile", call, x, rng, q=q, dims=(dim,))
        gradient_case(file, "quantile", lambda t: torch.quantile(t, q), x, rng, q=q)
    values = np.array([3.0, 1.0, 3.0, np.nan, -2.0, 1.0, 3.0, np.nan]).reshape(2, 4, order="F")
    flat, inverse, counts = np.unique(values.ravel(order="F"), return_inverse=True, return_counts=True)
    outputs = [flat, ("Int32", inverse.reshape(2, 4, order="F")), ("Int64", counts)]
    text.case(file, "unique", "Float64", [values], outputs, "exact")
    x = [text.dyadic(rng, (4, 3)), rng.random((4, 3)) < 0.5]

    def masked(t, mask):
        return t.T.reshape(-1)[mask.T.reshape(-1)]  # column-major

    gradient_case(file, "masked_select", masked, x, rng, types=["Float64", "Bool"])


def write(file):
    rng = np.random.default_rng(61)
    write_einsum(file, rng)
    write_products(file, rng)
    write_borders(file, rng)
    write_set(file, rng)
    write_search(file, rng)
