"""Checks what librosin.so exports: names of rosin:: with their vtables and type information, and C functions rosin_*.

usage: python3 tools/lint/check_symbols.py build/release/librosin.so
"""

import re
import subprocess
import sys

import sources

# _ZN5rosin..., also const and reference-qualified members, vtables, type information, guards and thunks
_OURS = re.compile(r"^(?:rosin_\w+|_Z(?:T[ISVT]|GV|Th[n\d]*_|Tv\d+_n\d+_)?N[KRO]*5rosin.*)$")


def foreign(symbols):
    """The symbols that are not rosin's, from the lines of `nm -D --defined-only -P`."""
    names = [line.split()[0].partition("@")[0] for line in symbols.splitlines() if line.strip()]
    return [name for name in names if not _OURS.match(name)]


def demangled(names):
    result = subprocess.run(["c++filt", *names], capture_output=True, text=True, check=True)
    return result.stdout.splitlines()


def check(library):
    listing = subprocess.run(["nm", "-D", "--defined-only", "-P", library], capture_output=True, text=True, check=False)
    if listing.returncode:
        return [f"{library}: {listing.stderr.strip()}"]
    if not listing.stdout.strip():
        return [f"{library}: exports nothing; is ROSIN_API missing?"]
    names = foreign(listing.stdout)
    return [f"{library}: exports a foreign symbol: {name}" for name in (demangled(names) if names else [])]


if __name__ == "__main__":
    sys.exit(sources.finish(check(sys.argv[1])))
