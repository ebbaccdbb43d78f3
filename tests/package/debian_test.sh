#!/usr/bin/env bash
# SPDX-License-Identifier: MIT

# debian_test.sh BUILD_DIR CPACK: makes the Debian packages of BUILD_DIR, looks at what they contain and depend on, unpacks them and
# uses them from there: the programs on two ranks, the program of tests/consumer/host with libsar-dev alone, and that of tests/consumer/package.
set -euo pipefail
build=$1 cpack=$2
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
cached() { sed -n "s/^$1:[^=]*=//p" "$build/CMakeCache.txt"; }
fail() {
  echo "FAILED: $*"
  exit 1
}
scratch=$build/tests/package/debian
mpiexec=$(cached MPIEXEC_EXECUTABLE) version=$(cached CMAKE_PROJECT_VERSION)
on_two_ranks() { "$root/tests/mpirun.sh" "$mpiexec" 2 "$@"; }

rm -rf "$scratch"
mkdir -p "$scratch"
"$cpack" --config "$build/CPackConfig.cmake" -G DEB -B "$scratch/packages" -D CPACK_DEBIAN_COMPRESSION_TYPE=gzip >"$scratch/log" 2>&1 || {
  cat "$scratch/log"
  fail "cpack"
}

# package NAME: its file, which is the only one of this name
package() {
  local files=("$scratch/packages/$1_$version-1_"*.deb)
  [ ${#files[@]} = 1 ] && [ -e "${files[0]}" ] || fail "there is not one package $1 of version $version: $(ls "$scratch/packages")"
  echo "${files[0]}"
}
# has PACKAGE PATTERN...: the package contains files of these names (extended regular expressions of whole paths)
has() {
  dpkg-deb --contents "$(package "$1")" >"$scratch/contents"
  for pattern in "${@:2}"; do
    grep -qE " \./$pattern( -> .*)?$" "$scratch/contents" || fail "$1 does not contain $pattern"
  done
  ! grep -vE ' \./(usr/.*)?$' "$scratch/contents" || fail "$1 has files outside of /usr"
  for file in copyright changelog.gz changelog.Debian.gz; do
    grep -qE " \./usr/share/doc/$1/$file$" "$scratch/contents" || fail "$1 has no $file"
  done
  dpkg-deb --field "$(package "$1")" Maintainer | grep -qE '^[^<>]+ <[^<>@]+@[^<>@]+>$' || fail "the maintainer of $1 is not 'Name <address>'"
}
# needs PACKAGE PATTERN...: the package depends on packages of these names
needs() {
  local depends
  depends=$(dpkg-deb --field "$(package "$1")" Depends)
  for pattern in "${@:2}"; do
    grep -qE "(^|, )$pattern(,| |$)" <<<"$depends" || fail "$1 does not depend on $pattern: $depends"
  done
}

mpi=openmpi
grep -q '^#define SAR_MPI "MPICH' "$build/include/sar/config.hpp" && mpi=mpich
has libsar-dev usr/include/sar/{sar,config,core/tensor/tensor,nn/modules/module,graph/message/message}.hpp 'usr/lib/.*libsar\.a' \
  'usr/lib/.*cmake/sar/sarConfig(Version)?\.cmake' 'usr/lib/.*pkgconfig/sar\.pc' usr/share/sar/sar.spdx.json
needs libsar-dev libtbb-dev "lib$mpi-dev"
! dpkg-deb --field "$(package libsar-dev)" Depends | grep -E 'metis|scotch' || fail "libsar-dev depends on partitioners"
for part in data models; do
  has libsar-$part-dev usr/include/sar/$part.hpp "usr/lib/.*libsar_$part\.a" "usr/lib/.*cmake/sar/sar_${part}Targets\.cmake" "usr/lib/.*pkgconfig/sar-$part\.pc"
  needs libsar-$part-dev libsar-dev
done
for partitioner in metis ptscotch; do
  ! grep -q "lib$partitioner" "$build/sar-data.pc" || needs libsar-data-dev lib$partitioner-dev
done
has libsar-c-dev usr/include/sar{.h,_cxx11.hpp} usr/include/sar/fortran/sar{.f90,_interface.inc,_procedures.inc} 'usr/lib/.*libsar_c\.a' 'usr/lib/.*pkgconfig/sar-c\.pc'
needs libsar-c-dev libsar-models-dev
[ ! -e "$build/sar-fortran.pc" ] || {
  has libsar-fortran-dev usr/include/sar/fortran/sar.mod 'usr/lib/.*libsar_fortran\.a' 'usr/lib/.*pkgconfig/sar-fortran\.pc'
  needs libsar-fortran-dev libsar-c-dev
}
has sar-tools usr/bin/sar-{train,partition,plan,generate,elastic} usr/share/man/man1/sar-{train,partition,plan,generate,elastic}'\.1\.gz' \
  usr/share/bash-completion/completions/sar-{train,partition,plan,generate,elastic}
case $mpi in
  openmpi) needs sar-tools 'libtbb[0-9a-z]*' 'libopenmpi[0-9a-z]*' openmpi-bin libc6 ;;
  mpich) needs sar-tools 'libtbb[0-9a-z]*' 'libmpich[0-9a-z]*' mpich libc6 ;;
esac
has libsar-doc usr/share/doc/sar/{README,docs/{embedding,c_and_fortran,fortran},examples/c_solver/README}.md usr/share/doc/sar/docs/images/stages.svg \
  usr/share/doc/sar/examples/{c_solver/CMakeLists.txt,c_solver/c_solver.c,fortran_solver/train_surrogate.f90,mesh_surrogate/main.cpp}
if [ "$(cached SAR_SHARED_C)" = ON ]; then
  major=${version%%.*}
  has "libsar-c$major" "usr/lib/.*libsar_c\.so\.$version" "usr/lib/.*libsar_c\.so\.$major"
  has libsar-c-dev 'usr/lib/.*libsar_c\.so'
  needs libsar-c-dev "libsar-c$major"
  dpkg-deb --info "$(package "libsar-c$major")" triggers | grep -qx 'activate-noawait ldconfig' || fail "libsar-c$major does not call ldconfig"
fi

twice=$(for file in "$scratch"/packages/*.deb; do dpkg-deb --contents "$file" | awk '!/^d/ { print $6 }'; done | sort | uniq -d)
[ -z "$twice" ] || fail "these files are in two packages: $twice"
dpkg-deb --extract "$(package libsar-dev)" "$scratch/sar_alone"
for file in "$scratch"/packages/*.deb; do dpkg-deb --extract "$file" "$scratch/root"; done
prefix=$scratch/root/usr
gzip -dc "$prefix/share/doc/libsar-dev/changelog.Debian.gz" | dpkg-parsechangelog -l- --all >"$scratch/changelog" 2>&1 &&
  grep -qx "Version: $version-1" "$scratch/changelog" && ! grep -q warning "$scratch/changelog" ||
  fail "changelog.Debian.gz of libsar-dev: $(cat "$scratch/changelog")"
! grep -rlF -e "$root/" -e "$build/" "$prefix" --include=*.cmake --include=*.pc --include=*.hpp || fail "these name places of the build"
cd "$scratch"
on_two_ranks "$prefix/bin/sar-generate" --nodes 200 --out graph
on_two_ranks "$prefix/bin/sar-train" --dataset graph --hidden 8 --epochs 2 | grep "^epoch *2/2"
# consumer PROJECT PREFIX: builds tests/consumer/PROJECT against the packages unpacked to PREFIX, and runs it
consumer() {
  cmake -S "$root/tests/consumer/$1" -B "$1" -G "$(cached CMAKE_GENERATOR)" --log-level=WARNING -DCMAKE_PREFIX_PATH="$2" \
    -DCMAKE_CXX_COMPILER="$(cached CMAKE_CXX_COMPILER)" -DMPI_CXX_COMPILER="$(cached MPI_CXX_COMPILER)"
  cmake --build "$1"
  on_two_ranks "$1/consumer"
}
consumer host "$scratch/sar_alone/usr"
consumer package "$prefix"
