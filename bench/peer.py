"""What both peer scripts share: options, inputs, and the talk with bench.py. A peer prints a JSON line with its version
and then answers each line on its standard input with one line:
  {"do": "open", "workload", "inputs", "mode", "layout"} -> {"session", "first_ms", "losses" of the first 20 steps}
  {"do": "repeat", "session", "steps"} -> {"ms"} of a step, from the initial parameters
  {"do": "forget"} -> {}; all sessions are dropped
An exception is answered by {"error"}. Read next: peer_torch.py, peer_jax.py; the other end is sides.py."""
import argparse
import gc
import json
import pathlib
import sys
import time

import numpy

import workloads


def threads():
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=1)
    return parser.parse_args().threads


def read_inputs(folder):
    """Name -> float32 array in the manifest's shape, and the sizes."""
    folder = pathlib.Path(folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    arrays = {a["name"]: numpy.fromfile(folder / a["file"], "<f4").reshape(a["shape"]) for a in manifest["arrays"]}
    return arrays, manifest["sizes"]


def serve(version, make_session, clear_caches):
    """make_session(workload, arrays, sizes, mode, layout) -> an object with reset(); step() -> result; wait(result),
    which returns when all work is done; value(result) -> float."""
    say({"version": version})
    sessions = []
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if request["do"] == "open":
                workload = workloads.TABLE[request["workload"]]
                sessions.append(make_session(workload, *read_inputs(request["inputs"]), request["mode"],
                                             request["layout"]))
                say({"session": len(sessions) - 1} | first_steps(workload, sessions[-1]))
            elif request["do"] == "repeat":
                say({"ms": repeat(sessions[request["session"]], request["steps"])})
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
    losses = [session.value(result)]
    if workload.loss:
        losses += [session.value(session.step()) for _ in range(19)]
    return {"first_ms": first_ms, "losses": losses}


def repeat(session, steps):
    session.reset()
    started = time.perf_counter()
    for _ in range(steps):
        result = session.step()
    session.wait(result)
    return (time.perf_counter() - started) * 1e3 / steps


def say(record):
    print(json.dumps(record), flush=True)
