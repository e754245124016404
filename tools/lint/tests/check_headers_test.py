"""The header checks on small made-up trees: dragged-in headers, cost, macros, headers that do not stand alone."""

import pathlib
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import check_headers  # noqa: E402


class Headers(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name).resolve()
        patch = mock.patch.dict(check_headers.check_layers.HEADER_ROOM, {"array.hpp": "graph", "io.hpp": "io"})
        patch.start()
        self.addCleanup(patch.stop)

    def header(self, name, text):
        path = self.root / "include" / "rosin" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#pragma once\n" + text, encoding="utf-8")

    def test_a_forbidden_header_is_found_with_the_way_it_came(self):
        self.header("inner.hpp", "#include <functional>\n")
        self.header("array.hpp", "#include <rosin/inner.hpp>\n")
        self.assertEqual(check_headers.check_includes(self.root),
                         ["include/rosin/array.hpp: drags in <functional>: array.hpp > inner.hpp > functional"])

    def test_one_dragged_in_by_the_standard_library_is_found_too(self):
        self.header("array.hpp", "#include <execution>\n")
        self.assertIn("drags in <functional>: array.hpp > execution > ", check_headers.check_includes(self.root)[0])

    def test_light_headers_and_rooms_without_the_rule_pass(self):
        self.header("array.hpp", "#include <cstdint>\n#include <span>\n#include <string>\n#include <vector>\n")
        self.header("io.hpp", "#include <functional>\n")
        self.assertEqual(check_headers.check_includes(self.root), [])

    def test_a_header_that_needs_another_before_it_is_refused(self):
        self.header("io.hpp", "inline std::string name() { return {}; }\n")
        self.assertIn("include/rosin/io.hpp: does not compile by itself", check_headers.check_includes(self.root)[0])

    def test_only_prefixed_macros_may_stay_defined(self):
        self.header("array.hpp", "#define ROSIN_API\n#define local 1\n#undef local\n#define CHECK(a) a\n")
        self.header("io.hpp", "#include <rosin/array.hpp>\n")
        self.assertEqual(check_headers.check_macros(self.root),
                         ["include/rosin/array.hpp: defines the macro CHECK, which has no ROSIN_ in front"])

    def test_a_header_over_its_cost_is_refused(self):
        self.header("array.hpp", "#include <span>\n")
        with mock.patch.multiple(check_headers, ROUNDS=1, COST={"array.hpp": 0.01}):
            self.assertIn("at most 0.01", check_headers.check_cost(self.root)[0])
        with mock.patch.multiple(check_headers, ROUNDS=1, COST={"array.hpp": 90.0}):
            self.assertEqual(check_headers.check_cost(self.root), [])


if __name__ == "__main__":
    unittest.main()
