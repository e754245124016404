"""Reads what nvdisasm prints of the machine code of NVIDIA GPUs (SASS): the kernels, their loops, and what they do
for each element. Read next: sass.py (which kernels are looked at, and what is asked of them), isa.py (which tells
assembly for AMD's in the same words).

Where a kernel spends its time is a guess that needs no run: in the loops that hold its widest accesses to global
memory, or, where no loop holds one, on the shortest way through the kernel that has most of them. Compilers repeat a
short loop before or behind an unrolled one; such a rest is no walk of its own."""
import collections
import dataclasses
import re

MOVES = {"LDG": "load", "STG": "store"}
TENSOR = ("HMMA", "HGMMA", "IMMA", "IGMMA", "DMMA", "QGMMA")
SPILLS = ("LDL", "STL")


def width(name):
    """Bytes that an item moves by a load or store of this name."""
    parts = name.split(".")
    for part, size in (("128", 16), ("96", 12), ("64", 8), ("U16", 2), ("S16", 2), ("U8", 1), ("S8", 1)):
        if part in parts:
            return size
    return 4


@dataclasses.dataclass
class Instruction:
    address: int
    predicate: str  # "@P0", "@!UP1" or nothing
    name: str       # "LDG.E.128.CONSTANT"
    operands: str

    @property
    def kind(self):
        return self.name.split(".")[0]

    @property
    def bytes(self):
        """That it moves between global memory and a register."""
        if self.kind not in MOVES:
            return 0
        return width(self.name)

    @property
    def divides(self):
        """A division of integers begins with a conversion that rounds up; one of 64 bits is a call."""
        called = self.kind == "CALL" and re.search(r"_(div|rem)_[su]64", self.operands)
        return bool(called) or (self.kind == "I2F" and "RP" in self.name.split("."))


@dataclasses.dataclass
class TensorLoop:
    """A loop of products by tensor cores, in cycles of one of the four parts of a multiprocessor of sm_90: each part
    issues an instruction a cycle, has done one of these products after four, and a quarter of the 128 bytes that shared
    memory moves a cycle is its own."""
    products: int
    slots: int
    shared: int  # cycles

    @property
    def of_issue(self):
        return self.products / self.slots

    @property
    def of_roof(self):
        return 4 * self.products / max(4 * self.products, self.slots, self.shared)


@dataclasses.dataclass
class Hot:
    """A part of a kernel where its time goes."""
    instructions: list
    is_loop: bool

    def moved(self, kind, least=1):
        """Bytes of the accesses of a kind that have so many or more each."""
        return sum(i.bytes for i in self.instructions if i.kind == kind and i.bytes >= least)

    def accesses(self):
        """How many of each width in bits: {("LDG", 128): 2}."""
        return collections.Counter((i.kind, 8 * i.bytes) for i in self.instructions if i.bytes)


class Kernel:
    def __init__(self, name, registers=0):
        self.name, self.registers = name, registers
        self.code, self.labels = [], {}  # label: index of the instruction behind it

    def count(self, *kinds):
        return sum(i.kind in kinds for i in self.code)

    @property
    def widest(self):
        return max((i.bytes for i in self.code), default=0)

    def target(self, index):
        """Of a jump; None where it is none, or goes elsewhere."""
        found = re.search(r"(\.L\w+)", self.code[index].operands)
        return self.labels.get(found.group(1)) if self.code[index].kind == "BRA" and found else None

    def followers(self, index):
        """Where the code may go on behind an instruction."""
        at = self.code[index]
        always = at.predicate in ("", "@PT", "@UPT")
        if at.kind in ("EXIT", "RET") and always:
            return []
        target = self.target(index)
        if target is not None:
            return [target] if always else [target, index + 1]
        return [index + 1] if index + 1 < len(self.code) else []

    def loops(self):
        """(first, last) of those that hold no other one, in order."""
        found = sorted((self.target(i), i) for i in range(len(self.code))
                       if self.target(i) is not None and self.target(i) < i)
        return [a for a in found if not any(b != a and a[0] <= b[0] and b[1] <= a[1] for b in found)]

    def way(self, first, last, least):
        """Instructions of the way from first to last with most accesses of so many bytes or more, and of those the
        shortest. last None: to any end."""
        worst = (-1, 0)
        best, step = {}, {}
        for i in range(len(self.code) - 1 if last is None else last, first - 1, -1):
            here = (int(self.code[i].bytes >= least), -1)
            onward = [f for f in self.followers(i) if i < f and f in best]
            at_end = i == last or (last is None and self.code[i].kind == "EXIT")
            choices = [(best[f], f) for f in onward] + ([((0, 0), None)] if at_end else [])
            score, step[i] = max(choices, key=lambda c: c[0], default=(worst, None))
            if score != worst:
                best[i] = (score[0] + here[0], score[1] + here[1])
        way, at = [], first if first in best else None
        while at is not None:
            way.append(self.code[at])
            at = step[at]
        return way

    def tensor_loop(self):
        """The one with most products; None: there is none."""
        best = None
        for first, last in self.loops():
            body = self.code[first:last + 1]
            products = sum(i.kind in TENSOR for i in body)
            shared = sum(width(i.name) for i in body if i.kind in ("LDS", "STS", "LDSM"))
            if products and (best is None or products > best.products):
                best = TensorLoop(products, len(body), shared)
        return best

    def hot(self):
        # Beside full-size accesses that are no vectors, those once a row are no narrower.
        least = self.widest if self.widest >= 8 else 1
        walks = []
        for first, last in self.loops():
            way = self.way(first, last, least)
            count = sum(i.bytes >= least for i in way)
            if count:
                walks.append((Hot(way, True), frozenset(i.name for i in way if i.bytes >= least), count))
        if not walks:
            return [Hot(self.way(0, None, least) or self.code, False)]  # (an end may stand before what leads there)
        kept, begin = [], 0
        for end in range(1, len(walks) + 1):
            if end < len(walks) and walks[end][1] == walks[begin][1]:
                continue
            most = max(count for _, _, count in walks[begin:end])
            kept += [hot for hot, _, count in walks[begin:end] if count == most]
            begin = end
        return kept


LINE = re.compile(r"\s*/\*([0-9a-f]{4,})\*/\s+(?:(@!?U?PT?\d*)\s+)?([A-Z][A-Z0-9_.]*)\b(.*?);")
REGISTERS = re.compile(r"EIATTR_REGCOUNT\s.*?index@\((\w+)\)\s+/\*\w+\*/\s+\.word\s+(0x[0-9a-f]+)", re.DOTALL)


def parse(text):
    """The kernels in what nvdisasm prints of a binary, by name."""
    registers = {name: int(count, 16) for name, count in REGISTERS.findall(text)}
    kernels, kernel = {}, None
    for line in text.splitlines():
        section = re.match(r"\.text\.(\w+):", line)
        label = re.match(r"(\.L_x_\w+):", line)
        instruction = LINE.match(line)
        if section:
            kernel = kernels[section.group(1)] = Kernel(section.group(1), registers.get(section.group(1), 0))
        elif re.match(r"\s*\.section\b|//---", line):
            kernel = None
        elif kernel and label:
            kernel.labels[label.group(1)] = len(kernel.code)
        elif kernel and instruction and instruction.group(3) != "NOP":
            address, predicate, name, operands = instruction.groups()
            kernel.code.append(Instruction(int(address, 16), predicate or "", name, operands.strip()))
    return kernels
