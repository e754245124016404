"""Checks files for systems that this machine is not, as far as a compiler can say; nothing is linked or run.

macOS on arm64: clang knows its processor and its rules, libc++ is Debian's, and tools/lint/darwin declares what the
files touch of Apple's C library, in our own words. Windows: src/platform by MinGW-w64 (./run test --cross windows has
all of it).
usage: python3 tools/lint/check_systems.py            src/platform, for both; for ./run lint
       python3 tools/lint/check_systems.py --all [PART...]   every file of the library for macOS (whose path has one
                                                             of these parts); ./run test --cross macos
"""

import argparse
import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import sources

# Plug-ins that could be of use on macOS, and all of src/. (comm/tcp, comm/local and the command are Linux's.)
FOLDERS = ("src", "backends/common", "backends/metal", "backends/reference", "backends/null")
MORE = ("backends/driver/libraries.cpp",)
HEADERS_ALONE = ("nlohmann", "toml++", "eigen3/Eigen")  # of /usr/include, where those of Linux stand too
WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror")
MINGW = "x86_64-w64-mingw32-g++-posix"


def libcxx_with_clang():
    """The newest clang++ that has its libc++ beside it: (command, folder), or None."""
    for version in range(25, 15, -1):
        folder = pathlib.Path(os.environ.get("ROSIN_TEST_LIBCXX") or f"/usr/lib/llvm-{version}/include/c++/v1")
        if shutil.which(f"clang++-{version}") and (folder / "vector").is_file():
            return f"clang++-{version}", folder
    return None


def borrowed_headers(folder):
    """Puts libraries that are headers alone into a folder; the options that find them."""
    options = []
    for name in HEADERS_ALONE:
        source = pathlib.Path("/usr/include") / name
        if source.is_dir():
            (folder / source.name).symlink_to(source)
            options.append(f"-DROSIN_HAVE_{source.name.strip('+').upper().replace('NLOHMANN', 'JSON')}=1")
    return [*options, "-isystem", str(folder)]


def macos_command(clang, libcxx):
    # What this clang alone says of code that g++ and clang-16 take is no matter of the system. (13.3 is the first macOS
    # whose library has std::to_chars for floating-point numbers.)
    return [clang, "--target=arm64-apple-macos13.3", "-nostdlibinc", "-nostdinc++", "-isystem", str(libcxx),
            "-isystem", str(sources.ROOT / "tools/lint/darwin"), *WARNINGS, "-Wno-bitwise-instead-of-logical",
            "-Wno-sign-conversion"]


def errors_in(command, path):
    """What the compiler says of one file of ours; empty: nothing."""
    folders = [f"-I{sources.ROOT / folder}" for folder in ("src", "include", "backends")]
    definitions = ["-DROSIN_BUILDING_LIBRARY", '-DROSIN_VERSION="0"', '-DROSIN_ROLE="reference"']
    result = subprocess.run([*command, "-std=c++20", "-fsyntax-only", *folders, *definitions, str(path)],
                            capture_output=True, text=True, check=False)
    return "" if result.returncode == 0 else result.stderr


def check(command, paths, system):
    """Compiles the files for a system; the number that fail."""
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for path, said in zip(paths, pool.map(lambda path: errors_in(command, path), paths)):
            if said:
                failed += 1
                print(f"{path.relative_to(sources.ROOT)}, for {system}:\n{said.rstrip()}", flush=True)
    print(f"{len(paths) - failed} of {len(paths)} files are right for {system}", flush=True)
    return failed


def files_for(system, folders):
    """The *.cpp of folders less tests and what is for another system."""
    others = {"macos": ("_test.cpp", "_linux.cpp", "_windows.cpp"),
              "windows": ("_test.cpp", "_linux.cpp", "_darwin.cpp", "_posix.cpp")}[system]
    return [path for folder in folders for path in sorted((sources.ROOT / folder).rglob("*.cpp"))
            if not path.name.endswith(others)]


def check_macos(folders, more=(), parts=()):
    tools = libcxx_with_clang()
    if not tools:
        print("SKIPPED: macOS: there is no clang++ with its libc++ (Debian: clang-19 libc++-19-dev)")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        command = macos_command(*tools) + borrowed_headers(pathlib.Path(folder))
        paths = files_for("macos", folders) + [sources.ROOT / path for path in more]
        chosen = [path for path in paths if not parts or any(part in str(path) for part in parts)]
        return check(command, chosen, "macOS on arm64")


def check_windows(folders):
    if not shutil.which(MINGW):
        print(f"SKIPPED: Windows: there is no {MINGW} (Debian: g++-mingw-w64-x86-64-posix)")
        return 0
    command = [MINGW, *WARNINGS, "-D__USE_MINGW_ANSI_STDIO=1", "-D_WIN32_WINNT=0x0A00", "-DNOMINMAX"]
    return check(command, files_for("windows", folders), "Windows on x86-64")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true", help="every file of the library, for macOS")
    parser.add_argument("parts", nargs="*", metavar="PART")
    arguments = parser.parse_args()
    if arguments.all:
        sys.exit(1 if check_macos(FOLDERS, MORE, arguments.parts) else 0)
    sys.exit(1 if check_macos(("src/platform",)) + check_windows(("src/platform",)) else 0)
