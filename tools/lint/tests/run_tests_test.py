"""How tools/run_tests.py counts: GoogleTest reports, unittest's closing lines, stages, and a program that crashes."""

import contextlib
import io
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import run_tests  # noqa: E402


class Counting(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def program(self, text):
        path = self.folder / "unit_tests"
        path.write_text("#!/bin/sh\n" + text, encoding="utf-8")
        path.chmod(0o755)
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            counts = run_tests.run_program(path, [], None)
        return str(counts), said.getvalue()

    def test_a_report_counts_passed_failed_and_skipped_tests(self):
        report = {"testsuites": [{"name": "A", "testsuite": [
            {"result": "COMPLETED"}, {"name": "Bad", "result": "COMPLETED", "failures": [{"failure": "x"}]},
            {"result": "SKIPPED"}, {"result": "SUPPRESSED"}, {"result": "COMPLETED"}]}]}
        counts = run_tests.count_report(report)
        self.assertEqual(str(counts), "2 passed, 1 failed, 2 skipped")
        self.assertEqual(counts.names, ["A.Bad"])

    def test_a_program_that_crashes_fails_and_names_the_test_that_ran(self):
        log = "echo '[ RUN      ] A.Good'; echo '[       OK ] A.Good'; echo '[ RUN      ] A.Bad'; kill -SEGV $$"
        counts, said = self.program(log)
        self.assertEqual(counts, "0 passed, 1 failed")
        self.assertIn("A.Bad", said)
        self.assertNotIn("A.Good", said)
        self.assertIn("ended with status -11", said)

    def test_a_program_that_takes_too_long_fails(self):
        with mock.patch.object(run_tests, "LIMIT", 0.2):
            counts, said = self.program("exec sleep 20")
        self.assertEqual(counts, "0 passed, 1 failed")
        self.assertIn("stopped after", said)

    def test_closing_lines_of_unittest_are_counted(self):
        for text, counts in {
            "Ran 5 tests in 0.1s\n\nOK\n": "5 passed, 0 failed",
            "Ran 5 tests in 0.1s\n\nOK (skipped=2)\n": "3 passed, 0 failed, 2 skipped",
            "Ran 5 tests in 0.1s\n\nFAILED (failures=1, errors=1)\n": "3 passed, 2 failed",
            "Ran 1 test in 0.1s\n\nFAILED (failures=3)\n": "0 passed, 3 failed",
            "SyntaxError: no\n": "0 passed, 0 failed",
        }.items():
            with self.subTest(text):
                self.assertEqual(str(run_tests.count_unittest(text)), counts)

    def test_a_stage_without_result_is_a_failure(self):
        with mock.patch.object(run_tests, "RESULTS", self.folder), contextlib.redirect_stdout(io.StringIO()):
            self.assertEqual(str(run_tests.stage_counts("lint")), "0 passed, 1 failed")
            (self.folder / "lint.json").write_text('{"passed": 7, "failed": 0, "skipped": 1}', encoding="utf-8")
            self.assertEqual(str(run_tests.stage_counts("lint")), "7 passed, 0 failed, 1 skipped")

    def test_the_sum_of_stages_names_what_failed_in_them(self):
        (self.folder / "asan.json").write_text(
            '{"passed": 1, "failed": 1, "skipped": 0, "names": ["asan/unit_tests: A.Bad"]}', encoding="utf-8")
        said = io.StringIO()
        with mock.patch.object(run_tests, "RESULTS", self.folder), contextlib.redirect_stdout(said), \
                mock.patch.object(sys, "argv", ["run_tests.py", "--stage", "all", "--sum", "asan"]):
            self.assertEqual(run_tests.main(), 1)
        self.assertEqual(said.getvalue(), "failed: asan/unit_tests: A.Bad\n1 passed, 1 failed\n")

    def test_a_stage_that_is_left_out_says_why_and_counts_as_skipped(self):
        said = io.StringIO()
        with mock.patch.object(run_tests, "RESULTS", self.folder), contextlib.redirect_stdout(said), \
                mock.patch.object(sys, "argv", ["run_tests.py", "--stage", "slow", "--left-out", "no time"]):
            self.assertEqual(run_tests.main(), 0)
            self.assertEqual(str(run_tests.stage_counts("slow")), "0 passed, 0 failed, 1 skipped")
        self.assertEqual(said.getvalue(), "slow: SKIPPED: no time\n0 passed, 0 failed, 1 skipped\n")


if __name__ == "__main__":
    unittest.main()
