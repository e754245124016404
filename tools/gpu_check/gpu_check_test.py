"""Runs gpu_check and ./run gpu-check where the reference plug-in stands in for a GPU. tools/run_tests.py names the
build in ROSIN_TEST_BUILD."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("ROSIN_TEST_BUILD", ROOT / "build" / "release")).resolve()
FAKE_PLUGINS = BUILD / "plugins" / "fake"
ENVIRONMENT = {name: value for name, value in os.environ.items() if not re.match("ROSIN_|CUDA_|GPU_", name)}
FAKE = {"ROSIN_PLUGIN_PATH": str(FAKE_PLUGINS), "ROSIN_REFERENCE_CUDA": "devices=2", "ROSIN_LOG": "none"}


def run(*command, folder=ROOT, **variables):
    return subprocess.run(command, cwd=folder, env=ENVIRONMENT | variables, stdin=subprocess.DEVNULL, check=False,
                          capture_output=True, text=True, timeout=500)


@unittest.skipUnless((FAKE_PLUGINS / "librosin_cuda.so").is_file(), "the build has no stand-ins for GPUs")
class GpuCheckTest(unittest.TestCase):
    program = BUILD / "tools" / "gpu_check"

    def test_names_what_there_is(self):
        self.assertIn("CUDA:0\nCUDA:1\n", run(self.program, "names", **FAKE).stdout)
        listed = run(self.program, "devices", **FAKE)
        self.assertRegex(listed.stdout, r"(?m)^CUDA:1 \(.+\), 2\.0 GiB, ")
        self.assertRegex(listed.stdout, r"(?m)^Metal: not functional; ")
        self.assertEqual(listed.returncode, 0)

    def test_ops_of_a_right_device_pass_and_those_of_an_idle_one_fail(self):
        right = run(self.program, "ops", "CUDA:1", **FAKE)
        self.assertEqual(right.returncode, 0, right.stdout)
        self.assertRegex(right.stdout, r"\Aops on CUDA:1 \(.+\): (\d{3}) of \1 good in ")
        idle = run(self.program, "ops", "null", **FAKE)
        self.assertEqual(idle.returncode, 1)
        self.assertRegex(idle.stdout, r"(?m)^ops on null:0 .*: 0 of ")

    def test_refuses_what_is_not_there(self):
        self.assertEqual(run(self.program, "all").returncode, 2)
        missing = run(self.program, "ops", "CUDA:2", **FAKE)
        self.assertEqual((missing.returncode, missing.stderr.count("\n")), (1, 1))


@unittest.skipUnless((FAKE_PLUGINS / "librosin_cuda.so").is_file(), "the build has no stand-ins for GPUs")
@unittest.skipUnless(BUILD == ROOT / "build" / "release", "./run looks at build/release")
class StepsTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.variables = FAKE | {"GPU_DONE": str(self.folder / "done"), "GPU_RESULTS": str(self.folder)}

    def check(self, *arguments, **more):
        return run(ROOT / "run", "gpu-check", *arguments, **(self.variables | more))

    def test_keeps_what_was_said_and_does_nothing_twice(self):
        first = self.check("ops", "--device", "CUDA:1")
        self.assertEqual(first.returncode, 0, first.stdout + first.stderr)
        self.assertTrue(first.stdout.endswith("gpu-check: CUDA:1: ops good\n"))
        again = self.check("ops", "--device", "CUDA:1")
        self.assertIn("done before: ops on CUDA:1", again.stdout)
        (results,) = self.folder.glob("gpu-cuda-*.txt")
        text = results.read_text(encoding="utf-8")
        self.assertEqual((text.count("== "), text.count("ops on CUDA:1")), (1, 1))

    def test_a_failure_is_said_and_tried_again(self):
        for _ in range(2):
            result = self.check("ops", "--device", "CUDA:0", ROSIN_REFERENCE_CUDA="devices=1,fault=200")
            self.assertEqual(result.returncode, 1)
            self.assertIn("FAILED", result.stdout)
            self.assertTrue(result.stdout.endswith("gpu-check: CUDA:0: ops FAILED\n"))

    def test_goes_on_where_it_ran_out_of_time(self):
        self.assertEqual(self.check("ops", "--device", "CUDA:0").returncode, 0)
        late = self.check("ops", "seeds", "--device", "CUDA:0", GPU_STEP_SECONDS="0")
        self.assertEqual(late.returncode, 75, late.stdout + late.stderr)
        self.assertIn("done before: ops on CUDA:0", late.stdout)
        left = re.findall(r"(?m)^seeds: (1\d_\w+) on CUDA:0 is left for the next call$", late.stdout)
        self.assertGreaterEqual(len(left), 6)
        self.assertTrue(late.stdout.endswith("gpu-check: CUDA:0: ops good, seeds unfinished\n"))
        rest = self.check("seeds", "--device", "CUDA:0")
        self.assertEqual(rest.returncode, 0, rest.stdout + rest.stderr)
        self.assertEqual(re.findall(r"(?m)^(1\d_\w+) on CUDA:0: ", rest.stdout), left)
        self.assertNotIn("done before", rest.stdout)
        self.assertTrue(rest.stdout.endswith("gpu-check: CUDA:0: seeds good\n"))

    def test_says_when_there_is_nothing_to_check(self):
        none = self.check("ops", "--device", "Metal")
        self.assertEqual(none.returncode, 3)
        self.assertTrue(none.stdout.endswith("gpu-check: there is no device Metal\n"))
        self.assertEqual(self.check("speed").returncode, 1)


# Stands before cmake: no library is found, as where nothing but a compiler is installed, and a build takes a minute.
BARE_CMAKE = """#!/bin/sh
[ "$1" != --build ] || exec sleep 60
exec {cmake} "$@" -DCMAKE_FIND_USE_CMAKE_SYSTEM_PATH=OFF
"""
LEFT_OUT = ("onednn", "xbyak", "json", "toml", "cli11", "zlib", "GoogleTest")


@unittest.skipUnless(shutil.which("cmake") and shutil.which("make"), "there is no cmake or no make")
class BareMachineTest(unittest.TestCase):
    """The build step on a machine without ninja and without the libraries that rosin can do without."""

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.checkout = pathlib.Path(temporary.name) / "checkout"
        self.programs = pathlib.Path(temporary.name) / "programs"
        for folder in (self.checkout, self.programs):
            folder.mkdir()
        for entry in ROOT.iterdir():
            if entry.name != "build" and not entry.name.startswith("."):
                (self.checkout / entry.name).symlink_to(entry)

    def write_programs(self):
        """A folder with the machine's programs, but without ninja, and with BARE_CMAKE."""
        cmake = self.programs / "cmake"
        cmake.write_text(BARE_CMAKE.format(cmake=shutil.which("cmake")), encoding="utf-8")
        cmake.chmod(0o755)
        for folder in os.environ["PATH"].split(os.pathsep):
            for program in pathlib.Path(folder).glob("*"):
                place = self.programs / program.name
                if not program.name.startswith("ninja") and not os.path.lexists(place):
                    place.symlink_to(program)

    def test_configures_with_make_and_says_what_is_left_out(self):
        self.write_programs()
        result = run(self.checkout / "run", "gpu-check", "build", folder=self.checkout, PATH=str(self.programs),
                     GPU_STEP_SECONDS="1")
        self.assertEqual(result.returncode, 75, result.stdout + result.stderr)
        self.assertTrue(result.stdout.endswith("gpu-check: build: not done after 1 s; call it again\n"), result.stdout)
        for name in LEFT_OUT:
            self.assertRegex(result.stdout, rf"(?m)^--   {name} +\S.*: missing$")
        build = self.checkout / "build" / "release"
        cache = (build / "CMakeCache.txt").read_text(encoding="utf-8")
        self.assertIn("CMAKE_GENERATOR:INTERNAL=Unix Makefiles\n", cache)
        steps = (ROOT / "tools" / "gpu_check" / "steps.sh").read_text(encoding="utf-8")
        makefile = (build / "Makefile").read_text(encoding="utf-8")
        for target in re.search(r"targets=\((.*?)\)", steps).group(1).split():
            self.assertIn(f"\n{target}: ", makefile)


if __name__ == "__main__":
    unittest.main()
