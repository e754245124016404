"""The example models: how many parameters they have, that they compute what PyTorch's do (models/README.md), and that
the programs which train them do, at small sizes, in half types too.

PyTorch's part runs in the first Python that has torch, torchvision, transformers and safetensors: the one that PYTHON
names, this one, that of build/venv, the system's. Called by tools/run_tests.py, which names the build in
ROSIN_TEST_BUILD.
"""

import array
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
PROGRAM = pathlib.Path(os.environ.get("ROSIN_TEST_BUILD", ROOT / "build" / "release")).resolve() / "examples" / "models"
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("ROSIN_")}
PYTHONS = [os.environ.get("PYTHON"), sys.executable, str(ROOT / "build" / "venv" / "bin" / "python"),
           "/usr/bin/python3"]
PACKAGES = ("torch", "torchvision", "transformers", "safetensors")
FIND = "import importlib.util as u, sys; sys.exit(any(u.find_spec(name) is None for name in sys.argv[1:]))"
# As torchvision and transformers state them; vgg11 and bert in smaller sizes, counted by hand.
PARAMETERS = {("resnet18",): 11_689_512, ("resnet50",): 25_557_032, ("mobilenet_v2",): 3_504_872,
              ("vgg11", "hidden=8", "classes=10"): 9_220_480 + (25088 + 1) * 8 + 9 * 8 + 9 * 10,
              ("vit", "layers=1"): 86_567_656 - 11 * 7_087_872,
              ("gpt2", "layers=1"): 124_439_808 - 11 * 7_087_872,
              ("bert", "layers=1"): 109_482_240 - 11 * 7_087_872}


DATA = pathlib.Path(os.environ.get("ROSIN_DATA", ROOT.parent / "shared" / "data"))
FAKE_CUDA = PROGRAM.parent.parent / "fake_cuda"  # the driver and libraries of CUDA, pretended
SMALL_GPT = ("batch=2", "length=16", "layers=1", "width=32", "heads=2", "vocabulary=20", "rate=1e-2", "warmup=2")
SMALL_RESNET = ("blocks=1", "depth=18", "batch=8", "image=32", "classes=4", "rate=0.01", "warmup=3")


def python_with_packages():
    for python in PYTHONS:
        if not python or not shutil.which(python):
            continue
        if subprocess.run([python, "-c", FIND, *PACKAGES], capture_output=True, check=False).returncode == 0:
            return python
    return None


class Models(unittest.TestCase):
    def run_models(self, *arguments):
        return subprocess.run([PROGRAM, *arguments], env=ENVIRONMENT, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=300, check=False)

    def test_they_have_as_many_parameters_as_published(self):
        for words, count in PARAMETERS.items():
            with self.subTest(words[0]):
                result = self.run_models(*words)
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertEqual(re.search(r"^parameters: (\d+)$", result.stdout, re.M).group(1), str(count))

    def test_wrong_words_are_one_line(self):
        for words in ([], ["resnet19"], ["resnet18", "depth=3"], ["gpt2", "layers=x"], ["resnet18", "a.safetensors"],
                      ["vit", "layers=1", "no.safetensors", "no.safetensors", "out.safetensors"]):
            result = self.run_models(*words)
            self.assertEqual((result.returncode, result.stdout, len(result.stderr.splitlines())), (2, "", 1), words)

    def test_they_compute_what_those_of_pytorch_do(self):
        python = python_with_packages()
        if not python:
            self.skipTest("no Python here has " + ", ".join(PACKAGES))
        result = subprocess.run([python, HERE / "models" / "check_with_pytorch.py", PROGRAM], env=ENVIRONMENT,
                                stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600, check=False)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def train(self, program, *words, **variables):
        """What a training program says, and its JSON lines."""
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder)
            (path / "tokens.bin").write_bytes(array.array("H", [i * i % 20 for i in range(2000)]).tobytes())
            result = subprocess.run([PROGRAM.parent / program, *words, "json=steps.json"], cwd=path,
                                    env=ENVIRONMENT | variables, stdin=subprocess.DEVNULL, capture_output=True,
                                    text=True, timeout=300, check=False)
            self.assertEqual(result.returncode, 0, result.stderr)
            lines = (path / "steps.json").read_text(encoding="utf-8").splitlines()
        return result.stdout, [json.loads(line) for line in lines]

    def check_training(self, program, words, unit, **variables):
        losses = {}
        for half in ("f32", "bf16", "f16"):
            with self.subTest(program, type=half):
                said, steps = self.train(program, *words, f"type={half}", "peak=0.001", **variables)
                losses[half] = [step["loss"] for step in steps]
                self.assertLess(losses[half][-1], losses[half][0])
                for step in steps:
                    self.assertGreater(min(step[key] for key in ("seconds", f"{unit}_per_second", "bytes", "mfu")), 0)
                self.assertGreater(steps[-1]["launches"], 10)
                self.assertRegex(said, rf"step 0: loss .* ms, .* {unit}/s, MFU .* %, .* GB moved, \d+ launches")
                self.assertEqual("skipped steps: " in said, half == "f16")
        for half in ("bf16", "f16"):
            self.assertLess(abs(losses[half][0] - losses["f32"][0]), 0.05)

    def test_gpt2_is_trained_from_a_file_of_tokens(self):
        self.check_training("train_gpt2", (*SMALL_GPT, "data=tokens.bin", "val=tokens.bin", "steps=10",
                                           "accumulate=2"), "tokens")

    def test_resnet_is_trained(self):
        self.check_training("train_resnet", (*SMALL_RESNET, "steps=8"), "images")

    def test_they_are_trained_on_a_pretended_gpu(self):
        if not (FAKE_CUDA / "libcuda.so.1").exists():
            self.skipTest("the build has no pretended CUDA")
        cuda = {"ROSIN_CUDA_LIBRARIES": str(FAKE_CUDA), "FAKE_CUDA": "devices=1,checks=0"}
        words = (*SMALL_GPT, "data=tokens.bin", "accumulate=1", "steps=3", "type=bf16")
        there = self.train("train_gpt2", *words, "device=CUDA", **cuda)[1]
        here = self.train("train_gpt2", *words, "device=CPU")[1]
        for one, other in zip(there, here):
            self.assertLess(abs(one["loss"] - other["loss"]), 0.02)

    def test_gradients_of_batches_are_taken_together(self):
        whole = self.train("train_gpt2", *SMALL_GPT, "data=tokens.bin", "steps=4", "accumulate=1", "type=f32")[1]
        parts = self.train("train_gpt2", "batch=1", *SMALL_GPT[1:], "data=tokens.bin", "steps=4", "accumulate=2",
                           "type=f32")[1]
        for one, other in zip(whole, parts):
            self.assertAlmostEqual(one["loss"], other["loss"], places=3)

    def compare_half_types(self, task, data, *words):
        if not data.exists():
            self.skipTest(f"no {data} (set ROSIN_DATA to its parent)")
        result = subprocess.run([PROGRAM.parent / "half_types", task, f"data={data}", *words], env=ENVIRONMENT,
                                stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_lenet_in_half_types_is_as_good(self):
        self.compare_half_types("lenet", DATA / "fashion-mnist", "images=6000", "epochs=1")

    def test_a_small_gpt_in_half_types_is_as_good(self):
        text = DATA / "shakespeare" / "input.txt"
        self.compare_half_types("gpt", text, "steps=60", "layers=2", "width=48", "batch=8", "length=32")


if __name__ == "__main__":
    unittest.main()
