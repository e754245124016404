"""NumPy and PyTorch on rosin's memory and the other way round: builds dlpack/library.cpp and runs dlpack/checks.py.

It runs in the first Python that has the package: the one that PYTHON names, this one, that of build/venv (see bench/),
the system's.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = pathlib.Path(os.environ.get("ROSIN_TEST_BUILD", ROOT / "build" / "release")).resolve()
COMPILER = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
VENV = ROOT / "build" / "venv"
PYTHONS = [os.environ.get("PYTHON"), sys.executable, str(VENV / "bin" / "python"), "/usr/bin/python3"]


def python_with(package):
    for python in PYTHONS:
        if not python or not shutil.which(python):
            continue
        if subprocess.run([python, "-c", f"import {package}"], capture_output=True, check=False).returncode == 0:
            return python
    return None


@unittest.skipUnless(COMPILER and (BUILD / "librosin.so").is_file(), "no C++ compiler, or no build")
class Dlpack(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.library = pathlib.Path(folder.name) / "library.so"
        subprocess.run([COMPILER, "-std=c++20", "-shared", "-fPIC", "-I", ROOT / "include",
                        ROOT / "tests" / "dlpack" / "library.cpp", "-o", cls.library, "-L", BUILD, "-lrosin",
                        f"-Wl,-rpath,{BUILD}"], check=True)

    def check(self, package):
        python = python_with(package)
        if not python:
            self.skipTest(f"no Python here has {package}")
        result = subprocess.run([python, ROOT / "tests" / "dlpack" / "checks.py", self.library, package],
                                capture_output=True, text=True, check=False, timeout=300)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_numpy_and_rosin_share_memory(self):
        self.check("numpy")

    def test_pytorch_and_rosin_share_memory(self):
        self.check("torch")


if __name__ == "__main__":
    unittest.main()
