"""Each row of the include table refuses one include and takes its own; what holds for headers, programs, plug-ins."""

import pathlib
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import check_layers  # noqa: E402

# room -> an include that its row forbids
FORBIDDEN = {
    "platform": '"base/file.hpp"',
    "base": '"graph/node.hpp"',
    "scalar": '"graph/node.hpp"',
    "graph": '"ops/elementwise.hpp"',
    "ops": '"model/walk.hpp"',
    "model": '"run/evaluate.hpp"',
    "grad": '"run/evaluate.hpp"',
    "plan": '"ops/elementwise.hpp"',
    "kernels": '"cpu/call.hpp"',
    "engines": '"graph/op.hpp"',
    "cpu": '"run/evaluate.hpp"',
    "run": '"devices/plugin.hpp"',
    "devices": '"ops/elementwise.hpp"',
    "nn": '"loss/losses.hpp"',
    "loss": '"optim/adam.hpp"',
    "optim": '"nn/dense.hpp"',
    "data": '"train/loop.hpp"',
    "train": '"run/evaluate.hpp"',
    "dist": '"train/loop.hpp"',
    "io": '"data/loader.hpp"',
    "onnx": '"data/loader.hpp"',
}
HEADERS = {"array.hpp": "graph", "dense.hpp": "nn", "rosin.hpp": "user", "backend.h": "backend.h", "comm.h": "comm.h"}


class Layers(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        patch = mock.patch.object(check_layers, "HEADER_ROOM", HEADERS)
        patch.start()
        self.addCleanup(patch.stop)

    def errors(self, path, *includes):
        """What the check says of one file with these includes."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(f"#include {include}\n" for include in includes), encoding="utf-8")
        return check_layers.check(self.root)

    def refuses(self, path, include, reason):
        errors = self.errors(path, include)
        self.assertEqual(len(errors), 1, errors)
        self.assertTrue(errors[0].startswith(f"{path}:1: "), errors[0])
        self.assertIn(reason, errors[0])
        (self.root / path).unlink()

    def test_the_table_has_a_forbidden_include_for_every_row(self):
        self.assertEqual(set(FORBIDDEN), set(check_layers.ALLOWED))

    def test_every_row_refuses_its_forbidden_include(self):
        for room, include in FORBIDDEN.items():
            with self.subTest(room):
                self.refuses(f"src/{room}/x.cpp", include, f"{room} may not include")

    def test_every_row_takes_what_it_lists_and_itself(self):
        for room, allowed in check_layers.ALLOWED.items():
            names = [f'"{other}/x.hpp"' for other in [room, *allowed] if not other.endswith((".h", ".hpp"))]
            names += [f'"{header}"' for header in allowed if header.endswith(".hpp")]
            names += [f"<rosin/{other}>" for other in allowed if other.endswith(".h")]
            with self.subTest(room):
                self.assertEqual(self.errors(f"src/{room}/x.cpp", *names, "<vector>"), [])

    def test_headers_of_systems_are_for_the_platform_alone(self):
        self.refuses("src/base/x.cpp", "<unistd.h>", "of one system")
        self.refuses("src/io/x.cpp", "<sys/stat.h>", "of one system")
        for path in ("src/platform/x.cpp", "src/base/x_test.cpp"):
            self.assertEqual(self.errors(path, "<unistd.h>", "<sys/stat.h>"), [])

    def test_a_row_that_lists_one_header_takes_no_other_of_that_room(self):
        self.refuses("src/engines/x.cpp", '"plan/fuse.hpp"', "engines may not include")

    def test_the_rows_are_a_hierarchy_without_circles(self):
        def below(room, seen):
            self.assertNotIn(room, seen)
            for other in check_layers.ALLOWED.get(room, []):
                below(other, [*seen, room])

        for room in check_layers.ALLOWED:
            below(room, [])

    def test_a_public_header_counts_as_its_room(self):
        self.refuses("src/base/x.cpp", "<rosin/array.hpp>", "base may not include")
        self.refuses("include/rosin/array.hpp", "<rosin/dense.hpp>", "graph may not include")

    def test_an_unknown_public_header_is_refused_as_file_and_as_include(self):
        self.assertIn("has no room", self.errors("include/rosin/new.hpp")[0])
        (self.root / "include/rosin/new.hpp").unlink()
        self.refuses("src/nn/x.cpp", "<rosin/new.hpp>", "unknown public header")

    def test_a_public_header_sees_neither_src_nor_vendors(self):
        self.refuses("include/rosin/dense.hpp", '"nn/dense.hpp"', "a public header includes")
        self.refuses("include/rosin/dense.hpp", "<dnnl.hpp>", "a public header includes")

    def test_no_room_includes_the_umbrella_header(self):
        self.refuses("src/train/x.cpp", "<rosin/rosin.hpp>", "train may not include")

    def test_programs_see_public_headers_only(self):
        for folder in ("examples", "bench", "tools/rosin"):
            with self.subTest(folder):
                self.refuses(f"{folder}/x.cpp", '"graph/node.hpp"', "programs include public headers only")
                self.assertEqual(self.errors(f"{folder}/x.cpp", "<rosin/rosin.hpp>", '"near.hpp"'), [])

    def test_plug_ins_see_their_c_header_and_the_shared_driver_folder(self):
        self.assertEqual(self.errors("backends/cuda/x.cpp", "<rosin/backend.h>", '"driver/x.hpp"', "<cuda.h>"), [])
        self.refuses("backends/cuda/x.cpp", "<rosin/array.hpp>", "nothing else of rosin")
        self.refuses("backends/cuda/x.cpp", '"amdgpu/x.hpp"', "may not include")
        self.refuses("comm/mpi/x.cpp", "<rosin/backend.h>", "nothing else of rosin")

    def test_vendor_headers_stay_in_their_room(self):
        self.assertEqual(self.errors("src/engines/x.cpp", "<dnnl.hpp>"), [])
        self.refuses("src/ops/x.cpp", "<dnnl.hpp>", "is for engines only")

    def test_tests_may_look_into_every_room(self):
        self.assertEqual(self.errors("src/base/x_test.cpp", '"run/evaluate.hpp"', "<gtest/gtest.h>"), [])
        self.assertEqual(self.errors("tests/x_test.cpp", '"plan/layout.hpp"', "<rosin/rosin.hpp>", '"near.hpp"'), [])

    def test_quotes_and_brackets_are_not_mixed_up(self):
        self.refuses("src/graph/x.cpp", '"node.hpp"', "names no room")
        self.refuses("src/nn/x.cpp", '"rosin/dense.hpp"', "angle brackets")

    def test_a_file_lies_two_levels_deep_in_a_known_room(self):
        self.assertIn("two levels deep", self.errors("src/graph/deep/x.cpp")[0])
        (self.root / "src/graph/deep/x.cpp").unlink()
        self.assertIn("is no room", self.errors("src/attic/x.cpp")[0])

    def test_an_include_in_a_comment_does_not_count(self):
        commented = '<vector>\n/*\n#include "ops/x.hpp"\n*/\n// #include "ops/x.hpp"'
        self.assertEqual(self.errors("src/base/x.cpp", commented), [])


if __name__ == "__main__":
    unittest.main()
