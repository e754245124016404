"""Runs the tests of one Python file in its own folder: those named test_slow_... with --slow, else all others.

  python3 tools/run_python_tests.py FILE [--slow]      as `python3 -m unittest -v` says it; 1 where one failed
"""

import argparse
import os
import pathlib
import sys
import unittest

SLOW = "test_slow_"


def each_test(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from each_test(test)
        else:
            yield test


def is_slow(test):
    return test.id().rsplit(".", 1)[-1].startswith(SLOW)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("--slow", action="store_true")
    arguments = parser.parse_args()
    os.chdir(arguments.file.resolve().parent)
    sys.path.insert(0, "")
    found = unittest.defaultTestLoader.loadTestsFromName(arguments.file.stem)
    chosen = unittest.TestSuite(test for test in each_test(found) if is_slow(test) == arguments.slow)
    return 0 if unittest.TextTestRunner(verbosity=2).run(chosen).wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
