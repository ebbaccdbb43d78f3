# SPDX-License-Identifier: MIT

"""The reference, docs/python_reference.py: each public name is in it, and has a docstring of its own."""
import importlib.util
import inspect
import pathlib
import re

import pytest

import sar
import sar.nn.functional
import sar.plot

ROOT = pathlib.Path(__file__).resolve().parents[3]
MODULES = (sar, sar.nn, sar.nn.functional, sar.optim, sar.fn, sar.plot)


def own_docstring(thing):
    """Without the signature that the binding puts into the first line, or first lines."""
    text = inspect.getdoc(thing) or ""
    signatures = getattr(thing, "__nb_signature__", ())
    lines = text.splitlines()
    if len(signatures) == 1:
        lines = lines[1:]
    return "\n".join(lines).strip()


def public_names():
    """Pairs of the name of a class, function or method and the thing itself."""
    for module in MODULES:
        for name, thing in vars(module).items():
            if name.startswith("_") or inspect.ismodule(thing) or not callable(thing) or not str(thing.__module__).startswith("sar"):
                continue
            yield f"{module.__name__}.{name}", thing
            if inspect.isclass(thing):
                for method, value in vars(thing).items():
                    if not method.startswith("_") and (callable(value) or isinstance(value, property)):
                        yield f"{module.__name__}.{name}.{method}", value


def test_docstrings():
    names = dict(public_names())
    assert len(names) > 300
    # forward() of a layer is what the docstring of its class says
    missing = [name for name, thing in names.items() if not own_docstring(thing) and not name.endswith(".forward")]
    assert not missing, "; ".join(missing)


def arguments(thing):
    """Names of arguments, those of all overloads."""
    signatures = [text for text, *_ in getattr(thing, "__nb_signature__", ())]
    if not signatures:
        return list(inspect.signature(thing).parameters)
    names = []
    for text in signatures:
        part, depth = "", 0
        for letter in text[text.index("(") + 1 :]:
            depth += (letter in "([{") - (letter in ")]}")
            if depth < 0 or (letter == "," and depth == 0):
                names.append(part.split(":")[0].split("=")[0].strip().lstrip("*"))
                part = ""
                if depth < 0:
                    break
            else:
                part += letter
    return [name for name in names if name.isidentifier()]


def test_arguments():
    """Each argument is explained by the docstring, or has the meaning that the table of docs/python.md gives its name."""
    section = (ROOT / "docs" / "python.md").read_text().split("\n## Arguments\n")[1].split("\n## ")[0]
    common = {name for row in re.findall(r"^\| (`.*?) \|", section, re.M) for name in re.findall(r"`(\w+)`", row)}
    unknown, used = [], set()
    for name, thing in public_names():
        functions, text = [thing], own_docstring(thing)
        if inspect.isclass(thing):
            functions = [value for each, value in vars(thing).items() if each in ("__init__", "__call__")]
            text += "".join(own_docstring(each) for each in functions)
        elif isinstance(thing, property):
            continue
        for argument in {each for function in functions for each in arguments(function)} - {"self", "cls", "args", "kwargs"}:
            if argument in common:
                used.add(argument)
            elif not re.search(rf"\b{argument}\b", text):
                unknown.append(f"{name}: {argument}")
    assert not unknown, "; ".join(unknown)
    assert common - used == set()


def test_reference(tmp_path):
    pytest.importorskip("pdoc")
    if sar.get_communicator().size > 1:
        pytest.skip("one process writes it")
    spec = importlib.util.spec_from_file_location("python_reference", ROOT / "docs" / "python_reference.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    script.write(tmp_path)
    for module in MODULES:
        page = (tmp_path / (module.__name__.replace(".", "/") + ".html")).read_text()
        names = [name for name in getattr(module, "__all__", ()) if not inspect.ismodule(getattr(module, name))]
        for name in names:
            assert f'id="{name}"' in page, f"{module.__name__}.{name}"
    layer = (tmp_path / "sar/nn.html").read_text()
    assert "aggregator_type" in layer  # which only the binding's own signature has
