"""The plug-in of Metal on the pretended GPUs of tests/fake_metal: its contract, and what it says where one is missing.

The build is the folder named by ROSIN_TEST_BUILD, else build/release; ./run test sets it.
"""

import os
import pathlib
import random
import re
import struct
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = pathlib.Path(os.environ.get("ROSIN_TEST_BUILD", ROOT / "build" / "release")).resolve()
CONFORMANCE = BUILD / "conformance"
PLUGIN = BUILD / "rosin" / "librosin_metal.so"
FAKE = BUILD / "fake_metal"
DEMO = BUILD / "examples" / "demo"
FILES = ("libobjc.A.dylib", "Metal")
OF_WORK = "memory,streams,extras,services"
DISCRETE = "apple=0,unified=0"


def conformance(*words, **environment):
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("FAKE_", "ROSIN_METAL"))}
    return subprocess.run([str(word) for word in (CONFORMANCE, PLUGIN, *words)], env=kept | environment,
                          capture_output=True, text=True, check=False, timeout=900)


@unittest.skipUnless(PLUGIN.is_file() and (FAKE / "Metal").exists(), "the build has no pretended Metal")
class MetalPlugin(unittest.TestCase):
    def good(self, *words, options="devices=1", libraries=FAKE):
        done = conformance(*words, ROSIN_METAL_LIBRARIES=str(libraries), FAKE_METAL=f"leaks=1,{options}")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"\n[1-9]\d* passed, 0 failed\n$")

    def reason(self, options="devices=1", libraries=FAKE):
        """Why there is no device."""
        done = conformance("--only", "device", ROSIN_METAL_LIBRARIES=str(libraries), FAKE_METAL=options)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        return done.stdout

    def test_keeps_the_contract(self):
        self.good("--only", f"device,{OF_WORK}")

    def test_keeps_it_in_kernels(self):
        self.good("--only", "programs,kernels,later,operations,elements")

    def test_keeps_it_in_kernels_and_calls_on_macos_15(self):
        self.good("--only", "device,programs,operations,calls,convolutions,attention", options="system=15")

    def test_keeps_it_in_calls_of_mpsgraph(self):
        for order in (1, 2, 3):
            self.good("--only", "calls,convolutions,attention,device", options=f"system=15,order={order}")

    def test_keeps_it_where_mpsgraph_is_missing_too_old_or_refuses(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in FILES:
                (pathlib.Path(folder) / name).symlink_to(FAKE / name)
            self.good("--only", "calls,device", options="system=15", libraries=folder)
        self.good("--only", "calls,attention,device", options="system=14")
        self.good("--only", "calls,attention,device", options="system=15,attention=0")
        self.good("--only", "attention", options="system=15,wrong=attention")
        for message in ("placeholderWithShape:dataType:name:", "constantWithScalar:dataType:",
                        "compileWithDevice:feeds:targetTensors:targetOperations:compilationDescriptor:"):
            self.good("--only", "calls,convolutions", options=f"system=15,fail={message}:1+2+7")
            self.good("--only", "attention", options=f"system=15,fail={message}:7+8+9+20+21+22")
        attention = "scaledDotProductAttentionWithQueryTensor:keyTensor:valueTensor:"
        for message in (f"{attention}scale:name:", f"{attention}maskTensor:scale:name:",
                        "bandPartWithTensor:numLower:numUpper:name:", "constantWithScalar:shape:dataType:"):
            for number in (1, 2):  # of the trial, and behind it
                self.good("--only", "attention", options=f"system=15,fail={message}:{number}")

    def test_keeps_it_in_other_orders_of_work_and_on_the_second_device(self):
        self.good("--device", 1, "--only", OF_WORK, options="devices=2,order=2")
        self.good("--only", OF_WORK, options="devices=3,order=3")

    def test_keeps_it_where_the_device_has_memory_of_its_own(self):
        self.good("--only", f"device,{OF_WORK},programs,kernels,later", options=DISCRETE)

    def test_keeps_it_where_there_is_little_memory(self):
        self.good("--only", "memory", options="memory=33554432")

    @unittest.skipIf(sys.platform == "darwin", "this system has Metal")
    def test_other_systems_have_no_metal(self):
        self.assertIn("FAILED: device_count: Metal exists on Apple's systems only\n",
                      conformance("--only", "device").stdout)

    def test_a_library_that_does_not_open_is_the_reason(self):
        for broken in FILES:
            with tempfile.TemporaryDirectory() as folder, self.subTest(broken):
                for name in FILES:
                    (pathlib.Path(folder) / name).symlink_to(FAKE / name)
                (pathlib.Path(folder) / broken).unlink()
                (pathlib.Path(folder) / broken).write_text("text", encoding="utf-8")
                self.assertIn(f"Metal is not there ({folder}/{broken}: ", self.reason(libraries=folder))

    def test_a_library_that_is_missing_is_the_reason(self):
        with tempfile.TemporaryDirectory() as folder:
            text = self.reason(libraries=folder)
        self.assertIn("Metal is not there (/usr/lib/libobjc.A.dylib: not found)", text)

    @unittest.skipIf(sys.platform == "darwin", "this system has Metal")
    def test_a_folder_that_is_none_is_named(self):
        self.assertIn("(/usr/lib/libobjc.A.dylib: not found; ROSIN_METAL_LIBRARIES names /nowhere, which does not "
                      "exist)", self.reason(libraries="/nowhere"))

    def test_a_gpu_without_metal_3_is_named(self):
        self.assertIn("the GPUs have no Metal 3 (Apple Pretended GPU 0, Apple Pretended GPU 1; macOS 12.5 (Build 00A00)"
                      "); it takes macOS 13 and a Mac that runs it", self.reason("devices=2,metal=2,system=12"))

    def test_no_device_is_said(self):
        self.assertIn("Metal finds no GPU", self.reason("devices=0"))
        self.assertIn("Metal finds no GPU", self.reason("fail=MTLCopyAllDevices:1"))


def write_images(folder, kind, count):
    """Images of ten classes as MNIST's files: a bright stripe in some noise."""
    noise, labels = random.Random(1), [number % 10 for number in range(count)]
    pixels = (255 if place // 84 == label else noise.randrange(60) for label in labels for place in range(784))
    (folder / f"{kind}-labels-idx1-ubyte").write_bytes(struct.pack(">II", 2049, count) + bytes(labels))
    (folder / f"{kind}-images-idx3-ubyte").write_bytes(struct.pack(">IIII", 2051, count, 28, 28) + bytes(pixels))


@unittest.skipUnless(DEMO.is_file() and (FAKE / "Metal").exists(), "the build has no demo, or no pretended Metal")
class DemoOnMetal(unittest.TestCase):
    def test_trains_as_on_the_cpu(self):
        with tempfile.TemporaryDirectory() as folder:
            write_images(pathlib.Path(folder), "train", 64)
            write_images(pathlib.Path(folder), "t10k", 32)
            for model in ("mlp", "lenet"):
                with self.subTest(model):
                    shown = [self.shown(device, folder, model) for device in ("CPU", "Metal")]
                    self.assertEqual(len(shown[0]), 3, shown)
                    self.assertEqual(*shown)

    def shown(self, device, folder, model):
        """Losses and accuracies."""
        done = subprocess.run([DEMO, "--device", device, "--data", folder, "--model", model, "--epochs", "1",
                               "--batchsize", "16", "--save", "none"], cwd=folder, capture_output=True, text=True,
                              env=os.environ | {"ROSIN_METAL_LIBRARIES": str(FAKE), "FAKE_METAL": "system=15"},
                              check=True, timeout=300)
        self.assertIn(f"device: {device}", done.stdout)
        return re.findall(r"(?:loss|accuracy:?) (\d\.\d+)", done.stdout)


if __name__ == "__main__":
    unittest.main()
