"""The transports: comm_conformance under `rosin run` and both MPI's mpiexec; `rosin run` itself; what ranks learn of
faults, and that nothing is left behind.

Needs a build (ROSIN_TEST_BUILD, else build/release); what MPI lacks here is skipped.
"""

import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = pathlib.Path(os.environ.get("ROSIN_TEST_BUILD", ROOT / "build" / "release")).resolve()
CONFORMANCE, COMMAND = BUILD / "comm_conformance", BUILD / "tools" / "rosin"
LOCAL, MPI = BUILD / "rosin" / "librosin_comm_local.so", BUILD / "rosin" / "librosin_comm_mpi.so"
OPEN_MPI, MPICH = shutil.which("mpiexec.openmpi"), shutil.which("mpiexec.hydra")
NCCL, CUDA = BUILD / "rosin" / "librosin_comm_nccl.so", BUILD / "rosin" / "librosin_cuda.so"
TCP = BUILD / "rosin" / "librosin_comm_tcp.so"
AMDGPU = BUILD / "rosin" / "librosin_amdgpu.so"
FAKE_CUDA, FAKE_HIP = BUILD / "fake_cuda", BUILD / "fake_hip"  # the pretended CUDA and NCCL, HIP and RCCL
MARK = "ROSIN_TEST_COMM"  # in the environment of all that a test starts
LIMIT = 300
FAULTS = int(os.environ.get("ROSIN_TEST_FAULTS", "6"))  # how many come at random moments; a campaign has 50
PROMISED, SLACK = 5, 3  # seconds beyond the patience in which all are told; what a busy machine may add to them


def clean_environment(**more):
    """The environment without what says that this process is one of several already."""
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith(("ROSIN_", "OMPI_", "PMI", "MPI", "SLURM_"))}
    return kept | {"ROSIN_LOG": "none"} | more


def marked(mark):
    """The processes with this mark in their environment that run yet."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and f"{MARK}={mark}".encode() in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except OSError:
            pass
    return found


def variable_of(process, name):
    """A variable of the environment that the process began with, or None."""
    words = pathlib.Path(f"/proc/{process}/environ").read_bytes().decode().split("\0")
    return dict(word.split("=", 1) for word in words if "=" in word).get(name)


SHARED_MEMORY = pathlib.Path("/dev/shm")


def unused_shared_memory():
    """Names there of what MPICH could leave, which has no folder of its own, that no process uses."""
    maps = ""
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit():
                maps += (entry / "maps").read_text(encoding="utf-8", errors="replace")
        except OSError:
            pass
    return {path.name for path in SHARED_MEMORY.glob("mpich*") if str(path) not in maps}


class Ranks(unittest.TestCase):
    """Starts programs, and looks afterwards at what is left of them."""

    def setUp(self):
        self.mark = f"{os.getpid()}.{time.monotonic_ns()}"
        before = unused_shared_memory()
        segments = tempfile.TemporaryDirectory(dir=SHARED_MEMORY)
        self.segments = segments.name  # of Open MPI and UCX: no other program's are there
        self.addCleanup(segments.cleanup)
        self.addCleanup(lambda: self.assertEqual(unused_shared_memory() - before, set()))
        self.addCleanup(lambda: self.assertEqual(os.listdir(self.segments), []))
        self.addCleanup(self.check_that_none_is_left)

    def check_that_none_is_left(self):
        for _ in range(200):
            left = marked(self.mark)
            if not left:
                return
            time.sleep(0.05)
        for process in left:
            os.kill(process, signal.SIGKILL)
        self.fail(f"{len(left)} processes are left")

    def environment(self, **more):
        folders = ("OMPI_MCA_btl_vader_backing_directory", "OMPI_MCA_osc_rdma_backing_directory", "UCX_POSIX_DIR")
        return clean_environment(**{MARK: self.mark, **dict.fromkeys(folders, self.segments), **more})

    def run_words(self, *words, **environment):
        return subprocess.run([str(word) for word in words], env=self.environment(**environment), text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=LIMIT)

    def good(self, *words, **environment):
        done = self.run_words(*words, **environment)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"(^|\n)[1-9]\d* passed, 0 failed\n")
        return done.stdout

    def check_in_time(self, text, patience, since=None, wrong=None):
        """That the others got their errors soon after the rank `wrong` did wrong at `since`, which it says where no
        signal made it do so."""
        since = since or float(re.search(r"rank \d+: wrong at ([\d.]+)", text)[1])
        told = [float(when) - since for rank, when in re.findall(r"rank (\d+): told at ([\d.]+)", text)
                if rank != str(wrong)]
        self.assertTrue(told, text)
        self.assertLessEqual(max(told), patience + PROMISED + SLACK, text)

    def fault_at_a_random_moment(self, fault, chance, variable, *words):
        """Of three ranks that sum in a loop, one gets a signal: its rank, the exit status, and what all have said.
        `variable` has the rank in a process' environment."""
        process = subprocess.Popen([str(word) for word in words], env=self.environment(), text=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        line = process.stdout.readline()
        while line and "going" not in line:
            line = process.stdout.readline()
        self.assertIn("going", line)
        time.sleep(chance.random() * 0.1)
        victims = {variable_of(each, variable): each for each in marked(self.mark) if each != process.pid}
        self.assertLessEqual({"0", "1", "2"}, set(victims))
        rank, since = chance.choice("012"), time.monotonic()
        os.kill(victims[rank], fault)
        output, _ = process.communicate(timeout=LIMIT)
        return int(rank), since, output, process.returncode


def rosin_run(ranks, *options):
    return (COMMAND, "run", "-n", ranks, *options)


def errors(text):
    """(rank, status, text) of each rank's error."""
    return [(int(rank), status, what) for rank, status, what in re.findall(r"rank (\d+): ([A-Z]+): (.*)", text)]


def bits(text):
    """The hashes of sums that ranks tell, in one order whoever spoke first."""
    return sorted(re.findall(r"bits (?:at \d+ )?\d+ \d+", text))


@unittest.skipUnless(CONFORMANCE.is_file() and os.access(COMMAND, os.X_OK), "the build lacks a program")
class Local(Ranks):
    def fault(self, name, ranks=3, patience=60, grace=60):
        done = self.run_words(*rosin_run(ranks, "--grace", grace), CONFORMANCE, LOCAL, "--fault", name, "--patience",
                              patience)
        self.assertNotIn("FAILED", done.stdout)
        return done, errors(done.stdout)

    def test_alone_and_two_and_four_ranks_keep_the_contract(self):
        self.assertIn("1 ranks over Local", self.good(CONFORMANCE, LOCAL))
        for ranks in (2, 4):
            self.assertIn(f"{ranks} ranks over Local", self.good(*rosin_run(ranks), CONFORMANCE, LOCAL))

    def test_sums_in_memory_that_ranks_have_in_common_are_right(self):
        for launcher in ((), rosin_run(2), rosin_run(3), rosin_run(5)):
            said = self.good(*launcher, *("--",)[:len(launcher)], CONFORMANCE, LOCAL, "--only", "common")
            self.assertGreater(int(re.search(r"(\d+) passed", said)[1]), 300)

    def test_bits_are_equal_from_run_to_run(self):
        said = [bits(self.good(*rosin_run(3), "--", CONFORMANCE, LOCAL, "--only", "bits")) for _ in range(3)]
        self.assertEqual(len(said[0]), 12)  # of three sizes: for all, and at each rank alone
        self.assertEqual(said[0], said[1])
        self.assertEqual(said[0], said[2])

    def test_different_collectives_are_named_on_every_rank(self):
        for name, first, last in (("count", "allreduce, sum, 10 Float32", "allreduce, sum, 11 Float32"),
                                  ("type", "10 Float32", "10 Float64"),
                                  ("kind", "allreduce, sum, 10 Float32", '"end of epoch" (barrier'),
                                  ("place", "10 Float32", "at other places")):
            done, said = self.fault(name)
            self.assertEqual(sorted(rank for rank, _, _ in said), [0, 1, 2], done.stdout)
            for _, status, text in said:
                self.assertEqual(status, "MISMATCH")
                self.assertRegex(text, rf"rank 0 is at collective 4, .*{re.escape(first)}.*"
                                       rf"rank 2 at collective 4, .*{re.escape(last)}")

    def test_a_rank_that_hangs_is_named_with_the_last_that_each_side_reached(self):
        done, said = self.fault("stop", patience=5, grace=5)
        self.assertEqual([rank for rank, _, _ in sorted(said)], [0, 1], done.stdout)
        for _, status, text in said:
            self.assertEqual(status, "TIMEOUT")
            self.assertRegex(text, r"rank 2 \(process \d+\) did not come within 5 s: "
                                   r"it has ended collective 3, \"loss\"")
            self.assertRegex(text, r"rank [01] waits in collective 4, \"gradients\"")
        self.check_in_time(done.stdout, 5)

    def test_a_rank_that_is_gone_is_named_at_once(self):
        for name, why, result in (("kill", r"was ended by signal 9 \(Killed\)", 137),
                                  ("throws", r"was ended by signal 6 \(Aborted\)", 134),
                                  ("exit", "ended with status 3", 3), ("leave", "has left", 5)):
            done, said = self.fault(name)
            self.check_in_time(done.stdout, 0)
            self.assertEqual(done.returncode, result, done.stderr)
            self.assertEqual([rank for rank, _, _ in sorted(said)], [0, 1], done.stdout)
            for _, status, text in said:
                self.assertEqual(status, "LOST")
                self.assertRegex(text, rf"rank 2 ({why}|is gone); it has ended collective 3, \"loss\"")

    def test_abort_reaches_all_with_its_reason(self):
        done, said = self.fault("abort")
        self.assertEqual(sorted(rank for rank, _, _ in said), [0, 1, 2], done.stdout)
        self.assertTrue(all(status == "ABORTED" and "the loss is NaN" in text for _, status, text in said), said)
        self.check_in_time(done.stdout, 0)
        done, said = self.fault("own abort", ranks=2)
        self.assertTrue(all(status == "ABORTED" and "the user asked" in text for _, status, text in said), said)
        self.assertEqual(len(said), 2, done.stdout)

    def test_a_rank_that_is_killed_or_stopped_at_any_moment_is_named(self):
        chance = random.Random(7)
        faults = ((signal.SIGKILL, "LOST", 60, 60), (signal.SIGSTOP, "TIMEOUT", 2, 2))
        for turn in range(FAULTS):
            fault, status, patience, grace = faults[turn % 2]
            words = (*rosin_run(3, "--grace", grace), CONFORMANCE, LOCAL, "--fault", "none", "--patience", patience)
            rank, since, output, result = self.fault_at_a_random_moment(fault, chance, "ROSIN_RANK", *words)
            said = errors(output)
            self.assertEqual({rank} | {own for own, _, _ in said}, {0, 1, 2}, output)
            for own, its, text in said:
                self.assertEqual((its, own == rank), (status, False), text)
                self.assertRegex(text, rf"rank {rank} .*collective \d+")
            self.check_in_time(output, patience if status == "TIMEOUT" else 0, since, rank)
            self.assertNotEqual(result, 0)

    def test_what_the_environment_says_wrongly_is_refused(self):
        for (file, rank, ranks), why in ((("0", "", ""), "stands without ROSIN_RANK"),
                                         (("0", "0", "2"), "no memory of rosin run"),
                                         (("0", "2", "2"), "rank 2 of 2"), (("x", "", ""), "must be a whole number")):
            done = self.run_words(CONFORMANCE, LOCAL, ROSIN_LOCAL_FD=file, ROSIN_RANK=rank, ROSIN_WORLD_SIZE=ranks)
            self.assertIn(why, done.stdout)

    def test_two_processes_of_one_rank_and_another_number_of_ranks_are_refused(self):
        script = f'exec 2>&1; if [ $ROSIN_RANK = 1 ]; then ROSIN_RANK=0 {CONFORMANCE} {LOCAL}; exit 1; fi; '
        done = self.run_words(*rosin_run(2, "--grace", "5"), "sh", "-c", script + f"{CONFORMANCE} {LOCAL}")
        self.assertRegex(done.stdout, r"INVALID: rank 0 is process \d+ already")
        done = self.run_words(*rosin_run(2, "--grace", "1"), "env", "ROSIN_WORLD_SIZE=3", CONFORMANCE, LOCAL)
        self.assertIn("ROSIN_WORLD_SIZE says 3 ranks, rosin run started 2", done.stdout)


@unittest.skipUnless(os.access(COMMAND, os.X_OK), "the build has no command rosin")
class Launcher(Ranks):
    def shell(self, ranks, script, *options, **environment):
        return self.run_words(*rosin_run(ranks, *options), "sh", "-c", script, **environment)

    def test_each_process_knows_its_rank_and_has_its_share_of_the_cores(self):
        done = self.shell(3, 'echo "$ROSIN_RANK of $ROSIN_WORLD_SIZE, $ROSIN_NUM_THREADS"')
        threads = max(1, len(os.sched_getaffinity(0)) // 3)
        lines = sorted(done.stdout.split("\n"))[1:]
        self.assertEqual([line.split(",")[0] for line in lines], ["0 of 3", "1 of 3", "2 of 3"])
        self.assertTrue(all(1 <= int(line.split(", ")[1]) <= threads for line in lines), lines)
        self.assertEqual(self.shell(2, "echo $ROSIN_NUM_THREADS", ROSIN_NUM_THREADS="7").stdout, "7\n7\n")

    def test_the_status_is_that_of_the_first_that_fails_and_the_rest_is_ended(self):
        done = self.shell(3, "[ $ROSIN_RANK = 1 ] && exit 9; sleep 100", "--grace", "0.1")
        self.assertEqual(done.returncode, 9)
        self.assertIn("rosin: run: rank 1 ended with status 9", done.stderr)
        deaf = "[ $ROSIN_RANK = 1 ] && kill -9 $$; trap '' TERM; sleep 100 & wait; sleep 100"
        done = self.shell(2, deaf, "--grace", "0.1")
        self.assertEqual(done.returncode, 137)
        self.assertIn("rank 1 was ended by signal 9 (Killed)", done.stderr)

    def test_what_a_process_started_is_ended_with_it(self):
        self.assertEqual(self.shell(2, "sleep 100 & exit 0").returncode, 0)

    def test_arguments_and_options_of_the_program_are_its_own(self):
        for words in (("--", "echo", "-n", "a", "--json", "--", "b"), ("echo", "-n", "a", "--json", "--", "b")):
            done = self.run_words(*rosin_run(1), *words)
            self.assertEqual((done.returncode, done.stdout), (0, "a --json -- b"), done.stderr)

    def test_wrong_usage_is_told(self):
        for words, why in ((("run", "echo"), "--ranks"), (("run", "-n", "0", "echo"), "--ranks"),
                           (("run", "-n", "2"), "no program"), (("run", "-n", "2", "--"), "no program"),
                           (("run", "-n", "2", "--fast", "echo"), "--fast is no option")):
            done = self.run_words(COMMAND, *words)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(why, done.stderr)
        done = self.run_words(*rosin_run(2), "/nonexistent/program")
        self.assertEqual(done.returncode, 127)
        self.assertEqual(done.stderr.count("No such file"), 1, done.stderr)
        self.assertLessEqual(max(map(len, self.run_words(COMMAND, "run", "--help").stdout.split("\n"))), 80)

    def test_restarts(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        folder = pathlib.Path(holder.name)
        script = f'echo x >> {folder}/$ROSIN_RANK; [ $(wc -l < {folder}/0) -ge 3 ] || exit 4; sleep 0.2'
        done = self.shell(1, script, "--restart", "5", "--grace", "0.1")
        self.assertEqual((done.returncode, (folder / "0").read_text(encoding="utf-8")), (0, "x\nx\nx\n"), done.stderr)
        self.assertIn("all ranks are started again (2 of 5)", done.stderr)
        self.assertEqual(self.shell(1, "exit 4", "--restart", "1").returncode, 4)

    def started(self, script, ranks=2):
        # What was started in the background ignores SIGINT, and hands that on.
        process = subprocess.Popen([str(word) for word in (*rosin_run(ranks, "--grace", "60"), "sh", "-c", script)],
                                   env=self.environment(), text=True, stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL,
                                   preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        self.addCleanup(process.stdout.close)
        for _ in range(ranks):
            self.assertEqual(process.stdout.readline(), "here\n")
        return process

    def test_signals_are_passed_on(self):
        process = self.started("trap 'echo bye; exit 0' INT; echo here; while :; do sleep 0.05; done")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.communicate(timeout=LIMIT)[0], "bye\nbye\n")
        self.assertEqual(process.returncode, 130)

    def test_nothing_outlives_a_launcher_that_is_killed(self):
        process = self.started("echo here; exec sleep 100")
        process.kill()
        process.wait(timeout=LIMIT)


class Mpi:
    """What both MPIs must do; `launcher` gives the words that start so many ranks. Which ranks can tell what they have
    learnt is up to mpiexec, which ends all once one has failed."""

    def launcher(self, ranks):
        raise NotImplementedError

    def fault(self, name, ranks=3, patience=60):
        words = (*self.launcher(ranks), CONFORMANCE, MPI, "--fault", name, "--patience", patience)
        done = self.run_words(*words)
        self.assertNotEqual(done.returncode, 0, done.stdout)
        return done, errors(done.stdout)

    def test_two_and_four_ranks_keep_the_contract(self):
        for ranks in (2, 4):
            text = self.good(*self.launcher(ranks), CONFORMANCE, MPI)
            self.assertIn(f"{ranks} ranks over MPI", text)
            self.assertIn(self.name, text)

    def test_bits_are_equal_from_run_to_run(self):
        words = (*self.launcher(3), CONFORMANCE, MPI, "--only", "bits")
        said = [bits(self.good(*words)) for _ in range(2)]
        self.assertEqual(len(said[0]), 12)
        self.assertEqual(said[0], said[1])

    def test_different_collectives_are_named_on_every_rank(self):
        for name in ("count", "kind"):
            done, said = self.fault(name)
            self.assertTrue(said, done.stdout + done.stderr)
            for _, status, text in said:
                self.assertEqual(status, "MISMATCH", text)
                self.assertRegex(text, r"rank 0 is at collective 4, .*rank 2 at collective 4, ")

    def test_a_rank_that_hangs_is_named(self):
        done, said = self.fault("stop", patience=3)
        self.assertTrue(said, done.stdout + done.stderr)
        for _, status, text in said:
            self.assertEqual(status, "TIMEOUT", text)
            self.assertRegex(text, r"rank 2 .*rank [01] waits in collective 4, \"gradients\"")
        self.check_in_time(done.stdout, 3)

    def test_after_a_rank_is_killed_throws_or_aborts_nothing_is_left(self):
        for name in ("kill", "throws", "abort"):
            self.fault(name, ranks=2)


@unittest.skipUnless(CONFORMANCE.is_file() and MPI.is_file(), "the build has no transport for MPI")
class AloneWithoutMpi(Ranks):
    def test_without_a_launcher_a_program_is_one_rank(self):
        self.assertIn("1 ranks over MPI", self.good(CONFORMANCE, MPI))

    def test_a_launcher_without_its_library_is_an_error(self):
        done = self.run_words(CONFORMANCE, MPI, ROSIN_MPI_LIBRARY="/nonexistent/libmpi.so")
        self.assertIn("join: UNSUPPORTED: /nonexistent/libmpi.so", done.stdout)
        done = self.run_words(CONFORMANCE, MPI, SLURM_STEP_NUM_TASKS="4")
        self.assertIn("join: UNSUPPORTED: srun has started 4 tasks without MPI", done.stdout)


@unittest.skipUnless(CONFORMANCE.is_file() and MPI.is_file() and OPEN_MPI, "no Open MPI here")
class OpenMpi(Mpi, Ranks):
    name = "Open MPI"

    def launcher(self, ranks):
        root = ["--allow-run-as-root"] if os.getuid() == 0 else []
        return (OPEN_MPI, *root, "--oversubscribe", "-n", ranks)

    def test_a_rank_that_is_killed_or_stopped_at_any_moment_leaves_nothing(self):
        """mpiexec ends all once one is killed. Of one that is stopped the others tell; it goes on to be ended, and may
        tell of them then."""
        chance = random.Random(8)
        for turn in range(FAULTS):
            fault = (signal.SIGKILL, signal.SIGSTOP)[turn % 2]
            words = (*self.launcher(3), CONFORMANCE, MPI, "--fault", "none", "--patience", 2)
            rank, since, output, result = self.fault_at_a_random_moment(fault, chance, "OMPI_COMM_WORLD_RANK", *words)
            self.assertNotEqual(result, 0, output)
            self.check_that_none_is_left()
            if fault == signal.SIGKILL:
                continue
            self.check_in_time(output, 2, since, rank)
            told = [(status, text) for own, status, text in errors(output) if own != rank]
            names = rf"rank {rank}\b.* did not come"
            self.assertTrue([text for status, text in told if status == "TIMEOUT" and re.search(names, text)], output)
            for status, text in told:
                if status == "TIMEOUT":  # it went on, to be ended by mpiexec, and answered the others
                    self.assertRegex(text, names + "|the ranks did not come")
                else:  # the same, and some are a collective apart
                    self.assertEqual(status, "MISMATCH", text)


@unittest.skipUnless(CONFORMANCE.is_file() and MPI.is_file() and MPICH, "no MPICH here")
class Mpich(Mpi, Ranks):
    name = "MPICH"

    def launcher(self, ranks):
        return (MPICH, "-n", ranks)


@unittest.skipUnless(CONFORMANCE.is_file() and TCP.is_file(), "the build has no transport over TCP")
class Tcp(Ranks):
    """Ranks that nobody starts together."""

    def run_ranks(self, ranks, *words, **environment):
        """What all have said."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            master = f"127.0.0.1:{free.getsockname()[1]}"
        more = {"ROSIN_MASTER": master, "ROSIN_WORLD_SIZE": str(ranks), **environment}
        started = [subprocess.Popen([str(word) for word in words], text=True, stdin=subprocess.DEVNULL,
                                    env=self.environment(**{"ROSIN_RANK": str(rank), **more}),
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for rank in range(ranks)]
        said = ""
        for process in started:  # one that has stopped is ended when the others have told of it
            if process is started[-1] and ranks > 1 and "TIMEOUT" in said:
                process.kill()
            said += process.communicate(timeout=LIMIT)[0]
        return said

    def test_one_two_and_four_ranks_keep_the_contract(self):
        for ranks in (1, 2, 4):
            said = self.run_ranks(ranks, CONFORMANCE, TCP)
            self.assertRegex(said, rf"(?s){ranks} ranks over TCP.*\n[1-9]\d* passed, 0 failed\n")

    def test_what_a_rank_does_wrong_is_told_to_all(self):
        for name, status, text in (("kill", "LOST", "rank 2 is gone; the last that all reached is collective 3"),
                                   ("throws", "LOST", "rank 2 is gone"), ("exit", "LOST", "rank 2 is gone"),
                                   ("leave", "LOST", "rank 2 (is gone|has left)"),
                                   ("abort", "ABORTED", "the loss is NaN"),
                                   ("stop", "TIMEOUT", "rank 2 did not come within 2 s"),
                                   ("count", "MISMATCH", "rank 0 is at collective 4, .*10 Flo.* rank 2 .*11 Flo")):
            said = self.run_ranks(3, CONFORMANCE, TCP, "--fault", name, "--patience", 2)
            self.assertGreaterEqual(len(errors(said)), 2, said)
            self.assertNotIn("FAILED", said)
            for _, its, what in errors(said):
                self.assertEqual(its, status, what)
                self.assertRegex(what, text)
            if name != "count":
                self.check_in_time(said, 2 if name == "stop" else 0)

    def test_ranks_that_were_told_other_numbers_of_ranks_are_named(self):
        other = f"[ $ROSIN_RANK = 1 ] && export ROSIN_WORLD_SIZE=3; exec {CONFORMANCE} {TCP}"
        said = self.run_ranks(2, "sh", "-c", other)
        self.assertEqual(said.count("rank 0 of 2 was joined by rank 1 of 3"), 2, said)

    def test_wrong_variables_are_told(self):
        for more, why in (({"ROSIN_MASTER": "here"}, 'must be host:port of rank 0; got "here"'),
                          ({"ROSIN_RANK": "2"}, 'ROSIN_RANK must be a number from 0 to 1'),
                          ({"ROSIN_WORLD_SIZE": ""}, "ROSIN_WORLD_SIZE must be a number from 1 to"),
                          ({"ROSIN_MASTER": "nowhere.invalid:1", "ROSIN_RANK": "1"},
                           "ROSIN_MASTER names nowhere.invalid:1: ")):
            environment = {"ROSIN_MASTER": "127.0.0.1:1", "ROSIN_WORLD_SIZE": "2", "ROSIN_RANK": "0", **more}
            self.assertIn(f"join: INVALID: {why}" if why[:5] == "ROSIN" else why,
                          self.run_words(CONFORMANCE, TCP, **environment).stdout)

    @unittest.skipUnless(NCCL.is_file() and (FAKE_CUDA / "libnccl.so.2").is_file(), "there is no pretended NCCL")
    def test_ranks_of_nccl_meet_over_it(self):
        said = self.run_ranks(2, CONFORMANCE, NCCL, "--device", CUDA, "--only", "bits",
                              ROSIN_CUDA_LIBRARIES=str(FAKE_CUDA))
        self.assertRegex(said, r"(?s)2 ranks over NCCL .*with TCP.*[1-9]\d* passed, 0 failed\n")


@unittest.skipUnless(CONFORMANCE.is_file() and os.access(COMMAND, os.X_OK), "the build lacks a program")
class Versions(Ranks):
    """Rank 1 has a copy of the transport that says another version."""

    def said_with(self, library, start):
        version = self.run_words(COMMAND, "--version").stdout.split()[1]
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        other = pathlib.Path(holder.name) / library.name
        begin = version[:4].encode()  # compilers write short texts four bytes at a time
        other.write_bytes(library.read_bytes().replace(begin, b"9" + begin[1:]))
        rank = "${ROSIN_RANK-${OMPI_COMM_WORLD_RANK-$PMI_RANK}}"
        script = f'[ {rank} = 1 ] && exec {CONFORMANCE} {other} || exec {CONFORMANCE} {library}'
        return start("sh", "-c", script), version, "9" + version[1:]

    def test_they_are_told_under_rosin_run(self):
        done, own, other = self.said_with(LOCAL, lambda *words: self.run_words(*rosin_run(2, "--grace", "5"), *words))
        said = f"MISMATCH: rank 0 has version {own} of the transport, rank 1 has {other}"
        self.assertEqual(done.stdout.count(said), 2, done.stdout + done.stderr)

    @unittest.skipUnless(TCP.is_file(), "the build has no transport over TCP")
    def test_they_are_told_at_an_address(self):
        said, own, other = self.said_with(TCP, lambda *words: Tcp.run_ranks(self, 2, *words))
        self.assertIn(f"MISMATCH: rank 0 is of version {own}, rank 1 of {other}", said)

    @unittest.skipUnless(MPI.is_file() and OPEN_MPI, "no Open MPI here")
    def test_they_are_told_under_mpiexec(self):
        launcher = OpenMpi.launcher(self, 2)
        done, own, other = self.said_with(MPI, lambda *words: self.run_words(*launcher, *words))
        self.assertRegex(done.stdout, rf"MISMATCH: .*version {re.escape(own)}.*version {other}")


@unittest.skipUnless(CONFORMANCE.is_file() and NCCL.is_file() and (FAKE_CUDA / "libnccl.so.2").is_file(),
                     "the build has no transport over NCCL, or no pretended one")
class Nccl(Ranks):
    """On the pretended CUDA, of which each process has one of its own."""

    name, library, driver = "NCCL", "libnccl.so", FAKE_CUDA / "libcuda.so.1"
    places = {"ROSIN_CUDA_LIBRARIES": str(FAKE_CUDA)}
    on_device = (CONFORMANCE, NCCL, "--device", CUDA)

    def environment(self, **more):
        return super().environment(**{**self.places, **more})

    def test_one_two_and_three_ranks_keep_the_contract_on_devices(self):
        for ranks in (1, 2, 3):
            self.assertIn(f"{ranks} ranks over NCCL", self.good(*rosin_run(ranks), *self.on_device))

    def test_memory_of_the_host_goes_over_the_transport_of_the_launcher(self):
        self.assertRegex(self.good(*rosin_run(2), CONFORMANCE, NCCL), r"over NCCL .*with Local")
        self.assertRegex(self.good(CONFORMANCE, NCCL), r"1 ranks over NCCL .*with MPI .*without MPI")

    @unittest.skipUnless(OPEN_MPI, "no Open MPI here")
    def test_ranks_of_mpi_meet_over_it(self):
        root = ["--allow-run-as-root"] if os.getuid() == 0 else []
        words = (OPEN_MPI, *root, "--oversubscribe", "-n", 2, *self.on_device, "--only", "bits")
        self.assertRegex(self.good(*words), r"2 ranks over NCCL .*with MPI .*Open MPI")

    def fault(self, name, status, text, **environment):
        words = (*rosin_run(3, "--grace", "5"), *self.on_device, "--fault", name, "--patience", 3)
        done = self.run_words(*words, **environment)
        said = errors(done.stdout)
        self.assertGreaterEqual(len(said), 2, done.stdout + done.stderr)
        for _, its, what in said:  # what the last rank does may befall a sum before it, whose work goes on elsewhere
            self.assertIn(status, f"{its}: {what}")
            self.assertRegex(what, text)
        return done.stdout

    def test_what_a_rank_does_wrong_is_told_before_anything_waits_on_a_device(self):
        self.fault("count", "MISMATCH", r"rank 0 is at collective 4, .*10 Float32.* rank 2 .*11 Float32")
        for name, status, text in (("kill", "LOST", r"rank 2 (was ended by signal 9|is gone)"),
                                   ("throws", "LOST", r"rank 2 (was ended by signal 6|is gone)"),
                                   ("stop", "TIMEOUT", r"rank 2 .*did not come within 3 s"),
                                   ("abort", "ABORTED", "the loss is NaN")):
            self.check_in_time(self.fault(name, status, text), 3)

    def test_ranks_with_other_versions_are_named(self):
        words = " ".join(map(str, self.on_device))
        other = f"[ $ROSIN_RANK = 1 ] && export FAKE_NCCL=version=22304; exec {words} --fault none"
        done = self.run_words(*rosin_run(2, "--grace", "5"), "sh", "-c", other)
        said = r"MISMATCH: ranks have different versions of NCCL.*: rank 0 has .*2\.21\.5, rank 1 has .*2\.23\.4"
        self.assertEqual(len(re.findall(said, done.stdout)), 2, done.stdout + done.stderr)

    def test_errors_of_work_under_way_are_told(self):
        self.fault("none", "LOST", r"remote process exited.*does not answer|rank \d (ended with|is gone)",
                   FAKE_NCCL="lost=5")

    def test_why_it_cannot_be_taken_is_told(self):
        variable = f"ROSIN_{self.name}_LIBRARY"
        for more, why in (({"FAKE_NCCL": "version=2804"}, "must be version 2.10.0 or later; this is 2.8.4"),
                          ({"FAKE_NCCL": "version=20905"}, "must be version 2.10.0 or later; this is 2.9.5"),
                          ({variable: f"/nonexistent/{self.library}"},
                           rf"is not found \(/nonexistent/{self.library}: .*{variable}"),
                          ({variable: str(self.driver)}, "has no ncclGetVersion")):
            self.assertRegex(self.run_words(CONFORMANCE, NCCL, **more).stdout,
                             f"join: UNSUPPORTED: (.*; )?{self.name} {why}")


@unittest.skipUnless((FAKE_HIP / "librccl.so.1").is_file(), "the build has no pretended RCCL")
class Rccl(Nccl):
    """The same functions of AMD's, on the pretended HIP."""

    name, library, driver = "RCCL", "librccl.so", FAKE_HIP / "libamdhip64.so.6"
    places = {"ROSIN_ROCM_LIBRARIES": str(FAKE_HIP)}
    on_device = (CONFORMANCE, NCCL, "--device", AMDGPU)

    def test_it_says_that_it_is_rccl(self):
        said = self.good(*rosin_run(2), *self.on_device, "--only", "bits")
        self.assertRegex(said, r"over NCCL .*\(RCCL 2.21.5, with")


if __name__ == "__main__":
    sys.exit(unittest.main())
