#!/usr/bin/env bash
# SPDX-License-Identifier: MIT

# package_test.sh BUILD_DIR SCRATCH: the installed shared library in projects in C, by find_package and by pkg-config; where another MPI
# is installed, that it is refused by find_package, by sar.h and by the first call in C and Fortran.
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

# refused PATTERN COMMAND...: the command fails with a text that matches
refused() {
  "${@:2}" >"$scratch/refused" 2>&1 && { echo "FAILED: this works: ${*:2}"; exit 1; }
  tr -s ' \n' ' ' <"$scratch/refused" | grep -q "$1" || { cat "$scratch/refused"; echo "FAILED: there is no '$1'"; exit 1; }
}
# configure BUILD OPTION...: the project in C
configure() { cmake -S "$here/package" -B "$1" -DCMAKE_PREFIX_PATH="$scratch/prefix" "${@:2}"; }
refused "links the libraries of the component fortran, and this project has the languages C alone" \
  configure "$scratch/component" -DMPI_C_COMPILER="$mpicc" -DCONSUMER_COMPONENTS=fortran

export PKG_CONFIG_PATH=$library/pkgconfig
other=$([[ $(readlink -f "$mpicc") == *mpich* ]] && echo mpicc.openmpi || echo mpicc.mpich)
command -v "$other" >/dev/null || exit 0
refused "sar was built with .*, and this project has found .*$other.*-DMPI_C_COMPILER" configure "$scratch/other" -DMPI_C_COMPILER="$other"
# shellcheck disable=SC2046 # a list of flags
refused "sar was built with .*, this program is compiled with another MPI" \
  "$other" -fsyntax-only $(pkg-config --cflags sar-c) "$here/refusals_test.c"
# shellcheck disable=SC2046
"$other" "$here/other_mpi_test.c" -o "$scratch/other_mpi" $(pkg-config --libs sar-c)
LD_LIBRARY_PATH=$library OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "$scratch/other_mpi"
other=${other/mpicc/mpifort}
command -v "$other" >/dev/null || exit 0
# shellcheck disable=SC2046
"$other" "$here/other_mpi_test.f90" -o "$scratch/other_mpi_fortran" $(pkg-config --libs sar-c)
LD_LIBRARY_PATH=$library OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "$scratch/other_mpi_fortran"
