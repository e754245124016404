"""Checks sizes: a function is at most 60 lines, a file 600, a line 120 columns. C++, Python, CMake and shell files.

A C++ function is found by its braces: a '{' outside parentheses that follows a parameter list (or qualifiers, return
type or initialisers) opens a function; lambdas and blocks inside count to the function around them.
usage: python3 tools/lint/check_sizes.py [ROOT]
"""

import ast
import pathlib
import re
import sys

import sources

FUNCTION, FILE, LINE = 60, 600, 120

# Raised budgets: (file, function or "" for the file) -> lines. Each entry says why.
RAISED = {}

_PREPROCESSOR = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.)*", re.MULTILINE | re.DOTALL)
_NO_FUNCTION = re.compile(r"^(?:(?:inline|export)\s+)*(?:namespace|extern)\b")
_TYPE = re.compile(r"^(?:template\s*<.*>\s*)?(?:typedef\s+)?(?:class|struct|union|enum)\b[^()]*$", re.DOTALL)
_AFTER_PARAMETERS = re.compile(
    r"(?:\)|\]|\b(?:const|volatile|noexcept|override|final|mutable|constexpr|consteval|try|&|&&))\s*$")
_RETURN_TYPE = re.compile(r"\)[^()]*->[^;={}]*$")
_INITIALISERS = re.compile(r"\)\s*(?:noexcept\s*(?:\([^()]*\)\s*)?)?:(?!:)")
_NAME = re.compile(r"(operator\s*(?:\(\)|\[\]|[^\s(\w]+|\s\w+)|~?\b(?!requires\b)\w+)\s*\(")


def opens_function(head):
    """Whether the text before a '{' (since the last ';' or '}') is that of a function."""
    head = head.strip()
    if not head or _NO_FUNCTION.match(head) or _TYPE.match(head):
        return False
    if head.endswith(("=", ",", "(", "return")):
        return False
    if _INITIALISERS.search(head):
        return head.endswith((")", "}"))
    if "(" not in head and "[" not in head:
        return False
    if re.search(r"\brequires\b[^{}]*$", head) and head.endswith(")"):
        return True
    return bool(_AFTER_PARAMETERS.search(head) or _RETURN_TYPE.search(head))


def functions(text):
    """(name, first line, last line) of each outermost function of C++ text."""
    text = _PREPROCESSOR.sub(lambda match: re.sub(r"[^\n]", " ", match.group(0)), sources.blank(text))
    found, stack, parens = [], [], 0
    start, inside = 0, None  # where the current head starts; the depth of the function we are in
    for at, char in enumerate(text):
        if char == "(" or char == ")":
            parens += 1 if char == "(" else -1
        elif char == "{":
            head = text[start:at]
            function = inside is None and parens == 0 and opens_function(head)
            scope = inside is None and parens == 0 and not function and _opens_scope(head)
            if function:
                inside = len(stack)
            stack.append((function, start if not scope else at + 1, at, parens))
            start = at + 1 if (scope or function) else start
            parens = 0
        elif char == "}" and stack:
            function, begin, brace, parens = stack.pop()
            if function:
                found.append(_measure(text, begin, brace, at))
                inside = None
            if inside is None and (function or _closes_scope(text, begin, brace)):
                start = at + 1
        elif char == ";" and inside is None and parens == 0:
            start = at + 1
        elif char == ":" and inside is None and re.search(r"\b(?:public|private|protected)\s*$", text[start:at]):
            start = at + 1
    return found


def _opens_scope(head):
    head = head.strip()
    return not head or bool(_NO_FUNCTION.match(head) or _TYPE.match(head)) or bool(
        re.match(r"^(?:template\b.*)?(?:class|struct|union|enum)\b", head, re.DOTALL) and not head.endswith("="))


def _closes_scope(text, begin, brace):
    return begin == brace + 1


def _measure(text, begin, brace, end):
    head = text[begin:brace]
    begin += len(head) - len(head.lstrip())
    name = _NAME.search(head)
    return (name.group(1) if name else "lambda"), text.count("\n", 0, begin) + 1, text.count("\n", 0, end) + 1


def python_functions(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name, node.lineno, node.end_lineno


def check_text(name, text):
    """The broken budgets of one file; name is its path, whose suffix tells the language."""
    errors = []
    lines = text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    for number, line in enumerate(lines, 1):
        if len(line) > LINE:
            errors.append(f"{name}:{number}: {len(line)} columns; at most {LINE}")
    if len(lines) > RAISED.get((name, ""), FILE):
        errors.append(f"{name}: {len(lines)} lines; at most {RAISED.get((name, ''), FILE)} a file")
    suffix = pathlib.PurePath(name).suffix
    found = functions(text) if suffix in sources.CPP else python_functions(text) if suffix == ".py" else []
    for function, first, last in found:
        size, most = last - first + 1, RAISED.get((name, function), FUNCTION)
        if size > most:
            errors.append(f"{name}:{first}: {function} has {size} lines; at most {most} a function")
    return errors


def check(root):
    errors = []
    paths = sources.files(root, sources.CPP | {".py", ".cmake"})
    paths += [root / name for name in ("run", "CMakeLists.txt", ".ci/run") if (root / name).is_file()]
    for path in paths:
        errors += check_text(path.relative_to(root).as_posix(), path.read_text(encoding="utf-8"))
    return errors


if __name__ == "__main__":
    sys.exit(sources.finish(check(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else sources.ROOT)))
