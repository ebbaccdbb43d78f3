#!/usr/bin/env bash
# consumer_test.sh BUILD_DIR COMMAND: the library as outside projects use it, with the compiler and the MPI of BUILD_DIR.
#   install        cmake --install to a place, moved to another one afterwards
#   package        find_package(sar), built and run on two ranks
#   example        examples/mesh_surrogate as a project of its own, built and run
#   tools          the installed programs, one after the other
#   pkg-config     the program of package/ by the MPI compiler and sar.pc alone
#   subdirectory   add_subdirectory, built and run on two ranks; FetchContent, configured
set -euo pipefail
build=$1 command=$2
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
cached() { sed -n "s/^$1:[^=]*=//p" "$build/CMakeCache.txt"; }
scratch=$build/tests/consumer/outside
prefix=$scratch/prefix
mpiexec=$(cached MPIEXEC_EXECUTABLE) mpicxx=$(cached MPI_CXX_COMPILER)
on_two_ranks() { "$root/tests/mpirun.sh" "$mpiexec" 2 "$@"; }

# configure SOURCE BUILD [OPTION...]
configure() {
  cmake -S "$1" -B "$2" -G "$(cached CMAKE_GENERATOR)" --log-level=WARNING -DCMAKE_CXX_COMPILER="$(cached CMAKE_CXX_COMPILER)" \
    -DMPI_CXX_COMPILER="$mpicxx" -DMPIEXEC_EXECUTABLE="$mpiexec" "${@:3}" 2>&1 | tee "$2.log"
  ! grep -q "CMake.*Warning" "$2.log" || { echo "FAILED: configuring warns"; exit 1; }
}

mkdir -p "$scratch"
case $command in
  install)
    rm -rf "$prefix" "$prefix.first"
    cmake --install "$build" --prefix "$prefix.first" >/dev/null
    mv "$prefix.first" "$prefix"
    ! grep -rlF -e "$root/" -e "$prefix.first" "$prefix" --include=*.cmake --include=*.pc --include=*.hpp ||
      { echo "FAILED: these name places of the build"; exit 1; }
    ;;
  package)
    rm -rf "$scratch/package"
    configure "$here/package" "$scratch/package" -DCMAKE_PREFIX_PATH="$prefix"
    cmake --build "$scratch/package"
    on_two_ranks "$scratch/package/consumer"
    ;;
  example)
    rm -rf "$scratch/example"
    configure "$root/examples/mesh_surrogate" "$scratch/example" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_BUILD_TYPE=Release
    cmake --build "$scratch/example" --parallel 2
    on_two_ranks "$scratch/example/mesh_surrogate" --quick --out "$scratch/example/out"
    grep -q rollout_005.pvtu "$scratch/example/out/rollout.pvd"
    ;;
  tools)
    cd "$scratch"
    rm -rf graph parts
    on_two_ranks "$prefix/bin/sar-generate" --nodes 500 --out graph
    on_two_ranks "$prefix/bin/sar-partition" graph --parts 2 --method random --out parts
    on_two_ranks "$prefix/bin/sar-train" --dataset parts --hidden 16 --epochs 3 | grep "^epoch *3/3"
    ;;
  pkg-config)
    flags=$(PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name sar.pc)") pkg-config --cflags --libs sar)
    # shellcheck disable=SC2086 # a list of flags
    "$mpicxx" -O1 -I"$here/other_eigen" "$here/package/main.cpp" -o "$scratch/by_pkg_config" $flags
    on_two_ranks "$scratch/by_pkg_config"
    ;;
  subdirectory)
    rm -rf "$scratch/subdirectory" "$scratch/fetched"
    configure "$here/subdirectory" "$scratch/fetched" -DSAR_SOURCE_TREE="$root" -DCONSUMER_FETCHES=ON
    configure "$here/subdirectory" "$scratch/subdirectory" -DSAR_SOURCE_TREE="$root"
    cmake --build "$scratch/subdirectory" --parallel 2
    on_two_ranks "$scratch/subdirectory/consumer"
    ;;
esac
