"""Checks an ONNX file that rosin wrote: onnx.checker takes it, and onnxruntime computes what rosin did.

FILE.npz holds what went in and came out, as input.NAME and output.NAME in rosin's order of dims, which is the reverse
of the file's. Prints "right", or what differs.
usage: python3 tests/check_onnx.py (FILE.onnx FILE.npz...)...
"""

import sys

import numpy
import onnx
import onnxruntime

TOLERANCE = 1e-5  # of the largest value


def values_of(path, what):
    with numpy.load(path) as arrays:
        return {name[len(what) + 1:]: arrays[name].T for name in arrays.files if name.startswith(what + ".")}


def difference(name, got, wanted):
    if got.shape != wanted.shape or got.dtype != wanted.dtype:
        return f"{name}: {got.dtype} {got.shape} where it must be {wanted.dtype} {wanted.shape}"
    if got.dtype.kind in "biu":
        return "" if numpy.array_equal(got, wanted) else f"{name}: other whole numbers"
    same = (got == wanted) | (numpy.isnan(got) & numpy.isnan(wanted))
    got, wanted = numpy.where(same, 0, got), numpy.where(same & ~numpy.isfinite(wanted), 0, wanted)
    scale = max(1.0, float(numpy.abs(wanted).max(initial=0.0)))
    error = float(numpy.abs(numpy.where(same, 0, got - wanted)).max(initial=0.0)) / scale
    return "" if error <= TOLERANCE else f"{name}: {error:.3g} away"


def differences(model, cases):
    onnx.checker.check_model(model, full_check=True)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    for case in cases:
        results = dict(zip(names, session.run(None, values_of(case, "input"))))
        wanted = values_of(case, "output")
        if set(wanted) != set(results):
            yield f"outputs {sorted(results)} where they must be {sorted(wanted)}"
            continue
        yield from filter(None, (difference(name, results[name], wanted[name]) for name in wanted))


def main():
    models = []
    for path in sys.argv[1:]:
        if path.endswith(".onnx"):
            models.append((path, []))
        else:
            models[-1][1].append(path)
    found = [text for model, cases in models for text in differences(model, cases)]
    print("\n".join(found) or "right")


if __name__ == "__main__":
    main()
