# SPDX-License-Identifier: MIT

"""complete_stub.py STUB OUTPUT: completes the types in a stub that nanobind has written of signatures of C++: containers and functions of
objects of Python have types of any elements, and results that are objects of Python are of any type."""
import pathlib
import re
import sys

_COMPLETED = [
    (r"\bCallable\b(?!\[)", "Callable[..., Any]"),
    (r"\b(tuple)\b(?![\[(])", r"\1[Any, ...]"),
    (r"\b(list)\b(?![\[(])", r"\1[Any]"),
    (r"\b(dict)\b(?![\[(])", r"\1[str, Any]"),
    (r"\*args(?=[,)])", "*args: Any"),
    (r"\*\*kwargs(?=[,)])", "**kwargs: Any"),
    (r"def __hash__\(self, /\):", "def __hash__(self) -> int:"),
    (r"-> object:", "-> Any:"),
    (r"\(self, (\w+)\)", r"(self, \1: Any)"),
    (r"(def __reduce__\(self\)) -> .*: \.\.\.", r"\1 -> tuple[Any, ...]: ..."),
    (r"(def __(?:eq|ne)__\(self, other: object, /\) -> Bools: \.\.\.)", r"\1  # type: ignore[override]"),
]


def completed(line):
    if re.match(r" *def ", line):
        for pattern, replacement in _COMPLETED:
            line = re.sub(pattern, replacement, line)
    return line


source, output = map(pathlib.Path, sys.argv[1:])
output.write_text("\n".join(map(completed, source.read_text().split("\n"))))
