"""The command `rosin`: what it prints, its JSON and its exit statuses, with plug-ins that work and that do not.

Needs a build (ROSIN_TEST_BUILD, else build/release) with the command and the plug-ins of plugins/fake; the plug-ins
that misbehave are compiled here.
"""

import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = pathlib.Path(os.environ.get("ROSIN_TEST_BUILD", ROOT / "build" / "release"))
COMMAND = BUILD / "tools" / "rosin"
FAKE = BUILD / "plugins" / "fake"
NO_METAL = "Metal exists on Apple's systems only"
C_COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")

CONSTRUCTOR = "__attribute__((constructor)) static void start(void) { %s }\n"
OPEN = "const rosin_backend* rosin_backend_open(uint32_t abi) { %s }\n"
# A table of functions of which every one is `nothing`, but for those that a test puts in.
TABLE = """
static rosin_status nothing(void) { return ROSIN_OK; }
static const char* no_text(void) { return ""; }
static rosin_backend table;
static const rosin_backend* full_table(void) {
  void** function = (void**)&table.error_text;
  while (function < (void**)(&table + 1)) *function++ = (void*)nothing;
  table.size = sizeof table;
  table.abi = ROSIN_BACKEND_ABI;
  table.name = "Broken";
  table.version = "made by a test";
  table.error_text = no_text;
  return &table;
}
"""


def widths(text):
    return [len(line) for line in text.splitlines()]


@unittest.skipUnless(os.access(COMMAND, os.X_OK), f"no {COMMAND}")
class Command(unittest.TestCase):
    def setUp(self):
        # A short path, so that lines with paths stay within their width.
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="r", dir="/tmp"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.plugins = self.folder / "p"
        self.plugins.mkdir()

    def rosin(self, *arguments, plugins=None, timeout=300, **variables):
        """The finished process; only what a test names of ROSIN_* reaches it."""
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith(("ROSIN_", "XDG_")) and not name.endswith("_VISIBLE_DEVICES")}
        environment.update(HOME=str(self.folder), ROSIN_LOG="none", ROSIN_PLUGIN_PATH=str(plugins or self.plugins),
                           OCL_ICD_VENDORS=str(self.folder / "none"))  # no OpenCL, whatever the machine has
        environment.update(variables)
        return subprocess.run([COMMAND, *arguments], cwd=self.folder, env=environment, capture_output=True, text=True,
                              timeout=timeout, check=False)

    def json(self, *arguments, status=0, **options):
        result = self.rosin(*arguments, "--json", **options)
        self.assertEqual(result.returncode, status, result.stdout + result.stderr)
        return json.loads(result.stdout)

    def compiled(self, source, *options, name="librosin_broken.so"):
        """Compiles a plug-in; the test is skipped where that is not possible."""
        if not C_COMPILER:
            self.skipTest("no C compiler")
        file = self.folder / "source.c"
        file.write_text("#include <rosin/backend.h>\n#include <signal.h>\n#include <stdlib.h>\n#include <stdio.h>\n"
                        + source, encoding="utf-8")
        subprocess.run([C_COMPILER, "-shared", "-fPIC", "-w", "-I", ROOT / "include", "-o", self.plugins / name, file,
                        *options], check=True)
        return self.plugins / name

    def cuda(self, *arguments, status=1, **options):
        """The row of CUDA in `rosin devices CUDA --json`."""
        return self.json("devices", "CUDA", *arguments, status=status, **options)["backends"][0]


class Arguments(Command):
    def test_wrong_usage_has_status_two_and_one_line(self):
        for arguments in ([], ["devces"], ["devices", "--jsn"], ["devices", "CUDO"], ["backend", "CUDO"], ["inspect"],
                          ["selftest", "--device", "CUDA:x"], ["selftest", "--device", "CUDO"],
                          ["ranks", "--device", "CUDO"],
                          ["backend", "CPU", "--delete"], ["devices", "--limit", "0"], ["inspect", "model.bin"]):
            result = self.rosin(*arguments)
            self.assertEqual((result.returncode, result.stdout), (2, ""), arguments)
            self.assertRegex(result.stderr, r"\Arosin: .+\n\Z", arguments)

    def test_a_wrong_name_gets_the_nearest_one(self):
        self.assertIn('Did you mean "CUDA"?', self.rosin("devices", "CUDO").stderr)

    def test_help_fits_into_eighty_columns(self):
        for part in ([], ["devices"], ["backend"], ["env"], ["selftest"], ["ranks"], ["inspect"], ["convert"]):
            result = self.rosin(*part, "--help")
            self.assertEqual(result.returncode, 0)
            self.assertLessEqual(max(widths(result.stdout)), 80, part)
            self.assertNotIn("probe FILE", result.stdout)

    def test_version(self):
        self.assertRegex(self.rosin("--version").stdout, r"\Arosin \d+\.\d+\.\d+\n\Z")


@unittest.skipUnless(FAKE.is_dir(), f"no {FAKE}")
class Devices(Command):
    def test_capabilities_are_shown_with_their_versions(self):
        row = self.cuda(plugins=FAKE, status=0, ROSIN_REFERENCE_CUDA="vendor=1")
        self.assertEqual([one["name"] for one in row["found"]], ["reference-matmul"])
        self.assertRegex(row["found"][0]["version"], r"\A\d+\.\d+\.\d+\Z")
        self.assertEqual(self.cuda(plugins=FAKE, status=0)["found"], [])
        text = self.rosin("devices", "CUDA", plugins=FAKE, ROSIN_REFERENCE_CUDA="vendor=1").stdout
        self.assertRegex(text, r"\n  with      reference-matmul \d")

    def test_devices_are_shown_with_their_facts_and_a_self_test(self):
        result = self.rosin("devices", "CUDA", plugins=FAKE, ROSIN_REFERENCE_CUDA="devices=2,memory=64M")
        self.assertEqual(result.returncode, 0, result.stdout)
        text = result.stdout
        self.assertRegex(text, r"\ACUDA        works: 2 devices\n  plug-in   ")
        self.assertIn("\n  CUDA:0    NVIDIA Reference GPU 0: 64.0 MiB, sm_reference, Float64\n", text)
        self.assertIn("\n  CUDA:1    NVIDIA Reference GPU 1: 64.0 MiB, sm_reference, Float64\n", text)
        self.assertIn("\n            driver rosin reference ", text)
        self.assertEqual(len(re.findall(r"\n {12}self-test OK: sum, softmax, matmul, conv, random \(", text)), 2)
        self.assertLessEqual(max(width for line, width in zip(text.splitlines(), widths(text)) if "/" not in line), 80)

    def test_all_facts_are_shown_when_asked_for(self):
        brief = self.rosin("devices", "CUDA", plugins=FAKE, ROSIN_REFERENCE_CUDA="devices=2").stdout
        self.assertNotIn("largest group", brief)
        text = self.rosin("devices", "CUDA", "--verbose", plugins=FAKE, ROSIN_REFERENCE_CUDA="devices=2").stdout
        facts = self.cuda(status=0, plugins=FAKE, ROSIN_REFERENCE_CUDA="devices=2")["devices"][0]["facts"]
        self.assertLessEqual({"largest group", "shared bytes", "alignment", "largest allocation"}, set(facts))
        self.assertEqual(facts["instructions"],
                         "vectors, read-only, shuffle, large shared, matrices, choices, arrivals")
        unwrapped = re.sub(r"\s+", " ", text)  # long ones go on in another line
        for name, value in facts.items():
            self.assertRegex(text, rf"\n {{12}}{name}: ")
            self.assertIn(f" {name}: {value} ", unwrapped)

    def test_json_says_the_same(self):
        row = self.cuda(status=0, plugins=FAKE, ROSIN_REFERENCE_CUDA="devices=2,fp64=0")
        self.assertTrue(row["functional"])
        self.assertEqual((row["reason"], row["crashed"]), ("", False))
        self.assertEqual(row["tried"], [{"path": str(FAKE / "librosin_cuda.so"), "reason": ""}])
        self.assertEqual([device["device"] for device in row["devices"]], ["CUDA:0", "CUDA:1"])
        self.assertFalse(row["devices"][1]["float64"])
        self.assertTrue(row["devices"][1]["selftest"]["ok"])
        self.assertEqual(row["devices"][0]["capability"], "sm_reference")

    def test_a_driver_that_is_missing_is_the_reason(self):
        row = self.cuda(plugins=FAKE, ROSIN_REFERENCE_CUDA="functional=0")
        self.assertFalse(row["functional"])
        self.assertEqual((row["tried"][0]["reason"], row["devices"]), ("", []))
        self.assertNotEqual(row["reason"], "")
        text = self.rosin("devices", "CUDA", plugins=FAKE, CUDA_VISIBLE_DEVICES="-1").stdout
        self.assertIn("\n  reason    CUDA_VISIBLE_DEVICES", text)

    def test_a_device_that_fails_is_found_by_the_self_test(self):
        row = self.cuda(plugins=FAKE, ROSIN_REFERENCE_CUDA="fault=0")
        self.assertFalse(row["devices"][0]["selftest"]["ok"])
        outcomes = [check["outcome"] for check in row["devices"][0]["selftest"]["checks"]]
        self.assertIn("failed", outcomes)
        text = self.rosin("devices", "CUDA", plugins=FAKE, ROSIN_REFERENCE_CUDA="fault=0").stdout
        self.assertIn("self-test FAILED: ", text)

    def test_without_names_all_back_ends_are_shown_and_a_missing_one_is_no_failure(self):
        everything = self.json("devices", plugins=FAKE, ROSIN_REFERENCE_CUDA="devices=1")
        names = [row["backend"] for row in everything["backends"]]
        self.assertEqual(names, ["CUDA", "AMDGPU", "Metal", "OpenCL", "CPU"])
        metal = everything["backends"][2]
        self.assertFalse(metal["functional"])
        self.assertEqual((metal["reason"], metal["devices"]), (NO_METAL, []))
        self.assertEqual([tried["reason"] for tried in metal["tried"]], ["not there", ""])
        self.assertTrue(everything["backends"][4]["devices"][0]["selftest"]["ok"])

    def test_a_back_end_that_was_asked_for_and_is_missing_is_a_failure(self):
        result = self.rosin("devices", "Metal")
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stdout, r"\AMetal       not functional\n  tried     ")


class BrokenPlugins(Command):
    def broken(self, *arguments, status=1, **options):
        """The row of the plug-in that a test has made."""
        return self.json("devices", "Broken", *arguments, status=status, **options)["backends"][0]

    def test_a_file_that_is_no_library(self):
        (self.plugins / "librosin_broken.so").write_text("text")
        row = self.broken()
        self.assertFalse(row["crashed"])
        self.assertIn("librosin_broken.so", row["tried"][0]["reason"])

    def test_a_library_that_is_no_plug_in(self):
        self.compiled("int other;")
        self.assertEqual(self.broken()["tried"][0]["reason"],
                         "is no plug-in of rosin: it has no function rosin_backend_open")

    def test_another_abi(self):
        self.compiled(OPEN % "return 0;")
        self.assertRegex(self.broken()["tried"][0]["reason"], "is made for another version of rosin")
        self.compiled(TABLE + OPEN % "full_table(); table.abi = 99; return &table;")
        self.assertRegex(self.broken()["tried"][0]["reason"], "has back-end ABI 99, rosin has 1")

    def test_the_plug_in_of_another_back_end(self):
        self.compiled(TABLE + OPEN % 'full_table(); table.name = "toy"; return &table;')
        self.assertEqual(self.broken()["tried"][0]["reason"], "says that it is the back end toy, not broken")

    def test_a_function_that_is_missing(self):
        self.compiled(TABLE + OPEN % "full_table(); table.launch = 0; return &table;")
        self.assertEqual(self.broken()["tried"][0]["reason"], "lacks the function launch")

    def test_a_plug_in_that_lacks_its_libraries(self):
        needed = self.compiled("int needed(void) { return 1; }", name="libneeded.so")
        self.compiled("int needed(void);\n" + CONSTRUCTOR % "needed();", f"-L{self.plugins}", "-lneeded",
                      "-Wl,--no-as-needed")
        needed.unlink()
        self.assertRegex(self.broken()["tried"][0]["reason"], r"libneeded\.so: cannot open shared object file")

    def test_a_plug_in_without_devices(self):
        self.compiled("static rosin_status none(int32_t* count) { *count = 0; return ROSIN_OK; }\n" + TABLE
                      + OPEN % "full_table(); table.device_count = none; return &table;")
        row = self.broken()
        self.assertEqual((row["reason"], row["version"]), ("there is no such device", "made by a test"))

    def test_a_plug_in_that_crashes_at_load_is_reported_and_passed_by(self):
        for code, reason in (("raise(SIGSEGV);", r"^crashed with signal 11 \(.*\)$"),
                             ('fputs("driver broken\\n", stderr); abort();',
                              r"^crashed with signal 6 \(.*\); it said: driver broken$"),
                             ("_Exit(3);", "^ended the process with exit status 3$"),
                             ("_Exit(0);", "^ended the process before it had answered$")):
            with self.subTest(code):
                self.compiled(CONSTRUCTOR % code + OPEN % "return 0;")
                row = self.broken()
                self.assertTrue(row["crashed"])
                self.assertRegex(row["tried"][0]["reason"], reason)
                self.assertIn(row["tried"][0]["reason"], row["reason"])

    def test_a_plug_in_that_never_ends_is_ended(self):
        self.compiled(CONSTRUCTOR % "for (;;) raise(0);" + OPEN % "return 0;")
        row = self.broken("--limit", "0.5")
        self.assertTrue(row["crashed"])
        self.assertEqual(row["tried"][0]["reason"], "did not end within 0.5 s")

    def test_a_plug_in_that_crashes_when_it_is_asked_for_its_devices(self):
        self.compiled("static rosin_status crash(int32_t* count) { *(volatile int*)8 = 1; return ROSIN_OK; }\n" + TABLE
                      + OPEN % "full_table(); table.device_count = crash; return &table;")
        self.assertTrue(self.broken()["crashed"])

    def test_what_a_plug_in_prints_is_not_taken_for_its_answer(self):
        self.compiled(CONSTRUCTOR % 'puts("{}"); fflush(stdout);' + OPEN % "return 0;")
        result = self.rosin("devices", "Broken", "--json")
        row = json.loads(result.stdout.removeprefix("{}\n"))["backends"][0]  # it prints in the command's process too
        self.assertFalse(row["crashed"])

    def test_a_crash_is_noted_until_the_file_changes_or_a_probe_goes_well(self):
        file = self.compiled(CONSTRUCTOR % 'if (getenv("CRASH")) abort();' + OPEN % "return 0;")
        load = ["check", "Broken:0"]  # loads it with no probe before, as a program does
        self.assertLess(self.rosin(*load, CRASH="1").returncode, 0)
        self.assertTrue(self.broken(CRASH="1")["crashed"])
        passed_by = self.rosin(*load, CRASH="1")
        self.assertEqual(passed_by.returncode, 1)
        self.assertIn("crashed when it was probed last", passed_by.stderr)
        os.utime(file, (1, 1))
        self.assertLess(self.rosin(*load, CRASH="1").returncode, 0)
        self.assertTrue(self.broken(CRASH="1")["crashed"])
        self.assertFalse(self.broken()["crashed"])
        self.assertIn("another version of rosin", self.rosin(*load).stderr)

    def test_a_crash_does_no_harm_where_nothing_can_be_noted(self):
        self.compiled(CONSTRUCTOR % "abort();" + OPEN % "return 0;")
        self.assertTrue(self.broken(ROSIN_CACHE_DIR="/proc/nowhere")["crashed"])

    def test_without_names_a_crash_is_a_failure(self):
        self.compiled(CONSTRUCTOR % "abort();" + OPEN % "return 0;", name="librosin_metal.so")
        self.assertEqual(self.rosin("devices").returncode, 1)

    @unittest.skipUnless(FAKE.is_dir(), f"no {FAKE}")
    def test_a_good_plug_in_behind_a_broken_one_is_used(self):
        self.compiled(CONSTRUCTOR % "abort();" + OPEN % "return 0;", name="librosin_cuda.so")
        row = self.cuda(plugins=f"{self.plugins}:{FAKE}", status=1)
        self.assertTrue(row["functional"])
        self.assertTrue(row["crashed"])
        self.assertEqual([tried["reason"] == "" for tried in row["tried"]], [False, True])


class Backend(Command):
    def test_by_default_the_first_that_works_is_taken(self):
        choice = self.json("backend")
        self.assertEqual((choice["decided_by"], choice["backend"], choice["device"]), ("default", "", "CPU"))
        text = self.rosin("backend").stdout
        self.assertRegex(text, r"\Aget_device\(\) takes CPU \(")
        self.assertIn("\n> default       the first that works of CUDA, AMDGPU, Metal, OpenCL, CPU\n", text)

    def test_the_environment_decides_before_the_file(self):
        choice = self.json("backend", ROSIN_GPU_BACKEND="CPU")
        self.assertEqual((choice["decided_by"], choice["functional"]), ("environment", True))
        text = self.rosin("backend", ROSIN_GPU_BACKEND="CPU").stdout
        self.assertIn("\n> environment   ROSIN_GPU_BACKEND=CPU\n", text)

    def test_the_line_of_the_file_that_decides_is_named(self):
        file = self.folder / "LocalPreferences.toml"
        file.write_text('# mine\n[Flux]\nname = 1\ngpu_backend = "CPU"\n')
        choice = self.json("backend")
        self.assertEqual((choice["decided_by"], choice["line"], choice["table"]), ("file", 4, "Flux"))
        text = self.rosin("backend").stdout
        self.assertIn('LocalPreferences.toml:4: gpu_backend = "CPU" in [Flux]\n', text)

    def test_a_back_end_that_does_not_work_is_a_failure(self):
        choice = self.json("backend", status=1, ROSIN_GPU_BACKEND="Metal")
        self.assertEqual((choice["functional"], choice["device"]), (False, "CPU"))
        self.assertEqual(choice["reason"], NO_METAL)
        choice = self.json("backend", status=1, ROSIN_GPU_BACKEND="CUDO")
        self.assertIn('Did you mean "CUDA"?', choice["reason"])

    def test_a_name_becomes_the_preference_and_delete_removes_it(self):
        file = self.folder / "LocalPreferences.toml"
        file.write_text("# mine\n[rosin]\nautoload = true\n")
        choice = self.json("backend", "cpu")
        self.assertEqual((choice["decided_by"], choice["backend"], choice["device"]), ("file", "CPU", "CPU"))
        self.assertIn('gpu_backend = "CPU"', file.read_text())
        self.assertEqual(self.json("backend", "--delete")["decided_by"], "default")
        self.assertEqual(file.read_text(), "# mine\n[rosin]\nautoload = true\n")

    def test_setting_one_that_is_missing_succeeds_and_says_so(self):
        result = self.rosin("backend", "Metal")
        self.assertEqual(result.returncode, 0)
        self.assertIn("Metal is asked for and does not work", result.stdout)

    def test_a_malformed_file_is_named_with_its_line(self):
        (self.folder / "LocalPreferences.toml").write_text("[rosin]\ngpu_backend = \n")
        for arguments in (["backend"], ["backend", "CPU"]):
            result = self.rosin(*arguments)
            self.assertEqual(result.returncode, 1)
            self.assertIn("LocalPreferences.toml:2: not valid TOML", result.stderr)

    @unittest.skipUnless(FAKE.is_dir(), f"no {FAKE}")
    def test_a_gpu_is_chosen_where_there_is_one(self):
        choice = self.json("backend", plugins=FAKE)
        self.assertEqual((choice["decided_by"], choice["device"]), ("default", "CUDA:0"))


class Environment(Command):
    def test_all_variables_of_the_page_are_shown_with_their_values(self):
        page = (ROOT / "docs" / "preferences.md").read_text(encoding="utf-8")
        documented = re.findall(r"^\| `(ROSIN_\w+)` \|", page, re.MULTILINE)
        facts = self.json("env", ROSIN_NUM_THREADS="3")
        self.assertEqual([variable["name"] for variable in facts["variables"]], documented)
        values = {variable["name"]: variable["value"] for variable in facts["variables"]}
        self.assertEqual((values["ROSIN_NUM_THREADS"], values["ROSIN_SYNC"]), ("3", None))
        self.assertEqual(facts["threads"], 3)
        self.assertTrue(any("librosin.so" in library for library in facts["libraries"]))

    def test_the_cache_folder_is_measured(self):
        cache = self.folder / "c"
        (cache / "deeper").mkdir(parents=True)
        (cache / "deeper" / "file").write_bytes(b"x" * 1500)
        self.assertEqual(self.json("env", ROSIN_CACHE_DIR=str(cache))["cache"],
                         {"path": str(cache), "files": 1, "bytes": 1500})
        result = self.rosin("env", ROSIN_CACHE_DIR=str(cache), ROSIN_PREFERENCES=str(self.folder / "none"))
        self.assertEqual(result.returncode, 0)
        self.assertIn(f"  cache         {cache}: 1 file, 1.5 KiB\n", result.stdout)
        self.assertIn("  preferences   no file\n", result.stdout)
        self.assertLessEqual(max(width for line, width in zip(result.stdout.splitlines(), widths(result.stdout))
                                 if str(BUILD) not in line), 80)


class SelfTest(Command):
    def test_the_cpu_passes(self):
        result = self.json("selftest", "--device", "CPU")
        self.assertTrue(result["ok"])
        checks = result["devices"][0]["checks"]
        self.assertGreater(len(checks), 15)
        self.assertEqual({check["outcome"] for check in checks}, {"ok"})
        text = self.rosin("selftest", "--device", "cpu").stdout
        self.assertRegex(text, r"\n  matmul      OK        error \S+, at most 1e-06; \S+ m?s\n")
        self.assertIn(f"\n  {len(checks)} of {len(checks)} checks OK\n", text)
        self.assertLessEqual(max(widths(text)), 80)

    @unittest.skipUnless(FAKE.is_dir(), f"no {FAKE}")
    def test_devices_are_named_by_back_end_and_id(self):
        both = self.json("selftest", "--device", "cuda", plugins=FAKE, ROSIN_REFERENCE_CUDA="devices=2")
        self.assertEqual([device["device"] for device in both["devices"]], ["CUDA:0", "CUDA:1"])
        self.assertTrue(both["ok"])
        one = self.json("selftest", "--device", "CUDA:1", plugins=FAKE, ROSIN_REFERENCE_CUDA="devices=2")
        self.assertEqual([device["device"] for device in one["devices"]], ["CUDA:1"])

    @unittest.skipUnless(FAKE.is_dir(), f"no {FAKE}")
    def test_what_the_device_cannot_do_is_left_out(self):
        result = self.rosin("selftest", "--device", "CUDA", plugins=FAKE, ROSIN_REFERENCE_CUDA="fp64=0")
        self.assertIn("\n  Float64     left out  the device has no Float64\n", result.stdout)

    @unittest.skipUnless(FAKE.is_dir(), f"no {FAKE}")
    def test_a_faulty_device_fails(self):
        result = self.rosin("selftest", "--device", "CUDA", plugins=FAKE, ROSIN_REFERENCE_CUDA="fault=3")
        self.assertEqual(result.returncode, 1)
        self.assertIn(" FAILED ", result.stdout)

    def test_what_is_not_there_is_one_line(self):
        for device in ("Metal", "CUDA:7"):
            result = self.rosin("selftest", "--device", device)
            self.assertEqual((result.returncode, result.stdout), (1, ""))
            self.assertRegex(result.stderr, r"\Arosin: .* is not functional; .+\n\Z")

    @unittest.skipUnless(FAKE.is_dir(), f"no {FAKE}")
    def test_an_id_that_is_too_large_is_named(self):
        result = self.rosin("selftest", "--device", "CUDA:7", plugins=FAKE)
        self.assertEqual(result.returncode, 1)
        self.assertIn("CUDA has 1 device; got id 7; ids count from 0", result.stderr)


class Ranks(Command):
    plain = {"device": "CPU", "trouble": "", "way": "memory of the host"}

    def test_a_process_alone_is_one_rank(self):
        self.assertEqual(self.json("ranks"), {"ok": True, "ranks": 1, "transport": "local", "devices": [self.plain]})

    @unittest.skipUnless(FAKE.is_dir(), f"no {FAKE}")
    def test_each_rank_takes_its_gpu(self):
        done = self.rosin("run", "-n", "2", COMMAND, "ranks", plugins=FAKE, ROSIN_REFERENCE_CUDA="devices=2")
        said = "2 ranks over local\n  CPU         OK, memory of the host\n  CUDA:0      OK, over the host\n"
        self.assertEqual((done.returncode, done.stdout), (0, said), done.stderr)

    def test_a_back_end_without_devices_is_one_line(self):
        done = self.rosin("ranks", "--device", "CUDA")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertRegex(done.stderr, r"\Arosin: ranks: .+\n\Z")


class Inspect(Command):
    def file(self, header, data, name="x.safetensors"):
        path = self.folder / name
        text = json.dumps(header).encode()
        path.write_bytes(struct.pack("<Q", len(text)) + text + data)
        return path

    def test_names_types_shapes_and_totals(self):
        path = self.file({"__metadata__": {"made": "here"},
                          "layers.0.weight": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
                          "odd\x1b[2J": {"dtype": "F8_E4M3", "shape": [5], "data_offsets": [24, 29]}}, bytes(29))
        result = self.rosin("inspect", path)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout, "layers.0.weight  F32 (2, 3), 24 bytes\n"
                                        "odd\\x1b[2J       F8_E4M3 (5), 5 bytes\n"
                                        "made:            here\n"
                                        "2 arrays, 11 parameters, 29 bytes\n")
        listing = self.json("inspect", path)
        self.assertEqual(listing["arrays"][0],
                         {"name": "layers.0.weight", "type": "F32", "shape": [2, 3], "bytes": 24})
        self.assertEqual((listing["metadata"], listing["parameters"], listing["bytes"]), ({"made": "here"}, 11, 29))

    def test_statistics_are_of_the_finite_values(self):
        # np.mean and np.std of [1, 2, 3, 6]: 3 and sqrt(3.5).
        values = [1.0, 2.0, float("nan"), 3.0, 6.0, float("-inf")]
        path = self.file({"x": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
                          "n": {"dtype": "I8", "shape": [2], "data_offsets": [24, 26]},
                          "none": {"dtype": "F32", "shape": [0], "data_offsets": [26, 26]}},
                         struct.pack("<6f2b", *values, -3, 5))
        result = self.rosin("inspect", path, "--stats")
        self.assertEqual(result.stdout, "x     F32 (2, 3), 24 bytes\n"
                                        "      min 1, max 6, mean 3, std 1.87083, 1 NaN, 1 Inf\n"
                                        "n     I8 (2), 2 bytes\n"
                                        "      min -3, max 5, mean 1, std 4\n"
                                        "none  F32 (0), 0 bytes\n"
                                        "      no finite values\n"
                                        "3 arrays, 8 parameters, 26 bytes\n", result.stderr)
        arrays = self.json("inspect", path, "--stats")["arrays"]
        self.assertEqual(arrays[1]["statistics"], {"min": -3, "max": 5, "mean": 1, "std": 4, "nan": 0, "inf": 0})
        self.assertIsNone(arrays[2]["statistics"]["mean"])
        self.assertNotIn("statistics", self.json("inspect", path)["arrays"][0])

    def test_statistics_of_complex_arrays_are_of_absolute_values(self):
        # np.mean and np.std of [3+4j, -1j, 1]: 4/3 + 1j, and sqrt(9 - 25/9).
        path = self.file({"z": {"dtype": "C64", "shape": [4], "data_offsets": [0, 32]}},
                         struct.pack("<8f", 3, 4, 0, -1, 1, 0, float("nan"), 2))
        result = self.rosin("inspect", path, "--stats")
        self.assertIn("min |x| 1, max |x| 5, mean 1.33333 + 1i, std 2.49444, 1 NaN\n", result.stdout, result.stderr)
        found = self.json("inspect", path, "--stats")["arrays"][0]["statistics"]
        self.assertEqual((found["min"], found["max"], found["mean"][1]), (1, 5, 1))

    def test_an_onnx_file_says_what_goes_in_and_out(self):
        def text(field, value):
            value = value if isinstance(value, bytes) else value.encode()
            return bytes([field << 3 | 2, len(value)]) + value

        def number(field, value):
            return bytes([field << 3, value])

        shape = text(2, text(1, text(2, "N")) + text(1, number(1, 3)))
        tensor = text(5, number(1, 2) + number(1, 3) + number(2, 1) + text(8, "encoder.weight") +
                      text(9, struct.pack("<6f", 0.5, 1, 1.5, 2, 2.5, 3)))
        node = text(1, text(1, "x") + text(1, "encoder.weight") + text(2, "y") + text(4, "MatMul"))
        port = text(1, "x") + text(2, text(1, number(1, 1) + shape))
        path = self.folder / "x.onnx"
        path.write_bytes(text(7, node + tensor + text(11, port)) + text(8, number(2, 13)))
        result = self.rosin("inspect", path)
        self.assertEqual(result.stdout, "encoder.weight  FLOAT (2, 3), 24 bytes\n"
                                        "input x:        FLOAT (N, 3)\n"
                                        "opset:          13\n"
                                        "nodes:          1 MatMul\n"
                                        "1 array, 6 parameters, 24 bytes\n", result.stderr)
        result = self.rosin("inspect", path, "--stats")
        self.assertIn(" min 0.5, max 3, mean 1.75, std 0.853913\n", result.stdout, result.stderr)

    def test_a_long_name_takes_a_line_of_its_own(self):
        name = "encoder." * 7 + "weight"
        path = self.file({name: {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}, bytes(4))
        lines = self.rosin("inspect", path).stdout.splitlines()
        self.assertEqual(lines[:2], [name, " " * 40 + "F32 (1), 4 bytes"])

    def test_what_cannot_be_read_is_one_line(self):
        broken = self.file({"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}}, bytes(4))
        for path in (broken, self.folder / "nothing.safetensors", self.folder):
            result = self.rosin("inspect", path)
            self.assertEqual((result.stdout, len(result.stderr.splitlines())), ("", 1))
            self.assertTrue(result.stderr.startswith("rosin: load: "), result.stderr)
            self.assertEqual(result.returncode, 2 if path == self.folder else 1)

    def test_a_file_is_converted_by_its_extension(self):
        path = self.file({"layers.0.weight": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
                          "step": {"dtype": "I64", "shape": [], "data_offsets": [24, 32]}}, bytes(32))
        for extension in (".bson", ".npz", ".safetensors"):
            out = self.folder / ("out" + extension)
            result = self.rosin("convert", path, out)
            self.assertEqual((result.returncode, result.stdout), (0, "2 arrays, 32 bytes\n"), result.stderr)
            arrays = {each["name"]: each["shape"] for each in self.json("inspect", out)["arrays"]}
            self.assertEqual(arrays, {"layers.0.weight": [2, 3], "step": []})
            path = out
        self.assertEqual(self.rosin("convert", path, self.folder / "out.txt").returncode, 2)
        self.assertEqual(self.rosin("convert", self.folder / "nothing.bson", path).returncode, 1)


if __name__ == "__main__":
    unittest.main()
