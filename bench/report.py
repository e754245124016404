"""From rows of measurements to ratios, the table and the summary; nothing here runs anything. A row is a dict with the
keys of COLUMNS. Read next: bench.py."""
import re
import statistics

COLUMNS = ("workload", "threads", "peer", "mode", "ours_ms", "peer_ms", "ratio", "note")
PRIME = "-prime"  # ends the name of a workload whose sizes are primes
LOSS_TOLERANCE = 1e-4
MOST_DROP = 0.20


def make_row(workload, threads, peer, mode, ours_ms=None, peer_ms=None, note=""):
    ratio = peer_ms / ours_ms if ours_ms and peer_ms else None
    return dict(zip(COLUMNS, (workload, threads, peer, mode, ours_ms, peer_ms, ratio, note)))


def loss_difference(ours, peer):
    """Greatest relative difference of two lists of losses; infinite where one is shorter or not a number."""
    if len(ours) != len(peer):
        return float("inf")
    differences = [abs(a - b) / max(abs(b), 1e-30) for a, b in zip(ours, peer)]
    return max((d if d == d else float("inf") for d in differences), default=0.0)


def least(rows, key):
    """The row with the smallest number under key; None where no row has one."""
    return min((r for r in rows if r[key]), key=lambda r: r[key], default=None)


def winners(rows):
    """Of each peer and thread count the row with its fastest mode."""
    groups = {(r["peer"], r["threads"]): [] for r in rows}
    for r in rows:
        groups[r["peer"], r["threads"]].append(r)
    return [best for group in groups.values() if (best := least(group, "peer_ms"))]


def number(value):
    return "-" if value is None else f"{value:.4g}"


def table(rows):
    """All rows as text; a star marks the best peer of a workload and thread count."""
    best = {id(least([r for r in rows if (r["workload"], r["threads"]) == key], "peer_ms"))
            for key in {(r["workload"], r["threads"]) for r in rows}}
    lines = [("workload", "threads", "peer", "mode", "ours ms", "peer ms", "ratio", "")]
    for r in rows:
        star = "*" if id(r) in best else ""
        lines.append((r["workload"], str(r["threads"]), r["peer"] + star, r["mode"], number(r["ours_ms"]),
                      number(r["peer_ms"]), number(r["ratio"]), r["note"]))
    return markdown(lines)


def markdown(lines):
    widths = [max(len(line[k]) for line in lines) for k in range(len(lines[0]))]
    text = ["| " + " | ".join(cell.ljust(w) for cell, w in zip(line, widths)) + " |" for line in lines]
    text.insert(1, "|" + "|".join("-" * (w + 2) for w in widths) + "|")
    return "\n".join(text)


def best_ratio(rows):
    """(our best thread count, the fastest row of any peer, ratio); None where one is missing. Ours is measured beside
    every mode of every peer, so its number for a thread count is the median over those rows."""
    counts = {r["threads"]: [s["ours_ms"] for s in rows if s["threads"] == r["threads"]] for r in rows if r["ours_ms"]}
    medians = [{"threads": n, "ours_ms": statistics.median(filter(None, ms))} for n, ms in counts.items()]
    ours, peer = least(medians, "ours_ms"), least(rows, "peer_ms")
    return (ours, peer, peer["peer_ms"] / ours["ours_ms"]) if ours and peer else None


def drop(base, prime):
    """The part of the ratio that prime sizes cost: 0.1 where 2.0 becomes 1.8."""
    return 1 - prime / base


def threads(row):
    return f"{row['threads']} thread" + ("s" if row["threads"] > 1 else "")


def summary(name, about, rows, ops=None):
    """One line for a workload: each side at its best, what prime sizes change. ops: their number in a step."""
    base = best_ratio([r for r in rows if r["workload"] == name])
    prime = best_ratio([r for r in rows if r["workload"] == name + PRIME])
    if not base:
        return f"{name} ({about}): no ratio, one side is missing"
    ours, peer, ratio = base
    line = (f"{name} ({about}): ours {number(ours['ours_ms'])} ms ({threads(ours)}), best peer {peer['peer']} "
            f"{peer['mode']} {number(peer['peer_ms'])} ms ({threads(peer)}): {number(ratio)}x")
    if ops:
        line += f", {number(ours['ours_ms'] * 1e6 / ops)} ns an op against {number(peer['peer_ms'] * 1e6 / ops)}"
    if prime:
        lost = drop(ratio, prime[2])
        line += f"; prime sizes {number(prime[2])}x ({-lost:+.0%})" + (" TOO MUCH" if lost > MOST_DROP else "")
    return line


def last_line(text):
    """The last line that says something, for a note in a row; a pipe would break the table."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return re.sub(r"\s*\|\s*", " / ", lines[-1])[:120] if lines else "no message"
