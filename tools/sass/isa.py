"""What the machine code of rosin's kernels for AMD's GPUs looks like, without a GPU: the pretended HIP of
tests/fake_hip keeps the text of the kernels of each class, clang-19 compiles it with the options that hipRTC would get,
and a table says what stands in the assembly. Called by ./run isa:
  isa.py --build build/release [--write FILE] [CLASS...]
Exit status: 0 all there, 3 a tool is missing (said on the last line). Read first: sass.py, the same for NVIDIA's."""
import concurrent.futures
import pathlib
import re
import shutil
import subprocess
import sys

import machine_code
import sass

WAVES = {"gfx90a": 64, "gfx942": 64, "gfx1100": 32, "gfx1201": 32}  # items of one
MATRIX = ("v_mfma", "v_smfmac", "v_wmma", "v_dot")
COMPILER = "clang-19"
REASONS = {  # why a bound is not met, where sass.py says nothing of it
    "no matrix units": "those of RDNA multiply no Float32",
}

# --- Assembly.

WIDTHS = {"dwordx4": 128, "b128": 128, "dwordx3": 96, "b96": 96, "dwordx2": 64, "b64": 64, "dword": 32, "b32": 32,
          "short": 16, "ushort": 16, "sshort": 16, "b16": 16, "u16": 16, "i16": 16, "byte": 8, "ubyte": 8, "sbyte": 8,
          "b8": 8, "u8": 8, "i8": 8}
ACCESS = re.compile(r"(?:global|flat)_(load|store)_(?:d16_)?(?:hi_)?([a-z]+\d*)")
KINDS = {kind: name for name, kind in machine_code.MOVES.items()}


class Kernel(machine_code.Kernel):
    """With what the compiler says of it in facts: {"vgpr_count": 32}."""

    def __init__(self, name, facts):
        super().__init__(name, facts["vgpr_count"])
        self.spills, self.scalar_spills = facts["vgpr_spill_count"], facts["sgpr_spill_count"]
        self.scratch, self.shared = facts["private_segment_fixed_size"], facts["group_segment_fixed_size"]

    @property
    def matrix(self):
        return sum(i.name.startswith(MATRIX) for i in self.code)


def instruction(address, name, operands):
    """In the words of machine_code: what moves data, jumps and ends has its name there, all else its own."""
    access = ACCESS.match(name)
    if access:
        bits = WIDTHS[access.group(2)]
        name = f"{KINDS[access.group(1)]}.{'U' if bits < 32 else ''}{bits}"
    jump = re.match(r"s_(c?)branch", name)
    predicate = "@P0" if jump and jump.group(1) else ""
    name = "BRA" if jump else "EXIT" if name == "s_endpgm" else name
    return machine_code.Instruction(address, predicate, name, operands)


def facts_of(text):
    """{kernel: {"vgpr_count": 32}} of the metadata behind the assembly."""
    metadata = text[text.index(".amdgpu_metadata"):]
    facts = {}
    for part in metadata.split("\n  - "):
        name = re.search(r"^    \.name: +(\w+)$", part, re.MULTILINE)
        if name:
            facts[name.group(1)] = {key: int(n) for key, n in re.findall(r"^    \.(\w+): +(\d+)$", part, re.MULTILINE)}
    return facts


def parse(text):
    """The kernels in assembly that clang writes, by name."""
    facts = facts_of(text)
    kernels, kernel = {}, None
    for line in text.splitlines():
        label = re.match(r"([\w.]+):", line)
        code = re.match(r"\t([a-z]\w+)\s*([^;]*)", line)
        if label and label.group(1) in facts:
            kernel = kernels[label.group(1)] = Kernel(label.group(1), facts[label.group(1)])
        elif label and label.group(1).startswith(".Lfunc_end"):
            kernel = None
        elif kernel and label:
            kernel.labels[label.group(1)] = len(kernel.code)
        elif kernel and code:
            kernel.code.append(instruction(len(kernel.code), *code.groups()))
    return kernels


# --- The tools.

def texts(build, name, target):
    """(text, options of hipRTC) of the programs of a class, as the pretended hipRTC keeps them."""
    for content in sass.binaries(build, name, "AMDGPU:0", ("fake_hip/libamdhip64.so.6", "fake_hip/libhiprtc.so.6"), {
            "FAKE_HIP": f"devices=1,idle=1,memory={1 << 37},name={target},warp={WAVES[target]}"}):
        text = content[content.index(b"// --gpu-architecture="):].decode()
        yield text, text.splitlines()[0].split()[1:]


def kernels(build, name, target):
    """Of a class, in the order of their names."""
    found = {}
    for text, options in texts(build, name, target):
        options = [option.replace("--gpu-architecture=", "--offload-arch=") for option in options]
        done = subprocess.run([COMPILER, "-x", "hip", "--offload-device-only", "-nogpuinc", "-nogpulib", *options, "-S",
                               "-", "-o", "-"], input=text, capture_output=True, text=True, check=False, timeout=300)
        if done.returncode != 0:
            raise RuntimeError(f"{name}: {done.stderr.strip()}")
        found |= parse(done.stdout)
    return [found[each] for each in sorted(found)]


def measure(build, names=(), targets=tuple(WAVES)):
    """{class: {architecture: rows}}"""
    if not shutil.which(COMPILER):
        raise sass.Missing(f"{COMPILER} is not installed")
    names, build = list(names) or list(sass.CLASSES), pathlib.Path(build).resolve()
    jobs = [(name, target) for name in names for target in targets]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        compiled = list(pool.map(lambda job: kernels(build, *job), jobs))
    found = {name: {} for name in names}
    for (name, target), list_of in zip(jobs, compiled):
        found[name][target] = [sass.row_of(kernel, sass.CLASSES[name]) for kernel in list_of]
    return found


# --- What is found.

def misses(rows, asked):
    """The bounds that a class does not meet on an architecture, each in a word or two; asked: as for NVIDIA's."""
    found = []
    if any(row.kernel.spills or row.kernel.scratch for row in rows):
        found.append("spills")
    if any(row.kernel.scalar_spills for row in rows):
        found.append("spills of SGPRs")
    if asked.wide and any(row.share < sass.SHARE for row in rows if row.name not in sass.FEW):
        found.append("accesses below 128 bits")
    if asked.tensor and not any(row.kernel.matrix for row in rows):
        found.append("no matrix units")
    return found


def text_of(accesses):
    return ", ".join(f"{machine_code.MOVES[kind]} {bits} x{count}"
                     for (kind, bits), count in sorted(accesses.items())) or "-"


def reasons(missed, asked):
    return "; ".join(dict.fromkeys(REASONS.get(each, asked.reason) for each in missed))


HEAD = """# Machine code of kernels for AMD's GPUs

Written by `./run isa`: the kernels of the classes of [those for sm_90](sass.md), compiled by clang-19 with the options
that hipRTC gets, read without a GPU. Full-size accesses are those of global memory in the loops that hold the widest
ones, or on the way through a kernel without such loops; scalar loads, which read for a whole wave, are not among them.
All else is of the whole kernel: registers of an item, spills, bytes of scratch an item and of LDS a
group, and in the last column the instructions `v_mfma`, `v_wmma` and `v_dot`. The bounds: no spills and no scratch;
accesses of 128 bits and matrix units where tensor cores and such accesses are asked for on sm_90.

| class | kernel | architecture | VGPRs | spills | of SGPRs | scratch | LDS | full-size accesses | matrix |
|---|---|---|---|---|---|---|---|---|---|
"""


def table(classes):
    """The page; classes: {name: {architecture: rows}}."""
    text = HEAD
    for name, targets in classes.items():
        for target, rows in targets.items():
            for kernel, row in ((row.kernel, row) for row in rows):
                text += (f"| {name} | {row.name} | {target} | {kernel.registers} | {kernel.spills} | "
                         f"{kernel.scalar_spills} | {kernel.scratch} | {kernel.shared} | {text_of(row.accesses)} | "
                         f"{kernel.matrix} |\n")
    text += f"\n| class | {' | '.join(WAVES)} | why |\n|---|{'---|' * len(WAVES)}---|\n"
    for name, targets in classes.items():
        asked = sass.CLASSES[name]
        missed = [misses(rows, asked) for rows in targets.values()]
        cells = ["not met: " + "; ".join(each) if each else "met" for each in missed]
        text += f"| {name} | {' | '.join(cells)} | {reasons(sum(missed, []), asked)} |\n"
    return text


def verdicts(text):
    """{class: {architecture: bounds that are not met}} of a page."""
    found = {}
    for line in text.splitlines():
        name, *cells = [cell.strip() for cell in line.strip("|").split("|")]
        if name in sass.CLASSES and len(cells) == len(WAVES) + 1:
            found[name] = {target: [] if cell == "met" else cell.removeprefix("not met: ").split("; ")
                           for target, cell in zip(WAVES, cells)}
    return found


if __name__ == "__main__":
    sys.exit(sass.command("isa", lambda build, classes: table(measure(build, classes))))
