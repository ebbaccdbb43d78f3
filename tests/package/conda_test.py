# SPDX-License-Identifier: MIT

"""conda_test.py TREE: rattler-build reads the recipe of tools/conda and renders it for each MPI, as conda-forge does before it builds, and every
option that the recipe passes to CMake is one of the project."""
import os
import re
import sys

from rattler_build import PlatformConfig, RattlerBuildError, RenderConfig, Stage0Recipe, VariantConfig

from cmake_options import cmake_options

tree = sys.argv[1]
path = os.path.join(tree, "tools/conda/recipe.yaml")
variants = VariantConfig({"mpi": ["openmpi", "mpich"], "cxx_compiler": ["gxx"], "c_stdlib": ["sysroot"]})
rendered = Stage0Recipe.from_file(path).render(variants, RenderConfig(PlatformConfig(target_platform="linux-64")))
assert len(rendered) == 2, f"{len(rendered)} packages, expected one for each MPI"
options = cmake_options(tree)
for package in rendered:
    recipe = package.recipe.to_dict()
    assert {"mpich", "openmpi"} & set(recipe["requirements"]["host"]) & set(recipe["requirements"]["run"]), recipe["requirements"]
    folder = os.path.normpath(os.path.join(os.path.dirname(path), recipe["source"][0]["path"]))
    assert folder == os.path.normpath(tree), f"the sources are {folder}"
    for file in recipe["about"]["license_file"]:
        assert os.path.isfile(os.path.join(folder, file)), f"there is no {file}"
    given = re.findall(r"-D(SAR_\w+)=(\w+)", " ".join(recipe["build"]["script"]))
    assert given, "the script passes no option"
    for option, value in given:
        assert value in options.get(option, ()), f"{option}={value}: the project has {options.get(option, 'no such option')}"

with open(path) as file:
    text = file.read()
try:
    Stage0Recipe.from_yaml(text.replace("requirements:", "requirement:"))
    raise AssertionError("a wrong key of the recipe is not found")
except RattlerBuildError:
    pass
