#!/usr/bin/env bash
# SPDX-License-Identifier: MIT

# artefacts_test.sh BUILD_DIR WHAT: what a release has beside the library is checked by the tools that it is for. Status 77, and a sentence,
# where such a tool is missing.
#   reuse        every file has a licence (reuse), and a source without its line is found
set -euo pipefail
build=$1 what=$2
root=$(cd "$(dirname "$0")/../.." && pwd)
scratch=$build/tests/package/$what
rm -rf "$scratch"
mkdir -p "$scratch"
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
esac
