# SPDX-License-Identifier: MIT

"""spack_test.py TREE [PREFIX FOLDER]: the recipe of tools/spack, read with stand-ins for what Spack offers a recipe.

Looks that every option that the recipe passes to CMake is one of the project, with a value that the project accepts, that every
variant is passed on, and that the sources are those of TREE. With PREFIX, where sar is installed, it does what `spack test` does,
in FOLDER: builds and runs the smoke test, from the sources that the recipe keeps of an installation.
"""
import contextlib
import os
import re
import shutil
import subprocess
import sys
import types

from cmake_options import cmake_options

tree = os.path.realpath(sys.argv[1])
recipe = os.path.join(tree, "tools/spack/spack_repo/sar/packages/sar/package.py")
variants = {}
dependencies = []
conditions = []
versions = []


def variant(name, default, description, values=(True, False), multi=False, when=""):
    variants[name] = values
    conditions.append((name, when))
    assert default in values, f"{name}: the default {default} is none of {values}"


class CMakePackage:
    run_tests = False
    passed_on = set()
    kept = ()  # for the smoke test

    def define(self, option, value):
        return option, (value,)

    def define_from_variant(self, option, name):
        assert name in variants, f"{option} is from the variant {name}, which there is not"
        self.passed_on.add(name)
        return option, variants[name]


def stand_in(name, **contents):
    sys.modules[name] = types.ModuleType(name)
    vars(sys.modules[name]).update(contents)


def ignore(*_, **__):
    pass


def which(program):
    return lambda *arguments: subprocess.run([program, *arguments], check=True)


@contextlib.contextmanager
def working_dir(name, create):
    os.makedirs(name, exist_ok=create)
    before = os.getcwd()
    os.chdir(name)
    yield
    os.chdir(before)


stand_in("spack")
stand_in(
    "spack.package",
    variant=variant,
    version=lambda name, **_: versions.append(name),
    depends_on=lambda spec, **when: dependencies.append((spec, when.get("when"))),
    license=ignore,
    conflicts=ignore,
    join_path=os.path.join,
    run_after=lambda _: lambda function: function,
    cache_extra_test_sources=lambda package, folders: setattr(package, "kept", folders),
    which=which,
    working_dir=working_dir,
)
stand_in("spack_repo")
stand_in("spack_repo.builtin")
stand_in("spack_repo.builtin.build_systems")
stand_in("spack_repo.builtin.build_systems.cmake", CMakePackage=CMakePackage, generator=ignore)
contents = {"__file__": recipe}
with open(recipe) as file:
    exec(compile(file.read(), recipe, "exec"), contents)
package = contents["Sar"]()

options = cmake_options(tree)
spelled = {True: "ON", False: "OFF"}
arguments = package.cmake_args()
assert len(dict(arguments)) == len(arguments), "an option is given twice"
for option, values in arguments:
    assert option in options, f"the project has no option {option}"
    for value in values:
        value = spelled.get(value, value)
        assert value in options[option], f"{option} may not be {value}, it may be {options[option]}"
assert set(variants) == package.passed_on, f"not passed on: {set(variants) - package.passed_on}"
for spec, when in dependencies + conditions:
    for name in re.findall(r"[+~](\w+)", when or ""):
        assert name in variants, f"{spec} depends on the variant {name}, which there is not"
assert {"precision", "data", "models", "metis", "scotch", "fortran"} <= set(variants)
assert package.git == "file://" + tree, f"the sources are {package.git}, and not of {tree}"
assert versions, "there is no version"
with open(os.path.join(tree, "tools/spack/spack_repo/sar/repo.yaml")) as file:
    assert re.search(r"^  namespace: sar$", file.read(), re.M), "the repository is not the namespace sar"
assert max(map(len, open(recipe).read().splitlines())) <= 99, "Spack's lines have at most 99 characters"

package.keep_smoke_test()
for folder in package.kept:
    assert os.path.isdir(os.path.join(tree, folder)), f"the recipe keeps {folder}, which there is not"
if len(sys.argv) == 2:
    sys.exit()
prefix, folder = map(os.path.realpath, sys.argv[2:])
for kept in package.kept:
    shutil.copytree(os.path.join(tree, kept), os.path.join(folder, "kept", kept))


class Spec(dict):
    def satisfies(self, variant):
        component = {"+models": "sar_c", "+fortran": "sar_fortran"}[variant]
        return any(component + "Targets.cmake" in files for _, _, files in os.walk(prefix))


named = types.SimpleNamespace
package.prefix = prefix
package.test_suite = named(current_test_cache_dir=os.path.join(folder, "kept"))
package.spec = Spec(cmake=named(command=which("cmake"), prefix=named(bin=named(ctest="ctest"))), mpi=named(prefix="/usr"))
os.chdir(folder)
package.test_smoke()
