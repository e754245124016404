"""The line format of the oracle files, and rounding to rosin's element types. README.md describes the format.

Arrays are NumPy arrays (float64, int64, bool or complex128) that hold values of the named type exactly.
"""

import math

import mpmath
import numpy as np

# significant digits (the hidden one included) and the exponent of the smallest normal number
FORMATS = {"Float16": (11, -14), "BFloat16": (8, -126), "Float32": (24, -126), "Float64": (53, -1022)}
INTEGERS = {"UInt8": np.uint8, "Int8": np.int8, "Int32": np.int32, "UInt32": np.uint32, "Int64": np.int64}
EXACT = "exact"


def largest(dtype):
    """The largest finite number of a float type."""
    digits, smallest = FORMATS[dtype]
    return mpmath.ldexp(2 - mpmath.ldexp(1, 1 - digits), 1 - smallest)


def round_real(value, dtype):
    """An mpmath number of any precision, rounded once, half to even, to the float type; as a Python float."""
    if isinstance(value, mpmath.mpc):
        return math.nan  # outside the real domain
    value = mpmath.mpf(value)
    if mpmath.isnan(value) or mpmath.isinf(value) or value == 0:
        return float(value)
    digits, smallest = FORMATS[dtype]
    exponent = max(mpmath.frexp(abs(value))[1] - 1, smallest)
    quantum = exponent - digits + 1
    steps = int(mpmath.nint(mpmath.ldexp(value, -quantum)))  # nint takes ties to even
    if abs(mpmath.ldexp(steps, quantum)) > largest(dtype):
        return math.copysign(math.inf, value)
    return math.copysign(math.ldexp(steps, quantum), value)


def rounded(values, dtype):
    """A float64 array rounded once to the type; integers and Bool are converted."""
    values = np.asarray(values)
    if dtype == "Bool":
        return values.astype(bool)
    if dtype in INTEGERS:
        return values.astype(INTEGERS[dtype]).astype(np.int64)
    if dtype == "Float64":
        return values.astype(np.float64)
    with np.errstate(over="ignore"):
        if dtype == "ComplexF32":
            return values.astype(np.complex64).astype(np.complex128)
        if dtype == "Float32":
            return values.astype(np.float32).astype(np.float64)
        if dtype == "Float16":
            return values.astype(np.float16).astype(np.float64)
    flat = [round_real(mpmath.mpf(float(v)), dtype) if v else float(v) for v in values.ravel()]
    return np.array(flat, dtype=np.float64).reshape(values.shape)


def neighbours(value, dtype):
    """The float next below a real number, the nearest one, and the one next above, in the type."""
    middle = round_real(value, dtype)
    digits, smallest = FORMATS[dtype]
    exponent = smallest if middle == 0 else max(math.frexp(abs(middle))[1] - 1, smallest)
    step = math.ldexp(1.0, exponent - digits + 1)
    return [round_real(mpmath.mpf(middle) - step, dtype), middle, round_real(mpmath.mpf(middle) + step, dtype)]


def number_text(value):
    """The shorter of the decimal and the hexadecimal form; both give the same double back."""
    value = float(value)
    if math.isnan(value):
        return "nan"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    decimal = repr(value)
    if decimal.endswith(".0"):
        decimal = decimal[:-2]
    mantissa, exponent = value.hex().split("p")
    if "." in mantissa:
        mantissa = mantissa.rstrip("0").rstrip(".")
    hexadecimal = f"{mantissa}p{int(exponent)}"
    return decimal if len(decimal) <= len(hexadecimal) else hexadecimal


def array_text(dtype, values):
    flat = np.asarray(values).ravel(order="F")
    if dtype == "Bool" or "Int" in dtype:
        return " ".join(str(int(v)) for v in flat)
    if dtype.startswith("Complex"):
        return " ".join(f"{number_text(v.real)} {number_text(v.imag)}" for v in flat)
    return " ".join(number_text(v) for v in flat)


def shape_text(values):
    shape = np.shape(values)
    return "x".join(str(n) for n in shape) if shape else "scalar"


def attribute_text(value):
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, (list, tuple)):
        return ",".join(attribute_text(v) for v in value)
    return number_text(value) if isinstance(value, float) else str(value)


def as_pair(entry, dtype):
    """Arrays of the case's own type may be given bare, others as (type, array)."""
    return entry if isinstance(entry, tuple) else (dtype, entry)


def case(file, op, dtype, inputs, outputs, tol, cotangents=(), grads=(), gradtol=None, **attributes):
    """Writes one case. `grads` has one array per input, None where there is no gradient."""
    words = [f"{key}={attribute_text(value)}" for key, value in attributes.items()]
    lines = [" ".join(["case", op, dtype] + words)]
    entries = [("in", x) for x in inputs] + [("out", y) for y in outputs] + [("cotangent", c) for c in cotangents]
    entries += [(f"grad{i}", g) for i, g in enumerate(grads) if g is not None]
    for role, entry in entries:
        kind, values = as_pair(entry, dtype)
        lines.append(f"{role} {kind} {shape_text(values)} : {array_text(kind, values)}".rstrip())
    lines.append(f"tol {tol}")
    if grads:
        lines.append(f"gradtol {gradtol or 'rtol=1e-10 atol=1e-12'}")
    file.write("\n".join(lines) + "\nend\n\n")


def dyadic(rng, shape, low=-2.0, high=2.0, step=0.125):
    """Random multiples of `step`: short to write, and their products and sums are exact in Float32."""
    count = int(round((high - low) / step))
    return low + step * rng.integers(0, count + 1, size=shape).astype(np.float64)


def distinct(rng, shape, low=-2.0, step=0.125):
    """A random order of multiples of `step`, all different."""
    size = int(np.prod(shape))
    return low + step * rng.permutation(size).astype(np.float64).reshape(shape)
