"""Checks who includes whom: the table of rooms below, applied to src/, include/rosin, programs and plug-ins.

A public header counts as the room that implements it (HEADER_ROOM). Tests may look into any room.
usage: python3 tools/lint/check_layers.py [ROOT]
"""

import pathlib
import re
import sys

import sources

# room -> the rooms (or single headers of rooms) that it may include beside itself
ALLOWED = {
    "platform": [],
    "base": ["platform"],
    "scalar": ["base"],
    "graph": ["scalar", "base", "platform"],
    "ops": ["graph", "scalar", "base"],
    "model": ["ops", "graph", "scalar", "base", "platform"],
    "grad": ["model", "ops", "graph", "base"],
    "plan": ["graph", "scalar", "base", "backend.h"],
    "kernels": ["plan", "graph", "scalar", "base", "backend.h"],
    "engines": ["plan/call.hpp", "base"],
    "cpu": ["engines", "plan", "graph", "scalar", "base", "platform"],
    "run": ["plan", "kernels", "graph", "base", "platform", "backend.h"],
    "devices": ["cpu", "run", "graph", "base", "platform", "backend.h"],
    "nn": ["ops", "model", "graph", "base"],
    "loss": ["ops", "model", "graph", "base"],
    "optim": ["ops", "model", "graph", "base"],
    "data": ["devices", "run", "ops", "model", "graph", "scalar", "base", "platform"],
    "train": ["optim", "loss", "data", "grad", "io", "model", "ops", "graph", "base", "platform"],
    "dist": ["optim", "nn", "grad", "data", "run", "devices", "model", "ops", "graph", "scalar", "base", "platform",
             "comm.h"],
    "io": ["nn", "ops", "model", "devices", "graph", "scalar", "base"],
    "onnx": ["io", "nn", "ops", "model", "graph", "base"],
}

# public header -> the room that implements it; "user" marks headers that only users of the library include
HEADER_ROOM = {
    "dtype.hpp": "base",
    "error.hpp": "base",
    "export.hpp": "base",
    "fwd.hpp": "base",
    "half.hpp": "base",
    "log.hpp": "base",
    "shape.hpp": "base",
    "slice.hpp": "base",
    "approx.hpp": "ops",
    "borrow.hpp": "ops",
    "dlpack.hpp": "ops",
    "eigen.hpp": "ops",
    "image_memory.hpp": "ops",
    "mdspan.hpp": "ops",
    "array.hpp": "graph",
    "array_options.hpp": "graph",
    "autocast.hpp": "graph",
    "math_mode.hpp": "graph",
    "host_vector.hpp": "graph",
    "activation.hpp": "ops",
    "complex.hpp": "ops",
    "compose.hpp": "ops",
    "fractional_pool.hpp": "ops",
    "measures.hpp": "ops",
    "rearrange.hpp": "ops",
    "conv.hpp": "ops",
    "bits.hpp": "ops",
    "create.hpp": "ops",
    "elementwise.hpp": "ops",
    "index.hpp": "ops",
    "movement.hpp": "ops",
    "pool.hpp": "ops",
    "random.hpp": "ops",
    "reduce.hpp": "ops",
    "densities.hpp": "ops",
    "distributions.hpp": "ops",
    "einsum.hpp": "ops",
    "fft.hpp": "ops",
    "linalg.hpp": "ops",
    "resample.hpp": "ops",
    "search.hpp": "ops",
    "sort.hpp": "ops",
    "special.hpp": "ops",
    "buffer.hpp": "model",
    "copy.hpp": "model",
    "destructure.hpp": "model",
    "fields.hpp": "model",
    "known_parts.hpp": "model",
    "functor.hpp": "model",
    "generator_state.hpp": "model",
    "model.hpp": "model",
    "path.hpp": "model",
    "show.hpp": "model",
    "visitor.hpp": "model",
    "walk.hpp": "model",
    "device.hpp": "devices",
    "distributed.hpp": "dist",
    "diagnostics.hpp": "devices",
    "move.hpp": "data",
    "data.hpp": "data",
    "loader.hpp": "data",
    "onehot.hpp": "data",
    "drawn_digits.hpp": "data",
    "csv.hpp": "data",
    "image.hpp": "data",
    "audio.hpp": "data",
    "augment.hpp": "data",
    "onehot_array.hpp": "user",
    "views.hpp": "data",
    "text.hpp": "data",
    "curve_svg.hpp": "train",
    "checkpoint.hpp": "train",
    "derivatives.hpp": "grad",
    "vmap.hpp": "grad",
    "grad.hpp": "grad",
    "matmul.hpp": "ops",
    "onnx.hpp": "onnx",
    "profile.hpp": "run",
    "stats.hpp": "run",
    "tied.hpp": "model",
    "idx.hpp": "data",
    "io.hpp": "io",
    "lbfgs.hpp": "train",
    "metrics.hpp": "train",
    "progress.hpp": "train",
    "train.hpp": "train",
    "array_rules.hpp": "optim",
    "loss_scale.hpp": "optim",
    "optim.hpp": "optim",
    "rule.hpp": "optim",
    "rules.hpp": "optim",
    "schedule.hpp": "optim",
    "activation_value.hpp": "nn",
    "chain.hpp": "nn",
    "combine_layers.hpp": "nn",
    "conv_layers.hpp": "nn",
    "dense.hpp": "nn",
    "dropout.hpp": "nn",
    "embedding.hpp": "nn",
    "gradient_rules.hpp": "grad",
    "free_list.hpp": "base",
    "init.hpp": "nn",
    "layer.hpp": "nn",
    "label_loss.hpp": "loss",
    "loss.hpp": "loss",
    "normalise_layers.hpp": "nn",
    "npy.hpp": "io",
    "pool_layers.hpp": "nn",
    "small_function.hpp": "base",
    "attention.hpp": "nn",
    "outputsize.hpp": "nn",
    "prelu.hpp": "nn",
    "reparametrise.hpp": "nn",
    "recurrent.hpp": "nn",
    "transformer.hpp": "nn",
    "upsample.hpp": "nn",
    "rosin.hpp": "user",
    "backend.h": "backend.h",
    "backend_calls.h": "backend.h",
    "comm.h": "comm.h",
}

# vendor header (its first path element) -> the rooms it is for
VENDOR_ROOMS = {
    "dnnl.h": ["engines"],
    "dnnl.hpp": ["engines"],
    "oneapi": ["engines"],
    "xbyak": ["cpu"],
    "nlohmann": ["io"],
    "zlib.h": ["data", "io"],
    "png.h": ["data"],
    "jpeglib.h": ["data"],
    "jerror.h": ["data"],
    "toml++": ["devices"],
}

# headers of systems (their first path element), which src/ asks in one room
SYSTEM_HEADERS = {"aclapi.h", "arpa", "dirent.h", "dlfcn.h", "fcntl.h", "io.h", "mach", "mach-o", "netdb.h", "netinet",
                  "poll.h", "process.h", "pthread.h", "pwd.h", "sched.h", "sddl.h", "signal.h", "spawn.h", "sys",
                  "termios.h", "unistd.h", "windows.h"}

# folders that see public headers only, and plug-in folders with the C header they may see
USERS = ("examples", "bench", "tools")
PLUGINS = {"backends": "backend.h", "comm": "comm.h"}
# folders beside the plug-ins that these share: what fails and what is packed, and of CUDA and HIP the drivers and the
# calls of the vendors' libraries
SHARED_BY_PLUGINS = ("common", "driver", "vendor")

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:<(?P<angle>[^>]+)>|"(?P<quote>[^"]+)")', re.MULTILINE)
_BLOCK = re.compile(r"/\*.*?\*/", re.DOTALL)


def includes(text):
    """(line number, 'angle' or 'quote', path) of each include directive."""
    text = _BLOCK.sub(lambda match: re.sub(r"[^\n]", " ", match.group(0)), text)
    for match in _INCLUDE.finditer(text):
        yield text.count("\n", 0, match.start()) + 1, match.lastgroup, match.group(match.lastgroup)


def rule_broken(room, kind, target):
    """Why a file of this room may not include target, or None. room 'test' may include everything of ours."""
    top, _, rest = target.partition("/")
    if top == "rosin":
        if rest not in HEADER_ROOM:
            return f"unknown public header {target}; add it to HEADER_ROOM in tools/lint/check_layers.py"
        if kind == "quote":
            return f'write <{target}>: public headers are included with angle brackets'
        return _room_broken(room, HEADER_ROOM[rest], target)
    if kind == "quote":
        if top in ALLOWED and rest:
            return _room_broken(room, top, target)
        if room == "test" or room == "user" and top not in ALLOWED:
            return None
        return f'"{target}" names no room; write "room/file.hpp" for our files and <...> for others'
    if room in ALLOWED and top in VENDOR_ROOMS and room not in VENDOR_ROOMS[top]:
        return f"{target} is for {' and '.join(VENDOR_ROOMS[top])} only"
    if room in ALLOWED and room != "platform" and top in SYSTEM_HEADERS:
        return f"{target} is of one system; ask it in src/platform, for all of them"
    return None


def _room_broken(room, included, target):
    if room == "test" or included == room:
        return None
    if room == "user":
        public = target.startswith("rosin/")
        return None if public else f"{target} is internal; programs include public headers only"
    if included in ALLOWED[room] or target in ALLOWED[room]:
        return None
    allowed = ", ".join(ALLOWED[room]) or "the standard library only"
    return f"{room} may not include {target} ({included}); {room} may include {allowed}"


def room_of(relative):
    """The room a file counts as, or None where no rule applies, or an error text starting with '!'."""
    parts = relative.parts
    if parts[0] == "tests" or relative.stem.endswith(("_test", "_testing")) or "tests" in parts:
        return "test"
    if parts[0] in USERS:
        return "user"
    if parts[0] == "include":
        name = "/".join(parts[2:])
        room = HEADER_ROOM.get(name)
        return room or f"!rosin/{name} has no room; add it to HEADER_ROOM in tools/lint/check_layers.py"
    if parts[0] == "src":
        if len(parts) != 3:
            return "!files of src/ lie two levels deep: src/room/file"
        return parts[1] if parts[1] in ALLOWED else f"!src/{parts[1]} is no room of the table in check_layers.py"
    return None


def plugin_broken(relative, kind, target):
    """Why a plug-in's file may not include target, or None."""
    folder, name = relative.parts[0], relative.parts[1]
    if target.startswith("rosin/") and target != f"rosin/{PLUGINS[folder]}":
        return f"a plug-in in {folder}/ sees rosin/{PLUGINS[folder]} and nothing else of rosin, not {target}"
    top = target.partition("/")[0]
    if kind == "quote" and "/" in target and top not in (name, *SHARED_BY_PLUGINS):
        return f"{folder}/{name} may not include {target}"
    return None


def check_file(root, path):
    relative = path.relative_to(root)
    plugin = relative.parts[0] in PLUGINS and not relative.stem.endswith("_test")
    room = None if plugin else room_of(relative)
    if room is None and not plugin:
        return []
    if room and room.startswith("!"):
        return [f"{relative}: {room[1:]}"]
    errors = []
    for line, kind, target in includes(path.read_text(encoding="utf-8")):
        broken = plugin_broken(relative, kind, target) if plugin else _checked(room, relative, kind, target)
        if broken:
            errors.append(f"{relative}:{line}: {broken}")
    return errors


def _checked(room, relative, kind, target):
    public = relative.parts[0] == "include"
    if public and not target.startswith("rosin/") and (kind == "quote" or target.partition("/")[0] in VENDOR_ROOMS):
        return f"a public header includes <rosin/...> and the standard library, not {target}"
    if room == "backend.h" or room == "comm.h":
        foreign = target.startswith("rosin/") and HEADER_ROOM.get(target.removeprefix("rosin/")) != room
        return f"{relative.name} is C and includes nothing of rosin" if foreign else None
    return rule_broken(room, kind, target)


def check(root):
    errors = []
    for path in sources.files(root, sources.CPP):
        errors += check_file(root, path)
    for name in HEADER_ROOM:
        if "." in name and HEADER_ROOM[name] not in (*ALLOWED, "user", "backend.h", "comm.h"):
            errors.append(f"tools/lint/check_layers.py: {name} is given to {HEADER_ROOM[name]}, which is no room")
    return errors


if __name__ == "__main__":
    sys.exit(sources.finish(check(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else sources.ROOT)))
