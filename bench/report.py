"""From rows of measurements to ratios, the table, the summary and the page of results; nothing here runs anything. A
row is a dict with the keys of COLUMNS. Read next: bench.py."""
import dataclasses
import datetime
import re
import statistics

COLUMNS = ("workload", "threads", "peer", "mode", "ours_ms", "peer_ms", "ratio", "repeats", "note", "ours_cpu_ms",
           "peer_cpu_ms")
PRIME = "-prime"  # ends the name of a workload whose sizes are primes
MOST_DROP = 0.15
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


def least(rows, key):
    """The row with the smallest number under key; None where no row has one."""
    return min((r for r in rows if r[key]), key=lambda r: r[key], default=None)


def winners(trials, group, time, count):
    """Of each group the `count` trials with the least time; those without a time come last."""
    groups = {}
    for trial in trials:
        groups.setdefault(group(trial), []).append(trial)
    return [t for members in groups.values() for t in sorted(members, key=lambda t: time(t) or float("inf"))[:count]]


def number(value):
    return "-" if value is None else f"{value:.4g}"


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


def best_ratio(rows):
    """(our best thread count, the fastest row of any peer, ratio); None where one is missing."""
    counts = {r["threads"]: [s["ours_ms"] for s in rows if s["threads"] == r["threads"]] for r in rows if r["ours_ms"]}
    medians = [{"threads": n, "ours_ms": statistics.median(filter(None, ms))} for n, ms in counts.items()]
    ours, peer = least(medians, "ours_ms"), least(rows, "peer_ms")
    return (ours, peer, peer["peer_ms"] / ours["ours_ms"]) if ours and peer else None


def drop(base, prime):
    """The part of the ratio that prime sizes cost: 0.1 where 2.0 becomes 1.8."""
    return 1 - prime / base


def threads(row):
    return f"{row['threads']} thread" + ("s" if row["threads"] > 1 else "")


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

    def best(self, name):
        return best_ratio([r for r in self.rows if r["workload"] == name])


def goal(workload, best):
    """"4x: met", or empty where the workload has none or was not measured."""
    if not workload.goal or not best:
        return ""
    ours, _, ratio = best
    what, bound = workload.goal
    if what == "x":
        met = ratio >= bound
    else:
        met = (per_op(workload, ours["ours_ms"]) if what == " ns an op" else ours["ours_ms"]) <= bound
    return f"{number(bound)}{what}: " + ("met" if met else "missed")


def shortfalls(run):
    """Why goals were missed."""
    missed = [w for w in run.workloads if goal(w, run.best(w.name)).endswith("missed")]
    return "\n".join(f"- **{w.name}**: {w.reason or 'not looked into yet.'}" for w in missed) or "Nothing."


def per_op(workload, ms):
    return ms * 1e6 / workload.sizes["ops"]


def prime_change(base, prime):
    """What prime sizes change: "1.8x (-10%)"."""
    if not base or not prime:
        return "-"
    lost = drop(base[2], prime[2])
    return f"{number(prime[2])}x ({-lost:+.0%})" + (" TOO MUCH" if lost > MOST_DROP else "")


def summary(workload, best, prime):
    """One line for a workload: each side at its best, what prime sizes change."""
    start = f"{workload.name} ({workload.about}): "
    if not best:
        return start + "no ratio, one side is missing"
    ours, peer, ratio = best
    line = start + (f"ours {number(ours['ours_ms'])} ms ({threads(ours)}), best peer {peer['peer']} {peer['mode']} "
                    f"{number(peer['peer_ms'])} ms ({threads(peer)}): {number(ratio)}x")
    if "ops" in workload.sizes:
        line += (f", {number(per_op(workload, ours['ours_ms']))} ns an op against "
                 f"{number(per_op(workload, peer['peer_ms']))}")
    if prime:
        line += f"; prime sizes {prime_change(best, prime)}"
    reached = goal(workload, best)
    return line + (f"; goal {reached}" if reached else "")


def summary_table(run):
    lines = [("workload", "ours ms", "best peer", "peer ms", "ratio", "prime sizes", "goal")]
    for workload in run.workloads:
        best = run.best(workload.name)
        if not best:
            lines.append((f"{workload.name}: {workload.about}", *["-"] * 6))
            continue
        ours, peer, ratio = best
        lines.append((f"{workload.name}: {workload.about}", f"{number(ours['ours_ms'])} ({threads(ours)})",
                      f"{peer['peer']} {peer['mode']}", f"{number(peer['peer_ms'])} ({threads(peer)})",
                      number(ratio), prime_change(best, run.best(workload.name + PRIME)), goal(workload, best)))
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
    lines = [summary(w, run.best(w.name), run.best(w.name + PRIME)) for w in run.workloads]
    return "\n\n".join([table(run.rows), launches(run), beginnings(run), "\n".join([*lines, facts(run)])])


def page(run):
    """RESULTS.md."""
    warning = [f"**Warning:** {load_warning(run.load)}."] if run.load > MOST_LOAD else []
    return "\n\n".join([
        "# Results of bench", f"`{run.command}`, {datetime.date.today()}: {facts(run)}.", *warning,
        "Written by the command; README.md says how a number is made. Times are medians of a step; ratio = peer / "
        "ours, above 1 we are faster. Each side stands here with its best mode and number of threads; `prime sizes` is "
        "the ratio with each size changed to the nearest prime, and its change.",
        summary_table(run), "## What falls short",
        "Goals that were missed, and where the time goes by `perf record` on one thread (AMD Zen 4).", shortfalls(run),
        "## Every mode",
        "A star marks the best peer of a thread count. The modes with most repeats were the fastest of the first look.",
        table(run.rows), "## First steps and memory",
        "Each on one thread in a process of its own with empty caches; memory is the most that the process held while "
        "it did its first steps, beyond what it held before. Of plans: what recording left to do before anything ran, "
        "with the code that was written for it.", beginnings(run), "## Launches in a step",
        launches(run)]) + "\n"


def last_line(text):
    """The last line that says something, for a note in a row; a pipe would break the table."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return re.sub(r"\s*\|\s*", " / ", lines[-1])[:120] if lines else "no message"
