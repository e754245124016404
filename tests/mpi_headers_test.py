"""What the transport over MPI says of functions, handles and constants, against the headers of Open MPI and MPICH.

They are looked for where Debian has them and in MPI_HOME; skipped where they are not.
"""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[1]
COMPILER = os.environ.get("CXX") or "g++"


def header_folder(word):
    """The folder of an mpi.h that defines this word."""
    home = os.environ.get("MPI_HOME")
    folders = [pathlib.Path(home) / "include"] if home else []
    for pattern in ("lib/*/openmpi/include", "include/*/mpich", "include/*/openmpi", "include"):
        folders += sorted(pathlib.Path("/usr").glob(pattern))
    for folder in folders:
        if (folder / "mpi.h").is_file() and re.search(rf"#define {word}\b", (folder / "mpi.h").read_text("latin-1")):
            return folder
    return None


def comparisons():
    """A line for each function that the transport looks up: our type of it against the header's."""
    text = (ROOT / "comm" / "mpi" / "library.cpp").read_text(encoding="utf-8")
    return [f'static_assert(same_call<decltype(Functions::{field}), decltype(&::{function})>, "{function}");'
            for field, function in re.findall(r'find\(f\.(\w+), "(\w+)"\)', text) if field != "op_create"]


@unittest.skipUnless(shutil.which(COMPILER), "there is no compiler")
class MpiHeaders(unittest.TestCase):
    def program(self, word, *more, libraries=()):
        folder = header_folder(word)
        if folder is None:
            self.skipTest(f"no mpi.h has {word}")
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        program = pathlib.Path(holder.name) / "program"
        text = f'#include "{ROOT / "tests" / "foreign" / "mpi.cpp"}"\n' + "\n".join([*comparisons(), *more]) + "\n"
        done = subprocess.run(
            [COMPILER, "-std=c++20", "-w", "-DOMPI_SKIP_MPICXX", "-DMPICH_SKIP_MPICXX", f"-I{ROOT / 'comm'}",
             f"-I{ROOT / 'include'}", "-isystem", str(folder), "-x", "c++", "-", "-o", str(program), "-ldl",
             *libraries], input=text, text=True,
            capture_output=True, check=False)
        return done, program

    def check(self, word, *libraries):
        self.assertEqual(len(comparisons()), 23)
        done, program = self.program(word, libraries=libraries)
        self.assertEqual(done.returncode, 0, done.stderr)
        said = subprocess.run([str(program)], text=True, capture_output=True, check=False)
        self.assertEqual((said.returncode, said.stdout), (0, "all the same\n"), said.stderr)

    def test_those_of_open_mpi_are_its_own(self):
        self.check("OMPI_MAJOR_VERSION", "-lmpi")

    def test_those_of_mpich_are_its_own(self):
        self.check("MPICH_VERSION")

    def test_a_wrong_function_is_seen(self):
        line = 'static_assert(same_call<decltype(Functions::test), decltype(&::MPI_Bcast)>, "other call");'
        wrong, _ = self.program("OMPI_MAJOR_VERSION", line, libraries=["-lmpi"])
        self.assertNotEqual(wrong.returncode, 0)
        self.assertIn("other call", wrong.stderr)


if __name__ == "__main__":
    unittest.main()
