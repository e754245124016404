"""Tests of goals.py: what is compared, and what is met and missed."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import goals  # noqa: E402
import report  # noqa: E402
import workloads  # noqa: E402

C4 = workloads.TABLE["C4"]


def row(threads, ours, peer, name="C4"):
    return report.make_row(name, threads, "torch", "eager", ours, peer)


class Pairs(unittest.TestCase):
    def test_each_thread_count_has_its_own_best_peer(self):
        found = goals.pairs([row(1, 1.0, 3.0), row(1, 1.0, 2.0), row(2, 0.5, 1.5)], C4)
        self.assertEqual({n: (both.ours_ms, both.ratio) for n, both in found.items()}, {1: (1.0, 2.0), 2: (0.5, 3.0)})

    def test_our_number_is_the_median_beside_all_peers(self):
        self.assertEqual(goals.pair([row(1, ours, 9.0) for ours in (1.0, 2.0, 6.0)], "C4", 1).ratio, 4.5)

    def test_a_peer_that_was_only_looked_at_counts_where_it_was_the_fastest(self):
        self.assertEqual(goals.pair([row(1, 1.0, 1.2), row(1, 1.0, 0.75)], "C4", 1).ratio, 0.75)

    def test_a_side_that_is_missing_gives_no_pair(self):
        self.assertEqual(goals.pairs([row(1, None, 3.0), row(2, 1.0, None)], C4), {})


class Verdicts(unittest.TestCase):
    def test_the_bound_is_that_of_the_thread_count(self):
        found = goals.pairs([row(1, 1.0, 1.5), row(2, 1.0, 1.5)], C4)
        self.assertEqual([goals.verdicts(C4, both) for both in found.values()], [["1.4x: met"], ["1.6x: missed"]])

    def test_one_bound_holds_for_both_thread_counts(self):
        self.assertEqual([goals.least_ratio(workloads.TABLE["C1"], n) for n in (1, 2)], [6, 6])

    def test_a_bound_of_time_is_for_one_thread(self):
        c8 = workloads.TABLE["C8"]
        found = goals.pairs([row(n, 0.4, 0.6, "C8") for n in (1, 2)], c8)
        self.assertEqual([goals.verdicts(c8, both) for both in found.values()],
                         [["1.3x: met", "0.45 ns an element: met"], ["1.3x: met"]])

    def test_two_threads_are_judged_by_our_times_alone(self):
        found = goals.scaling([row(1, 1.7, 2.0), row(2, 1.0, 9.0)], C4)
        self.assertEqual((found, goals.scaling_verdict(C4, found)), (1.7, ["1.8x: missed"]))
        self.assertEqual(goals.scaling_verdict(workloads.TABLE["C1"], 0.5), [])

    def test_all_that_was_missed_is_listed(self):
        rows = [row(1, 1.0, 1.2), row(2, 0.7, 0.8), row(1, 1.0, 0.9, "C4-prime")]
        self.assertEqual(goals.missed(rows, C4), ["1.4x with 1 thread", "1.6x with 2 threads",
                                                  "1.8x as fast with 2 threads as with 1", "prime sizes"])


class Primes(unittest.TestCase):
    def test_the_worse_of_both_thread_counts_counts(self):
        rows = [row(1, 1.0, 2.0), row(2, 1.0, 2.0), row(1, 1.0, 1.9, "C4-prime"), row(2, 1.0, 1.6, "C4-prime")]
        change = goals.prime_change(rows, C4)
        self.assertEqual((change.threads, change.ratio, change.is_too_much), (2, 1.6, True))
        self.assertAlmostEqual(change.lost, 0.2)

    def test_without_prime_sizes_there_is_no_change(self):
        self.assertIsNone(goals.prime_change([row(1, 1.0, 2.0)], C4))


class Table(unittest.TestCase):
    def test_goals_with_two_numbers_are_those_of_one_thread_and_two(self):
        self.assertEqual({w.name: w.ratios for w in workloads.TABLE.values() if len(w.ratios) == 2},
                         {"C4": (1.4, 1.6), "C5": (1.05, 1.1)})

    def test_two_threads_have_a_goal_from_c3_to_c7(self):
        wanted = {f"C{i}" for i in range(3, 8)}
        self.assertLessEqual(wanted, {w.name for w in workloads.TABLE.values() if w.scaling == 1.8})

    def test_every_workload_has_a_goal(self):
        self.assertEqual([w.name for w in workloads.TABLE.values() if not w.ratios and not w.most], [])


if __name__ == "__main__":
    unittest.main()
