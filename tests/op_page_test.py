"""Follows docs/how_to_add_op.md to the letter in a copy of the sources, and calls its ops from a program.

Blocks of the page that name a file are that file (c++), or change it (diff). Compiled anew is what they touch; the rest
of the library comes from the build, which ROSIN_TEST_BUILD names. A new kind moves the number of `attention`, the last
one, and the table of kinds: files that know these are compiled anew as well, as they would be by the build.
"""

import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = pathlib.Path(os.environ.get("ROSIN_TEST_BUILD", ROOT / "build" / "release")).resolve()
PAGE = ROOT / "docs" / "how_to_add_op.md"
COMMANDS = BUILD / "compile_commands.json"
KNOWS_ALL_KINDS = re.compile(r'#include "graph/kinds.hpp"|Kind::attention')

PROGRAM = r"""
#include <cstdio>

#include <rosin/rosin.hpp>

using namespace rosin;

bool good = true;
Array vector(const std::vector<float>& values) { return Array(values, Shape{static_cast<int64_t>(values.size())}); }
void expect(bool holds, const char* what) {
  if (!holds) std::printf("not so: %s\n", what);
  good = good && holds;
}

void check(const Device& device) {
  const Array x = device(vector({0.5f, -2.0f, 0.25f, 3.0f}));
  expect(cube(x).to_vector<float>() == std::vector<float>{0.125f, -8.0f, 0.015625f, 27.0f}, "values of cube");
  const Array slope = gradient([](const Array& a) { return sum(cube(a)); }, x);
  expect(slope.to_vector<float>() == std::vector<float>{0.75f, 12.0f, 0.1875f, 27.0f}, "gradient of cube");

  const Array p = device(vector({0.5f, 0.5f, 0.0f, 1.0f, 0.25f}));
  expect(cumeither(p).to_vector<float>() == std::vector<float>{0.5f, 0.75f, 0.75f, 1.0f, 1.0f}, "values of cumeither");
  const Array by_p = gradient([](const Array& a) { return sum(cumeither(a)); }, p);
  // y[i] = 1 - (1 - p[0]) ... (1 - p[i])
  const std::vector<float> slopes = {2.0f * 0.5f + 1.0f, 0.5f + 0.5f, 0.25f, 0.25f * 0.75f + 0.25f, 0};
  expect(by_p.to_vector<float>() == slopes, "gradient of cumeither");

  const Array sorted = device(vector({1.0f, 2.0f, 2.0f, 5.0f, 8.0f, 9.0f, 12.0f}));
  const Array places = count_below(sorted, device(vector({0.0f, 1.0f, 2.0f, 2.5f, 9.0f, 12.0f, 13.0f})) + 0.0f);
  expect(places.to_vector<int32_t>() == std::vector<int32_t>{0, 0, 1, 3, 5, 6, 7}, "values of count_below");
  expect(places.dtype() == Int32 && count_below(sorted, sorted).rank() == 1, "type and shape of count_below");
  expect(sum(count_below(device(zeros({0})), sorted)).item<int64_t>() == 0, "nothing is below");
}

int main() {
  check(cpu_device());
  check(get_device("reference"));
  try {
    count_below(arange(3), vector({1.0f}));
    good = false;
  } catch (const Error& error) {
    expect(std::string(error.what()).find("count_below: ") == 0, error.what());
  }
  std::puts(good ? "good" : "bad");
}
"""


def blocks(text):
    """(language, file, code) of each block that names a file, without the indentation of lists."""
    for indent, language, name, code in re.findall(r"^( *)```(c\+\+|diff) (\S+)\n(.*?)^\1```", text,
                                                   re.MULTILINE | re.DOTALL):
        yield language, name, re.sub(f"^{indent}", "", code, flags=re.MULTILINE)


def changed(text, diff):
    """`text` with lines changed: ' ' and '-' lines must be there, once; ' ' and '+' lines take their place."""
    lines = diff.splitlines()
    before = "".join(line[1:] + "\n" for line in lines if line[0] in " -")
    after = "".join(line[1:] + "\n" for line in lines if line[0] in " +")
    if text.count(before) != 1:
        raise AssertionError(f"these lines are there {text.count(before)} times:\n{before}")
    return text.replace(before, after)


def run(words, **options):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False, timeout=1200,
                          **options)


@unittest.skipUnless(COMMANDS.is_file() and (BUILD / "librosin.so").is_file(), "no build with compile_commands.json")
class OpPage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = pathlib.Path(temporary.name)
        cls.commands = cls.library_commands()
        cls.touched = cls.copy_sources(cls.folder, PAGE.read_text(encoding="utf-8"))

    @staticmethod
    def library_commands():
        """How the build compiles each source of the library; other targets may compile some of them once more."""
        commands = {}
        for entry in json.loads(COMMANDS.read_text(encoding="utf-8")):
            words = shlex.split(entry["command"])
            if words[words.index("-o") + 1].startswith("CMakeFiles/rosin_"):
                commands[entry["file"]] = words
        return commands

    @staticmethod
    def copy_sources(folder, page, without=None):
        """A copy with the page's blocks, but for the diff of the file `without`; the files that they touch."""
        for name in ("include", "src"):
            shutil.copytree(ROOT / name, folder / name)
        touched = []
        for language, name, code in blocks(page):
            path = folder / name
            touched.append(name)
            if language == "c++":
                path.write_text(code, encoding="utf-8")
            elif name != without:
                path.write_text(changed(path.read_text(encoding="utf-8"), code), encoding="utf-8")
        return touched

    def command(self, name, folder):
        """The build's command for a source of the copy; a new one is compiled as its neighbours are."""
        known = self.commands.get(str(ROOT / name))
        if not known:
            neighbours = [file for file in self.commands if pathlib.Path(file).parent == (ROOT / name).parent
                          and not file.endswith("_test.cpp")]
            known = self.commands[neighbours[0]]
        words = list(known)
        words[words.index("-c") + 1] = str(folder / name)
        return [re.sub(f"^(-I)?{re.escape(str(ROOT))}/(src|include)", rf"\1{folder}/\2", word) for word in words]

    def compiled(self, name):
        words = self.command(name, self.folder)
        target = words[words.index("-o") + 1] = str(self.folder / name.replace("/", "_")) + ".o"
        done = run(words, cwd=BUILD)
        self.assertEqual(done.returncode, 0, f"{name}\n{done.stdout}{done.stderr}"[:6000])
        return target

    def sources_to_compile(self):
        knowing = [path.relative_to(self.folder).as_posix() for path in (self.folder / "src").rglob("*.[ch]pp")
                   if KNOWS_ALL_KINDS.search(path.read_text(encoding="utf-8"))]
        self.assertEqual([name for name in knowing if name.endswith(".hpp")], ["src/graph/kinds.hpp"])
        sources = {name for name in [*self.touched, *knowing] if name.endswith(".cpp")}
        return sorted(name for name in sources if not name.endswith("_test.cpp"))

    def objects_of_build(self, but):
        """The library's objects, but for those of these sources."""
        return [BUILD / words[words.index("-o") + 1] for file, words in self.commands.items()
                if file.startswith(f"{ROOT}/src/") and not file.endswith("_test.cpp")
                and str(pathlib.Path(file).relative_to(ROOT)) not in but]

    def test_its_ops_work_on_the_cpu_and_on_a_device(self):
        sources = self.sources_to_compile()
        with concurrent.futures.ThreadPoolExecutor(2) as workers:
            objects = list(workers.map(self.compiled, sources))
        program = self.folder / "program.cpp"
        program.write_text(PROGRAM, encoding="utf-8")
        needed = [line.split("=>")[1].split()[0] for line in run(["ldd", BUILD / "librosin.so"]).stdout.splitlines()
                  if re.search(r"libdnnl|libz\.|libpng|libjpeg", line)]
        compiler = self.command("src/base/error.cpp", self.folder)[0]
        done = run([compiler, "-std=c++20", "-I", self.folder / "include", program, *objects,
                    *self.objects_of_build(sources), *needed, "-ldl", "-pthread", "-o", self.folder / "program"])
        self.assertEqual(done.returncode, 0, done.stderr[:6000])
        plugins = {"ROSIN_PLUGIN_PATH": str(BUILD / "rosin"), "XDG_CACHE_HOME": str(self.folder)}
        done = run([self.folder / "program"], cwd=self.folder, env=os.environ | plugins)
        self.assertEqual((done.returncode, done.stdout), (0, "good\n"), done.stdout + done.stderr)

    def test_a_kind_that_a_place_forgets_does_not_compile(self):
        page = PAGE.read_text(encoding="utf-8")
        cpu, kernels, missing = "src/cpu/prepare.cpp", "src/kernels/launches.cpp", "search.* not handled"
        for forgotten, source, why in (("src/graph/kinds.hpp", "src/plan/fuse.cpp", "kinds_are_in_order"),
                                       (cpu, cpu, missing), (kernels, kernels, missing)):
            with self.subTest(forgotten=forgotten), tempfile.TemporaryDirectory() as name:
                self.copy_sources(pathlib.Path(name), page, without=forgotten)
                done = run([*self.command(source, pathlib.Path(name)), "-fsyntax-only"], cwd=BUILD)
                self.assertNotEqual(done.returncode, 0)
                self.assertRegex(done.stderr, why)

    def test_the_page_says_what_an_op_touches(self):
        """One source and a declaration for an elementwise op and for a reducer."""
        for name in ("cube", "either"):
            where = [index for index, file in enumerate(self.touched) if file == f"src/ops/{name}.cpp"]
            self.assertEqual(len(where), 1)
            self.assertRegex(self.touched[where[0] - 1], r"^include/rosin/")


if __name__ == "__main__":
    unittest.main()
