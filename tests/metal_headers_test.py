"""What the plug-in of Metal says of messages and numbers, against metal-cpp, Apple's own C++ headers of Metal, and
those of MPSGraph, which these leave out, against objc2-generated, which Apple's other headers were turned into.

METAL_CPP and OBJC2_GENERATED name the folders that they lie in; skipped where they do not. Messages that a version does
not know yet are not compared.
"""

import os
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[1]
MESSAGES = (ROOT / "backends" / "metal" / "messages.hpp").read_text(encoding="utf-8")
GRAPH_MESSAGES = (ROOT / "backends" / "metal" / "graph_messages.hpp").read_text(encoding="utf-8")
ARRAYS = (ROOT / "backends" / "metal" / "graph_arrays.hpp").read_text(encoding="utf-8")
FOLDER = pathlib.Path(os.environ.get("METAL_CPP") or "/nowhere")
RUST = pathlib.Path(os.environ.get("OBJC2_GENERATED") or "/nowhere")
NUMBERS = {"storage_shared": "ResourceStorageModeShared", "storage_private": "ResourceStorageModePrivate",
           "usage_read": "ResourceUsageRead", "usage_write": "ResourceUsageWrite", "family_apple_1": "GPUFamilyApple1",
           "family_metal_3": "GPUFamilyMetal3",
           "status_completed": "CommandBufferStatusCompleted", "status_error": "CommandBufferStatusError",
           "language_3_0": "LanguageVersion3_0"}
PLAIN = {"Id": "object", "Id*": "object*", "Size": "size", "Range": "range", "Selector": "selector", "SEL": "selector",
         "MTL::Size": "size", "NS::Range": "range", "UInteger": "uint64_t", "Integer": "int64_t",
         "CFTimeInterval": "double", "uint64_t": "uint64_t", "int64_t": "int64_t",
         "uint8_t": "uint8_t", "uint32_t": "uint32_t", "double": "double", "float": "float",
         "bool": "bool", "void": "void", "const char*": "text",
         "void*": "address", "const void*": "address", "const Id*": "object*"}
GRAPH_NUMBERS = {"padding_explicit": ("MPSGraphPaddingStyle", "Explicit"),
                 "layout_nchw": ("MPSGraphTensorNamedDataLayout", "NCHW"),
                 "layout_oihw": ("MPSGraphTensorNamedDataLayout", "OIHW"),
                 "optimization_core": ("MPSGraphOptimization", "Level0"), "data_float16": ("MPSDataType", "Float16"),
                 "data_float32": ("MPSDataType", "Float32"), "data_bfloat16": ("MPSDataType", "BFloat16")}
PLAIN_RUST = {"NSUInteger": "uint64_t", "NSInteger": "int64_t", "u64": "uint64_t", "u32": "uint32_t",
              "c_float": "float", "c_double": "double", "c_longlong": "int64_t", "bool": "bool", "": "void"}


def parts(arguments):
    return [part.strip() for part in arguments.split(",") if part.strip()]


def our_messages(text=MESSAGES):
    """Selector and signature, of each."""
    found = {}
    text = re.sub(r'"\s*\n\s*"', "", text)  # a name that goes on in the next line
    for answer, arguments, names in re.findall(r"const Message<(.+?)\((.*?)\)>\s*(.+?);", text, re.DOTALL):
        signature = (PLAIN[answer], *(PLAIN[part] for part in parts(arguments)))
        for selector in re.findall(r'\(\s*"([^"]+)"\)', names):
            found[selector] = signature
    return found


class Headers:
    """Selectors, methods and numbers of metal-cpp."""

    def __init__(self, folder):
        files = sorted([*folder.glob("Foundation/*.hpp"), *folder.glob("Metal/*.hpp")])
        self.text = "".join(file.read_text(encoding="utf-8") for file in files)
        self.enums = dict((name, kind.split("::")[-1]) for kind, name in re.findall(
            r"_(?:MTL|NS)_(?:ENUM|OPTIONS)\(\s*([\w:]+),\s*(\w+)\s*\)", self.text))
        self.names = dict(re.findall(r'_PRIVATE_DEF_SEL\(\s*(\w+),\s*"([^"]+)"\s*\)', self.text))
        self.methods = {}
        for arguments, answer, selector in re.findall(
                r"\n_(?:MTL|NS)_INLINE [^{]*?\(([^{}]*?)\)(?: const)?\s*\{\s*(?:return )?"
                r"Object::sendMessage(?:Safe)?<([^;]*?)>\([^;]*?_PRIVATE_SEL\((\w+)\)", self.text):
            signature = (self.kind(answer), *(self.kind(re.sub(r"\w+$", "", part)) for part in parts(arguments)))
            self.methods.setdefault(self.names.get(selector), []).append(signature)

    def kind(self, written):
        """An enum is its number, a class any object."""
        written = re.sub(r"\s+(?=\*)|\s+$|^\s+", "", written)
        bare = written.split("::")[-1].replace("class ", "")
        if written in PLAIN or bare in PLAIN:
            return PLAIN.get(written) or PLAIN[bare]
        if bare in self.enums:
            return PLAIN.get(self.enums[bare], self.enums[bare])
        return "object*" if written.endswith("**") else "object"

    def number(self, name):
        return int(re.search(rf"\b{name} = (\d+)", self.text).group(1))


class Bindings:
    """The same of files of Rust."""

    def __init__(self, folder):
        files = sorted(file for part in ("MetalPerformanceShaders", "MetalPerformanceShadersGraph", "Foundation")
                       for file in (folder / part).rglob("*.rs"))
        self.text = "".join(file.read_text(encoding="utf-8") for file in files)
        self.enums = dict(re.findall(r"pub struct (\w+)\(pub (\w+)\);", self.text))
        self.methods = {}
        for selector, arguments, answer in re.findall(
                r"#\[unsafe\(method\(([\w:]+)\)\)\][^(]*(?:\([^()]*\)\)?\]\s*)*?pub (?:unsafe )?fn \w+(?:<[^(]*>)?"
                r"\(([^()]*(?:\([^()]*\)[^()]*)*)\)(?: -> ([^;]+))?;", self.text):
            named = [part.split(":", 1) for part in re.split(r",\s*(?=[\w#]+: |$)", arguments.strip()) if ":" in part]
            kinds = [kind.strip() for name, kind in named if name.strip() not in ("this", "mtm")]
            self.methods.setdefault(selector, []).append((self.kind(answer), *map(self.kind, kinds)))

    def kind(self, written):
        """An enum is its number, a class any object."""
        written = written.strip()
        if written in PLAIN_RUST:
            return PLAIN_RUST[written]
        return PLAIN_RUST.get(self.enums.get(written), "object*" if written.startswith("NonNull<") else "object")

    def number(self, enum, name):
        value = re.search(rf"pub const {name}: Self = Self\(([^()]*)\);",
                          self.text[self.text.index(f"impl {enum} {{"):]).group(1)
        total = 0
        for part in value.split("|"):
            inner = re.fullmatch(rf"\s*{enum}::(\w+)\.0\s*", part)
            total |= self.number(enum, inner.group(1)) if inner else int(part.strip(), 0)
        return total


@unittest.skipUnless((RUST / "MetalPerformanceShadersGraph").is_dir(), "OBJC2_GENERATED names no folder with bindings")
class GraphBindings(unittest.TestCase):
    def setUp(self):
        self.bindings = Bindings(RUST)

    def test_messages_are_those_of_mpsgraph(self):
        unknown = set()
        for selector, signature in our_messages(GRAPH_MESSAGES).items():
            with self.subTest(selector):
                known = self.bindings.methods.get(selector)
                if known:
                    self.assertIn(signature, known)
                else:
                    unknown.add(selector)
        self.assertLessEqual(unknown, {"alloc", "instancesRespondToSelector:", "isEqual:"})  # of the runtime

    def test_numbers_are_those_of_mpsgraph(self):
        for ours, (enum, name) in GRAPH_NUMBERS.items():
            with self.subTest(ours):
                value = re.search(rf"\b{ours} = ([\dx |]+)", GRAPH_MESSAGES + ARRAYS).group(1)
                number = 0
                for part in value.split("|"):
                    number |= int(part.strip(), 0)
                self.assertEqual(number, self.bindings.number(enum, name))


@unittest.skipUnless((FOLDER / "Metal" / "MTLDevice.hpp").is_file(), "METAL_CPP names no folder with metal-cpp")
class MetalHeaders(unittest.TestCase):
    def setUp(self):
        self.headers = Headers(FOLDER)

    def test_messages_are_those_of_metal(self):
        compared = 0
        for selector, signature in our_messages().items():
            known = self.headers.methods.get(selector)
            if known:
                compared += 1
                with self.subTest(selector):
                    self.assertIn(signature, known)
        self.assertGreater(compared, 40)

    def test_numbers_are_those_of_metal(self):
        for ours, theirs in NUMBERS.items():
            with self.subTest(ours):
                value = re.search(rf"\b{ours} = ([\d <]+)", MESSAGES).group(1)
                number, _, places = (part.strip() for part in value.partition("<<"))
                self.assertEqual(int(number) << int(places or 0), self.headers.number(theirs))


class OurMessages(unittest.TestCase):
    def test_the_reader_finds_them(self):
        found = our_messages()
        self.assertGreater(len(found), 45)
        self.assertEqual(found["newBufferWithLength:options:"], ("object", "uint64_t", "uint64_t"))
        self.assertEqual(found["fillBuffer:range:value:"], ("void", "object", "range", "uint8_t"))
        graphs = our_messages(GRAPH_MESSAGES)
        self.assertGreater(len(graphs), 30)
        attention = "scaledDotProductAttentionWithQueryTensor:keyTensor:valueTensor:maskTensor:scale:name:"
        self.assertEqual(graphs[attention], ("object", *["object"] * 4, "float", "object"))


if __name__ == "__main__":
    unittest.main()
