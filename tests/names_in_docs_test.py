"""Every public name stands in code that is compiled: in a block of docs/ or README.md, or in an example.

Names are those that the headers in include/rosin declare in namespace rosin itself. What a comment marks as meant for
the library ("For the library", "For compiled code") is left out, with what follows it up to an empty line; where the
comment opens a section (// ---), up to the next one. A class that a function of its header returns need not be named.
"""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[1]
INSIDE = re.compile(r"[Ff]or (?:the library|compiled code|the templates below|train:)")
FUNCTION = re.compile(r"^(?:template\s*<.*?>\s*)?(?:ROSIN_API |inline |constexpr |\[\[\w+\]\] )*"
                      r"[A-Za-z_][\w:<>,&\* ]*?[ &\*](\w+)\s*\(")
CLASS = re.compile(r"^(?:template\s*<.*>\s*)?(?:struct|class|enum class)\s+(?:ROSIN_API\s+)?(\w+)[^;]*$")
CONSTANT = re.compile(r"^inline constexpr [\w:]+ (\w+)")
NO_NAMES = {"requires", "decltype", "static_assert", "noexcept", "operator", "if"}


def public_names(text):
    """Names that a header declares in namespace rosin, in the order of the header."""
    depth, hidden, inside, section = 0, None, False, False
    for line in text.split("\n"):
        code = re.sub(r"//.*|\"[^\"]*\"|'.'", "", line)
        if line.startswith("// ---"):
            section = bool(INSIDE.search(line))
        if not line.strip():
            inside = section
        inside = inside or ("//" in line and bool(INSIDE.search(line)))
        space = re.match(r"\s*namespace ([\w:]+) \{", code)
        if space and space.group(1) != "rosin" and hidden is None:
            hidden = depth
        if hidden is None and depth <= 1 and not inside and not code.startswith(" "):
            for pattern in (FUNCTION, CLASS, CONSTANT):
                match = pattern.match(code)
                if match and match.group(1) not in NO_NAMES:
                    yield match.group(1)
                    break
        depth += code.count("{") - code.count("}")
        if hidden is not None and depth <= hidden:
            hidden = None


def is_returned(name, text):
    """Whether a function of the header returns an object of that class."""
    return re.search(rf"\b{name}(<[^;{{}}()]*>)? \w+\(", text) is not None


def compiled_code():
    """The text of all blocks of the pages, and of the examples."""
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    block = re.compile(r"^[ ]*```cpp[^\n]*\n(.*?)^[ ]*```", re.M | re.S)
    parts = [code for page in pages for code in block.findall(page.read_text(encoding="utf-8"))]
    parts += [path.read_text(encoding="utf-8") for path in (ROOT / "examples").rglob("*.[ch]pp")]
    return "\n".join(parts)


class NamesInDocs(unittest.TestCase):
    def test_every_public_name_stands_in_compiled_code(self):
        words = set(re.findall(r"\w+", compiled_code()))
        missing = {}
        for header in sorted((ROOT / "include" / "rosin").glob("*.hpp")):
            text = header.read_text(encoding="utf-8")
            names = [name for name in public_names(text) if name not in words and not is_returned(name, text)]
            if names:
                missing[header.name] = sorted(set(names))
        self.assertEqual(missing, {}, "use these on a page of docs/ (catalogue.md has every name), or mark them as "
                                      "meant for the library")

    def test_the_reader_of_headers_finds_names_and_leaves_out_what_is_inside(self):
        text = ("namespace rosin {\nROSIN_API Array f(int x);\nstruct S {\n  int member();\n};\n"
                "/// For the library: g.\nint g();\n\ntemplate <class T> T h(T x) {\n  return x;\n}\n"
                "namespace reflect {\nint hidden();\n}\n}\n")
        self.assertEqual(list(public_names(text)), ["f", "S", "h"])


if __name__ == "__main__":
    unittest.main()
