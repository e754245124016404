"""Prints every tensor of a safetensors file as `name dtype shape sum first last`, row-major, for tests of our writer.

Reads with the package safetensors and NumPy where both are installed, else by the format's definition with the standard
library. usage: python3 tests/read_safetensors.py FILE
"""

import json
import math
import struct
import sys

CODES = {"BOOL": "?", "U8": "B", "I8": "b", "I16": "h", "U16": "H", "F16": "e", "I32": "i", "U32": "I", "F32": "f",
         "I64": "q", "U64": "Q", "F64": "d"}


def read_plainly(path):
    """(name, dtype, shape, values) of each tensor, by the definition of the format."""
    with open(path, "rb") as file:
        length = struct.unpack("<Q", file.read(8))[0]
        header = json.loads(file.read(length))
        data = file.read()
    for name, tensor in header.items():
        if name != "__metadata__":
            begin, end = tensor["data_offsets"]
            code = CODES[tensor["dtype"]]
            values = struct.unpack(f"<{(end - begin) // struct.calcsize(code)}{code}", data[begin:end])
            yield name, tensor["dtype"], tensor["shape"], values


def read_with_package(path):
    """The same through the package that others use."""
    from safetensors import safe_open

    with safe_open(path, framework="numpy") as file:
        for name in file.keys():
            array = file.get_tensor(name)
            yield name, file.get_slice(name).get_dtype(), list(array.shape), array.ravel(order="C").tolist()


def main():
    try:
        import numpy  # noqa: F401
        import safetensors  # noqa: F401
        reader = read_with_package
    except ImportError:
        reader = read_plainly
    print(reader.__name__)
    for name, dtype, shape, values in sorted(reader(sys.argv[1])):
        assert len(values) == math.prod(shape), name
        first, last = (repr(float(values[i])) if values else "-" for i in (0, -1))
        print(name, dtype, "x".join(map(str, shape)) or "scalar", repr(float(math.fsum(values))), first, last)


if __name__ == "__main__":
    main()
