# SPDX-License-Identifier: MIT

"""Types of the package, and of a program of a user, which is also run. On one rank, where the checkers are installed."""

import ast
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import types

import pytest
import typed_program
from test_files import folder  # noqa: F401
from test_process import alone

import sar

PACKAGE = pathlib.Path(sar.__file__).parent
PROGRAM = pathlib.Path(typed_program.__file__)
STUBS = [str(path.relative_to(PACKAGE.parent).with_suffix("")).replace("/", ".").removesuffix(".__init__") for path in sorted(PACKAGE.rglob("*.pyi"))
         if path.stem != "_sar" and (path.stem == "__init__" or not path.with_name("__init__.pyi").exists())]  # a package has its modules
MODULES = ["sar", "sar.nn", "sar.nn.functional", "sar.optim"]


def run(words, cwd, **variables):
    return subprocess.run(words, cwd=cwd, env={**os.environ, "MYPYPATH": str(PACKAGE.parent), **variables}, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """What mypy knows of NumPy, for the next call."""
    return str(tmp_path_factory.mktemp("cache"))


def mypy(*words):
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("needs the package mypy")
    if not (PACKAGE / "_sar.pyi").exists():
        pytest.skip("the package was built without its stub: build the target sar_python_stub")
    return [sys.executable, "-m", *words]


def test_the_program_runs(folder):  # noqa: F811
    assert 0 < typed_program.main(folder) < 1


@pytest.mark.parametrize("name", MODULES)
def test_every_name_is_exported(name):
    """Checkers and `from sar import *` know the names of __all__ only."""
    module = sys.modules[name]
    public = {each for each, value in vars(module).items() if not each.startswith("_") and not isinstance(value, types.ModuleType)}
    assert public - {"annotations"} <= set(module.__all__) and all(hasattr(module, each) for each in module.__all__)


def test_methods_that_the_package_adds_are_in_the_stub():
    if not (PACKAGE / "_sar.pyi").exists():
        pytest.skip("the package was built without its stub: build the target sar_python_stub")
    missing = []
    for written in ast.parse((PACKAGE / "_sar.pyi").read_text()).body:
        kind = getattr(sar._sar, getattr(written, "name", ""), None)
        if isinstance(written, ast.ClassDef) and isinstance(kind, type):
            names = {getattr(each, "name", "") for each in written.body}
            names |= {target.id for each in written.body if isinstance(each, (ast.Assign, ast.AnnAssign))
                      for target in getattr(each, "targets", [getattr(each, "target", None)])}
            missing += [f"{written.name}.{name}" for name in vars(kind) if not name.startswith("_") and name not in names]
    assert not missing


def test_reductions_have_their_types():
    written = ast.walk(ast.parse((PACKAGE / "fn.py").read_text()))
    assert set(sar._sar.reductions) <= {each.target.id for each in written if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)}


@alone
@pytest.mark.parametrize("what", [["-p", "sar"], [str(PROGRAM)]], ids=["package", "program"])
def test_mypy(what, tmp_path, cache):
    checked = run(mypy("mypy", "--strict", "--cache-dir", cache, *what), tmp_path)
    assert checked.returncode == 0, checked.stdout


@alone
def test_the_types_are_those_of_the_sources(tmp_path):
    """Stubs beside sources have the same public names and arguments."""
    compared = run(mypy("mypy.stubtest", "--concise", *STUBS), tmp_path, PYTHONPATH=str(PACKAGE.parent))
    differences = [line for line in compared.stdout.splitlines() if not line.endswith(("metaclass differs", "types.SimpleNamespace"))]
    assert not differences, "\n".join(differences)


@alone
@pytest.mark.parametrize("mode, what", [("standard", PACKAGE), ("strict", PROGRAM)], ids=["package", "program"])
def test_pyright(mode, what, tmp_path):
    pyright = shutil.which("basedpyright", path=os.path.dirname(sys.executable)) or shutil.which("basedpyright")
    if pyright is None or not (PACKAGE / "_sar.pyi").exists():
        pytest.skip("needs the package basedpyright, and the stub of the package")
    (tmp_path / "pyrightconfig.json").write_text(json.dumps({"extraPaths": [str(PACKAGE.parent)], "typeCheckingMode": mode, "include": [str(what)]}))
    checked = run([pyright, "--pythonpath", sys.executable, "-p", str(tmp_path / "pyrightconfig.json")], tmp_path)
    assert checked.returncode == 0, checked.stdout
