"""The plug-in of CUDA on the pretended GPUs of tests/fake_cuda: its contract, and what it says where one is missing.

The build is the folder named by ROSIN_TEST_BUILD, else build/release; ./run test sets it.
"""

import ctypes
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = pathlib.Path(os.environ.get("ROSIN_TEST_BUILD", ROOT / "build" / "release")).resolve()
CONFORMANCE = BUILD / "conformance"
PLUGIN = BUILD / "rosin" / "librosin_cuda.so"
FAKE = BUILD / "fake_cuda"


def conformance(*words, **environment):
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CUDA_", "FAKE_", "ROSIN_CUDA"))}
    return subprocess.run([str(word) for word in (CONFORMANCE, PLUGIN, *words)], env=kept | environment,
                          capture_output=True, text=True, check=False, timeout=900)


def real_nvrtc():
    """The file of NVIDIA's own compiler, of CUDA 12 or later; None where there is none. Always a path: the name alone
    is that of the pretended one too."""
    folders = [*os.environ.get("LD_LIBRARY_PATH", "").split(":"), "/usr/lib/x86_64-linux-gnu", "/usr/local/cuda/lib64",
               *(f"{packages}/nvidia/{one}/lib" for packages in sys.path for one in ("cu13", "cuda_nvrtc"))]
    for folder in filter(os.path.isabs, folders):
        for name in ("libnvrtc.so.13", "libnvrtc.so.12"):
            path = os.path.join(folder, name)
            try:
                ctypes.CDLL(path)
                return path
            except OSError:
                pass
    return None


@unittest.skipUnless(PLUGIN.is_file() and (FAKE / "libcuda.so.1").exists(), "the build has no pretended CUDA")
class CudaPlugin(unittest.TestCase):
    def good(self, *words, options="devices=1"):
        done = conformance(*words, ROSIN_CUDA_LIBRARIES=str(FAKE), FAKE_CUDA=options)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"\n[1-9]\d* passed, 0 failed\n$")

    def reason(self, options="devices=1", libraries=FAKE, **environment):
        """Why there is no device."""
        done = conformance("--only", "device", ROSIN_CUDA_LIBRARIES=str(libraries), FAKE_CUDA=options, **environment)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        return done.stdout

    def test_keeps_the_contract(self):
        self.good("--only", "device,memory,streams,extras,services,graphs")

    def test_slow_keeps_it_in_kernels_whose_text_the_real_nvrtc_takes(self):
        nvrtc = real_nvrtc()
        self.good("--only", "programs,kernels,operations,elements", options=f"nvrtc={nvrtc}" if nvrtc else "devices=1")
        self.good("--only", "later", options=f"nvrtc={nvrtc}" if nvrtc else "devices=1")
        if nvrtc is None:
            self.skipTest("passed, but the real NVRTC is not installed")

    def test_convolutions_are_right(self):
        self.good("--only", "convolutions", options="devices=1,order=2")

    def test_keeps_it_in_other_orders_of_work_and_on_the_second_device(self):
        self.good("--device", 1, "--only", "memory,streams,extras,services,graphs", options="devices=2,order=2")
        self.good("--only", "memory,streams,extras,services,graphs", options="devices=3,order=3,peer=0")

    def test_a_driver_that_is_not_there_is_the_reason(self):
        with tempfile.TemporaryDirectory() as empty:
            text = self.reason(libraries=empty)
        if "NVIDIA driver" not in text:
            self.skipTest("this machine has an NVIDIA driver")
        self.assertIn("device_count: the NVIDIA driver is not installed (libcuda.so.1, libcuda.so: not found)", text)

    def test_a_file_that_is_no_library_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "libcuda.so.1").write_text("text", encoding="utf-8")
            text = self.reason(libraries=folder)
        if "NVIDIA driver" not in text:
            self.skipTest("this machine has an NVIDIA driver")
        self.assertIn(f"the NVIDIA driver is not installed ({folder}/libcuda.so.1: ", text)

    def test_folders_that_are_none_are_named(self):
        text = self.reason(libraries=f"/nowhere:lib:{__file__}")
        for folder, why in (("/nowhere", "does not exist"), ("lib", "is not absolute"), (__file__, "is no folder")):
            self.assertEqual(text.count(f"; ROSIN_CUDA_LIBRARIES names {folder}, which {why}"), 1, text)

    def test_an_old_driver_is_too_old(self):
        text = self.reason("driver=11040")
        self.assertIn("the NVIDIA driver is too old: it is of CUDA 11.4, 11.8 is needed; install a newer one", text)

    def test_hidden_devices_are_said_to_be_hidden(self):
        self.assertIn('all devices are hidden by CUDA_VISIBLE_DEVICES="-1"', self.reason(CUDA_VISIBLE_DEVICES="-1"))

    def test_no_device_is_what_the_driver_says(self):
        self.assertIn("no CUDA-capable device is detected", self.reason("devices=0"))

    def test_a_compiler_that_is_not_there_is_the_reason(self):
        # Only NVRTC 11.2 would do for this driver.
        text = self.reason("driver=11080")
        if "NVRTC" not in text:
            self.skipTest("this machine has NVRTC of CUDA 11")
        self.assertIn("NVRTC, which compiles the kernels, is missing: libnvrtc.so.11.2: not found", text)
        self.assertIn("name its folder in ROSIN_CUDA_LIBRARIES", text)

    def test_a_driver_that_does_not_start_is_the_reason(self):
        text = self.reason("fail=cuInit:1")
        self.assertIn("start of the NVIDIA driver: cuInit: cuInit fails as FAKE_CUDA asks", text)


if __name__ == "__main__":
    unittest.main()
