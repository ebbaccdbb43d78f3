# SPDX-License-Identifier: MIT

"""version_test.py TREE: the version of CMakeLists.txt is that of every other file that names it, and the date of a release is the same
in the changelog and the citation."""
import os
import re
import sys

tree = sys.argv[1]


def read(name):
    with open(os.path.join(tree, name), encoding="utf-8") as file:
        return file.read()


def found(name, pattern):
    match = re.search(pattern, read(name), re.M)
    assert match, f"{name} has no line {pattern}"
    return match.group(1)


version = found("CMakeLists.txt", r"^project\(sar VERSION (\d+\.\d+\.\d+) ")
for name, pattern in (
    ("CHANGELOG.md", r"\A(?:(?!## ).*\n)*## (\S+), (?:unreleased|\d{4}-\d\d-\d\d)$"),
    ("CITATION.cff", r"^version: (\S+)$"),
    ("bindings/python/pyproject.toml", r'^version = "(.*)"$'),
    ("tools/conda/recipe.yaml", r'^  version: "(.*)"$'),
    ("tools/spack/spack_repo/sar/packages/sar/package.py", r'^    version\("(\d.*?)", '),
):
    other = found(name, pattern)
    assert other == version, f"{name} has the version {other}, CMakeLists.txt has {version}"
date = found("CHANGELOG.md", r"\A(?:(?!## ).*\n)*## \S+, (\S+)$")
dates = re.findall(r"^date-released: (\S+)$", read("CITATION.cff"), re.M)
expected = [] if date == "unreleased" else [date]
assert dates == expected, f"CITATION.cff is released {dates}, the changelog says {date}"
