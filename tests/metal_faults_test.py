"""Training on a pretended Metal while one message fails: each that may, each of its times.

What answers nil is one clean error (or none, where there is another way), after which the step is as if it had not
been, and works; a command buffer that ends with an error loses the device, which says so at each use. Nothing crashes,
hangs or leaks. A sample is tried; ROSIN_ALL_FAULTS=1 tries all of them. The build is the folder named by
ROSIN_TEST_BUILD, else build/release.
"""

import concurrent.futures
import os
import tempfile
import unittest

from cuda_faults_test import BUILD, PROGRAM, ROOT, Run, sampled, subprocess

FAKE = BUILD / "fake_metal"
# Messages that may answer nil.
MAKES = ("newCommandQueue", "newSharedEvent", "newBufferWithLength:options:", "newLibraryWithSource:options:error:",
         "newFunctionWithName:", "newComputePipelineStateWithFunction:error:", "commandBuffer",
         "computeCommandEncoder", "blitCommandEncoder",
         "compileWithDevice:feeds:targetTensors:targetOperations:compilationDescriptor:",
         "scaledDotProductAttentionWithQueryTensor:keyTensor:valueTensor:maskTensor:scale:name:",
         "bandPartWithTensor:numLower:numUpper:name:")
SYSTEM = "devices=2,system=15"
KINDS = "backend|memory|device"


@unittest.skipUnless(PROGRAM.is_file() and (FAKE / "Metal").is_file(), "the build has no pretended Metal")
class MetalFaults(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.undisturbed = {model: cls.train(SYSTEM, model) for model in ((), ("convnet",), ("attention",))}

    @classmethod
    def train(cls, options, model=()):
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("FAKE_", "ROSIN_"))}
        ours = {"FAKE_METAL": options, "ROSIN_METAL_LIBRARIES": str(FAKE), "ROSIN_LOG": "none",
                "ROSIN_CACHE_DIR": cls.folder.name, "ASAN_OPTIONS": "detect_leaks=0"}
        words = (PROGRAM, "Metal", FAKE / "Metal", "fake_metal_counts", *model)
        return Run(subprocess.run(words, env=kept | ours, cwd=ROOT, capture_output=True, text=True, check=False,
                                  timeout=120))

    def faults(self, messages):
        for model, undisturbed in self.undisturbed.items():
            for message in messages:
                for number in sampled(undisturbed.counts.get(message, 0)):
                    yield model, f"{SYSTEM},fail={message}:{number}"

    def each_fault(self, messages, check):
        faults = list(self.faults(messages))
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for fault, run in zip(faults, pool.map(lambda one: self.train(one[1], one[0]), faults)):
                with self.subTest(fault):
                    self.assertEqual(run.status, 0, run.text)
                    for error in run.errors:
                        self.assertRegex(error, rf"^error in [\w ]+: (?:{KINDS}): ", run.text)
                    check(self.undisturbed[fault[0]], run)

    def test_trains_undisturbed(self):
        for model, run in self.undisturbed.items():
            results = 11 if model == ("attention",) else 6
            self.assertEqual((run.status, len(run.results), run.errors), (0, results, []), run.text)
            self.assertGreater(run.counts["commit"], 10)
        for message in MAKES[-2:]:
            self.assertGreater(self.undisturbed[("attention",)].counts[message], 1)  # the trial, and then the model

    def test_slow_what_answers_nil_leaves_no_trace(self):
        def check(undisturbed, run):
            if run.has_no_device:
                return
            self.assertFalse(run.is_lost, run.text)
            for got, wanted in zip(run.losses(), undisturbed.losses(), strict=True):
                self.assertAlmostEqual(got, wanted, 5, run.text)  # where MPSGraph fails, kernels of rosin's own compute
            for of in ("MTLBuffer", "MTLCommandQueue", "MTLComputePipelineState"):
                self.assertLessEqual(run.counts.get(of, 0), undisturbed.counts.get(of, 0), f"{of}: {run.text}")

        self.each_fault(MAKES, check)

    def test_slow_a_command_buffer_that_fails_loses_the_device(self):
        for message, said in (("commit", "ErrorInternal) as FAKE_METAL asks"),
                              ("dispatchThreadgroups:threadsPerThreadgroup:", "ErrorPageFault): ")):
            def check(_, run, said=said):
                self.assertTrue(run.is_lost, run.text)
                self.assertIn("a command buffer failed: ", run.text)
                self.assertIn(said, run.text)

            self.each_fault((message,), check)


if __name__ == "__main__":
    unittest.main()
