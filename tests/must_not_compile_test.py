"""Snippets that must not compile, and the message that tells the user what to do instead.

Each file in tests/must_not_compile/ begins with a line `// says: TEXT`, and must be refused with that text by every
compiler found; the file with `// compiles` proves that the snippets fail for their reason only.
Run: python3 tests/must_not_compile_test.py
"""
import functools
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = tempfile.TemporaryDirectory()  # for as long as this process runs
COMPILERS = [c for c in ("g++", "clang++-16") if shutil.which(c)]


@functools.cache
def options_of(compiler):
    """With the headers read once for all snippets."""
    options = ["-std=c++20", f"-I{ROOT / 'include'}"]
    header = pathlib.Path(FOLDER.name) / f"{compiler}.hpp"
    header.write_text("#include <rosin/rosin.hpp>\n", encoding="utf-8")
    clang = "clang" in compiler
    read = header.with_name(header.name + (".pch" if clang else ".gch"))
    subprocess.run([compiler, *options, "-x", "c++-header", str(header), "-o", str(read)], check=True)
    return [*options, *(["-include-pch", str(read)] if clang else ["-include", str(header)])]


def compile_snippet(compiler, snippet):
    command = [compiler, *options_of(compiler), "-fsyntax-only", str(snippet)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def words(text):
    """A compiler may break lines and quote in its own way."""
    return re.sub(r"[^A-Za-z0-9_:&<>{}=*;,.()]+", " ", text.replace('" "', ""))


class MustNotCompile(unittest.TestCase):
    def test_there_is_a_compiler(self):
        self.assertTrue(COMPILERS)


def make_test(snippet, compiler):
    first = snippet.read_text().splitlines()[0]

    def test(self):
        done = compile_snippet(compiler, snippet)
        if first == "// compiles":
            self.assertEqual(done.returncode, 0, done.stderr)
            return
        self.assertNotEqual(done.returncode, 0, "it compiles")
        self.assertIn(words(first.removeprefix("// says: ")), words(done.stderr))

    return test


for _snippet in sorted((ROOT / "tests" / "must_not_compile").glob("*.cpp")):
    for _compiler in COMPILERS:
        _name = f"test_{_snippet.stem}_{re.sub('[^a-z0-9]', '_', _compiler)}"
        setattr(MustNotCompile, _name, make_test(_snippet, _compiler))

if __name__ == "__main__":
    unittest.main()
