"""elementwise.txt, first part: functions of one argument. Values by mpmath, rounded once to the type."""

import math

import mpmath as mp
import numpy as np

from . import text

FLOATS = ["Float32", "Float64"]
HALVES = ["Float16", "BFloat16"]
INF, NAN = math.inf, math.nan


def cube_root(x):
    return mp.sign(x) * mp.root(abs(x), 3)


def log_gamma(x):
    if x <= 0 and mp.isint(x):
        return mp.inf
    return mp.log(abs(mp.gamma(x))) if abs(x) < 1000 else mp.re(mp.loggamma(x))


def spread(rng, low, high, count, signs=True):
    """Numbers with exponents spread evenly over 2^low .. 2^high."""
    values = np.exp2(np.linspace(low, high, count)) * rng.uniform(1.0, 1.4, count)
    return list(values * (-1.0) ** np.arange(count) if signs else values)


def uniform(rng, low, high, count):
    return list(rng.uniform(low, high, count))


def exponents(dtype):
    """Exponents of the smallest normal and of the largest number."""
    smallest = text.FORMATS[dtype][1]
    return smallest, 1 - smallest


def positive(rng, dtype):
    low, high = exponents(dtype)
    near_one = [1 - 2.0**-k for k in (3, 8, 16)] + [1 + 2.0**-k for k in (3, 8, 16)]
    return spread(rng, low + 1, high - 1, 20, signs=False) + uniform(rng, 0.3, 3, 12) + near_one


def any_sign(rng, dtype):
    low, high = exponents(dtype)
    return spread(rng, low + 1, high - 1, 24) + uniform(rng, -3, 3, 14)


def exponential(rng, dtype):
    top = float(mp.log(text.largest(dtype)))
    return uniform(rng, -top, top, 20) + uniform(rng, -2, 2, 8) + spread(rng, -30, 0, 10)


def base_two(rng, dtype):
    low, high = exponents(dtype)
    return uniform(rng, low, high, 20) + uniform(rng, -2, 2, 8) + spread(rng, -30, 0, 8) + [-3.0, 10.0, 0.5]


def minus_one(rng, dtype):
    top = float(mp.log(text.largest(dtype)))
    return uniform(rng, -20, top, 16) + uniform(rng, -1, 1, 10) + spread(rng, -40, 0, 14)


def above_minus_one(rng, dtype):
    return uniform(rng, -0.99, 2, 14) + spread(rng, -40, 0, 14) + spread(rng, 1, 100, 10, signs=False) + [-1 + 2.0**-20]


def angles(rng, dtype):
    """Ordinary angles, angles up to 1e5, and those that lie closest to multiples of pi/2 there."""
    k = np.arange(1, 63662)
    nearest = text.rounded(k * (np.pi / 2), dtype)
    order = np.argsort(np.abs(nearest - k * (np.pi / 2)) / nearest)[:6] if dtype != "Float64" else np.arange(5, 11)
    quarter_turns = [float(nearest[i]) for i in list(order) + [0, 1, 2, 3]]
    return uniform(rng, -10, 10, 12) + uniform(rng, -1e5, 1e5, 10) + quarter_turns + spread(rng, -30, 0, 8)


def above_one(rng, dtype):
    _, high = exponents(dtype)
    near_one = [1 + 2.0**-k for k in (2, 6, 12, 20)]
    return spread(rng, 0, high - 1, 20, signs=False) + uniform(rng, 1, 3, 12) + near_one


def unit_interval(rng, dtype):
    near_one = [s * (1 - 2.0**-k) for k in (2, 6, 12, 20) for s in (1, -1)]
    return uniform(rng, -1, 1, 20) + near_one + spread(rng, -30, -1, 10)


def moderate(rng, dtype):
    return uniform(rng, -10, 10, 16) + uniform(rng, -1, 1, 10) + spread(rng, -30, 0, 12)


def bell(rng, dtype):
    tail = 4.2 if dtype != "Float64" else 6.1
    return uniform(rng, -tail, tail, 18) + uniform(rng, -1, 1, 8) + spread(rng, -30, 0, 12)


def gamma_range(rng, dtype):
    near_roots = [1 + 2.0**-6, 1 - 2.0**-9, 2 + 2.0**-6, 2 - 2.0**-9]
    negative = [-0.5, -1.5, -2.25, -3.75, -7.3, -20.6]
    return uniform(rng, 0.05, 6, 14) + near_roots + negative + spread(rng, -60, 90, 14, signs=False)


SQUARES = {"Float32": "exact", "Float64": "exact"}
TWO = {"Float32": "ulp=2", "Float64": "ulp=4"}
FOUR = {"Float32": "ulp=4", "Float64": "ulp=8"}
GAMMA = {"Float32": "ulp=8 atol=5e-07", "Float64": "ulp=16 atol=2e-15"}

# name: (exact function, ordinary arguments, tolerance, what math or NumPy give for special arguments)
FUNCTIONS = {
    "sqrt": (mp.sqrt, positive, SQUARES, np.sqrt),
    "rsqrt": (lambda x: 1 / mp.sqrt(x), positive, TWO, lambda x: 1 / np.sqrt(x)),
    "cbrt": (cube_root, any_sign, TWO, np.cbrt),
    "exp": (mp.exp, exponential, TWO, np.exp),
    "exp2": (lambda x: mp.power(2, x), base_two, TWO, np.exp2),
    "expm1": (mp.expm1, minus_one, FOUR, np.expm1),
    "log": (mp.log, positive, TWO, np.log),
    "log2": (lambda x: mp.log(x) / mp.log(2), positive, FOUR, np.log2),
    "log1p": (mp.log1p, above_minus_one, FOUR, np.log1p),
    "sin": (mp.sin, angles, TWO, np.sin),
    "cos": (mp.cos, angles, TWO, np.cos),
    "tan": (mp.tan, angles, FOUR, np.tan),
    "asin": (mp.asin, unit_interval, FOUR, np.arcsin),
    "acos": (mp.acos, unit_interval, FOUR, np.arccos),
    "atan": (mp.atan, any_sign, FOUR, np.arctan),
    "sinh": (mp.sinh, exponential, FOUR, np.sinh),
    "cosh": (mp.cosh, exponential, FOUR, np.cosh),
    "tanh": (mp.tanh, moderate, TWO, np.tanh),
    "erf": (mp.erf, bell, TWO, np.vectorize(math.erf, otypes=[float])),
    "lgamma": (
        log_gamma,
        gamma_range,
        GAMMA,
        np.vectorize(lambda x: INF if x == 0 else math.lgamma(x), otypes=[float]),
    ),
    "log10": (mp.log10, positive, FOUR, np.log10),
    "asinh": (mp.asinh, any_sign, FOUR, np.arcsinh),
    "acosh": (mp.acosh, above_one, FOUR, np.arccosh),
    "atanh": (mp.atanh, unit_interval, FOUR, np.arctanh),
}
OVERFLOW = {  # arguments at which a result leaves the range of the type
    "exp": lambda x: mp.log(x),
    "expm1": lambda x: mp.log(x),
    "exp2": lambda x: mp.log(x) / mp.log(2),
    "sinh": lambda x: mp.asinh(x),
    "cosh": lambda x: mp.acosh(x),
}
HUGE = {
    "Float32": [1e6, -1e8, 1e10, 1e30, 16367173 * 2.0**72, 3.4e38],
    "Float64": [1e6, -1e8, 1e10, 1e30, 6381956970095103 * 2.0**797, 1.7e308],
}
ROUNDING = {
    "abs": np.abs,
    "neg": np.negative,
    "sign": np.sign,
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.rint,
    "trunc": np.trunc,
}


def special_values(function, points):
    """What the C library gives for 0, -0, Inf and NaN: without rounding, but for multiples of pi/2."""
    with np.errstate(all="ignore"):
        return np.array([float(function(np.float64(x))) for x in points])


def exact_values(function, points, dtype):
    return np.array([text.round_real(function(mp.mpf(float(x))), dtype) for x in points])


def thresholds(name, dtype):
    """Floats on both sides of the arguments where results overflow, become subnormal, and vanish."""
    if name not in OVERFLOW:
        return []
    digits, smallest = text.FORMATS[dtype]
    inverse = OVERFLOW[name]
    points = text.neighbours(inverse(text.largest(dtype)), dtype)
    if name in ("exp", "exp2"):
        points += text.neighbours(inverse(mp.ldexp(1, smallest)), dtype)
        points += text.neighbours(inverse(mp.ldexp(1, smallest - digits)), dtype)
    return points


def write_function(file, name, dtype, rng):
    function, sample, tolerances, library = FUNCTIONS[name]
    digits, smallest = text.FORMATS[dtype]
    tol = tolerances[dtype]
    points = text.rounded(sample(rng, dtype), dtype)
    text.case(file, name, dtype, [points], [exact_values(function, points, dtype)], tol, samples="normal")
    special = np.array([0.0, -0.0, INF, -INF, NAN])
    expected = text.rounded(special_values(library, special), dtype)
    text.case(file, name, dtype, [special], [expected], tol if name in ("acos", "atan") else "exact", samples="special")
    points = np.array([1.0, -1.0, 2.0, -2.0] + thresholds(name, dtype))
    text.case(file, name, dtype, [points], [exact_or_pole(name, points, dtype)], tol, samples="edge")
    least = 2.0 ** (smallest - digits + 1)
    points = np.array([least, -least, 3 * least, 2.0**smallest - least, -(2.0**smallest - least), 2.0**smallest])
    text.case(file, name, dtype, [points], [exact_or_pole(name, points, dtype)], tol, samples="subnormal")
    if name in ("sin", "cos", "tan"):
        points = text.rounded(HUGE[dtype], dtype)
        text.case(file, name, dtype, [points], [exact_values(function, points, dtype)], tol, samples="huge")


def exact_or_pole(name, points, dtype):
    """mpmath, except at log1p(-1), a pole that it refuses."""
    function = FUNCTIONS[name][0]
    return np.array(
        [-INF if name == "log1p" and x == -1 else text.round_real(function(mp.mpf(float(x))), dtype) for x in points]
    )


def write_half(file, name, dtype, rng):
    """Computed in Float32 and rounded once; an error of the Float32 step may move the result to a neighbour."""
    function, sample, _, _ = FUNCTIONS[name]
    wanted = np.array(sample(rng, "Float32"))
    points = text.rounded(rng.choice(wanted[np.abs(wanted) < 200], 12, replace=False), dtype)
    text.case(file, name, dtype, [points], [exact_or_pole(name, points, dtype)], "ulp=1 atol=1e-07", samples="normal")


def write_rounding(file, rng):
    """Functions without rounding errors, on floats and (where they make sense) on integers."""
    for dtype in FLOATS + HALVES:
        digits = text.FORMATS[dtype][0]
        points = uniform(rng, -10, 10, 14) + [0.5, 1.5, 2.5, 3.5, -0.5, -1.5, -2.5, 0.49999997, 1, -1, -7, 100.5]
        points += [
            0.0,
            -0.0,
            INF,
            -INF,
            NAN,
            2.0 ** (digits - 2) + 0.5,
            2.0 ** (digits - 1) + 1,
            -(2.0 ** (digits + 3)),
        ]
        points = text.rounded(points, dtype)
        for name, function in ROUNDING.items():
            text.case(file, name, dtype, [points], [text.rounded(function(points), dtype)], "exact")
    for dtype, kind in text.INTEGERS.items():
        info = np.iinfo(kind)
        points = np.array([0, 1, 2, 7, 100, info.max, info.min] + ([-1, -2, -100] if info.min else []), dtype=kind)
        for name in ["abs", "neg", "sign"] + (["floor", "ceil", "round", "trunc"] if dtype == "Int32" else []):
            with np.errstate(over="ignore"):
                result = ROUNDING[name](points) if name in ("abs", "neg", "sign") else points
            text.case(file, name, dtype, [points.astype(np.int64)], [result.astype(np.int64)], "exact")


def write_gamma_derivatives(file, rng):
    """digamma is NaN at 0, -1, ...; trigamma is Inf there."""
    special = np.array([0.0, -1.0, -2.0, INF, NAN])
    poles = {"digamma": [NAN, NAN, NAN, INF, NAN], "trigamma": [INF, INF, INF, 0.0, NAN]}
    for order, name in enumerate(("digamma", "trigamma")):
        for dtype in FLOATS:
            points = uniform(rng, 0.05, 12, 20) + [-0.5, -1.75, -3.25, 1.0, 0.5] + spread(rng, -20, 20, 12, signs=False)
            points = text.rounded(points, dtype)
            expected = np.array([text.round_real(mp.psi(order, mp.mpf(float(x))), dtype) for x in points])
            text.case(file, name, dtype, [points], [expected], GAMMA[dtype], samples="normal")
            text.case(file, name, dtype, [special], [np.array(poles[name])], "ulp=0", samples="special")


def write_plain(file, rng):
    """square and reciprocal, rounded once; tests for NaN and infinity."""
    for dtype in FLOATS + HALVES:
        points = text.rounded(uniform(rng, -9, 9, 12) + [0.0, -0.0, 1.0, INF, -INF, NAN], dtype)
        with np.errstate(divide="ignore"):
            text.case(file, "square", dtype, [points], [once(points * points, points, mp_square, dtype)], "exact")
            text.case(file, "reciprocal", dtype, [points], [once(1 / points, points, lambda x: 1 / x, dtype)], "exact")
        for name, function in (("is_nan", np.isnan), ("is_inf", np.isinf), ("is_finite", np.isfinite)):
            text.case(file, name, dtype, [points], [("Bool", function(points))], "exact")
    integers = np.array([0, 3, -7])
    text.case(file, "square", "Int32", [integers], [integers**2], "exact")
    text.case(file, "is_finite", "Int32", [integers], [("Bool", integers == integers)], "exact")
    text.case(file, "is_nan", "Int32", [integers], [("Bool", integers != integers)], "exact")


def mp_square(x):
    return x * x


def once(special, points, function, dtype):
    """The exact function rounded once where the argument is an ordinary number, else NumPy's value."""
    ordinary = np.isfinite(points) & (points != 0)
    return np.array(
        [
            text.round_real(function(mp.mpf(float(x))), dtype) if o else float(s)
            for x, s, o in zip(points, special, ordinary)
        ]
    )


def write(file):
    rng = np.random.default_rng(1)
    for name in FUNCTIONS:
        for dtype in FLOATS:
            write_function(file, name, dtype, rng)
    for name in ["sqrt", "exp", "log", "tanh", "erf", "sin", "cos", "cbrt", "expm1", "log1p"]:
        for dtype in HALVES:
            write_half(file, name, dtype, rng)
    write_rounding(file, rng)
    write_gamma_derivatives(file, rng)
    write_plain(file, rng)
