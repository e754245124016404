"""Plug-ins of the first release of ABI 1 go on working: abi/first_plugin.c, built with the page that it was written for
(abi/backend_abi1.h and what it includes), is loaded, checked and computed with. Tables that end elsewhere are taken or
refused.

The build is the folder named by ROSIN_TEST_BUILD, else build/release; ./run test sets it.
"""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = pathlib.Path(os.environ.get("ROSIN_TEST_BUILD", ROOT / "build" / "release")).resolve()
ABI = ROOT / "tests" / "abi"
C_COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
COMPILER = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
PROGRAM = """
#include <iostream>
#include <rosin/rosin.hpp>
int main() {
  using namespace rosin;
  if (!functional("First")) {
    for (const TriedFile& file : backend_report("First").tried) std::cout << file.reason;
    return 0;
  }
  const Device first = get_device("First");
  const Array x = Array({1.f, 2.f, 3.f}, {3}) | first, y = Array({10.f, 20.f, 30.f}, {3}) | first;
  for (int i = 0; i < 4; ++i) {
    if (((x + y) * y | cpu).to_vector<float>() != std::vector<float>{110, 440, 990}) return 1;
  }
  std::cout << "right";
}
"""


@unittest.skipUnless(C_COMPILER and COMPILER and (BUILD / "librosin.so").is_file(), "no compiler, or no library")
class FirstPlugin(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        source, cls.program = cls.folder / "program.cpp", cls.folder / "program"
        source.write_text(PROGRAM, encoding="utf-8")
        subprocess.run([COMPILER, "-std=c++20", "-I", ROOT / "include", source, "-o", cls.program, "-L", BUILD,
                        "-lrosin", f"-Wl,-rpath,{BUILD}"], check=True)

    def plugin(self, *options):
        """Compiled with these options; never against the header of this tree."""
        plugin = self.folder / "librosin_first.so"
        plugin.unlink(missing_ok=True)
        subprocess.run([C_COMPILER, "-std=c11", "-shared", "-fPIC", "-fvisibility=hidden", *options,
                        ABI / "first_plugin.c", "-o", plugin], check=True)
        return plugin

    def says(self, *options):
        """What the program prints."""
        self.plugin(*options)
        kept = {name: value for name, value in os.environ.items() if not name.startswith("ROSIN_")}
        kept |= {"ROSIN_PLUGIN_PATH": str(self.folder), "ROSIN_LOG": "none"}
        done = subprocess.run([self.program], env=kept, capture_output=True, text=True, check=False, timeout=120)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_computes_as_it_did(self):
        self.assertEqual(self.says(), "right")

    def test_keeps_the_contract_that_it_was_written_for(self):
        words = [BUILD / "conformance", self.plugin(), "--only", "device,memory,streams,services,calls,graphs"]
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=300)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_tables_may_end_within_what_is_optional(self):
        # after call_takes: half of the vendor calls, which is none of them
        self.assertEqual(self.says("-DTABLE_SIZE=ROSIN_BACKEND_SMALLEST+sizeof(void*)"), "right")

    def test_tables_of_later_pages_are_larger(self):
        self.assertEqual(self.says("-DTABLE_WHOLE", "-DTABLE_SIZE=sizeof(rosin_backend)+512"), "right")

    def test_smaller_tables_and_other_versions_are_refused(self):
        self.assertIn("ends before the last function that every plug-in has",
                      self.says("-DTABLE_SIZE=ROSIN_BACKEND_SMALLEST-sizeof(void*)"))
        self.assertIn("has back-end ABI 2, rosin has 1", self.says("-DTABLE_ABI=2"))


if __name__ == "__main__":
    unittest.main()
