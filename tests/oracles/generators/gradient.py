"""Gradients by PyTorch in Float64: the case's cotangents are fixed numbers, the gradients are autograd's."""

import numpy as np
import torch

from . import text


def column_major_reshape(x, shape):
    """torch.reshape in column-major order."""
    return x.permute(*reversed(range(x.dim()))).reshape(*reversed(shape)).permute(*reversed(range(len(shape))))


def gradients(function, inputs, rng, differentiable=None):
    """(outputs, cotangents, gradients) of a function of tensors; gradients are None for inputs that have none."""
    differentiable = differentiable or [np.asarray(x).dtype == np.float64 for x in inputs]
    tensors = [torch.tensor(np.array(x, order="C")).requires_grad_(d) for x, d in zip(inputs, differentiable)]
    outputs = function(*tensors)
    outputs = list(outputs) if isinstance(outputs, (tuple, list)) else [outputs]
    cotangents = [text.dyadic(rng, tuple(y.shape), -1.0, 1.0, 0.0625) + 0.03125 for y in outputs]  # never zero
    loss = sum((torch.tensor(c) * y).sum() for c, y in zip(cotangents, outputs))
    wanted = [t for t, d in zip(tensors, differentiable) if d]
    found = iter(torch.autograd.grad(loss, wanted, allow_unused=True))
    grads = []
    for tensor, d in zip(tensors, differentiable):
        gradient = next(found) if d else None
        grads.append(None if gradient is None else gradient.numpy())
    return [y.detach().numpy() for y in outputs], cotangents, grads


def gradient_case(
    file,
    op,
    function,
    inputs,
    rng,
    check=None,
    types=None,
    gradtol=None,
    tolerance="rtol=1e-12 atol=1e-14",
    dtype="Float64",
    **attributes,
):
    """Writes a case of `dtype`, computed in Float64, with value and gradients of a function of tensors; `check(grads)`
    states an edge rule."""
    outputs, cotangents, grads = gradients(function, inputs, rng)
    if check:
        assert check(grads), f"{op}: PyTorch's gradient breaks the stated edge rule: {grads}"
    types = types or [dtype] * len(inputs)
    text.case(
        file,
        op,
        dtype,
        list(zip(types, inputs)),
        outputs,
        tolerance,
        cotangents,
        grads,
        gradtol,
        **attributes,
    )
