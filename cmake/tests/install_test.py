"""Installs the build, moves the tree, and builds and runs a user's project against it with CMake and with pkg-config.

The build is the folder named by ROSIN_TEST_BUILD, else build/release; ./run test sets it.
"""

import os
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONSUMER = pathlib.Path(__file__).resolve().parent / "consumer"
BUILD = pathlib.Path(os.environ.get("ROSIN_TEST_BUILD", ROOT / "build" / "release"))


def run(*command, cwd=None, **environment):
    result = subprocess.run([str(word) for word in command], cwd=cwd, capture_output=True, text=True, check=False,
                            env=os.environ | {name: str(value) for name, value in environment.items()})
    if result.returncode:
        raise AssertionError(f"{command[0]} ended with {result.returncode}\n{result.stdout}{result.stderr}")
    return result.stdout


@unittest.skipUnless((BUILD / "librosin.so").exists(), f"no build in {BUILD}")
class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.scratch = pathlib.Path(folder.name)
        run("cmake", "--install", BUILD, "--prefix", cls.scratch / "first")
        cls.prefix = cls.scratch / "moved" / "here"
        cls.prefix.parent.mkdir()
        (cls.scratch / "first").rename(cls.prefix)
        cls.library = next(cls.prefix.rglob("librosin.so")).parent

    def test_a_project_finds_the_moved_package_and_runs(self):
        build = self.scratch / "build"
        run("cmake", "-G", "Ninja", "-S", CONSUMER, "-B", build, f"-DCMAKE_PREFIX_PATH={self.prefix}")
        run("cmake", "--build", build)
        self.assertEqual(run(build / "consumer", cwd=self.scratch), "12 equal\n")

    def test_pkg_config_gives_the_moved_place(self):
        flags = run("pkg-config", "--cflags", "--libs", "rosin", PKG_CONFIG_PATH=self.library / "pkgconfig").split()
        program = self.scratch / "with_pkg_config"
        run("g++", "-std=c++20", CONSUMER / "main.cpp", "-o", program, *flags)
        self.assertEqual(run(program, cwd=self.scratch, LD_LIBRARY_PATH=self.library), "12 equal\n")

    def test_no_installed_text_file_names_a_place_on_this_machine(self):
        for path in self.prefix.rglob("*"):
            if path.suffix in (".cmake", ".pc", ".hpp", ".h"):
                text = path.read_text(encoding="utf-8")
                for place in (ROOT, BUILD, self.scratch):
                    self.assertNotIn(str(place), text, path)

    def test_every_public_header_is_installed(self):
        def headers(folder):
            return sorted(path.relative_to(folder) for path in folder.rglob("*.h*"))

        self.assertEqual(headers(self.prefix / "include" / "rosin"), headers(ROOT / "include" / "rosin"))


if __name__ == "__main__":
    unittest.main()
