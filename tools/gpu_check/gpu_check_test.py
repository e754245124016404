"""Runs gpu_check and ./run gpu-check where the reference plug-in stands in for a GPU. tools/run_tests.py names the
build in ROSIN_TEST_BUILD."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("ROSIN_TEST_BUILD", ROOT / "build" / "release")).resolve()
FAKE_PLUGINS = BUILD / "plugins" / "fake"
ENVIRONMENT = {name: value for name, value in os.environ.items() if not re.match("ROSIN_|CUDA_|GPU_", name)}
FAKE = {"ROSIN_PLUGIN_PATH": str(FAKE_PLUGINS), "ROSIN_REFERENCE_CUDA": "devices=2", "ROSIN_LOG": "none"}


def run(*command, folder=ROOT, **variables):
    return subprocess.run(command, cwd=folder, env=ENVIRONMENT | variables, stdin=subprocess.DEVNULL, check=False,
                          capture_output=True, text=True, timeout=500)


@unittest.skipUnless((FAKE_PLUGINS / "librosin_cuda.so").is_file(), "the build has no stand-ins for GPUs")
class GpuCheckTest(unittest.TestCase):
    program = BUILD / "tools" / "gpu_check"

    def test_names_what_there_is(self):
        self.assertIn("CUDA:0\nCUDA:1\n", run(self.program, "names", **FAKE).stdout)
        listed = run(self.program, "devices", **FAKE)
        self.assertRegex(listed.stdout, r"(?m)^CUDA:1 \(.+\), 2\.0 GiB, ")
        self.assertRegex(listed.stdout, r"(?m)^Metal: not functional; ")
        self.assertEqual(listed.returncode, 0)

    def test_ops_of_a_right_device_pass_and_those_of_an_idle_one_fail(self):
        right = run(self.program, "ops", "CUDA:1", **FAKE)
        self.assertEqual(right.returncode, 0, right.stdout)
        self.assertRegex(right.stdout, r"\Aops on CUDA:1 \(.+\): (\d{3}) of \1 good in ")
        idle = run(self.program, "ops", "null", **FAKE)
        self.assertEqual(idle.returncode, 1)
        self.assertRegex(idle.stdout, r"(?m)^ops on null:0 .*: 0 of ")

    def test_measures_a_workload(self):
        done = run(self.program, "measure", "CUDA:0", "mlp", "batch=4", "inputs=3", "hidden=5", "classes=2",
                   "compared=2", "repeats=2", "milliseconds=1", **FAKE)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(done.stdout)
        self.assertEqual((len(found["ms"]), len(found["values"])), (2, 2))
        self.assertLess(found["values"][1], found["values"][0])
        self.assertGreater(found["launches"], 0)
        self.assertEqual(run(self.program, "measure", "CUDA:0", "mlp", "batch=4", **FAKE).returncode, 1)
        self.assertEqual(run(self.program, "measure", "CUDA:0", "walk", **FAKE).returncode, 1)

    def test_losses_that_are_not_the_cpus_are_found(self):
        sizes = ("mlp", "batch=4", "inputs=3", "hidden=5", "classes=2")
        right = run(self.program, "agree", "CUDA:0", *sizes, **FAKE)
        self.assertEqual(right.returncode, 0, right.stdout + right.stderr)
        self.assertIn("20 losses are those of the CPU", right.stdout)
        idle = run(self.program, "agree", "null", *sizes, **FAKE)
        self.assertEqual(idle.returncode, 1, idle.stdout)
        self.assertIn("20 losses ARE NOT those of the CPU", idle.stdout)

    def test_facts_are_of_the_plugin_in_use(self):
        facts = json.loads(run(self.program, "facts", "CUDA:1", "1", **FAKE).stdout)
        self.assertTrue(facts["device"].startswith("CUDA:1 ("))
        self.assertGreater(facts["copy_tb_s"], 0)
        self.assertGreater(facts["graph_node_us"], 0)
        self.assertEqual(run(self.program, "plugin", "CUDA", **FAKE).stdout.strip(),
                         str(FAKE_PLUGINS / "librosin_cuda.so"))

    def test_refuses_what_is_not_there(self):
        self.assertEqual(run(self.program, "all").returncode, 2)
        missing = run(self.program, "ops", "CUDA:2", **FAKE)
        self.assertEqual((missing.returncode, missing.stderr.count("\n")), (1, 1))


@unittest.skipUnless((FAKE_PLUGINS / "librosin_cuda.so").is_file(), "the build has no stand-ins for GPUs")
@unittest.skipUnless(BUILD == ROOT / "build" / "release", "./run looks at build/release")
class StepsTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.variables = FAKE | {"GPU_DONE": str(self.folder / "done"), "GPU_RESULTS": str(self.folder),
                                 "GPU_DAY": "2026-11-22", "GPU_SHORT": "1"}

    def check(self, *arguments, **more):
        return run(ROOT / "run", "gpu-check", *arguments, **(self.variables | more))

    def test_keeps_what_was_said_and_does_nothing_twice(self):
        first = self.check("facts", "correct", "--device", "CUDA:1")
        self.assertEqual(first.returncode, 0, first.stdout + first.stderr)
        self.assertTrue(first.stdout.endswith("gpu-check: CUDA:1: facts good, correct good\n"))
        self.assertIn("mlp on CUDA:1: graphs give the bits of single launches", first.stdout)
        self.assertRegex(first.stdout, r"(?m)^contract on CUDA:1: \d+ passed, 0 failed$")
        again = self.check("correct", "--device", "CUDA:1")
        self.assertIn("done before: ops on CUDA:1", again.stdout)
        (results,) = self.folder.glob("gpu-cuda-*.txt")
        text = results.read_text(encoding="utf-8")
        self.assertEqual((text.count("== "), text.count("ops on CUDA:1")), (1, 1))

    def test_a_failure_is_said_and_tried_again(self):
        for _ in range(2):
            result = self.check("correct", "--device", "CUDA:0", ROSIN_REFERENCE_CUDA="devices=1,fault=200")
            self.assertEqual(result.returncode, 1)
            self.assertIn("FAILED", result.stdout)
            self.assertTrue(result.stdout.endswith("gpu-check: CUDA:0: correct FAILED\n"))

    def test_slow_goes_on_where_it_ran_out_of_time(self):
        self.assertEqual(self.check("facts", "--device", "CUDA:0").returncode, 0)
        late = self.check("facts", "seeds", "--device", "CUDA:0", GPU_STEP_SECONDS="0")
        self.assertEqual(late.returncode, 75, late.stdout + late.stderr)
        self.assertIn("done before: CUDA:0", late.stdout)
        left = re.findall(r"(?m)^seeds: (1\d_\w+) on CUDA:0 is left for the next call$", late.stdout)
        self.assertGreaterEqual(len(left), 6)
        self.assertTrue(late.stdout.endswith("gpu-check: CUDA:0: facts good, seeds unfinished\n"))
        rest = self.check("seeds", "--device", "CUDA:0")
        self.assertEqual(rest.returncode, 0, rest.stdout + rest.stderr)
        self.assertEqual(re.findall(r"(?m)^(1\d_\w+) on CUDA:0: ", rest.stdout), left)
        self.assertNotIn("done before", rest.stdout)
        self.assertTrue(rest.stdout.endswith("gpu-check: CUDA:0: seeds good\n"))

    def test_says_when_there_is_nothing_to_check(self):
        none = self.check("facts", "--device", "CUDA:7")
        self.assertEqual(none.returncode, 3)
        self.assertTrue(none.stdout.endswith("gpu-check: there is no device CUDA:7\n"))
        self.assertEqual(self.check("speed").returncode, 1)


@unittest.skipUnless((BUILD / "fake_cuda" / "libcuda.so.1").exists(), "the build has no pretended CUDA")
@unittest.skipUnless(BUILD == ROOT / "build" / "release", "./run looks at build/release")
class PretendedTest(unittest.TestCase):
    """All of it but the figures, on the pretended GPU; and the bundle."""

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.variables = {"GPU_DONE": str(self.folder / "done"), "GPU_RESULTS": str(self.folder),
                          "GPU_DAY": "2026-11-22", "ROSIN_LOG": "none"}

    def test_everything_but_the_figures(self):
        done = run(ROOT / "run", "gpu-check", "--fake", **self.variables)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"\ngpu-check: CUDA:0: facts good, correct good, nccl good, kernels good, "
                                      r"steps good, peers (good|SKIPPED)\n\Z")
        (path,) = self.folder.glob("gpu-cuda-*.json")
        kept = json.loads(path.read_text(encoding="utf-8"))
        self.assertEqual(len(kept["facts"]), 1)
        rows = {row["workload"]: row for row in kept["rows"] if "peer" not in row}
        self.assertEqual(set("G1 G2 G3 G6 G7 G8 G9 G10 G11 G12 G13 G15".split()) - set(rows), set())
        self.assertEqual({row["graph_launches"] for row in rows.values()}, {1})
        self.assertTrue(all(row["short"] and row["ours_ms"] > 0 for row in rows.values()))

    @unittest.skipUnless((BUILD / "fake_metal" / "Metal").exists(), "the build has no pretended Metal")
    def test_the_pretended_metal_is_a_device_too(self):
        done = run(ROOT / "run", "gpu-check", "facts", "correct", "--fake", "--device", "Metal", **self.variables)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertTrue(done.stdout.endswith("gpu-check: Metal:0: facts good, correct good\n"), done.stdout)
        self.assertEqual(len([*self.folder.glob("gpu-metal-*.txt")]), 1)

    def test_a_bundle_checks_a_machine_without_a_compiler(self):
        bundle, there = self.folder / "bundle.tar.xz", self.folder / "there"
        done = run(ROOT / "run", "gpu-check", "pack", str(bundle), GPU_PACK_WORKLOADS="G13", XZ_OPT="-0")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"(?m)^gpu-check pack: (\d+ programs of kernels are compiled for sm_90 by|"
                                      r"kernels are NOT compiled beforehand: )")
        there.mkdir()
        subprocess.run(["tar", "-xf", bundle, "-C", there], check=True)
        fake = {"ROSIN_CUDA_LIBRARIES": str(BUILD / "fake_cuda"), "ROSIN_LOG": "none"}
        facts = run(there / "gpu-check", "facts", "--fake", folder=there, **fake)
        self.assertEqual(facts.returncode, 0, facts.stdout + facts.stderr)
        self.assertTrue(facts.stdout.endswith("gpu-check: CUDA:0: facts good\n"))
        (results,) = (there / "build" / "release" / "gpu-check-results").glob("*.json")
        self.assertIn(json.loads(results.read_text(encoding="utf-8"))["facts"][0]["commit"], done.stdout + _commit())
        compiled = re.search(r"compiled for sm_90 by (.*)", done.stdout)
        if compiled:
            self.finds_its_kernels(there, fake | {"FAKE_CUDA": f"devices=1,idle=1,nvrtc={compiled.group(1)}"})

    def finds_its_kernels(self, there, fake):
        """On another machine of that architecture nothing is compiled for the workloads."""
        before = sorted((there / "kernel_cache").rglob("*.bin"))
        program = there / "build" / "release" / "tools" / "gpu_check"
        done = run(program, "measure", "CUDA:0", "tiny", "ops=100", "compared=1", "milliseconds=1", **fake,
                   LD_LIBRARY_PATH=str(there / "build" / "release"), ROSIN_CACHE_DIR=str(there / "kernel_cache"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotEqual(before, [])
        self.assertEqual(sorted((there / "kernel_cache").rglob("*.bin")), before)


def _commit():
    done = run("git", "rev-parse", "--short", "HEAD")
    return done.stdout.strip() or "unknown"


# Stands for a Python with a peer: answers as peer_torch.py does, with the values of the file beside it.
STUB = """#!/bin/sh
[ "$1" != -c ] || exit 0
cat >/dev/null
cat "$(dirname "$0")/answer"
"""


class PeersTest(unittest.TestCase):
    """What measure.py makes of peers, which a script stands for."""

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        stub, ours = self.folder / "python", self.folder / "gpu_check"
        stub.write_text(STUB, encoding="utf-8")
        found = dict(ms=[2.0, 1.0, 1.5], values=[2.0, 1.0], first_ms=9, host_us=5, launches=3, graph_launches=1,
                     library_calls=1, bytes=1000, peak_bytes=10)
        ours.write_text(f"#!/bin/sh\necho '{json.dumps(found)}'\n", encoding="utf-8")
        for script in (stub, ours):
            script.chmod(0o755)

    def peers(self, *answers):
        text = "".join(json.dumps(line) + "\n" for line in ({"version": "9"}, *answers))
        (self.folder / "answer").write_text(text, encoding="utf-8")
        done = run("python3", ROOT / "tools" / "gpu_check" / "measure.py", "peers", "G1", "--program",
                   self.folder / "gpu_check", "--json", self.folder / "gpu.json",
                   GPU_PEER_PYTHON=str(self.folder / "python"))
        kept = json.loads((self.folder / "gpu.json").read_text(encoding="utf-8"))
        return done, [row for row in kept["rows"] if row.get("peer") == "torch 9"]

    def test_ratios_stand_beside_their_goals(self):
        answers = [{"mode": "eager", "ms": [12, 9, 10], "values": [2.001, 1.0], "first_ms": 1},
                   {"mode": "compile", "ms": [3], "values": [2.0, 1.0], "first_ms": 1},
                   {"mode": "graph", "error": "out of luck"}]
        done, rows = self.peers(*answers)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        eager, compiled, graph = rows[0], rows[1], next(row for row in rows if row["mode"] == "graph")
        self.assertAlmostEqual(eager["ratio"], 10 / 1.5)
        self.assertEqual((eager["ratio_goal"], eager["met"], eager["equal"]), (6, True, True))
        self.assertEqual((compiled["ratio"], compiled["ratio_goal"], compiled["met"]), (2, 4, False))
        self.assertEqual(graph["error"], "out of luck")
        self.assertIn("G1 torch 9 compile: 3 ms, 2 times ours (goal 4, NOT MET)", done.stdout)
        again, rows = self.peers(*answers)
        self.assertEqual(len({row["mode"] for row in rows}), len(rows), again.stdout)

    def test_losses_that_differ_fail(self):
        for values in ([2.0, 1.1], [2.0], [2.0, None]):
            done, rows = self.peers({"mode": "eager", "ms": [10], "values": values, "first_ms": 1})
            self.assertEqual(done.returncode, 1)
            self.assertIn("LOSSES DIFFER", done.stdout)
            self.assertFalse(rows[0]["equal"])


# Stands before cmake: no library is found, as where nothing but a compiler is installed, and a build takes a minute.
BARE_CMAKE = """#!/bin/sh
[ "$1" != --build ] || exec sleep 60
exec {cmake} "$@" -DCMAKE_FIND_USE_CMAKE_SYSTEM_PATH=OFF
"""
LEFT_OUT = ("onednn", "xbyak", "json", "toml", "cli11", "zlib", "GoogleTest")


@unittest.skipUnless(shutil.which("cmake") and shutil.which("make"), "there is no cmake or no make")
class BareMachineTest(unittest.TestCase):
    """The build step on a machine without ninja and without the libraries that rosin can do without."""

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.checkout = pathlib.Path(temporary.name) / "checkout"
        self.programs = pathlib.Path(temporary.name) / "programs"
        for folder in (self.checkout, self.programs):
            folder.mkdir()
        for entry in ROOT.iterdir():
            if entry.name != "build" and not entry.name.startswith("."):
                (self.checkout / entry.name).symlink_to(entry)

    def write_programs(self):
        """A folder with the machine's programs, but without ninja, and with BARE_CMAKE."""
        cmake = self.programs / "cmake"
        cmake.write_text(BARE_CMAKE.format(cmake=shutil.which("cmake")), encoding="utf-8")
        cmake.chmod(0o755)
        for folder in os.environ["PATH"].split(os.pathsep):
            for program in pathlib.Path(folder).glob("*"):
                place = self.programs / program.name
                if not program.name.startswith("ninja") and not os.path.lexists(place):
                    place.symlink_to(program)

    def test_configures_with_make_and_says_what_is_left_out(self):
        self.write_programs()
        result = run(self.checkout / "run", "gpu-check", "build", folder=self.checkout, PATH=str(self.programs),
                     GPU_STEP_SECONDS="1")
        self.assertEqual(result.returncode, 75, result.stdout + result.stderr)
        self.assertTrue(result.stdout.endswith("gpu-check: build: not done after 1 s; call it again\n"), result.stdout)
        for name in LEFT_OUT:
            self.assertRegex(result.stdout, rf"(?m)^--   {name} +\S.*: missing$")
        build = self.checkout / "build" / "release"
        cache = (build / "CMakeCache.txt").read_text(encoding="utf-8")
        self.assertIn("CMAKE_GENERATOR:INTERNAL=Unix Makefiles\n", cache)
        steps = (ROOT / "tools" / "gpu_check" / "steps.sh").read_text(encoding="utf-8")
        makefile = (build / "Makefile").read_text(encoding="utf-8")
        for target in re.search(r"targets=\((.*?)\)", steps).group(1).split():
            self.assertIn(f"\n{target}: ", makefile)


if __name__ == "__main__":
    unittest.main()
