"""The pretended CUDA finds what kernels do wrong with the groups of a launch that arrive: see tests/fake_cuda.

Each kernel runs in a process of its own, from Python, through NVRTC's and libcuda's functions. The build is the folder
named by ROSIN_TEST_BUILD, else build/release.
"""

import os
import pathlib
import re
import subprocess
import sys
import textwrap
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = pathlib.Path(os.environ.get("ROSIN_TEST_BUILD", ROOT / "build" / "release")).resolve()
LIBRARIES = BUILD / "fake_cuda"

# What kernels are written with, as the library has it.
ARRIVES = re.search(r'"arrives_last", R"\((.*?)\)"', (ROOT / "src/kernels/dialects.cpp").read_text(), re.DOTALL)[1]

# 4 blocks of 32 items store their numbers; the last to arrive adds up what all have stored.
KERNEL = ARRIVES.replace("$F", "static __device__ __forceinline__") + """

extern "C" __global__ void __launch_bounds__(32) sums(i32* p0, i32* p1, i32* p2) {
  const i32 item = (i32)threadIdx.x, at = (i32)blockIdx.x * 32 + item;
  p0[at] = at;
  if (arrives_last(p1, 0, 4)) {
    i32 sum = 0;
    for (i32 i = 0; i < 4; i += 1) sum = sum + (i32)p0[i * 32 + item];
    p2[item] = sum;
  }
}
"""

RUN = """
import ctypes, sys
from ctypes import byref, c_char_p, c_int, c_size_t, c_uint64, c_void_p
nvrtc, cuda = (ctypes.CDLL(f"{LIBRARIES}/{name}") for name in ("libnvrtc.so.13", "libcuda.so.1"))
def check(code):
    if code != 0:
        text = c_char_p()
        cuda.cuGetErrorString(code, byref(text))
        sys.exit(f"{code}: {(text.value or b'').decode()}")
program, size = c_void_p(), c_size_t()
check(nvrtc.nvrtcCreateProgram(byref(program), ("typedef int i32;\\n" + KERNEL).encode(), b"k", 0, None, None))
check(nvrtc.nvrtcCompileProgram(program, 0, None))
check(nvrtc.nvrtcGetCUBINSize(program, byref(size)))
binary = ctypes.create_string_buffer(size.value)
check(nvrtc.nvrtcGetCUBIN(program, binary))
context, module, kernel = c_void_p(), c_void_p(), c_void_p()
check(cuda.cuInit(0))
check(cuda.cuDevicePrimaryCtxRetain(byref(context), 0))
check(cuda.cuCtxPushCurrent_v2(context))
check(cuda.cuModuleLoadData(byref(module), binary))
check(cuda.cuModuleGetFunction(byref(kernel), module, b"sums"))
stream = c_void_p()
check(cuda.cuStreamCreate(byref(stream), 1))
memory = [c_uint64() for _ in range(3)]
for block in memory:
    check(cuda.cuMemAlloc_v2(byref(block), c_size_t(512)))
    check(cuda.cuMemcpyHtoDAsync_v2(block, bytes(512), c_size_t(512), stream))
places = (c_void_p * 3)(*(ctypes.addressof(block) for block in memory))
for _ in range(2):  # counters are 0 again
    check(cuda.cuLaunchKernel(kernel, 4, 1, 1, 32, 1, 1, 0, stream, places, None))
    check(cuda.cuStreamSynchronize(stream))
found = (c_int * 32)()
check(cuda.cuMemcpyDtoHAsync_v2(found, memory[2], c_size_t(128), stream))
check(cuda.cuStreamSynchronize(stream))
print(list(found) == [4 * item + 32 * 6 for item in range(32)])
"""


@unittest.skipUnless((LIBRARIES / "libcuda.so.1").exists(), "there is no pretended CUDA")
class GroupsThatArrive(unittest.TestCase):
    def run_kernel(self, *changed):
        kernel = KERNEL
        if changed:
            self.assertIn(changed[0], kernel)
            kernel = kernel.replace(*changed)
        text = f"LIBRARIES = {str(LIBRARIES)!r}\nKERNEL = {kernel!r}\n" + textwrap.dedent(RUN)
        return subprocess.run([sys.executable, "-c", text], check=False, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, env={**os.environ, "FAKE_CUDA": "devices=1"})

    def test_the_last_reads_what_all_stored(self):
        done = self.run_kernel()
        self.assertEqual((done.returncode, done.stdout.strip()), (0, "True"), done.stderr)

    def test_what_breaks_it_is_a_fault(self):
        once = "    __threadfence();\n"
        for changed, fault in (
                ((once + "    last", "    last"), "a block arrives that has not fenced"),
                (("counters[at] = 0;\n" + once, "counters[at] = 0;\n"), "a read of what another item"),
                (("if (arrives_last(p1, 0, 4))", "arrives_last(p1, 0, 4);\n  if (blockIdx.x == 1)"),
                 "a read of what another item|a write of what another item"),
                (("p0[at] = at;", "p0[item] = at;"), "two items of a launch wrote one place")):
            with self.subTest(fault):
                done = self.run_kernel(*changed)
                self.assertNotEqual(done.returncode, 0, done.stdout)
                self.assertRegex(done.stderr, fault)


if __name__ == "__main__":
    unittest.main()
