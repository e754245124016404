"""Files of PyTorch, read by `rosin convert`: some that Python's own pickle and zipfile write, with classes that only
pretend to be PyTorch's, and, where some Python here has torch, some of torch.save itself. tools/run_tests.py names the
build in ROSIN_TEST_BUILD.
"""

import collections
import io
import os
import pathlib
import pickle
import shutil
import struct
import subprocess
import sys
import tempfile
import types
import unittest
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))
from read_safetensors import read_plainly  # noqa: E402

ROSIN = pathlib.Path(os.environ.get("ROSIN_TEST_BUILD", ROOT / "build" / "release")).resolve() / "tools" / "rosin"
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("ROSIN_")}
PYTHONS = [os.environ.get("PYTHON"), sys.executable, str(ROOT / "build" / "venv" / "bin" / "python"),
           "/usr/bin/python3"]
BY_TORCH = """
import collections, sys, torch
from safetensors.torch import load_file
folder, step = sys.argv[1:]
torch.manual_seed(1)
x = torch.arange(24).reshape(2, 3, 4)
kinds = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.uint16, torch.int32, torch.uint32, torch.int64,
         torch.uint64, torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64]
model = torch.nn.Sequential(torch.nn.Conv2d(2, 3, 2), torch.nn.BatchNorm2d(3), torch.nn.Linear(4, 5))
content = {
    "types": {str(kind): (x % 2).to(kind) for kind in kinds},
    "views": [x.permute(2, 0, 1), x[1, ::2, 1:], x[0, 0, :1].expand(3, 3), x[:, :0], x[1, 2, 3], x],
    "model": model.state_dict(), "parameter": torch.nn.Parameter(torch.ones(3)), "size": x.shape,
    "numbers": (1, -(2**40), 0.1, True, None), 7: collections.OrderedDict(a=torch.randn(3))}
def flat(value, name):
    if isinstance(value, dict):
        for key, item in value.items():
            yield from flat(item, name + [str(key)])
    elif isinstance(value, (list, tuple)):
        for key, item in enumerate(value):
            yield from flat(item, name + [str(key)])
    elif value is not None:
        kind = {bool: torch.bool, int: torch.int64, float: torch.float64}.get(type(value))
        yield ".".join(name), torch.tensor(value, dtype=kind) if kind else value.detach()
if step == "save":
    for protocol in (2, 4, 5):
        torch.save(content, f"{folder}/{protocol}.pt", pickle_protocol=protocol)
else:
    wanted = dict(flat(content, []))
    for protocol in (2, 4, 5):
        found = load_file(f"{folder}/{protocol}.safetensors")
        assert found.keys() == wanted.keys(), found.keys() ^ wanted.keys()
        for name, value in wanted.items():
            same = found[name].dtype == value.dtype and torch.equal(found[name], value)
            assert same or name.startswith("7.") or name.startswith("model."), name
"""


def pretended(module, name, base=object):
    """A class or function that pickles as this one of PyTorch."""
    made = type(name, (base,), {"__module__": module, "__qualname__": name})
    sys.modules.setdefault(module, types.ModuleType(module))
    setattr(sys.modules[module], name, made)
    return made


class Storage:
    def __init__(self, kind, key, values, code):
        self.kind, self.key, self.count = kind, key, len(values)
        self.bytes = {order: struct.pack(f"{order}{len(values)}{code}", *values) for order in "<>"}


class Tensor:
    def __init__(self, storage, offset, sizes, strides):
        self.parts = (storage, offset, sizes, strides, False, collections.OrderedDict())


def save(path, content, storages, order="<", protocol=2, compression=zipfile.ZIP_STORED):
    """What torch.save would write, with classes that stand under PyTorch's names only while it is pickled."""
    before = dict(sys.modules)
    try:
        kinds = {storage.kind: pretended("torch", f"{storage.kind}Storage") for storage in storages}
        sys.modules.setdefault("torch._utils", types.ModuleType("torch._utils"))
        exec("def _rebuild_tensor_v2(*parts): pass", vars(sys.modules["torch._utils"]))

        class Pickler(pickle.Pickler):
            def persistent_id(self, value):
                if isinstance(value, Storage):
                    return ("storage", kinds[value.kind], value.key, "cpu", value.count)
                return None

            def reducer_override(self, value):
                if isinstance(value, Tensor):
                    return sys.modules["torch._utils"]._rebuild_tensor_v2, value.parts
                return NotImplemented

        text = io.BytesIO()
        Pickler(text, protocol=protocol).dump(content)
    finally:
        for name in set(sys.modules) - set(before):
            del sys.modules[name]
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x/data.pkl", text.getvalue())
        archive.writestr("x/byteorder", {"<": "little", ">": "big"}[order])
        for storage in storages:
            archive.writestr(f"x/data/{storage.key}", storage.bytes[order], compress_type=compression)


@unittest.skipUnless(ROSIN.is_file(), f"no {ROSIN}")
class TorchFiles(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)

    def convert(self, path):
        out = path.with_suffix(".safetensors")
        result = subprocess.run([ROSIN, "convert", path, out], env=ENVIRONMENT, capture_output=True, text=True,
                                timeout=60, check=False)
        return result, out

    @unittest.skipIf("torch" in sys.modules, "torch is loaded here")
    def test_what_pythons_pickle_writes_is_read(self):
        numbers = Storage("Float", "0", [0.5 * i for i in range(12)], "f")
        places = Storage("Long", "1", [-1, 2, -3], "q")
        content = collections.OrderedDict(
            weight=Tensor(numbers, 0, (3, 4), (4, 1)), turned=Tensor(numbers, 0, (4, 3), (1, 4)),
            more=[Tensor(places, 1, (2,), (1,)), {"lr": 0.25, 3: True}, "text"])
        for case in ({}, {"order": ">"}, {"protocol": 4}, {"protocol": 5}, {"compression": zipfile.ZIP_DEFLATED}):
            with self.subTest(case):
                path = self.folder / "x.pt"
                save(path, content, [numbers, places], **case)
                result, out = self.convert(path)
                self.assertEqual((result.returncode, result.stdout), (0, "5 arrays, 121 bytes\n"), result.stderr)
                rows = {name: (kind, shape, values) for name, kind, shape, values in read_plainly(out)}
                self.assertEqual(rows["weight"], ("F32", [3, 4], tuple(0.5 * i for i in range(12))))
                turned = tuple(0.5 * (4 * column + row) for row in range(4) for column in range(3))
                self.assertEqual(rows["turned"], ("F32", [4, 3], turned))
                self.assertEqual(rows["more.0"], ("I64", [2], (2, -3)))
                self.assertEqual(rows["more.1.lr"], ("F64", [], (0.25,)))
                self.assertEqual(rows["more.1.3"], ("BOOL", [], (True,)))

    def test_nothing_in_a_pickle_is_run(self):
        class Command:
            def __reduce__(self):
                return os.system, (f"touch {marker}",)

        marker = self.folder / "run"
        for protocol in (2, 3, 4, 5):
            path = self.folder / "x.pt"
            save(path, {"x": Command()}, [], protocol=protocol)
            result, _ = self.convert(path)
            self.assertEqual((result.returncode, result.stdout), (1, ""))
            self.assertRegex(result.stderr, r"its data.pkl, at byte \d+: it has the class (posix|nt).system;")
            self.assertFalse(marker.exists())
        for value, what in ((b"bytes", "opcode SHORT_BINBYTES"), ({1, 2}, "opcode EMPTY_SET"),
                            (1j, "class builtins.complex"), (2**70, "at most 64 bits"), (ROOT, "class pathlib")):
            save(self.folder / "x.pt", [value], [], protocol=4)
            self.assertRegex(self.convert(self.folder / "x.pt")[0].stderr, what)

    def test_what_pytorch_writes_is_read(self):
        find = "import importlib.util as u, sys; sys.exit(not (u.find_spec('torch') and u.find_spec('safetensors')))"
        python = next((each for each in PYTHONS if each and shutil.which(each) and not subprocess.run(
            [each, "-c", find], capture_output=True, check=False).returncode), None)
        if not python:
            self.skipTest("no Python here has torch and safetensors")
        for step in ("save", "compare"):
            result = subprocess.run([python, "-c", BY_TORCH, self.folder, step], capture_output=True, text=True,
                                    timeout=300, check=False)
            self.assertEqual(result.returncode, 0, result.stderr)
            for protocol in (2, 4, 5) if step == "save" else ():
                converted, _ = self.convert(self.folder / f"{protocol}.pt")
                self.assertEqual(converted.returncode, 0, converted.stderr)


if __name__ == "__main__":
    unittest.main()
