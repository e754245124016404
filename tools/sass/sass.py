"""What the machine code of rosin's kernels for an H100 looks like, without a GPU: the library compiles one kernel of
each class on the pretended CUDA of tests/fake_cuda by the real NVRTC, nvdisasm prints it, and a table says what was
found beside what was asked. Called by ./run sass:
  sass.py --build build/release [--write FILE] [CLASS...]
Exit status: 0 all there, 3 a tool is missing (said on the last line). Read next: machine_code.py (how it is counted),
tools/gpu_check/kernel_classes.cpp (the classes)."""
import argparse
import collections
import concurrent.futures
import dataclasses
import glob
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import machine_code

ROOT = pathlib.Path(__file__).resolve().parents[2]
TARGET = 90
SHARE = 0.75  # of the bytes where the time goes that move 128 bits at a time; numbers and rows' values stand beside
FEW = ("numbers", "sum_parts", "column_parts", "sort_count", "sort_starts")  # they touch or write few elements


@dataclasses.dataclass
class Asked:
    """What a class is asked for; instructions an element are those of all its kernels together."""
    output: int = 0            # bytes of one element among what is written, or, where nothing is, among what is read
    inputs: int = 1            # arrays of full size that are read where nothing is written
    instructions: float = 0    # an element, at most; 0: as many as it takes
    wide: bool = True          # full-size accesses are 128 bits wide
    rows: bool = False         # rows are combined by shuffles, with at most 2 barriers a reduction
    tile: bool = False         # goes through shared memory
    tensor: float = 0          # share of the roof of tensor cores that its loop allows, at least
    registers: int = 64        # of an item, at most
    reason: str = ""           # why a bound is not met


CLASSES = {
    "add_f32": Asked(4, instructions=8),
    "add_bf16": Asked(2, instructions=8),
    "bias_f32": Asked(4, instructions=8),
    "bias_bf16": Asked(2, instructions=8),
    "gelu_bf16": Asked(2, instructions=40),
    "layernorm_bf16": Asked(2, rows=True),
    "layernorm_gradient_bf16": Asked(2, 2, 40, rows=True, registers=80),
    "rmsnorm_gradient_bf16": Asked(2, 2, 40, rows=True, registers=80),
    "softmax_bf16": Asked(2, rows=True),
    "softmax_gradient_bf16": Asked(2, rows=True),
    "labels_bf16": Asked(2, rows=True, reason="some kernels work on labels alone, one a column"),
    "columns_bf16": Asked(2),
    "sum_f32": Asked(4, rows=True),
    "channels_f32": Asked(4),
    "transpose_f32": Asked(4, wide=False, tile=True),
    "transpose_bf16": Asked(2, wide=False, tile=True),
    "maxpool_gradient_bf16": Asked(2, wide=False),
    "maxpool_apart_gradient_f32": Asked(4, instructions=40, wide=False),
    "gather_bf16": Asked(2),
    "scatter_add_bf16": Asked(2, reason="the kernel that links the indices reads 32 bits each"),
    "scatter_places_bf16": Asked(2),
    "sort_f32": Asked(4, instructions=400, wide=False, tile=True),
    "matmul_bf16": Asked(2, wide=False, tensor=0.5, registers=255),
    "matmul_turned_bf16": Asked(2, wide=False, tensor=0.5, registers=255),
    "matmul_tf32": Asked(4, wide=False, tensor=0.5, registers=255),
    "attention_bf16": Asked(2, wide=False, tensor=0.3, registers=255),
    "attention_gradient_bf16": Asked(2, wide=False, tensor=0.3, registers=255),
    "attention_f32": Asked(4, wide=False, registers=255),
    "conv_bf16": Asked(2, wide=False),
    "conv_f32": Asked(4, wide=False, tile=True, registers=128),
    "conv_data_f32": Asked(4, wide=False, tile=True, registers=128),
    "conv_weights_f32": Asked(4, 2, wide=False, tile=True, registers=128),
    "adam_f32": Asked(4),
    "adamw_bf16": Asked(4),
}


class Missing(Exception):
    """A tool that is not here."""


# --- The tools.

def find_nvdisasm():
    for place in (os.environ.get("ROSIN_NVDISASM"), shutil.which("nvdisasm"), "/usr/local/cuda/bin/nvdisasm",
                  *glob.glob(str(ROOT / "build/venv/lib/python3*/site-packages/nvidia/*/bin/nvdisasm"))):
        if place and os.access(place, os.X_OK):
            return place
    raise Missing("nvdisasm is not here (Python's package nvidia-cuda-nvdisasm, in build/venv, has it)")


def find_nvrtc():
    places = [f"{os.environ.get('CUDA_HOME', '/usr/local/cuda')}/lib64", "/usr/lib/x86_64-linux-gnu",
              *glob.glob(str(ROOT / "build/venv/lib/python3*/site-packages/nvidia/*/lib"))]
    for place in places:
        for name in ("libnvrtc.so.13", "libnvrtc.so.12"):
            if os.path.isfile(f"{place}/{name}"):
                return f"{place}/{name}"
    raise Missing("NVRTC is not here (the CUDA toolkit has it, and Python's package nvidia-cuda-nvrtc)")


def binaries(build, name, device, libraries, environment):
    """What the library compiles of a class on a pretended device: the files of its cache. libraries: those of the
    build that it finds, the driver and the compiler, so that no library of products stands beside them."""
    program = build / "tools" / "gpu_check"
    if not program.is_file() or not all((build / library).exists() for library in libraries):
        raise Missing("the build has no gpu_check or no pretended GPU; ./run test makes both")
    with tempfile.TemporaryDirectory() as cache:
        fake = pathlib.Path(cache) / "libraries"
        fake.mkdir()
        for library in libraries:
            (fake / pathlib.Path(library).name).symlink_to((build / library).resolve())
        environment = os.environ | {
            "ROSIN_CUDA_LIBRARIES": str(fake), "ROSIN_ROCM_LIBRARIES": str(fake), "ROSIN_CACHE_DIR": cache,
            "ROSIN_LOG": "none", "ROSIN_PLUGIN_PATH": ""} | environment
        done = subprocess.run([program, "class", device, name], env=environment, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, check=False, timeout=300)
        if done.returncode != 0:
            raise RuntimeError(f"{name}: {done.stderr.strip()}")
        return [file.read_bytes() for file in pathlib.Path(cache).rglob("*.bin")]


class Machine:
    """Compiles classes of kernels and prints their machine code."""

    def __init__(self, build):
        self.build, self.nvdisasm, self.nvrtc = build, find_nvdisasm(), find_nvrtc()

    def kernels(self, name):
        """Of a class, in the order of their names."""
        found = {}
        for content in binaries(self.build, name, "CUDA:0", ("fake_cuda/libcuda.so.1", "fake_cuda/libnvrtc.so.13"), {
                "FAKE_CUDA": f"devices=1,idle=1,memory={1 << 37},arch={TARGET},nvrtc={self.nvrtc}"}):
            found |= machine_code.parse(self.disassemble(content))
        return [found[each] for each in sorted(found)]

    def disassemble(self, content):
        with tempfile.NamedTemporaryFile(suffix=".cubin") as image:
            image.write(content[content.index(b"\x7fELF"):])
            image.flush()
            return subprocess.run([self.nvdisasm, image.name], capture_output=True, text=True, check=True).stdout


# --- What is found.

@dataclasses.dataclass
class Row:
    """A kernel in the table."""
    kernel: machine_code.Kernel
    instructions: float  # an element; 0: it has no full-size access
    divisions: int       # of integers, where its time goes
    accesses: collections.Counter

    @property
    def name(self):
        return self.kernel.name.rpartition("_")[0]

    @property
    def share(self):
        moved = collections.Counter()
        for (_, bits), count in self.accesses.items():
            moved[bits] += bits * count
        return moved[128] / max(1, sum(moved.values()))


def row_of(kernel, asked):
    hot = kernel.hot()
    instructions = 0.0
    for part in hot:
        moved = part.moved("STG") or part.moved("LDG", max(i.bytes for i in part.instructions)) / asked.inputs
        instructions += len(part.instructions) / (moved / asked.output) if moved else 0
    accesses = sum((part.accesses() for part in hot), collections.Counter())
    return Row(kernel, instructions, sum(i.divides for part in hot for i in part.instructions), accesses)


def total(rows):
    """Instructions an element of the kernels that touch all of them."""
    return sum(row.instructions for row in rows if row.name not in FEW)


def misses(rows, asked):
    """The bounds that a class does not meet, each in a word or two."""
    found = []
    if asked.instructions and total(rows) > asked.instructions:
        found.append(f"more than {asked.instructions:g} instructions an element")
    large = [row for row in rows if row.name not in FEW]
    if asked.wide and any(row.share < SHARE for row in large):
        found.append("accesses below 128 bits")
    if any(row.kernel.count(*machine_code.SPILLS) for row in rows):
        found.append("spills")
    if any(row.divisions for row in rows):
        found.append("divisions")
    if any(row.kernel.registers > asked.registers for row in rows):
        found.append(f"more than {asked.registers} registers")
    if asked.tensor and max((loop.of_roof for loop in tensor_loops(rows)), default=0) < asked.tensor:
        found.append(f"below {asked.tensor:g} of the roof of tensor cores")
    if asked.rows and not any(row.kernel.count("SHFL") for row in rows):
        found.append("no shuffles")
    if asked.tile and not any(row.kernel.count("LDS") for row in rows):
        found.append("no tile")
    return found


def tensor_loops(rows):
    return [loop for loop in (row.kernel.tensor_loop() for row in rows) if loop]


def text_of(accesses):
    return ", ".join(f"{kind} {bits} x{count}" for (kind, bits), count in sorted(accesses.items())) or "-"


HEAD = """# Machine code of kernels for sm_90

Written by `./run sass`: one kernel of each class that training needs, compiled by the real NVRTC, read without a GPU.
Instructions an element, accesses and divisions are those of the loops that hold the widest accesses, or of the way
through a kernel without such loops; an element is one that is written, or read where nothing is written at full
size. All else is of the whole kernel. `tools/sass` says how it is counted and what is asked; a class meets its bounds
or says why not.

| class | kernel | registers | spills | full-size accesses | barriers | shuffles | tensor | divisions | an element |
|---|---|---|---|---|---|---|---|---|---|
"""


def table(classes):
    """The page; classes: {name: rows}."""
    text = HEAD
    for name, rows in classes.items():
        for row in rows:
            kernel = row.kernel
            text += (f"| {name} | {row.name} | {kernel.registers} | {kernel.count(*machine_code.SPILLS)} | "
                     f"{text_of(row.accesses)} | {kernel.count('BAR')} | {kernel.count('SHFL')} | "
                     f"{kernel.count(*machine_code.TENSOR)} | {row.divisions} | {row.instructions:.1f} |\n")
    text += "\n| class | instructions an element | at most | bounds | why |\n|---|---|---|---|---|\n"
    for name, rows in classes.items():
        asked, missed = CLASSES[name], misses(rows, CLASSES[name])
        most = f"{asked.instructions:g}" if asked.instructions else ""
        text += (f"| {name} | {total(rows):.1f} | {most} | "
                 f"{'not met: ' + '; '.join(missed) if missed else 'met'} | {asked.reason if missed else ''} |\n")
    return text + tensor_table(classes)


TENSOR_HEAD = """
Loops of products by tensor cores. Share of the roof: what is left of it when instructions are issued and shared memory
moves what it must, both beside the products; waiting for memory is not in it. Such products (mma.sync) reach about five
eighths of what wgmma does on sm_90.

| class | products | issue slots | share of them | cycles of products | cycles of shared memory | share of the roof |
|---|---|---|---|---|---|---|
"""


def tensor_table(classes):
    text = ""
    for name, rows in classes.items():
        for loop in tensor_loops(rows):
            text += (f"| {name} | {loop.products} | {loop.slots} | {100 * loop.of_issue:.0f} % | {4 * loop.products} | "
                     f"{loop.shared} | {100 * loop.of_roof:.0f} % |\n")
    return TENSOR_HEAD + text if text else ""


def verdicts(text):
    """{class: bounds that are not met} of a page."""
    found = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 5 and cells[0] in CLASSES:
            found[cells[0]] = [] if cells[3] == "met" else cells[3].removeprefix("not met: ").split("; ")
    return found


def measure(build, names=()):
    machine = Machine(pathlib.Path(build).resolve())
    names = list(names) or list(CLASSES)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        kernels = list(pool.map(machine.kernels, names))
    return {name: [row_of(kernel, CLASSES[name]) for kernel in found] for name, found in zip(names, kernels)}


def command(tool, page_of):
    """The command line of a tool that writes a page: `page_of(build, classes)`. Its exit status."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default=ROOT / "build" / "release")
    parser.add_argument("--write", type=pathlib.Path)
    parser.add_argument("classes", nargs="*")
    options = parser.parse_args()
    try:
        page = page_of(options.build, options.classes)
    except Missing as missing:
        print(f"{tool}: SKIPPED, {missing}")
        return 3
    if options.write:
        options.write.write_text(page, encoding="utf-8")
    print(page, end="")
    return 0


if __name__ == "__main__":
    sys.exit(command("sass", lambda build, classes: table(measure(build, classes))))
