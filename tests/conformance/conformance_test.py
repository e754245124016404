"""Runs the program `conformance` on the plug-ins of the build, and replays docs/how_to_add_backend.md.

The build is the folder named by ROSIN_TEST_BUILD, else build/release; ./run test sets it.
"""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("ROSIN_TEST_BUILD", ROOT / "build" / "release")).resolve()
CONFORMANCE = BUILD / "conformance"
PLUGINS = BUILD / "rosin"
FAKE = BUILD / "plugins" / "fake"
COMPILER = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
PAGE = ROOT / "docs" / "how_to_add_backend.md"


def clean_environment(**more):
    """The environment without what selects devices here."""
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith("ROSIN_REFERENCE") and not name.endswith("_VISIBLE_DEVICES")}
    return kept | more


def run(*words, **environment):
    return subprocess.run([str(word) for word in words], env=clean_environment(**environment), capture_output=True,
                          text=True, check=False, timeout=900)


@unittest.skipUnless(CONFORMANCE.is_file(), "the build has no conformance program")
class Conformance(unittest.TestCase):
    def good(self, *words, **environment):
        done = run(CONFORMANCE, *words, **environment)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"\n[1-9]\d* passed, 0 failed\n$")
        return done.stdout

    def bad(self, *words, **environment):
        done = run(CONFORMANCE, *words, **environment)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        return done.stdout

    def test_the_reference_back_end_keeps_the_contract(self):
        self.good(PLUGINS / "librosin_reference.so")

    def test_several_reference_devices_and_vendor_calls_keep_it(self):
        for vendor in (1, 2):
            options = f"devices=3,vendor={vendor}"
            self.good(PLUGINS / "librosin_reference.so", "--device", 2, ROSIN_REFERENCE=options)

    def test_slow_reference_devices_keep_it(self):
        parts = "memory,streams,programs,extras,services,calls,graphs"
        self.good(PLUGINS / "librosin_reference.so", "--only", parts, ROSIN_REFERENCE="devices=2,delay=2")

    def test_small_reference_devices_without_float64_keep_it(self):
        self.good(PLUGINS / "librosin_reference.so", ROSIN_REFERENCE="memory=64M,fp64=0,kind=gpu")

    def test_the_null_back_end_keeps_what_needs_no_memory(self):
        self.good(PLUGINS / "librosin_null.so", "--only", "device")

    @unittest.skipUnless((PLUGINS / "librosin_opencl.so").is_file(), "no OpenCL in this build")
    def test_the_opencl_back_end_keeps_the_contract(self):
        if "FAILED: device_count" in run(CONFORMANCE, PLUGINS / "librosin_opencl.so", "--only", "device").stdout:
            self.skipTest("no OpenCL device here")
        self.good(PLUGINS / "librosin_opencl.so")

    def test_a_fault_ends_the_device_and_says_where(self):
        text = self.bad(PLUGINS / "librosin_reference.so", "--only", "kernels", ROSIN_REFERENCE="fault=2")
        self.assertIn("ROSIN_DEVICE_FAULT: kernel counts_items: a fault", text)

    def test_one_failed_allocation_is_one_failure(self):
        text = self.bad(PLUGINS / "librosin_reference.so", "--only", "device,memory", ROSIN_REFERENCE="alloc_fail=0")
        self.assertIn("ROSIN_OUT_OF_MEMORY", text)
        self.assertRegex(text, r" passed, 1 failed\n$")

    def test_malformed_options_are_named(self):
        for value, why in (("devices=x", "write a number"), ("memory=", "write a number"), ("kind=oven", "write gpu"),
                           ("colour=red", "write devices"), ("devices", "write NAME=VALUE")):
            text = self.bad(PLUGINS / "librosin_reference.so", ROSIN_REFERENCE=value)
            self.assertIn("device_count", text)
            self.assertIn(why, text)
        text = self.bad(PLUGINS / "librosin_reference.so", ROSIN_REFERENCE="functional=0")
        self.assertIn("switched off by functional=0", text)

    def test_what_is_no_plugin_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            text = pathlib.Path(folder) / "librosin_text.so"
            text.write_text("no library", encoding="utf-8")
            self.assertIn("FAILED", self.bad(text))
        self.assertIn("FAILED", self.bad(BUILD / "not_there.so"))


@unittest.skipUnless((FAKE / "librosin_cuda.so").is_file(), "the build has no plug-ins for tests")
class FakeVendors(unittest.TestCase):
    def first_line(self, name, **environment):
        return run(CONFORMANCE, FAKE / f"librosin_{name}.so", "--only", "device", **environment).stdout.split("\n")[0]

    def test_they_have_the_vendors_names(self):
        self.assertIn("CUDA", self.first_line("cuda"))
        self.assertIn("NVIDIA Reference GPU 0", self.first_line("cuda"))
        self.assertIn("AMD Reference GPU 0", self.first_line("amdgpu"))

    def test_each_reads_its_own_variable_first(self):
        environment = {"ROSIN_REFERENCE": "functional=0", "ROSIN_REFERENCE_CUDA": "devices=2"}
        self.assertIn("NVIDIA Reference GPU 0", self.first_line("cuda", **environment))
        self.assertIn("AMDGPU: switched off by functional=0", self.first_line("amdgpu", **environment))

    def test_devices_are_selected_as_the_vendors_do(self):
        three = {"ROSIN_REFERENCE": "devices=3"}
        for value in ("", "-1", "7", "x"):
            self.assertIn("no device", self.first_line("cuda", CUDA_VISIBLE_DEVICES=value, **three))
        self.assertIn("GPU 2", self.first_line("cuda", CUDA_VISIBLE_DEVICES="2,0", **three))
        self.assertIn("GPU 0", self.first_line("cuda", CUDA_VISIBLE_DEVICES="0,-1,2", **three))
        self.assertIn("GPU 0", self.first_line("cuda", HIP_VISIBLE_DEVICES="-1", **three))
        # The inner list counts what the outer one left.
        both = {"ROCR_VISIBLE_DEVICES": "1,2", "HIP_VISIBLE_DEVICES": "1"}
        self.assertIn("GPU 2", self.first_line("amdgpu", **both, **three))


class Page(unittest.TestCase):
    """docs/how_to_add_backend.md, followed to the letter in a copy of the project that has no other back end."""

    def copy_of_project(self, folder):
        for entry in ROOT.iterdir():
            if entry.name not in ("backends", "build", ".git"):
                (folder / entry.name).symlink_to(entry)
        (folder / "backends").mkdir()
        for entry in (ROOT / "backends").iterdir():
            if not (entry / "CMakeLists.txt").is_file():  # what plug-ins and transports share
                (folder / "backends" / entry.name).symlink_to(entry)
        text = PAGE.read_text(encoding="utf-8")
        for name, code in re.findall(r"^```\S+ (backends/\S+)\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a", encoding="utf-8") as file:
                file.write(code)
        return re.search(r"librosin_toy\.so (--only \S+)", text).group(1).split()

    @unittest.skipUnless(CONFORMANCE.is_file(), "the build has no conformance program")
    def test_the_toy_builds_in_its_folder_and_keeps_its_parts_of_the_contract(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            only = self.copy_of_project(folder)
            build = folder / "build"
            switches = [f"-DROSIN_BUILD_{what}=OFF" for what in ("TESTS", "EXAMPLES", "BENCH")]
            for words in (["cmake", "-S", folder, "-B", build, "-G", "Ninja", "-DROSIN_WERROR=ON", *switches],
                          ["cmake", "--build", build, "--target", "rosin_toy"],
                          [CONFORMANCE, build / "rosin" / "librosin_toy.so", *only],
                          ["python3", ROOT / "tools/lint/check_symbols.py", build / "rosin" / "librosin_toy.so"]):
                done = run(*words)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            if COMPILER and (BUILD / "librosin.so").is_file():
                self.program_finds_the_toy(folder, build / "rosin")

    def program_finds_the_toy(self, folder, plugins):
        """The page's program, with the plug-in in a folder of ROSIN_PLUGIN_PATH."""
        source, program = folder / "program.cpp", folder / "program"
        text = PAGE.read_text(encoding="utf-8")
        source.write_text(re.search(r"^```cpp\n(.*?int main.*?)^```", text, re.MULTILINE | re.DOTALL).group(1),
                          encoding="utf-8")
        for words in ([COMPILER, "-std=c++20", "-I", ROOT / "include", source, "-o", program, "-L", BUILD, "-lrosin",
                       f"-Wl,-rpath,{BUILD}"], [program]):
            done = run(*words, ROSIN_PLUGIN_PATH=str(plugins))
            self.assertEqual((done.returncode, done.stdout), (0, ""), done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
