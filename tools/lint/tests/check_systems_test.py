"""Which files are checked for which system, and that a file that is Linux's own does not pass for another's."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import check_systems  # noqa: E402


class Systems(unittest.TestCase):
    def test_each_system_gets_its_own_files(self):
        names = {system: {path.name for path in check_systems.files_for(system, ("src/platform",))}
                 for system in ("macos", "windows")}
        self.assertLessEqual({"files_posix.cpp", "processor_darwin.cpp"}, names["macos"])
        self.assertLessEqual({"files_windows.cpp", "processor_windows.cpp"}, names["windows"])
        for system in names:
            for name in names[system]:
                self.assertFalse(name.endswith(("_linux.cpp", "_test.cpp")), name)
        self.assertEqual(names["macos"] & names["windows"], set())

    def test_a_file_of_linux_is_refused_for_macos(self):
        tools = check_systems.libcxx_with_clang()
        if not tools:
            self.skipTest("no clang++ with its libc++")
        command = check_systems.macos_command(*tools)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "x.cpp"
            for text, right in (("#include <sys/mman.h>\nint x = PROT_READ;\n", True),
                                ("#include <sys/auxv.h>\n", False),
                                ("#include <sched.h>\nint f(cpu_set_t* s) { return CPU_COUNT(s); }\n", False)):
                path.write_text(text, encoding="utf-8")
                self.assertEqual(check_systems.errors_in(command, path) == "", right, text)


if __name__ == "__main__":
    unittest.main()
