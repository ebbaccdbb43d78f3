#!/usr/bin/env bash
# SPDX-License-Identifier: MIT

# consumer_test.sh BUILD_DIR COMMAND: the library as outside projects use it, with the compiler and the MPI of BUILD_DIR.
#   install        cmake --install to a place, moved to another one afterwards
#   host           find_package(sar), sar::sar alone, built and run on two ranks; the same project with add_subdirectory, configured;
#                  refused for another minor version than the library's
#   package        find_package(sar COMPONENTS data), built and run on two ranks; refused with another MPI than the library's,
#                  and for a component or precision that is not installed
#   example        examples/mesh_surrogate and examples/coupled_surrogate as projects of their own, built and run
#   c              examples/c_solver, built and run on 1, 2 and 4 ranks with the same losses
#   fortran        examples/fortran_solver, the same, and its second program, also by sar-fortran.pc; refused with another MPI, and
#                  for a model file that is not there
#   tools          the installed programs, one after the other
#   pkg-config     the programs of host/, package/ and examples/c_solver by MPI compilers and .pc files alone
#   subdirectory   FetchContent, configured; add_subdirectory, in a build of single precision with both precisions, built, run
#                  on two ranks and installed
#   both           both precisions in one program: the installed library of the command subdirectory by find_package and
#                  by pkg-config; with the kernels of each instruction set of this processor
set -euo pipefail
build=$1 command=$2
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
cached() { sed -n "s/^$1:[^=]*=//p" "$build/CMakeCache.txt"; }
scratch=$build/tests/consumer/outside
refused=$scratch/refused_$command
prefix=$scratch/prefix
few_ranks=$([[ $(cached MPIEXEC_EXECUTABLE) == *mpich* ]] && echo 1 2 || echo 1 2 4)  # MPICH's ranks spin while they wait
mpiexec=$(cached MPIEXEC_EXECUTABLE) mpicxx=$(cached MPI_CXX_COMPILER)
on_ranks() { "$root/tests/mpirun.sh" "$mpiexec" "$@"; }
on_two_ranks() { on_ranks 2 "$@"; }

# configure SOURCE BUILD [OPTION...]
configure() {
  cmake -S "$1" -B "$2" -G "$(cached CMAKE_GENERATOR)" --log-level=WARNING -DCMAKE_CXX_COMPILER="$(cached CMAKE_CXX_COMPILER)" \
    -DMPI_CXX_COMPILER="$mpicxx" -DMPIEXEC_EXECUTABLE="$mpiexec" "${@:3}" 2>&1 | tee "$2.log" || return 1
  ! grep -q "CMake.*Warning" "$2.log" || { echo "FAILED: configuring warns"; exit 1; }
}

# wrapper NAME: the MPI compiler NAME, mpicc or mpifort, beside that of C++
wrapper() { sed "s/mpic++/$1/; s/mpicxx/$1/" <<<"$mpicxx"; }

# refuses TEXT ARGUMENT...: the compiler refuses the program, and its error has the text
refuses() {
  "$mpicxx" -std=c++20 -fsyntax-only "${@:2}" 2>"$refused" && { echo "FAILED: this compiles: ${*:2}"; exit 1; }
  tr '\n' ' ' <"$refused" | grep -q "$1" ||
    { cat "$refused"; echo "FAILED: the compiler does not say: $1"; exit 1; }
}

# same_losses FILE FILE: lines "run K loss X" with the same numbers, to what rounding makes of them in a training
same_losses() {
  paste <(grep '^run' "$1") <(grep '^run' "$2") | awk -v tolerance="$([ "$(cached SAR_PRECISION)" = double ] && echo 1e-9 || echo 1e-2)" '
    { difference = $4 > $8 ? $4 - $8 : $8 - $4 }
    NF != 8 || difference > tolerance * $8 { print "FAILED: the losses differ: " $0; failed = 1 }
    END { exit failed || NR < 2 }'
}

# learned FILE: lines of a rollout that end with the errors of the network and of no change: the first is below the second
learned() { awk '{ before = NF > 1 && $(NF - 1) < $NF } END { exit !before }' "$1" || { cat "$1"; echo "FAILED: it has not learned"; exit 1; }; }

mkdir -p "$scratch"
case $command in
  install)
    rm -rf "$prefix" "$prefix.first"
    cmake --install "$build" --prefix "$prefix.first" >/dev/null
    mv "$prefix.first" "$prefix"
    ! grep -rlF -e "$root/" -e "$prefix.first" "$prefix" --include=*.cmake --include=*.pc --include=*.hpp ||
      { echo "FAILED: these name places of the build"; exit 1; }
    ;;
  host)
    rm -rf "$scratch"/host{,_of_sources,_of_another_version}
    configure "$here/host" "$scratch/host" -DCMAKE_PREFIX_PATH="$prefix"
    cmake --build "$scratch/host"
    on_two_ranks "$scratch/host/consumer"
    IFS=. read -r major minor patch <<<"$(cached CMAKE_PROJECT_VERSION)"
    for asked in "$major.$minor" "$major.$minor.$patch"; do configure "$here/host" "$scratch/host" -DCONSUMER_VERSION="$asked"; done
    # before 1.0.0, who asks for the minor version before must not get this one, either
    for asked in "$major.$((minor - 1))" "$major.$((minor + 1))" "$((major + 1)).$minor" "$major.$minor.$((patch + 1))"; do
      configure "$here/host" "$scratch/host_of_another_version" -DCMAKE_PREFIX_PATH="$prefix" -DCONSUMER_VERSION="$asked" >"$refused" &&
        { echo "FAILED: version $asked was found"; exit 1; }
      tr -s ' \n' ' ' <"$refused" | grep -q "compatible with requested version \"$asked\""
    done
    configure "$here/host" "$scratch/host_of_sources" -DSAR_SOURCE_TREE="$root"
    ;;
  package)
    rm -rf "$scratch/package"
    configure "$here/package" "$scratch/package" -DCMAKE_PREFIX_PATH="$prefix"
    cmake --build "$scratch/package"
    on_two_ranks "$scratch/package/consumer"

    package=$(dirname "$(find "$prefix" -name sarConfig.cmake)")
    rm -rf "$scratch/other_mpi"
    mkdir -p "$scratch/other_mpi/lib/cmake" "$scratch/other_mpi/include/sar"
    cp -r "$package" "$scratch/other_mpi/lib/cmake"
    sed -i 's/^set(sar_MPI ".*")/set(sar_MPI "Some MPI 1.0")/' "$scratch/other_mpi/lib/cmake/sar/sarConfig.cmake"
    configure "$here/package" "$scratch/other_mpi/package" -DCMAKE_PREFIX_PATH="$scratch/other_mpi" >"$refused" &&
      { echo "FAILED: a library of another MPI was found"; exit 1; }
    tr -s ' \n' ' ' <"$refused" | grep -q "sar was built with Some MPI 1.0 .*, and this project has found .*$mpicxx"
    if [ "$(cached SAR_PRECISION)" != both ]; then
      configure "$here/both" "$scratch/other_mpi/both" -DCMAKE_PREFIX_PATH="$prefix" >"$refused" &&
        { echo "FAILED: a library of one precision was found for two"; exit 1; }
      tr -s ' \n' ' ' <"$refused" | grep -q "this libsar has the components $(cached SAR_PRECISION);data;.*; those asked for are: single;double;data"
    fi
    rm "$scratch"/other_mpi/lib/cmake/sar/sar_data*
    configure "$here/package" "$scratch/other_mpi/without_data" -DCMAKE_PREFIX_PATH="$scratch/other_mpi" >"$refused" &&
      { echo "FAILED: sar::data was found where it is not installed"; exit 1; }
    tr -s ' \n' ' ' <"$refused" | grep -q "this libsar has the components .*; those asked for are: data"
    letter=$(sed -n 's/^#define SAR_MPI "\(.\).*/\1/p' "$prefix/include/sar/config.hpp")
    sed "s/^#define SAR_MPI .*/#define SAR_MPI \"$(tr MO OM <<<"$letter") MPI\"/" "$prefix/include/sar/config.hpp" \
      >"$scratch/other_mpi/include/sar/config.hpp"
    echo '#include <sar/comm/communicator.hpp>' >"$scratch/other_mpi/use.cpp"
    refuses "sar was built with . MPI, this program is compiled with" -I"$scratch/other_mpi/include" -I"$prefix/include" \
      "$scratch/other_mpi/use.cpp"
    ;;
  example)
    rm -rf "$scratch/example"
    configure "$root/examples/mesh_surrogate" "$scratch/example" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_BUILD_TYPE=Release
    cmake --build "$scratch/example" --parallel 2
    on_two_ranks "$scratch/example/mesh_surrogate" --quick --out "$scratch/example/out"
    grep -q rollout_005.pvtu "$scratch/example/out/rollout.pvd"
    rm -rf "$scratch/coupled"
    configure "$root/examples/coupled_surrogate" "$scratch/coupled" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_BUILD_TYPE=Release
    cmake --build "$scratch/coupled" --parallel 2
    on_two_ranks "$scratch/coupled/coupled_surrogate" --quick | grep -q '^rollout *4 '
    ;;
  c)
    rm -rf "$scratch/c"
    configure "$root/examples/c_solver" "$scratch/c" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_BUILD_TYPE=Release \
      -DMPI_C_COMPILER="$(wrapper mpicc)"
    cmake --build "$scratch/c"
    for ranks in $few_ranks; do on_ranks "$ranks" "$scratch/c/c_solver" "$scratch/c/line.safetensors" >"$scratch/c/$ranks.out"; done
    for ranks in $few_ranks; do same_losses "$scratch/c/$ranks.out" "$scratch/c/1.out"; done
    grep '^rollout' "$scratch/c/2.out" >"$scratch/c/rollout" && learned "$scratch/c/rollout"
    ;;
  fortran)
    rm -rf "$scratch/fortran"
    configure "$root/examples/fortran_solver" "$scratch/fortran" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_BUILD_TYPE=Release \
      -DMPI_Fortran_COMPILER="$(wrapper mpifort)" -DCMAKE_Fortran_COMPILER="$(cached CMAKE_Fortran_COMPILER)"
    cmake --build "$scratch/fortran"
    cd "$scratch/fortran"
    for ranks in $few_ranks; do on_ranks "$ranks" ./train_surrogate "flow$ranks.safetensors" 8 16 >"$ranks.out"; done
    for ranks in $few_ranks; do same_losses "$ranks.out" 1.out; done
    on_two_ranks ./predict_surrogate flow1.safetensors 4 16 >rollout && learned rollout
    PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name sar.pc)")
    export PKG_CONFIG_PATH
    mkdir -p by_pkg_config && cd by_pkg_config
    # shellcheck disable=SC2046 # a list of flags
    "$(wrapper mpifort)" "$root"/examples/fortran_solver/{arguments,advection_diffusion,surrogate,predict_surrogate}.f90 -o predict_surrogate \
      $(pkg-config --cflags --libs sar-fortran)
    cd ..
    LD_LIBRARY_PATH=$PKG_CONFIG_PATH/.. on_two_ranks by_pkg_config/predict_surrogate flow1.safetensors 4 16 | cmp - rollout
    other=mpifort.$(grep -q 'SAR_MPI "MPICH' "$prefix/include/sar/config.hpp" && echo openmpi || echo mpich)
    if command -v "$other" >/dev/null; then
      rm -rf "$scratch/fortran_other"
      configure "$root/examples/fortran_solver" "$scratch/fortran_other" -DCMAKE_PREFIX_PATH="$prefix" -DMPI_Fortran_COMPILER="$other" \
        >"$refused" && { echo "FAILED: the MPI of $other was found"; exit 1; }
      tr -s ' \n' ' ' <"$refused" | grep -q "sar was built with .*, and this project has found .*-DMPI_Fortran_COMPILER"
    fi
    on_ranks 1 ./predict_surrogate no_such.safetensors >"$refused" 2>&1 && { echo "FAILED: predicts without a file"; exit 1; }
    grep -q "predict_surrogate: .*no_such.safetensors" "$refused"
    ;;
  tools)
    cd "$scratch"
    rm -rf graph parts
    on_two_ranks "$prefix/bin/sar-generate" --nodes 500 --out graph
    on_two_ranks "$prefix/bin/sar-partition" graph --parts 2 --method random --out parts
    on_two_ranks "$prefix/bin/sar-train" --dataset parts --hidden 16 --epochs 3 | grep "^epoch *3/3"
    ;;
  pkg-config)
    PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name sar.pc)")
    export PKG_CONFIG_PATH
    flags=$(pkg-config --cflags --libs sar)
    # shellcheck disable=SC2046,SC2086 # lists of flags
    {
      "$mpicxx" -std=c++20 -O1 "$here/host/main.cpp" -o "$scratch/host_by_pkg_config" $flags
      "$mpicxx" -std=c++20 -O1 -I"$here/other_eigen" -I"$here/.." "$here/package/main.cpp" -o "$scratch/by_pkg_config" $(pkg-config --cflags --libs sar-data sar-models)
      "$(wrapper mpicc)" -std=c99 -Wall -Werror "$root/examples/c_solver/c_solver.c" -o "$scratch/c_by_pkg_config" $(pkg-config --cflags --libs sar-c) -lm
    }
    on_two_ranks "$scratch/host_by_pkg_config"
    on_two_ranks "$scratch/by_pkg_config"
    LD_LIBRARY_PATH=$PKG_CONFIG_PATH/.. on_ranks 1 "$scratch/c_by_pkg_config" "$scratch/line.safetensors" | grep -q '^rollout'

    # a host may link with the wrapper of another language, which has no C++ bindings of MPI
    nm -C --undefined-only "$scratch/by_pkg_config" | grep -F ' MPI::' && { echo "FAILED: needs the C++ bindings of MPI"; exit 1; }
    printf '%s\n' '#include <sar/sar.hpp>' '#include <vector>' \
      'std::vector<sar::other_precision> field;' 'sar::Tensor x = sar::Tensor::borrow(field, {1});' >"$scratch/borrow.cpp"
    # shellcheck disable=SC2086
    refuses "deleted.*call Tensor::from(shape, values)" "$scratch/borrow.cpp" $flags
    # shellcheck disable=SC2086
    refuses "sar: -ffast-math, .*: add -fno-fast-math" -ffast-math "$scratch/borrow.cpp" $flags
    ;;
  subdirectory)
    rm -rf "$scratch/subdirectory" "$scratch/fetched"
    # the library is compiled with optimization also where the host sets nothing
    configure "$here/subdirectory" "$scratch/fetched" -DSAR_SOURCE_TREE="$root" -DCONSUMER_FETCHES=ON -DCMAKE_EXPORT_COMPILE_COMMANDS=ON
    ours=$(grep -E '"command".*sar(_data)?\.dir' "$scratch/fetched/compile_commands.json")
    if [ -z "$ours" ] || grep -v -e ' -O3 ' <<<"$ours"; then echo "FAILED: compiled without -O3"; exit 1; fi
    # both precisions are built once, with the first of the presets
    precision=$([ "$(cached SAR_PRECISION)" = single ] && echo both || echo single)
    configure "$here/subdirectory" "$scratch/subdirectory" -DSAR_SOURCE_TREE="$root" -DSAR_PRECISION="$precision" -DSAR_INSTALL=ON \
      -DCMAKE_CXX_FLAGS=-O0
    cmake --build "$scratch/subdirectory" --parallel 2
    cd "$scratch/subdirectory"
    on_two_ranks ./consumer
    if [ "$precision" = both ]; then
      both/consumer_of_both
      SAR_TRACE=trace.json on_two_ranks both/consumer_of_both
      grep -q traceEvents trace.json && grep -q traceEvents trace.json.double
      rm -rf "$scratch/both_prefix"
      cmake --install . --prefix "$scratch/both_prefix" >/dev/null
    fi
    ;;
  both)
    rm -rf "$scratch/both"
    configure "$here/both" "$scratch/both" -DCMAKE_PREFIX_PATH="$scratch/both_prefix"
    cmake --build "$scratch/both" --parallel 2
    on_two_ranks "$scratch/both/consumer_of_both"
    if [ "$(uname -m)" = x86_64 ]; then
      words=$({ SAR_INSTRUCTION_SET=none "$scratch/both/consumer_of_both" || true; } 2>&1 | sed -n 's/.* it can be: //p' | tr -d ,)
      [[ $words == x86-64-v2* ]] || { echo "FAILED: the instruction sets are: $words"; exit 1; }
      for word in $words; do SAR_INSTRUCTION_SET=$word "$scratch/both/consumer_of_both"; done
      "$here/foreign_instructions_test.sh" x86_64_v2,x86_64_v3,x86_64_v4 "$scratch"/both_prefix/lib*/libsar*.a || [ $? = 77 ]
    fi

    # what both libraries define are names of other libraries, which are the same in both
    names() { nm --extern-only --defined-only "$scratch"/both_prefix/lib*/"$1" 2>/dev/null | awk 'NF == 3 { print $3 }' | sort -u; }
    [ "$(names libsar_double.a | grep -c 16double_precision)" -ge 300 ]
    { comm -12 <(names libsar.a) <(names libsar_double.a) && comm -12 <(names libsar_data.a) <(names libsar_data_double.a); } | grep 3sar | grep -vE '3sar(5eigen|12json_library)' | c++filt &&
      { echo "FAILED: these names are in both libraries"; exit 1; }
    PKG_CONFIG_PATH=$(dirname "$(find "$scratch/both_prefix" -name sar-double.pc)")
    export PKG_CONFIG_PATH
    # shellcheck disable=SC2046 # lists of flags
    for precision in single double; do
      "$mpicxx" -std=c++20 -I"$here/.." -c -o "$scratch/both_$precision.o" "$here/both/${precision}_training.cpp" \
        $(pkg-config --cflags "sar-data$([ $precision = single ] || echo -double)")
    done
    # shellcheck disable=SC2046
    "$mpicxx" -std=c++20 -I"$here/.." "$here/both/main.cpp" "$here/../support/mpi_handles.cpp" "$scratch"/both_{single,double}.o -o "$scratch/both_by_pkg_config" \
      $(pkg-config --libs sar-data sar-data-double)
    on_two_ranks "$scratch/both_by_pkg_config"
    ;;
esac
