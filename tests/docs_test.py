"""Compiles the C++ blocks of README.md and docs/*.md, checks links, and that every public header has its page.

A page is read from top to bottom: each ```cpp block opens a scope inside the scopes of the blocks before it, so it
sees their names and may use them anew. A block with `int main(` is a program of its own; ```cpp global stands outside
of all, for what must (templates, namespaces). All go through the compiler at once.

The page of GPUs is run too: without any plug-in, and with the reference plug-in under the name CUDA, where each ```text
block must be what the program says. tools/run_tests.py names the build in ROSIN_TEST_BUILD.
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
BUILD = pathlib.Path(os.environ.get("ROSIN_TEST_BUILD", ROOT / "build" / "release")).resolve()
FAKE_PLUGINS = BUILD / "plugins" / "fake"  # the reference plug-in under the names of vendors' back ends
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


def run_page(program, folder, **variables):
    """What a page's program says in an empty folder, notices included."""
    kept = {name: value for name, value in os.environ.items() if not re.match("ROSIN_|CUDA_|HIP_|ROCR_|XDG_", name)}
    variables |= {"XDG_CONFIG_HOME": str(folder), "XDG_CACHE_HOME": str(folder)}
    folder.mkdir()
    return subprocess.run([program], cwd=folder, env=kept | variables, stdin=subprocess.DEVNULL, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)


class GpuPage(unittest.TestCase):
    """docs/gpu.md as a program."""

    @classmethod
    def setUpClass(cls):
        if not COMPILER or not (BUILD / "librosin.so").is_file():
            raise unittest.SkipTest("no C++ compiler, or no build")
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = pathlib.Path(temporary.name)
        cls.page = ROOT / "docs" / "gpu.md"
        includes, code = page_source(0, cls.page)
        start = "int main() {\n  std::cout << std::unitbuf;\n  page_0::page();\n}\n"
        source = cls.folder / "gpu.cpp"
        source.write_text("\n".join(["#include <rosin/rosin.hpp>", *includes,
                                     "using namespace rosin;", code, start]), encoding="utf-8")
        cls.program = cls.folder / "gpu"
        command = [COMPILER, "-std=c++20", "-I", ROOT / "include", source, "-o", cls.program, "-L", BUILD, "-lrosin",
                   f"-Wl,-rpath,{BUILD}", "-pthread"]
        subprocess.run(command, check=True)

    def test_runs_without_a_gpu(self):
        result = run_page(self.program, self.folder / "cpu", ROSIN_AUTOLOAD="0")
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertIn("gpu: no functional GPU", result.stdout)

    def test_says_what_the_page_shows_where_there_are_three_devices(self):
        result = self.run_with_three_devices("cuda")
        self.assertEqual(result.returncode, 0, result.stdout)
        position = 0
        for line, words, shown in blocks(self.page.read_text(encoding="utf-8")):
            if words == ["text"]:
                self.assertIn(shown, result.stdout[position:], f"docs/gpu.md:{line}")
                position = result.stdout.index(shown, position) + len(shown)
        saved = [(self.folder / "cuda" / name).read_bytes() for name in ("moved.safetensors", "straight.safetensors")]
        self.assertEqual(*saved)

    def test_devices_are_hidden_as_the_page_says(self):
        hidden = self.run_with_three_devices("hidden", CUDA_VISIBLE_DEVICES="-1")
        self.assertRegex(hidden.stdout, r"(?m)^CUDA: no, .*CUDA_VISIBLE_DEVICES")
        two = self.run_with_three_devices("two", CUDA_VISIBLE_DEVICES="0,2")
        self.assertIn("2 CUDA devices:\n0. NVIDIA Reference GPU 0\n1. NVIDIA Reference GPU 2\n", two.stdout)
        self.assertEqual((hidden.returncode, two.returncode), (0, 0))

    def run_with_three_devices(self, name, **variables):
        if not FAKE_PLUGINS.is_dir():
            self.skipTest("the build has no stand-ins for GPUs")
        return run_page(self.program, self.folder / name, ROSIN_PLUGIN_PATH=str(FAKE_PLUGINS),
                        ROSIN_REFERENCE_CUDA="devices=3", **variables)

    def test_has_the_headings_of_the_page_it_follows_in_their_order(self):
        wanted = ["GPU support", "availability", "Selecting", "Basic", "Transferring", "Saving", "Disabling",
                  "device objects", "across GPU devices", "Distributed", "Phrase book"]
        headings = re.findall(r"^##? (.*)$", self.page.read_text(encoding="utf-8"), re.MULTILINE)
        self.assertEqual(len(headings), len(wanted))
        for heading, words in zip(headings, wanted):
            self.assertIn(words, heading)


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
