"""What both peer scripts share: options, inputs, and the talk with bench.py. A peer prints one JSON line when it is
ready (losses of the first 20 steps, time of the very first) and one more for each line on its standard input: one
repeat, which starts from the initial parameters again. Read next: peer_torch.py, peer_jax.py."""
import argparse
import json
import pathlib
import sys
import time

import numpy

import workloads


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--workload", choices=workloads.TABLE, required=True)
    parser.add_argument("--inputs", type=pathlib.Path, required=True)
    parser.add_argument("--mode", required=True)
    parser.add_argument("--layout", default="")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--steps", type=int)
    return parser.parse_args()


def read_inputs(folder):
    """Name -> float32 array in the manifest's shape, and the sizes."""
    manifest = json.loads((folder / "manifest.json").read_text())
    arrays = {a["name"]: numpy.fromfile(folder / a["file"], "<f4").reshape(a["shape"]) for a in manifest["arrays"]}
    return arrays, manifest["sizes"]


def serve(args, session, version):
    """session: reset(); step() -> result; wait(result) returns when all work is done; value(result) -> float."""
    workload = workloads.TABLE[args.workload]
    steps = args.steps or workload.steps
    started = time.perf_counter()
    session.wait(result := session.step())
    first_ms = (time.perf_counter() - started) * 1e3
    losses = [session.value(result)]
    if workload.loss:
        losses += [session.value(session.step()) for _ in range(19)]
    say({"workload": args.workload, "threads": args.threads, "version": version, "first_ms": first_ms,
         "losses": losses})
    for _ in sys.stdin:
        session.reset()
        say({"ms": repeat(session, steps) / steps})


def repeat(session, steps):
    started = time.perf_counter()
    for _ in range(steps):
        result = session.step()
    session.wait(result)
    return (time.perf_counter() - started) * 1e3


def say(record):
    print(json.dumps(record), flush=True)
