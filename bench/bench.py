#!/usr/bin/env python3
"""Ours beside each peer for the same work, in one run: python3 bench/bench.py [names] [--json FILE] [--quick].
README.md says how a number is made. Read next: workloads.py (what is run), report.py (what is printed)."""
import argparse
import dataclasses
import json
import os
import pathlib
import platform
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import report
import workloads

HERE = pathlib.Path(__file__).resolve().parent
BUILD = HERE.parent / "build"
PACKAGES = {"torch": ["numpy", "torch"], "jax": ["numpy", "jax"]}
MODES = {"torch": ["eager", "compile", "compile reduce-overhead", "compile max-autotune"], "jax": ["jit"]}
QUICK_MODES = {"eager", "compile", "jit"}
START_SECONDS, REPEAT_SECONDS = 600, 120


class Failure(Exception):
    """One side could not be run; the text goes into the row."""


@dataclasses.dataclass(frozen=True)
class Setup:
    """How a peer is run. wait is the OpenMP wait policy, empty for its default."""
    peer: str
    mode: str
    layout: str
    threads: int
    wait: str

    def label(self):
        return " ".join(filter(None, (self.mode, self.layout, self.wait.lower())))


def setups(workload, quick, missing=()):
    """Every way to run every peer; of a peer that is missing one per thread count, for the row that says so."""
    layouts = workload.layouts[-1:] if quick else workload.layouts
    found = []
    for peer, modes in MODES.items():
        for threads in workload.threads:
            if peer in missing:
                found.append(Setup(peer, "-", "", threads, ""))
                continue
            waits = ("", "ACTIVE", "PASSIVE") if peer == "torch" and threads > 1 and not quick else ("",)
            found += [Setup(peer, mode, layout, threads, wait) for mode in modes
                      if mode in QUICK_MODES or not quick for layout in layouts for wait in waits]
    return found


def install_peers(venv):
    """Makes the environment where it is missing; returns peer -> why it cannot be used, for those that cannot."""
    python = venv / "bin" / "python"
    missing = {}
    if not python.exists():
        made = subprocess.run([sys.executable, "-m", "venv", str(venv)], capture_output=True, text=True)
        if made.returncode:
            return {peer: "no venv: " + report.last_line(made.stdout + made.stderr) for peer in PACKAGES}
    for peer, packages in PACKAGES.items():
        if imports(python, peer):
            continue
        print(f"installing {peer} into {venv}", file=sys.stderr)
        pip = subprocess.run([str(python), "-m", "pip", "install", "-q", *packages], capture_output=True, text=True)
        if not imports(python, peer):
            missing[peer] = "not installed: " + report.last_line(pip.stderr)
    return missing


def imports(python, module):
    return subprocess.run([str(python), "-c", f"import {module}"], capture_output=True).returncode == 0


class Ours:
    """The C++ program of a workload; each call is a process of its own, which starts in a few milliseconds."""

    def __init__(self, folder, workload, threads, inputs):
        self.program = folder / f"bench_{workload.name.lower()}"
        self.command = [str(self.program), "--inputs", str(inputs), "--threads", str(threads),
                        "--steps", str(workload.steps), "--repeats", "1"]

    def run(self):
        """The program's record: ms (one per repeat), losses."""
        if not self.program.exists():
            raise Failure(f"{self.program.name} is not built")
        try:
            done = subprocess.run(self.command, capture_output=True, text=True, timeout=REPEAT_SECONDS)
        except subprocess.TimeoutExpired:
            raise Failure(f"ours: no answer in {REPEAT_SECONDS} s") from None
        if done.returncode:
            raise Failure(f"ours: exit status {done.returncode}: " + report.last_line(done.stderr))
        return json.loads(done.stdout.splitlines()[-1])


class Peer:
    """A peer's process, stopped while it has nothing to do, for its idle threads may spin."""

    def __init__(self, venv, workload, setup, inputs):
        script = HERE / f"peer_{setup.peer}.py"
        command = [str(venv / "bin" / "python"), str(script), "--workload", workload.name, "--inputs", str(inputs),
                   "--mode", setup.mode, "--layout", setup.layout, "--threads", str(setup.threads)]
        self.errors = tempfile.TemporaryFile("w+")
        self.caches = tempfile.TemporaryDirectory() if workload.first_step else None
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True,
            env=self.environment(setup), start_new_session=True,
            preexec_fn=(lambda: limit_processors(setup.threads)) if setup.peer == "jax" else None)

    def environment(self, setup):
        cache = self.caches.name if self.caches else str(BUILD / "bench" / "inductor")
        env = dict(os.environ, OMP_NUM_THREADS=str(setup.threads), CUDA_VISIBLE_DEVICES="", JAX_PLATFORMS="cpu",
                   TORCHINDUCTOR_CACHE_DIR=cache, PYTHONDONTWRITEBYTECODE="1")
        env.pop("OMP_WAIT_POLICY", None)
        return env | ({"OMP_WAIT_POLICY": setup.wait} if setup.wait else {})

    def answer(self, seconds):
        """The next record; the process is stopped behind it."""
        timer = threading.Timer(seconds, self.kill)
        timer.start()
        line = self.process.stdout.readline()
        timer.cancel()
        if not line:
            self.process.wait()
            self.errors.seek(0)
            raise Failure("failed: " + report.last_line(self.errors.read()))
        os.killpg(self.process.pid, signal.SIGSTOP)
        return json.loads(line)

    def ready(self):
        return self.answer(START_SECONDS)

    def repeat(self):
        os.killpg(self.process.pid, signal.SIGCONT)
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self.answer(REPEAT_SECONDS)["ms"]

    def kill(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass  # it ended by itself

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()
        self.process.wait()
        self.process.stdout.close()
        self.errors.close()
        if self.caches:
            self.caches.cleanup()


def limit_processors(count):
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:count])


class Bench:
    def __init__(self, args):
        self.venv = pathlib.Path(os.environ.get("ROSIN_BENCH_VENV", BUILD / "venv")).resolve()
        self.programs, self.quick = args.programs, args.quick
        self.repeats = 3 if args.quick else 5
        self.missing = install_peers(self.venv)
        self.rows, self.versions, self.records = [], {}, {}

    def workload(self, workload):
        inputs = workloads.write_inputs(workload, workload.sizes, self.inputs(workload.name))
        tried = {}
        for setup in setups(workload, self.quick, self.missing):
            tried[id(self.measure(workload, workload.name, setup, inputs))] = setup
        sizes = workloads.prime_variant(workload.sizes)
        inputs = workloads.write_inputs(workload, sizes, self.inputs(workload.name + report.PRIME))
        for row in report.winners([r for r in self.rows if r["workload"] == workload.name]):
            self.measure(workload, workload.name + report.PRIME, tried[id(row)], inputs)

    @staticmethod
    def inputs(name):
        return BUILD / "bench" / "inputs" / name

    def measure(self, workload, name, setup, inputs):
        """One row: medians over repeats in the order ours, peer, ours, peer."""
        ours, peer, notes = [], [], []
        program = Ours(self.programs, workload, setup.threads, inputs)
        try:
            self.interleave(workload, name, setup, inputs, program, ours, peer, notes)
        except Failure as failure:
            notes.append(str(failure))
        row = report.make_row(name, setup.threads, setup.peer, setup.label(), middle(ours), middle(peer),
                              "; ".join(notes))
        self.rows.append(row)
        print(*(report.number(v) if isinstance(v, float) else v for v in row.values()), file=sys.stderr, flush=True)
        return row

    def interleave(self, workload, name, setup, inputs, program, ours, peer, notes):
        try:
            record = program.run()  # warm-up
            self.records[name, setup.threads] = record
        except Failure as failure:
            notes.append(str(failure))
            record = None
        if setup.peer in self.missing:
            for _ in range(self.repeats):
                ours += program.run()["ms"] if record else []
            raise Failure(self.missing[setup.peer])
        if workload.first_step:
            for _ in range(self.repeats):
                ours += program.run()["ms"] if record else []
                with Peer(self.venv, workload, setup, inputs) as fresh:
                    peer.append(self.check(fresh.ready(), record, setup, notes))
            return
        with Peer(self.venv, workload, setup, inputs) as running:
            self.check(running.ready(), record, setup, notes)
            running.repeat()  # warm-up
            for _ in range(self.repeats):
                ours += program.run()["ms"] if record else []
                peer.append(running.repeat())

    def check(self, ready, record, setup, notes):
        """Notes a difference of the losses; returns the time of the peer's first step."""
        self.versions[setup.peer] = ready["version"]
        difference = report.loss_difference(record["losses"], ready["losses"]) if record else 0
        note = f"LOSSES DIFFER by {difference:.1e}"
        if difference > report.LOSS_TOLERANCE and note not in notes:
            notes.append(note)
        return ready["first_ms"]


def middle(values):
    return statistics.median(values) if values else None


def busy(seconds=1.0):
    """The part of all processors' time that other processes take now."""
    def ticks():
        fields = [int(f) for f in open("/proc/stat").readline().split()[1:9]]
        return sum(fields), fields[3] + fields[4]
    before = ticks()
    time.sleep(seconds)
    total, idle = (b - a for a, b in zip(before, ticks()))
    return 1 - idle / total if total else 0.0


def processor():
    models = [line.partition(":")[2].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")]
    return f"{models[0] if models else platform.machine()}, {len(os.sched_getaffinity(0))} processors"


def options():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=[], help="of " + " ".join(workloads.TABLE) + "; default all")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="also write the rows there")
    parser.add_argument("--quick", action="store_true", help="3 repeats, the usual modes only")
    parser.add_argument("--programs", type=pathlib.Path, default=BUILD / "release" / "bench",
                        help="folder of the C++ programs bench_c1, bench_c3, ...")
    args = parser.parse_args()
    for name in args.names:
        if name.upper() not in workloads.TABLE:
            parser.error(f"no workload {name}; there are {' '.join(workloads.TABLE)}")
    args.names = [name.upper() for name in args.names] or list(workloads.TABLE)
    return args


def closing(bench, names):
    """What stands under the table: one line a workload, then what was measured where."""
    lines = []
    for name in names:
        workload = workloads.TABLE[name]
        lines.append(report.summary(name, workload.about, bench.rows, workload.sizes.get("ops")))
        record = bench.records.get((name, 1), {})
        if "record_ns" in record:
            lines.append(f"    recording alone: {report.number(record['record_ns'])} ns an op")
    lines.append(", ".join([processor(), *(f"{peer} {v}" for peer, v in sorted(bench.versions.items()))]))
    return "\n".join(lines)


def main():
    args = options()
    load = busy()
    if load > 0.05:
        print(f"warning: other processes take {load:.0%} of this machine; the numbers below mean little",
              file=sys.stderr)
    bench = Bench(args)
    for name in args.names:
        bench.workload(workloads.TABLE[name])
    print(report.table(bench.rows), closing(bench, args.names), sep="\n\n")
    if args.json:
        args.json.write_text(json.dumps(bench.rows, indent=1) + "\n")
    return 1 if any("LOSSES DIFFER" in row["note"] for row in bench.rows) else 0


if __name__ == "__main__":
    sys.exit(main())
