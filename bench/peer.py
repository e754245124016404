"""What all peer scripts share: options, inputs, networks that are operators alone, and the talk with bench.py. A peer
prints a JSON line with its version and then answers each line on its standard input with one line:
  {"do": "open", "workload", "inputs", "mode", "layout"} -> {"session", "first_ms", "losses" of the first steps}
  {"do": "repeat", "session", "steps"} -> {"ms", "cpu_ms"} of a step, from the initial parameters
  {"do": "memory"} -> {"peak_bytes"} that the inputs, the model and the steps of the last session took until now,
    beyond what the process held before it
  {"do": "forget"} -> {}; all sessions are dropped
An exception is answered by {"error"}. Read next: peer_torch.py, peer_jax.py, peer_mlx.py; the other end is sides.py."""
import argparse
import gc
import json
import math
import pathlib
import sys
import time

import numpy

import memory
import workloads


def mlp(p, x, activation):
    """For arrays of any library, as deep() and tiny()."""
    hidden = activation(x @ p["hidden.weight"] + p["hidden.bias"])
    return hidden @ p["out.weight"] + p["out.bias"]


def deep(p, x, activation):
    for layer in ("hidden1", "hidden2"):
        x = activation(x @ p[f"{layer}.weight"] + p[f"{layer}.bias"])
    return x @ p["out.weight"] + p["out.bias"]


def tiny(x, scale, shift, ops):
    for i in range(ops):
        x = x + shift if i % 2 else x * scale
    return x


def threads():
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=1)
    return parser.parse_args().threads


def read_inputs(folder):
    """Name -> float32 array in the manifest's shape, and the sizes."""
    folder = pathlib.Path(folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    return {a["name"]: read_array(folder, a) for a in manifest["arrays"]}, manifest["sizes"]


def read_array(folder, entry):
    count = math.prod(entry["shape"])
    return numpy.fromfile(folder / entry["file"], "<f4", count, offset=entry["offset"]).reshape(entry["shape"])


def used(workload, arrays):
    """Without running statistics where the model is trained: there those of the batch are used."""
    return {name: a for name, a in arrays.items() if not (workload.loss and ".running_" in name)}


def serve(version, warm_up, make_session, clear_caches):
    """warm_up(mode) loads what any first use loads, so that time and memory of a first step are those of the step;
    make_session(workload, arrays, sizes, mode, layout) -> an object with reset(); step() -> result; wait(result), which
    returns when all work is done; value(result) -> float."""
    say({"version": version})
    sessions, before = [], 0
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if request["do"] == "open":
                workload = workloads.TABLE[request["workload"]]
                warm_up(request["mode"])
                before = memory.begin_peak()
                sessions.append(make_session(workload, *read_inputs(request["inputs"]), request["mode"],
                                             request["layout"]))
                say({"session": len(sessions) - 1} | first_steps(workload, sessions[-1]))
            elif request["do"] == "repeat":
                say(repeat(sessions[request["session"]], request["steps"]))
            elif request["do"] == "memory":
                say({"peak_bytes": memory.peak_bytes() - before})
            else:
                sessions.clear()
                clear_caches()
                gc.collect()
                say({})
        except Exception as error:  # whatever the peer's library throws becomes a row
            say({"error": f"{type(error).__name__}: {error}"})


def first_steps(workload, session):
    started = time.perf_counter()
    session.wait(result := session.step())
    first_ms = (time.perf_counter() - started) * 1e3
    losses = [session.value(result)] if workload.alike else []
    if workload.loss:
        losses += [session.value(session.step()) for _ in range(workload.compared - 1)]
    return {"first_ms": first_ms, "losses": losses}


def repeat(session, steps):
    session.reset()
    started, used = time.perf_counter(), time.process_time()
    for _ in range(steps):
        result = session.step()
    session.wait(result)
    return {"ms": (time.perf_counter() - started) * 1e3 / steps, "cpu_ms": (time.process_time() - used) * 1e3 / steps}


def say(record):
    print(json.dumps(record), flush=True)
