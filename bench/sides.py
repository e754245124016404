"""The two sides of a comparison as processes: our programs, and the peers, which stay alive, keep several sessions and
are stopped while they have nothing to do. Read next: peer.py (the other end of the talk), bench.py (who is asked)."""
import ctypes
import dataclasses
import json
import os
import pathlib
import signal
import statistics
import subprocess
import tempfile
import threading

import report

HERE = pathlib.Path(__file__).resolve().parent
BUILD = HERE.parent / "build"
OPEN_SECONDS, REPEAT_SECONDS = 300, 60


class Failure(Exception):
    """One side could not be run; the text goes into the row."""


@dataclasses.dataclass(frozen=True)
class Setup:
    """How a peer is run. wait is the OpenMP wait policy, empty for its default."""
    peer: str
    mode: str
    layout: str
    threads: int
    wait: str = ""

    def label(self):
        return " ".join(filter(None, (self.mode, self.layout, self.wait.lower())))


class Ours:
    """The C++ program of a workload; each call is a process of its own, which starts in a few milliseconds."""

    def __init__(self, folder, workload, threads, inputs):
        self.program = folder / f"bench_{workload.program or workload.name.lower()}"
        self.command = [str(self.program), "--inputs", str(inputs), "--threads", str(threads),
                        "--steps", str(workload.steps), "--repeats", "1"]

    def times(self):
        """Of a step in a process of its own: milliseconds, and those of all threads."""
        record = self.run()
        return statistics.median(record["ms"]), statistics.median(record["cpu_ms"])

    def run(self):
        """The program's record: ms and cpu_ms (one per repeat), losses, what was launched, memory."""
        if not self.program.exists():
            raise Failure(f"{self.program.name} is not built")
        try:
            done = subprocess.run(self.command, capture_output=True, text=True, timeout=REPEAT_SECONDS)
        except subprocess.TimeoutExpired:
            raise Failure(f"ours: no answer in {REPEAT_SECONDS} s") from None
        if done.returncode:
            raise Failure(f"ours: exit status {done.returncode}: " + report.last_line(done.stderr))
        return json.loads(done.stdout.splitlines()[-1])


class Server:
    """A peer's process for one thread count and wait policy."""

    def __init__(self, venv, setup, fresh=False):
        self.errors = tempfile.TemporaryFile("w+")
        self.caches = tempfile.TemporaryDirectory() if fresh else None
        self.alive = True
        command = [str(venv / "bin" / "python"), str(HERE / f"peer_{setup.peer}.py"), "--threads", str(setup.threads)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True,
            env=self.environment(setup), start_new_session=True,
            preexec_fn=lambda: begin_peer(setup))
        self.version = self.answer(OPEN_SECONDS)["version"]

    def environment(self, setup):
        cache = self.caches.name if self.caches else str(BUILD / "bench" / "inductor")
        env = dict(os.environ, OMP_NUM_THREADS=str(setup.threads), CUDA_VISIBLE_DEVICES="", JAX_PLATFORMS="cpu",
                   TORCHINDUCTOR_CACHE_DIR=cache, PYTHONDONTWRITEBYTECODE="1")
        if self.caches:
            env["TMPDIR"] = cache  # where MLX keeps its kernels
        env.pop("OMP_WAIT_POLICY", None)
        return env | ({"OMP_WAIT_POLICY": setup.wait} if setup.wait else {})

    def ask(self, seconds, **request):
        """The answer to a request; the process is stopped behind it."""
        os.killpg(self.process.pid, signal.SIGCONT)
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return self.answer(seconds)

    def answer(self, seconds):
        timer = threading.Timer(seconds, self.kill)
        timer.start()
        line = self.process.stdout.readline()
        timer.cancel()
        if not line:
            self.alive = False
            self.process.wait()
            self.errors.seek(0)
            raise Failure("failed: " + report.last_line(self.errors.read()))
        os.killpg(self.process.pid, signal.SIGSTOP)
        record = json.loads(line)
        if "error" in record:
            raise Failure("failed: " + report.last_line(record["error"]))
        return record

    def kill(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass  # it ended by itself

    def close(self):
        self.alive = False
        self.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.errors):
            stream.close()
        if self.caches:
            self.caches.cleanup()


class Session:
    """One workload in one setup of a peer, at its initial parameters. losses, first_ms: of its first steps."""

    def __init__(self, server, workload, inputs, setup):
        self.server = server
        opened = server.ask(OPEN_SECONDS, do="open", workload=workload.name, inputs=str(inputs), mode=setup.mode,
                            layout=setup.layout)
        self.number, self.losses, self.first_ms = opened["session"], opened["losses"], opened["first_ms"]

    def repeat(self, steps):
        """Of a step: milliseconds, and those of all threads."""
        found = self.server.ask(REPEAT_SECONDS, do="repeat", session=self.number, steps=steps)
        return found["ms"], found["cpu_ms"]


class Servers:
    """The peers' processes, started when they are first needed."""

    def __init__(self, venv):
        self.venv = venv
        self.running = {}
        self.versions = {}

    def session(self, workload, inputs, setup):
        key = setup.peer, setup.threads, setup.wait
        if key not in self.running or not self.running[key].alive:
            self.running[key] = Server(self.venv, setup)
        self.versions[setup.peer] = self.running[key].version
        return Session(self.running[key], workload, inputs, setup)

    def fresh_session(self, workload, inputs, setup):
        """A session in a process of its own with empty compile caches, which is ended at once; and its memory."""
        server = Server(self.venv, setup, fresh=True)
        self.versions[setup.peer] = server.version
        try:
            session = Session(server, workload, inputs, setup)
            return session, server.ask(REPEAT_SECONDS, do="memory")["peak_bytes"]
        finally:
            server.close()

    def forget(self):
        """Drops all sessions."""
        for server in self.running.values():
            if server.alive:
                server.ask(REPEAT_SECONDS, do="forget")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for server in self.running.values():
            server.close()


PR_SET_PDEATHSIG = 1  # of prctl(2)


def begin_peer(setup):
    """In the new process: it ends with the bench, whatever ends that, and sees as many processors as it has threads
    where it would take more."""
    if hasattr(libc := ctypes.CDLL(None), "prctl"):
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if setup.peer in ("jax", "mlx"):
        limit_processors(setup.threads)


def limit_processors(count):
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:count])
