"""Runs the numbered examples and the demo: on the CPU, on devices, and with what it refuses. Called by
tools/run_tests.py, which names the build in ROSIN_TEST_BUILD; by hand, in this folder:
python3 -m unittest examples_test.py
"""

import gzip
import os
import pathlib
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
PROGRAMS = pathlib.Path(os.environ.get("ROSIN_TEST_BUILD", ROOT / "build" / "release")).resolve() / "examples"
ROSIN_RUN = (PROGRAMS.parent / "tools" / "rosin", "run")
FAKE_CUDA = PROGRAMS.parent / "fake_cuda"  # the driver and libraries of CUDA, pretended
FAKE_PLUGINS = PROGRAMS.parent / "plugins" / "fake"  # the reference plug-in under the names of vendors' back ends
TOUR = sorted(HERE.glob("[0-9][0-9]_*.cpp"))
TOUR_OF_RANKS = [path for path in TOUR if "17" <= path.name[:2] <= "19"]
TOUR_OF_GPUS = [path for path in TOUR if "10" <= path.name[:2] <= "15"]
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("ROSIN_")}
# Kernels are kept from run to run; on OpenCL apart from those of the op suite, which PoCL does not optimise.
KEEPING_KERNELS = {"ROSIN_CACHE_DIR": str(PROGRAMS / "kernels")}
ON_OPENCL = KEEPING_KERNELS | {"POCL_CACHE_DIR": str(PROGRAMS / "pocl")}
sys.path.insert(0, str(ROOT / "tests"))
from read_safetensors import read_plainly  # noqa: E402


def run(folder, program, *arguments, **variables):
    return subprocess.run([PROGRAMS / program, *map(str, arguments)], cwd=folder, env=ENVIRONMENT | variables,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, check=False)


def need_opencl(test):
    """Skips a test where there is no OpenCL device."""
    if "OpenCL: ready" not in run(test.folder, "example_07_devices", **ON_OPENCL).stdout:
        test.skipTest("there is no OpenCL device")


def code_lines(text):
    """The lines of a program without comments and spacing."""
    lines = (" ".join(line.split("//")[0].split()) for line in text.splitlines())
    return [line for line in lines if line]


def idx(dims, values):
    """An idx file of unsigned bytes."""
    return struct.pack(f">BBBB{len(dims)}I", 0, 0, 8, len(dims), *dims) + bytes(values)


def write_images(folder, name, count, seed):
    """The two idx files of one part of a data set: ten patterns of 7x7 squares, half of each image noise."""
    source = random.Random(seed)
    squares = [random.Random(label).randbytes(49) for label in range(10)]
    patterns = [[square[y // 4 * 7 + x // 4] for y in range(28) for x in range(28)] for square in squares]
    labels = [source.randrange(10) for _ in range(count)]
    pixels = bytearray()
    for label in labels:
        noise, gate = source.randbytes(784), source.randbytes(784)
        pixels += bytes(p if g < 128 else n for p, n, g in zip(patterns[label], noise, gate))
    (folder / f"{name}-images-idx3-ubyte").write_bytes(idx((count, 28, 28), pixels))
    (folder / f"{name}-labels-idx1-ubyte").write_bytes(idx((count,), labels))


class ExamplesTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)

    def check_last_lines(self, tour, **variables):
        """Runs examples; what they said by name."""
        said = {}
        for path in tour:
            with self.subTest(path.name):
                expected = re.search(r"^// Last line: (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
                result = run(self.folder, f"example_{path.stem}", **variables)
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertEqual(result.stdout.rstrip("\n").rsplit("\n", 1)[-1], expected.group(1))
                said[path.stem] = result.stdout
        return said

    def test_each_example_ends_with_the_line_at_its_top(self):
        self.assertGreaterEqual(len(TOUR), 15)
        self.check_last_lines(TOUR)

    def test_those_for_gpus_end_alike_on_a_stand_in_with_three_devices(self):
        if not (FAKE_PLUGINS / "librosin_cuda.so").is_file():
            self.skipTest("the build has no stand-ins for GPUs")
        said = self.check_last_lines(TOUR_OF_GPUS, ROSIN_PLUGIN_PATH=str(FAKE_PLUGINS), ROSIN_GPU_BACKEND="CUDA",
                                     ROSIN_REFERENCE_CUDA="devices=3")
        for name, output in said.items():
            self.assertIn("CUDA:0", output, name)
        self.assertIn("CUDA:1", said["14_two_devices"])

    def test_those_for_gpus_end_alike_on_opencl(self):
        need_opencl(self)
        for name, output in self.check_last_lines(TOUR_OF_GPUS, ROSIN_GPU_BACKEND="OpenCL", **ON_OPENCL).items():
            self.assertIn("OpenCL:0", output, name)

    def run_ranks(self, name, *arguments, launcher=ROSIN_RUN):
        return subprocess.run([*launcher, "-n", "2", PROGRAMS / name, *map(str, arguments)], cwd=self.folder,
                              env=ENVIRONMENT | {"ROSIN_NUM_THREADS": "1"}, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=300, check=False)

    def check_last_lines_of_ranks(self, *launcher):
        for path in TOUR_OF_RANKS:
            with self.subTest(path.name):
                expected = re.search(r"^// Last line: (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
                result = self.run_ranks(f"example_{path.stem}", launcher=launcher)
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertEqual(result.stdout.rstrip("\n").rsplit("\n", 1)[-1], expected.group(1))

    def test_those_of_ranks_end_alike_under_rosin_run(self):
        self.check_last_lines_of_ranks(*ROSIN_RUN)

    def test_those_of_ranks_end_alike_under_mpiexec(self):
        launcher = shutil.which("mpiexec.openmpi")
        if not launcher:
            self.skipTest("no mpiexec.openmpi (openmpi-bin)")
        if not (PROGRAMS.parent / "rosin" / "librosin_comm_mpi.so").is_file():
            self.skipTest("the build has no transport over MPI")
        root = ["--allow-run-as-root"] if os.getuid() == 0 else []
        self.check_last_lines_of_ranks(launcher, *root, "--oversubscribe", "--bind-to", "none")

    def test_ranks_read_mnist_together(self):
        folder = ROOT.parent / "shared" / "data" / "mnist"
        if not (folder / "train-images-idx3-ubyte.gz").is_file():
            self.skipTest(f"MNIST is not in {folder}")
        result = self.run_ranks("example_18_digits_by_ranks", folder)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertGreater(float(re.search(r"^test accuracy: (.*)$", result.stdout, re.MULTILINE).group(1)), 0.95)

    def test_loops_that_are_written_at_run_time_have_names_for_perf(self):
        facts = pathlib.Path("/proc/cpuinfo")
        if not facts.exists() or "avx2" not in facts.read_text(encoding="utf-8"):
            self.skipTest("machine code is written for processors with AVX2")
        with subprocess.Popen([PROGRAMS / "example_03_train_mlp"], cwd=self.folder, stdout=subprocess.DEVNULL,
                              env=ENVIRONMENT | {"ROSIN_PERF_MAP": "1"}) as process:
            self.assertEqual(process.wait(timeout=300), 0)
        names = pathlib.Path(f"/tmp/perf-{process.pid}.map")
        self.addCleanup(names.unlink)
        for line in names.read_text(encoding="utf-8").splitlines():
            self.assertRegex(line, "^[0-9a-f]+ [0-9a-f]+ rosin loop( |$)")

    def train_on(self, name, data, steps):
        """The output of an example on data of the world, for so many steps or epochs; none where they are missing."""
        data = ROOT.parent / "shared" / "data" / data
        if not data.exists():
            self.skipTest(f"{data} is missing")
        result = run(self.folder, name, data, steps)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def test_a_gpt_learns_letters_of_shakespeare(self):
        output = self.train_on("example_21_char_gpt", "shakespeare/input.txt", 30)
        self.assertLess(float(re.search(r"validation loss ([\d.]+)", output).group(1)), 3.0)  # 3.31 by frequency

    def test_an_lstm_learns_names(self):
        output = self.train_on("example_22_names_lstm", "names/names.txt", 1)
        self.assertLess(float(re.search(r"^loss ([\d.]+)", output, re.MULTILINE).group(1)), 2.3)

    def test_slow_a_convolutional_network_learns_clothes(self):
        output = self.train_on("example_23_fashion_cnn", "fashion-mnist", 1)
        self.assertGreater(float(re.search(r"^test accuracy: (.*)$", output, re.MULTILINE).group(1)), 0.78)

    def test_ranks_say_which_folder_has_no_images(self):
        result = self.run_ranks("example_18_digits_by_ranks", self.folder / "nowhere")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn(str(self.folder / "nowhere"), result.stderr)

    def test_examples_are_short_and_numbered_without_a_gap(self):
        self.assertEqual([int(path.name[:2]) for path in TOUR], list(range(1, len(TOUR) + 1)))
        for path in TOUR:
            self.assertLess(len(path.read_text(encoding="utf-8").splitlines()), 100, path.name)

    def test_the_program_of_the_readme_is_the_third_example(self):
        readme = (ROOT / "README.md").read_text(encoding="utf-8")
        program = code_lines(re.search(r"```cpp\n(.*?)```", readme, re.DOTALL).group(1))
        example = code_lines((HERE / "03_train_mlp.cpp").read_text(encoding="utf-8"))
        position = 0
        for line in program:
            self.assertIn(line, example[position:])
            position = example.index(line, position) + 1


class DemoTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.work = self.folder / "work"
        self.work.mkdir()

    def write_data(self, images=120, side=28, labels=None):
        data = self.folder / "data"
        data.mkdir()
        for part in ("train", "t10k"):
            pixels = [(i * 7 + p * (i % 10 + 1)) % 256 for i in range(images) for p in range(side * side)]
            (data / f"{part}-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx((images, side, side), pixels)))
            (data / f"{part}-labels-idx1-ubyte.gz").write_bytes(
                gzip.compress(idx((images,), [i % 10 for i in range(images)] if labels is None else labels)))
        return data

    def refused(self, *arguments):
        """What the demo says when it refuses: one line, status 2, nothing written."""
        result = run(self.work, "demo", *arguments)
        self.assertEqual(result.returncode, 2, result.stdout + result.stderr)
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        self.assertEqual(list(self.work.iterdir()), [])
        return result.stderr

    def test_leaves_a_model_and_a_curve_and_ends_with_the_accuracy(self):
        data = self.write_data()
        for model in ("mlp", "lenet"):
            options = ["--model", model, "--epochs", 2, "--batchsize=32", "--device", "cpu", "--seed", 3]
            result = run(self.work, "demo", "--data", data, *options)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertRegex(result.stdout, r"(?m)^device: CPU \(.+\)$")
            self.assertRegex(result.stdout, r"(?m)^epoch 2/2  loss ")
            self.assertRegex(result.stdout, r"\ntest accuracy: [01]\.\d{4}\n\Z")
            self.assertNotIn("\r", result.stdout)
            self.assertGreater((self.work / f"{model}.safetensors").stat().st_size, 100000)
            self.assertIn("<svg", (self.work / "training.svg").read_text(encoding="utf-8"))

    def test_the_same_seed_gives_the_same_file_with_any_number_of_threads(self):
        data, files = self.write_data(), []
        for threads in (1, 2, 3, 7):
            ENVIRONMENT["ROSIN_NUM_THREADS"] = str(threads)
            self.addCleanup(ENVIRONMENT.pop, "ROSIN_NUM_THREADS", None)
            options = ["--model", "lenet", "--epochs", 2, "--save", "m.safetensors"]
            result = run(self.work, "demo", "--data", data, *options)
            self.assertEqual(result.returncode, 0, result.stderr)
            files.append((self.work / "m.safetensors").read_bytes())
        self.assertTrue(all(file == files[0] for file in files))

    def test_trains_on_a_named_device(self):
        if not (FAKE_PLUGINS / "librosin_cuda.so").is_file():
            self.skipTest("the build has no stand-ins for GPUs")
        fake = {"ROSIN_PLUGIN_PATH": str(FAKE_PLUGINS), "ROSIN_REFERENCE_CUDA": "devices=2", "ROSIN_LOG": "none"}
        result = run(self.work, "demo", "--data", self.write_data(), "--epochs", 1, "--device", "CUDA:1",
                     "--save", "none", **fake)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"(?m)^device: CUDA:1 \(.+\)$")
        self.assertRegex(result.stdout, r"\ntest accuracy: [01]\.\d{4}\n\Z")
        self.assertEqual(list(self.work.iterdir()), [])
        result = run(self.work, "demo", "--device", "CUDA:2", **fake)
        self.assertEqual((result.returncode, result.stderr),
                         (2, "demo: get_device: CUDA has 2 devices; got id 2; ids count from 0\n"))

    def test_names_a_folder_that_is_not_there(self):
        self.assertIn(str(self.folder / "nowhere"), self.refused("--data", self.folder / "nowhere"))

    def test_names_a_truncated_file(self):
        data = self.write_data()
        file = data / "train-images-idx3-ubyte.gz"
        file.write_bytes(file.read_bytes()[:-100])
        self.assertIn(str(file), self.refused("--data", data))

    def test_names_labels_that_do_not_match(self):
        data = self.write_data(labels=[1] * 119)
        self.assertIn("labels-idx1-ubyte.gz", self.refused("--data", data))

    def test_refuses_labels_of_more_classes_and_other_sizes(self):
        self.assertIn("label 10 of observation 5", self.refused("--data", self.write_data(labels=[5] * 5 + [10] * 115)))

    def test_refuses_pictures_of_another_size(self):
        self.assertIn("28x28", self.refused("--data", self.write_data(side=8)))

    def test_refuses_wrong_options(self):
        for arguments, text in (
            (["--model", "vgg"], '--model is mlp or lenet; got "vgg"'),
            (["--epochs", "many"], '--epochs needs a whole number of at least 1; got "many"'),
            (["--batchsize=0"], '--batchsize needs a whole number of at least 1; got "0"'),
            (["--device", "CUDA"], "Unavailable backend: CUDA"),
            (["--device", "CUDA:one"], '--device: the id needs a whole number of at least 0; got "one"'),
            (["--device", "CUDO:1"], 'Did you mean "CUDA"?'),
            (["--speed", "9"], "there is no option --speed"),
            (["--seed"], "--seed needs a value"),
            (["data"], "data is no option"),
            (["--save", "model.bson"], "ends in .safetensors"),
            (["--save", "no/such/m.safetensors"], "there is no folder no/such"),
        ):
            with self.subTest(text):
                self.assertIn(text, self.refused(*arguments))

    def test_explains_itself(self):
        result = run(self.work, "demo", "--help")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        for option in ("--data", "--model", "--epochs", "--batchsize", "--device", "--seed", "--save"):
            self.assertIn(option, result.stdout)


class DemoComparison:
    """An epoch of the demo on a device learns what the same epoch on the CPU learns."""

    training_images, test_images, least_accuracy = 1000, 200, 0.8

    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = pathlib.Path(temporary.name)
        write_images(cls.folder, "train", cls.training_images, seed=1)
        write_images(cls.folder, "t10k", cls.test_images, seed=2)

    def train(self, model, device, **variables):
        """Loss, accuracy and {name: weights} after an epoch."""
        file = self.folder / f"{model}-{device.split(':')[0]}.safetensors"
        result = run(self.folder, "demo", "--model", model, "--device", device, "--epochs", 1, "--seed", 5,
                     "--batchsize", 32, "--data", self.folder, "--save", file, ROSIN_LOG="none", **variables)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertRegex(result.stdout, rf"(?m)^device: {device} \(.+\)$")
        loss = re.search(r"(?m)^epoch 1/1  loss (\d+\.\d+) ", result.stdout)
        accuracy = re.search(r"\ntest accuracy: ([01]\.\d{4})\n\Z", result.stdout)
        weights = {name: (shape, values) for name, _, shape, values in read_plainly(file)}
        return float(loss.group(1)), float(accuracy.group(1)), weights

    def compare(self, device, model, **variables):
        """Sums in another order differ in their last bits. Adam divides a gradient by its own size, so one that is
        nearly zero makes a visible step of them: no weight may be off by half a step, hardly any by a part of one."""
        loss, accuracy, weights = self.train(model, "CPU")
        other_loss, other_accuracy, other_weights = self.train(model, device, **variables)
        self.assertGreater(accuracy, self.least_accuracy)
        self.assertAlmostEqual(other_accuracy, accuracy, delta=1.5 / self.test_images)
        self.assertAlmostEqual(other_loss, loss, delta=1.5e-4)
        self.assertEqual({name: shape for name, (shape, _) in other_weights.items()},
                         {name: shape for name, (shape, _) in weights.items()})
        for name, (_, values) in weights.items():
            differences = [abs(a - b) for a, b in zip(values, other_weights[name][1])]
            self.assertLess(max(differences), 5e-4, name)
            self.assertLess(sum(differences) / len(differences), 1e-6, name)


class DemoOnDevicesTest(DemoComparison, unittest.TestCase):
    def test_mlp_on_opencl(self):
        need_opencl(self)
        self.compare("OpenCL:0", "mlp", **ON_OPENCL)

    def test_lenet_on_opencl(self):
        need_opencl(self)
        self.compare("OpenCL:0", "lenet", **ON_OPENCL)

    def test_mlp_on_reference(self):
        self.compare("reference:0", "mlp")

    def test_slow_lenet_on_reference(self):
        self.compare("reference:0", "lenet")


@unittest.skipUnless((FAKE_CUDA / "libcuda.so.1").exists(), "the build has no pretended CUDA")
class DemoOnPretendedCudaTest(DemoComparison, unittest.TestCase):
    """Through the plug-in of CUDA, with cuBLASLt and cuDNN, on what stands in for them: slow, hence few images."""

    training_images, test_images, least_accuracy = 320, 40, 0.3

    def compare_there(self, model):
        calls = self.folder / "calls"
        self.compare("CUDA:0", model, ROSIN_CUDA_LIBRARIES=str(FAKE_CUDA), FAKE_CUDA="devices=1,order=4",
                     FAKE_CUDA_PRODUCTS=str(calls), **KEEPING_KERNELS)
        text = calls.read_text(encoding="utf-8")
        self.assertNotIn("error", text)
        return text

    def test_mlp(self):
        self.assertIn("784", self.compare_there("mlp"))

    def test_lenet(self):
        text = self.compare_there("lenet")
        for kind in ("forward", "data", "weights"):
            self.assertIn(f"convolution {kind}", text)


if __name__ == "__main__":
    unittest.main()
