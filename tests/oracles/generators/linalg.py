"""linalg.txt: factorisations, solving, determinants, spectra, norms. Values by PyTorch, checked against NumPy and SciPy
where these have the function, gradients by PyTorch. Batches are further dims of ours and first dims of theirs.

svd: u and vt are squared, which takes their signs away. eigh: of (x + x') / 2, with squared vectors.
"""

import numpy as np
import scipy.linalg
import torch

from . import text
from .gradient import gradient_case

SQUARE = [(1, 1), (3, 3), (4, 4, 2), (2, 2, 2, 3)]
OTHERS = [(4, 2), (2, 4), (3, 2, 2), (2, 3, 2)]


def batch_first(x, dims=2):
    return x.permute([*range(dims, x.dim()), *range(dims)])


def batch_last(y, dims):
    return y.permute([*range(y.dim() - dims, y.dim()), *range(y.dim() - dims)])


def batched(function, *dims):
    """A function of matrices with batches first, as one of ours; `dims`: of each result without its batch."""

    def ours(*inputs):
        results = function(*[batch_first(x) for x in inputs])
        results = results if isinstance(results, (tuple, list)) else [results]
        return [batch_last(y, d) for y, d in zip(results, dims)]

    return ours


def matrices(rng, shape):
    """Diagonals are heavier, so that inverses are of moderate size."""
    x = text.dyadic(rng, shape, -1.0, 1.0)
    for i in range(min(shape[:2])):
        x[i, i] += (1.5 + 0.25 * i) * (-1 if i == 1 else 1)
    return x


def definite(rng, shape):
    x = matrices(rng, shape)
    return np.einsum("ik...,jk...->ij...", x, x)


GRADTOL = "rtol=1e-9 atol=1e-11"


def case(file, op, function, inputs, rng, by_numpy=None, **attributes):
    if by_numpy and all(x.ndim == 2 for x in inputs):
        got, want = function(*[torch.tensor(x) for x in inputs]), by_numpy(*inputs)
        want = want if isinstance(want, tuple) else (want,)
        for g, w in zip(got, want):
            assert np.allclose(g.numpy(), w), (op, g, w)
    gradient_case(file, op, function, inputs, rng, gradtol=GRADTOL, tolerance="rtol=1e-10 atol=1e-12", **attributes)


def write_solvers(file, rng):
    for shape in SQUARE:
        case(file, "cholesky", batched(torch.linalg.cholesky, 2), [definite(rng, shape)], rng, np.linalg.cholesky)
        case(file, "inv", batched(torch.linalg.inv, 2), [matrices(rng, shape)], rng, np.linalg.inv)
        b = text.dyadic(rng, (shape[0], 2, *shape[2:]), -1.0, 1.0)
        case(file, "solve", batched(torch.linalg.solve, 2), [matrices(rng, shape), b], rng, np.linalg.solve)
        for upper in (0, 1):
            for unit in (0, 1):
                for transposed in (0, 1):
                    write_triangular(file, rng, matrices(rng, shape), b, upper, unit, transposed)
    pairs = ([(3, 3, 2), (3, 2)], [(3, 3), (3, 2, 2)], [(3, 3, 1, 2), (3, 1, 3, 1)])
    for a, b in pairs:  # batches broadcast from the first on
        wide = lambda x, rank: x.reshape(*x.shape, *[1] * (rank - x.dim()))  # noqa: E731
        rank = max(len(a), len(b))
        function = lambda x, y: batched(torch.linalg.solve, 2)(wide(x, rank), wide(y, rank))  # noqa: E731
        case(file, "solve", function, [matrices(rng, a), text.dyadic(rng, b, -1.0, 1.0)], rng)


def write_triangular(file, rng, a, b, upper, unit, transposed):
    def function(x, y):
        x, up = (x.mT, not upper) if transposed else (x, bool(upper))
        return torch.linalg.solve_triangular(x, y, upper=up, unitriangular=bool(unit))

    def by_scipy(x, y):
        return scipy.linalg.solve_triangular(x, y, trans=transposed, lower=not upper, unit_diagonal=bool(unit))

    flags = {"upper": upper, "unit": unit, "transposed": transposed}
    case(file, "triangular_solve", batched(function, 2), [a, b], rng, by_scipy, **flags)


def write_factors(file, rng):
    for shape in SQUARE + OTHERS:
        case(file, "lu", batched(lambda x: torch.linalg.lu(x)[1:], 2, 2), [matrices(rng, shape)], rng)
        case(file, "qr", batched(torch.linalg.qr, 2, 2), [matrices(rng, shape)], rng, np.linalg.qr)
        case(file, "pinv", batched(torch.linalg.pinv, 2), [matrices(rng, shape)], rng, np.linalg.pinv)
        b = text.dyadic(rng, (shape[0], 3, *shape[2:]), -1.0, 1.0)
        by_numpy = lambda x, y: np.linalg.lstsq(x, y)[0]  # noqa: E731
        function = batched(lambda x, y: torch.linalg.pinv(x) @ y, 2)
        case(file, "lstsq", function, [matrices(rng, shape), b], rng, by_numpy)


def write_spectra(file, rng):
    def squared(x):
        u, s, vt = torch.linalg.svd(x, full_matrices=False)
        return u * u, s, vt * vt

    def squared_vectors(x):
        values, vectors = torch.linalg.eigh((x + x.mT) / 2)
        return values, vectors * vectors

    for shape in SQUARE + OTHERS:
        case(file, "svd", batched(squared, 2, 1, 2), [matrices(rng, shape)], rng)
        case(file, "svdvals", batched(torch.linalg.svdvals, 1), [matrices(rng, shape)], rng)
    for shape in SQUARE:
        case(file, "eigh", batched(squared_vectors, 1, 2), [matrices(rng, shape)], rng)
        values = batched(lambda x: torch.linalg.eigvalsh((x + x.mT) / 2), 1)
        case(file, "eigvalsh", values, [matrices(rng, shape)], rng)


def write_numbers(file, rng):
    for shape in SQUARE:
        case(file, "det", batched(torch.linalg.det, 0), [matrices(rng, shape)], rng, np.linalg.det)
        case(file, "slogdet", batched(torch.linalg.slogdet, 0, 0), [matrices(rng, shape)], rng)
        for n in (-2, 1, 2, 5):
            power = batched(lambda x: torch.linalg.matrix_power(x, n), 2)
            case(file, "matrix_power", power, [matrices(rng, shape)], rng, n=n)
    for singular in ([[1.0, 2.0], [0.5, 1.0]], [[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [1.0, -1.0, 0.0]], np.zeros((2, 2))):
        x = np.array(singular)
        by_minors = batched(by_expansion, 0)
        case(file, "det", by_minors, [x], rng, np.linalg.det, samples="edge")


def by_expansion(x):
    """The determinant as a polynomial, whose gradient is right anywhere."""
    if x.shape[-1] == 1:
        return x[0, 0]
    columns = range(x.shape[-1])
    minors = [torch.cat([x[1:, :j], x[1:, j + 1 :]], 1) for j in columns]
    return sum((-1) ** j * x[0, j] * by_expansion(minors[j]) for j in columns)


def write_norms(file, rng):
    for order in (2.0, 1.0, 3.0, 0.5, float("inf"), float("-inf"), 0.0, -1.0, -2.0):
        x = text.dyadic(rng, (3, 4), -1.0, 1.0) + 0.03125
        case(file, "vector_norm", lambda t: torch.linalg.vector_norm(t, order), [x], rng, order=order)
        over = lambda t: torch.linalg.vector_norm(t, order, dim=1, keepdim=True)  # noqa: E731
        case(file, "vector_norm", over, [x], rng, order=order, dims="1")
    for order in (1.0, -1.0, 2.0, -2.0, float("inf"), float("-inf"), "fro", "nuc"):
        for shape in ((3, 3), (4, 2), (2, 3, 2)):
            function = batched(lambda t: torch.linalg.matrix_norm(t, order), 0)
            case(file, "matrix_norm", function, [matrices(rng, shape)], rng, order=order)


def write(file):
    rng = np.random.default_rng(16)
    write_solvers(file, rng)
    write_factors(file, rng)
    write_spectra(file, rng)
    write_numbers(file, rng)
    write_norms(file, rng)
