"""Tests of report.py: rows, tables, summaries and the page of results."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import report  # noqa: E402
import workloads  # noqa: E402


class Rows(unittest.TestCase):
    def rows(self):
        return [report.make_row("C4", 1, "torch", "eager", 1.0, 1.5, repeats=3),
                report.make_row("C4", 1, "torch", "compile", 1.0, 1.2, repeats=7),
                report.make_row("C4", 2, "torch", "compile", 0.5, 0.8, repeats=7),
                report.make_row("C4", 1, "jax", "jit", 1.1, 1.3, repeats=7),
                report.make_row("C4-prime", 2, "torch", "compile", 0.5, 0.6, repeats=7)]

    def run_of(self, rows, name):
        return report.Run(rows, {(name, 1): {"kernels": 9.0, "calls": 5.0, "evaluations": 1.0}}, [],
                          [workloads.TABLE[name]], "a machine", {"torch": "2.0"}, 0.5, "the command", 1.0)

    def test_the_ratio_is_peer_over_ours(self):
        self.assertEqual(report.make_row("C4", 1, "jax", "jit", 2.0, 3.0)["ratio"], 1.5)

    def test_a_side_that_is_missing_gives_no_ratio(self):
        row = report.make_row("C4", 1, "torch", "-", None, 3.0, "bench_c4 is not built")
        self.assertIsNone(row["ratio"])
        self.assertRegex(report.table([row]), r"\| - +\| 3 +\| - +\| - +\| - +\| 0 +\| bench_c4 is not built \|")

    def test_the_fastest_trials_of_each_group_win_and_one_without_times_only_alone(self):
        trials = [("torch", 1, 5.0), ("torch", 1, 4.0), ("torch", 1, None), ("jax", 1, None)]
        kept = [report.winners(trials, lambda t: t[:2], lambda t: t[2], count) for count in (1, 2)]
        self.assertEqual(kept, [[("torch", 1, 4.0), ("jax", 1, None)],
                                [("torch", 1, 4.0), ("torch", 1, 5.0), ("jax", 1, None)]])

    def test_the_best_peer_of_a_thread_count_has_a_star(self):
        lines = report.table(self.rows()).splitlines()
        self.assertEqual(["*" in line for line in lines], [False, False, False, True, True, False, True])

    def test_the_summary_names_both_thread_counts_with_goals_scaling_and_the_drop(self):
        line = report.summary(self.rows(), workloads.TABLE["C4"])
        self.assertEqual(line, "C4 (MLP 784-256-10 b128): 1 thread: ours 1 ms, torch compile 1.2 ms: 1.2x, goal 1.4x: "
                               "missed; 2 threads: ours 0.5 ms, torch compile 0.8 ms: 1.6x, goal 1.6x: met; speedup "
                               "of ours by 2 threads 2x, goal 1.8x: met; prime sizes 1.2x (-25%, 2 threads) TOO MUCH")

    def test_the_table_has_a_ratio_and_a_verdict_for_each_thread_count(self):
        cells = report.summary_table(self.run_of(self.rows(), "C4")).splitlines()[2].strip("|").split("|")
        self.assertEqual([cell.strip() for cell in cells],
                         ["C4: MLP 784-256-10 b128", "1", "0.5", "2x, goal 1.8x: met", "torch compile 1.2 ms", "1.2",
                          "1.4x: missed", "torch compile 0.8 ms", "1.6", "1.6x: met",
                          "1.2x (-25%, 2 threads) TOO MUCH"])

    def test_a_workload_without_a_ratio_says_why(self):
        rows = [report.make_row("C4", 1, "torch", "-", None, 3.0, "bench_c4 is not built")]
        self.assertIn("no ratio: bench_c4 is not built", report.summary(rows, workloads.TABLE["C4"]))
        self.assertRegex(report.summary_table(self.run_of(rows, "C4")), r"\| bench_c4 is not built \| - ")

    def test_nanoseconds_are_told_where_ops_or_elements_are_counted(self):
        rows = [report.make_row("C9", 1, "jax", "jit", 0.003, 0.006)]
        self.assertIn("2x, 30 ns an op against 60, goal 35 ns an op: met",
                      report.summary(rows, workloads.TABLE["C9"]))
        rows = [report.make_row("C8", 1, "jax", "jit", 0.5, 0.6)]
        self.assertIn("0.5 ns an element against 0.6, goal 1.3x: missed, goal 0.45 ns an element: missed",
                      report.summary(rows, workloads.TABLE["C8"]))

    def test_what_was_missed_is_named_with_its_reason_on_the_page(self):
        rows = [report.make_row("C3", 1, "torch", "eager", 1.0, 3.0, repeats=3)]
        self.assertIn("## What falls short", report.page(self.run_of(rows, "C3")))
        self.assertEqual(report.shortfalls(self.run_of(rows, "C3")),
                         "- **C3** (3.5x with 1 thread): " + workloads.TABLE["C3"].reason)
        met = [report.make_row("C3", 1, "torch", "eager", 1.0, 3.5, repeats=3)]
        self.assertEqual(report.shortfalls(self.run_of(met, "C3")), "Nothing.")

    def test_the_page_warns_of_a_busy_machine_and_shows_what_was_launched(self):
        page = report.page(self.run_of(self.rows(), "C4"))
        self.assertIn("**Warning:** other processes took 50% of this machine", page)
        self.assertRegex(page, r"\| C4 +\| 9 +\| 5 +\| 1 +\| - ")


class Losses(unittest.TestCase):
    def test_the_difference_is_relative_and_the_greatest(self):
        self.assertAlmostEqual(report.loss_difference([1.0, 2.02], [1.0, 2.0]), 0.01)

    def test_a_missing_loss_or_a_nan_is_an_infinite_difference(self):
        self.assertEqual(report.loss_difference([1.0], [1.0, 2.0]), float("inf"))
        self.assertEqual(report.loss_difference([float("nan")], [1.0]), float("inf"))


if __name__ == "__main__":
    unittest.main()
