"""The library's machine code has names where perf and gdb look for them: ROSIN_PERF_MAP, ROSIN_JITDUMP, ROSIN_GDB.
Files are read as Linux's tools/perf/Documentation/jitdump-specification.txt describes them, and by the programs
themselves.

The build is the folder named by ROSIN_TEST_BUILD, else build/release; ./run test sets it.
"""

import os
import pathlib
import re
import shutil
import struct
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = pathlib.Path(os.environ.get("ROSIN_TEST_BUILD", ROOT / "build" / "release")).resolve()
COMPILER = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
PROGRAM = """
#include <unistd.h>
#include <sys/wait.h>
#include <iostream>
#include <rosin/rosin.hpp>
using namespace rosin;
extern "C" [[gnu::noinline]] void stop_here() { asm volatile("" ::: "memory"); }
[[gnu::noinline]] float one(int64_t count) {
  const Array x = full({count}, 2.f);
  eval(x);
  return sum(x * x + 1.f).item<float>();
}
[[gnu::noinline]] float other() {
  const Array x = full({20}, 2.f);
  eval(x);
  return sum(x - 3.f * x / 2.f).item<float>();
}
int main(int, char** argv) {
  set_num_threads(1);
  const std::string task = argv[1];
  float result = one(20);
  if (task == "fork") {
    if (fork() == 0) _exit(other() != -20);
    int status = 1;
    wait(&status);
    if (status != 0) return 1;
  } else if (task == "gdb") {
    stop_here();
    result = one(20);  // by the same code
    trim();  // plans go, and their code
    stop_here();
  } else if (task == "perf") {
    for (int i = 0; i < 20000; ++i) one(20000);
  }
  std::cout << getpid() << ' ' << result;
}
"""
# Steps through the code, and looks at its caller from each place.
STEPS = """
import re

import gdb
def run(command):
    return gdb.execute(command, to_string=True)
def function():
    return re.findall(r"0x[0-9a-f]+(?=  rosin loop)", run("info functions ^rosin loop multiply add"))
def caller():
    frame = gdb.newest_frame().older()
    registers = [int(frame.read_register(name)) for name in "rip rsp rbx rbp r12 r13 r14 r15".split()]
    names = []
    while frame is not None:
        names.append(frame.name())
        frame = frame.older()
    return registers, names
for command in ("set pagination off", "break stop_here", "run"):
    run(command)
places = function()
print("functions", *places)
run("break *" + places[0])
run("continue")
print("in", gdb.newest_frame().name())
print("symbol", run("info symbol " + places[0]))
first, wrong, steps = caller(), [], 0
print("callers", "one(long)" in first[1], first[1][-1])
while gdb.newest_frame().name().startswith("rosin loop"):
    steps += 1
    if caller() != first:
        wrong.append(hex(gdb.newest_frame().pc() - int(places[0], 16)))
    run("stepi")
print("wrong", *wrong)
print("right", steps - len(wrong))
print("back", int(gdb.newest_frame().pc()) == first[0][0])
run("continue")
print("left", *function())
run("continue")
"""


def records_of(dump):
    """The header of a jitdump file, and its records: (type, time, payload)."""
    header = struct.unpack_from("<6I2Q", dump)
    records, at = [], header[2]
    while at < len(dump):
        kind, size, time = struct.unpack_from("<IIQ", dump, at)
        records.append((kind, time, dump[at + 16:at + size]))
        at += size
    return header, records, at


def code_of(payload):
    """What a record JIT_CODE_LOAD says."""
    pid, tid, vma, address, size, index = struct.unpack_from("<IIQQQQ", payload)
    name, _, code = payload[40:].partition(b"\0")
    return {"pid": pid, "tid": tid, "vma": vma, "address": address, "size": size, "index": index,
            "name": name.decode("ascii"), "code": code}


def writes_machine_code():
    try:
        words = set(pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").split())
    except OSError:
        return False
    return {"avx2", "fma"} <= words


@unittest.skipUnless(COMPILER and (BUILD / "librosin.so").is_file(), "no compiler, or no library")
@unittest.skipUnless(writes_machine_code(), "the library writes no machine code for this processor")
class CodeNames(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        source, cls.program = pathlib.Path(folder.name) / "program.cpp", pathlib.Path(folder.name) / "program"
        source.write_text(PROGRAM, encoding="utf-8")
        subprocess.run([COMPILER, "-std=c++20", "-I", ROOT / "include", source, "-o", cls.program, "-L", BUILD,
                        "-lrosin", f"-Wl,-rpath,{BUILD}"], check=True)

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_in_folder(self, *command, **variables):
        plain = {name: value for name, value in os.environ.items() if not name.startswith("ROSIN_")}
        return subprocess.run(command, cwd=self.folder, env={**plain, "HOME": str(self.folder), **variables},
                              capture_output=True, text=True, check=False)

    def run_program(self, task, **variables):
        """Its number, and what it says on stderr."""
        ran = self.run_in_folder(self.program, task, **variables)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        pid, result = ran.stdout.split()
        self.assertEqual(result, "100")
        return int(pid), ran.stderr

    def map_of(self, pid):
        path = pathlib.Path(f"/tmp/perf-{pid}.map")
        self.addCleanup(path.unlink, missing_ok=True)
        return path.read_text(encoding="utf-8") if path.exists() else None

    def test_the_dump_is_as_its_specification_says(self):
        pid, said = self.run_program("once", ROSIN_JITDUMP="1", ROSIN_PERF_MAP="1")
        self.assertEqual(said, "")
        self.assertEqual([path.name for path in self.folder.iterdir()], [f"jit-{pid}.dump"])
        dump = (self.folder / f"jit-{pid}.dump").read_bytes()
        header, records, end = records_of(dump)
        magic, version, size, machine, padding, process, time, flags = header
        self.assertEqual((magic, version, size, machine, padding), (0x4A695444, 1, 40, 62, 0))
        self.assertEqual((process, flags, end), (pid, 0, len(dump)))
        self.assertEqual({kind for kind, *_ in records}, {0})
        times = [time, *(time for _, time, _ in records)]
        self.assertEqual(times, sorted(times))
        loops = [code_of(payload) for *_, payload in records]
        self.assertEqual([loop["index"] for loop in loops], list(range(len(loops))))
        for loop in loops:
            self.assertEqual((loop["pid"], loop["tid"], loop["vma"]), (pid, pid, loop["address"]))
            self.assertEqual(len(loop["code"]), loop["size"])
            self.assertTrue(loop["code"].startswith(b"\x53\x55"), "push rbx, push rbp")
            self.assertIn(b"\xc5\xf8\x77\xc3", loop["code"], "vzeroupper, ret")
        self.assertIn("rosin loop multiply add rows:add", [loop["name"] for loop in loops])
        lines = [f"{loop['address']:x} {loop['size']:x} {loop['name']}\n" for loop in loops]
        self.assertEqual(self.map_of(pid), "".join(lines))

    def test_nothing_is_written_unasked(self):
        for variables in ({}, {"ROSIN_JITDUMP": "0", "ROSIN_PERF_MAP": "0"}, {"ROSIN_GDB": "1"}):
            pid, said = self.run_program("once", **variables)
            self.assertEqual((list(self.folder.iterdir()), self.map_of(pid), said), ([], None, ""))

    def test_a_forked_child_writes_nothing(self):
        pid, said = self.run_program("fork", ROSIN_JITDUMP="1", ROSIN_PERF_MAP="1", ROSIN_GDB="1")
        self.assertEqual(([path.name for path in self.folder.iterdir()], said), ([f"jit-{pid}.dump"], ""))
        dump = (self.folder / f"jit-{pid}.dump").read_bytes()
        names = [code_of(payload)["name"] for *_, payload in records_of(dump)[1]]
        self.assertNotIn("subtract", " ".join(names))
        self.assertNotIn("subtract", self.map_of(pid))

    def test_a_folder_that_takes_no_file_costs_one_warning(self):
        command = 'mkdir gone && cd gone && rmdir ../gone && exec "$0" once'
        ran = self.run_in_folder("sh", "-c", command, self.program, ROSIN_JITDUMP="1")
        self.assertEqual(ran.returncode, 0)
        self.assertEqual(ran.stderr.count("ROSIN_JITDUMP does nothing: No such file or directory"), 1, ran.stderr)

    @unittest.skipUnless(shutil.which("gdb"), "gdb is not installed")
    def test_gdb_knows_the_code_and_its_callers_while_it_stands(self):
        (self.folder / "steps.py").write_text(STEPS, encoding="utf-8")
        ran = self.run_in_folder("gdb", "-nx", "-batch", "-x", "steps.py", "--args", self.program, "gdb",
                                 ROSIN_GDB="1")
        if re.search("ptrace: Operation not permitted|Python scripting is not supported", ran.stdout + ran.stderr):
            self.skipTest("gdb cannot trace programs here, or has no Python")
        said = dict(line.partition(" ")[::2] for line in ran.stdout.splitlines())
        everything = ran.stdout + ran.stderr
        self.assertRegex(said.get("functions", ""), "^0x", everything)
        self.assertEqual(said["in"], "rosin loop multiply add rows:add")
        self.assertRegex(said["symbol"], "^rosin loop multiply add rows:add in section .text")
        self.assertEqual(said["callers"], "True main", everything)
        self.assertEqual(said["wrong"], "", everything)
        self.assertGreater(int(said["right"]), 20)
        self.assertEqual((said["back"], said["left"]), ("True", ""), everything)

    @unittest.skipUnless(shutil.which("perf"), "perf is not installed")
    def test_perf_shows_the_code(self):
        ran = self.run_in_folder("perf", "record", "-e", "cpu-clock", "-k", "1", "-o", "plain.data", self.program,
                                 "perf", ROSIN_JITDUMP="1")
        if ran.returncode:
            self.skipTest(f"perf records nothing here: {ran.stderr.strip()[:200]}")
        pid = ran.stdout.split()[0]
        inject = self.run_in_folder("perf", "inject", "--jit", "-i", "plain.data", "-o", "named.data")
        self.assertEqual(inject.returncode, 0, inject.stderr)
        _, records, _ = records_of((self.folder / f"jit-{pid}.dump").read_bytes())
        for number, (*_, payload) in enumerate(records):
            made = self.folder / f"jitted-{pid}-{number}.so"
            self.assertIn(code_of(payload)["code"], made.read_bytes())
        report = self.run_in_folder("perf", "report", "-i", "named.data", "--stdio")
        self.assertRegex(report.stdout,
                         rf"[1-9]\S*%.*jitted-{pid}-\d+\.so +\[\.\] rosin loop multiply add rows:add")
        annotated = self.run_in_folder("perf", "annotate", "-i", "named.data", "--stdio",
                                       "-s", "rosin loop multiply add rows:add")
        # Where a clock takes the samples, they may all lie on one instruction of the loop, whichever that is.
        self.assertRegex(annotated.stdout, r"[1-9]\S* :\s+[0-9a-f]+: +\w+")
        self.assertRegex(annotated.stdout, r" :\s+[0-9a-f]+: +v\w+")


if __name__ == "__main__":
    unittest.main()
