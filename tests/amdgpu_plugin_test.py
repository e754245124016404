"""The plug-in of AMDGPU on the pretended GPUs of tests/fake_hip: its contract, and what it says where one is missing.

The build is the folder named by ROSIN_TEST_BUILD, else build/release; ./run test sets it.
"""

import os
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = pathlib.Path(os.environ.get("ROSIN_TEST_BUILD", ROOT / "build" / "release")).resolve()
CONFORMANCE = BUILD / "conformance"
PLUGIN = BUILD / "rosin" / "librosin_amdgpu.so"
FAKE = BUILD / "fake_hip"
HIDING = "_VISIBLE_DEVICES"
WAVE64 = "name=gfx90a:sramecc+:xnack-,warp=64"


def conformance(*words, **environment):
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith(("FAKE_", "ROSIN_ROCM")) and not name.endswith(HIDING)}
    return subprocess.run([str(word) for word in (CONFORMANCE, PLUGIN, *words)], env=kept | environment,
                          capture_output=True, text=True, check=False, timeout=900)


@unittest.skipUnless(PLUGIN.is_file() and (FAKE / "libamdhip64.so.6").exists(), "the build has no pretended HIP")
class AmdgpuPlugin(unittest.TestCase):
    def good(self, *words, options="devices=1"):
        done = conformance(*words, ROSIN_ROCM_LIBRARIES=str(FAKE), FAKE_HIP=options)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"\n[1-9]\d* passed, 0 failed\n$")

    def reason(self, options="devices=1", libraries=FAKE, **environment):
        """Why there is no device."""
        done = conformance("--only", "device", ROSIN_ROCM_LIBRARIES=str(libraries), FAKE_HIP=options, **environment)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        return done.stdout

    def test_keeps_the_contract(self):
        self.good("--only", "device,memory,streams,extras,services,calls,graphs")

    def test_slow_keeps_it_in_kernels_of_waves_of_32_and_of_64(self):
        self.good("--only", "programs,kernels,operations,elements")
        self.good("--only", "device,programs,kernels", options=WAVE64)

    def test_slow_keeps_it_in_matrices_of_every_architecture(self):
        for name, warp in (("gfx908", 64), ("gfx942", 64), ("gfx1100", 32), ("gfx1201", 32), ("gfx1250", 32)):
            self.good("--only", "device,later", options=f"name={name},warp={warp}")

    def test_keeps_it_in_other_orders_of_work_and_on_the_second_device(self):
        self.good("--device", 1, "--only", "memory,streams,extras,services,calls,graphs", options="devices=2,order=2")
        self.good("--only", "memory,streams,extras,services,graphs", options="devices=3,order=3,peer=0")

    def test_convolutions_of_miopen_are_right(self):
        self.good("--only", "convolutions", options="devices=1,order=2")
        self.good("--only", "convolutions", options=WAVE64)

    def test_a_library_that_does_not_open_is_the_reason(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "libamdhip64.so.7").write_text("text", encoding="utf-8")
            text = self.reason(libraries=folder)
        self.assertRegex(text, rf"HIP runtime is not installed \({folder}/libamdhip64.so.7: |HIP finds no AMD GPU"
                               "|HIP runtime is too old")

    @unittest.skipIf(os.path.exists("/dev/kfd") or os.path.exists("/dev/dxg"), "this machine has an AMD GPU")
    def test_a_machine_without_the_kernel_driver_says_so(self):
        done = conformance("--only", "device")
        self.assertIn("there is no AMD GPU, or its kernel driver amdgpu is not loaded (/dev/kfd does not exist)",
                      done.stdout)

    def test_folders_that_are_none_are_named(self):
        text = self.reason(libraries=f"/nowhere:{FAKE}:lib", options="devices=0")  # whether there is another HIP or not
        self.assertIn("HIP finds no AMD GPU; ROSIN_ROCM_LIBRARIES names /nowhere, which does not exist; "
                      "ROSIN_ROCM_LIBRARIES names lib, which is not absolute\n", text)
        text = self.reason(libraries="/nowhere")
        self.assertEqual(text.count("; ROSIN_ROCM_LIBRARIES names /nowhere, which does not exist"), 1, text)

    def test_an_old_runtime_is_too_old(self):
        text = self.reason("driver=50221153")
        self.assertIn("the HIP runtime is too old: it is 5.2, 5.7 is needed; install ROCm 5.7 or later", text)

    def test_hidden_devices_are_said_to_be_hidden(self):
        for name in ("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"):
            for value in ("", "-1"):
                self.assertIn(f'all devices are hidden by {name}="{value}"', self.reason(**{name: value}))

    def test_no_device_is_said(self):
        self.assertIn("HIP finds no AMD GPU", self.reason("devices=0"))

    def test_a_compiler_that_is_not_there_is_the_reason(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "libamdhip64.so.6").symlink_to(FAKE / "libamdhip64.so.6")
            text = self.reason(libraries=folder)
        if "hipRTC" not in text:
            self.skipTest("this machine has hipRTC of ROCm 6")
        self.assertIn("hipRTC, which compiles the kernels, is missing: libhiprtc.so.6: not found", text)
        self.assertIn("name its folder in ROSIN_ROCM_LIBRARIES", text)

    def test_a_runtime_that_does_not_start_is_the_reason(self):
        text = self.reason("fail=hipInit:1")
        self.assertIn("start of HIP: hipInit: hipInit fails as FAKE_HIP asks", text)


if __name__ == "__main__":
    unittest.main()
