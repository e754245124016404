"""What ranks learn of one that is lost inside NCCL, which waits for it without an end: on the pretended NCCL, when
ranks were compared already. Needs a build, as comm_test.py, which tests what is seen before NCCL is called.
"""

import re
import time
import unittest

import comm_test

RANKS = comm_test.BUILD / "ranks_tests"
PATIENCE = 3  # seconds


@unittest.skipUnless((comm_test.FAKE_CUDA / "libnccl.so.2").is_file(), "the build has no pretended NCCL")
class LostInsideNccl(comm_test.Ranks):
    contract = (comm_test.CONFORMANCE, comm_test.NCCL, "--device", comm_test.CUDA, "--fault", "none",
                "--patience", PATIENCE)

    def environment(self, **more):
        return super().environment(**{"ROSIN_CUDA_LIBRARIES": str(comm_test.FAKE_CUDA), "ROSIN_TEST_NCCL": "1",
                                      "ROSIN_TEST_DEVICE": "CUDA", "ROSIN_TEST_TIMEOUT": str(PATIENCE),
                                      "ROSIN_CACHE_DIR": str(comm_test.BUILD / "kernel_cache"), **more})

    def said(self, words, fault):
        """What three ranks said of which one was lost, and that they said it soon."""
        begin = time.monotonic()
        done = self.run_words(*comm_test.rosin_run(3, "--grace", "5"), *words, FAKE_NCCL=fault)
        self.assertLess(time.monotonic() - begin, 60)
        self.assertNotEqual(done.returncode, 0, done.stdout)
        return done.stdout + done.stderr

    def said_by_test(self, name, fault):
        return self.said((RANKS, f"--gtest_filter=DeviceRanks.{name}", "--gtest_color=no"), fault)

    def test_slow_while_the_communicator_is_made(self):
        self.assertRegex(self.said(self.contract, "ends=2"),
                         r"LOST: (rank \d says: )?rank 2 (ended with status 3|is gone)")
        self.assertRegex(self.said(self.contract, "stops=2"),
                         r"TIMEOUT: .*ncclCommInitRank took longer than 3 s: .*rank 2 .*did not come within 2 s")

    def test_slow_in_a_collective(self):
        name = "CollectivesLeaveArraysWhereTheyAre"
        self.assertRegex(self.said_by_test(name, "ends=2,at=3"), r"allreduce: .*rank 2 (ended with status 3|is gone)")
        said = self.said_by_test(name, "stops=2,at=3")
        self.assertRegex(said, r"allreduce: .*rank 2 .*did not come within 2 s")
        self.assertIn("a collective on a device did not end in time", said)

    def test_slow_in_a_step_of_training(self):
        """Ranks agree on how a step ends before they wait for its messages."""
        name = "RanksWithAShareEachTrainAsOneWithAll"
        self.assertRegex(self.said_by_test(name, "ends=2,at=7"), r"update: .*rank 2 (ended with status 3|is gone)")
        self.assertRegex(self.said_by_test(name, "stops=2,at=7"), r"update: .*rank 2 .*did not come within 3 s")

    def test_slow_at_an_address_where_no_launcher_ends_the_others(self):
        tcp = comm_test.Tcp()
        tcp.environment = self.environment
        said = tcp.run_ranks(3, *self.contract, FAKE_NCCL="ends=2")
        self.assertEqual(len(re.findall(r"LOST: (?:rank 0 says: )?rank 2 is gone", said)), 2, said)
        said = tcp.run_ranks(3, *self.contract, FAKE_NCCL="stops=2")
        self.assertEqual(len(re.findall(r"TIMEOUT: .*rank 2 did not come within 2 s", said)), 2, said)


if __name__ == "__main__":
    unittest.main()
