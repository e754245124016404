"""Memory of other libraries through their real classes: std::mdspan, cv::Mat. Skipped where they are not installed.

tools/run_tests.py names the build in ROSIN_TEST_BUILD.
"""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = pathlib.Path(os.environ.get("ROSIN_TEST_BUILD", ROOT / "build" / "release")).resolve()
GNU = os.environ.get("CXX") or "g++"
OPENCV = "/usr/include/opencv4"
# compilers with the options under which their library may have <mdspan>
WITH_MDSPAN = [[GNU, "-std=c++23"], ["clang++-19", "-std=c++23", "-stdlib=libc++"]]


def compiles(command, text):
    return shutil.which(command[0]) is not None and subprocess.run(
        [*command, "-x", "c++", "-fsyntax-only", "-"], input=text, text=True, capture_output=True,
        check=False).returncode == 0


class ForeignHeaders(unittest.TestCase):
    def output_of(self, source, command, *libraries):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder) / "program"
            built = subprocess.run([*command, f"-I{ROOT / 'include'}", str(ROOT / "tests" / "foreign" / source), "-o",
                                    str(program), f"-L{BUILD}", "-lrosin", f"-Wl,-rpath,{BUILD}", *libraries],
                                   text=True, capture_output=True, check=False)
            self.assertEqual(built.returncode, 0, built.stderr)
            return subprocess.run([str(program)], text=True, capture_output=True, check=True).stdout

    def test_an_array_is_read_as_mdspan(self):
        probe = "#include <mdspan>\nstd::mdspan<float, std::dextents<int, 2>> m;\n"
        command = next((each for each in WITH_MDSPAN if compiles(each, probe)), None)
        if command is None:
            self.skipTest("no compiler here has <mdspan>")
        self.assertEqual(self.output_of("mdspan.cpp", command), "2 3: 1 1 0 1 1 1\n")

    def test_a_picture_of_opencv_is_an_array(self):
        command = [GNU, "-std=c++20", "-isystem", OPENCV]
        if not compiles(command, "#include <opencv2/core.hpp>\n"):
            self.skipTest("OpenCV is not installed")
        self.assertEqual(self.output_of("picture.cpp", command, "-lopencv_core"),
                         "4 3 2: 77 1 10 88\n2 2 2: 11 12 21 200\n")


if __name__ == "__main__":
    unittest.main()
