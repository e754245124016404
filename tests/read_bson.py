"""Reads a file of BSON.jl without any of rosin's code, as a check of what rosin writes: a line for each value.

It follows the format's description alone: documents of typed elements, tagged documents for Julia's objects. A named
tuple must say its names and the types of its values, as BSON.jl builds the type before it fills it.
usage: python3 tests/read_bson.py FILE
"""

import struct
import sys

WIDTHS = {"Bool": ("?", 1), "UInt8": ("B", 1), "Int8": ("b", 1), "Int16": ("h", 2), "UInt16": ("H", 2),
          "Int32": ("i", 4), "UInt32": ("I", 4), "Int64": ("q", 8), "UInt64": ("Q", 8), "Float16": ("e", 2),
          "Float32": ("f", 4), "Float64": ("d", 8)}


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        if self.at + count > len(self.data):
            raise ValueError("cut off")
        self.at += count
        return self.data[self.at - count:self.at]

    def number(self, code):
        return struct.unpack("<" + code, self.take(struct.calcsize("<" + code)))[0]

    def key(self):
        end = self.data.index(0, self.at)
        text = self.data[self.at:end].decode("utf-8")
        self.at = end + 1
        return text

    def document(self):
        start, length, pairs = self.at, self.number("i"), []
        while kind := self.number("B"):
            pairs.append((self.key(), self.value(kind)))
        if self.at - start != length:
            raise ValueError(f"a document states {length} bytes and has {self.at - start}")
        return pairs

    def value(self, kind):
        if kind == 0x01:
            return self.number("d")
        if kind == 0x02:
            text = self.take(self.number("i"))
            if text[-1] != 0:
                raise ValueError("a text has no zero at its end")
            return text[:-1].decode("utf-8")
        if kind == 0x03:
            return dict(self.document())
        if kind == 0x04:
            pairs = self.document()
            if [key for key, _ in pairs] != [str(i) for i in range(len(pairs))]:
                raise ValueError("an array's keys do not count")
            return [value for _, value in pairs]
        if kind == 0x05:
            count = self.number("i")
            self.number("B")
            return self.take(count)
        if kind == 0x08:
            return self.number("B") == 1
        if kind == 0x0A:
            return None
        if kind == 0x10:
            return self.number("i")
        if kind == 0x12:
            return self.number("q")
        raise ValueError(f"element type {kind:#x}")


def type_name(document):
    if document["tag"] != "datatype":
        raise ValueError("a type is no datatype")
    return ".".join(document["name"])


def type_of(value):
    """Julia's type of what is stored, as text."""
    if isinstance(value, dict) and value.get("tag") == "array":
        return f"Array{{{spelled(value['type'])},{len(value['size'])}}}"
    if isinstance(value, dict) and value.get("tag") == "struct":
        return spelled(value["type"])
    if isinstance(value, dict) and value.get("tag") == "tuple":
        return "Tuple{" + ",".join(type_of(each) for each in value["data"]) + "}"
    kinds = {bool: "Bool", int: "Int64", float: "Float64", str: "String", type(None): "Nothing",
             bytes: "Array{UInt8,1}", list: "Array{Any,1}"}
    return kinds.get(type(value), "?")


def spelled(document):
    name = document["name"][-1]
    params = document.get("params", [])
    if name == "NamedTuple":
        names = [symbol["name"] for symbol in params[0]["data"]]
        return "NamedTuple{(" + ",".join(names) + ")," + spelled(params[1]) + "}"
    if not params and name != "Tuple":
        return name
    return name + "{" + ",".join(str(each) if isinstance(each, int) else spelled(each) for each in params) + "}"


class Shower:
    def __init__(self, root):
        self.shared = root.pop("_backrefs", [])
        self.lines = []

    def followed(self, value):
        if isinstance(value, dict) and value.get("tag") == "backref":
            return self.shared[value["ref"] - 1]
        return value

    def show(self, path, stored):
        value = self.followed(stored)
        mark = "" if value is stored else " shared"
        if isinstance(value, dict) and "tag" not in value:
            for key, each in value.items():
                self.show(f"{path}.{key}" if path else key, each)
        elif isinstance(value, dict) and value["tag"] == "tuple":
            if not value["data"]:
                self.lines.append(f"{path} ()")
            for i, each in enumerate(value["data"]):
                self.show(f"{path}({i + 1})", each)
        elif isinstance(value, dict) and value["tag"] == "array":
            self.lines.append(f"{path} {self.array(value)}{mark}")
        elif isinstance(value, dict) and value["tag"] == "struct":
            self.structure(path, value)
        elif isinstance(value, list):
            for i, each in enumerate(value):
                self.show(f"{path}[{i + 1}]", each)
        elif isinstance(value, bytes):
            self.lines.append(f"{path} UInt8 {len(value)} {sum(value)}")
        else:
            self.lines.append(f"{path} {value!r}")

    def structure(self, path, value):
        name = type_name(value["type"])
        if name == "Core.NamedTuple":
            names = [symbol["name"] for symbol in value["type"]["params"][0]["data"]]
            stated = [spelled(each) for each in value["type"]["params"][1]["params"]]
            found = [type_of(self.followed(each)) for each in value["data"]]
            if stated != found or len(names) != len(found):
                raise ValueError(f"{path}: the type states {stated}, the values have {found}")
            for each, child in zip(names, value["data"]):
                self.show(f"{path}.{each}", child)
        else:
            code, width = WIDTHS[name.split(".")[-1]]
            if len(value["data"]) != width:
                raise ValueError(f"{path}: a number of another size")
            self.lines.append(f"{path} {name} {struct.unpack('<' + code, value['data'])[0]:.6g}")

    def array(self, value):
        name = value["type"]["name"][-1]
        sizes = "x".join(map(str, value["size"]))
        if name not in WIDTHS:
            return f"{spelled(value['type'])} {sizes}"
        code, width = WIDTHS[name]
        count = len(value["data"]) // width
        product = 1
        for size in value["size"]:
            product *= size
        if count * width != len(value["data"]) or count != product:
            raise ValueError("an array has other bytes than its sizes need")
        numbers = struct.unpack(f"<{count}{code}", value["data"])
        return f"{name} {sizes} {' '.join(f'{float(number):.6g}' for number in numbers[:6])}"


def main():
    with open(sys.argv[1], "rb") as file:
        reader = Reader(file.read())
    root = dict(reader.document())
    if reader.at != len(reader.data):
        raise ValueError("bytes follow the document")
    shower = Shower(root)
    shower.show("", root)
    print("\n".join(shower.lines))


if __name__ == "__main__":
    main()
