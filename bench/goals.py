"""Goals of the workloads, and whether a run met them: for one thread and for two, each against the best peer with as
many threads. Nothing here runs anything. Read first: workloads.py. Read next: report.py, which prints this."""
import dataclasses
import statistics

PRIME = "-prime"  # ends the name of a workload whose sizes are primes
MOST_DROP = 0.15


def number(value):
    return "-" if value is None else f"{value:.4g}"


def counted(threads):
    return f"{threads} thread" + ("s" if threads > 1 else "")


def least(rows, key):
    """The row with the smallest number under key; None where no row has one."""
    return min((r for r in rows if r[key]), key=lambda r: r[key], default=None)


@dataclasses.dataclass(frozen=True)
class Pair:
    """Both sides of a workload with the same number of threads; peer is the row of the best."""
    threads: int
    ours_ms: float
    peer: dict

    @property
    def ratio(self):
        return self.peer["peer_ms"] / self.ours_ms


def our_time(rows, name, threads):
    """The median beside all peers; None where we are missing."""
    known = [r["ours_ms"] for r in rows if (r["workload"], r["threads"]) == (name, threads) and r["ours_ms"]]
    return statistics.median(known) if known else None


def pair(rows, name, threads):
    """None where one side is missing."""
    ours = our_time(rows, name, threads)
    peer = least([r for r in rows if (r["workload"], r["threads"]) == (name, threads)], "peer_ms")
    return Pair(threads, ours, peer) if ours and peer else None


def pairs(rows, workload, ending=""):
    """Number of threads -> pair, for those that were measured."""
    found = {n: pair(rows, workload.name + ending, n) for n in workload.threads}
    return {n: both for n, both in found.items() if both}


def scaling(rows, workload):
    """How many times as fast we are with two threads as with one; None where one of them is missing."""
    one, two = (our_time(rows, workload.name, n) for n in (1, 2))
    return one / two if one and two else None


def in_unit(workload, unit, ms):
    """The time of a step in " ms", or in " ns an op" or " ns an element" of its sizes."""
    if unit == " ms":
        return ms
    return ms * 1e6 / workload.sizes["ops" if unit == " ns an op" else "elements"]


def least_ratio(workload, threads):
    """None where the workload has no such goal."""
    return workload.ratios[min(threads, len(workload.ratios)) - 1] if workload.ratios else None


def verdict(bound, is_met):
    return f"{bound}: " + ("met" if is_met else "missed")


def verdicts(workload, both):
    """["1.4x: met"] for a pair: of the ratio, and with one thread of our time."""
    bound = least_ratio(workload, both.threads)
    found = [] if bound is None else [verdict(f"{number(bound)}x", both.ratio >= bound)]
    if workload.most and both.threads == 1:
        unit, most = workload.most
        found.append(verdict(number(most) + unit, in_unit(workload, unit, both.ours_ms) <= most))
    return found


def scaling_verdict(workload, found):
    """[] where the workload has no such goal or was not measured."""
    return [verdict(f"{number(workload.scaling)}x", found >= workload.scaling)] if workload.scaling and found else []


@dataclasses.dataclass(frozen=True)
class Change:
    """What prime sizes change, with the number of threads where they cost most; lost is the part of the ratio: 0.1
    where 2.0 becomes 1.8."""
    threads: int
    ratio: float
    lost: float

    @property
    def is_too_much(self):
        return self.lost > MOST_DROP


def prime_change(rows, workload):
    """None where prime sizes were not measured."""
    usual, prime = pairs(rows, workload), pairs(rows, workload, PRIME)
    changes = [Change(n, prime[n].ratio, 1 - prime[n].ratio / usual[n].ratio) for n in usual if n in prime]
    return max(changes, key=lambda change: change.lost, default=None)


def missed(rows, workload):
    """The goals that were missed, each as "1.4x with 1 thread"."""
    found = [f"{text.removesuffix(': missed')} with {counted(n)}" for n, both in pairs(rows, workload).items()
             for text in verdicts(workload, both) if text.endswith("missed")]
    if any(text.endswith("missed") for text in scaling_verdict(workload, scaling(rows, workload))):
        found.append(f"{number(workload.scaling)}x as fast with 2 threads as with 1")
    change = prime_change(rows, workload)
    return found + (["prime sizes"] if change and change.is_too_much else [])
