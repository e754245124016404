"""norm.txt: softmax, logsoftmax, normalise, layer and batch normalisation. NumPy and SciPy; gradients by PyTorch.

layernorm(x, scale, bias; eps): (x - mean) / sqrt(var + eps) * scale + bias over as many first dims as scale has.
batchnorm(x, scale, bias, mean, var; eps, momentum, training): statistics over all dims but the last but one. In
training the outputs are y and the new running mean and variance, (1 - momentum) * old + momentum * batch's, where the
batch's variance divides by n - 1; y itself uses the variance over n.
groupnorm(x, scale, bias; groups, eps): the same over each group of channels of each sample.
"""

import math

import numpy as np
import scipy.special
import torch
import torch.nn.functional as functional

from . import text
from .gradient import gradient_case

EPS = 1e-5
TOLERANCES = {"Float32": "rtol=1e-05 atol=2e-06", "Float64": "rtol=1e-12 atol=1e-13"}


def write_softmax(file, rng):
    for op, function in (("softmax", scipy.special.softmax), ("logsoftmax", scipy.special.log_softmax)):
        for dtype, tol in TOLERANCES.items():
            for shape, dims in (
                ((5, 4), 0),
                ((5, 4), 1),
                ((7,), 0),
                ((3, 4, 2), 1),
                ((3, 4, 2), -1),
                ((33, 3), 0),
                ((1, 3), 0),
            ):
                x = text.rounded(rng.normal(size=shape) * 3, dtype)
                text.case(file, op, dtype, [x], [text.rounded(function(x, axis=dims), dtype)], tol, dim=dims)
        for dtype, tol in (("Float16", "ulp=2"), ("BFloat16", "ulp=2")):
            x = text.dyadic(rng, (5, 3), -3.0, 3.0)
            text.case(file, op, dtype, [x], [text.rounded(function(x, axis=0), dtype)], tol + " atol=1e-06", dim=0)
        x = np.array([[1000.0, -1000.0, 0.0, 1.0], [1000.0, 0.0, -math.inf, 2.0], [999.0, 100.0, 1.0, 3.0]])
        text.case(
            file,
            op,
            "Float32",
            [x],
            [text.rounded(function(x, axis=0), "Float32")],
            TOLERANCES["Float32"],
            dim=0,
            samples="special",
        )
    golden = np.array([0.0900306, 0.244728, 0.665241])
    assert np.allclose(scipy.special.softmax([1, 2, 3]), golden, atol=1e-6)


def standardised(x, axes):
    mean, var = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    return (x - mean) / np.sqrt(var + EPS)


def like_leading(parameter, rank):
    """Sizes meet from the first dimension on."""
    return parameter.reshape(parameter.shape + (1,) * (rank - parameter.ndim))


def write_layernorm(file, rng):
    for dtype, tol in TOLERANCES.items():
        for shape, size in (((4, 5), (4,)), ((6, 3, 2), (6,)), ((3, 4, 2), (3, 4)), ((2, 3), (2,))):
            x, scale, bias = [text.rounded(rng.normal(size=s), dtype) for s in (shape, size, size)]
            axes, rank = tuple(range(len(size))), len(shape)
            y = standardised(x, axes) * like_leading(scale, rank) + like_leading(bias, rank)
            text.case(file, "layernorm", dtype, [x, scale, bias], [text.rounded(y, dtype)], tol, eps=EPS)
        for dims in ((0,), (1,), (0, 1)):
            x = text.rounded(rng.normal(size=(4, 5, 2)), dtype)
            text.case(
                file, "normalise", dtype, [x], [text.rounded(standardised(x, dims), dtype)], tol, dims=dims, eps=EPS
            )

    def layernorm(x, scale, bias):
        return functional.layer_norm(x.T, (4,), scale, bias, EPS).T

    inputs = [text.dyadic(rng, (4, 5)), text.dyadic(rng, (4,)), text.dyadic(rng, (4,))]
    gradient_case(file, "layernorm", layernorm, inputs, rng, eps=EPS)


def channel_axes(rank):
    return tuple(d for d in range(rank) if d != rank - 2)


def per_channel(parameter, rank):
    return parameter.reshape((1,) * (rank - 2) + (-1, 1))


def batchnorm(x, scale, bias, mean, var, momentum, training):
    """(y, new mean, new variance)"""
    axes, rank = channel_axes(x.ndim), x.ndim
    count = x.size // x.shape[rank - 2]
    used_mean, used_var = (x.mean(axes), x.var(axes)) if training else (mean, var)
    y = (x - per_channel(used_mean, rank)) / np.sqrt(per_channel(used_var, rank) + EPS)
    y = y * per_channel(scale, rank) + per_channel(bias, rank)
    new_mean = (1 - momentum) * mean + momentum * used_mean
    new_var = (1 - momentum) * var + momentum * used_var * count / (count - 1)
    return y, new_mean, new_var


def write_batchnorm(file, rng):
    for dtype, tol in TOLERANCES.items():
        for shape in ((3, 8), (4, 3, 3, 2), (5, 2, 3)):
            channels = shape[-2]
            x = text.rounded(rng.normal(size=shape), dtype)
            scale, bias, mean = [text.rounded(rng.normal(size=channels), dtype) for _ in range(3)]
            var = text.rounded(rng.uniform(0.5, 2, channels), dtype)
            for training in (True, False):
                results = batchnorm(x, scale, bias, mean, var, 0.1, training)
                results = [text.rounded(r, dtype) for r in results[: 3 if training else 1]]
                text.case(
                    file,
                    "batchnorm",
                    dtype,
                    [x, scale, bias, mean, var],
                    results,
                    tol,
                    eps=EPS,
                    momentum=0.1,
                    training=training,
                )
    write_batchnorm_of_flux(file)
    inputs = [text.dyadic(rng, (3, 2, 2, 4)), text.dyadic(rng, (2,)), text.dyadic(rng, (2,))]

    def training_output(x, scale, bias):
        y = functional.batch_norm(x.permute(3, 2, 1, 0), None, None, scale, bias, True, 0.1, EPS)
        return y.permute(3, 2, 1, 0)

    outputs = inputs + [np.zeros(2, dtype=np.float32), np.ones(2, dtype=np.float32)]  # no gradient by the statistics
    gradient_case(
        file,
        "batchnorm",
        lambda x, s, b, *_: training_output(x, s, b),
        outputs,
        rng,
        eps=EPS,
        momentum=0.1,
        training=True,
    )


def write_batchnorm_of_flux(file):
    """The case of Flux's own tests: BatchNorm(2) on [1 3 5; 2 4 6]."""
    x = np.array([[1.0, 3, 5], [2, 4, 6]])
    one, zero = np.ones(2), np.zeros(2)
    y, mean, var = batchnorm(x, one, zero, zero, one, 0.1, True)
    assert np.allclose(y, [[-1.22474, 0, 1.22474]] * 2, atol=1e-4)
    assert np.allclose(mean, [0.3, 0.4]) and np.allclose(var, [1.3, 1.3])
    results = [text.rounded(r, "Float32") for r in (y, mean, var)]
    text.case(
        file,
        "batchnorm",
        "Float32",
        [x, one, zero, zero, one],
        results,
        TOLERANCES["Float32"],
        eps=EPS,
        momentum=0.1,
        training=True,
    )


def write_groupnorm(file):
    """The case of Flux's own tests: GroupNorm(4, 2) on reshape(1:24, 3, 4, 2)."""
    x = np.arange(1.0, 25.0).reshape(3, 4, 2, order="F")
    groups = x.reshape(3, 2, 2, 2, order="F")
    y = standardised(groups, (0, 1)).reshape(x.shape, order="F")
    assert np.allclose(y[:, 0, 0], [-1.4638476, -0.87830865, -0.29276967], atol=1e-5)
    text.case(
        file,
        "groupnorm",
        "Float32",
        [x, np.ones(4), np.zeros(4)],
        [text.rounded(y, "Float32")],
        TOLERANCES["Float32"],
        groups=2,
        eps=EPS,
    )


def write_gradients(file, rng):
    for dims in (0, 1):
        x = text.dyadic(rng, (5, 4))
        gradient_case(file, "softmax", lambda t: torch.softmax(t, dims), [x], rng, dim=dims)
        gradient_case(file, "logsoftmax", lambda t: torch.log_softmax(t, dims), [x], rng, dim=dims)


def write(file):
    rng = np.random.default_rng(10)
    write_softmax(file, rng)
    write_layernorm(file, rng)
    write_batchnorm(file, rng)
    write_groupnorm(file)
    write_gradients(file, rng)
