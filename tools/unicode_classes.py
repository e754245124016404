"""Writes src/data/unicode_classes.cpp: which code points are letters and which are numbers, as ranges.

The source is the Unicode Character Database as the Python package unicodedata2 (or, without it, Python's unicodedata)
holds it: the general categories L* and N*. Run by hand; the file is committed.
usage: python3 tools/unicode_classes.py
"""

import pathlib
import sys

try:
    import unicodedata2 as unicodedata
except ImportError:
    import unicodedata

TARGET = pathlib.Path(__file__).resolve().parents[1] / "src" / "data" / "unicode_classes.cpp"
HEAD = """// Letters and numbers of Unicode {version} by general category. Made by tools/unicode_classes.py.
#include "data/unicode_classes.hpp"

namespace rosin {{
namespace {{

// clang-format off
"""
TAIL = """// clang-format on

}  // namespace

std::span<const CodeRange> letter_ranges() noexcept { return letters; }
std::span<const CodeRange> number_ranges() noexcept { return numbers; }

}  // namespace rosin
"""


def ranges(initial):
    """Pairs of the first and last code point of each run whose category begins with this letter."""
    found = []
    for code in range(128, sys.maxunicode + 1):
        if unicodedata.category(chr(code)).startswith(initial):
            if found and found[-1][1] == code - 1:
                found[-1][1] = code
            else:
                found.append([code, code])
    return found


def table(name, pairs):
    lines, line = [], " "
    for first, last in pairs:
        entry = f" {{0x{first:x}, 0x{last:x}}},"
        if len(line) + len(entry) > 118:
            lines.append(line)
            line = " "
        line += entry
    return f"constexpr CodeRange {name}[] = {{\n" + "\n".join(lines + [line]) + "\n};\n"


def main():
    text = HEAD.format(version=unicodedata.unidata_version)
    text += table("letters", ranges("L")) + table("numbers", ranges("N")) + TAIL
    TARGET.write_text(text, encoding="ascii")


if __name__ == "__main__":
    main()
