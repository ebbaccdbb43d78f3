#!/usr/bin/env bash
# environment.sh FOLDER: makes a virtual environment of Python in FOLDER, with what the package is built and tested with, unless it is there.
# Prints the path of its interpreter, or nothing where the packages cannot be had, without an index of packages for example.
set -euo pipefail
folder=$1
if ! "$folder/bin/python" -c 'import nanobind, numpy, pytest, scipy, networkx' 2>/dev/null; then
  python3 -m venv "$folder" >&2 || exit 0
  "$folder/bin/python" -m pip install --quiet --disable-pip-version-check 'nanobind>=3.1' numpy pytest scipy networkx >&2 || exit 0
fi
echo "$(cd "$folder" && pwd)/bin/python"
