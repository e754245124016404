"""Compiles the C++ blocks of README.md and docs/*.md, checks links, and that every public header has its page.

A page is read from top to bottom: each ```cpp block opens a scope inside the scopes of the blocks before it, so it
sees their names and may use them anew. A block with `int main(` is a program of its own; ```cpp global stands outside
of all, for what must (templates, namespaces). All go through the compiler at once.
"""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
COMPILER = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
PLUMBING = {"rosin.hpp", "fwd.hpp", "export.hpp"}  # headers that need no page


def blocks(text):
    """(line of the first line of code, words after the fence, code) of each fenced block."""
    for match in re.finditer(r"^[ ]*```([^\n]*)\n(.*?)^[ ]*```", text, re.MULTILINE | re.DOTALL):
        yield text.count("\n", 0, match.start()) + 2, match.group(1).split(), match.group(2)


def page_source(number, path):
    """One page as (includes, code), with #line directives so that messages name the page."""
    includes, everywhere, outside, inside = [], [], [], []
    scopes = 0
    for line, words, code in blocks(path.read_text(encoding="utf-8")):
        if words[:1] != ["cpp"]:
            continue
        includes += re.findall(r"^\s*#\s*include\s.*$", code, re.MULTILINE)
        code = re.sub(r"^\s*#\s*include\s.*$", "", code, flags=re.MULTILINE)
        code = f'#line {line} "{path.relative_to(ROOT)}"\n{code}'
        if "int main(" in code:
            code = code.replace("int main(", "[[maybe_unused]] int start(")
            outside.append(f"namespace program_{line} {{\n{code}\n}}\n")
        elif "global" in words:
            everywhere.append(code)
        else:
            inside.append("{\n" + code)
            scopes += 1
    body = "".join(inside) + "}" * scopes
    return includes, (f"{''.join(everywhere)}\nnamespace page_{number} {{\n{''.join(outside)}\n"
                      f"[[maybe_unused]] void page() {{\n{body}\n}}\n}}\n")


class Docs(unittest.TestCase):
    @unittest.skipUnless(COMPILER, "no C++ compiler")
    def test_every_code_block_compiles(self):
        includes, code = ["#include <rosin/rosin.hpp>"], []
        for number, path in enumerate(PAGES):
            more, source = page_source(number, path)
            includes += more
            code.append(source)
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "docs.cpp"
            file.write_text("\n".join([*dict.fromkeys(includes), "using namespace rosin;", *code]), encoding="utf-8")
            command = [COMPILER, "-std=c++20", "-Wno-return-type", "-I", ROOT / "include", "-S", "-o", os.devnull, file]
            result = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 0, result.stderr[:6000])

    def test_every_link_leads_to_a_file(self):
        for path in PAGES:
            prose = re.sub(r"```.*?```|`[^`\n]*`", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
            for target in re.findall(r"\]\(([^)#\s]+)", prose):
                if not re.match(r"\w+:", target):
                    self.assertTrue((path.parent / target).exists(), f"{path.name}: {target}")

    def test_every_public_header_has_a_page(self):
        text = "".join(path.read_text(encoding="utf-8") for path in PAGES)
        headers = {path.name for path in (ROOT / "include" / "rosin").glob("*.h*")}
        missing = sorted(name for name in headers - PLUMBING if f"`{name}`" not in text)
        self.assertEqual(missing, [])


if __name__ == "__main__":
    unittest.main()
