"""What the plug-in of AMDGPU says of AMD's structs, numbers and functions, against AMD's headers.

Those of HIP, hipBLASLt and MIOpen are looked for in the system (Debian's libamdhip64-dev) and in ROCm; skipped where
they are not.
"""

import os
import pathlib
import re
import shutil
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[1]
PLUGIN = ROOT / "backends" / "amdgpu"
COMPILER = os.environ.get("CXX") or "g++"
# where a function's address goes, by the source that looks it up
OWNERS = {"compiler.cpp": ((r"functions_\.(\w+)", "Compiling"),), "graphs.cpp": ((r"(\w+_)", "Graphing"),),
          "runtime.cpp": ((r"all\.(\w+)", "All"), (r"hip\.(\w+)", "Other"))}
BLAS = {"hipblaslt.cpp": ((r"functions\.(\w+)", "Multiplying"),)}
DNN = {"miopen_library.cpp": ((r"functions_\.([\w.]+)", "Convolving"),)}
# Of two types in the header, of which one is a template's.
PLAIN = {"hipHostMalloc": "hipError_t (*)(void**, size_t, unsigned)", "hipMalloc": "hipError_t (*)(void**, size_t)"}
WITH_ADDRESSES = ("hipMalloc", "hipFree", "hipMemcpyDtoDAsync", "hipMemsetD8Async", "hipMemcpyHtoDAsync",
                  "hipMemcpyDtoHAsync", "hipMemcpyPeerAsync")


def folder_of(header):
    prefixes = [os.environ.get("ROCM_PATH"), os.environ.get("HIP_HEADERS"), "/opt/rocm", "/usr"]
    folders = [pathlib.Path(prefix) / "include" for prefix in prefixes if prefix]
    return next((folder for folder in folders if (folder / header).is_file()), None)


def comparisons(owners):
    """A line for each function that the plug-in looks up: our type of it against the header's."""
    lines = []
    for name, places in owners.items():
        text = (PLUGIN / name).read_text(encoding="utf-8")
        for place, owner in places:
            for field, function in re.findall(rf'find\({place}, "(\w+)"\)', text):
                theirs = f"static_cast<{PLAIN[function]}>(&::{function})" if function in PLAIN else f"&::{function}"
                same = "same_with_addresses" if function in WITH_ADDRESSES else "same_call"
                lines.append(f'static_assert({same}<decltype({owner}::{field}), decltype({theirs})>, "{function}");')
    return lines


@unittest.skipUnless(shutil.which(COMPILER), "there is no compiler")
class HipHeaders(unittest.TestCase):
    def compile(self, source, header, owners, *more):
        folder = folder_of(header)
        if folder is None:
            self.skipTest(f"{header} is not installed")
        text = f'#include "{ROOT / "tests" / "foreign" / source}"\n' + "\n".join([*comparisons(owners), *more])
        return subprocess.run(
            [COMPILER, "-std=c++20", "-w", "-fno-access-control", "-fsyntax-only", "-DROSIN_VERSION=\"test\"",
             "-D__HIP_PLATFORM_AMD__", f"-I{ROOT / 'backends'}", f"-I{ROOT / 'include'}", "-isystem", str(folder),
             "-x", "c++", "-"], input=text, text=True, capture_output=True, check=False)

    def test_structs_numbers_and_signatures_are_hips(self):
        self.assertGreater(len(comparisons(OWNERS)), 60)
        done = self.compile("hip.cpp", "hip/hiprtc.h", OWNERS)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_those_of_hipblaslt_are_amds(self):
        self.assertEqual(len(comparisons(BLAS)), 14)
        done = self.compile("hipblaslt.cpp", "hipblaslt/hipblaslt.h", BLAS)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_those_of_miopen_are_amds(self):
        self.assertEqual(len(comparisons(DNN)), 27)
        done = self.compile("miopen.cpp", "miopen/miopen.h", DNN)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_wrong_signature_and_a_wrong_number_are_seen(self):
        wrong = self.compile("hip.cpp", "hip/hiprtc.h", OWNERS,
                             'static_assert(same_call<decltype(All::alloc), decltype(&::hipFree)>, "other call");',
                             "SAME_NUMBER(Error::not_ready, hipErrorUnknown);")
        self.assertNotEqual(wrong.returncode, 0)
        self.assertEqual(len(re.findall(r"error: static assertion failed", wrong.stderr)), 2, wrong.stderr)
        self.assertIn("other call", wrong.stderr)


if __name__ == "__main__":
    unittest.main()
