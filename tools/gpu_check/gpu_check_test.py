"""Runs gpu_check and ./run gpu-check where the reference plug-in stands in for a GPU. tools/run_tests.py names the
build in ROSIN_BUILD."""

import os
import pathlib
import re
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("ROSIN_BUILD", ROOT / "build" / "release")).resolve()
FAKE_PLUGINS = BUILD / "plugins" / "fake"
ENVIRONMENT = {name: value for name, value in os.environ.items() if not re.match("ROSIN_|CUDA_|GPU_", name)}
FAKE = {"ROSIN_PLUGIN_PATH": str(FAKE_PLUGINS), "ROSIN_REFERENCE_CUDA": "devices=2", "ROSIN_LOG": "none"}


def run(*command, **variables):
    return subprocess.run(command, cwd=ROOT, env=ENVIRONMENT | variables, stdin=subprocess.DEVNULL, check=False,
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

    def test_says_when_there_is_nothing_to_check(self):
        none = self.check("ops", "--device", "Metal")
        self.assertEqual(none.returncode, 3)
        self.assertTrue(none.stdout.endswith("gpu-check: there is no device Metal\n"))
        self.assertEqual(self.check("speed").returncode, 1)


if __name__ == "__main__":
    unittest.main()
