"""complex.txt: values by NumPy in double precision, gradients by PyTorch."""

import numpy as np
import torch

from . import text

UNARY = {  # ours: NumPy's, PyTorch's
    "neg": (np.negative, torch.neg),
    "square": (np.square, torch.square),
    "reciprocal": (np.reciprocal, torch.reciprocal),
    "abs": (np.abs, torch.abs),
    "sqrt": (np.sqrt, torch.sqrt),
    "exp": (np.exp, torch.exp),
    "log": (np.log, torch.log),
    "conj": (np.conj, torch.conj_physical),
    "real": (np.real, torch.real),
    "imag": (np.imag, torch.imag),
    "angle": (np.angle, torch.angle),
}
BINARY = {
    "add": (np.add, torch.add),
    "sub": (np.subtract, torch.sub),
    "mul": (np.multiply, torch.mul),
    "div": (np.divide, torch.div),
}


def numbers(rng, shape):
    """Away from 0 and from the cuts of log and sqrt."""
    re, im = text.dyadic(rng, shape), text.dyadic(rng, shape)
    im = np.where(np.abs(im) < 0.25, im + 0.5, im)
    return re + 1j * im


def gradients(function, inputs, cotangent):
    tensors = [torch.tensor(x).requires_grad_(True) for x in inputs]
    y = function(*tensors)
    seed = torch.tensor(cotangent)
    loss = (torch.view_as_real(y) * torch.view_as_real(seed)).sum() if y.is_complex() else (y * seed).sum()
    return [g.resolve_conj().numpy() for g in torch.autograd.grad(loss, tensors)]


def write_case(file, name, functions, inputs, rng):
    y = functions[0](*inputs)
    real = not np.iscomplexobj(y)
    cotangent = text.dyadic(rng, y.shape, -1.0, 1.0, 0.0625) + 0.03125
    if not real:
        cotangent = cotangent + 1j * (text.dyadic(rng, y.shape, -1.0, 1.0, 0.0625) + 0.03125)
    kind = "Float32" if real else "ComplexF32"
    grads = gradients(functions[1], inputs, cotangent)
    tolerances = "rtol=2e-06 atol=2e-06", "rtol=1e-5 atol=1e-5"
    text.case(file, name, "ComplexF32", inputs, [(kind, y)], tolerances[0], [(kind, cotangent)], grads, tolerances[1])


def write_special(file):
    """Roots and quotients at the ends of the type's range; NaN and infinities by parts."""
    wide = np.array([3e19 + 4e19j, -3e-20 + 4e-20j, 1e30 - 1e-30j, -1 + 0j, 4 + 0j, -4j, 0j])
    text.case(file, "abs", "ComplexF32", [wide], [("Float32", np.abs(wide))], "rtol=1e-06")
    text.case(file, "sqrt", "ComplexF32", [wide], [np.sqrt(wide)], "rtol=2e-06 atol=1e-30")
    text.case(file, "div", "ComplexF32", [wide[:3], wide[:3]], [np.ones(3) + 0j], "rtol=1e-06 atol=1e-06")
    odd = np.array([np.nan + 1j, complex(1, np.inf), 1 + 1j, complex(-np.inf, np.nan)])
    for name, function in (("is_nan", np.isnan), ("is_inf", np.isinf), ("is_finite", np.isfinite)):
        text.case(file, name, "ComplexF32", [odd], [("Bool", function(odd))], "exact")


def write(file):
    rng = np.random.default_rng(41)
    for name, functions in UNARY.items():
        write_case(file, name, functions, [numbers(rng, (3, 4))], rng)
    for name, functions in BINARY.items():
        write_case(file, name, functions, [numbers(rng, (3, 4)), numbers(rng, (3, 4))], rng)
    for dims in ((0,), (1,), (0, 1)):
        functions = [
            lambda x, dims=dims: np.sum(x, dims, keepdims=True),
            lambda x, dims=dims: torch.sum(x, dims, keepdim=True),
        ]
        x = numbers(rng, (3, 4))
        y = functions[0](x)
        cotangent = text.dyadic(rng, y.shape) + 1j * text.dyadic(rng, y.shape)
        grads = gradients(functions[1], [x], cotangent)
        name = "sum"
        text.case(file, name, "ComplexF32", [x], [y], "rtol=1e-06", [cotangent], grads, "rtol=1e-06", dims=list(dims))
    a, b = numbers(rng, 8), numbers(rng, 8)
    same = np.where(np.arange(8) % 2, a, b)
    for name, function in (("eq", np.equal), ("ne", np.not_equal)):
        text.case(file, name, "ComplexF32", [a, same], [("Bool", function(a, same))], "exact")
    mask = np.arange(8) % 3 == 0
    text.case(file, "where", "ComplexF32", [("Bool", mask), a, b], [np.where(mask, a, b)], "exact")
    write_special(file)
