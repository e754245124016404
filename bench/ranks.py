#!/usr/bin/env python3
"""Data-parallel training on this machine, ours beside PyTorch DDP over gloo, in one run:
build/venv/bin/python bench/ranks.py [--repeats N]

One batch, shared out: 1 rank with two threads, then 2 ranks with one thread each. Both sides do the same steps with the
same sizes; every number is the median of the repeats, in which the sides take turns. Read first: ranks.cpp (our side).
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "release"
WORKS = {"mlp": (256, 200), "lenet": (64, 50)}  # batch, steps

PEER = """
import os, sys, time, torch
import torch.distributed as dist
name, batch, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
torch.set_num_threads(int(os.environ["THREADS"]))
dist.init_process_group("gloo", init_method="tcp://127.0.0.1:" + os.environ["PORT"], rank=rank, world_size=ranks)
torch.manual_seed(1)
L = torch.nn
if name == "mlp":
    model, shape = L.Sequential(L.Linear(784, 256), L.ReLU(), L.Linear(256, 10)), (784,)
else:
    model = L.Sequential(L.Conv2d(1, 6, 5), L.ReLU(), L.MaxPool2d(2), L.Conv2d(6, 16, 5), L.ReLU(), L.MaxPool2d(2),
                         L.Flatten(), L.Linear(256, 120), L.ReLU(), L.Linear(120, 84), L.ReLU(), L.Linear(84, 10))
    shape = (1, 28, 28)
model = L.parallel.DistributedDataParallel(model) if ranks > 1 else model
rule = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
share = batch // ranks
x, y = torch.rand(share, *shape), torch.randint(0, 10, (share,))
loss_of = L.CrossEntropyLoss()
def step():
    rule.zero_grad(set_to_none=True)
    loss = loss_of(model(x), y)
    loss.backward()
    rule.step()
    return loss
for _ in range(20):
    step()
dist.barrier()
start = time.perf_counter()
for _ in range(steps):
    last = step()
last.item()
if rank == 0:
    print((time.perf_counter() - start) / steps, float(last))
dist.destroy_process_group()
"""


def ours(name, ranks, threads):
    batch, steps = WORKS[name]
    command = [BUILD / "tools" / "rosin", "run", "-n", ranks, BUILD / "bench" / "bench_ranks", name, batch, steps, 1]
    done = subprocess.run([str(part) for part in command], env={**os.environ, "ROSIN_NUM_THREADS": str(threads)},
                          check=True, capture_output=True, text=True)
    return float(done.stdout.split()[0])


def torchs(name, ranks, threads, port):
    batch, steps = WORKS[name]
    sides = []
    for rank in range(ranks):
        environment = {**os.environ, "RANK": str(rank), "WORLD_SIZE": str(ranks), "THREADS": str(threads),
                       "OMP_NUM_THREADS": str(threads), "PORT": str(port)}
        sides.append(subprocess.Popen([sys.executable, "-c", PEER, name, str(batch), str(steps)], env=environment,
                                      stdout=subprocess.PIPE, text=True))
    said = [side.communicate()[0] for side in sides]
    return float(said[0].split()[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    print("| work | side | 1 rank x 2 threads, ms | 2 ranks x 1 thread, ms | kept |\n|---|---|---|---|---|")
    port = 20000 + os.getpid() % 20000
    for name in WORKS:
        found = {}
        for _ in range(repeats):
            for ranks, threads in ((1, 2), (2, 1)):
                port += 1
                found.setdefault(("rosin", ranks), []).append(ours(name, ranks, threads))
                found.setdefault(("PyTorch DDP, gloo", ranks), []).append(torchs(name, ranks, threads, port))
        for side in ("rosin", "PyTorch DDP, gloo"):
            one, two = (statistics.median(found[side, ranks]) * 1e3 for ranks in (1, 2))
            print(f"| {name} | {side} | {one:.3f} | {two:.3f} | {100 * one / two:.0f} % |")


if __name__ == "__main__":
    main()
