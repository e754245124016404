"""The example models: how many parameters they have, and that they compute what PyTorch's do (models/README.md).

PyTorch's part runs in the first Python that has torch, torchvision, transformers and safetensors: the one that PYTHON
names, this one, that of build/venv, the system's. Called by tools/run_tests.py, which names the build in
ROSIN_TEST_BUILD.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
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


if __name__ == "__main__":
    unittest.main()
