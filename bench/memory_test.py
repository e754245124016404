"""Tests of memory.py, and of the same figures of our programs."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import inputs  # noqa: E402
import sides  # noqa: E402
import workloads  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
MB = 1 << 20
PROGRAM = sides.BUILD / "release" / "bench" / "bench_c1"


def child(code):
    """What a fresh process prints that imports memory."""
    done = subprocess.run([sys.executable, "-c", "import memory\n" + code], cwd=HERE, capture_output=True, text=True,
                          check=True)
    return int(done.stdout)


def can_begin():
    return pathlib.Path("/proc/self/clear_refs").exists()


@unittest.skipUnless(can_begin(), "this system has no /proc/self/clear_refs")
class Peaks(unittest.TestCase):
    def test_a_child_does_not_inherit_the_peak_of_its_parent(self):
        large = b"x" * (300 * MB)
        self.assertLess(child("print(memory.peak_bytes())"), 150 * MB)
        del large

    def test_a_peak_counts_what_was_held_and_freed_since_its_beginning(self):
        held = child("before = memory.begin_peak()\nb'x' * (64 << 20)\nprint(memory.peak_bytes() - before)")
        self.assertTrue(60 * MB < held < 80 * MB, held)

    def test_what_was_freed_before_the_beginning_does_not_count(self):
        held = child("b'x' * (64 << 20)\nbefore = memory.begin_peak()\nprint(memory.peak_bytes() - before)")
        self.assertLess(held, 16 * MB)

    @unittest.skipUnless(PROGRAM.exists(), "bench_c1 is not built")
    def test_our_programs_count_as_the_peers_do(self):
        large = b"x" * (300 * MB)
        workload = workloads.TABLE["C1"]
        with tempfile.TemporaryDirectory() as name:
            folder = inputs.write_inputs(workload, workload.sizes | {"batch": 100_000}, name)
            arguments = ["--inputs", str(folder), "--threads", "1", "--steps", "1", "--repeats", "1"]
            done = subprocess.run([str(PROGRAM), *arguments], capture_output=True, text=True, check=True)
        del large
        data = 100_000 * (24 + 2) * 4
        self.assertTrue(data < json.loads(done.stdout)["peak_bytes"] < 100 * MB, done.stdout)


if __name__ == "__main__":
    unittest.main()
