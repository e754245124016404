"""Checks what librosin.so exports: names of rosin:: with vtables and type information, and C functions rosin_*; and
that its variables of threads are few: where a program opens it at run time, as Python does, the C library has about 1.6
KB for those of all libraries together; and that it is not larger than it may be. Plug-ins, librosin_<name>.so, export
rosin_backend_open, perhaps C functions rosin_<name>_*, and need nothing of rosin; transports, librosin_comm_<name>.so,
the same with rosin_comm_open.

usage: python3 tools/lint/check_symbols.py build/release/librosin.so build/release/rosin/librosin_*.so
"""

import pathlib
import re
import subprocess
import sys
import tempfile

import sources

# _ZN5rosin..., also const and reference-qualified members, vtables, type information, guards and thunks
_OURS = re.compile(r"^(?:rosin_\w+|_Z(?:T[ISVT]|GV|Th[n\d]*_|Tv\d+_n\d+_)?N[KRO]*5rosin.*)$")


def foreign(listing):
    """The symbols that are not rosin's, from the lines of `nm -D --defined-only -P`."""
    names = [line.split()[0].partition("@")[0] for line in listing.splitlines() if line.strip()]
    return [name for name in names if not _OURS.match(name)]


def demangled(names):
    result = subprocess.run(["c++filt", *names], capture_output=True, text=True, check=True)
    return result.stdout.splitlines()


def symbols(library, which):
    """The lines of `nm -D -P`, or the error text as the second value."""
    listing = subprocess.run(["nm", "-D", which, "-P", library], capture_output=True, text=True, check=False)
    return listing.stdout, f"{library}: {listing.stderr.strip()}" if listing.returncode else ""


def plugin_errors(library, name):
    entrance = "rosin_comm_open" if name.startswith("comm_") else "rosin_backend_open"
    defined, error = symbols(library, "--defined-only")
    needed, _ = symbols(library, "--undefined-only")
    if error:
        return [error]
    exported = [line.split()[0].partition("@")[0] for line in defined.splitlines() if line.strip()]
    errors = [f"{library}: exports {symbol}, which is not its own" for symbol in exported
              if symbol != entrance and not symbol.startswith(f"rosin_{name}_")]
    if entrance not in exported:
        errors.append(f"{library}: exports no {entrance}")
    needed = [line.split()[0].partition("@")[0] for line in needed.splitlines() if line.strip()]
    return errors + [f"{library}: needs {symbol} of librosin" for symbol in needed if _OURS.match(symbol)]


_MOST_OF_THREADS = 1024  # bytes


def bytes_of_threads(headers):
    """The size of the TLS segment, from the lines of `readelf -lW`."""
    found = re.search(r"^ *TLS +\S+ +\S+ +\S+ +\S+ +(0x[0-9a-f]+)", headers, re.MULTILINE)
    return int(found.group(1), 16) if found else 0


def check_threads(library):
    headers = subprocess.run(["readelf", "-lW", library], capture_output=True, text=True, check=True)
    taken = bytes_of_threads(headers.stdout)
    if taken <= _MOST_OF_THREADS:
        return []
    return [f"{library}: variables of threads take {taken} bytes of at most {_MOST_OF_THREADS}; put large ones behind "
            "a pointer"]


_MOST_STRIPPED = 10_000_000  # bytes


def check_size(library, most=_MOST_STRIPPED):
    with tempfile.TemporaryDirectory() as folder:
        stripped = pathlib.Path(folder) / "stripped"
        subprocess.run(["strip", "-o", stripped, library], check=True)
        taken = stripped.stat().st_size
    if taken <= most:
        return []
    return [f"{library}: takes {taken} bytes of at most {most} when stripped; compile what is rare with -Os "
            "(CMakeLists.txt)"]


def check(library):
    plugin = re.fullmatch(r"librosin_(\w+)\.so", pathlib.Path(library).name)
    if plugin:
        return plugin_errors(library, plugin.group(1))
    listing, error = symbols(library, "--defined-only")
    if error:
        return [error]
    if not listing.strip():
        return [f"{library}: exports nothing; is ROSIN_API missing?"]
    names = foreign(listing)
    return check_threads(library) + check_size(library) + [f"{library}: exports a foreign symbol: {name}"
                                     for name in (demangled(names) if names else [])]


if __name__ == "__main__":
    sys.exit(sources.finish([error for path in sys.argv[1:] for error in check(path)]))
