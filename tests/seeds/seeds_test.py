"""Runs seeds_tests once for each situation of situations.py, and checks CASES.md against the tests.

By hand: `python3 tests/seeds/seeds_test.py SITUATION [FILTER]` runs one situation with the output of GoogleTest. The
build is the folder named by ROSIN_TEST_BUILD, else build/release; ./run test sets it.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from situations import MISSING, SITUATIONS  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = pathlib.Path(os.environ.get("ROSIN_TEST_BUILD", ROOT / "build" / "release")).resolve()
PROGRAM = BUILD / "seeds_tests"
FILES = {"cuda": BUILD / "plugins" / "fake" / "librosin_cuda.so",
         "amdgpu": BUILD / "plugins" / "fake" / "librosin_amdgpu.so",
         "metal": BUILD / "rosin" / "librosin_metal.so",
         "opencl": BUILD / "rosin" / "librosin_opencl.so"}
TRANSPORT = BUILD / "rosin" / "librosin_comm_local.so"
BACKENDS = {"CUDA": "cuda", "AMDGPU": "amdgpu", "Metal": "metal", "OpenCL": "opencl"}


def clean_environment():
    """The environment without what selects devices here."""
    return {name: value for name, value in os.environ.items()
            if not name.startswith(("ROSIN_", "SEEDS_")) and not name.endswith("_VISIBLE_DEVICES")}


class Stage:
    """The folders of a situation: a working folder, its plug-ins, and librosin with no plug-in beside it."""

    def __init__(self, folder, situation):
        self.situation = situation
        self.work, self.plugins, self.library = (pathlib.Path(folder) / name for name in ("work", "plugins", "lib"))
        for path in (self.work, self.plugins, self.library):
            path.mkdir()
        for name in situation.plugins:
            (self.plugins / FILES[name].name).symlink_to(FILES[name])
        (self.library / "librosin.so.0").symlink_to(BUILD / "librosin.so.0")
        (self.plugins / TRANSPORT.name).symlink_to(TRANSPORT)
        if situation.file:
            (self.work / "LocalPreferences.toml").write_text(situation.file, encoding="utf-8")

    def environment(self):
        folders = f"{self.plugins}, {self.library}/rosin"
        stated = {f"SEEDS_{name.upper()}": self.situation.states.get(name, MISSING.format(plugin))
                  for name, plugin in BACKENDS.items()}
        stated |= {"SEEDS_AUTOLOAD": "0" if self.situation.alone else "1",
                   "SEEDS_FLOAT64": "1" if self.situation.float64 else "0",
                   "SEEDS_PREFERENCE": self.situation.preference,
                   "SEEDS_CHOSEN": self.situation.chosen,
                   "SEEDS_SAID": "\x1f".join(self.situation.said)}
        stated = {name: text.replace("%s", folders) for name, text in stated.items()}
        own = {"ROSIN_PLUGIN_PATH": str(self.plugins), "ROSIN_NUM_THREADS": "1", "LD_LIBRARY_PATH": str(self.library),
               "XDG_CONFIG_HOME": str(self.work), "XDG_CACHE_HOME": str(self.work / "cache")}
        situation = {name: value.replace("{build}", str(BUILD)) for name, value in self.situation.environment.items()}
        return clean_environment() | own | situation | stated

    def run(self, *arguments):
        return subprocess.run([str(PROGRAM), "--gtest_color=no", *arguments], cwd=self.work, env=self.environment(),
                              capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=900)


def test_names():
    """The full names of all tests, as the program lists them."""
    listing = subprocess.run([str(PROGRAM), "--gtest_list_tests"], capture_output=True, text=True, check=True,
                             env=clean_environment())
    return [f"Seeds.{line.strip()}" for line in listing.stdout.splitlines() if line.startswith("  ")]


def failures(log):
    """What a run of GoogleTest says of the tests that failed."""
    return "\n".join(re.findall(r"(?ms)^\[ RUN      \](?:(?!^\[ RUN).)*?^\[  FAILED  \][^\n]*", log)) or log[-3000:]


def run_situation(situation, pattern="*"):
    """The text of all failures of a situation, and how many tests ran."""
    with tempfile.TemporaryDirectory() as folder:
        stage = Stage(folder, situation)
        filters = [name for name in test_names() if pattern == "*" or pattern in name] if situation.alone else [pattern]
        wrong, count = [], 0
        for one in filters:
            done = stage.run(f"--gtest_filter={one}")
            passed = re.search(r"^\[  PASSED  \] (\d+) tests?", done.stdout, re.MULTILINE)
            count += int(passed.group(1)) if passed else 0
            if done.returncode or not passed or "[  SKIPPED ]" in done.stdout:
                wrong.append(failures(done.stdout) + done.stderr)
            elif done.stderr:
                wrong.append(f"{one}: wrote to the terminal: {done.stderr}")
        return "\n".join(wrong), count


@unittest.skipUnless(PROGRAM.is_file(), "the build has no seeds_tests")
class Seeds(unittest.TestCase):
    def run_named(self, name):
        situation = SITUATIONS[name]
        for plugin in situation.plugins:
            if not FILES[plugin].is_file():
                self.skipTest(f"the build has no {FILES[plugin].name}")
        if "opencl" in situation.plugins and not pathlib.Path("/etc/OpenCL/vendors/pocl.icd").is_file():
            self.skipTest("PoCL is not installed")
        wrong, count = run_situation(situation)
        self.assertEqual(wrong, "", f"situation {name}")
        self.assertGreater(count, 90)


def add_situations():
    for name in SITUATIONS:
        setattr(Seeds, f"test_{name}", lambda self, name=name: self.run_named(name))


add_situations()


VERDICTS = ("passes with this difference", "passes", "not applicable", "waits")
NUMBERS = [str(n) for n in range(1, 62)] + [f"D{n}" for n in range(1, 40)] + [f"F{n}" for n in range(1, 13)]


def verdict_of(text):
    """Which of the four a cell says; None where it is none of them."""
    patterns = (r"passes with this difference: .+", r"passes", r"not applicable, because .+", r"waits for .+")
    return next((verdict for verdict, pattern in zip(VERDICTS, patterns) if re.fullmatch(pattern, text)), None)


class Cases(unittest.TestCase):
    """CASES.md says of every case which test it has and how it does."""

    def setUp(self):
        page = (HERE / "CASES.md").read_text(encoding="utf-8")
        self.rows = re.findall(r"^\| ([DF]?\d+) \| (\S+) \| (.+) \|$", page, re.MULTILINE)
        self.counts = dict(re.findall(r"^\| ([a-z ]+) \| (\d+) \|$", page, re.MULTILINE))
        sources = "".join(path.read_text(encoding="utf-8") for path in sorted(HERE.glob("*_test.cpp")))
        self.tests = re.findall(r"TEST_F\(Seeds, (\w+)\)", sources)

    def test_every_number_appears_once_and_in_order(self):
        self.assertEqual([number for number, _, _ in self.rows], NUMBERS)

    def test_every_test_that_is_named_exists_and_bears_its_number(self):
        for number, test, verdict in self.rows:
            with self.subTest(number):
                kind, digits = re.fullmatch(r"([DF]?)(\d+)", number).groups()
                if test == "-":
                    self.assertIn(verdict_of(verdict), ("not applicable", "waits"))
                else:
                    self.assertTrue(test.startswith(f"`{kind or 'Row'}{int(digits):02}"), test)
                    self.assertIn(test.strip("`"), self.tests)

    def test_every_numbered_test_is_named_on_the_page(self):
        numbered = [name for name in self.tests if re.match(r"(?:Row|D|F)\d\d[A-Z]", name)]
        self.assertEqual(sorted(numbered), sorted(test.strip("`") for _, test, _ in self.rows if test != "-"))

    def test_verdicts_are_of_four_kinds_and_counted(self):
        found = [verdict_of(verdict) for _, _, verdict in self.rows]
        self.assertNotIn(None, found)
        self.assertEqual({name: int(count) for name, count in self.counts.items()},
                         {name: found.count(name) for name in VERDICTS})


def show_situation(name, pattern="*"):
    with tempfile.TemporaryDirectory() as folder:
        done = Stage(folder, SITUATIONS[name]).run(f"--gtest_filter={pattern}")
        print(done.stdout + done.stderr)
        return done.returncode


if __name__ == "__main__":
    sys.exit(show_situation(*sys.argv[1:]) if sys.argv[1:] else unittest.main())
