# SPDX-License-Identifier: MIT

"""python_reference.py DIR: writes the reference of the package sar to DIR, a page for each module, with pdoc."""
import ast
import inspect
import pathlib
import sys
from functools import cached_property

import pdoc
import pdoc.doc
import sar


class Text(str):
    """A type in a signature, which is shown as it is."""

    def __repr__(self):
        return str(self)


def signature_of(function):
    """The signature of a function of the binding; of several overloads the one with the most arguments."""
    found = []
    for text, _, defaults in function.__nb_signature__:
        for i in range(len(defaults or ())):
            text = text.replace(f"\\{i}", f"default_{i}")
        arguments = ast.parse(text.replace("def (", "def property(") + ": ...").body[0]
        kinds = [(a, inspect.Parameter.POSITIONAL_OR_KEYWORD) for a in arguments.args.posonlyargs + arguments.args.args]
        given = [None] * (len(kinds) - len(arguments.args.defaults)) + arguments.args.defaults
        if arguments.args.vararg:
            kinds.append((arguments.args.vararg, inspect.Parameter.VAR_POSITIONAL))
            given.append(None)
        kinds += [(a, inspect.Parameter.KEYWORD_ONLY) for a in arguments.args.kwonlyargs]
        given += arguments.args.kw_defaults
        if arguments.args.kwarg:
            kinds.append((arguments.args.kwarg, inspect.Parameter.VAR_KEYWORD))
            given.append(None)
        parameters = []
        for (argument, kind), default in zip(kinds, given):
            value = inspect.Parameter.empty
            if default is not None:
                name = ast.unparse(default)
                value = defaults[int(name[8:])] if name.startswith("default_") else Text(name)
            annotation = Text(ast.unparse(argument.annotation)) if argument.annotation else inspect.Parameter.empty
            parameters.append(inspect.Parameter(argument.arg, kind, default=value, annotation=annotation))
        result = Text(ast.unparse(arguments.returns)) if arguments.returns and arguments.name != "__init__" else inspect.Signature.empty
        found.append(inspect.Signature(parameters, return_annotation=result))
    return max(found, key=lambda signature: len(signature.parameters))


class Function(pdoc.doc.Function):
    """A function of the binding has its signature in `__nb_signature__`, and again in the first line of its docstring."""

    @cached_property
    def signature(self):
        if not hasattr(self.obj, "__nb_signature__"):
            return super().signature
        return pdoc.doc._PrettySignature(list(signature_of(self.obj).parameters.values()),
                                         return_annotation=signature_of(self.obj).return_annotation)

    @cached_property
    def docstring(self):
        if len(getattr(self.obj, "__nb_signature__", ())) != 1:
            return super().docstring
        return "\n".join(super().docstring.splitlines()[1:]).strip()


def write(directory):
    routine = inspect.isroutine
    inspect.isroutine = lambda thing: routine(thing) or hasattr(thing, "__nb_signature__")
    pdoc.doc.Function = Function
    pdoc.render.configure(docformat="markdown", show_source=False, footer_text=f"sar {sar.__version__}")
    pdoc.pdoc("sar", "!sar._sar", output_directory=pathlib.Path(directory))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python_reference.py DIR")
    write(sys.argv[1])
