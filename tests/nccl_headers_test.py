"""What the transport over NCCL says of functions, types and constants, against the headers of NCCL and of RCCL.

They are looked for in CUDA's toolkit and in NCCL_HOME, in ROCm and in HIP_HEADERS; skipped where they are not.
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
ROCM_HOMES = [*filter(None, (os.environ.get(name) for name in ("ROCM_PATH", "HIP_HEADERS"))), "/opt/rocm", "/usr"]


def folder_with(name, homes):
    for home in homes:
        if (pathlib.Path(home) / "include" / name).is_file():
            return pathlib.Path(home) / "include"
    return None


def lines_of(source, pattern, owner):
    """A line for each function that the transport looks up: our type of it against the header's."""
    text = (ROOT / "comm" / "nccl" / source).read_text(encoding="utf-8")
    return [f'static_assert(same_call<decltype({owner}::{field}), decltype(&{theirs})>, "{theirs}");'
            for field, theirs in re.findall(pattern, text)]


FUNCTIONS = [*lines_of("library.cpp", r'get\(f\.(\w+), "(\w+)"\)', "Functions"),
             "static_assert(same_call<decltype(Functions::get_last_error), decltype(&ncclGetLastError)>);"]
DRIVER = lines_of("library.cpp", r'find\(library, d\.(\w+), "(\w+)"', "Driver")
HIP = lines_of("rocm.cpp", r'find\(runtime, hip\.(\w+), "(\w+)"', "Hip")


@unittest.skipUnless(shutil.which(COMPILER), "there is no compiler")
class NcclHeaders(unittest.TestCase):
    def compiled(self, headers, homes, *more):
        folders = [folder_with(name, homes) for name in headers]
        if None in folders:
            self.skipTest(f"{', '.join(headers)} are not installed")
        text = "\n".join([f'#include "{ROOT / "tests" / "foreign" / "nccl.cpp"}"', *FUNCTIONS, *more]) + "\n"
        words = [COMPILER, "-std=c++20", "-w", "-fsyntax-only", f"-I{ROOT / 'comm'}", f"-I{ROOT / 'backends'}",
                 f"-I{ROOT / 'include'}", "-D__HIP_PLATFORM_AMD__", "-x", "c++", "-"]
        if homes is ROCM_HOMES:
            words.insert(1, "-DWITH_RCCL")
        for folder in dict.fromkeys(folders):
            words += ["-isystem", str(folder)]
        return subprocess.run(words, input=text, text=True, capture_output=True, check=False)

    def of_nccl(self, *more):
        return self.compiled(("nccl.h", "cuda.h", "cuda_runtime.h"), HOMES, *more)

    def test_all_are_as_the_headers_say(self):
        self.assertEqual((len(FUNCTIONS), len(DRIVER)), (17, 3))
        done = self.of_nccl(*DRIVER)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_all_are_as_those_of_rccl_say(self):
        self.assertEqual(len(HIP), 3)
        done = self.compiled(("rccl/rccl.h", "hip/hip_runtime_api.h"), ROCM_HOMES, *HIP)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_wrong_one_is_seen(self):
        wrong = "static_assert(same_call<decltype(Functions::send), decltype(&ncclReduce)>);"
        self.assertNotEqual(self.of_nccl(wrong).returncode, 0)


if __name__ == "__main__":
    unittest.main()
