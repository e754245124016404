"""Training on a pretended GPU while one call of its driver fails: each function, each of its calls, in two ways.

A call that fails alone is one clean error (or none, where there is another way), after which the step is as if it had
not been, and works; a call that loses the device makes each later use say so. Nothing crashes, hangs or leaks.
A sample is tried; ROSIN_ALL_FAULTS=1 tries all of them (some minutes). The build is the folder named by
ROSIN_TEST_BUILD, else build/release.
"""

import concurrent.futures
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = pathlib.Path(os.environ.get("ROSIN_TEST_BUILD", ROOT / "build" / "release")).resolve()
PROGRAM = BUILD / "fault_steps"
ALL = os.environ.get("ROSIN_ALL_FAULTS", "0") not in ("", "0")
SAMPLES = 2  # of the calls of a function, in each way
LOST = 719
KINDS = "backend|memory|device"
# What gives back objects: where it fails, one of them stays.
GIVES_BACK = {"cuMemFree_v2": "blocks", "cuModuleUnload": "modules", "cuGraphDestroy": "graphs",
              "cuGraphExecDestroy": "graphs", "cuStreamDestroy_v2": "streams", "cuStreamEndCapture": "streams"}
ANY = ("cuCtxPushCurrent_v2",)  # what stands before any of them


class Run:
    """What the program said with a fault."""

    def __init__(self, done):
        self.status, self.text = done.returncode, done.stdout + done.stderr
        training, _, counts = done.stdout.partition("counts\n")
        self.results = re.findall(r"(?m)^(?:loss|weights) .*$", training)
        self.errors = re.findall(r"(?m)^error in .*$", training)
        self.is_lost = "needs a new process" in training
        self.has_no_device = "no device\n" in training
        self.counts = {name: int(count) for name, count in re.findall(r"(?m)^([\w:]+) (\d+)$", counts)}

    def losses(self):
        return [float.fromhex(line.split()[1]) for line in self.results if line.startswith("loss")]


def sampled(count):
    """Numbers of calls, from 1."""
    if ALL or count <= SAMPLES:
        return range(1, count + 1)
    return sorted({1 + i * (count - 1) // (SAMPLES - 1) for i in range(SAMPLES)})


@unittest.skipUnless(PROGRAM.is_file(), "the build has no pretended CUDA")
class CudaFaults(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.train("devices=2")  # compiles the kernels
        cls.undisturbed = cls.train("devices=2")
        # Where cuBLASLt fails in its first trial, kernels of rosin's own multiply, which round otherwise.
        bare = pathlib.Path(cls.folder.name, "bare")
        bare.mkdir()
        for name in ("libcuda.so.1", "libnvrtc.so.13"):
            (bare / name).symlink_to(BUILD / "fake_cuda" / name)
        cls.train("devices=2", bare)
        cls.good_results = [cls.undisturbed.results, cls.train("devices=2", bare).results]

    @classmethod
    def train(cls, options, libraries=BUILD / "fake_cuda", model=()):
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("CUDA_", "FAKE_", "ROSIN_"))}
        ours = {"FAKE_CUDA": options, "ROSIN_CUDA_LIBRARIES": str(libraries), "ROSIN_LOG": "none",
                "ROSIN_CACHE_DIR": cls.folder.name, "ASAN_OPTIONS": "detect_leaks=0"}
        words = (PROGRAM, "CUDA", libraries / "libcuda.so.1", "fake_cuda_counts", *model)
        return Run(subprocess.run(words, env=kept | ours, cwd=ROOT, capture_output=True, text=True, check=False,
                                  timeout=120))

    def faults(self):
        for function, count in self.undisturbed.counts.items():
            if re.match("cu[A-Z]", function):  # the driver's
                yield from ((function, number) for number in sampled(count))

    def each_fault(self, code, check):
        def one(fault):
            function, number = fault
            options = f"devices=2,fail={function}:{number}" + (f",code={code}" if code else "")
            return options, function, self.train(options)

        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for options, function, run in pool.map(one, list(self.faults())):
                with self.subTest(options):
                    self.assertEqual(run.status, 0, run.text)
                    for error in run.errors:
                        self.assertRegex(error, rf"^error in [\w ]+: (?:{KINDS}): ", run.text)
                    if run.errors:
                        self.assertIn(f"{function} fails as FAKE_CUDA asks", "".join(run.errors), run.text)
                    check(function, run)

    def same_counts(self, function, run):
        for name in ("blocks", "streams", "modules", "graphs"):
            stays = 1 if function in ANY or GIVES_BACK.get(function) == name else 0
            self.assertLessEqual(run.counts[name], self.undisturbed.counts[name] + stays, f"{name}: {run.text}")

    def test_trains_undisturbed(self):
        self.assertEqual(self.undisturbed.status, 0, self.undisturbed.text)
        self.assertEqual((len(self.undisturbed.results), self.undisturbed.errors), (6, []), self.undisturbed.text)
        self.assertGreater(self.undisturbed.counts["cuGraphLaunch"], 0)
        self.assertEqual((self.undisturbed.counts["modules"], self.undisturbed.counts["graphs"]), (0, 0))

    def test_slow_a_call_that_fails_alone_leaves_no_trace(self):
        def check(function, run):
            if run.has_no_device:
                return  # a driver that does not start is not asked again
            self.assertFalse(run.is_lost, run.text)
            self.assertIn(run.results, self.good_results, run.text)
            self.same_counts(function, run)

        self.each_fault(None, check)

    def test_slow_a_device_that_is_lost_says_so(self):
        def check(function, run):
            if not run.is_lost and not run.has_no_device:
                self.assertIn(run.results, self.good_results, run.text)

        self.each_fault(LOST, check)

    def test_slow_a_call_of_cudnn_that_fails_alone_is_an_error_or_a_kernel(self):
        convnet = ("convnet",)
        undisturbed = self.train("devices=1", model=convnet)
        self.assertEqual((undisturbed.errors, undisturbed.status, undisturbed.counts["cudnnBackendExecute"] > 5),
                         ([], 0, True), undisturbed.text)
        faults = [f"devices=1,fail={function}:{number}" for function, count in undisturbed.counts.items()
                  if function.startswith("cudnn") for number in sampled(count)]
        self.assertGreater(len(faults), 12)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for options, run in zip(faults, pool.map(lambda one: self.train(one, model=convnet), faults)):
                with self.subTest(options):
                    self.assertEqual((run.status, run.is_lost), (0, False), run.text)
                    for error in run.errors:
                        self.assertRegex(error, rf"^error in [\w ]+: (?:{KINDS}): ", run.text)
                    # Kernels of rosin's own round otherwise.
                    for got, wanted in zip(run.losses(), undisturbed.losses(), strict=True):
                        self.assertAlmostEqual(got, wanted, 4, run.text)


if __name__ == "__main__":
    unittest.main()
