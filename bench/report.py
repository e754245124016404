"""From rows of measurements to ratios, the table, the summary and the page of results; nothing here runs anything. A
row is a dict with the keys of COLUMNS. Read first: goals.py. Read next: bench.py."""
import dataclasses
import datetime
import re

import goals
from goals import counted, least, number

COLUMNS = ("workload", "threads", "peer", "mode", "ours_ms", "peer_ms", "ratio", "repeats", "note", "ours_cpu_ms",
           "peer_cpu_ms")
MOST_LOAD = 0.05


def make_row(workload, threads, peer, mode, ours_ms=None, peer_ms=None, note="", repeats=0, ours_cpu_ms=None,
             peer_cpu_ms=None):
    ratio = peer_ms / ours_ms if ours_ms and peer_ms else None
    return dict(zip(COLUMNS, (workload, threads, peer, mode, ours_ms, peer_ms, ratio, repeats, note, ours_cpu_ms,
                              peer_cpu_ms)))


def make_beginning(workload, setup, ours, first_ms=None, peak_bytes=None, note=""):
    """A row of the table of first steps and memory; `ours` is our program's record."""
    return dict(workload=workload, peer=setup.peer, mode=setup.label(), ours_ms=ours.get("first_ms"),
                planning_ms=ours.get("planning_ms"), peer_ms=first_ms,
                ours_bytes=ours.get("peak_bytes"), peer_bytes=peak_bytes, note=note)


def loss_difference(ours, peer):
    """Greatest relative difference of two lists of losses; infinite where one is shorter or not a number."""
    if len(ours) != len(peer):
        return float("inf")
    differences = [abs(a - b) / max(abs(b), 1e-30) for a, b in zip(ours, peer)]
    return max((d if d == d else float("inf") for d in differences), default=0.0)


def winners(trials, group, time, count):
    """Of each group the `count` trials with the least time; those without a time come last."""
    groups = {}
    for trial in trials:
        groups.setdefault(group(trial), []).append(trial)
    return [t for members in groups.values() for t in sorted(members, key=lambda t: time(t) or float("inf"))[:count]]


def table(rows):
    """All rows as text; a star marks the best peer of a workload and thread count."""
    groups = {}
    for r in rows:
        groups.setdefault((r["workload"], r["threads"]), []).append(r)
    best = {id(least(group, "peer_ms")) for group in groups.values()}
    lines = [("workload", "threads", "peer", "mode", "ours ms", "peer ms", "ratio", "ours CPU ms", "peer CPU ms",
              "repeats", "")]
    for r in rows:
        star = "*" if id(r) in best else ""
        lines.append((r["workload"], str(r["threads"]), r["peer"] + star, r["mode"], number(r["ours_ms"]),
                      number(r["peer_ms"]), number(r["ratio"]), number(r["ours_cpu_ms"]), number(r["peer_cpu_ms"]),
                      str(r["repeats"]), r["note"]))
    return markdown(lines)


def markdown(lines):
    widths = [max(len(line[k]) for line in lines) for k in range(len(lines[0]))]
    text = ["| " + " | ".join(cell.ljust(w) for cell, w in zip(line, widths)) + " |" for line in lines]
    text.insert(1, "|" + "|".join("-" * (w + 2) for w in widths) + "|")
    return "\n".join(text)


@dataclasses.dataclass
class Run:
    """All that a run found out. records: (workload's name, threads) -> what our program printed; beginnings: rows of
    first steps and memory."""
    rows: list
    records: dict
    beginnings: list
    workloads: list
    machine: str
    versions: dict
    load: float
    command: str
    minutes: float


def shortfalls(run):
    """Which goals were missed, and why."""
    missed = [(w, goals.missed(run.rows, w)) for w in run.workloads]
    return "\n".join(f"- **{w.name}** ({', '.join(what)}): {w.reason or 'not looked into yet.'}"
                     for w, what in missed if what) or "Nothing."


def unmeasured(rows, workload):
    """Why a workload has no ratio."""
    notes = [r["note"] for r in rows if r["workload"] == workload.name and r["note"]]
    return notes[0] if notes else "one side is missing"


def peer_text(both):
    return f"{both.peer['peer']} {both.peer['mode']} {number(both.peer['peer_ms'])} ms"


def pair_text(workload, both):
    """"1 thread: ours 0.5 ms, torch compile 0.8 ms: 1.6x, goal 1.4x: met"."""
    text = f"{counted(both.threads)}: ours {number(both.ours_ms)} ms, {peer_text(both)}: {number(both.ratio)}x"
    for size, unit in (("ops", " ns an op"), ("elements", " ns an element")):
        if size in workload.sizes:
            ours, peer = (goals.in_unit(workload, unit, ms) for ms in (both.ours_ms, both.peer["peer_ms"]))
            text += f", {number(ours)}{unit} against {number(peer)}"
            break
    return ", goal ".join([text, *goals.verdicts(workload, both)])


def scaling_text(workload, found):
    """"1.73x, goal 1.8x: missed", of our times with one thread and with two."""
    return "-" if found is None else ", goal ".join([f"{number(found)}x", *goals.scaling_verdict(workload, found)])


def prime_text(change):
    """"1.8x (-10%, 2 threads)"."""
    if not change:
        return "-"
    text = f"{number(change.ratio)}x ({-change.lost:+.0%}, {counted(change.threads)})"
    return text + (" TOO MUCH" if change.is_too_much else "")


def summary(rows, workload):
    """One line for a workload: both sides with one thread and with two, how ours scale, what prime sizes change."""
    found = goals.pairs(rows, workload)
    start = f"{workload.name} ({workload.about}): "
    if not found:
        return start + "no ratio: " + unmeasured(rows, workload)
    parts = [pair_text(workload, both) for both in found.values()]
    scaling, change = goals.scaling(rows, workload), goals.prime_change(rows, workload)
    parts += [f"speedup of ours by 2 threads {scaling_text(workload, scaling)}"] if scaling else []
    parts += [f"prime sizes {prime_text(change)}"] if change else []
    return start + "; ".join(parts)


def summary_cells(workload, both):
    if not both:
        return ["-"] * 3
    return [peer_text(both), number(both.ratio), ", ".join(goals.verdicts(workload, both))]


def summary_table(run):
    lines = [("workload", "ours ms, 1 thread", "2 threads", "faster with 2", "best peer, 1 thread", "ratio", "goal",
              "best peer, 2 threads", "ratio", "goal", "prime sizes")]
    for workload in run.workloads:
        found = goals.pairs(run.rows, workload)
        ours = [number(goals.our_time(run.rows, workload.name, n)) for n in (1, 2)]
        cells = [cell for n in (1, 2) for cell in summary_cells(workload, found.get(n))]
        if not found:
            cells[0] = unmeasured(run.rows, workload)
        lines.append((f"{workload.name}: {workload.about}", *ours,
                      scaling_text(workload, goals.scaling(run.rows, workload)), *cells,
                      prime_text(goals.prime_change(run.rows, workload))))
    return markdown(lines)


def launches(run):
    """A table of what one of our steps launches."""
    lines = [("workload", "fused kernels", "calls", "evaluations", "recording of an op, ns")]
    for workload in run.workloads:
        record = run.records.get((workload.name, 1))
        if record:
            lines.append((workload.name, *(number(record.get(k)) for k in ("kernels", "calls", "evaluations",
                                                                           "record_ns"))))
    return markdown(lines)


def beginnings(run):
    """A table of first steps, and of the memory that a process takes beyond what it had before the workload."""
    lines = [("workload", "peer", "mode", "ours, first ms", "of it plans, ms", "peer, first ms", "ours, MB",
              "peer, MB", "")]
    for r in run.beginnings:
        megabytes = (number(r[k] and r[k] / 1e6) for k in ("ours_bytes", "peer_bytes"))
        milliseconds = (number(r.get(k)) for k in ("ours_ms", "planning_ms", "peer_ms"))
        lines.append((r["workload"], r["peer"], r["mode"], *milliseconds, *megabytes, r["note"]))
    return markdown(lines)


def load_warning(load):
    return f"other processes took {load:.0%} of this machine when a workload began; the numbers mean little"


def facts(run):
    return ", ".join([run.machine, *(f"{peer} {v}" for peer, v in sorted(run.versions.items())),
                      f"{run.minutes:.1f} minutes"])


def text(run):
    """What is printed at the end."""
    lines = [summary(run.rows, w) for w in run.workloads]
    return "\n\n".join([table(run.rows), launches(run), beginnings(run), "\n".join([*lines, facts(run)])])


def page(run):
    """RESULTS.md."""
    warning = [f"**Warning:** {load_warning(run.load)}."] if run.load > MOST_LOAD else []
    return "\n\n".join([
        "# Results of bench", f"`{run.command}`, {datetime.date.today()}: {facts(run)}.", *warning,
        "Written by the command; README.md says how a number is made. Times are medians of a step; ratio = peer / "
        "ours, above 1 we are faster. With one thread and with two, each peer's best mode with as many threads is what "
        "we are compared with; `faster with 2` is our time with one thread divided by that with two; `prime sizes` is "
        "the ratio with each size changed to the nearest prime, and its change, with the number of threads where it "
        "falls most.",
        summary_table(run), "## What falls short",
        "Goals that were missed (in brackets), and where the time goes by `perf record` on one thread (of a Granite "
        "Rapids, where no other processor is named).",
        shortfalls(run),
        "## Every mode",
        "A star marks the best peer of a thread count. The modes with most repeats were the fastest of the first look.",
        table(run.rows), "## First steps and memory",
        "Each on one thread in a process of its own with empty caches; memory is the most that the process held while "
        "it read the inputs, made the model and did its first steps, beyond what it held before. Of plans: what "
        "recording left to do before anything ran, with the code that was written for it.", beginnings(run),
        "## Launches in a step", launches(run)]) + "\n"


def last_line(text):
    """The last line that says something, for a note in a row; a pipe would break the table."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return re.sub(r"\s*\|\s*", " / ", lines[-1])[:120] if lines else "no message"
