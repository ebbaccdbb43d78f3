# SPDX-License-Identifier: MIT

"""Texts of exceptions for wrong arguments, from the signatures of the functions of _sar."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence, Sized
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from . import _sar

_LONGEST = 60
_CLASSES = {"GraphBase": "sar.Graph", "HostGraph": "sar.Graph", "ModuleBase": "sar.nn.Module", "ModuleTree": "sar.nn.Module",
            "BatchLoader": "sar.DataLoader", "LRScheduler": "sar.optim.lr_scheduler"}


def _public_names() -> dict[str, str]:
    """The names of the classes and functions of _sar as users call them."""
    import sar

    names: dict[str, str] = {}
    places = [("sar", sar), ("sar.nn", sar.nn), ("sar.nn.functional", sar.nn.functional),
              ("sar.optim.lr_scheduler", getattr(sar.optim, "lr_scheduler", SimpleNamespace())), ("sar.optim", sar.optim)]
    for path, place in places:
        for name, value in vars(place).items():
            if not name.startswith("_") and not isinstance(value, ModuleType):
                names.setdefault(getattr(value, "__qualname__", name), f"{path}.{name}")
    return {**names, **_CLASSES}


def _name_of(function: Any, args: Sequence[Any]) -> str:
    names = _public_names()
    try:
        owner, _, member = function.__qualname__.rpartition(".")
    except AttributeError:
        owner = member = ""
    if not member:  # the setter of a property
        return names.get(type(args[0]).__name__, "sar." + type(args[0]).__name__)
    member = member.lstrip("_").removeprefix("enter_") if not member.endswith("__") else member
    if not owner:
        return names.get(member, f"sar.{member}")
    owner = names.get(owner, f"sar.{owner}")
    return owner if member in ("__init__", "__call__") else f"{owner}.{member}"


def given(value: object) -> str:
    """What was given, in words."""
    if isinstance(value, _sar.Tensor):
        return f"a sar.Tensor of shape {list(value.shape)}"
    if isinstance(value, np.ndarray):
        return f"an array of shape {list(value.shape)} and dtype {value.dtype}"
    if isinstance(value, (list, tuple)) and len(value) <= 4 and any(isinstance(each, (_sar.Tensor, np.ndarray)) for each in value):
        return f"a {type(value).__name__} of " + ", ".join(map(given, value))
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes, list, tuple, dict, set, np.generic)):
        try:
            text = repr(value)
        except Exception:
            text = "\n"
        if len(text) <= _LONGEST and "\n" not in text:
            return text
        return f"a {type(value).__name__}" + (f" of {len(value)}" if isinstance(value, Sized) else "")
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if callable(value) and hasattr(value, "__name__"):
        return f"the function {value.__name__}"
    name = type(value).__name__
    if name == "Tensor":
        return f"a {type(value).__module__.partition('.')[0]}.Tensor"
    return f"an {name}" if name[0] in "AEIOUaeiou" else f"a {name}"


def _words(annotation: ast.expr) -> str:
    """An annotation as a text."""
    text = re.sub(r"\b(?:sar\._sar|collections\.abc|numpy\.typing|typing)\.", "", ast.unparse(annotation))
    text = re.sub(r"\bobject\b", "a value", text)
    text = re.sub(r"\bArrayLike\b", "an array", re.sub(r"\bTensor\b", "sar.Tensor", text))
    return text.replace("GraphBase", "sar.Graph").replace("ModuleBase", "sar.nn.Module").replace(" | ", " or ")


def _elements(value: Any) -> list[Any] | None:
    if isinstance(value, (str, bytes)) or not hasattr(value, "__len__") or not hasattr(value, "__getitem__"):
        return None
    try:
        return list(value)
    except Exception:
        return None


def _fits(value: Any, annotation: ast.expr) -> bool:
    """Whether a value is what the annotation says; True for annotations that are not known."""
    if isinstance(annotation, ast.BinOp):
        return _fits(value, annotation.left) or _fits(value, annotation.right)
    if isinstance(annotation, ast.Constant):
        return value is None if annotation.value is None else True
    if isinstance(annotation, ast.Subscript):
        outer = ast.unparse(annotation.value).rpartition(".")[2]
        inner = annotation.slice.elts if isinstance(annotation.slice, ast.Tuple) else [annotation.slice]
        if outer in ("dict", "Mapping"):
            return isinstance(value, dict) and all(_fits(key, inner[0]) and _fits(each, inner[1]) for key, each in value.items())
        if outer in ("list", "Sequence", "Iterable", "tuple"):
            elements = _elements(value)
            if elements is None:
                return False
            if outer != "tuple" or ast.unparse(inner[-1]) == "...":
                return all(_fits(each, inner[0]) for each in elements)
            return len(elements) == len(inner) and all(map(_fits, elements, inner))
        return callable(value) if outer == "Callable" else True
    name = ast.unparse(annotation).rpartition(".")[2]
    if name == "object":  # nanobind takes None only where the signature says so
        return value is not None
    if name == "int":
        return hasattr(value, "__index__") and not isinstance(value, np.ndarray)
    if name == "float":
        return hasattr(value, "__float__") or hasattr(value, "__index__")
    if name in ("bool", "str", "dict", "list", "tuple"):
        types: dict[str, tuple[type, ...]] = {"bool": (bool,), "str": (str,), "dict": (dict,), "list": (list,), "tuple": (tuple,)}
        return isinstance(value, types[name])
    if name == "Callable":
        return callable(value)
    if name == "ArrayLike":
        return value is not None and not isinstance(value, (str, bytes, dict))
    known = getattr(_sar, name, None)
    return isinstance(value, known) if isinstance(known, type) else True


def _out_of_range(value: object) -> str | None:
    """What is expected of an integer that no parameter takes; None for others."""
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return "0 or more" if value < 0 else "a smaller integer" if value >= 2**31 else None
    found = [_out_of_range(each) for each in value] if isinstance(value, (list, tuple)) else []
    return next((f"integers that are {each}" for each in found if each), None)


def _first_wrong(signature: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[int, tuple[str, str, str]] | None:
    """The place of the first argument that one signature does not take, and (name, given, expected) of it."""
    function = ast.parse(re.sub(r"^def \(", "def setter(", re.sub(r"\\\d+", "...", signature)) + ": ...").body[0]
    assert isinstance(function, ast.FunctionDef)
    parameters = function.args
    positional = parameters.posonlyargs + parameters.args
    values = dict(zip((each.arg for each in positional), args))
    if len(args) > len(positional) and parameters.vararg is None:
        most = len(positional) - (positional[:1] != [] and positional[0].arg == "self")
        count = len(args) - len(positional) + most
        return len(positional), ("", "one argument is given" if count == 1 else f"{count} arguments are given", f"at most {most}" if most else "none")
    names = [each.arg for each in positional + parameters.kwonlyargs]
    for name, value in kwargs.items():
        if parameters.kwarg is None and name not in names:
            return len(values), ("", f"there is no argument '{name}'", "one of " + ", ".join(each for each in names if each != "self"))
        if name in values:
            return len(values), (name, "given twice", "one value")
        values[name] = value
    without = len(positional) - len(parameters.defaults)
    required = [each.arg for each in positional[:without]]
    required += [each.arg for each, default in zip(parameters.kwonlyargs, parameters.kw_defaults) if default is None]
    for place, each in enumerate(positional + parameters.kwonlyargs):
        if each.arg == "self":
            continue
        expected = "a value" if each.annotation is None else _words(each.annotation)
        if each.arg not in values:
            if each.arg in required:
                return place, (each.arg, "missing", expected)
        elif each.annotation is not None and not _fits(values[each.arg], each.annotation):
            return place, (each.arg, given(values[each.arg]), expected)
    several = parameters.vararg
    if several is not None and several.annotation is not None:
        for value in args[len(positional):]:
            if not _fits(value, several.annotation):
                return len(positional), (several.arg, given(value), _words(several.annotation))
    for place, (name, value) in enumerate(values.items()):
        if name != "self" and (allowed := _out_of_range(value)):
            return place, (name, given(value), allowed)
    return None


def error_text(function: Any, args: Sequence[Any], kwargs: Mapping[str, Any], ready: bool) -> str:
    """The text of the TypeError of a call with these arguments: "sar.nn.SAGEConv: in_feats is 1.5, expected int"."""
    name = _name_of(function, args)
    if not ready and not getattr(function, "__qualname__", "").endswith("__init__"):
        return f"{name}: the object is not initialized, expected a call of super().__init__() first in the __init__ of {type(args[0]).__name__}"
    signatures = [signature for signature, *_ in function.__nb_signature__]
    wrong = [found for found in (_first_wrong(signature, args, kwargs) for signature in signatures) if found is not None]
    if len(wrong) < len(signatures):
        is_method = signatures[0].partition("(")[2].startswith("self")
        shown = [given(each) for each in args[is_method:]] + [f"{key}={given(each)}" for key, each in kwargs.items()]
        taken = [re.sub(r"^def \w*\((?:self, |self\))?|\)? -> .*$| = \\\d+|sar\._sar\.|(?:/|\*), |, /", "", each) for each in signatures]
        return f"{name}: the arguments are ({', '.join(shown)}), expected {' or '.join(f'({each})' for each in taken)}"
    last = max(place for place, _ in wrong)
    of_last = [found for place, found in wrong if place == last]
    argument, what, _ = of_last[0]
    expected = " or ".join(dict.fromkeys(found[2] for found in of_last if found[0] == argument))
    return f"{name}: {argument + ' is ' if argument else ''}{what}, expected {expected}"
