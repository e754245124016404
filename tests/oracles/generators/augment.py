"""augment.txt: torchvision's functional transforms and their gradients by PyTorch, of pictures (width, height,
channels, batch) in Float64.
"""

import numpy as np
import torch
from torchvision.transforms import InterpolationMode
from torchvision.transforms import functional as F

from .gradient import gradients
from . import text

TOGETHER = "rtol=1e-10 atol=1e-12"
SINGLE = "rtol=2e-5 atol=5e-6"  # torchvision turns hues in Float32
PLACES = "rtol=1e-9 atol=1e-12"
MODES = {"nearest": InterpolationMode.NEAREST, "bilinear": InterpolationMode.BILINEAR}


def turned(x):
    return x.permute(3, 2, 1, 0)


def case(file, op, function, x, rng, tolerance=TOGETHER, **attributes):
    outputs, cotangents, grads = gradients(lambda v: turned(function(turned(v))), [x], rng)
    text.case(file, op, "Float64", [("Float64", x)], outputs, tolerance, cotangents, grads, tolerance, **attributes)


def pictures(rng, *shape):
    return rng.uniform(0.05, 0.95, shape)


def write(file):
    rng = np.random.default_rng(1516)
    mean, deviation = (0.5, 0.25, 0.75), (0.5, 0.25, 2.0)
    case(file, "normalise", lambda x: F.normalize(x, mean, deviation), pictures(rng, 3, 2, 3, 2), rng,
         mean=",".join(map(str, mean)), deviation=",".join(map(str, deviation)))
    for mode in MODES:
        for width, height in ((7, 3), (2, 9), (5, 4), (3, 2)):
            case(file, "resize", lambda x: F.resize(x, [height, width], MODES[mode], antialias=False),
                 pictures(rng, 5, 4, 2, 2), rng, width=width, height=height, mode=mode)
        for angle, move, scale, shear in ((0, (0, 0), 1, (0, 0)), (90, (0, 0), 1, (0, 0)), (31, (1, -2), 1.3, (0, 0)),
                                          (-12.5, (0, 1), 0.7, (11, 0)), (200, (2, 0), 1.1, (-7, 9))):
            if mode == "nearest" and angle == 90:
                continue  # on the border between pixels
            case(file, "affine", lambda x: F.affine(x, angle, list(move), scale, list(shear), MODES[mode]),
                 pictures(rng, 6, 5, 2, 2), rng, PLACES, angle=angle, move=f"{move[0]},{move[1]}", scale=scale,
                 shear=f"{shear[0]},{shear[1]}", mode=mode)
    colours = {"brightness": F.adjust_brightness, "contrast": F.adjust_contrast, "saturation": F.adjust_saturation}
    for name, function in colours.items():
        for factor in (0.3, 1.4):
            case(file, name, lambda x: function(x, factor), pictures(rng, 3, 2, 3, 2), rng, factor=factor)
    for factor in (-0.4, 0.0, 0.15, 0.5):
        case(file, "hue", lambda x: F.adjust_hue(x, factor), pictures(rng, 3, 3, 3, 2), rng, SINGLE, factor=factor)
