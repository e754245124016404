"""conv.txt: convolution and pooling in 1 to 3 dimensions. By PyTorch in Float64, which flips the order of dims.

x is (spatial..., channels, batch), the weight (spatial..., in / groups, out). mode=convolution flips the kernel (Conv),
mode=crosscorrelation does not (CrossCor). pad lists low and high of each spatial dim; pooling without stride takes
the window's size. A mean counts padding; a maximum never chooses it.
"""

import numpy as np
import torch
import torch.nn.functional as functional

from . import text
from .gradient import gradient_case

CONVOLUTIONS = [  # input, weight, options
    ((9, 2, 3), (3, 2, 4), {}),
    ((10, 4, 2), (3, 2, 6), {"stride": (2,), "pad": (1, 2), "groups": 2}),
    ((11, 1, 1), (3, 1, 2), {"dilation": (2,), "pad": (0, 1)}),
    ((6, 5, 2, 2), (3, 3, 2, 3), {}),
    ((7, 6, 2, 2), (3, 2, 2, 3), {"stride": (2, 1), "pad": (1, 1, 0, 1)}),
    ((6, 7, 1, 2), (3, 3, 1, 2), {"pad": (0, 1, 1, 2)}),
    ((8, 8, 2, 1), (3, 2, 2, 2), {"dilation": (2, 3), "pad": (2, 2, 1, 0)}),
    ((5, 5, 4, 2), (3, 3, 2, 4), {"groups": 2, "pad": (1, 1, 1, 1)}),
    ((5, 5, 3, 2), (2, 2, 1, 6), {"groups": 3}),
    ((9, 8, 4, 1), (3, 2, 2, 4), {"stride": (2, 3), "pad": (2, 1, 0, 2), "dilation": (2, 1), "groups": 2}),
    ((4, 4, 3, 2), (1, 1, 3, 5), {}),
    ((5, 4, 1, 1), (5, 4, 1, 2), {}),
    ((5, 4, 4, 2, 1), (3, 2, 2, 2, 2), {}),
    ((5, 5, 4, 2, 2), (2, 3, 2, 1, 2), {"stride": (2, 1, 2), "pad": (1, 0, 0, 2, 1, 1), "groups": 2}),
]
TRANSPOSED = [  # input, weight (spatial..., out / groups, in), options
    ((4, 2, 3), (3, 2, 2), {}),
    ((4, 4, 2), (3, 1, 4), {"stride": (2,), "pad": (1, 0), "groups": 2, "outpad": (1,)}),
    ((4, 3, 2, 2), (3, 2, 3, 2), {}),
    ((3, 4, 2, 1), (3, 2, 2, 2), {"stride": (2, 3), "pad": (1, 0, 0, 1), "outpad": (0, 2)}),
    ((3, 3, 4, 2), (2, 2, 1, 4), {"dilation": (2, 1), "groups": 4}),
    ((2, 3, 2, 2, 1), (2, 2, 2, 1, 2), {"stride": (2, 1, 1)}),
]
POOLS = [  # input, window, options
    ((9, 2, 2), (3,), {}),
    ((10, 2, 1), (3,), {"stride": (2,), "pad": (1, 1)}),
    ((6, 6, 2, 2), (2, 2), {}),
    ((7, 6, 1, 2), (3, 2), {"stride": (2, 1), "pad": (1, 0, 0, 1)}),
    ((5, 5, 2, 1), (3, 3), {"stride": (1, 1), "pad": (1, 1, 1, 1)}),
    ((5, 4, 4, 1, 2), (2, 2, 2), {}),
    ((4, 3, 2, 2), (4, 3), {}),
]


def reversed_dims(x):
    return x.permute(*reversed(range(x.dim())))


def padded(x, pad, value=0.0):
    """x in PyTorch's order (batch, channels, ..., second, first); pad in rosin's, which begins with the first dim."""
    return functional.pad(x, pad, value=value) if any(pad) else x


def convolve(x, weight, mode, stride=(), pad=(), dilation=(), groups=1):
    spatial = x.dim() - 2
    flipped = torch.flip(weight, tuple(range(spatial))) if mode == "convolution" else weight
    function = {1: functional.conv1d, 2: functional.conv2d, 3: functional.conv3d}[spatial]
    stride, dilation = [tuple(reversed(v)) or (1,) * spatial for v in (stride, dilation)]
    result = function(padded(reversed_dims(x), pad), reversed_dims(flipped), None, stride, 0, dilation, groups)
    return reversed_dims(result)


def convolve_transposed(x, weight, stride=(), pad=(), dilation=(), groups=1, outpad=()):
    """The adjoint of the convolution with a flipped kernel; padding takes elements away at both ends."""
    spatial = x.dim() - 2
    flipped = torch.flip(weight, tuple(range(spatial)))
    function = getattr(functional, f"conv_transpose{spatial}d")
    stride, dilation = [tuple(reversed(v)) or (1,) * spatial for v in (stride, dilation)]
    outpad = tuple(reversed(outpad)) or (0,) * spatial
    result = function(reversed_dims(x), reversed_dims(flipped), None, stride, 0, outpad, groups, dilation)
    return reversed_dims(padded(result, tuple(-p for p in pad)))


def pool(x, op, window, stride=(), pad=()):
    spatial = x.dim() - 2
    name = "max" if op == "maxpool" else "avg"
    function = getattr(functional, f"{name}_pool{spatial}d")
    fill = -torch.inf if op == "maxpool" else 0.0
    result = function(padded(reversed_dims(x), pad, fill), tuple(reversed(window)), tuple(reversed(stride or window)))
    return reversed_dims(result)


def tensor(x):
    return torch.tensor(np.array(x, order="C"))


def attributes(options, spatial):
    """All options spelled out, defaults too."""
    full = {"stride": (1,) * spatial, "pad": (0,) * 2 * spatial, "dilation": (1,) * spatial, "groups": 1}
    return full | options


def write_convolutions(file, rng):
    """Multiples of 1/4: exact in Float32 in any order; the tolerance leaves room for fast algorithms."""
    for x_shape, w_shape, options in CONVOLUTIONS:
        for mode in ("convolution", "crosscorrelation"):
            x, w = text.dyadic(rng, x_shape, step=0.25), text.dyadic(rng, w_shape, step=0.25)
            y = convolve(tensor(x), tensor(w), mode, **options).numpy()
            words = attributes(options, len(x_shape) - 2)
            text.case(file, "conv", "Float32", [x, w], [y], "rtol=1e-05 atol=1e-05", mode=mode, **words)
    x, w = text.dyadic(rng, (6, 5, 2, 2), step=0.25), text.dyadic(rng, (3, 3, 2, 3), step=0.25)
    y = convolve(tensor(x), tensor(w), "convolution").numpy()
    for dtype, tol in (("Float64", "rtol=1e-13 atol=1e-13"), ("Float16", "ulp=2"), ("BFloat16", "ulp=2")):
        text.case(file, "conv", dtype, [x, w], [text.rounded(y, dtype)], tol, mode="convolution", **attributes({}, 2))


def write_known_answers(file):
    """Cases that Flux's own tests state: an impulse gives back the kernel; corners of a padded box of ones."""
    impulse = np.zeros((5, 5, 1, 1))
    impulse[2, 2, 0, 0] = 1
    kernel = np.arange(1.0, 10.0).reshape(3, 3, 1, 1, order="F")
    response = convolve(tensor(impulse), tensor(kernel), "convolution").numpy()
    assert (response == kernel).all()
    text.case(file, "conv", "Float32", [impulse, kernel], [response], "ulp=0", mode="convolution", **attributes({}, 2))
    box, ones = np.ones((28, 28, 1, 1)), np.ones((3, 3, 1, 1))
    y = convolve(tensor(box), tensor(ones), "convolution", pad=(0, 1, 1, 2)).numpy()
    corners = [y[0, 0, 0, 0], y[1, 1, 0, 0], y[-1, 0, 0, 0], y[0, -1, 0, 0], y[0, -2, 0, 0], y[-1, -1, 0, 0]]
    assert y.shape[:2] == (27, 29) and corners == [6, 9, 4, 3, 6, 2]
    text.case(
        file, "conv", "Float32", [box, ones], [y], "ulp=0", mode="convolution", **attributes({"pad": (0, 1, 1, 2)}, 2)
    )


def write_pools(file, rng):
    for shape, window, options in POOLS:
        for op in ("maxpool", "meanpool"):
            x = text.distinct(rng, shape, -4.0)
            words = {"stride": window, "pad": (0,) * 2 * len(window)} | options
            y = pool(tensor(x), op, window, **options).numpy()
            tol = "exact" if op == "maxpool" else "rtol=1e-06 atol=1e-06"
            for dtype in ("Float32", "Float64"):
                expected = text.rounded(y, dtype)
                text.case(file, op, dtype, [text.rounded(x, dtype)], [expected], tol, window=window, **words)
            gradient_case(file, op, lambda t: pool(t, op, window, **options), [x], rng, window=window, **words)
    x = -np.ones((4, 4, 1, 1))
    text.case(
        file,
        "maxpool",
        "Float32",
        [x],
        [-np.ones((3, 3, 1, 1))],
        "exact",
        window=(2, 2),
        stride=(2, 2),
        pad=(1, 1, 1, 1),
    )


def write_gradients(file, rng):
    for x_shape, w_shape, options in CONVOLUTIONS:
        for mode in ("convolution", "crosscorrelation"):
            if mode == "crosscorrelation" and len(x_shape) != 4:
                continue
            inputs = [text.dyadic(rng, x_shape, step=0.25), text.dyadic(rng, w_shape, step=0.25)]
            words = attributes(options, len(x_shape) - 2)
            gradient_case(file, "conv", lambda x, w: convolve(x, w, mode, **options), inputs, rng, mode=mode, **words)


def write_transposed(file, rng):
    for x_shape, w_shape, options in TRANSPOSED:
        spatial = len(x_shape) - 2
        inputs = [text.dyadic(rng, x_shape, step=0.25), text.dyadic(rng, w_shape, step=0.25)]
        words = attributes({"outpad": (0,) * spatial} | options, spatial)
        y = convolve_transposed(tensor(inputs[0]), tensor(inputs[1]), **options).numpy()
        text.case(file, "conv_transpose", "Float32", inputs, [y], "rtol=1e-05 atol=1e-05", **words)
        gradient_case(file, "conv_transpose", lambda x, w: convolve_transposed(x, w, **options), inputs, rng, **words)


def write(file):
    rng = np.random.default_rng(9)
    write_convolutions(file, rng)
    write_known_answers(file)
    write_pools(file, rng)
    write_gradients(file, rng)
    write_transposed(file, rng)
