#!/usr/bin/env python3
"""Writes the expected values of rosin's tests: tests/oracles/*.txt. Run by hand; the files are committed.

    python3 -m venv venv && venv/bin/pip install numpy scipy mpmath torch
    venv/bin/python tests/oracles/make_oracles.py             # all families
    venv/bin/python tests/oracles/make_oracles.py conv norm   # some of them

Seeds are fixed: the same versions of the libraries write the same files. Read next: README.md, generators/text.py.
"""

import importlib
import pathlib
import sys

import mpmath

FAMILIES = {  # file: modules that write it
    "elementwise": ["unary", "binary", "elementwise_gradients"],
    "bits": ["bits"],
    "special": ["special"],
    "activations": ["activations"],
    "complex": ["complex"],
    "reduce": ["reduce"],
    "movement": ["movement"],
    "index": ["index"],
    "matmul": ["matmul"],
    "conv": ["conv"],
    "norm": ["norm"],
    "arrange": ["arrange"],
    "linalg": ["linalg"],
    "resample": ["resample"],
    "fourier": ["fourier"],
    "recurrent": ["recurrent"],
    "attention": ["attention"],
    "autocast": ["autocast"],
    "loss": ["loss"],
    "optim": ["optim"],
    "lbfgs": ["lbfgs"],
    "random": ["random"],
    "distributions": ["distributions"],
    "densities": ["densities"],
    "tables": ["tables"],
    "images": ["images"],
    "augment": ["augment"],
    "tokens": ["tokens"],
}


def main(names):
    unknown = set(names) - set(FAMILIES)
    if unknown:
        sys.exit(f"make_oracles: unknown family {', '.join(sorted(unknown))}; there are {', '.join(FAMILIES)}")
    mpmath.mp.dps = 60
    folder = pathlib.Path(__file__).resolve().parent
    for name in names or FAMILIES:
        with open(folder / f"{name}.txt", "w", encoding="ascii") as file:
            file.write(f"# Made by make_oracles.py {name}; do not edit. Format and rules: README.md.\n\n")
            for module in FAMILIES[name]:
                importlib.import_module(f"generators.{module}").write(file)


if __name__ == "__main__":
    main(sys.argv[1:])
