#!/usr/bin/env bash
# SPDX-License-Identifier: MIT

# artefacts_test.sh BUILD_DIR WHAT: what a release has beside the library is checked by the tools that it is for. Status 77, and a sentence,
# where such a tool is missing.
#   reuse        every file has a licence (reuse), and a source without its line is found
#   workflows    .github/workflows (actionlint)
#   conda        the recipe of tools/conda (rattler-build), which is read and rendered, but not built: that takes conda's channels
#   container    tools/container/Containerfile (hadolint); what it copies is all that CMake reads
#   image        the last stage of the Containerfile, built on a bare system of this machine's release (buildah, mmdebstrap) with the package that
#                debian_test.sh made in place of the first stage, which compiles; two ranks train in it
#   man          the manual pages of the installed programs (mandoc), which name no option that the program does not know
#   completion   bash completes the options of the installed programs, words that an option may be, and files
#   sbom         the installed bill of materials is an SPDX document (spdx-tools), with all that CMake found
#   smoke        what `spack test` does with the installed library: tests/package/smoke
set -euo pipefail
build=$1 what=$2
root=$(cd "$(dirname "$0")/../.." && pwd)
scratch=$build/tests/package/$what prefix=$build/tests/consumer/outside/prefix
rm -rf "$scratch"
mkdir -p "$scratch"
cached() { sed -n "s/^$1:[^=]*=//p" "$build/CMakeCache.txt"; }
fail() {
  echo "FAILED: $*"
  exit 1
}
PATH=$root/build/python/bin:$root/build/lint/bin:$PATH  # as tests/run.sh fills them
# skip WHY: ends the test
skip() {
  echo "skipped: $*"
  exit 77
}
# needs PROGRAM: the test is skipped without it
needs() { command -v "$1" >/dev/null || skip "there is no program $1, which tests/run.sh --full installs"; }

case $what in
  reuse)
    needs reuse
    [[ $(reuse --version) =~ version\ ([0-9]+) ]] && [ "${BASH_REMATCH[1]}" -ge 4 ] || skip "REUSE.toml wants reuse 4 or later"
    git -C "$root" rev-parse 2>/dev/null || skip "$root is no checkout of git, by which reuse finds the files"
    reuse --root "$root" lint >"$scratch/report" || { sed -n 1,30p "$scratch/report" && fail "begin these files with the line that others have, or list them in REUSE.toml"; }
    tree=$(mktemp -d)
    trap 'rm -rf "$tree"' EXIT
    lint() { reuse --root "$tree" --no-multiprocessing lint --quiet 2>/dev/null; }
    mkdir -p "$tree"/{core,tests/data}
    cp -r "$root"/{REUSE.toml,LICENSES,README.md} "$tree"
    for file in core/good.cpp tests/data/good.py; do echo "// SPDX-License""-Identifier: MIT" >"$tree/$file"; done
    touch "$tree/tests/data/rows.npy"
    lint || fail "a small tree is refused"
    for file in core/bad.cpp tests/data/bad.py notes.txt; do
      echo "int x = 0;" >"$tree/$file"
      ! lint || fail "$file has no licence, and this is not found"
      rm "$tree/$file"
    done
    ;;
  workflows)
    needs actionlint
    actionlint "$root"/.github/workflows/*.yml
    sed 's/matrix\.preset/matrix.presets/' "$root/.github/workflows/full.yml" >"$scratch/bad.yml"
    ! actionlint "$scratch/bad.yml" >/dev/null || fail "a wrong name is not found"
    ;;
  conda)
    python=$root/build/lint/bin/python
    "$python" -c 'import rattler_build' 2>/dev/null || skip "there is no rattler-build, which tests/run.sh --full installs"
    PYTHONDONTWRITEBYTECODE=1 "$python" "$root/tests/package/conda_test.py" "$root"
    ;;
  container)
    needs hadolint
    hadolint "$root/tools/container/Containerfile"
    ! sed 's/^WORKDIR/RUN cd/' "$root/tools/container/Containerfile" | hadolint - >/dev/null || fail "a bad instruction is not found"
    cd "$root"
    sed -n 's/^COPY \([^-].*\) [^ ]*$/\1/p' tools/container/Containerfile | xargs -n 1 | xargs -I{} cp -r --parents {} "$scratch"
    cd "$scratch"
    cmake --preset package >log 2>&1 || { cat log && fail "the Containerfile does not copy what CMake reads"; }
    ;;
  image)
    needs buildah
    needs mmdebstrap
    [ "$(id -u)" = 0 ] || skip "only root builds an image here"
    cp "$build"/tests/package/debian/packages/sar-tools_*.deb "$scratch"
    storage=$(mktemp -d)
    trap 'rm -rf "$storage"' EXIT
    in_storage() { buildah --root "$storage/images" --runroot "$storage/run" --storage-driver vfs "$@"; }
    mmdebstrap --quiet --variant=minbase "$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)" "$storage/system.tar"
    printf '%s\n' 'FROM scratch' 'ADD system.tar /' >"$storage/system"
    in_storage bud --isolation chroot -q -f "$storage/system" -t localhost/system "$storage"
    awk '/^FROM .* AS build/ { print; print "COPY sar-tools_*.deb /sar/build/package/"; skip = 1; next } /^FROM/ { skip = 0 } !skip' \
      "$root/tools/container/Containerfile" >"$scratch/Containerfile"
    in_storage bud --isolation chroot --build-arg BASE=localhost/system -f "$scratch/Containerfile" -t localhost/sar "$scratch" >"$scratch/log" 2>&1 ||
      { tail -n 30 "$scratch/log" && fail "the image is not built"; }
    container=$(in_storage from localhost/sar)
    in_storage run --isolation chroot "$container" -- mpirun --oversubscribe -n 2 sar-train --graph karate --epochs 2 >"$scratch/log" 2>&1 ||
      { cat "$scratch/log" && fail "sar-train does not run in the image"; }
    grep "^epoch *2/2" "$scratch/log"
    ;;
  man)
    needs mandoc
    for program in "$prefix"/bin/sar-*; do
      page=$prefix/share/man/man1/$(basename "$program").1
      ! mandoc -T lint -W warning "$page" | grep -v 'missing date' || fail "mandoc warns of $page"
      "$program" --help-all >"$scratch/help"
      tr -d '\\' <"$page" | sed '/^\.SH EXAMPLES/,$d' | grep -oE -- '--[a-z]+(-[a-z]+)*' | sort -u | while read -r option; do
        grep -qE -- "(^ *|,)$option( |$)" "$scratch/help" || fail "$page names $option, which the program does not know"
      done
    done
    ;;
  completion)
    completes() { # completes EXPECTED PROGRAM WORD PREVIOUS
      _sar_program "$prefix/bin/$2" "$3" "$4" || true
      [ "${COMPREPLY[*]-}" = "$1" ] || fail "$2 $4 $3 is completed to: ${COMPREPLY[*]-}; expected: $1"
    }
    for program in "$prefix"/bin/sar-*; do
      name=$(basename "$program")
      # shellcheck source=/dev/null
      source "$prefix/share/bash-completion/completions/$name"
      [[ $(complete -p "$name") == *"-o default -F _sar_program $name" ]] || fail "bash does not complete $name"
      "$program" --help-all >"$scratch/help"
      completes "$(grep -oE -- '^ +(-h,)?--[a-z0-9-]+' "$scratch/help" | sed 's/.*--/--/' | paste -sd ' ')" "$name" -- x
    done
    completes "--layers" sar-train --lay x
    completes "gcn gat gatv2 gin" sar-train g --model
    completes "auto tab comma semicolon" sar-train '' --separator
    completes "" sar-train '' --dataset
    completes "-n -m -l -r -f -h" sar-elastic - x
    ;;
  sbom)
    needs pyspdxtools
    bill=$prefix/share/sar/sar.spdx.json
    pyspdxtools --infile "$bill" || fail "$bill is no SPDX document"
    python3 - "$bill" "$(sed -n 's/^#define SAR_MPI "\(.*\)"/\1/p' "$prefix/include/sar/config.hpp")" "$(cached CMAKE_PROJECT_VERSION)" <<'END'
import json, sys
found = {p["name"]: p["versionInfo"] for p in json.load(open(sys.argv[1]))["packages"]}
mpi, _, version = sys.argv[2].rpartition(" ")
assert found[mpi] == version and found["sar"] == sys.argv[3], found
missing = {"Eigen", "nlohmann-json", "oneTBB", "CLI11", "zlib", "doctest", "GCC"} - found.keys()
assert not missing and all(found.values()), (missing, found)
END
    sed 's/"SPDXRef-sar", "relatedSpdxElement": "SPDXRef-Eigen"/"SPDXRef-sar", "relatedSpdxElement": "SPDXRef-Eigen3"/' "$bill" >"$scratch/bad.spdx.json"
    ! pyspdxtools --infile "$scratch/bad.spdx.json" >/dev/null 2>&1 || fail "a relationship to a package that is not there is accepted"
    ;;
  smoke)
    python3 "$root/tests/package/spack_test.py" "$root" "$prefix" "$scratch"
    ;;
esac
