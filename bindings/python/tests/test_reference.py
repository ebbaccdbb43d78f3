# SPDX-License-Identifier: MIT

"""The reference, docs/python_reference.py: each public name is in it, and has a docstring of its own and an example, which is run."""
import doctest
import importlib.util
import inspect
import os
import pathlib
import re

import numpy as np
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


def examples():
    """The public classes and functions that have an example, by name; exceptions and what test_docstrings() calls methods have none."""
    found, seen = {}, set()
    for name, thing in public_names():
        is_exception = inspect.isclass(thing) and issubclass(thing, BaseException)
        if name.rpartition(".")[0] in {module.__name__ for module in MODULES} and not is_exception and id(thing) not in seen:
            seen.add(id(thing))
            found[name] = thing
    return found


def test_every_class_and_function_has_an_example():
    missing = [name for name, thing in examples().items() if ">>> " not in (inspect.getdoc(thing) or "")]
    assert len(examples()) > 200 and not missing, "; ".join(missing)


@pytest.mark.parametrize("name", examples())
def test_example(name, tmp_path, monkeypatch):
    """Runs the example in a folder of its own."""
    text = inspect.getdoc(examples()[name])
    if sar.get_communicator().size > 1:
        pytest.skip("one process runs the examples")
    if "sar.plot." in text:
        pytest.importorskip("matplotlib").use("Agg")
    for function, program in (("sar.train(", "SAR_TRAIN"), ("sar.partition(", "SAR_PARTITION")):
        if function in text and not os.environ.get(program):
            pytest.skip("needs the program")
    monkeypatch.chdir(tmp_path)
    threads = sar.get_num_threads()
    report = []
    test = doctest.DocTestParser().get_doctest(text, {"sar": sar, "np": np}, name, None, 0)
    result = doctest.DocTestRunner(verbose=False).run(test, out=report.append)
    sar.set_num_threads(threads)
    assert result.attempted > 0 and result.failed == 0, "".join(report)


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
    assert "conv = sar.nn.SAGEConv(4, 8)" in re.sub("<[^>]*>", "", layer)
