"""matmul.txt: products of matrices, of batches (the batch is the last dim, as in Julia's batched_mul), of vectors;
dot, outer, cosine_similarity, and triangles of matrices."""

import numpy as np
import torch

from . import text
from .gradient import gradient_case

SHAPES = [  # first operand, second operand
    ((3, 4), (4, 5)),
    ((1, 7), (7, 1)),
    ((17, 13), (13, 11)),
    ((5, 1), (1, 6)),
    ((1, 1), (1, 1)),
    ((2, 33), (33, 3)),
    ((3, 4), (4,)),
    ((4,), (4, 3)),
    ((5,), (5,)),
    ((3, 4, 2), (4, 5, 2)),
    ((3, 4, 1), (4, 5, 3)),
    ((3, 4, 3), (4, 5, 1)),
    ((0, 4), (4, 3)),
    ((3, 0), (0, 2)),
    ((3, 4, 0), (4, 2, 0)),
]


def product(a, b, module=np):
    """rosin's matmul by einsum; a vector is a row before a matrix, a column behind one."""
    left = {1: "k", 2: "ik", 3: "ikb"}[a.ndim]
    right = {1: "k", 2: "kj", 3: "kjb"}[b.ndim]
    if a.ndim == 3:  # einsum does not stretch size 1 in PyTorch
        batch = max(a.shape[2], b.shape[2]) if 0 not in (a.shape[2], b.shape[2]) else 0
        stretch = np.broadcast_to if module is np else torch.broadcast_to
        a, b = stretch(a, (*a.shape[:2], batch)), stretch(b, (*b.shape[:2], batch))
    result = "".join(c for c in left if c in "i") + "".join(c for c in right if c in "j") + ("b" if a.ndim == 3 else "")
    return module.einsum(f"{left},{right}->{result}", a, b)


def write_exact(file, rng):
    """Multiples of 1/8 below 2: every partial sum is exact in Float32, so any order gives this result."""
    for a_shape, b_shape in SHAPES:
        for dtype in ("Float32", "Float64"):
            a, b = text.dyadic(rng, a_shape), text.dyadic(rng, b_shape)
            text.case(file, "matmul", dtype, [a, b], [np.asarray(product(a, b))], "ulp=0")
    for dtype in ("Float16", "BFloat16"):  # summed in Float32, rounded once
        for a_shape, b_shape in SHAPES[:3] + SHAPES[6:7] + SHAPES[9:10]:
            a, b = text.dyadic(rng, a_shape), text.dyadic(rng, b_shape)
            text.case(file, "matmul", dtype, [a, b], [text.rounded(product(a, b), dtype)], "ulp=0")
    a, b = rng.integers(-9, 10, (3, 4)), rng.integers(-9, 10, (4, 5))
    text.case(file, "matmul", "Int32", [a, b], [("Int64", product(a, b))], "exact")


def write_rounded(file, rng):
    for a_shape, b_shape in (((8, 40), (40, 6)), ((6, 10, 3), (10, 4, 3))):
        for dtype, tol in (("Float32", "rtol=1e-05 atol=2e-06"), ("Float64", "rtol=1e-13 atol=1e-14")):
            a, b = [text.rounded(rng.normal(size=s), dtype) for s in (a_shape, b_shape)]
            text.case(file, "matmul", dtype, [a, b], [text.rounded(product(a, b), dtype)], tol)
    a = np.array([[1.0, np.nan], [0.0, 2.0], [np.inf, 1.0]])
    b = np.array([[1.0, 0.0], [1.0, 1.0]])
    with np.errstate(invalid="ignore"):
        text.case(file, "matmul", "Float32", [a, b], [a @ b], "ulp=0", samples="special")


def write_gradients(file, rng):
    for a_shape, b_shape in SHAPES[:1] + SHAPES[6:12]:
        inputs = [text.dyadic(rng, a_shape), text.dyadic(rng, b_shape)]
        gradient_case(file, "matmul", lambda a, b: product(a, b, torch), inputs, rng)


def write_vectors(file, rng):
    a, b, c = text.dyadic(rng, (5,)), text.dyadic(rng, (5,)), text.dyadic(rng, (3,))
    text.case(file, "dot", "Float32", [a, b], [np.asarray(a @ b)], "ulp=0")
    text.case(file, "outer", "Float32", [a, c], [np.outer(a, c)], "exact")
    gradient_case(file, "dot", torch.dot, [a, b], rng)
    gradient_case(file, "outer", torch.outer, [a, c], rng)
    a, b = text.dyadic(rng, (4, 3)), text.dyadic(rng, (4, 3))
    gradient_case(
        file, "cosine_similarity", lambda x, y: torch.cosine_similarity(x, y, 0).unsqueeze(0), [a, b], rng, dim=0
    )
    zero = np.array([[0.0, 1.0], [0.0, 1.0]])
    expected = np.array([[0.0, 1.0]])
    text.case(
        file,
        "cosine_similarity",
        "Float32",
        [zero, np.ones((2, 2))],
        [expected],
        "rtol=1e-06",
        dim=0,
        samples="special",
    )


def write_triangles(file, rng):
    for shape, k in (((4, 4), 0), ((3, 5), 1), ((5, 3), -2), ((3, 3, 2), 0)):
        x = text.distinct(rng, shape)
        first = lambda function, m: np.moveaxis(function(np.moveaxis(m, (0, 1), (-2, -1)), k), (-2, -1), (0, 1))
        text.case(file, "tril", "Float32", [x], [first(np.tril, x)], "ulp=0", k=k)
        text.case(file, "triu", "Float32", [x], [first(np.triu, x)], "ulp=0", k=k)


def write(file):
    rng = np.random.default_rng(8)
    write_exact(file, rng)
    write_rounded(file, rng)
    write_gradients(file, rng)
    write_vectors(file, rng)
    write_triangles(file, rng)
