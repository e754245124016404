"""Each check of the conformance program fails on a plug-in that breaks its rule: wrong/*.cpp, compiled here.

The build is the folder named by ROSIN_TEST_BUILD, else build/release; ./run test sets it.
"""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("ROSIN_TEST_BUILD", ROOT / "build" / "release")).resolve()
CONFORMANCE = BUILD / "conformance"
REFERENCE = BUILD / "rosin" / "librosin_reference.so"
CUDA = BUILD / "rosin" / "librosin_cuda.so"
FAKE = BUILD / "fake_cuda"
COMPILER = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
# the part and the check that must fail, or several checks, by what is wrong (wrong/*.cpp)
SEEN = {
    "half of the graphs": "device: the table is complete",
    "blank in a version": "device: capabilities have names and stay",
    "small groups": "device: the info keeps its bounds",
    "info beyond its size": "device: an older caller gets no more than it asked for",
    "any device opens": "device: devices that are not there are refused",
    "opens once": "device: a device opens again",
    "one error text": "device: each thread has its own error text",
    "one block for all": "device: blocks of all sizes come and go",
    "blocks of no bytes": "device: no bytes are no block",
    "more free than there is": "device: free memory is part of all memory",
    "copies in a byte less": "memory: memory holds what was copied in",
    "copies to the beginning": "memory: offsets and odd sizes touch nothing else",
    "copies nothing": "memory: copies within a device",
    "copies pinned memory late": "memory: pinned memory is copied from and to",
    "reads host memory late": "memory: host memory may be used again at once",
    "gives a block where there is none": "memory: after out of memory all goes on",
    "keeps what is released": "memory: memory comes back",
    "a new event has not ended": "streams: an event never recorded has ended",
    "event_sync returns at once": "streams: an event ends with the work before it",
    "stream_sync returns at once": "streams: stream_sync waits for all work",
    "no stream waits": ("streams: a stream waits for another", "streams: a wait means the event as it was"),
    "devices know only their own events": "streams: devices wait for each other",
    "threads are mixed up": "streams: threads use streams of their own",
    "loads once": "programs: a program compiles and loads more than once",
    "needs a device to compile": "programs: a program compiles without a device or is unsupported",
    "takes any bytes": "programs: foreign bytes are invalid",
    "compile fails without a word": "programs: what does not compile says why",
    "any kernel is there": "programs: a kernel that is not there is refused",
    "a group less": "kernels: every item of every group runs once",
    "one dim of groups": "kernels: groups have three dims",
    "other parameters": "kernels: parameters of every type arrive",
    "offsets elsewhere": "kernels: buffers begin at their offsets",
    "no barrier": "kernels: items share memory with barriers",
    "every branch runs": ("kernels: branches run for their items only",
                          "kernels: items outside of an if touch no memory"),
    "loops end early": ("kernels: loops nest and their bounds may differ by item",
                        "kernels: a loop reads its bounds once"),
    "variables do not change": "kernels: a variable stands for what it holds",
    "vectors without vector bytes": "device: the info keeps its bounds",
    "shuffles without a warp": "device: the info keeps its bounds",
    "lanes are the first": "later: vectors are their elements",
    "vectors are one element": "later: vectors round as elements do",
    "joins late": "later: a vector keeps what variables held",
    "marked buffers are others": "later: read-only buffers are read",
    "shuffles nothing": "later: items of a warp exchange values",
    "large arrays are small": "later: shared arrays may be large",
    "rows of matrices take turns": "later: warps multiply matrices",
    "chooses once": "later: buffers are chosen",
    "nobody comes last": "later: the last group sees what all stored",
    "packs the other way round": "later: pairs are packed",
    "matrices without warps": "device: the info keeps its bounds",
    "shared vectors are where they were written": "later: shared memory holds vectors",
    "minimum is maximum": "operations: each computes",
    "less is less or equal": "operations: each comparison holds",
    "select is the other": "operations: select takes bits as they are",
    "fma is a product": "operations: fma rounds once",
    "products and sums are contracted": "operations: nothing is contracted",
    "conversions keep nothing": "operations: every conversion saturates or wraps",
    "reinterpreting converts": "operations: reinterpreting keeps bits",
    "literals are others": "operations: literals are the numbers they say",
    "elements are their neighbours": ("elements: integers", "elements: bools", "elements: floats", "elements: Float16",
                                      "elements: BFloat16"),
    "peers copy nothing": "extras: copies between devices",
    "a compile key that changes": "services: a compile key stays",
    "handles are null": "extras: native handles are there where offered",
    "fills a byte more": "services: a fill fills its bytes and no others",
    "blocks in order are of no use": "services: memory in the order of a stream",
    "stays pinned": "services: host memory that is there is pinned",
    "any peer": "services: peers are other devices",
    "no stream of low priority": "services: streams have priorities",
    "time runs backwards": "services: events keep the time",
    "another activation": "calls: a matmul is right or unsupported",
    "numbers of the first run": "calls: numbers are those of the run",
    "attributes are passed over": "calls: what it does not know is refused",
    "as much workspace as it likes": "calls: the workspace keeps its limit",
    "choices are of no use": "calls: a tuned call is right and its choice is taken",
    "graphs run backwards": "graphs: a graph runs when it is launched, and in order",
    "updates are passed over": "graphs: an update is for launches after it",
    "graphs fill with zeros": "graphs: a graph fills and copies out",
    "a block twice": "memory: blocks are apart",
    "programs of one kernel": "kernels: several kernels stand in one program",
    "few groups": "kernels: there may be many groups",
    "little shared memory": "kernels: shared arrays may fill what there is",
    "launches are lost": ("kernels: many launches run in their order",
                          "kernels: threads launch one kernel on their streams"),
    "quick functions are far off": "operations: approximations keep their bounds",
    "damaged bytes are whole": "programs: damaged bytes are invalid",
    "graphs refuse calls": "calls: calls stand in graphs",
    "no graphs": "graphs: a graph may be destroyed before it is finished",
}
# The same around the plug-in of CUDA on pretended devices: the reference plug-in neither convolves nor adopts
# streams, and has no recurrent layers.
SEEN_ON_CUDA = {
    "kernels are never flipped": "convolutions: a convolution is right or unsupported",
    "tuning needs more room than there is": "convolutions: a tuned convolution is right",
    "graphs refuse calls": "convolutions: convolutions stand in graphs",
    "adopts another stream": "services: a stream of the vendor is adopted and lives on",
    "any sizes fit": "convolutions: a convolution that does not fit is refused",
    "every query sees all keys": ("attention: attention and its gradient are right or unsupported",
                                  "attention: attention alone is right or unsupported"),
    "keys of any features fit": "attention: attention that does not fit is refused",
    "cells are others": "recurrent: a recurrent layer is right or unsupported",
    "slopes are off": "recurrent: the gradient of a recurrent layer is right",
    "reserves are spent": "recurrent: the gradient of a recurrent layer leaves the reserve alone",
    "weights of any number fit": "recurrent: a recurrent layer that does not fit is refused",
}
# A wait that a plug-in leaves out shows only where the work that was to be waited for is late: on a busy machine a run
# may miss it.
RUNS = 5


@unittest.skipUnless(COMPILER and CONFORMANCE.is_file() and REFERENCE.is_file(), "no compiler, or no program")
class WrongPlugins(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.plugin = pathlib.Path(cls.folder.name) / "librosin_wrong.so"
        sources = sorted(pathlib.Path(__file__).with_name("wrong").glob("*.cpp"))
        subprocess.run([COMPILER, "-std=c++20", "-shared", "-fPIC", "-O1", "-fvisibility=hidden", "-I",
                        ROOT / "include", *sources, "-o", cls.plugin, "-ldl"], check=True)

    def failed(self, wrong, part, of):
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("ROSIN_", "CUDA_", "FAKE_"))}
        environment = {"WRONG_OF": str(of), "WRONG": wrong, "ROSIN_REFERENCE": "devices=2,vendor=2,memory=256M",
                       "ROSIN_CUDA_LIBRARIES": str(FAKE), "FAKE_CUDA": "devices=1,cudnn=92800"}
        done = subprocess.run([CONFORMANCE, self.plugin, "--only", part], env=kept | environment, capture_output=True,
                              text=True, check=False, timeout=300)
        return done, re.findall(r"^(\w+: [^:\n]+): FAILED", done.stdout, re.MULTILINE)

    def each_is_seen(self, all_seen, of):
        for wrong, seen in all_seen.items():
            checks = (seen,) if isinstance(seen, str) else seen
            with self.subTest(wrong=wrong):
                failed = set()
                for _ in range(RUNS):
                    done, more = self.failed(wrong, checks[0].split(":")[0], of)
                    failed.update(more)
                    if failed.issuperset(checks):
                        break
                self.assertLessEqual(set(checks), failed, done.stdout + done.stderr)
                self.assertEqual(done.returncode, 1)

    def test_each_wrong_plugin_fails_the_check_of_its_rule(self):
        self.each_is_seen(SEEN, REFERENCE)

    @unittest.skipUnless(CUDA.is_file() and (FAKE / "libcuda.so.1").exists(), "the build has no pretended CUDA")
    def test_each_wrong_plugin_on_pretended_gpus_fails_the_check_of_its_rule(self):
        self.each_is_seen(SEEN_ON_CUDA, CUDA)


if __name__ == "__main__":
    unittest.main()
