"""What the plug-in of Metal says of messages and numbers, against metal-cpp, Apple's own C++ headers of Metal.

METAL_CPP names the folder that they lie in; skipped where it does not. Messages that its version does not know yet,
and those of MPSGraph, which it leaves out, are not compared.
"""

import os
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[1]
MESSAGES = (ROOT / "backends" / "metal" / "messages.hpp").read_text(encoding="utf-8")
FOLDER = pathlib.Path(os.environ.get("METAL_CPP") or "/nowhere")
NUMBERS = {"storage_shared": "ResourceStorageModeShared", "storage_private": "ResourceStorageModePrivate",
           "usage_read": "ResourceUsageRead", "usage_write": "ResourceUsageWrite", "family_apple_1": "GPUFamilyApple1",
           "family_metal_3": "GPUFamilyMetal3",
           "status_completed": "CommandBufferStatusCompleted", "status_error": "CommandBufferStatusError",
           "language_3_0": "LanguageVersion3_0"}
PLAIN = {"Id": "object", "Id*": "object*", "Size": "size", "Range": "range", "Selector": "selector", "SEL": "selector",
         "MTL::Size": "size", "NS::Range": "range", "UInteger": "uint64_t", "Integer": "int64_t",
         "CFTimeInterval": "double", "uint64_t": "uint64_t", "int64_t": "int64_t",
         "uint8_t": "uint8_t", "double": "double", "bool": "bool", "void": "void", "const char*": "text",
         "void*": "address", "const void*": "address"}


def parts(arguments):
    return [part.strip() for part in arguments.split(",") if part.strip()]


def our_messages():
    """Selector and signature, of each."""
    found = {}
    for answer, arguments, names in re.findall(r"const Message<(.+?)\((.*?)\)>\s*(.+?);", MESSAGES, re.DOTALL):
        signature = (PLAIN[answer], *(PLAIN[part] for part in parts(arguments)))
        for selector in re.findall(r'\("([^"]+)"\)', names):
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


if __name__ == "__main__":
    unittest.main()
