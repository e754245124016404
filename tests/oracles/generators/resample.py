"""resample.txt: interpolation, windows as columns and back, grids. PyTorch, whose dims are ours in reverse (but those
of the affine maps)."""

import numpy as np
import torch
import torch.nn.functional as F

from . import text
from .gradient import gradient_case

TOLERANCE = {"tolerance": "rtol=1e-10 atol=1e-12", "gradtol": "rtol=1e-10 atol=1e-12"}
NAMES = {1: "linear", 2: "bilinear", 3: "trilinear"}


def reverse(x):
    return x.permute(list(range(x.dim()))[::-1])


def reversed_dims(function):
    return lambda *inputs: reverse(function(*[reverse(x) for x in inputs]))


def interpolation(file, rng, x, mode, size=None, scale=None, align=0, antialias=0):
    rank = x.ndim - 2
    name = {"linear": NAMES[rank], "cubic": "bicubic"}.get(mode, mode)
    options = {"mode": name, "size": size and size[::-1], "scale_factor": scale and scale[::-1]}
    if mode in ("linear", "cubic"):
        options |= {"align_corners": bool(align), "antialias": bool(antialias)}
    attributes = {"mode": mode, "align": align, "antialias": antialias}
    attributes |= {"size": ",".join(map(str, size))} if size else {"scale": ",".join(map(str, scale))}
    function = reversed_dims(lambda t: F.interpolate(t, **options))
    gradient_case(file, "interpolate", function, [x], rng, **TOLERANCE, **attributes)


def write_interpolate(file, rng):
    def case(x, mode, *sizes, **options):
        interpolation(file, rng, x, mode, *sizes, **options)

    line, image = text.dyadic(rng, (5, 2, 2), -1.0, 1.0), text.dyadic(rng, (5, 4, 2, 1), -1.0, 1.0)
    volume = text.dyadic(rng, (3, 2, 4, 1, 1), -1.0, 1.0)
    for size in ((7,), (3,), (1,), (5,)):
        for mode in ("nearest", "linear", "area"):
            case(line, mode, size)
        case(line, "linear", size, align=1)
    for mode in ("nearest", "linear", "area", "cubic"):
        case(image, mode, (8, 7))
        case(image, mode, (3, 2))
        case(image, mode, scale=(1.5, 0.6))
    for mode in ("linear", "cubic"):
        case(image, mode, (8, 3), align=1)
        case(image, mode, (3, 2), antialias=1)
        case(image, mode, (2, 7), antialias=1)
    for mode in ("nearest", "linear", "area"):
        case(volume, mode, (5, 3, 2))


def write_windows(file, rng):
    x = text.dyadic(rng, (5, 6, 2, 2), -1.0, 1.0)
    for window, stride, pad, dilation in (((2, 3), 1, 0, 1), ((3, 2), 2, 1, 1), ((2, 2), 1, 1, 2), ((1, 1), 3, 0, 1)):
        options = {"stride": stride, "padding": pad, "dilation": dilation}
        attributes = {"window": "%d,%d" % window, "stride": stride, "pad": pad, "dilation": dilation}
        function = reversed_dims(lambda t: F.unfold(t, window[::-1], **options))
        gradient_case(file, "unfold", function, [x], rng, **attributes)
        columns = text.dyadic(rng, tuple(function(torch.tensor(x)).shape), -1.0, 1.0)
        back = reversed_dims(lambda t: F.fold(t, (6, 5), window[::-1], **options))
        gradient_case(file, "fold", back, [columns], rng, size="5,6", **attributes)


def write_grids(file, rng):
    for align in (0, 1):
        for sizes in ((4, 3), (2, 3, 4)):
            d = len(sizes)
            theta = text.dyadic(rng, (d, d + 1, 2), -1.0, 1.0)

            def points(t):
                shape = (2, 1, *sizes[::-1])
                return reverse(F.affine_grid(t.permute(2, 0, 1), shape, align_corners=bool(align)))

            size = ",".join(map(str, sizes))
            gradient_case(file, "affine_grid", points, [theta], rng, **TOLERANCE, size=size, align=align)
        for border in ("zeros", "border", "reflection"):
            for mode in ("bilinear", "nearest"):
                for shape, out in (((4, 5, 2, 2), (3, 2)), ((3, 2, 4, 1, 2), (2, 2, 3))):
                    x = text.dyadic(rng, shape, -1.0, 1.0)
                    grid = text.dyadic(rng, (len(out), *out, 2), -1.75, 1.75) + 0.013
                    options = {"mode": mode, "padding_mode": border, "align_corners": bool(align)}
                    steps = mode == "nearest"  # no gradient by the grid
                    function = reversed_dims(lambda t, g: F.grid_sample(t, g.detach() if steps else g, **options))
                    flags = {"border": border, "mode": mode, "align": align}
                    gradient_case(file, "grid_sample", function, [x, grid], rng, **TOLERANCE, **flags)


def write_interpolate_large(file, rng):
    """Of more elements than are multiplied by a matrix."""
    image = text.dyadic(rng, (69, 2, 1, 1), -1.0, 1.0)
    for mode in ("linear", "cubic"):
        for size in ((83, 3), (30, 2)):
            interpolation(file, rng, image, mode, size)
        interpolation(file, rng, image, mode, (77, 1), align=1)


def write(file):
    rng = np.random.default_rng(18)
    write_interpolate(file, rng)
    write_windows(file, rng)
    write_grids(file, rng)
    write_interpolate_large(file, rng)
