#!/usr/bin/env python3
"""A model of what data-parallel training costs: steps by N ranks, from the step of one rank and the sums of a link.

    bench/scaling.py                              # 8 and 64 GPUs, from the steps of one and the assumptions below
    bench/scaling.py --work GPT-2=60.2:248 --ranks 8 16 256 --link sums.json
    bench/scaling.py --check [--repeats N]        # this machine: predicted and measured beside each other

A work is NAME=MILLISECONDS:MEGABYTES, the step of one rank with its own batch and the gradients' bytes; the file of a
link has the lines that bench_collectives prints. Every rank has a batch of its own (weak scaling).

What the model takes for granted:
- A sum over N ranks takes t(bytes) = wait + bytes * 2 (N - 1) / N / speed: what a ring or a reduce-scatter with an
  allgather moves. Between measured sizes t is a line; with other numbers of ranks the wait grows as log2(N).
- More ranks than a node has: reduce-scatter in the node, a sum of 1 / node of the bytes between nodes by as many
  ranks at once as a node has, allgather in the node.
- Gradients are final one after another, evenly over the reverse walk, which takes 2/3 of the step, and go in messages
  of 25 MiB, the first of 1 MiB. "Beside" starts each as soon as it is full, as rosin does; "after" when the walk has
  ended, as where somebody looks at the gradients first, or (--check) where sums and walk share the processors. Nothing
  slows down what it runs beside, no rank is later than others, data are always there: what it says is an upper bound.
- GPUs: steps as measured on one H200 (G5, GPT-2 124M with 32 x 1024 tokens, and G4, ResNet-50 with 256 pictures, of
  results/gpu-cuda-2026-11-27.json); gradients sent in bfloat16, 248 and 51 MB. Links as others give them, as none of
  several GPUs has been measured: 15 us and 481 GB/s in a node of 8 (NVLink, NCCL's bus bandwidth), 30 us and 40 GB/s a
  rank between nodes (one 400 Gb/s adapter each, at 80 %).
"""
import argparse
import dataclasses
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import sections

HERE = pathlib.Path(__file__).resolve().parent
BUILD = HERE.parent / "build" / "release"
ON_GPU = HERE / "results" / "gpu-cuda-2026-11-27.json"
BUCKET, FIRST = 25 * 2**20, 2**20
REVERSE_SHARE = 2 / 3
NODE = 8  # ranks


@dataclasses.dataclass
class Link:
    """Seconds of sums by some number of ranks: {bytes: seconds}, at least two of them."""
    ranks: int
    points: dict

    @staticmethod
    def of(wait, speed, ranks):
        """From seconds and bytes per second as nccl-tests gives them (bus bandwidth)."""
        large = 2**30
        return Link(ranks, {0: wait, large: wait + large * moved(ranks) / speed})

    @staticmethod
    def read(path):
        rows = [json.loads(line) for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines()]
        return Link(rows[0]["ranks"], {row["bytes"]: row["seconds"] for row in rows})

    def seconds(self, size, ranks):
        if ranks == 1:
            return 0.0
        wait = self.points[min(self.points)]
        moving = max(self.between(size) - wait, 0.0)
        return wait * math.log2(ranks) / math.log2(self.ranks) + moving * moved(ranks) / moved(self.ranks)

    def between(self, size):
        """On the line through the two measured sizes that are next to it."""
        known = sorted(self.points)
        above = next((i for i, other in enumerate(known) if other >= size), len(known) - 1)
        a, b = known[max(above, 1) - 1], known[max(above, 1)]
        return self.points[a] + (self.points[b] - self.points[a]) * (size - a) / (b - a)


def moved(ranks):
    """Of each byte, what a rank sends in the best of sums."""
    return 2 * (ranks - 1) / ranks


@dataclasses.dataclass
class Machine:
    inside: Link
    between: Link
    node: int = NODE

    def seconds(self, size, ranks):
        if ranks <= self.node:
            return self.inside.seconds(size, ranks)
        outside = self.between.seconds(size / self.node, math.ceil(ranks / self.node))
        return self.inside.seconds(size, self.node) + outside


@dataclasses.dataclass
class Work:
    name: str
    seconds: float
    size: float  # bytes of gradients

    def buckets(self):
        first = min(FIRST, self.size)
        count = math.ceil((self.size - first) / BUCKET)
        return [first] + [(self.size - first) / count for _ in range(count)]


def after(work, machine, ranks):
    """The step when the sums follow the reverse walk."""
    return work.seconds + sum(machine.seconds(size, ranks) for size in work.buckets())


def beside(work, machine, ranks):
    """The step when each message goes as soon as its gradients are final."""
    full, end = 0.0, 0.0
    for size in work.buckets():
        full += size
        ready = work.seconds * (1 - REVERSE_SHARE + REVERSE_SHARE * full / work.size)
        end = max(end, ready) + machine.seconds(size, ranks)
    return max(end, work.seconds)


def step_on_gpu(workload):
    """Seconds of a step, as the newest run in the file has it."""
    rows = json.loads(ON_GPU.read_text(encoding="utf-8"))["rows"]
    return [row["ours_ms"] for row in rows if row["workload"] == workload][-1] * 1e-3


GPUS = Machine(Link.of(15e-6, 481e9, NODE), Link.of(30e-6, 40e9, NODE))
WORKS = {"G5": ("GPT-2 124M, bfloat16", 248e6), "G4": ("ResNet-50, bfloat16", 51e6)}  # bytes of gradients


def works_of_gpus():
    return [Work(name, step_on_gpu(workload), size) for workload, (name, size) in WORKS.items()]


def predicted(works, machine, counts):
    rows = []
    for work in works:
        for ranks in counts:
            steps = [step(work, machine, ranks) for step in (after, beside)]
            rows.append((work.name, str(ranks), f"{machine.seconds(work.size, ranks) * 1e3:.3g}",
                         *(f"{step * 1e3:.4g} ({work.seconds / step:.1%})" for step in steps)))
    return sections.table(("work", "ranks", "sum, ms", "sums after, ms (kept)", "sums beside, ms (kept)"), rows)


# --- This machine: what is predicted for two ranks, and what they take.

# By the names of bench_ranks: the batch of a rank, parameters.
PARAMETERS = {"C3": (128, 44_426), "C4": (128, 203_530), "C5": (512, 669_706), "GPT": (12, 809_856)}


def run_ranks(ranks, *command):
    return subprocess.run([str(part) for part in (BUILD / "tools" / "rosin", "run", "-n", ranks, *command)],
                          env={**os.environ, "ROSIN_NUM_THREADS": "1"}, check=True, capture_output=True,
                          text=True).stdout


def measured_step(name, ranks, repeats):
    said = run_ranks(ranks, BUILD / "bench" / "bench_ranks", name, PARAMETERS[name][0] * ranks, 50, repeats)
    return statistics.median(float(line.split()[0]) for line in said.splitlines())


def checked(repeats):
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        file.write(run_ranks(2, BUILD / "bench" / "bench_collectives", BUILD / "rosin" / "librosin_comm_local.so"))
        file.flush()
        link = Link.read(file.name)
    rows = []
    for name, (_, parameters) in PARAMETERS.items():
        one, two = (measured_step(name, ranks, repeats) for ranks in (1, 2))
        said = after(Work(name, one, 4 * parameters), Machine(link, link), 2)
        rows.append((name, f"{one * 1e3:.4g}", f"{said * 1e3:.4g}", f"{two * 1e3:.4g}", f"{said / two:.2f}"))
    return sections.table(("work", "1 rank, ms", "2 ranks predicted", "2 ranks measured", "ratio"), rows)


def work_of(text):
    name, _, figures = text.rpartition("=")
    milliseconds, _, megabytes = figures.partition(":")
    try:
        return Work(name, float(milliseconds) * 1e-3, float(megabytes) * 1e6)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"a work is NAME=MILLISECONDS:MEGABYTES, not {text!r}") from error


def main(words):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=work_of, action="append", metavar="NAME=MS:MB")
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 8, 64])
    parser.add_argument("--link", type=pathlib.Path, help="sums in a node, as bench_collectives prints them")
    parser.add_argument("--check", action="store_true", help="measure this machine beside what is predicted for it")
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args(words)
    if given.check:
        table = checked(given.repeats)
    else:
        machine = dataclasses.replace(GPUS, inside=Link.read(given.link)) if given.link else GPUS
        table = predicted(given.work or works_of_gpus(), machine, given.ranks)
    print(table, end="")


if __name__ == "__main__":
    main(sys.argv[1:])
