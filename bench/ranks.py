#!/usr/bin/env python3
"""Data-parallel training on this machine, ours beside PyTorch DDP over gloo, in one run:
build/venv/bin/python bench/ranks.py [--repeats N] [--results FILE]

One batch, shared out: 1 rank with two threads, then 2 ranks with one thread each. All sides do the same steps with the
same sizes; ours also with a share of the parameters updated by each rank. Then each rank has a batch of its own and one
thread (weak scaling), on 1, 2 and 4 ranks. Every number is the median of the repeats, in which the sides take turns.
Read first: ranks.cpp (our side).
"""
import argparse
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import time

import sections
from bench import processor

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "release"
WORKS = {"C3": (128, 50), "C4": (128, 300), "C5": (512, 50), "GPT": (12, 30)}  # batch, steps
WHAT = {"C3": "LeNet-5 b128", "C4": "MLP 784-256-10 b128", "C5": "MLP 784-512-512-10 b512",
        "GPT": "char-GPT 4L d128 T64 b12"}
DDP = "PyTorch DDP, gloo"
OURS, SHARDED = "rosin", "rosin, shard = true"

PEER = """
import os, sys, time, torch
import torch.distributed as dist
name, batch, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
torch.set_num_threads(int(os.environ["THREADS"]))
dist.init_process_group("gloo", init_method="tcp://127.0.0.1:" + os.environ["PORT"], rank=rank, world_size=ranks)
torch.manual_seed(1)
L, F = torch.nn, torch.nn.functional
class Block(L.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = L.LayerNorm(128), L.LayerNorm(128)
        self.qkv, self.out = L.Linear(128, 384), L.Linear(128, 128)
        self.up, self.down = L.Linear(128, 512), L.Linear(512, 128)
    def forward(self, x):
        q, k, v = (y.unflatten(2, (4, 32)).transpose(1, 2) for y in self.qkv(self.norm1(x)).split(128, 2))
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))
class Gpt(L.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places, self.norm = L.Embedding(65, 128), L.Embedding(64, 128), L.LayerNorm(128)
        self.blocks = L.Sequential(*(Block() for _ in range(4)))
    def forward(self, ids):
        x = self.blocks(self.tokens(ids) + self.places.weight)
        return F.linear(self.norm(x), self.tokens.weight).transpose(1, 2)
if name == "GPT":
    model, shape = Gpt(), (65,)
elif name == "C4":
    model, shape = L.Sequential(L.Linear(784, 256), L.ReLU(), L.Linear(256, 10)), (784,)
elif name == "C5":
    model = L.Sequential(L.Linear(784, 512), L.ReLU(), L.Linear(512, 512), L.ReLU(), L.Linear(512, 10))
    shape = (784,)
else:
    model = L.Sequential(L.Conv2d(1, 6, 5), L.ReLU(), L.MaxPool2d(2), L.Conv2d(6, 16, 5), L.ReLU(), L.MaxPool2d(2),
                         L.Flatten(), L.Linear(256, 120), L.ReLU(), L.Linear(120, 84), L.ReLU(), L.Linear(84, 10))
    shape = (1, 28, 28)
model = L.parallel.DistributedDataParallel(model) if ranks > 1 else model
rule = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
share = batch // ranks
x, y = torch.rand(share, *shape), torch.randint(0, 10, (share,))
if name == "GPT":
    text = torch.randint(0, 65, (share, 65))
    x, y = text[:, :-1], text[:, 1:]
loss_of = L.CrossEntropyLoss()
def step():
    rule.zero_grad(set_to_none=True)
    loss = loss_of(model(x), y)
    loss.backward()
    rule.step()
    return loss.detach()
for _ in range(20):
    step()
dist.barrier()
start, work_start = time.perf_counter(), time.process_time()
for _ in range(steps):
    last = step()
last.item()
took, work = time.perf_counter() - start, torch.tensor(time.process_time() - work_start)
dist.all_reduce(work)
if rank == 0:
    print(took / steps, float(work) / steps, float(last))
dist.destroy_process_group()
"""


def ours(name, batch, ranks, threads, *shard):
    """Seconds of a step, and of processors in a step."""
    command = [BUILD / "tools" / "rosin", "run", "-n", ranks, BUILD / "bench" / "bench_ranks", name, batch,
               WORKS[name][1], 1, *shard]
    done = subprocess.run([str(part) for part in command], env={**os.environ, "ROSIN_NUM_THREADS": str(threads)},
                          check=True, capture_output=True, text=True)
    return [float(text) for text in done.stdout.split()[:2]]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def torchs(name, batch, ranks, threads):
    sides, port = [], str(free_port())
    for rank in range(ranks):
        environment = {**os.environ, "RANK": str(rank), "WORLD_SIZE": str(ranks), "THREADS": str(threads),
                       "OMP_NUM_THREADS": str(threads), "PORT": port}
        sides.append(subprocess.Popen([sys.executable, "-c", PEER, name, str(batch), str(WORKS[name][1])],
                                      env=environment, stdout=subprocess.PIPE, text=True))
    said = [side.communicate()[0] for side in sides]
    return [float(text) for text in said[0].split()[:2]]


def sharded(name, batch, ranks, threads):
    return ours(name, batch, ranks, threads, "shard")


SIDES = {OURS: ours, SHARDED: sharded, DDP: torchs}


def medians(name, setups, repeats):
    """{(side, setup): (ms, CPU ms) of a step}; a setup is (batch of all ranks, ranks, threads of each)."""
    found = {}
    for _ in range(repeats):
        for setup in setups:
            for side, measured in SIDES.items():
                found.setdefault((side, setup), []).append(measured(name, *setup))
    return {key: [statistics.median(times) * 1e3 for times in zip(*results)] for key, results in found.items()}


def shared_out(repeats):
    """One batch by one rank with two threads, and by two with one."""
    rows = []
    for name, (batch, _) in WORKS.items():
        one, two = (batch, 1, 2), (batch, 2, 1)
        found = medians(name, (one, two), repeats)
        for side in SIDES:
            (one_ms, one_cpu), (two_ms, two_cpu) = found[side, one], found[side, two]
            rows.append((f"{name}: {WHAT[name]}", side, f"{one_ms:.4g}", f"{two_ms:.4g}", f"{one_ms / two_ms:.0%}",
                         f"{one_cpu:.4g}", f"{two_cpu:.4g}", f"{found[DDP, two][0] / two_ms:.3g}"))
    head = ("workload", "side", "1 rank x 2 threads, ms", "2 ranks x 1 thread, ms", "kept", "CPU ms of 1",
            "CPU ms of 2", "DDP / this")
    return sections.table(head, rows)


def weak(repeats):
    """As much for each rank, however many there are."""
    rows = []
    for name, (batch, _) in WORKS.items():
        setups = [(batch * ranks, ranks, 1) for ranks in (1, 2, 4)]
        found = medians(name, setups, repeats)
        for side in SIDES:
            times = [found[side, setup] for setup in setups]
            rows.append((f"{name}: {WHAT[name]}", side, *(f"{ms:.4g} ({cpu:.4g})" for ms, cpu in times)))
    return sections.table(("workload, batch of a rank", "side", "1 rank, ms (CPU ms)", "2 ranks", "4 ranks"), rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--results", type=pathlib.Path, metavar="FILE", help="write the section about ranks there")
    arguments = parser.parse_args()
    load, cores = os.getloadavg()[0], len(os.sched_getaffinity(0))
    text = (f"## Ranks\n\n`build/venv/bin/python bench/ranks.py --repeats {arguments.repeats}`, "
            f"{time.strftime('%Y-%m-%d')}: {processor()}, load {load:.1f} at the start. Medians of "
            f"{arguments.repeats}; CPU ms are of all ranks together; `kept` is the speed of two ranks beside that of "
            f"two threads.\n\nOne batch, shared out:\n\n{shared_out(arguments.repeats)}\n"
            f"Weak scaling: a batch for each rank, one thread each. There are {cores} processors, so more ranks than "
            f"that take turns, and {2 * cores} of them can at best take twice as long as {cores}.\n\n"
            f"{weak(arguments.repeats)}")
    print(text)
    if arguments.results:
        sections.write(arguments.results, text)


if __name__ == "__main__":
    main()
