"""Runs the workloads of gpu_workloads.py: ours through the program gpu_check, peers beside it, and keeps what was
found in a file of JSON. Called by steps.sh:
  measure.py names STEP [--short]     the workloads of a step (kernels, steps, peers), one a line
  measure.py facts PLACE...           versions, copies, products and graphs of the device
  measure.py ours WORKLOAD PLACE...   one workload, ours
  measure.py compile WORKLOAD PLACE...  one step of it, so that its kernels are in the cache; says nothing
  measure.py peers WORKLOAD PLACE...  ours, PyTorch and JAX, in this order, and whether their losses are equal
PLACE: --program FILE --device NAME --json FILE [--short]. Exit status 1: losses differ, or ours
failed. A peer that is not there is a line that says why. GPU_PEER_PYTHON names the Python of peers, GPU_TORCH_MODES
those of PyTorch, parted by commas, GPU_SECONDS how long each is timed, GPU_PROGRAM_SECONDS how long a program may take
in all, GPU_PEER_LIBRARY_PATH the LD_LIBRARY_PATH of peers."""
import argparse
import datetime
import json
import os
import pathlib
import statistics
import subprocess
import sys

import gpu_workloads

HERE = pathlib.Path(__file__).resolve().parent
SECONDS = int(os.environ.get("GPU_PROGRAM_SECONDS", "400"))  # of one program
PEERS = {"torch": "peer_torch.py", "jax": "peer_jax.py"}
TORCH_MODES = ["eager", "compile", "compile reduce-overhead", "compile max-autotune", "graph"]


class Failed(Exception):
    """Ours did not run."""


def words(sizes):
    return [f"{name}={value}" for name, value in sizes.items()]


def sizes_of(workload, short):
    return workload.short if short else workload.sizes


def run_program(options, *command):
    """The line of JSON that gpu_check prints last."""
    try:
        done = subprocess.run([options.program, *command], capture_output=True, text=True, check=False, timeout=SECONDS,
                              stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        raise Failed(f"stopped after {SECONDS} s") from None
    lines = done.stdout.strip().splitlines()
    if done.returncode != 0 or not lines:
        said = done.stderr.strip().splitlines()
        raise Failed(said[-1] if said else f"ended with status {done.returncode}")
    return json.loads(lines[-1])


def seconds(options):
    return 0.05 if options.short else float(os.environ.get("GPU_SECONDS", "2"))


def run_ours(workload, options):
    pace = dict(milliseconds=round(1000 * seconds(options))) | (dict(compared=3, repeats=2) if options.short else {})
    return run_program(options, "measure", options.device, workload.kind,
                       *words(sizes_of(workload, options.short) | pace))


# --- The file.

def commit():
    """Of the tree, or the one that a bundle was made of."""
    note = pathlib.Path("COMMIT")
    if note.is_file():
        return note.read_text(encoding="utf-8").strip()
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def keep(options, facts=None, rows=()):
    """Puts facts and rows into the file; rows of the same commit, workload, peer and mode are replaced."""
    path = pathlib.Path(options.json)
    kept = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {"facts": [], "rows": []}
    day = datetime.datetime.now(datetime.timezone.utc).strftime("%F %H:%M")
    if facts:
        kept["facts"].append({"commit": commit(), "date": day} | facts)

    def key(row):
        return tuple(row.get(name) for name in ("commit", "device", "workload", "peer", "mode"))
    fresh = [{"commit": commit(), "date": day, "device": options.device, "short": options.short} | row for row in rows]
    names = {key(row) for row in fresh}
    kept["rows"] = [row for row in kept["rows"] if key(row) not in names] + fresh
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


# --- Rows.

def spread(ms):
    """The slowest repeat over the fastest, less 1."""
    return max(ms) / min(ms) - 1


def row_of_ours(workload, found):
    ms = statistics.median(found["ms"])
    row = {"workload": workload.name, "about": workload.about, "ours_ms": ms, "spread": spread(found["ms"]),
           "goal_ms": workload.goal_ms, "met": ms <= workload.goal_ms if workload.goal_ms else None}
    return row | {name: found[name] for name in ("values", "first_ms", "host_us", "launches", "graph_launches",
                                                 "library_calls", "bytes", "peak_bytes")}


def equal(ours, theirs, tolerance):
    """Whether all values agree; a value that is no number agrees with nothing."""
    if not ours or len(ours) != len(theirs):
        return False
    return all(a is not None and b is not None and abs(a - b) <= tolerance * max(1e-3, abs(a))
               for a, b in zip(ours, theirs))


def row_of_peer(workload, peer, version, found, theirs):
    row = {"workload": workload.name, "peer": f"{peer} {version}", "mode": theirs["mode"]}
    if "error" in theirs:
        return row | {"error": theirs["error"]}
    ours_ms, peer_ms = statistics.median(found["ms"]), statistics.median(theirs["ms"])
    goal = workload.ratios.get("jax" if peer == "jax" else theirs["mode"].partition(" ")[0])
    ratio = peer_ms / ours_ms
    return row | {"ours_ms": ours_ms, "peer_ms": peer_ms, "spread": spread(theirs["ms"]), "ratio": ratio,
                  "ratio_goal": goal, "met": None if goal is None else ratio >= goal, "first_ms": theirs["first_ms"],
                  "equal": equal(found["values"], theirs["values"], workload.tolerance), "values": theirs["values"]}


def verdict(met):
    return "" if met is None else ", met" if met else ", NOT MET"


def say_ours(row, options):
    goal = f", goal {row['goal_ms']:g} ms{verdict(row['met'])}" if row["goal_ms"] and not options.short else ""
    print(f"{row['workload']} {row['about']} on {options.device}: {row['ours_ms']:.4g} ms{goal}, spread "
          f"{row['spread']:.0%}, host {row['host_us']:.3g} us, {row['launches']:g} launches in "
          f"{row['graph_launches']:g} graphs, {row['library_calls']:g} calls of libraries, "
          f"{row['bytes'] / 1e6:.3g} MB moved, {row['peak_bytes'] / 1e6:.3g} MB at most", flush=True)


def say_peer(row, options):
    head = f"{row['workload']} {row['peer']} {row['mode']}"
    if "error" in row:
        print(f"{head}: failed, {row['error']}", flush=True)
        return
    has_goal = row["ratio_goal"] and not options.short
    goal = f" (goal {row['ratio_goal']:g}{verdict(row['met'])})" if has_goal else ""
    print(f"{head}: {row['peer_ms']:.4g} ms, {row['ratio']:.3g} times ours{goal}, spread {row['spread']:.0%}, "
          + ("losses equal" if row["equal"] else "LOSSES DIFFER"), flush=True)


# --- Peers.

def python_with(module):
    """A Python that imports the module, or None with the reason."""
    named = os.environ.get("GPU_PEER_PYTHON")
    if named:
        return named, ""
    for python in (sys.executable, "python3", "build/venv/bin/python"):
        try:
            done = subprocess.run([python, "-c", f"import {module}, numpy"], capture_output=True, check=False,
                                  stdin=subprocess.DEVNULL, timeout=120)
        except (OSError, subprocess.TimeoutExpired):
            continue
        if done.returncode == 0:
            return python, ""
    return None, f"no Python here imports {module} and numpy (GPU_PEER_PYTHON may name one)"


def peer_device(peer, options):
    """"cuda:0" of CUDA:0; the CPU where the device is a pretended one."""
    if options.short:
        return "cpu" if peer == "torch" else "cpu:0"
    number = options.device.partition(":")[2] or "0"
    return f"cuda:{number}" if peer == "torch" else f"gpu:{number}"


def run_peer(peer, workload, options):
    """The version and a row for each mode; or raises LookupError with the reason why there is no such peer."""
    python, reason = python_with(peer)
    if not python:
        raise LookupError(reason)
    of_torch = os.environ.get("GPU_TORCH_MODES", ",".join(TORCH_MODES)).split(",")
    modes = ["jit"] if peer == "jax" else ["eager"] if options.short else of_torch
    request = {"kind": workload.kind, "sizes": sizes_of(workload, options.short), "modes": modes,
               "device": peer_device(peer, options), "compared": 3 if options.short else 5,
               "seconds": seconds(options), "repeats": 2 if options.short else 5}
    environment = os.environ | {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    if "GPU_PEER_LIBRARY_PATH" in environment:  # not that of a bundle
        environment["LD_LIBRARY_PATH"] = environment["GPU_PEER_LIBRARY_PATH"]
    lines, trouble = [], ""
    try:
        done = subprocess.run([python, HERE / PEERS[peer]], input=json.dumps(request) + "\n", capture_output=True,
                              text=True, check=False, timeout=SECONDS, env=environment)
        lines, trouble = done.stdout.splitlines(), (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
    except subprocess.TimeoutExpired as late:
        lines, trouble = (late.stdout or b"").decode().splitlines(), f"stopped after {SECONDS} s"
    rows = [json.loads(line) for line in lines if line.startswith("{")]
    version = rows.pop(0).get("version", "?") if rows else "?"
    answered = {row["mode"] for row in rows}
    return version, rows + [{"mode": mode, "error": trouble} for mode in modes if mode not in answered]


# --- Commands.

def names(step, short):
    for name in gpu_workloads.ORDER:
        workload = gpu_workloads.TABLE[name]
        if step in ("peers", workload.step) and sizes_of(workload, short):
            yield name


def facts(options):
    found = run_program(options, "facts", options.device, *(["1"] if options.short else []))
    size = 16 if options.short else 8192
    pace = words(dict(size=size, compared=1, repeats=3, milliseconds=50 if options.short else 1000))
    product = run_program(options, "measure", options.device, "product", *pace)
    found["bfloat16_tflop_s"] = 2 * size**3 / min(product["ms"]) / 1e9
    keep(options, facts=found)
    print(f"{found['device']}: {found['driver']}, {found['capability']}, {found['libraries']}; copies "
          f"{found['copy_tb_s']:.3g} TB/s, products of BFloat16 {found['bfloat16_tflop_s']:.3g} TFLOP/s, launch of a "
          f"graph {found['graph_launch_us']:.3g} us, update of a node {found['graph_update_us']:.3g} us, "
          f"{found['graph_node_us']:.3g} us a node")
    return 0


def ours(options):
    workload = gpu_workloads.TABLE[options.workload]
    row = row_of_ours(workload, run_ours(workload, options))
    keep(options, rows=[row])
    say_ours(row, options)
    return 0


def compile_kernels(options):
    """Of steps as ours() runs them: the first steps and those after them may be different programs."""
    workload = gpu_workloads.TABLE[options.workload]
    run_program(options, "measure", options.device, workload.kind,
                *words(workload.sizes | dict(compared=1, repeats=1, milliseconds=1)))
    return 0


def peers(options):
    workload = gpu_workloads.TABLE[options.workload]
    found = run_ours(workload, options)
    row = row_of_ours(workload, found)
    keep(options, rows=[row])
    say_ours(row, options)
    rows = []
    for peer in PEERS:
        try:
            version, theirs = run_peer(peer, workload, options)
        except LookupError as why:
            print(f"{workload.name} {peer}: SKIPPED, {why}", flush=True)
            continue
        for one in theirs:
            rows.append(row_of_peer(workload, peer, version, found, one))
            say_peer(rows[-1], options)
        keep(options, rows=rows)
    return 0 if all(row.get("equal", True) for row in rows) else 1


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("command", choices=["names", "facts", "ours", "compile", "peers"])
    parser.add_argument("workload", nargs="?")
    parser.add_argument("--program")
    parser.add_argument("--device", default="CUDA:0")
    parser.add_argument("--json")
    parser.add_argument("--short", action="store_true")
    options = parser.parse_args(arguments)
    if options.command == "names":
        print(*names(options.workload, options.short), sep="\n")
        return 0
    try:
        commands = {"facts": facts, "ours": ours, "compile": compile_kernels, "peers": peers}
        return commands[options.command](options)
    except Failed as why:
        print(f"{options.workload or 'facts'} on {options.device}: {why}")
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
