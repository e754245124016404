"""Each file of tests/must_not_compile/ must be refused by every compiler we name, with the text it asks for.

The file says so, `// error: TEXT`, once or more. Compiled with -DCURED it must compile: a test that fails
for another reason, a typing error say, does not count. Only public headers are seen.
"""

import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CASES = sorted((ROOT / "tests" / "must_not_compile").glob("*.cpp"))
COMPILERS = [name for name in ("g++", "clang++-16") if shutil.which(name)]


def compiled(compiler, path, *flags):
    command = [compiler, "-std=c++20", "-fsyntax-only", f"-I{ROOT / 'include'}", *flags, str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def broken(compiler, path):
    """What is wrong with one case, or None."""
    wanted = re.findall(r"^// error: (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    if not wanted:
        return "names no error; write // error: TEXT"
    result = compiled(compiler, path)
    if result.returncode == 0:
        return "compiles"
    missing = [text for text in wanted if text not in result.stderr]
    if missing:
        return f"is refused without saying {missing[0]!r}:\n{result.stderr[:2000]}"
    cured = compiled(compiler, path, "-DCURED")
    return f"does not compile with -DCURED:\n{cured.stderr[:2000]}" if cured.returncode else None


@unittest.skipUnless(CASES, "no cases")
class MustNotCompile(unittest.TestCase):
    def test_every_case_is_refused_with_its_text(self):
        pairs = [(compiler, path) for path in CASES for compiler in COMPILERS]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for (compiler, path), wrong in zip(pairs, pool.map(broken, *zip(*pairs))):
                with self.subTest(f"{path.name} with {compiler}"):
                    self.assertIsNone(wrong, f"{path.name} with {compiler}: {wrong}")


if __name__ == "__main__":
    unittest.main()
