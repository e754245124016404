"""What the transport over NCCL says of functions, types and constants, against NVIDIA's headers.

They are looked for in CUDA's toolkit and in NCCL_HOME; skipped where they are not.
"""

import os
import pathlib
import re
import shutil
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[1]
COMPILER = os.environ.get("CXX") or "g++"
HOMES = [*filter(None, (os.environ.get(name) for name in ("NCCL_HOME", "CUDA_HOME", "CUDA_PATH"))),
         "/usr/local/cuda", "/usr/local", "/usr"]


def folder_with(name):
    for home in HOMES:
        if (pathlib.Path(home) / "include" / name).is_file():
            return pathlib.Path(home) / "include"
    return None


def comparisons():
    """A line for each function that the transport looks up: our type of it against the header's."""
    text = (ROOT / "comm" / "nccl" / "library.cpp").read_text(encoding="utf-8")
    found = re.findall(r'get\(f\.(\w+), "(\w+)"\)', text) + [("get_last_error", "ncclGetLastError")]
    lines = [(f"Functions::{field}", function) for field, function in found]
    driver = re.findall(r'find\(library, d\.(\w+), "(\w+)"', text)
    lines += [(f"Driver::{field}", function) for field, function in driver]
    return [f'static_assert(same_call<decltype({ours}), decltype(&{theirs})>, "{theirs}");' for ours, theirs in lines]


@unittest.skipUnless(shutil.which(COMPILER), "there is no compiler")
class NcclHeaders(unittest.TestCase):
    def compiled(self, *more):
        folders = [folder_with(name) for name in ("nccl.h", "cuda.h", "cuda_runtime.h")]
        if None in folders:
            self.skipTest("no nccl.h, or no headers of CUDA")
        text = "\n".join([f'#include "{ROOT / "tests" / "foreign" / "nccl.cpp"}"', *comparisons(), *more]) + "\n"
        words = [COMPILER, "-std=c++20", "-w", "-fsyntax-only", f"-I{ROOT / 'comm'}", "-x", "c++", "-"]
        for folder in dict.fromkeys(folders):
            words += ["-isystem", str(folder)]
        return subprocess.run(words, input=text, text=True, capture_output=True, check=False)

    def test_all_are_as_the_headers_say(self):
        self.assertEqual(len(comparisons()), 20)
        done = self.compiled()
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_wrong_one_is_seen(self):
        wrong = "static_assert(same_call<decltype(Functions::send), decltype(&ncclRecv)>);"
        self.assertNotEqual(self.compiled(wrong.replace("ncclRecv", "ncclReduce")).returncode, 0)


if __name__ == "__main__":
    unittest.main()
