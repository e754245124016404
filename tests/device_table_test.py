"""The table of devices in docs/devices.md is what the plug-ins answer, on pretended devices where there are no others.

`python3 tests/device_table_test.py --write` puts it there. The build is the folder named by ROSIN_TEST_BUILD, else
build/release.
"""

import os
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = pathlib.Path(os.environ.get("ROSIN_TEST_BUILD", ROOT / "build" / "release")).resolve()
PAGE = ROOT / "docs" / "devices.md"
TABLE = re.compile(r"(?<=\n\n)\| what \|.*?\n(?=\n)", re.DOTALL)
# Under which name, whose plug-in, what the environment says, and which of its devices it is.
COLUMNS = (("CUDA", {"ROSIN_CUDA_LIBRARIES": f"{BUILD}/fake_cuda", "FAKE_CUDA": "arch=90,cudnn=92800"}),
           ("AMDGPU", {"ROSIN_ROCM_LIBRARIES": f"{BUILD}/fake_hip", "FAKE_HIP": "name=gfx90a,warp=64"}),
           ("Metal", {"ROSIN_METAL_LIBRARIES": f"{BUILD}/fake_metal", "FAKE_METAL": "system=15"}),
           ("OpenCL", {}))


def answers(name, environment):
    """What the plug-in says, by feature; nothing where it has no device here."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("FAKE_", "ROSIN_"))}
    done = subprocess.run([BUILD / "conformance", BUILD / "rosin" / f"librosin_{name.lower()}.so", "--features"],
                          env=kept | environment, capture_output=True, text=True, check=False, timeout=120)
    return dict(line.split("\t") for line in done.stdout.splitlines()) if done.returncode == 0 else {}


def table_of(columns):
    """The table with a column for each back end that answered."""
    features = [feature for feature in next(iter(columns.values())) if feature != "device"]
    lines = ["| what | " + " | ".join(f"{name} ({said['device']})" for name, said in columns.items()) + " |",
             "|---" * (1 + len(columns)) + "|"]
    lines += [f"| {feature} | " + " | ".join(said[feature] for said in columns.values()) + " |" for feature in features]
    return "\n".join(lines) + "\n"


def table_now():
    return table_of({name: said for name, environment in COLUMNS if (said := answers(name, environment))})


@unittest.skipUnless((BUILD / "conformance").is_file() and (BUILD / "fake_metal" / "Metal").is_file(),
                     "the build has no pretended devices")
class DeviceTable(unittest.TestCase):
    def test_the_page_shows_what_plug_ins_answer(self):
        if not pathlib.Path("/etc/OpenCL/vendors/pocl.icd").is_file():
            self.skipTest("PoCL is not installed")
        shown = TABLE.search(PAGE.read_text(encoding="utf-8"))
        self.assertEqual(shown.group(0), table_now(), "python3 tests/device_table_test.py --write")


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(TABLE.sub(lambda _: table_now(), PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        unittest.main()
