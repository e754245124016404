"""A user's project reaches rosin in six ways, each of which builds and runs consumer/: the installed package
(find_package), pkg-config, a tree that was moved, the static library, add_subdirectory and FetchContent.

The build is the folder named by ROSIN_TEST_BUILD, else build/release; ./run test sets it. The library is not compiled
again: the ways that build it take over the objects of that build.
"""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONSUMER = pathlib.Path(__file__).resolve().parent / "consumer"
BUILD = pathlib.Path(os.environ.get("ROSIN_TEST_BUILD", ROOT / "build" / "release"))
SAID = "12 equal\n"


def run(*command, cwd=None, **environment):
    result = subprocess.run([str(word) for word in command], cwd=cwd, capture_output=True, text=True, check=False,
                            env=os.environ | {name: str(value) for name, value in environment.items()})
    if result.returncode:
        raise AssertionError(f"{command[0]} ended with {result.returncode}\n{result.stdout}{result.stderr}")
    return result.stdout


def take_over_objects(folder):
    """Puts the objects of the build where the build of the library in `folder` expects its own: they are newer than all
    that make compares them with."""
    for objects in BUILD.glob("CMakeFiles/rosin_*.dir/src"):
        shutil.copytree(objects, folder / objects.relative_to(BUILD), copy_function=shutil.copyfile, dirs_exist_ok=True)


@unittest.skipUnless((BUILD / "librosin.so").exists(), f"no build in {BUILD}")
class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.scratch = pathlib.Path(folder.name)
        cls.installed = cls.scratch / "installed"
        run("cmake", "--install", BUILD, "--prefix", cls.installed)
        cls.moved = cls.scratch / "moved" / "here"
        shutil.copytree(cls.installed, cls.moved, symlinks=True)
        cls.library = next(cls.moved.rglob("librosin.so")).parent

    def build_consumer(self, name, *options):
        build = self.scratch / name
        run("cmake", "-G", "Ninja", "-S", CONSUMER, "-B", build, *options)
        run("cmake", "--build", build)
        return build / "consumer"

    def test_a_project_finds_the_installed_package(self):
        program = self.build_consumer("package", f"-DCMAKE_PREFIX_PATH={self.installed}")
        self.assertEqual(run(program, cwd=self.scratch), SAID)

    def test_a_project_finds_the_moved_package(self):
        program = self.build_consumer("relocated", f"-DCMAKE_PREFIX_PATH={self.moved}")
        self.assertIn(str(self.moved), run("ldd", program))
        self.assertEqual(run(program, cwd=self.scratch), SAID)

    def test_a_project_links_the_static_library(self):
        if not (self.library / "librosin.a").exists():
            self.skipTest("this build has no static library")
        program = self.build_consumer("static", f"-DCMAKE_PREFIX_PATH={self.moved}",
                                      "-DROSIN_TARGET=rosin::rosin_static")
        self.assertNotIn("librosin", run("ldd", program))
        self.assertEqual(run(program, cwd=self.scratch), SAID)

    def test_the_static_library_keeps_templates_that_programs_instantiate_too_weak(self):
        archive = self.library / "librosin.a"
        if not archive.exists():
            self.skipTest("this build has no static library")
        symbols = [line.split() for line in run("nm", archive).splitlines()]
        self.assertEqual([words[-1] for words in symbols if "u" in words[:-1]], [])

    def test_pkg_config_gives_the_moved_place_and_the_language(self):
        flags = run("pkg-config", "--cflags", "--libs", "rosin", PKG_CONFIG_PATH=self.library / "pkgconfig").split()
        self.assertIn("-std=c++20", flags)
        program = self.scratch / "with_pkg_config"
        run("g++", CONSUMER / "main.cpp", "-o", program, *flags)
        self.assertEqual(run(program, cwd=self.scratch, LD_LIBRARY_PATH=self.library), SAID)

    def test_an_older_language_is_named(self):
        with self.assertRaisesRegex(AssertionError, "rosin needs C\\+\\+20: compile with -std=c\\+\\+20 or later"):
            run("g++", "-std=c++17", "-fsyntax-only", "-I", self.moved / "include", CONSUMER / "main.cpp")

    def build_with_sources(self, way, library):
        """The consumer with the library built inside its project, in the folder `library` of its build."""
        build = self.scratch / way
        run("cmake", "-G", "Unix Makefiles", "-S", CONSUMER, "-B", build, f"-DROSIN_WAY={way}",
            f"-DROSIN_SOURCE={ROOT}", "-DCMAKE_BUILD_TYPE=Release")
        take_over_objects(build / library)
        said = run("cmake", "--build", build, "--target", "consumer")
        self.assertNotIn("src/graph/record.cpp.o", said)  # else the library was compiled again
        self.assertEqual(run(build / "consumer", cwd=self.scratch), SAID)

    def test_a_project_builds_the_library_in_a_subdirectory(self):
        self.build_with_sources("subdirectory", "rosin")

    def test_a_project_fetches_the_sources(self):
        self.build_with_sources("fetch", pathlib.Path("_deps") / "rosin-build")

    def test_no_installed_text_file_names_a_place_on_this_machine(self):
        for path in self.moved.rglob("*"):
            if path.suffix in (".cmake", ".pc", ".hpp", ".h"):
                text = path.read_text(encoding="utf-8")
                for place in (ROOT, BUILD, self.scratch):
                    self.assertNotIn(str(place), text, path)

    def test_every_public_header_is_installed(self):
        def headers(folder):
            return sorted(path.relative_to(folder) for path in folder.rglob("*.h*"))

        self.assertEqual(headers(self.moved / "include" / "rosin"), headers(ROOT / "include" / "rosin"))


if __name__ == "__main__":
    unittest.main()
