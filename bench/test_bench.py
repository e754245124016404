"""Tests of what bench.py computes without running anything: python3 -m unittest discover bench 'test_*.py'."""
import array
import json
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import bench  # noqa: E402
import report  # noqa: E402
import workloads  # noqa: E402


class Primes(unittest.TestCase):
    def test_the_nearest_prime_is_taken_and_the_greater_of_two(self):
        near = {1: 1, 2: 2, 6: 7, 8: 7, 10: 11, 16: 17, 24: 23, 28: 29, 128: 127, 200: 199, 784: 787,
                1_000_000: 1_000_003}
        self.assertEqual({n: workloads.nearest_prime(n) for n in near}, near)

    def test_every_size_of_a_prime_variant_is_prime_or_one(self):
        for workload in workloads.TABLE.values():
            for size in workloads.prime_variant(workload.sizes).values():
                self.assertTrue(size == 1 or workloads.is_prime(size))


class Inputs(unittest.TestCase):
    def test_files_hold_as_many_numbers_as_their_shapes_say(self):
        workload = workloads.TABLE["C3"]
        with tempfile.TemporaryDirectory() as name:
            folder = workloads.write_inputs(workload, workload.sizes, name)
            manifest = json.loads((folder / "manifest.json").read_text())
            found = {a["name"]: (a["shape"], (folder / a["file"]).stat().st_size) for a in manifest["arrays"]}
            labels = array.array("f", (folder / "y.f32").read_bytes())
        self.assertEqual(found["dense1.weight"], ([256, 120], 4 * 256 * 120))
        self.assertEqual(found["conv2.weight"], ([16, 6, 5, 5], 4 * 16 * 6 * 25))
        self.assertEqual(sum(labels), 128)

    def test_the_same_inputs_are_written_every_time(self):
        workload = workloads.TABLE["C1"]
        with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
            a, b = (workloads.write_inputs(workload, workload.sizes, name) for name in (first, second))
            self.assertEqual((a / "x.f32").read_bytes(), (b / "x.f32").read_bytes())


class Setups(unittest.TestCase):
    def test_two_threads_try_every_wait_policy_in_torch_only(self):
        tried = bench.setups(workloads.TABLE["C4"], quick=False)
        waits = {(s.peer, s.threads): set() for s in tried}
        for s in tried:
            waits[s.peer, s.threads].add(s.wait)
        everything = {"", "ACTIVE", "PASSIVE"}
        self.assertEqual(waits, {("torch", 1): {""}, ("torch", 2): everything, ("jax", 1): {""}, ("jax", 2): {""}})

    def test_a_missing_peer_is_one_row_for_each_thread_count(self):
        missing = [s for s in bench.setups(workloads.TABLE["C3"], False, {"torch": "no wheel"}) if s.peer == "torch"]
        self.assertEqual([(s.label(), s.threads) for s in missing], [("-", 1), ("-", 2)])

    def test_a_quick_run_tries_one_image_layout(self):
        self.assertEqual({s.layout for s in bench.setups(workloads.TABLE["C3"], quick=True)}, {"nhwc"})


class Rows(unittest.TestCase):
    def rows(self):
        return [report.make_row("C4", 1, "torch", "eager", 1.0, 1.5),
                report.make_row("C4", 1, "torch", "compile", 1.0, 1.2),
                report.make_row("C4", 2, "torch", "compile", 0.5, 0.8),
                report.make_row("C4", 1, "jax", "jit", 1.1, 1.3),
                report.make_row("C4-prime", 2, "torch", "compile", 0.5, 0.6)]

    def test_the_ratio_is_peer_over_ours(self):
        self.assertEqual(report.make_row("C4", 1, "jax", "jit", 2.0, 3.0)["ratio"], 1.5)

    def test_a_side_that_is_missing_gives_no_ratio(self):
        row = report.make_row("C4", 1, "torch", "-", None, 3.0, "bench_c4 is not built")
        self.assertIsNone(row["ratio"])
        self.assertIn("| -       | 3       | -     | bench_c4 is not built |", report.table([row]))

    def test_the_fastest_mode_of_each_peer_and_thread_count_wins(self):
        kept = [(r["peer"], r["threads"], r["mode"]) for r in report.winners(self.rows()[:4])]
        self.assertEqual(kept, [("torch", 1, "compile"), ("torch", 2, "compile"), ("jax", 1, "jit")])

    def test_the_best_peer_of_a_thread_count_has_a_star(self):
        lines = report.table(self.rows()).splitlines()
        self.assertEqual(["*" in line for line in lines], [False, False, False, True, True, False, True])

    def test_the_summary_takes_each_side_at_its_best_and_names_the_drop(self):
        line = report.summary("C4", "MLP", self.rows())
        self.assertEqual(line, "C4 (MLP): ours 0.5 ms (2 threads), best peer torch compile 0.8 ms (2 threads): 1.6x; "
                               "prime sizes 1.2x (-25%) TOO MUCH")

    def test_our_number_for_a_thread_count_is_the_median_beside_all_peers(self):
        rows = [report.make_row("C1", 1, "torch", str(ours), ours, 9.0) for ours in (1.0, 2.0, 6.0)]
        self.assertEqual(report.best_ratio(rows)[2], 4.5)

    def test_nanoseconds_an_op_are_told_where_ops_are_counted(self):
        rows = [report.make_row("C9", 1, "jax", "jit", 0.003, 0.006)]
        self.assertIn("2x, 30 ns an op against 60", report.summary("C9", "ops", rows, ops=100))


class Losses(unittest.TestCase):
    def test_the_difference_is_relative_and_the_greatest(self):
        self.assertAlmostEqual(report.loss_difference([1.0, 2.02], [1.0, 2.0]), 0.01)

    def test_a_missing_loss_or_a_nan_is_an_infinite_difference(self):
        self.assertEqual(report.loss_difference([1.0], [1.0, 2.0]), float("inf"))
        self.assertEqual(report.loss_difference([float("nan")], [1.0]), float("inf"))


if __name__ == "__main__":
    unittest.main()
