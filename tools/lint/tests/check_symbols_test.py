"""Which exported symbols are rosin's: names as g++ mangles them, and a small library built for the purpose."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import check_symbols  # noqa: E402

SOURCE = """
#include <vector>
#define API __attribute__((visibility("default")))
namespace rosin {
struct API Array { virtual ~Array(); int n = 0; int item() const&; };
Array::~Array() = default;
int Array::item() const& { return n; }
API void grow(std::vector<Array>& all) { all.push_back(Array()); }
}
extern "C" API int rosin_open(void) { return 0; }
"""

PLUGIN = """
extern "C" {
%s int rosin_backend_open() { return %s; }
__attribute__((visibility("default"))) int rosin_toy_counts() { return 0; }
}
"""
OPEN = '__attribute__((visibility("default")))'


class Symbols(unittest.TestCase):
    def test_names_of_rosin_pass_and_all_others_do_not(self):
        ours = ["_ZN5rosin6matmulERKNS_5ArrayES2_", "_ZNK5rosin5Array4itemEv", "_ZNKR5rosin5Array4itemEv",
                "rosin_open", "_ZTIN5rosin5ErrorE", "_ZTVN5rosin5ErrorE", "_ZTSN5rosin5ErrorE",
                "_ZThn8_N5rosin5ErrorD0Ev"]
        others = ["_ZNSt6vectorIN5rosin5ArrayESaIS1_EE9push_backERKS1_", "_ZTISt9exception", "main",
                  "_ZN4dnnl4impl1fEv", "_ZN6rosinx1fEv", "open"]
        listing = "".join(f"{name} T 0 0\n" for name in ours + others)
        self.assertEqual(check_symbols.foreign(listing), others)

    def build(self, *flags):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        source, library = pathlib.Path(folder.name) / "x.cpp", pathlib.Path(folder.name) / "librosin.so"
        source.write_text(SOURCE, encoding="utf-8")
        command = ["g++", "-std=c++20", "-shared", "-fPIC", "-fvisibility=hidden", str(source), "-o", str(library)]
        subprocess.run([*command, *flags], check=True)
        return str(library)

    def test_a_library_that_exports_templates_of_std_is_refused(self):
        errors = check_symbols.check(self.build())
        self.assertTrue(any("std::vector<rosin::Array" in error for error in errors), errors)

    def test_a_library_larger_than_it_may_be_is_refused(self):
        library = self.build()
        self.assertEqual(check_symbols.check_size(library), [])
        self.assertRegex(check_symbols.check_size(library, 1000)[0], "takes [0-9]+ bytes of at most 1000 when stripped")

    def test_variables_of_threads_have_little_room(self):
        for size, said in ((1000, ""), (1100, "variables of threads take 1100 bytes of at most 1024")):
            source = f'extern "C" char rosin_at(int i) {{ static thread_local char all[{size}]; return all[i]; }}'
            folder = tempfile.TemporaryDirectory()
            self.addCleanup(folder.cleanup)
            library = pathlib.Path(folder.name) / "librosin.so"
            subprocess.run(["g++", "-shared", "-fPIC", "-x", "c++", "-", "-o", str(library)], input=source, text=True,
                           check=True)
            self.assertIn(said, "\n".join(check_symbols.check(str(library))))
            self.assertEqual(bool(said), bool(check_symbols.check_threads(str(library))))

    def test_the_version_script_of_the_build_keeps_them_in(self):
        script = pathlib.Path(__file__).resolve().parents[3] / "cmake" / "exports.map"
        library = self.build(f"-Wl,--version-script={script}")
        self.assertEqual(check_symbols.check(library), [])
        command = ["nm", "-DC", "--defined-only", library]
        exported = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        for name in ("rosin::grow(", "rosin::Array::item() const &", "typeinfo for rosin::Array", "rosin_open"):
            self.assertIn(name, exported)

    def plugin(self, name, text):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        source, library = pathlib.Path(folder.name) / "x.cpp", pathlib.Path(folder.name) / f"librosin_{name}.so"
        source.write_text(text, encoding="utf-8")
        subprocess.run(["g++", "-shared", "-fPIC", "-fvisibility=hidden", str(source), "-o", str(library)], check=True)
        return check_symbols.check(str(library))

    def test_a_plugin_exports_its_entrance_and_functions_of_its_name(self):
        self.assertEqual(self.plugin("toy", PLUGIN % (OPEN, 0)), [])
        self.assertIn("which is not its own", self.plugin("other", PLUGIN % (OPEN, 0))[0])
        self.assertIn("exports no rosin_backend_open", self.plugin("toy", PLUGIN % ("", 0))[0])

    def test_a_transport_has_another_entrance(self):
        transport = (PLUGIN % (OPEN, 0)).replace("rosin_backend_open", "rosin_comm_open")
        self.assertEqual(self.plugin("comm_toy", transport.replace("rosin_toy_", "rosin_comm_toy_")), [])
        self.assertIn("exports no rosin_comm_open", self.plugin("comm_toy", PLUGIN % (OPEN, 0))[-1])

    def test_a_plugin_that_needs_librosin_is_refused(self):
        text = "namespace rosin { int seed(); }\n" + PLUGIN % (OPEN, "rosin::seed()")
        self.assertIn("of librosin", self.plugin("toy", text)[0])


if __name__ == "__main__":
    unittest.main()
