#!/usr/bin/env bash
# SPDX-License-Identifier: MIT

# environment.sh DIRECTORY [PACKAGE...]: makes a virtual environment of Debian's python3 with these packages, or with what the package sar is
# built and tested with and reuse, unless the directory has it. Status 1 if pip cannot install it.
set -euo pipefail
directory=$1
shift
packages=("$@")
[ $# -gt 0 ] || packages=(nanobind numpy pytest scipy networkx matplotlib ase reuse mypy basedpyright pdoc)
[ "$(cat "$directory/packages" 2>/dev/null)" != "${packages[*]}" ] || exit 0
rm -rf "$directory"
/usr/bin/python3 -m venv "$directory"
if ! "$directory/bin/python" -m pip install -q --disable-pip-version-check "${packages[@]}"; then
  echo "pip cannot install ${packages[*]}: the tests that need them are left out (SAR_PYTHON=OFF leaves out those of the Python package)" >&2
  exit 1
fi
echo "${packages[*]}" >"$directory/packages"
