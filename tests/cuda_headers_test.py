"""What the plug-in of CUDA says of NVIDIA's structs, numbers and functions, against NVIDIA's own headers.

They are looked for in the CUDA toolkit and among Python's packages; skipped where they are not.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[1]
PLUGIN = ROOT / "backends" / "cuda"
COMPILER = os.environ.get("CXX") or "g++"
# where a function's address goes, by the source that looks it up
DRIVER = {"plugin.cpp": (r"all\.(\w+)", "All"), "compiler.cpp": (r"functions_\.(\w+)", "Compiling"),
          "graphs.cpp": (r"(\w+_)", "Graphing")}
BLAS = {"cublaslt.cpp": (r"functions\.(\w+)", "Multiplying")}
DNN = {"cudnn_library.cpp": (r"functions_\.(\w+)", "Convolving")}
RECURRENT = {"cudnn_library.cpp": (r"recurrent_\.(\w+)", "Recurring")}


def folders_of_headers():
    prefixes = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
    yield from (pathlib.Path(prefix) / "include" for prefix in prefixes if prefix)
    for packages in sys.path:
        yield from sorted(pathlib.Path(packages or ".").glob("nvidia/*/include"))


def include_options(*names):
    """-isystem options under which these headers of CUDA 12 or later are found; None where they are not."""
    found = {}
    for folder in folders_of_headers():
        for name in names:
            if (folder / name).is_file():
                found.setdefault(name, folder)
    if len(found) < len(names):
        return None
    options = [word for folder in dict.fromkeys(found.values()) for word in ("-isystem", str(folder))]
    probe = "".join(f"#include <{name}>\n" for name in names) + "#if CUDA_VERSION < 12000\n#error old\n#endif\n"
    good = subprocess.run([COMPILER, *options, "-x", "c++", "-fsyntax-only", "-"], input=probe, text=True,
                          capture_output=True, check=False)
    return options if good.returncode == 0 else None


def comparisons(owners):
    """A line for each function that the plug-in looks up: our type of it against the header's."""
    lines = []
    for name, (place, owner) in owners.items():
        text = (PLUGIN / name).read_text(encoding="utf-8")
        for field, function in re.findall(rf'find\({place}, "(\w+)"\)', text):
            lines.append(f"static_assert(same_call<decltype({owner}::{field}), decltype(&::{function})>,"
                         f' "{function}");')
    return lines


@unittest.skipUnless(shutil.which(COMPILER), "there is no compiler")
class CudaHeaders(unittest.TestCase):
    def compile(self, source, owners, headers, *more):
        options = include_options("cuda.h", *headers)
        if options is None:
            self.skipTest(f"{', '.join(headers)} of CUDA 12 or later are not installed")
        text = f'#include "{ROOT / "tests" / "foreign" / source}"\n' + "\n".join([*comparisons(owners), *more])
        return subprocess.run(
            [COMPILER, "-std=c++20", "-w", "-fno-access-control", "-fsyntax-only", "-DROSIN_VERSION=\"test\"",
             f"-I{ROOT / 'backends'}", f"-I{ROOT / 'include'}", *options, "-x", "c++", "-"],
            input=text, text=True, capture_output=True, check=False)

    def test_structs_numbers_and_signatures_are_nvidias(self):
        self.assertGreater(len(comparisons(DRIVER)), 55)
        done = self.compile("cuda.cpp", DRIVER, ["nvrtc.h"])
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_those_of_cublaslt_are_nvidias(self):
        self.assertEqual(len(comparisons(BLAS)), 14)
        done = self.compile("cublaslt.cpp", BLAS, ["cublasLt.h"])
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_those_of_cudnn_are_nvidias(self):
        self.assertEqual(len(comparisons(DNN)), 10)
        self.assertEqual(len(comparisons(RECURRENT)), 18)
        done = self.compile("cudnn.cpp", DNN, ["cudnn.h"], *comparisons(RECURRENT))
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_wrong_signature_and_a_wrong_number_are_seen(self):
        wrong = self.compile("cuda.cpp", DRIVER, ["nvrtc.h"],
                             'static_assert(same_call<decltype(All::alloc), decltype(&::cuMemFree_v2)>, "other call");',
                             "SAME_NUMBER(Result::not_ready, CUDA_ERROR_UNKNOWN);")
        self.assertNotEqual(wrong.returncode, 0)
        self.assertEqual(len(re.findall(r"error: static assertion failed", wrong.stderr)), 2, wrong.stderr)
        self.assertIn("other call", wrong.stderr)


if __name__ == "__main__":
    unittest.main()
