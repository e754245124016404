#!/usr/bin/env python3
"""Loading and saving files, ours beside the safetensors package and a plain copy, in one run:
build/venv/bin/python bench/files.py [--repeats N] [--folder DIR] [--results FILE]

Each side is a process of its own with two threads; they take turns, and every number is a median. The files are in
the system's cache: what is measured is the work, not the disk. Read first: files.cpp (our side).
"""
import argparse
import json
import os
import pathlib
import platform
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time

import sections

ROOT = pathlib.Path(__file__).resolve().parents[1]
PROGRAM = ROOT / "build" / "release" / "bench" / "bench_files"
MIB = 1 << 20

PEER = """
import resource, sys, time
import torch
torch.set_num_threads(2)
from safetensors import numpy as np_files, torch as torch_files
load = (np_files if sys.argv[1] == "numpy" else torch_files).load_file
def work():
    tensors = load(sys.argv[3])
    return sum(float(x.sum()) for x in tensors.values()) if sys.argv[2] == "sum" else 0.0
for line in sys.stdin:
    before, start = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    total = work()
    seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print('{"seconds": %r, "cpu": %r, "sum": %r}' % (seconds, cpu, total), flush=True)
"""


class Side:
    """A process that does its work once for each line."""

    def __init__(self, *command):
        environment = {**os.environ, "ROSIN_NUM_THREADS": "2", "OMP_NUM_THREADS": "2"}
        self.process = subprocess.Popen([str(part) for part in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, env=environment)

    def once(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Copy:
    """Reading a file and writing it, through a buffer of 1 MiB."""

    def __init__(self, source, target):
        self.source, self.target = source, target

    def once(self):
        start, cpu = time.perf_counter(), time.process_time()
        with open(self.source, "rb") as source, open(self.target, "wb") as target:
            shutil.copyfileobj(source, target, MIB)
        return {"seconds": time.perf_counter() - start, "cpu": time.process_time() - cpu}

    def close(self):
        os.unlink(self.target)


def write_safetensors(path, count, rows, columns):
    """`count` matrices of Float32 with small numbers."""
    size = 4 * rows * columns
    header = json.dumps({f"layers.{i}.weight": {"dtype": "F32", "shape": [rows, columns],
                                                "data_offsets": [i * size, (i + 1) * size]} for i in range(count)})
    header += " " * (-len(header) % 8)
    row = struct.pack(f"<{columns}f", *(i % 97 / 97 - 0.5 for i in range(columns)))
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header.encode())
        for _ in range(count * rows):
            file.write(row)


def measure(sides, repeats):
    """Medians of each side; all take turns, after one turn that does not count."""
    times = {name: [] for name in sides}
    for turn in range(repeats + 1):
        for name, side in sides.items():
            result = side.once()
            if turn > 0:
                times[name].append(result)
    for side in sides.values():
        side.close()
    return {name: [statistics.median(result[key] for result in results) for key in ("seconds", "cpu")]
            for name, results in times.items()}


def table(found):
    rows = [(name, f"{seconds * 1e3:.4g}", f"{cpu * 1e3:.4g}") for name, (seconds, cpu) in found.items()]
    return sections.table(("what", "ms", "CPU ms"), rows)


def safetensors_part(folder, repeats):
    path = folder / "large.safetensors"
    write_safetensors(path, 16, 4096, 4096)
    python = [sys.executable, "-c", PEER]
    found = measure({
        "rosin, mapped": Side(PROGRAM, "map", path),
        "safetensors.torch": Side(*python, "torch", "load", path),
        "rosin, mapped, sum of all": Side(PROGRAM, "map+sum", path),
        "safetensors.torch, sum of all": Side(*python, "torch", "sum", path),
        "rosin, read": Side(PROGRAM, "load", path),
        "safetensors.numpy": Side(*python, "numpy", "load", path),
        "rosin, read, sum of all": Side(PROGRAM, "load+sum", path),
        "safetensors.numpy, sum of all": Side(*python, "numpy", "sum", path),
    }, repeats)
    path.unlink()
    return found


def bson_part(folder, repeats):
    source, path = folder / "m.safetensors", folder / "m.bson"
    write_safetensors(source, 25, 1024, 1024)
    first = Side(PROGRAM, "save", source, path)
    first.once()
    first.close()
    found = measure({
        "copy of the file": Copy(path, folder / "copy.bson"),
        "rosin, load": Side(PROGRAM, "load", path),
        "rosin, save (flushed to the disk)": Side(PROGRAM, "save", source, path),
    }, repeats)
    source.unlink()
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--folder", type=pathlib.Path, help="where the files are made (2 GiB)")
    parser.add_argument("--results", type=pathlib.Path, metavar="FILE", help="write the part about files there")
    arguments = parser.parse_args()
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        folder = pathlib.Path(name)
        large = table(safetensors_part(folder, arguments.repeats))
        bson = table(bson_part(folder, arguments.repeats))
    text = (f"## Files\n\n`build/venv/bin/python bench/files.py --repeats {arguments.repeats}`, "
            f"{time.strftime('%Y-%m-%d')}, {platform.machine()}, {os.cpu_count()} processors, load {load:.1f} at the "
            f"start. Medians of {arguments.repeats}; CPU ms are user and system time of both threads.\n\n"
            f"A safetensors file of 1 GiB: 16 matrices of Float32, 4096 x 4096.\n\n{large}\n"
            f"A BSON file of 100 MiB: 25 matrices of Float32, 1024 x 1024.\n\n{bson}")
    print(text)
    if arguments.results:
        sections.write(arguments.results, text)


if __name__ == "__main__":
    main()
