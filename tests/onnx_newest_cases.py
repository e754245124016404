"""Writes the node cases that the installed onnx package makes, in the form of libonnx-testdata.

Cases with sequences, maps or optionals are left out.
usage: python3 tests/onnx_newest_cases.py FOLDER
"""

import pathlib
import sys

import numpy
import onnx
from onnx.backend.test.case.node import collect_testcases


def bytes_of(value, name):
    tensor = value if isinstance(value, onnx.TensorProto) else onnx.numpy_helper.from_array(numpy.asarray(value), name)
    return tensor.SerializeToString()


def write(case, folder):
    for i, (inputs, outputs) in enumerate(case.data_sets):
        data = folder / f"test_data_set_{i}"
        data.mkdir(parents=True)
        for what, values in (("input", inputs), ("output", outputs)):
            for j, value in enumerate(values):
                (data / f"{what}_{j}.pb").write_bytes(bytes_of(value, f"{what}_{j}"))
    (folder / "model.onnx").write_bytes(case.model.SerializeToString())


def is_of_tensors(case):
    graph = case.model.graph
    return all(value.type.HasField("tensor_type") for value in [*graph.input, *graph.output])


def main():
    for case in collect_testcases():
        if is_of_tensors(case):
            write(case, pathlib.Path(sys.argv[1]) / case.name)


if __name__ == "__main__":
    main()
