"""rosin.hpp includes every public header, and fwd.hpp declares only what exists."""

import pathlib
import re
import unittest

HEADERS = pathlib.Path(__file__).resolve().parents[1] / "include" / "rosin"
NOT_INCLUDED = {"rosin.hpp", "fwd.hpp", "export.hpp"}


class UmbrellaTest(unittest.TestCase):
    def test_the_umbrella_includes_every_header(self):
        text = (HEADERS / "rosin.hpp").read_text(encoding="utf-8")
        included = set(re.findall(r"#include <rosin/(\w+\.hpp)>", text))
        self.assertEqual(included, {path.name for path in HEADERS.glob("*.hpp")} - NOT_INCLUDED)

    def test_what_is_declared_ahead_is_defined_somewhere(self):
        definitions = "\n".join(path.read_text(encoding="utf-8") for path in HEADERS.glob("*.hpp"))
        declarations = (HEADERS / "fwd.hpp").read_text(encoding="utf-8")
        for kind, name in re.findall(r"^(class|struct) (\w+);", declarations, re.M):
            self.assertRegex(definitions, rf"\b{kind} (ROSIN_API )?{name}( :[^:]| {{)", name)


if __name__ == "__main__":
    unittest.main()
