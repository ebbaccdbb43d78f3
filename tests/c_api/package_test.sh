#!/usr/bin/env bash
# package_test.sh BUILD_DIR SCRATCH: the installed shared library in projects in C, by find_package and by pkg-config.
set -euo pipefail
build=$1 scratch=$2
here=$(cd "$(dirname "$0")" && pwd)
cached() { sed -n "s/^$1:[^=]*=//p" "$build/CMakeCache.txt"; }
mpicc=$(cached MPI_CXX_COMPILER | sed 's/mpic++/mpicc/; s/mpicxx/mpicc/')
rm -rf "$scratch"
for component in sar_dev sar_models_dev sar_c_dev sar_runtime; do
  cmake --install "$build" --component $component --prefix "$scratch/prefix" >/dev/null
done
cmake -S "$here/package" -B "$scratch/package" --log-level=WARNING -DCMAKE_PREFIX_PATH="$scratch/prefix" -DMPI_C_COMPILER="$mpicc"
cmake --build "$scratch/package"
"$here/../mpirun.sh" "$(cached MPIEXEC_EXECUTABLE)" 2 "$scratch/package/consumer" "$scratch/files_package"

library=$(dirname "$(find "$scratch/prefix" -name libsar_c.so)")
# shellcheck disable=SC2046 # a list of flags
"$mpicc" -std=c99 "$here/refusals_test.c" -o "$scratch/by_pkg_config" \
  $(PKG_CONFIG_PATH=$library/pkgconfig pkg-config --cflags --libs sar-c) -lm
LD_LIBRARY_PATH=$library "$here/../mpirun.sh" "$(cached MPIEXEC_EXECUTABLE)" 2 "$scratch/by_pkg_config" "$scratch/files_pkg_config"
