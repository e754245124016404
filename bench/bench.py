#!/usr/bin/env python3
"""Ours beside each peer for the same work, in one run: python3 bench/bench.py [names] [--json FILE] [--results FILE]
[--quick] [--sittings FILE]. README.md says how a number is made. Read next: workloads.py (what is run), sides.py (our
programs and the peers' processes), goals.py (what is judged), report.py (what is printed)."""
import argparse
import dataclasses
import json
import os
import pathlib
import platform
import re
import statistics
import subprocess
import sys
import time

import goals
import inputs
import report
import sections
import workloads
from sides import BUILD, Failure, Ours, Servers, Setup

PACKAGES = {"torch": ["numpy", "torch"], "jax": ["numpy", "jax"], "mlx": ["numpy", "mlx[cpu]"]}
MODULES = {"mlx": "mlx.core"}  # where a peer's is not its name
MODES = {"torch": ["eager", "compile", "compile max-autotune"], "jax": ["jit"], "mlx": ["eager", "compile"]}
QUICK_MODES = {"eager", "compile", "jit"}
LOOKS, ROUNDS, QUICK_ROUNDS = 5, 7, 3  # repeats of a mode to find the best ones, and of those
FINALISTS = 2  # modes of each peer and thread count
FAR = 5  # times the fastest of a thread count: what takes longer is looked at once and is in no final
REPEAT_MS = 200  # about what a repeat of a peer takes at most
LEAST_STEPS = 2


def setups(workload, quick, missing=()):
    """Ways to run every peer, with OpenMP's default wait policy; of a missing peer one per thread count, for the row
    that says so."""
    layouts = workload.layouts[-1:] if quick else workload.layouts
    found = []
    for peer, modes in ((peer, MODES[peer]) for peer in workload.peers):
        for threads in workload.threads:
            if peer in missing:
                found.append(Setup(peer, "-", "", threads))
                continue
            found += [Setup(peer, mode, layout, threads) for mode in modes
                      if mode in (workload.modes or modes) and (mode in QUICK_MODES or not quick)
                      for layout in (layouts[-1:] if peer == "mlx" else layouts)]
    return found


def with_waits(setup):
    """The same under the other wait policies, where they matter: JAX has no OpenMP, one thread never waits."""
    if setup.peer != "torch" or setup.threads == 1:
        return []
    return [dataclasses.replace(setup, wait=wait) for wait in ("ACTIVE", "PASSIVE")]


@dataclasses.dataclass(eq=False)
class Trial:
    """One setup of a peer on one set of inputs; measure() does a repeat and gives the time of a step, and that of all
    threads. Times of finals replace those of looks."""
    setup: Setup
    measure: object = None
    ms: list = dataclasses.field(default_factory=list)
    cpu_ms: list = dataclasses.field(default_factory=list)
    notes: list = dataclasses.field(default_factory=list)

    def middle(self):
        return middle(self.ms)

    def repeat(self):
        """Adds a repeat; a failure ends the trial and becomes a note."""
        try:
            if self.measure:
                for times, found in zip((self.ms, self.cpu_ms), self.measure()):
                    times.append(found)
        except Failure as failure:
            self.note(str(failure))
            self.measure = None

    def forget(self):
        self.ms, self.cpu_ms = [], []

    def note(self, text):
        if text not in self.notes:
            self.notes.append(text)


def in_turn(trials, rounds):
    for _ in range(rounds):
        for trial in trials:
            trial.repeat()


def best_of(trials, count):
    """The fastest of each peer and thread count."""
    return report.winners(trials, lambda t: (t.setup.peer, t.setup.threads), Trial.middle, count)


def in_reach(trials):
    """Those that have a time, at most FAR times the least of their thread count."""
    known = [t for t in trials if t.ms]
    best = {}
    for trial in known:
        best[trial.setup.threads] = min(trial.middle(), best.get(trial.setup.threads, trial.middle()))
    return [t for t in known if t.middle() <= FAR * best[t.setup.threads]]


class Task:
    """One workload at one set of sizes: our programs, and the trials of the peers."""

    def __init__(self, bench, workload, name, sizes):
        self.bench, self.workload, self.name = bench, workload, name
        self.inputs = inputs.write_inputs(workload, sizes, BUILD / "bench" / "inputs" / name)
        self.trials = []
        self.ours = {n: Trial(Setup("ours", "", "", n)) for n in workload.threads}
        for threads, trial in self.ours.items():
            program = Ours(bench.programs, workload, threads, self.inputs)
            try:
                bench.records[name, threads] = program.run()
                trial.measure = lambda program=program: program.times()
            except Failure as failure:
                trial.note(str(failure))

    def open(self, setup):
        """A new trial whose losses have been compared."""
        trial = Trial(setup)
        self.trials.append(trial)
        try:
            if setup.peer in self.bench.missing:
                raise Failure(self.bench.missing[setup.peer])
            trial.measure = self.first_step(trial) if self.workload.first_step else self.steady(trial)
        except Failure as failure:
            trial.note(str(failure))
        return trial

    def first_step(self, trial):
        def measure():
            session, _ = self.bench.servers.fresh_session(self.workload, self.inputs, trial.setup)
            self.compare(trial, session)
            return session.first_ms, None
        return measure

    def steady(self, trial):
        session = self.bench.servers.session(self.workload, self.inputs, trial.setup)
        self.compare(trial, session)
        steps = LEAST_STEPS
        for _ in range(2):  # warm-up, and a better guess
            steps = min(self.workload.steps, max(LEAST_STEPS, int(REPEAT_MS / session.repeat(steps)[0])))
        return lambda: session.repeat(steps)

    def compare(self, trial, session):
        record = self.bench.records.get((self.name, trial.setup.threads))
        is_known = record and self.workload.alike
        difference = report.loss_difference(record["losses"], session.losses) if is_known else 0
        if difference > self.workload.tolerance:
            trial.note(f"LOSSES DIFFER by {difference:.1e}")

    def look(self, quick):
        """Finds the best modes: the finalists. All are looked at in turn, so that a noise hits them alike."""
        once = quick or self.workload.first_step
        trials = [self.open(setup) for setup in setups(self.workload, quick, self.bench.missing)]
        in_turn(trials, 1)
        in_turn(in_reach(trials), 0 if once else LOOKS - 1)
        fastest = sorted((t for t in trials if t.ms and with_waits(t.setup)), key=Trial.middle)[:0 if quick else 2]
        in_turn([self.open(setup) for trial in fastest for setup in with_waits(trial.setup)], LOOKS)
        return best_of(in_reach(self.trials), 1 if once else FINALISTS)

    def final(self, finalists, rounds):
        """Repeats in the order ours, a peer, another, ours, ...; returns the best of each peer and thread count."""
        for threads, ours in self.ours.items():
            beside = [t for t in finalists if t.setup.threads == threads]
            for trial in beside:
                trial.forget()
            in_turn([ours, *beside], rounds)
        return best_of(finalists, 1)

    def rows(self):
        for trial in self.trials:
            ours = self.ours[trial.setup.threads]
            yield report.make_row(self.name, trial.setup.threads, trial.setup.peer, trial.setup.label(), ours.middle(),
                                  trial.middle(), "; ".join(ours.notes + trial.notes), len(trial.ms),
                                  middle(ours.cpu_ms), middle(trial.cpu_ms))


class Sittings:
    """What runs before this one have measured, by workload, in a file: a long bench needs no single quiet hour. Each
    workload is measured in one of them, both sides together."""

    def __init__(self, path):
        self.path, self.found = path, {}
        if path and path.exists():
            self.found = json.loads(path.read_text())

    def take(self, name, bench):
        """Whether the workload was measured: gives its rows to the bench."""
        kept = self.found.get(name)
        if not kept:
            return False
        bench.rows += kept["rows"]
        bench.records.update({(name, threads): record for name, threads, record in kept["records"]})
        bench.beginnings += kept["beginnings"]
        bench.minutes += kept["minutes"]
        bench.load = max(bench.load, kept["load"])
        bench.servers.versions.update(kept["versions"])
        return True

    def keep(self, name, **kept):
        if not self.path:
            return
        self.found[name] = kept
        fresh = self.path.with_suffix(".new")
        fresh.write_text(json.dumps(self.found, indent=1) + "\n")
        fresh.replace(self.path)


class Bench:
    def __init__(self, args, servers, missing):
        self.programs, self.quick, self.servers, self.missing = args.programs, args.quick, servers, missing
        self.rounds = QUICK_ROUNDS if args.quick else ROUNDS
        self.rows, self.records, self.beginnings, self.minutes, self.load = [], {}, [], 0, 0
        self.sittings = Sittings(args.sittings)

    def measure(self, workload):
        """Runs a workload, or takes what is known of it."""
        if self.sittings.take(workload.name, self):
            return
        rows, beginnings, started, load = len(self.rows), len(self.beginnings), time.monotonic(), busy()
        self.workload(workload)
        minutes = (time.monotonic() - started) / 60
        self.minutes, self.load = self.minutes + minutes, max(self.load, load)
        records = [[name, threads, record] for (name, threads), record in self.records.items()
                   if name in (workload.name, workload.name + goals.PRIME)]
        self.sittings.keep(workload.name, rows=self.rows[rows:], records=records,
                           beginnings=self.beginnings[beginnings:], minutes=minutes, load=load,
                           versions=self.servers.versions)

    def workload(self, workload):
        if reason := lacking(workload):
            self.rows += [report.make_row(workload.name, n, "-", "-", note=reason) for n in workload.threads]
            return
        task = Task(self, workload, workload.name, workload.sizes)
        best = task.final(task.look(self.quick), self.rounds)
        tasks = [task]
        if workload.prime:
            prime = Task(self, workload, workload.name + goals.PRIME, workloads.prime_variant(workload.sizes))
            prime.final([prime.open(trial.setup) for trial in best], self.rounds)
            tasks.append(prime)
        self.servers.forget()
        if workload.loss and not workload.first_step:
            self.beginnings += [self.beginning(task, trial.setup) for trial in task.trials if trial.setup.threads == 1
                                and trial.ms and trial.setup.layout == workload.layouts[-1]]
        for row in [row for task in tasks for row in task.rows()]:
            self.rows.append(row)
            print(*(report.number(v) if isinstance(v, float) else v for v in row.values()), file=sys.stderr, flush=True)

    def beginning(self, task, setup):
        """What the first step of a peer takes, and the memory of it and a few more, in a process of its own."""
        ours = self.records.get((task.name, setup.threads), {})
        try:
            session, peak = self.servers.fresh_session(task.workload, task.inputs, setup)
            return report.make_beginning(task.name, setup, ours, session.first_ms, peak)
        except Failure as failure:
            return report.make_beginning(task.name, setup, ours, note=str(failure))


def install_peers(venv):
    """Makes the environment where it is missing; returns peer -> why it cannot be used, for those that cannot."""
    python = venv / "bin" / "python"
    missing = {}
    if not python.exists():
        made = subprocess.run([sys.executable, "-m", "venv", str(venv)], capture_output=True, text=True)
        if made.returncode:
            return {peer: "no venv: " + report.last_line(made.stdout + made.stderr) for peer in PACKAGES}
    for peer, packages in PACKAGES.items():
        module = MODULES.get(peer, peer)
        if imports(python, module):
            continue
        print(f"installing {peer} into {venv}", file=sys.stderr)
        pip = subprocess.run([str(python), "-m", "pip", "install", "-q", *packages], capture_output=True, text=True)
        if not imports(python, module):
            missing[peer] = "not installed: " + report.last_line(pip.stderr)
    return missing


def imports(python, module):
    return subprocess.run([str(python), "-c", f"import {module}"], capture_output=True).returncode == 0


def middle(values):
    known = [v for v in values if v is not None]
    return statistics.median(known) if known else None


def busy(seconds=1.0):
    """The part of all processors' time that other processes take now."""
    def ticks():
        fields = [int(f) for f in open("/proc/stat").readline().split()[1:9]]
        return sum(fields), fields[3] + fields[4]
    before = ticks()
    time.sleep(seconds)
    total, idle = (b - a for a, b in zip(before, ticks()))
    return 1 - idle / total if total else 0.0


def cpu_facts():
    """Of the last processor, by the names of /proc/cpuinfo."""
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    return {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines) if value}


def lacking(workload):
    """Why the workload is left out on this processor; empty where it is not."""
    if not workload.needs or set(workload.needs) & set(cpu_facts().get("flags", "").split()):
        return ""
    return f"SKIPPED: the processor has none of {', '.join(workload.needs)}"


def processor():
    facts = cpu_facts()
    model = facts.get("model name", platform.machine())
    wide = " with AVX-512" if "avx512f" in facts.get("flags", "") else ""
    return f"{model}{wide}, {len(os.sched_getaffinity(0))} processors"


def options():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=[], help="of " + " ".join(workloads.TABLE) + "; default all")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="also write the rows there")
    parser.add_argument("--results", type=pathlib.Path, metavar="FILE", help="also write the page of results there")
    parser.add_argument("--sittings", type=pathlib.Path, metavar="FILE",
                        help="keep what is measured there, and measure only what does not stand there yet")
    parser.add_argument("--quick", action="store_true", help="less repeats, the usual modes only")
    parser.add_argument("--programs", type=pathlib.Path, default=BUILD / "release" / "bench",
                        help="folder of the C++ programs bench_c1, bench_c3, ...")
    args = parser.parse_args()
    by_name = {name.lower(): name for name in workloads.TABLE}
    for name in args.names:
        if name.lower() not in by_name:
            parser.error(f"no workload {name}; there are {' '.join(workloads.TABLE)}")
    args.names = [by_name[name.lower()] for name in args.names] or list(workloads.TABLE)
    return args


def main():
    args = options()
    venv = pathlib.Path(os.environ.get("ROSIN_BENCH_VENV", BUILD / "venv")).absolute()
    missing = install_peers(venv)
    with Servers(venv) as servers:
        bench = Bench(args, servers, missing)
        for name in args.names:
            bench.measure(workloads.TABLE[name])
    if bench.load > report.MOST_LOAD:
        print("warning: " + report.load_warning(bench.load), file=sys.stderr)
    ours = re.search(r"project\(rosin VERSION ([\d.]+)", (BUILD.parent / "CMakeLists.txt").read_text())
    run = report.Run(bench.rows, bench.records, bench.beginnings, [workloads.TABLE[name] for name in args.names],
                     machine=processor(), versions={"rosin": ours[1], **servers.versions}, load=bench.load,
                     command=" ".join(["python3 bench/bench.py", *("FILE" if word == str(args.sittings) else word
                                                                   for word in sys.argv[1:])]),
                     minutes=bench.minutes)
    print(report.text(run))
    if args.json:
        args.json.write_text(json.dumps(bench.rows, indent=1) + "\n")
    if args.results:
        old = args.results.read_text(encoding="utf-8") if args.results.exists() else ""
        args.results.write_text(sections.carried_over(report.page(run), old), encoding="utf-8")
    return 1 if any("LOSSES DIFFER" in row["note"] for row in bench.rows) else 0


if __name__ == "__main__":
    sys.exit(main())
