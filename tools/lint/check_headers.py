"""Checks the public headers: what they drag in, what they cost to compile, which macros they leave behind.

usage: python3 tools/lint/check_headers.py [includes|cost|macros]... [--root ROOT] (all three without a name)
Cost is the compile time of one include, as a ratio to an empty unit with <span> <string> <vector>, best of seven,
or of more where that is too much.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import check_layers
import sources

FORBIDDEN = {"functional", "memory", "chrono", "random", "iostream", "complex", "source_location"}
FORBIDDEN_ROOMS = {"base", "graph", "ops"}  # array and op headers, and what they stand on
COST = {"array.hpp": 1.4, "rosin.hpp": 4.5}
ROUNDS = 7
MOST_ROUNDS = 28  # where a header seems too costly: neighbours of a shared machine can make a minute of rounds slow
EMPTY = "#include <span>\n#include <string>\n#include <vector>\n"
COMPILER = [os.environ.get("CXX", "g++"), "-std=c++20"]


def public_headers(root):
    return sorted(path.relative_to(root / "include").as_posix() for path in (root / "include" / "rosin").rglob("*.h*"))


def compile_text(root, text, *arguments):
    """Runs the compiler on text from standard input and gives what it says."""
    command = [*COMPILER, f"-I{root / 'include'}", *arguments, "-x", "c++", "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False)


def forbidden_chains(tree):
    """(chain of headers) for each forbidden standard header in the tree that `g++ -H` prints."""
    chains, path = [], []
    for match in re.finditer(r"^(\.+) (\S+)$", tree, re.MULTILINE):
        depth, name = len(match.group(1)), match.group(2)
        path[depth - 1:] = [name]
        parent = pathlib.PurePath(name).parent.as_posix()
        if pathlib.PurePath(name).name in FORBIDDEN and re.search(r"/c\+\+/[\d.]+$", parent):
            chains.append([pathlib.PurePath(step).name for step in path])
    return chains


def check_includes(root):
    errors = []
    for header in public_headers(root):
        result = compile_text(root, f"#include <{header}>\n", "-H", "-fsyntax-only")
        if result.returncode:
            said = re.sub(r"^\.+ .*\n", "", result.stderr, flags=re.MULTILINE)
            errors.append(f"include/{header}: does not compile by itself\n{said.rstrip()}")
        if check_layers.HEADER_ROOM.get(header.removeprefix("rosin/")) not in FORBIDDEN_ROOMS:
            continue
        for chain in forbidden_chains(result.stderr):
            errors.append(f"include/{header}: drags in <{chain[-1]}>: {' > '.join(chain)}")
    return errors


def seconds(root, text):
    """CPU seconds of one compilation; waiting for other processes does not count."""
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "unit.cpp"
        source.write_text(text, encoding="utf-8")
        before = os.times()
        command = [*COMPILER, f"-I{root / 'include'}", "-O1", "-c", str(source), "-o", "/dev/null"]
        subprocess.run(command, check=True, capture_output=True)
        after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def cost_ratios(root, headers):
    """header -> compile time as a multiple of the empty unit's, best of ROUNDS taken in turn, or of more."""
    texts = {"": EMPTY} | {header: EMPTY + f"#include <rosin/{header}>\n" for header in headers}
    best, ratios = {}, {}
    for done in range(1, MOST_ROUNDS + 1):
        for header, text in texts.items():
            best[header] = min(best.get(header, 1e9), seconds(root, text))
        ratios = {header: best[header] / best[""] for header in headers}
        if done >= ROUNDS and all(ratio <= COST[header] for header, ratio in ratios.items()):
            break
    return ratios


def check_cost(root):
    errors = []
    present = [header for header in COST if (root / "include" / "rosin" / header).is_file()]
    for header, ratio in cost_ratios(root, present).items():
        print(f"rosin/{header}: {ratio:.2f} times an empty unit, at most {COST[header]}")
        if ratio > COST[header]:
            errors.append(f"include/rosin/{header}: costs {ratio:.2f} times an empty unit; at most {COST[header]}")
    return errors


def own_macros(preprocessed, folder):
    """Macros defined, and not undefined again, by files under folder; preprocessed is what `g++ -dD -E` prints."""
    current, macros = "", {}
    for line in preprocessed.split("\n"):
        if match := re.match(r'# \d+ "([^"]*)"', line):
            current = match.group(1)
        elif match := re.match(r"#(define|undef) (\w+)", line):
            if match.group(1) == "undef":
                macros.pop(match.group(2), None)
            elif current.startswith(str(folder) + "/"):
                macros[match.group(2)] = current
    return macros


def check_macros(root):
    errors, folder = [], root / "include" / "rosin"
    for header in public_headers(root):
        result = compile_text(root, f"#include <{header}>\n", "-dD", "-E")
        for macro, path in own_macros(result.stdout, folder).items():
            if not macro.startswith("ROSIN_") and path.endswith("include/" + header):
                errors.append(f"include/{header}: defines the macro {macro}, which has no ROSIN_ in front")
    return errors


CHECKS = {"includes": check_includes, "cost": check_cost, "macros": check_macros}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("checks", nargs="*", help=", ".join(CHECKS))
    parser.add_argument("--root", type=pathlib.Path, default=sources.ROOT)
    arguments = parser.parse_args()
    errors = []
    for name in arguments.checks or CHECKS:
        errors += CHECKS[name](arguments.root.resolve())
    return sources.finish(errors)


if __name__ == "__main__":
    sys.exit(main())
