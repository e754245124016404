"""What training steps of full size cost, counted without a GPU: the library plans, compiles and launches them on the
pretended CUDA of tests/fake_cuda, whose memory is not touched and whose kernels do nothing. Called by ./run counts:
  counts.py --build build/release [--write FILE] [WORKLOAD...]
Exit status: 0 all there, 3 a tool is missing. Read next: tools/gpu_check/gpu_workloads.py (the workloads)."""
import argparse
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import sass

sys.path.insert(0, str(sass.ROOT / "tools" / "gpu_check"))
import gpu_workloads  # noqa: E402  (beside another program)


@dataclasses.dataclass
class Most:
    """What a workload shall not exceed; 0: no bound."""
    nodes: int = 0
    gigabytes: float = 0  # moved in a step
    peak: float = 0       # gigabytes of memory
    reason: str = ""      # why a bound is not met


WORKLOADS = {
    "G1": Most(nodes=8),
    "G2": Most(nodes=22),
    "G5": Most(nodes=288, gigabytes=80, peak=40),
    "G4": Most(nodes=200, gigabytes=0.32 * 256,
               reason="open: BatchNorm and its gradient are 4 kernels, for each of 53 convolutions, which are 3 calls"),
}


def count(build, nvrtc, name):
    """The line of JSON of a few steps of the workload."""
    workload = gpu_workloads.TABLE[name]
    sizes = workload.sizes | dict(compared=1, repeats=1, milliseconds=1)
    with tempfile.TemporaryDirectory() as cache:
        environment = os.environ | {
            "ROSIN_CUDA_LIBRARIES": str(build / "fake_cuda"), "ROSIN_CACHE_DIR": cache, "ROSIN_LOG": "none",
            "FAKE_CUDA": f"devices=1,idle=1,memory={1 << 40},arch={sass.TARGET},nvrtc={nvrtc}"}
        done = subprocess.run([build / "tools" / "gpu_check", "measure", "CUDA:0", workload.kind,
                               *(f"{key}={value}" for key, value in sizes.items())], env=environment, check=False,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=900)
    if done.returncode != 0:
        raise RuntimeError(f"{name}: {done.stderr.strip()}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def misses(found, most):
    exceeded = []
    if most.nodes and found["launches"] > most.nodes:
        exceeded.append(f"more than {most.nodes} nodes")
    if most.gigabytes and found["bytes"] > most.gigabytes * 1e9:
        exceeded.append(f"more than {most.gigabytes:g} GB moved")
    if most.peak and found["peak_bytes"] > most.peak * 1e9:
        exceeded.append(f"more than {most.peak:g} GB of memory")
    return exceeded


HEAD = """# Training steps of full size, counted

Written by `./run counts`: planned, compiled and launched on a pretended GPU whose memory nobody touches. Nodes are
kernels and calls of libraries, which the stand-ins of tests/fake_cuda take as cuBLASLt and cuDNN would; bytes are those
that the plan's steps read and write.

| workload | nodes | calls among them | graphs | GB moved | GB of memory | bounds | why |
|---|---|---|---|---|---|---|---|
"""


def table(found):
    text = HEAD
    for name, line in found.items():
        most = WORKLOADS.get(name, Most())
        missed = misses(line, most)
        text += (f"| {gpu_workloads.TABLE[name].about} | {line['launches']:g} | {line['library_calls']:g} | "
                 f"{line['graph_launches']:g} | {line['bytes'] / 1e9:.4g} | {line['peak_bytes'] / 1e9:.3g} | "
                 f"{'not met: ' + '; '.join(missed) if missed else 'met'} | {most.reason if missed else ''} |\n")
    return text


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, default=sass.ROOT / "build" / "release")
    parser.add_argument("--write", type=pathlib.Path)
    parser.add_argument("workloads", nargs="*")
    options = parser.parse_args()
    try:
        nvrtc = sass.find_nvrtc()
    except sass.Missing as missing:
        print(f"counts: SKIPPED, {missing}")
        return 3
    found = {}
    for name in options.workloads or WORKLOADS:
        found[name] = count(options.build.resolve(), nvrtc, name)
        print(table({name: found[name]}).splitlines()[-1], flush=True)
    if options.write:
        options.write.write_text(table(found), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
