"""Runs ranks_tests as 1, 2 and 4 ranks: alone, under `rosin run`, and under the mpiexec of Open MPI and of MPICH."""

import contextlib
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = pathlib.Path(os.environ.get("ROSIN_TEST_BUILD", ROOT / "build" / "release")).resolve()
PROGRAM, TRAINING = BUILD / "ranks_tests", BUILD / "ranks_training"
SECONDS = 400
KERNELS = str(BUILD / "kernel_cache")  # which the op suite of devices keeps too
FAULTS = int(os.environ.get("ROSIN_TEST_FAULTS", "4"))  # how many come at random moments; a campaign has 50

ROSIN_RUN = [str(BUILD / "tools" / "rosin"), "run"]
OPEN_MPI = ["mpiexec.openmpi", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]
MPICH = ["mpiexec.hydra"]


# What the tests of devices need, by back end. Those of CUDA and AMDGPU are the pretended ones of tests/fake_cuda and
# tests/fake_hip.
DEVICES = {"reference": {}, "OpenCL": {"POCL_EXTRA_BUILD_FLAGS": "-cl-opt-disable"},
           "CUDA": {"ROSIN_CUDA_LIBRARIES": str(BUILD / "fake_cuda")},
           "AMDGPU": {"ROSIN_ROCM_LIBRARIES": str(BUILD / "fake_hip")}}
# Whose devices NCCL joins, with the pretended library and the variable of its driver's options.
OVER_NCCL = {"CUDA": (BUILD / "fake_cuda" / "libnccl.so.2", "FAKE_CUDA"),
             "AMDGPU": (BUILD / "fake_hip" / "librccl.so.1", "FAKE_HIP")}


def environment():
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith(("ROSIN_", "OMPI_", "PMI_", "PMIX_"))}
    return kept | {"ROSIN_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


def processes_with(argument):
    """Those that run with it in their command line."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and argument in (entry / "cmdline").read_text(encoding="utf-8").split("\0"):
                found.append(int(entry.name))
        except OSError:
            pass
    return found


def state_of(process):
    """The letter of proc(5): T of one that is stopped, Z of one that has ended and is not waited for yet."""
    return pathlib.Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[0]


@unittest.skipUnless(PROGRAM.is_file(), "no build")
class Ranks(unittest.TestCase):
    def start(self, launcher, ranks, *arguments, **more):
        """The exit status, and what the ranks have said, one after the other, and then the launcher. Each writes into
        a file of its own, as launchers mix what they say within lines."""
        launch = [*launcher, "-n", str(ranks)] if launcher else []
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([*launch, "sh", "-c", 'exec "$@" >"$0/$$" 2>&1', folder, str(PROGRAM),
                                   "--gtest_color=no", *arguments],
                                  env=environment() | more, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  text=True, check=False, timeout=SECONDS, cwd=ROOT)
            said = [file.read_text(encoding="utf-8") for file in pathlib.Path(folder).iterdir()]
        return done.returncode, "".join([*said, done.stdout])

    def run_as(self, launcher, ranks, *arguments, **more):
        status, said = self.start(launcher, ranks, *arguments, **more)
        self.assertEqual(status, 0, said[-12000:])
        self.assertEqual(len(re.findall(r"\[  PASSED  \] [1-9]\d* tests?", said)), ranks, said[-12000:])

    def test_alone(self):
        self.run_as(None, 1)

    def test_under_rosin_run(self):
        for ranks in (2, 4):
            with self.subTest(ranks=ranks):
                self.run_as(ROSIN_RUN, ranks)

    def test_arrays_of_devices(self):
        for backend, more in DEVICES.items():
            if not (BUILD / "rosin" / f"librosin_{backend.lower()}.so").is_file():
                continue
            with self.subTest(backend):
                self.run_as(ROSIN_RUN, 2, "--gtest_filter=DeviceRanks.*:UnevenRanks.*", ROSIN_TEST_DEVICE=backend,
                            ROSIN_CACHE_DIR=KERNELS, **more)

    def over_nccl(self):
        """Each back end whose devices NCCL or RCCL joins here: what its tests need, and the variable of its options."""
        for backend, (library, options) in OVER_NCCL.items():
            if library.is_file():
                yield options, DEVICES[backend] | {"ROSIN_TEST_NCCL": "1", "ROSIN_TEST_DEVICE": backend}

    def test_over_nccl(self):
        for _, more in self.over_nccl():
            with self.subTest(more):
                more["ROSIN_CACHE_DIR"] = KERNELS
                for ranks in (1, 2, 4):
                    self.run_as(ROSIN_RUN, ranks, "--gtest_filter=-Ranks.ABackendIsInitializedFirst",
                                ROSIN_TEST_STRAIGHT="1", **more)
                self.run_as(ROSIN_RUN, 2, "--gtest_also_run_disabled_tests",
                            "--gtest_filter=DeviceRanks.DISABLED_ARankWhoseArrayIsElsewhereIsNamed", **more)

    def logs_over_nccl(self, test):
        """Of each back end, what the pretended drivers of two ranks say of the order in which they ran what."""
        for options, more in self.over_nccl():
            with self.subTest(more), tempfile.TemporaryDirectory() as folder:
                more |= {options: f"checks=0,collectives=first,log={folder}/ran", "ROSIN_CACHE_DIR": folder}
                self.run_as(ROSIN_RUN, 2, f"--gtest_filter=DeviceRanks.{test}", **more)
                logs = [log.read_text(encoding="utf-8") for log in pathlib.Path(folder).glob("ran.*")]
                self.assertEqual(len(logs), 2)
                yield from logs

    def test_messages_of_nccl_run_beside_the_reverse_walk(self):
        """A step is a graph for each message, which follows it."""
        for ran in self.logs_over_nccl("MessagesBesideTheReverseWalkTrainAsOneRank"):
            self.assertEqual(ran.count("nccl group\n"), 10, ran)  # two for each of five steps
            self.assertEqual(ran.count("graph\nnccl group\n" * 2), 3, ran)  # the first two are no graphs

    def test_sums_of_several_steps_go_over_nccl_in_two_messages(self):
        for ran in self.logs_over_nccl("SumsOfSeveralStepsTrainAsOneRank"):
            self.assertEqual(ran.count("nccl group\n"), 4, ran)  # of the second and the fourth of five steps

    def test_ranks_that_meet_at_an_address(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            master = {"ROSIN_MASTER": f"127.0.0.1:{free.getsockname()[1]}", "ROSIN_WORLD_SIZE": "2"}
        ranks = [subprocess.Popen([str(PROGRAM), "--gtest_color=no"], env=environment() | master | {"ROSIN_RANK": rank},
                                  cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                 for rank in ("0", "1")]
        for process in ranks:
            said = process.communicate(timeout=SECONDS)[0]
            self.assertEqual(process.returncode, 0, said[-6000:])

    def test_nccl_needs_a_device(self):
        _, said = self.start(None, 1, "--gtest_filter=Ranks.KnowTheirNumber", ROSIN_TEST_NCCL="1",
                             ROSIN_CUDA_LIBRARIES="/nonexistent")
        if "[  PASSED  ] 1 test." not in said:  # there is a real one
            self.assertRegex(said, "initialize: NCCL joins processes that have a CUDA or AMDGPU device each; "
                                   "CUDA is not usable: .*; AMDGPU is not usable: ")

    def test_what_befalls_one_rank_is_told_to_the_others(self):
        for name, passed in (("ARankIsKilled", 2), ("ARankSaysWhyItCannotGoOn", 3),
                             ("ARankThatFallsOutOfStepIsToldOfByAll", 3)):
            with self.subTest(name):
                status, said = self.start(ROSIN_RUN, 3, "--gtest_also_run_disabled_tests", f"--gtest_filter=*{name}")
                self.assertEqual(said.count("[  PASSED  ] 1 test."), passed, said)
                self.assertEqual(status != 0, passed == 2, said)

    def test_slow_a_training_that_is_killed_and_stopped_ends_with_the_same_bits(self):
        nccl = {"ROSIN_TEST_DEVICE": "CUDA", "ROSIN_TEST_NCCL": "1", "FAKE_CUDA": "checks=0"} | DEVICES["CUDA"]
        for device in ({}, {"ROSIN_TEST_DEVICE": "reference"}, nccl | {"ROSIN_CACHE_DIR": KERNELS}):
            if "ROSIN_TEST_NCCL" in device and not (BUILD / "fake_cuda" / "libnccl.so.2").is_file():
                continue
            with self.subTest(device), tempfile.TemporaryDirectory() as whole, tempfile.TemporaryDirectory() as broken:
                self.compare_trainings(pathlib.Path(whole), pathlib.Path(broken), device)

    def compare_trainings(self, whole, broken, device):
        self.assertEqual(self.train(whole, 120, device).wait(SECONDS), 0)
        chance = random.Random(5)
        done = 0
        while done < FAULTS:  # a training may end before all have come
            for file in broken.iterdir():
                file.unlink()
            training = self.train(broken, 3, device, "--restart", str(FAULTS + 5), "--grace", "1")
            last = time.monotonic()  # when the last fault came
            while training.poll() is None and time.monotonic() < last + SECONDS:
                time.sleep(0.2 + chance.random() * 0.3)
                if done < FAULTS and self.signal_one_of(broken, chance, (signal.SIGKILL, signal.SIGSTOP)[done % 2]):
                    done, last = done + 1, time.monotonic()
                self.let_the_last_go_on(broken)
            self.assertEqual(training.poll(), 0, f"{done} faults, then {self.left_behind(broken)}")
            weights = [(folder / "final.safetensors").read_bytes() for folder in (whole, broken)]
            self.assertEqual(weights[0], weights[1])
            self.assertEqual(processes_with(str(broken)), [])

    def train(self, folder, timeout, device, *options, launcher=ROSIN_RUN):
        words = [*launcher, "-n", "2", *options, str(TRAINING), str(folder), str(timeout)]
        training = subprocess.Popen(words, env=environment() | device, cwd=ROOT, stdout=subprocess.DEVNULL,
                                    stderr=subprocess.DEVNULL)
        self.addCleanup(training.wait)
        self.addCleanup(training.kill)  # with it end its ranks
        return training

    def left_behind(self, folder):
        """The processes of a training, with their states, and the files in its folder."""
        states = []
        for process in processes_with(str(folder)):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                states.append(f"{process} {state_of(process)}")
        return f"processes {states}, files {sorted(file.name for file in folder.iterdir())}"

    def signal_one_of(self, folder, chance, what):
        """Sends it to the process that one of the ranks says it is. How many got it: none that has ended by itself."""
        try:
            process = int((folder / f"process-{chance.randrange(2)}").read_text(encoding="utf-8"))
            if TRAINING.name not in pathlib.Path(f"/proc/{process}/cmdline").read_text(encoding="utf-8"):
                return 0
            if state_of(process) in "TZ":
                return 0  # the last one has not been noticed yet
            os.kill(process, what)
        except (FileNotFoundError, ProcessLookupError, ValueError):
            return 0  # not begun yet, or ended
        return 1

    def let_the_last_go_on(self, folder):
        """One that is stopped when the other has ended well: nobody waits for it, so nobody ends it. It may have come
        to its end too, and be stopped on its way out."""
        for rank in range(2):
            if (folder / f"ended-{1 - rank}").exists():
                with contextlib.suppress(FileNotFoundError, ProcessLookupError, ValueError):
                    process = int((folder / f"process-{rank}").read_text(encoding="utf-8"))
                    if process in processes_with(str(TRAINING)):
                        os.kill(process, signal.SIGCONT)

    def need(self, program, package):
        if not shutil.which(program):
            self.skipTest(f"no {program} ({package})")
        if not (BUILD / "rosin" / "librosin_comm_mpi.so").is_file():
            self.skipTest("the build has no transport over MPI")

    def test_under_open_mpi(self):
        self.need(OPEN_MPI[0], "openmpi-bin")
        for ranks in (2, 4):
            with self.subTest(ranks=ranks):
                self.run_as(OPEN_MPI, ranks)

    def test_a_training_under_open_mpi_ends_with_the_same_bits_in_every_run(self):
        self.need(OPEN_MPI[0], "openmpi-bin")
        weights = []
        for _ in range(2):
            with tempfile.TemporaryDirectory() as folder:
                self.assertEqual(self.train(pathlib.Path(folder), 120, {}, launcher=OPEN_MPI).wait(SECONDS), 0)
                weights.append((pathlib.Path(folder) / "final.safetensors").read_bytes())
        self.assertEqual(weights[0], weights[1])

    def test_slow_an_mpi_that_takes_memory_of_devices_gets_it(self):
        """Open MPI that says so: memory of the pretended CUDA is the host's."""
        self.need(OPEN_MPI[0], "openmpi-bin")
        with tempfile.TemporaryDirectory() as folder:
            aware = pathlib.Path(folder) / "libmpi_aware.so"
            words = [os.environ.get("CXX") or "g++", "-shared", "-fPIC", "-x", "c++", "-", "-o", str(aware),
                     "-Wl,--no-as-needed", "-l:libmpi.so.40"]
            if subprocess.run(words, input='extern "C" int MPIX_Query_cuda_support() { return 1; }', text=True,
                              check=False, capture_output=True).returncode != 0:
                self.skipTest("no compiler, or no libmpi.so.40")
            more = DEVICES["CUDA"] | {"ROSIN_TEST_DEVICE": "CUDA", "ROSIN_CACHE_DIR": folder}
            filtered = "--gtest_filter=DeviceRanks.*"
            self.run_as(OPEN_MPI, 2, filtered, ROSIN_MPI_LIBRARY=str(aware), **more)  # nobody asks for it
            self.assertIn("CUDA:0      OK, over the host", self.said_by_ranks(ROSIN_MPI_LIBRARY=str(aware), **more))
            preferences = pathlib.Path(folder) / "LocalPreferences.toml"
            preferences.write_text("[Flux]\nFluxDistributedMPICUDAAware = true\n", encoding="utf-8")
            self.run_as(OPEN_MPI, 2, filtered, ROSIN_MPI_LIBRARY=str(aware), ROSIN_PREFERENCES=str(preferences),
                        ROSIN_TEST_STRAIGHT="1", **more)
            self.assertIn("CUDA:0      OK, from device to device", self.said_by_ranks(
                ROSIN_MPI_LIBRARY=str(aware), ROSIN_PREFERENCES=str(preferences), **more))
            status, said = self.start(OPEN_MPI, 2, filtered, ROSIN_MPI_GPU_AWARE="1", **more)
            self.assertEqual(status, 0, said)
            self.assertIn("does not take memory of CUDA devices", said)
            self.assertIn("they are copied to the host and back (mpi-gpu-aware)", said)

    def said_by_ranks(self, **more):
        """What `rosin ranks` says, as two ranks of Open MPI."""
        done = subprocess.run([*OPEN_MPI, "-n", "2", ROSIN_RUN[0], "ranks"], env=environment() | more, text=True,
                              capture_output=True, check=False, timeout=SECONDS, cwd=ROOT)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_under_mpich(self):
        self.need(MPICH[0], "mpich")
        self.run_as(MPICH, 2)


if __name__ == "__main__":
    unittest.main()
