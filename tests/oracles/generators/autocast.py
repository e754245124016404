"""autocast.txt: small networks in PyTorch's autocast on the CPU; the type of a case is the half type.

mlp(x, w1, b1, w2, b2, labels): two dense layers with relu between; outputs are the scores and the cross-entropy.
convnet(x, k, kb, scale, bias, w, b, labels): crosscor with pad 1, relu, batch normalisation, a max-pool of 2, a dense
layer; the same outputs.
block(x, scale, bias, wq, wk, wv, w1, b1; heads): x + attention of the normalised x, then relu of a dense layer of that,
added; the output is Float32, as x is.
gradscaler(x, g; init, growth, backoff, interval, eta): steps of Adam under torch.amp.GradScaler with the gradients
g[:, i], of which some are infinite or NaN once they are scaled in Float16; outputs are x and the scale after each step.
"""

import numpy as np
import torch
import torch.nn.functional as functional

from . import text

HALVES = {
    "BFloat16": (torch.bfloat16, "rtol=0.02 atol=0.02"),
    "Float16": (torch.float16, "rtol=0.0025 atol=0.0025"),
}
NAMES = {torch.float32: "Float32", torch.bfloat16: "BFloat16", torch.float16: "Float16"}


def reversed_dims(x):
    """A tensor as rosin has it: the dims in the other order."""
    return np.asarray(x.detach().to(torch.float64).permute(tuple(reversed(range(x.dim())))).numpy())


def here(values, matrix=False):
    """Values as rosin has them, as a tensor that is differentiated by; matrices of layers stay (out, in)."""
    values = values if matrix else values.transpose()
    return torch.tensor(np.ascontiguousarray(values), dtype=torch.float32, requires_grad=True)


def mlp(x, w1, b1, w2, b2, labels):
    scores = functional.linear(torch.relu(functional.linear(x, w1, b1)), w2, b2)
    return scores, functional.cross_entropy(scores, labels)


def convnet(x, k, kb, scale, bias, w, b, labels):
    images = torch.relu(functional.conv2d(x, k, kb, padding=1))
    images = functional.batch_norm(images, None, None, scale, bias, training=True, eps=1e-5)
    scores = functional.linear(functional.max_pool2d(images, 2).flatten(1), w, b)
    return scores, functional.cross_entropy(scores, labels)


def block(x, scale, bias, wq, wk, wv, w1, b1):
    y = functional.layer_norm(x, (x.shape[-1],), scale, bias)
    parts = [functional.linear(y, w).reshape(*x.shape[:2], 2, -1).transpose(1, 2) for w in (wq, wk, wv)]
    attended = functional.scaled_dot_product_attention(*parts).transpose(1, 2).reshape(x.shape)
    z = x + attended
    return (z + torch.relu(functional.linear(z, w1, b1)),)


def write_case(file, rng, function, arrays, matrices, labels=None, **attributes):
    """`matrices`: the numbers of those inputs that are matrices of layers."""
    for dtype, (half, tol) in HALVES.items():
        given = [here(x, i in matrices) for i, x in enumerate(arrays)]
        more = [] if labels is None else [torch.tensor(labels)]
        with torch.autocast("cpu", dtype=half):
            outputs = function(*given, *more)
        cotangents = [torch.tensor(text.dyadic(rng, tuple(y.shape), -1.0, 1.0), dtype=y.dtype) for y in outputs]
        sum((y * c).sum() for y, c in zip(outputs, cotangents)).backward()

        def typed(values):
            return [(NAMES[v.dtype], reversed_dims(v)) for v in values]

        grads = [
            ("Float32", x.grad.to(torch.float64).numpy() if i in matrices else reversed_dims(x.grad))
            for i, x in enumerate(given)
        ]
        ins = [("Float32", x) for x in arrays] + ([] if labels is None else [("Int64", np.array(labels))])
        text.case(file, function.__name__, dtype, ins, typed(outputs), tol, typed(cotangents), grads, tol, **attributes)


def write_scaler(file, rng):
    """Gradients as Float16 has them after the scale."""
    options = {"init": 1024.0, "growth": 2.0, "backoff": 0.25, "interval": 3, "eta": 0.125}
    x = torch.tensor(text.dyadic(rng, (4,)), dtype=torch.float32, requires_grad=True)
    g = text.dyadic(rng, (4, 14), -1.0, 1.0, 1 / 64)
    g[1, 2], g[3, 3], g[0, 7], g[2, 12] = 200.0, np.nan, np.inf, 40.0
    scaler = torch.amp.GradScaler(
        "cpu", options["init"], options["growth"], options["backoff"], options["interval"]
    )
    optimizer = torch.optim.Adam([x], lr=options["eta"])
    first, xs, scales = x.detach().clone().numpy(), [], []
    for i in range(g.shape[1]):
        scaler.scale(torch.zeros(()))  # begins the scale
        scaled = torch.tensor(g[:, i]).to(torch.float16) * torch.tensor(scaler.get_scale(), dtype=torch.float16)
        x.grad = scaled.to(torch.float32)
        scaler.step(optimizer)
        scaler.update()
        xs.append(x.detach().numpy().astype(np.float64))
        scales.append(scaler.get_scale())
    outputs = [("Float32", np.stack(xs, 1)), ("Float32", np.array(scales))]
    ins = [("Float32", first), ("Float16", text.rounded(g, "Float16"))]
    text.case(file, "gradscaler", "Float16", ins, outputs, "rtol=1e-05 atol=1e-06", **options)


def write(file):
    rng = np.random.default_rng(31)

    def numbers(*shape, high=1.0):
        return text.dyadic(rng, shape, -high, high, high / 64)

    arrays = [numbers(5, 6), numbers(7, 5), numbers(7), numbers(3, 7), numbers(3)]
    write_case(file, rng, mlp, arrays, {1, 3}, [0, 2, 1, 1, 0, 2])
    arrays = [numbers(6, 6, 2, 3), numbers(3, 3, 2, 4), numbers(4), 1 + numbers(4, high=0.5), numbers(4)]
    write_case(file, rng, convnet, arrays + [numbers(3, 36, high=0.25), numbers(3)], {5}, [2, 0, 1])
    weights = [numbers(8, 8, high=0.5) for _ in range(3)]
    arrays = [numbers(8, 5, 2), 1 + numbers(8, high=0.5), numbers(8)] + weights + [numbers(8, 8, high=0.5), numbers(8)]
    write_case(file, rng, block, arrays, {3, 4, 5, 6}, heads=2)
    write_scaler(file, rng)
