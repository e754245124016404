"""The memory of this process, as Linux counts it: its peak, and the point from which a peak is counted. Standard
library only. The C++ side is in common.hpp and means the same."""
import resource


def peak_bytes():
    """The most that the process has held since it began, or since begin_peak(). ru_maxrss, which is taken where there
    is no /proc, is at least what the program held that started this one."""
    try:
        with open("/proc/self/status", encoding="ascii") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:")) * 1024
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def begin_peak():
    """Lets peaks count from here, so that what was freed before is no part of them; returns what the process holds
    now. Where Linux does not let it, the peak until now."""
    try:
        with open("/proc/self/clear_refs", "w", encoding="ascii") as clear:
            clear.write("5")
    except OSError:
        pass  # the peak goes on from its old value: what is told is too little, not too much
    return peak_bytes()
