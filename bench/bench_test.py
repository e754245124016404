"""Tests of what bench.py computes without running anything: python3 -m unittest discover bench '*_test.py'."""
import array
import dataclasses
import json
import pathlib
import random
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import bench  # noqa: E402
import inputs  # noqa: E402
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

    def test_statistics_are_drawn_where_the_model_is_only_run(self):
        def numbers(name):
            return inputs.values(workloads.TABLE[name], {}, "bn1.running_var", (64,), random.Random(1))
        self.assertEqual(set(numbers("C6")), {1.0})
        self.assertTrue(len(set(numbers("resnet-frozen"))) == 64 and min(numbers("resnet-frozen")) >= 0.5)

    def test_a_long_array_repeats_its_first_million_numbers(self):
        rows = inputs.REPEATED + 5
        drawn = inputs.values(workloads.TABLE["tanh-large"], {}, "x", (rows, 1), random.Random(1))
        self.assertEqual((len(drawn), drawn[-5:]), (rows, drawn[:5]))

    def test_every_workload_has_a_kind_and_every_op_a_function_on_both_sides(self):
        for workload in workloads.TABLE.values():
            self.assertIn(workload.kind, inputs.KINDS)
            if workload.op:
                sides_of = [f"peer_{peer}.py" for peer in workload.peers if workload.op != "epoch" or peer == "torch"]
                for side in ("ops.cpp", *sides_of):
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

    def test_a_small_work_is_one_message(self):
        self.assertEqual(scaling.Work("", 1.0, 4e5).buckets(), [4e5])

    def test_sums_beside_the_reverse_walk_leave_the_last_message(self):
        machine = scaling.Machine(self.link, self.link)
        work = scaling.Work("", 3.0, scaling.FIRST + 3 * scaling.BUCKET)
        first, one = machine.seconds(scaling.FIRST, 8), machine.seconds(scaling.BUCKET, 8)
        self.assertAlmostEqual(scaling.after(work, machine, 8), 3 + first + 3 * one)
        self.assertAlmostEqual(scaling.beside(work, machine, 8), 3 + one)
        self.assertAlmostEqual(scaling.beside(work, machine, 1), 3)

    def test_steps_of_gpus_are_the_measured_ones_and_eight_keep_their_speed(self):
        gpt, resnet = scaling.works_of_gpus()
        said = scaling.ON_GPU.with_suffix(".txt").read_text(encoding="utf-8")
        for workload, work in (("G5", gpt), ("G4", resnet)):
            self.assertRegex(said, rf"(?m)^{workload} .*BFloat16.* on CUDA:0: {work.seconds * 1e3:.4g} ms,")
            self.assertLess(scaling.beside(work, scaling.GPUS, 8), work.seconds / 0.97)


class Setups(unittest.TestCase):
    def test_other_wait_policies_are_tried_for_torch_with_two_threads_only(self):
        tried = bench.setups(workloads.TABLE["C4"], quick=False)
        waits = {(s.peer, s.threads): {w.wait for w in bench.with_waits(s)} for s in tried}
        self.assertEqual({key: both for key, both in waits.items() if both}, {("torch", 2): {"ACTIVE", "PASSIVE"}})
        self.assertEqual(set(waits), {(peer, n) for peer in ("torch", "jax", "mlx") for n in (1, 2)})

    def test_only_the_peers_of_a_workload_are_tried_and_mlx_in_one_layout(self):
        self.assertEqual({s.peer for s in bench.setups(workloads.TABLE["C6-bf16"], quick=False)}, {"torch"})
        layouts = [s.layout for s in bench.setups(workloads.TABLE["C3"], False) if s.peer == "mlx" and s.threads == 1]
        self.assertEqual(layouts, ["nhwc", "nhwc"])

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


    def test_what_takes_more_than_five_times_the_fastest_of_its_thread_count_is_out_of_reach(self):
        times = [(1, [1.0]), (1, [4.0]), (1, [6.0]), (2, [6.0]), (2, [])]
        trials = [bench.Trial(sides.Setup("jax", "jit", "", n), ms=ms) for n, ms in times]
        self.assertEqual([t.ms for t in bench.in_reach(trials)], [[1.0], [4.0], [6.0]])

    def test_a_processor_without_the_instructions_skips_the_workload_and_says_why(self):
        needy = dataclasses.replace(workloads.TABLE["C6-bf16"], needs=("no_such_flag", "nor_this"))
        self.assertEqual(bench.lacking(needy), "SKIPPED: the processor has none of no_such_flag, nor_this")
        self.assertEqual(bench.lacking(workloads.TABLE["C6"]), "")


class Sections(unittest.TestCase):
    def test_one_is_replaced_and_the_others_stay(self):
        page = "# Page\n\nText.\n\n## A\n\nold\n\n## B\n\nb\n"
        self.assertEqual(sections.replaced(page, "## A\n\nnew\n"), "# Page\n\nText.\n\n## A\n\nnew\n\n## B\n\nb\n")
        self.assertEqual(sections.replaced(page, "## C\n\nc\n"), page + "\n## C\n\nc\n")

    def test_a_new_page_keeps_what_others_wrote_into_the_old_one(self):
        self.assertEqual(sections.carried_over("# Page\n\n## A\n\nnew\n", "# Page\n\n## A\n\nold\n\n## B\n\nb\n"),
                         "# Page\n\n## A\n\nnew\n\n## B\n\nb\n")


if __name__ == "__main__":
    unittest.main()
