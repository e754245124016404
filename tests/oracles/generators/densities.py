"""densities.txt: log_prob, entropy and kl_divergence of torch.distributions, in Float64, with gradients by autograd."""

import numpy as np
import torch.distributions as distributions

from .gradient import gradient_case
from .text import dyadic


def gamma(concentration, scale):
    return distributions.Gamma(concentration, 1 / scale)


def categorical(logits):
    return distributions.Categorical(logits=logits.T)


def tanh_normal(mean, deviation):
    return distributions.TransformedDistribution(
        distributions.Normal(mean, deviation), distributions.transforms.TanhTransform()
    )


def uniform(low, width):
    """By its width, as bounds drawn apart might cross."""
    return distributions.Uniform(low, low + width)


ABOVE, ANY, INSIDE, SIGNED = (0.25, 4.0), (-3.0, 3.0), (0.125, 0.875), (-0.875, 0.875)
# name: (distribution, ranges of its parameters, range of what is asked about: None, counts)
KINDS = {
    "Normal": (distributions.Normal, [ANY, ABOVE], ANY),
    "Laplace": (distributions.Laplace, [ANY, ABOVE], ANY),
    "Uniform": (uniform, [(-5.0, -3.0), (6.0, 9.0)], (-3.0, 0.875)),
    "Exponential": (distributions.Exponential, [ABOVE], ABOVE),
    "Gamma": (gamma, [ABOVE, ABOVE], ABOVE),
    "Beta": (distributions.Beta, [ABOVE, ABOVE], INSIDE),
    "Poisson": (distributions.Poisson, [ABOVE], None),
    "Bernoulli": (lambda logits: distributions.Bernoulli(logits=logits), [ANY], None),
    "Categorical": (categorical, [ANY], None),
    "TanhNormal": (tanh_normal, [ANY, ABOVE], SIGNED),
}
NO_ENTROPY = {"Poisson", "TanhNormal"}
NO_DIVERGENCE = {"Uniform", "TanhNormal"}
# PyTorch's derivative of digamma is good to 1e-9.
COARSE = {"Gamma": "rtol=1e-8 atol=1e-8", "Beta": "rtol=1e-8 atol=1e-8"}
SHAPE = (4, 3)


def parameters(rng, ranges):
    return [dyadic(rng, SHAPE, low, high, 0.0078125) for low, high in ranges]


def asked(rng, name, between):
    if name == "Categorical":
        return rng.integers(0, SHAPE[0], SHAPE[1])
    if name == "Bernoulli":
        return rng.integers(0, 2, SHAPE)
    if name == "Poisson":
        return rng.integers(0, 7, SHAPE)
    return dyadic(rng, SHAPE, *between, 0.0078125)


def write(file):
    rng = np.random.default_rng(71)
    for name, (make, ranges, between) in KINDS.items():
        x = asked(rng, name, between)
        count = len(ranges)

        def log_prob(*values):
            made = make(*values[:count])
            made._validate_args = False
            return made.log_prob(values[count] if name == "Categorical" else values[count].double())

        inputs = [*parameters(rng, ranges), x]
        types = ["Float64"] * count + ["Int32" if between is None else "Float64"]
        gradient_case(file, "log_prob", log_prob, inputs, rng, types=types, gradtol=COARSE.get(name), of=name)
        if name not in NO_ENTROPY:
            entropy = parameters(rng, ranges)
            gradtol = COARSE.get(name)

            def entropy_of(*values):
                return make(*values).entropy()

            gradient_case(file, "entropy", entropy_of, entropy, rng, gradtol=gradtol, of=name)
        if name not in NO_DIVERGENCE:

            def divergence(*values):
                return distributions.kl_divergence(make(*values[:count]), make(*values[count:]))

            both = parameters(rng, ranges) + parameters(rng, ranges)
            gradient_case(file, "kl_divergence", divergence, both, rng, gradtol=COARSE.get(name), of=name)
