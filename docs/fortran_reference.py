#!/usr/bin/env python3
# SPDX-License-Identifier: MIT

"""Usage: docs/fortran_reference.py. Prints docs/fortran.md: the procedures of the module for Fortran with their
arguments and comments, as bindings/fortran/ has them. The test docs_fortran compares."""
import pathlib
import re

folder = pathlib.Path(__file__).resolve().parent.parent / "bindings" / "fortran"
module = (folder / "sar.f90").read_text()
both_kinds = (folder / "sar_real.inc.in").read_text()
objects = {"sar_communicator": "comm", "sar_graph": "graph", "sar_hetero_graph": "hetero", "sar_model": "model", "sar_optimizer": "optimizer",
           "sar_predictor": "predictor", "sar_potential": "potential", "sar_checkpoints": "checkpoints", "sar_trace": "trace"}


def joined_lines(text):
    """Lines with their continuations."""
    return re.sub(r" *&\n *", " ", text).split("\n")


class Procedure:
    def __init__(self, lines, i):
        kind, self.name, arguments = re.match(r" *(?:pure )?(subroutine|function) (\S+?)\((.*?)\)", lines[i]).groups()
        self.arguments = [a.strip() for a in arguments.split(",") if a.strip() not in ("", "self")]
        self.is_function = kind == "function"
        self.result = (re.search(r"result\((\w+)\)", lines[i]) or [None, None])[1]
        self.comment = []
        before = i - 1
        while re.match(r" *!> ?", lines[before]):
            self.comment.insert(0, re.sub(r"^ *!> ?", "", lines[before]))
            before -= 1
        self.declarations, self.result_type = [], ""
        for line in lines[i + 1:]:
            declared = re.match(r" *(.*?) :: (.*)$", line)
            if not declared:
                break
            names = [re.sub(r"\(.*?\)", "", n).strip() for n in re.split(r",(?![^(]*\))", declared[2])]
            if self.result in names:
                self.result_type = declared[1]
            elif all(n in self.arguments for n in names):
                self.declarations.append(f"{declared[1]} :: {declared[2].strip()}")
        if self.is_function and not self.result_type:  # declared after the status
            for line in lines[i + 1:i + 8]:
                declared = re.match(rf" *(.*?) :: {self.result}$", line)
                self.result_type = declared[1] if declared else self.result_type


procedures = {}
for text in (both_kinds, module):
    lines = joined_lines(text)
    for i, line in enumerate(lines):
        if re.match(r"  (pure )?(subroutine|function) \S+\(", line):
            found = Procedure(lines, i)
            procedures[found.name] = found


def show(call, procedure, specifics):
    """The call, its comment and its arguments, as Markdown."""
    arguments = ", ".join(a for a in procedure.arguments if a not in ("stat", "errmsg"))
    arguments = f"({arguments})"
    head = f"{procedure.result_type} = {call}{arguments}" if procedure.is_function else f"call {call}{arguments}"
    comment = procedure.comment
    if not comment:  # of a neighbor that is the same for other arguments
        comment = next((procedures[s].comment for s in specifics if s in procedures and procedures[s].comment), [])
    print("```text")
    for line in comment:
        print(f"! {line}".rstrip())
    print(head)
    for line in procedure.declarations:
        line = re.sub(r"class\((\w+)\)", r"type(\1)", line).replace("contiguous, ", "").replace("target, ", "")
        print("  " + line.replace("@kind@", "KIND"))
    print("```\n")


def procedure_of(specifics):
    """Of several kinds, the one of the long integers or that for both kinds of reals."""
    names = [re.sub("real(32|64)$", "@kind@", s) for s in specifics]
    return procedures[next((n for n in names if n.endswith("int64")), names[0])], names


print("""# Procedures of the Fortran module

`docs/fortran_reference.py` writes this page from the sources of the module `sar`. [Programs in C and
Fortran](c_and_fortran.md) has examples.

All procedures end with the optional arguments `integer, intent(out) :: stat` and `character(len=*),
intent(inout) :: errmsg`. `KIND` is `real32` or `real64`, the same for all arrays of a call. Where `int64` is
written for ids and seeds, default integers are taken, too. All objects have `free(stat, errmsg)`.

## The library
""")
for name in re.findall(r"\bsar_\w+", " ".join(re.findall(r"public :: (sar_init.*|sar_memory.*)", module))):
    show(name, procedures[name], [])
for kind, variable in objects.items():
    print(f"## `type({kind}) :: {variable}`\n")
    body = re.search(rf"type, extends\(sar_object\) :: {kind}\n  contains\n(.*?)end type", module, re.S)[1]
    for line in joined_lines(body):
        bound = re.match(r" *(?:procedure|generic) :: (\w+) => (.*)", line)
        if bound:
            specifics = [s.strip() for s in bound[2].split(",")]
            for typed in (False, True):  # generics that take a graph without types or with types
                chosen = [s for s in specifics if s.startswith("hetero_") == typed]
                if chosen:
                    procedure, names = procedure_of(chosen)
                    show(f"{variable}%{bound[1]}", procedure, names)
