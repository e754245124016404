"""loss.txt: Flux's losses, mean over all observations. Definitions in PyTorch and Float64, checked against Flux's own
doctests; gradients (by the prediction) by autograd. Inputs: prediction and target, (classes, batch) where there are
classes. eps is that of the element type where Flux has one.
"""

import numpy as np
import torch
import torch.nn.functional as functional

from . import text
from .gradient import gradient_case

EPS = {"Float32": 2.0**-23, "Float64": 2.0**-52}
TOLERANCES = {"Float32": "rtol=1e-05 atol=1e-06", "Float64": "rtol=1e-12"}


def huber(p, y, delta=1.0):
    error = (p - y).abs()
    return torch.where(error < delta, error**2 / 2, delta * (error - delta / 2)).mean()


def crossentropy(p, y, eps=0.0):
    return -(y * torch.log(p + eps)).sum(0).mean()


def binary_crossentropy(p, y, eps=0.0):
    return (-torch.xlogy(y, p + eps) - torch.xlogy(1 - y, 1 - p + eps)).mean()


def kldivergence(p, y, eps=0.0):
    return torch.xlogy(y, y).sum(0).mean() + crossentropy(p, y, eps)


def dice(p, y, smooth=1.0):
    return 1 - (2 * (y * p).sum() + smooth) / ((y**2).sum() + (p**2).sum() + smooth)


def tversky(p, y, beta=0.7):
    """beta weights false positives, as Flux computes it (its docstring says the opposite)."""
    hits = (y * p).sum()
    return 1 - (hits + 1) / (hits + beta * ((1 - y) * p).sum() + (1 - beta) * (y * (1 - p)).sum() + 1)


def binary_focal(p, y, gamma=2.0, eps=0.0):
    true = y * p + (1 - y) * (1 - p) + eps
    return (-((1 - true) ** gamma) * torch.log(true)).mean()


def focal(p, y, gamma=2.0, eps=0.0):
    shifted = p + eps
    return (-y * (1 - shifted) ** gamma * torch.log(shifted)).sum(0).mean()


def contrastive(p, y, margin=1.0):
    """siamese_contrastive_loss"""
    return ((1 - y) * p**2 + y * torch.relu(margin - p) ** 2).mean()


LOSSES = {  # name: (definition, whether it takes eps, kind of inputs)
    "mse": (lambda p, y: ((p - y) ** 2).mean(), False, "real"),
    "mae": (lambda p, y: (p - y).abs().mean(), False, "real"),
    "msle": (lambda p, y, eps=0.0: ((torch.log(p + eps) - torch.log(y + eps)) ** 2).mean(), True, "positive"),
    "huber_loss": (huber, False, "real"),
    "crossentropy": (crossentropy, True, "classes"),
    "logitcrossentropy": (lambda p, y: -(y * torch.log_softmax(p, 0)).sum(0).mean(), False, "logits"),
    "binarycrossentropy": (binary_crossentropy, True, "binary"),
    "logitbinarycrossentropy": (lambda p, y: ((1 - y) * p - functional.logsigmoid(p)).mean(), False, "binary logits"),
    "kldivergence": (kldivergence, True, "classes"),
    "poisson_loss": (lambda p, y: (p - torch.xlogy(y, p)).mean(), False, "positive"),
    "hinge_loss": (lambda p, y: torch.relu(1 - p * y).mean(), False, "signs"),
    "squared_hinge_loss": (lambda p, y: (torch.relu(1 - p * y) ** 2).mean(), False, "signs"),
    "dice_coeff_loss": (dice, False, "binary"),
    "tversky_loss": (tversky, False, "binary"),
    "binary_focal_loss": (binary_focal, True, "binary"),
    "focal_loss": (focal, True, "classes"),
    "siamese_contrastive_loss": (contrastive, False, "binary"),
}
HALF = [0.9, 0.1, 0.1, 0.9]
PAIRS, MARKS = [[0.4, 0.2], [0.5, 0.5], [0.1, 0.3]], [[1, 0], [0, 0], [0, 1]]
OVERLAP = [0, 1.4, 0.5, 1.2], [1, 0.5, 0.3, 2.4]
FOCAL = [[0.268941, 0.5, 0.268941], [0.731059, 0.5, 0.731059]], [[0, 1, 0], [1, 0, 1]]
GOLDEN = [  # name, prediction, target, value, options: Flux's tests and doctests
    ("mse", HALF, [1, 1, 0, 0], 0.41, {}),
    ("mae", HALF, [1, 1, 0, 0], 0.5, {}),
    ("huber_loss", HALF, [1, 1, 0, 0], 0.205, {}),
    ("msle", [345, 332, 789], [123, 456, 789], 0.38813985859136585, {}),
    ("crossentropy", [[0.1, 0.9, 0.9, 0.1], [0.9, 0.1, 0.1, 0.9]], [[0, 0, 1, 1], [1, 1, 0, 0]], 1.203972804325936, {}),
    ("kldivergence", [[4, 5, 6]], [[1, 2, 3]], -1.7661057888493457, {}),
    ("hinge_loss", [1, 2, 3, 4], [0.5, 1, 1.5, 2], 0.125, {}),
    ("squared_hinge_loss", [1, 2, 3, 4], [0.5, 1, 1.5, 2], 0.0625, {}),
    ("poisson_loss", [0.4, 0.5, 0.6], [0.1, 0.2, 0.3], 0.6278353988097339, {}),
    ("dice_coeff_loss", *OVERLAP, 0.28, {}),
    ("tversky_loss", *OVERLAP, -0.06772009029345383, {}),
    ("tversky_loss", *OVERLAP, -0.09490740740740744, {"beta": 0.8}),
    ("binary_focal_loss", *FOCAL, 0.0728675615927385, {}),
    ("focal_loss", PAIRS, MARKS, 0.45990566879720157, {}),
    ("siamese_contrastive_loss", PAIRS, MARKS, 0.2333333333, {}),
    ("siamese_contrastive_loss", PAIRS, MARKS, 0.1, {"margin": 0.5}),
]


def sample(rng, kind, shape):
    p, y = rng.uniform(0.05, 0.95, shape), rng.integers(0, 2, shape).astype(float)
    if kind == "real":
        return rng.normal(size=shape) * 2, rng.normal(size=shape)
    if kind == "positive":
        return rng.uniform(0.1, 4, shape), rng.uniform(0.1, 4, shape)
    if kind == "signs":
        return rng.normal(size=shape), 2 * y - 1
    if kind == "binary logits":
        return rng.normal(size=shape) * 3, y
    if kind == "binary":
        return p, y
    onehot = np.eye(shape[0])[rng.integers(0, shape[0], shape[1])].T
    return (rng.normal(size=shape) * 2, onehot) if kind == "logits" else (p / p.sum(0), onehot)


def value(name, p, y, dtype="Float64", **options):
    function, takes_eps, _ = LOSSES[name]
    if takes_eps:
        options["eps"] = EPS[dtype]
    return function(torch.tensor(p, dtype=torch.float64), torch.tensor(y, dtype=torch.float64), **options).numpy()


def write_values(file, rng):
    for name, (_, _, kind) in LOSSES.items():
        for dtype, tol in TOLERANCES.items():
            p, y = [text.rounded(x, dtype) for x in sample(rng, kind, (4, 5))]
            text.case(file, name, dtype, [p, y], [text.rounded(value(name, p, y, dtype), dtype)], tol)


def write_golden(file):
    for name, p, y, expected, options in GOLDEN:
        found = value(name, p, y, **options)
        assert abs(found - expected) < 1e-7 * max(1, abs(expected)), (name, found, expected)
        arrays = [np.array(x, dtype=np.float64) for x in (p, y)]
        text.case(file, name, "Float64", arrays, [found], "rtol=1e-12", samples="golden", **options)


def write_extremes(file):
    """Large logits do not overflow; a probability of exactly 0 or 1 is held by eps."""
    logits = np.array([[1000.0, -1000.0, 0.0], [-1000.0, 1000.0, 100.0]])
    target = np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    for name in ("logitcrossentropy", "logitbinarycrossentropy"):
        found = text.rounded(value(name, logits, target), "Float32")
        text.case(file, name, "Float32", [logits, target], [found], TOLERANCES["Float32"], samples="special")
    p = np.array([[1.0, 0.0, 0.5], [0.0, 1.0, 0.5]])
    for name in ("crossentropy", "binarycrossentropy"):
        found = text.rounded(value(name, p, target, "Float32"), "Float32")
        text.case(file, name, "Float32", [p, target], [found], TOLERANCES["Float32"], samples="special")


def write_gradients(file, rng):
    for name, (function, takes_eps, kind) in LOSSES.items():
        p, y = sample(rng, kind, (3, 4))
        options = {"eps": EPS["Float64"]} if takes_eps else {}
        target = torch.tensor(y)
        gradient_case(
            file, name, lambda t, _: function(t, target, **options), [p, y], rng, gradtol="rtol=1e-09 atol=1e-12"
        )


def write(file):
    rng = np.random.default_rng(11)
    write_values(file, rng)
    write_golden(file)
    write_extremes(file)
    write_gradients(file, rng)
