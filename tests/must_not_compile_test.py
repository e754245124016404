"""Snippets that must not compile, and the message that tells the user what to do instead.

Each file in tests/must_not_compile/ begins with a line `// says: TEXT`, and must be refused with that text by every
compiler found; the file with `// compiles` proves that the snippets fail for their reason only.
Run: python3 tests/must_not_compile_test.py
"""
import pathlib
import re
import shutil
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
COMPILERS = [c for c in ("g++", "clang++-16") if shutil.which(c)]


def compile_snippet(compiler, snippet):
    command = [compiler, "-std=c++20", "-fsyntax-only", f"-I{ROOT / 'include'}", str(snippet)]
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
