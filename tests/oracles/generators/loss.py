"""loss.txt: losses, mean over all observations. Flux's: definitions in PyTorch and Float64, checked against Flux's own
doctests; gradients (by the prediction) by autograd. Inputs: prediction and target, (classes, batch) where there are
classes. eps is that of the element type where Flux has one. Losses of labels, margins and CTC: PyTorch's functions.
"""

import numpy as np
import torch
import torch.nn.functional as functional

from . import text
from .gradient import gradient_case, gradients

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


def from_labels(loss, dim=0, **options):
    """A loss of PyTorch, whose classes are at dim 1, for classes at `dim`."""

    def call(p, labels, weights=None):
        return loss(p.movedim(dim, -1).reshape(-1, p.shape[dim]), labels.flatten(), weight=weights, **options)

    return call


def write_label_losses(file, rng):
    crossentropy, margin = functional.cross_entropy, functional.multi_margin_loss
    weights = np.array([0.5, 2.0, 1.0, 0.25])
    labels = np.array([0, 3, 1, 2, 1])
    ignoring = np.array([0, 3, -100, 2, 1])
    plain, weighted = ["Float64", "Int32"], ["Float64", "Int64", "Float64"]

    def case(name, function, inputs, types, **attributes):
        only_scores = lambda p, *rest: function(p, rest[0], *[w.detach() for w in rest[1:]])
        kept = rng.uniform(-0.03125, 0.03125, (4, 5)) if name == "multi_margin_loss" else 0  # off the margins
        tensors = [text.dyadic(rng, (4, 5), -3.0, 3.0) + kept, *inputs]
        values, cotangents, grads = gradients(only_scores, tensors, rng, [True] + [False] * len(inputs))
        typed = list(zip(types, tensors))
        text.case(file, name, "Float64", typed, values, "rtol=1e-12", cotangents, grads,
                  "rtol=1e-09 atol=1e-12", **attributes)  # fmt: skip

    case("labelcrossentropy", from_labels(crossentropy), [labels], plain)
    case("labelcrossentropy", from_labels(crossentropy, label_smoothing=0.25), [labels], plain, smoothing=0.25)
    case("labelcrossentropy", from_labels(crossentropy), [ignoring], plain, ignore=-100)
    case("labelcrossentropy", from_labels(crossentropy), [labels, weights], weighted)
    case("labelcrossentropy", from_labels(crossentropy, label_smoothing=0.125), [ignoring, weights], weighted,
         ignore=-100, smoothing=0.125)  # fmt: skip
    transposed = np.array([4, 0, 2, 1])
    case("labelcrossentropy", from_labels(crossentropy, 1), [transposed], plain, dim=1)
    case("multi_margin_loss", from_labels(margin), [labels], plain)
    case("multi_margin_loss", from_labels(margin, p=2, margin=0.75), [labels], plain, p=2, margin=0.75)
    case("multi_margin_loss", from_labels(margin), [labels, weights], weighted)


def write_pairs(file, rng):
    def sample(*shape):
        return text.dyadic(rng, shape, -2.0, 2.0)

    def case(name, function, inputs, **attributes):
        gradient_case(file, name, function, inputs, rng, gradtol="rtol=1e-09 atol=1e-12", **attributes)

    variance = text.dyadic(rng, (3, 4), 0.125, 2.0)
    gaussian = lambda p, y, v, **o: functional.gaussian_nll_loss(p, y, v, **o)
    case("gaussian_nll_loss", gaussian, [sample(3, 4), sample(3, 4), variance])
    case("gaussian_nll_loss", lambda p, y, v: gaussian(p, y, v, full=True), [sample(3, 4), sample(3, 4), variance],
         full=True)  # fmt: skip
    signs = np.array([[1.0, -1.0, 1.0, -1.0], [-1.0, 1.0, -1.0, 1.0]])
    ranking = lambda a, b, y, m=0.0: functional.margin_ranking_loss(a, b, y.detach(), margin=m)

    def signed(name, function, inputs, **attributes):
        values, cotangents, grads = gradients(function, inputs, rng, [True, True, False])
        text.case(file, name, "Float64", inputs, values, "rtol=1e-12", cotangents, grads,
                  "rtol=1e-09 atol=1e-12", **attributes)  # fmt: skip

    shifted = sample(2, 4) + 0.03125
    signed("margin_ranking_loss", ranking, [sample(2, 4), shifted, signs])
    signed("margin_ranking_loss", lambda a, b, y: ranking(a, b, y, 0.625), [sample(2, 4), shifted, signs],
           margin=0.625)  # fmt: skip
    cosine = lambda a, b, y, m=0.0: functional.cosine_embedding_loss(a.T, b.T, y, margin=m)
    signed("cosine_embedding_loss", cosine, [sample(3, 4), sample(3, 4), signs[0]])
    signed("cosine_embedding_loss", lambda a, b, y: cosine(a, b, y, -0.5), [sample(3, 4), sample(3, 4), signs[0]],
           margin=-0.5)  # fmt: skip
    triplet = lambda x, near, far, **o: functional.triplet_margin_loss(x.T, near.T, far.T, **o)
    for options in ({}, {"margin": 3.0, "swap": True}, {"p": 1.0, "margin": 2.0}):
        inputs = [sample(3, 5), sample(3, 5), sample(3, 5)]
        case("triplet_margin_loss", lambda a, p, n: triplet(a, p, n, **options), inputs, **options)


def write_pos_weight(file, rng):
    p, y, weights = text.dyadic(rng, (3, 4), -3.0, 3.0), text.dyadic(rng, (3, 4), 0.0, 1.0), np.array([[0.5], [2], [3]])
    binary = lambda p, y, w: functional.binary_cross_entropy_with_logits(p, y, pos_weight=w)
    inputs = [p, y, weights.astype(float)]
    values, cotangents, grads = gradients(binary, inputs, rng, [True, False, False])
    text.case(file, "logitbinarycrossentropy", "Float64", inputs, values, "rtol=1e-12", cotangents, grads,
              "rtol=1e-09 atol=1e-12", pos_weight=True)  # fmt: skip


def write_ctc(file, rng):
    """ctc_loss(logits (classes, time, batch), labels (labels, batch)[, lengths, label_lengths]; blank)."""

    def ctc(blank, lengths=None, label_lengths=None):
        def call(p, labels, *_):
            scores = torch.log_softmax(p, 0).permute(1, 2, 0)
            batch = p.shape[2]
            times = torch.tensor(lengths if lengths is not None else [p.shape[1]] * batch)
            counts = torch.tensor(label_lengths if label_lengths is not None else [labels.shape[0]] * batch)
            losses = functional.ctc_loss(scores, labels.T, times, counts, blank=blank, reduction="none")
            return losses.mean()

        return call

    def case(p, labels, blank, *rest, **attributes):
        inputs = [p, labels, *rest]
        values, cotangents, grads = gradients(ctc(blank, *rest), inputs, rng, [True] + [False] * (len(inputs) - 1))
        types = ["Float64", "Int32", "Int64", "Int64"]
        text.case(file, "ctc_loss", "Float64", list(zip(types, inputs)), values, "rtol=1e-11", cotangents, grads,
                  "rtol=1e-09 atol=1e-11", blank=blank, **attributes)  # fmt: skip

    def logits(*shape):
        return text.dyadic(rng, shape, -2.0, 2.0)

    case(logits(5, 7, 2), np.array([[1, 2], [1, 3], [3, 3]]), 0)
    case(logits(5, 7, 2), np.array([[1, 2], [1, 3], [3, 3]]), 4)
    case(logits(4, 6, 1), np.array([[2]]), 3)
    case(logits(5, 8, 3), np.array([[1, 2, 3], [1, 3, 4], [3, 3, 0], [2, 0, 0]]), 0, np.array([8, 6, 5]),
         np.array([4, 3, 2]))  # fmt: skip


def write(file):
    rng = np.random.default_rng(11)
    write_values(file, rng)
    write_golden(file)
    write_extremes(file)
    write_gradients(file, rng)
    write_label_losses(file, rng)
    write_pairs(file, rng)
    write_pos_weight(file, rng)
    write_ctc(file, rng)
