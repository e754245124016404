"""Tests of what bench.py computes without running anything: python3 -m unittest discover bench 'test_*.py'."""
import array
import json
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import bench  # noqa: E402
import inputs  # noqa: E402
import report  # noqa: E402
import scaling  # noqa: E402
import sections  # noqa: E402
import sides  # noqa: E402
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


class Sittings(unittest.TestCase):
    def test_what_a_run_before_has_measured_is_taken(self):
        class Nothing:
            pass
        with tempfile.TemporaryDirectory() as name:
            path = pathlib.Path(name) / "kept.json"
            first = bench.Sittings(path)
            first.keep("C1", rows=[{"workload": "C1"}], records=[["C1", 1, {"losses": [1]}]], beginnings=[{"b": 2}],
                       minutes=3, load=0.5, versions={"torch": "2"})
            other = Nothing()
            other.rows, other.records, other.beginnings, other.minutes, other.load = [], {}, [], 1, 0.1
            other.servers = Nothing()
            other.servers.versions = {}
            again = bench.Sittings(path)
            self.assertFalse(again.take("C2", other))
            self.assertTrue(again.take("C1", other))
        self.assertEqual((other.rows, other.records), ([{"workload": "C1"}], {("C1", 1): {"losses": [1]}}))
        self.assertEqual((other.minutes, other.load, other.servers.versions), (4, 0.5, {"torch": "2"}))


class Inputs(unittest.TestCase):
    def test_files_hold_as_many_numbers_as_their_shapes_say(self):
        workload = workloads.TABLE["C3"]
        with tempfile.TemporaryDirectory() as name:
            folder = inputs.write_inputs(workload, workload.sizes, name)
            manifest = json.loads((folder / "manifest.json").read_text())
            found = {a["name"]: (a["shape"], (folder / a["file"]).stat().st_size) for a in manifest["arrays"]}
            labels = array.array("f", (folder / "y.f32").read_bytes())
        self.assertEqual(found["dense1.weight"], ([256, 120], 4 * 256 * 120))
        self.assertEqual(found["conv2.weight"], ([16, 6, 5, 5], 4 * 16 * 6 * 25))
        self.assertEqual(sum(labels), 128)

    def test_the_same_inputs_are_written_every_time(self):
        workload = workloads.TABLE["C1"]
        with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
            a, b = (inputs.write_inputs(workload, workload.sizes, name) for name in (first, second))
            self.assertEqual((a / "x.f32").read_bytes(), (b / "x.f32").read_bytes())


    def test_a_model_by_the_names_of_pytorch_stands_in_one_file(self):
        workload = workloads.TABLE["C7"]
        with tempfile.TemporaryDirectory() as name:
            folder = inputs.write_inputs(workload, workload.sizes, name)
            arrays = {a["name"]: a for a in json.loads((folder / "manifest.json").read_text())["arrays"]}
            data = (folder / "model.safetensors").read_bytes()
        self.assertEqual(arrays["x"]["file"], "x.f32")
        entry = arrays["transformer.h.0.ln_1.weight"]
        self.assertEqual(entry["file"], "model.safetensors")
        ones = array.array("f", data[entry["offset"]:entry["offset"] + 4 * 128])
        self.assertEqual(set(ones), {1.0})
        header = json.loads(data[8:8 + int.from_bytes(data[:8], "little")])
        self.assertEqual(header["transformer.ln_f.bias"]["data_offsets"][1] + 8 + int.from_bytes(data[:8], "little"),
                         len(data))

    def test_every_workload_has_a_kind_and_every_op_a_function_on_both_sides(self):
        for workload in workloads.TABLE.values():
            self.assertIn(workload.kind, inputs.KINDS)
            if workload.op:
                for side in ("ops.cpp", "peer_torch.py"):
                    self.assertIn(f'"{workload.op}"', (pathlib.Path(bench.__file__).parent / side).read_text())


class Scaling(unittest.TestCase):
    link = scaling.Link.of(wait=1e-3, speed=1e9, ranks=8)

    def test_a_sum_costs_its_wait_and_what_moves(self):
        self.assertAlmostEqual(self.link.seconds(4e6, 8), 1e-3 + 7e-3)
        self.assertAlmostEqual(self.link.seconds(4e6, 2), 1e-3 / 3 + 4e-3)
        self.assertEqual(self.link.seconds(4e6, 1), 0)

    def test_measured_sums_are_met_and_joined_by_lines(self):
        link = scaling.Link(2, {4: 1e-6, 1004: 11e-6, 2004: 31e-6})
        self.assertAlmostEqual(link.seconds(1004, 2), 11e-6)
        self.assertAlmostEqual(link.seconds(1504, 2), 21e-6)
        self.assertAlmostEqual(link.seconds(3004, 2), 51e-6)

    def test_nodes_sum_between_them_what_their_ranks_hold(self):
        machine = scaling.Machine(self.link, self.link)
        self.assertAlmostEqual(machine.seconds(8e6, 64), self.link.seconds(8e6, 8) + self.link.seconds(1e6, 8))

    def test_sums_beside_the_reverse_walk_leave_the_last_message(self):
        machine = scaling.Machine(self.link, self.link)
        work = scaling.Work("", 3.0, scaling.FIRST + 3 * scaling.BUCKET)
        first, one = machine.seconds(scaling.FIRST, 8), machine.seconds(scaling.BUCKET, 8)
        self.assertAlmostEqual(scaling.after(work, machine, 8), 3 + first + 3 * one)
        self.assertAlmostEqual(scaling.beside(work, machine, 8), 3 + one)
        self.assertAlmostEqual(scaling.beside(work, machine, 1), 3)


class Setups(unittest.TestCase):
    def test_other_wait_policies_are_tried_for_torch_with_two_threads_only(self):
        tried = bench.setups(workloads.TABLE["C4"], quick=False)
        waits = {(s.peer, s.threads): {w.wait for w in bench.with_waits(s)} for s in tried}
        both = {"ACTIVE", "PASSIVE"}
        self.assertEqual(waits, {("torch", 1): set(), ("torch", 2): both, ("jax", 1): set(), ("jax", 2): set()})

    def test_a_missing_peer_is_one_row_for_each_thread_count(self):
        missing = [s for s in bench.setups(workloads.TABLE["C3"], False, {"torch": "no wheel"}) if s.peer == "torch"]
        self.assertEqual([(s.label(), s.threads) for s in missing], [("-", 1), ("-", 2)])

    def test_a_quick_run_tries_one_image_layout(self):
        self.assertEqual({s.layout for s in bench.setups(workloads.TABLE["C3"], quick=True)}, {"nhwc"})

    def test_a_trial_that_fails_keeps_its_times_and_says_why(self):
        answers = iter([2.0, 3.0])

        def measure():
            for ms in answers:
                return ms, 2 * ms
            raise sides.Failure("gone")
        trial = bench.Trial(sides.Setup("jax", "jit", "", 1), measure)
        bench.in_turn([trial], 4)
        self.assertEqual((trial.middle(), trial.cpu_ms, trial.notes), (2.5, [4.0, 6.0], ["gone"]))


class Sections(unittest.TestCase):
    def test_one_is_replaced_and_the_others_stay(self):
        page = "# Page\n\nText.\n\n## A\n\nold\n\n## B\n\nb\n"
        self.assertEqual(sections.replaced(page, "## A\n\nnew\n"), "# Page\n\nText.\n\n## A\n\nnew\n\n## B\n\nb\n")
        self.assertEqual(sections.replaced(page, "## C\n\nc\n"), page + "\n## C\n\nc\n")

    def test_a_new_page_keeps_what_others_wrote_into_the_old_one(self):
        self.assertEqual(sections.carried_over("# Page\n\n## A\n\nnew\n", "# Page\n\n## A\n\nold\n\n## B\n\nb\n"),
                         "# Page\n\n## A\n\nnew\n\n## B\n\nb\n")


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

    def test_a_mode_that_was_only_looked_at_counts_where_it_was_faster_than_the_finalists(self):
        rows = self.rows()
        rows[0] = report.make_row("C4", 1, "torch", "eager", 1.0, 0.75, repeats=5)
        self.assertEqual(report.best_ratio(rows[:4])[2], 1.5)

    def test_the_summary_takes_each_side_at_its_best_and_names_the_drop_and_the_goal(self):
        run = self.run_of(self.rows(), "C4")
        line = report.summary(run.workloads[0], run.best("C4"), run.best("C4-prime"))
        self.assertEqual(line, "C4 (MLP 784-256-10 b128): ours 0.5 ms (2 threads), best peer torch compile 0.8 ms "
                               "(2 threads): 1.6x; prime sizes 1.2x (-25%) TOO MUCH; goal 1.6x: met")

    def test_our_number_for_a_thread_count_is_the_median_beside_all_peers(self):
        rows = [report.make_row("C1", 1, "torch", str(ours), ours, 9.0) for ours in (1.0, 2.0, 6.0)]
        self.assertEqual(report.best_ratio(rows)[2], 4.5)

    def test_nanoseconds_an_op_are_told_where_ops_are_counted(self):
        best = report.best_ratio([report.make_row("C9", 1, "jax", "jit", 0.003, 0.006)])
        self.assertIn("2x, 30 ns an op against 60; goal 35 ns an op: met",
                      report.summary(workloads.TABLE["C9"], best, None))

    def test_a_missed_goal_has_its_reason_on_the_page(self):
        rows = [report.make_row("C3", 1, "torch", "eager", 1.0, 3.0, repeats=3)]
        self.assertIn("## What falls short", report.page(self.run_of(rows, "C3")))
        self.assertEqual(report.shortfalls(self.run_of(rows, "C3")), "- **C3**: " + workloads.TABLE["C3"].reason)
        self.assertEqual(report.shortfalls(self.run_of(self.rows(), "C4")), "Nothing.")

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
