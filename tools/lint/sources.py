"""What the lint tools share: the project's files, and C++ text with comments and literals blanked out.

Read next: check_layers.py, check_sizes.py, check_headers.py, check_symbols.py; ./run lint calls them all.
"""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("src", "include", "examples", "bench", "tools", "tests", "backends", "comm", "cmake")
CPP = {".cpp", ".hpp", ".h"}

_TOKEN = re.compile(
    r"""(?P<raw>(?:u8|[uUL])?R"(?P<delim>[^()\\\s]{0,16})\(.*?\)(?P=delim)")"""
    r"""|(?P<block>/\*.*?\*/)|(?P<line>//(?:[^\n\\]|\\.)*)"""
    r"""|(?P<string>"(?:[^"\\\n]|\\.)*")|(?P<char>(?<![0-9a-fA-F])'(?:[^'\\\n]|\\.)*')""",
    re.DOTALL | re.VERBOSE,
)


def files(root, suffixes):
    """Every file under the project's folders whose suffix is in suffixes, sorted."""
    found = []
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in suffixes and path.is_file() and "__pycache__" not in path.parts:
                found.append(path)
    return found


def blank(text):
    """C++ text in which comments and string literals are spaces; every line keeps its place."""

    def spaces(match):
        return re.sub(r"[^\n]", " ", match.group(0))

    return _TOKEN.sub(spaces, text)


def finish(errors):
    """Prints the errors and gives the exit status."""
    for error in errors:
        print(error)
    return 1 if errors else 0
