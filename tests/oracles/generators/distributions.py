"""distributions.txt: distribution functions at points, mean and variance, by SciPy. A case is a distribution with its
parameters (attributes, in rosin's order of arguments); `in` are points, `out` the probability of a number that is not
above each. `distance` is what the largest distance between that and the share of `draws` numbers exceeds once in a
thousand times (Kolmogorov and Smirnov's statistic).
"""

import numpy as np
from scipy import stats

from . import text

DRAWS = 100000
CASES = [  # name, parameters, SciPy's distribution
    ("exponential", [1.0], stats.expon()),
    ("exponential", [2.5], stats.expon(scale=1 / 2.5)),
    ("laplace", [0.0, 1.0], stats.laplace()),
    ("laplace", [-3.0, 0.25], stats.laplace(-3.0, 0.25)),
    ("gumbel", [0.0, 1.0], stats.gumbel_r()),
    ("gumbel", [2.0, 3.0], stats.gumbel_r(2.0, 3.0)),
    ("truncated_normal", [0.0, 1.0, -2.0, 2.0], stats.truncnorm(-2.0, 2.0)),
    ("truncated_normal", [1.0, 2.0, 2.0, 9.0], stats.truncnorm(0.5, 4.0, 1.0, 2.0)),
    ("truncated_normal", [0.0, 1.0, 3.0, 4.0], stats.truncnorm(3.0, 4.0)),
    ("gamma", [0.125, 1.0], stats.gamma(0.125)),
    ("gamma", [0.75, 2.0], stats.gamma(0.75, scale=2.0)),
    ("gamma", [1.0, 1.0], stats.gamma(1.0)),
    ("gamma", [2.5, 0.5], stats.gamma(2.5, scale=0.5)),
    ("gamma", [300.0, 1.0], stats.gamma(300.0)),
    ("beta", [0.5, 0.5], stats.beta(0.5, 0.5)),
    ("beta", [2.0, 5.0], stats.beta(2.0, 5.0)),
    ("beta", [40.0, 3.0], stats.beta(40.0, 3.0)),
    ("poisson", [0.0], None),
    ("poisson", [0.25], stats.poisson(0.25)),
    ("poisson", [3.5], stats.poisson(3.5)),
    ("poisson", [9.75], stats.poisson(9.75)),
    ("poisson", [10.0], stats.poisson(10.0)),
    ("poisson", [42.0], stats.poisson(42.0)),
    ("poisson", [5000.0], stats.poisson(5000.0)),
    ("poisson", [1000000.0], stats.poisson(1000000.0)),
]


def write(file):
    distance = float(stats.kstwo.ppf(0.999, DRAWS))
    shares = np.concatenate([[1e-4, 1e-3], np.arange(0.025, 1, 0.025), [0.999, 0.9999]])
    for name, parameters, law in CASES:
        if law is None:  # a rate of 0 gives 0
            points, known, mean, variance = np.array([0.0]), np.array([1.0]), 0.0, 0.0
        else:
            points = text.rounded(np.unique(law.ppf(shares)), "Float32")
            known, (mean, variance) = law.cdf(points), law.stats("mv")
        text.case(file, name, "Float64", [points], [known], "exact", parameters=parameters, draws=DRAWS,
                  distance=distance, mean=float(mean), variance=float(variance))  # fmt: skip
