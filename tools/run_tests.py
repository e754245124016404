"""Runs the test programs of a build, counts their tests, and ends with the line `N passed, N failed`.

A stage's counts are left in build/results/STAGE.json, where later stages and .ci/run find them. Called by ./run:
  run_tests.py --stage test --build build/release [--filter F] [--python] [--devices]    run test programs (and the
                                                    Python tests; and the op suite on the devices of plug-ins)
  run_tests.py --stage slow --slow ...              of these what takes long: tests whose names begin with Slow (in
                                                    Python: test_slow_), and the op suite on more devices
  run_tests.py --stage lint --counted PASSED FAILED                          note counts made elsewhere
  run_tests.py --stage slow --left-out REASON                                note that the stage is not run: one skipped
  run_tests.py --stage all --sum STAGE...                                    add up stages
"""

import argparse
import concurrent.futures
import contextlib
import functools
import json
import os
import pathlib
import platform
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from run_python_tests import SLOW

ROOT = pathlib.Path(__file__).resolve().parents[1]
RESULTS = ROOT / "build" / "results"
PROGRAMS = ("suite_tests", "unit_tests", "opinfo_tests", "public_tests", "steady_tests")
LONG_PROGRAMS = ("suite_tests", "unit_tests")  # in two parts at least, so that no core waits for them at the end
PYTHON_FOLDERS = ("tests", "examples", "tools", "cmake", "bench")  # what takes longest comes first
DEVICE_TESTS = "OpSuite*:*/OpSuite*:EngineFuzz*:*DeviceSteps*:DeviceMemory*:DeviceChecks*:MathModes*:" \
    "AttentionOnDevice*"
# Device, shards, what the environment says beside that, and the tests; what takes longest comes first.
# PoCL compiles each kernel for a tenth of a second or more, so what random programs compare anyway (EngineFuzz,
# OpSuitePrograms) it does not do op by op, nor in every type, but with ROSIN_ALL_DEVICE_TESTS=1; of the cases of an op
# it does a third, and all when slow tests run; nor gradients, whose ops are the same, and sorts beyond a tile, which
# CUDA's have.
# CUDA's are the pretended ones of tests/fake_cuda: their kernels check every access, and take half a second to compile,
# so that there too random programs compare fused and alone for all ops.
ALL_DEVICE_TESTS = os.environ.get("ROSIN_ALL_DEVICE_TESTS") == "1"
OPENCL_TESTS = DEVICE_TESTS + ":-Slow*" if ALL_DEVICE_TESTS else \
    DEVICE_TESTS + ":-Slow*:*OpSuiteExecution*:*AreTheSameBitsFusedAndAlone*:*OpSuiteBroadcast*:*OpSuiteSlopes*:" \
    "*OpSuiteRegistry*:*OpSuiteResultTypes*:*OpSuiteTypes*:*/OpSuiteGradients*:OpSuiteSort.L*:OpSuiteSort.M*"
CUDA_TESTS = ("*/OpSuiteValues*:" if ALL_DEVICE_TESTS else "*/OpSuiteValues.Agree*:") + \
    "OpSuitePrograms*:*/OpSuiteModes*:OpSuiteSort*:MathModes*:*DeviceSteps*:DeviceMemory*:DeviceChecks*:" \
    "AttentionOnDevice*:-Slow*:OpSuiteSort.L*:OpSuiteSort.M*"
EVERYDAY_TESTS, SLOW_TESTS = "-Slow*:*/Slow*", "Slow*:*/Slow*"  # of programs
POCL = {"POCL_EXTRA_BUILD_FLAGS": "-cl-opt-disable"}
CUDA = {"ROSIN_CUDA_LIBRARIES": "{build}/fake_cuda"}


def amdgpu(name, warp):
    return {"ROSIN_ROCM_LIBRARIES": "{build}/fake_hip", "FAKE_HIP": f"name={name},warp={warp}"}


DEVICES = (("OpenCL:0", 2, POCL, OPENCL_TESTS), ("CUDA:0", 2, CUDA, CUDA_TESTS),
           ("CPU", 1, {"ROSIN_JIT": "0"}, "OpSuite*:*/OpSuite*:EngineFuzz*"),  # compiled loops alone
           ("reference:0", 1, {}, "*/OpSuiteModes*"))  # of all ops, as nothing is compiled
SLOW_DEVICES = (
    ("reference:0", 1, {}, DEVICE_TESTS + ":-Slow*"),  # the slow ones take this device wherever they run
    ("CUDA:0", 1, CUDA, "SlowDeviceSteps*:OpSuiteSort.L*:OpSuiteSort.M*"),
    ("OpenCL:0", 1, {**POCL, "ROSIN_ALL_DEVICE_TESTS": "1"},
     "SlowDeviceSteps*:*/OpSuiteValues.Agree*:AttentionOnDevice.AgreeWithPartsInFloat64"),
    ("AMDGPU:0", 1, amdgpu("gfx90a", 64), "*DeviceSteps*:DeviceMemory*:MathModes*:AttentionOnDevice*"),
    *(("AMDGPU:0", 1, amdgpu(name, 32), "AttentionOnDevice.*Units*") for name in ("gfx1100", "gfx1201")),  # in waves
    ("Metal:0", 1, {"ROSIN_METAL_LIBRARIES": "{build}/fake_metal", "FAKE_METAL": "system=15"},
     "*/OpSuiteValues.Agree*:*/OpSuiteModes*:MathModes*:*DeviceSteps*:DeviceMemory*:DeviceChecks*:AttentionOnDevice*"),
    ("CPU", 1, {"ROSIN_JIT": "avx2"}, "OpSuite*:*/OpSuite*:EngineFuzz*"))
OPINFO_DEVICES = ("OpenCL:0",)  # on which PyTorch's tests of ops run too, every fifth
# Stages of a stage; they name themselves, since their line is not the last.
PARTS = ("address", "thread", "surface", "fuzz")
LIMIT = 30 * 60  # seconds for one program, or one file of Python tests


class Counts:
    """How many tests passed, failed and were skipped, and what to call those that failed."""

    def __init__(self, passed=0, failed=0, skipped=0, names=()):
        self.passed, self.failed, self.skipped, self.names = passed, failed, skipped, list(names)

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        self.names += other.names

    def fail(self, name):
        self.failed += 1
        self.names.append(name)

    def __str__(self):
        return f"{self.passed} passed, {self.failed} failed" + (f", {self.skipped} skipped" if self.skipped else "")


def count_report(report):
    """Counts of one GoogleTest JSON report."""
    counts = Counts()
    for suite in report["testsuites"]:
        for test in suite["testsuite"]:
            if test.get("failures"):
                counts.fail(f"{suite['name']}.{test['name']}")
            elif test.get("result") == "COMPLETED":
                counts.passed += 1
            else:
                counts.skipped += 1
    return counts


def without_passes(log):
    """The log of a GoogleTest program less the lines of the tests that passed; the test that was running last stays."""
    lines, running = [], None
    for line in log.split("\n"):
        if re.match(r"\[(  PASSED  |----------|==========)\]", line):
            continue
        if line.startswith("[ RUN      ]"):
            running = len(lines)
            lines.append(line)
        elif line.startswith("[       OK ]") and running is not None:
            del lines[running:]
            running = None
        else:
            lines.append(line)
    return "\n".join(lines).strip()


def fixed_addresses():
    """A prefix that switches address randomisation off, where that is allowed: ThreadSanitizer of g++ 12 needs it."""
    prefix = ["setarch", platform.machine(), "-R"]
    try:
        return prefix if subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode == 0 else []
    except FileNotFoundError:
        return []


def run_within_limit(command, **options):
    """The exit status; None of what did not end in time: it is aborted, at which Python says where it was."""
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, **options) as process:
        try:
            return process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGABRT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)
            process.kill()
            return None


def run_program(program, prefix, test_filter, label="", environment=None):
    """Runs one GoogleTest program, prints what failed, and gives its counts."""
    report, log = program.with_name(f"{program.name}{label}.json"), program.with_name(f"{program.name}{label}.log")
    report.unlink(missing_ok=True)
    # (Relative to the folder it runs in: a program for Windows takes a path that begins with / for another.)
    command = [*prefix, str(program), f"--gtest_output=json:{os.path.relpath(report, ROOT)}", "--gtest_color=no"]
    if test_filter:
        command.append(f"--gtest_filter={test_filter}")
    start, trouble = time.monotonic(), ""
    with open(log, "wb") as output:
        status = run_within_limit(command, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT,
                                  env={**os.environ, **(environment or {})})
    if status is None:
        trouble = f"stopped after {LIMIT} s"
    counts = count_report(json.loads(report.read_text(encoding="utf-8"))) if report.is_file() else Counts()
    if (status != 0 or not report.is_file()) and not counts.failed:
        trouble = trouble or (f"ended with status {status}" if status else "left no report")
        counts.fail(trouble)
    counts.names = [f"{program.parent.name}/{program.name}{label}: {name}" for name in counts.names]
    if status != 0:
        print(without_passes(log.read_text(encoding="utf-8", errors="replace")))
    print(f"{program.parent.name}/{program.name}{label}: {counts} in {time.monotonic() - start:.1f} s"
          + (f"; {trouble}" if trouble else ""), flush=True)
    return counts


def shards(count, numbers=None):
    """The label and the environment of each part of a program's tests, or of those with these numbers."""
    return [(f"-{number}" if count > 1 else "", {"GTEST_TOTAL_SHARDS": str(count), "GTEST_SHARD_INDEX": str(number)})
            for number in numbers or range(count)]


def parts_of(name, arguments):
    """The parts in which a program runs."""
    if arguments.third is not None and name == "suite_tests":
        return shards(3, [arguments.third])
    return shards(max(arguments.shards, 2 if name.startswith(LONG_PROGRAMS) else 1))


def device_runs(build, prefix, slow):
    """The op suite on each device that is there, in parts: functions that run one and give its counts."""
    program, runs = build / "suite_tests", []
    for device, parts, more, tests in (SLOW_DEVICES if slow else DEVICES) if os.access(program, os.X_OK) else ():
        environment = {"ROSIN_TEST_DEVICE": device, "ROSIN_CACHE_DIR": str(build / "kernel_cache"),
                       "POCL_CACHE_DIR": str(build / "pocl"),
                       **{name: value.format(build=build) for name, value in more.items()}}
        probe = subprocess.run([program, "--gtest_filter=TestDevice.IsThere"], cwd=ROOT, check=False,
                               stdin=subprocess.DEVNULL, capture_output=True, env={**os.environ, **environment})
        if probe.returncode:
            print(f"{build.name}/suite_tests on {device}: not run, there is no such device", flush=True)
            continue
        for number, part in shards(parts):
            label = f"-{device.replace(':', '-')}{number}"
            label += f"-jit-{more['ROSIN_JIT']}" if "ROSIN_JIT" in more else ""
            label += "-" + re.sub(r"\W+", "-", more["FAKE_HIP"]) if "FAKE_HIP" in more else ""
            runs.append(functools.partial(run_program, program, prefix, tests, label, {**environment, **part}))
        judge = build / "opinfo_tests"
        if device in OPINFO_DEVICES and not slow and os.access(judge, os.X_OK):
            label = f"-{device.replace(':', '-')}"
            runs.append(functools.partial(run_program, judge, prefix, "*OpInfo*", label, environment))
    return runs


def python_counts(path, slow):
    """Runs a file of Python tests, the slow ones or the others."""
    start = time.monotonic()
    command = [sys.executable, "-u", "-X", "faulthandler", ROOT / "tools" / "run_python_tests.py", path]
    command += ["--slow"] if slow else []
    with tempfile.TemporaryFile("w+", encoding="utf-8") as output:  # no pipe, which what a test leaves might keep open
        status = run_within_limit(command, stdout=output, stderr=subprocess.STDOUT)
        output.seek(0)
        said = output.read()
    counts = count_unittest(said)
    if status != 0:
        counts.failed = max(counts.failed, 1)
        counts.names.append(str(path.relative_to(ROOT)) + (f": stopped after {LIMIT} s" if status is None else ""))
        print(said)
    print(f"{path.relative_to(ROOT)}: {counts} in {time.monotonic() - start:.1f} s", flush=True)
    return counts


def python_runs(folders, slow):
    """Functions that run one *_test.py of the folders each and give its counts."""
    paths = [path for folder in folders for path in sorted((ROOT / folder).rglob("*_test.py"))]
    if slow:
        paths = [path for path in paths if f"def {SLOW}" in path.read_text(encoding="utf-8")]
    return [functools.partial(python_counts, path, slow) for path in paths]


def count_unittest(text):
    """Counts from the closing lines of Python's unittest."""
    ran = re.search(r"^Ran (\d+) tests?", text, re.MULTILINE)
    closing = text.rsplit("\n\n", 1)[-1]
    failed = sum(int(number) for number in re.findall(r"(?:failures|errors|unexpected successes)=(\d+)", closing))
    skipped = sum(int(number) for number in re.findall(r"skipped=(\d+)", closing))
    # One test may fail in several subtests, so failures can outnumber the tests.
    return Counts(max(0, int(ran.group(1)) - failed - skipped) if ran else 0, failed, skipped)


def stage_counts(stage):
    """What an earlier stage left; a stage that left nothing counts as one failure."""
    path = RESULTS / f"{stage}.json"
    if not path.is_file():
        return Counts(failed=1, names=[f"{stage}: left no result"])
    return Counts(**json.loads(path.read_text(encoding="utf-8")))


def run_build(arguments):
    """Runs what a build has, as many at a time as cores have to do, the longest first."""
    counts, prefix = Counts(), fixed_addresses() if arguments.fixed_addresses else arguments.under.split()
    build = arguments.build.resolve()
    if arguments.under:
        os.environ["ROSIN_TEST_EMULATOR"] = arguments.under  # for tests that start programs
    programs = [file for name in PROGRAMS for file in (name, f"{name}.exe") if os.access(build / file, os.X_OK)]
    if not programs:
        counts.fail(f"{arguments.build}: no test program")
    tests = arguments.filter or (SLOW_TESTS if arguments.slow else EVERYDAY_TESTS if arguments.everyday else None)
    runs = [functools.partial(run_program, build / name, prefix, tests, *part)
            for name in programs for part in parts_of(name, arguments)]
    if arguments.python:
        os.environ["ROSIN_TEST_BUILD"] = str(build)  # for tests that look at the build itself
        runs = python_runs(PYTHON_FOLDERS, arguments.slow) + runs
    if arguments.devices:
        runs = device_runs(build, prefix, arguments.slow) + runs
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() + 1) as pool:  # those of ranks mostly wait
        for part in pool.map(lambda run: run(), runs):
            counts.add(part)
    return counts


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--stage", required=True)
    parser.add_argument("--build", type=pathlib.Path)
    parser.add_argument("--filter", help="GoogleTest's filter")
    parser.add_argument("--everyday", action="store_true", help="leave out what --slow runs")
    parser.add_argument("--slow", action="store_true", help="run slow tests alone")
    parser.add_argument("--python", action="store_true", help="run the *_test.py files too")
    parser.add_argument("--devices", action="store_true", help="run the op suite on the devices of plug-ins too")
    parser.add_argument("--under", default="", help="the command that runs the programs, an emulator for one")
    parser.add_argument("--shards", type=int, default=1, help="how many parts a program's tests run in")
    parser.add_argument("--third", type=int, choices=range(3), help="of the op suite only this third of the tests")
    parser.add_argument("--fixed-addresses", action="store_true", help="switch address randomisation off")
    parser.add_argument("--counted", nargs=2, type=int, metavar=("PASSED", "FAILED"))
    parser.add_argument("--left-out", metavar="REASON")
    parser.add_argument("--failed-names", nargs="*", default=[], help="what failed, for --counted")
    parser.add_argument("--sum", nargs="+", metavar="STAGE")
    arguments = parser.parse_args()
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / f"{arguments.stage}.json").unlink(missing_ok=True)
    counts = Counts()
    if arguments.build:
        counts.add(run_build(arguments))
    if arguments.counted:
        counts.add(Counts(*arguments.counted, names=arguments.failed_names))
    if arguments.left_out:
        counts.skipped += 1
        print(f"{arguments.stage}: SKIPPED: {arguments.left_out}")
    for stage in arguments.sum or []:
        counts.add(stage_counts(stage))
    (RESULTS / f"{arguments.stage}.json").write_text(json.dumps(vars(counts)), encoding="utf-8")
    for name in counts.names:
        print(f"failed: {name}")
    print(f"{arguments.stage}: {counts}" if arguments.stage in PARTS else counts)
    return 1 if counts.failed else 0


if __name__ == "__main__":
    sys.exit(main())
