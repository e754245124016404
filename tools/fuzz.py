"""Runs the fuzz targets of tests/fuzz, two at a time, and prints a row for each: seconds, executions, inputs, coverage.

Called by `./run fuzz [TARGET...] [--seconds N]`. Seeds are what rosin's writers make, the real files of ROSIN_FILES
(else ../shared/files) and, for ONNX, the node cases of Debian's libonnx-testdata; what is found stays in
build/fuzz/TARGET for the next run. An input that fails is named, and kept in build/fuzz/TARGET-failed.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
FILES = pathlib.Path(os.environ.get("ROSIN_FILES", ROOT.parent / "shared" / "files"))
# What counts as a test goes the same way each time: a change fails it, not chance.
REPEATABLE = ("-seed=1", "-runs=10000")
CASES = pathlib.Path("/usr/share/libonnx-testdata/data/node")
TARGETS = ("safetensors", "checkpoint", "bson", "jld2", "npy", "npz", "pt", "onnx", "toml", "idx", "image")
LARGEST = 20_000  # bytes of a seed; larger ones are slow and show little more
SETTINGS = {"ASAN_OPTIONS": "detect_leaks=1:allocator_may_return_null=1", "UBSAN_OPTIONS": "print_stacktrace=1",
            "LSAN_OPTIONS": f"suppressions={ROOT / 'cmake' / 'lsan.supp'}:print_suppressions=0",
            "ROSIN_NUM_THREADS": "1", "ROSIN_LOG": "none"}


def add_seeds(program, target, folder):
    """Writes the seeds of a target into an empty folder."""
    subprocess.run([program, "--seeds", target, folder], check=True)
    found = list(FILES.rglob(f"*.{target}")) if FILES.is_dir() else []
    if target == "onnx" and CASES.is_dir():
        found += CASES.glob("*/model.onnx")
    for number, path in enumerate(sorted(found)):
        if path.stat().st_size <= LARGEST:
            shutil.copyfile(path, folder / f"real-{number}")


def fuzz(program, target, seconds, home, more):
    """Runs one target and gives its row, and what it printed where it failed."""
    corpus, seeds, failed = home / target, home / f"{target}-seeds", home / f"{target}-failed"
    shutil.rmtree(seeds, ignore_errors=True)
    for folder in (corpus, seeds, failed):
        folder.mkdir(parents=True, exist_ok=True)
    add_seeds(program, target, seeds)
    command = [program, corpus, seeds, f"-max_total_time={seconds}", "-timeout=10", "-rss_limit_mb=2048",
               f"-max_len={LARGEST}", f"-artifact_prefix={failed}/", "-print_final_stats=1", "-verbosity=1", *more]
    done = subprocess.run(command, cwd=home, env={**os.environ, **SETTINGS, "FUZZ_TARGET": target}, check=False,
                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                          errors="replace")
    return row_of(target, seconds, done.stderr), "" if done.returncode == 0 else done.stderr


def row_of(target, seconds, log):
    """What libFuzzer says at the end: executions, how many inputs it kept, and edges of the code that they reach."""
    executions = re.findall(r"stat::number_of_executed_units:\s*(\d+)", log)
    inputs = re.findall(r"cov: (\d+) .*?corp: (\d+)/", log)
    edges, kept = inputs[-1] if inputs else ("0", "0")
    return f"{target:12} {seconds:6} s {int(executions[-1]) if executions else 0:11} executions " \
           f"{kept:>6} inputs {edges:>6} edges"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=" ".join(TARGETS))
    parser.add_argument("--program", type=pathlib.Path, required=True)
    parser.add_argument("--seconds", type=int, default=30, help="for each target")
    parser.add_argument("--counted", action="store_true", help="count each target as a test of the stage fuzz")
    options = parser.parse_args()
    unknown = set(options.targets) - set(TARGETS)
    if unknown:
        parser.error(f"no target called {', '.join(sorted(unknown))}; there are {' '.join(TARGETS)}")
    home, failed = ROOT / "build" / "fuzz", []
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        targets = options.targets or TARGETS
        program, more = options.program.resolve(), REPEATABLE if options.counted else ()
        runs = pool.map(lambda target: fuzz(program, target, options.seconds, home, more), targets)
        for target, (row, log) in zip(targets, runs):
            print(row + (" FAILED" if log else ""), flush=True)
            if log:
                failed.append(target)
                print("\n".join(log.splitlines()[-60:]))
    if options.counted:
        command = [sys.executable, ROOT / "tools" / "run_tests.py", "--stage", "fuzz", "--counted",
                   str(len(targets) - len(failed)), str(len(failed))]
        names = [f"fuzz: {target}" for target in failed]
        return subprocess.run(command + (["--failed-names", *names] if names else []), check=False).returncode
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
