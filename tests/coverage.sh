#!/usr/bin/env bash
# SPDX-License-Identifier: MIT

# Lines of core, autograd, comm, graph and nn that the tests run; fails where a folder has less than 90 %.
# Then branches of core, comm and graph, without a limit. Usage: tests/coverage.sh [ARGUMENT OF CTEST...], e.g. -R '^(core|autograd)_'.
# The lines that were not run: build/coverage/missed.txt; the branches that were not taken: build/coverage/missed_branches.txt.
set -euo pipefail
cd "$(dirname "$0")/.."
cmake --preset coverage >/dev/null
cmake --build --preset coverage
find build/coverage -name '*.gcda' -delete
ctest --preset coverage -j 1 "$@"

root=$PWD reports=build/coverage/gcov
rm -rf "$reports" && mkdir "$reports" && cd "$reports"
find .. -name '*.gcda' -print0 | xargs -0 -n 1000 gcov --preserve-paths --relative-only --source-prefix "$root" >/dev/null 2>&1
# A line of a template stands there once for each instance: it has been run when one of them has.
awk -F: -v missed=../missed.txt '
  $2 + 0 == 0 { if ($3 == "Source") { file = $4; sub(/^.*include\/sar\//, "", file) } next }
  file !~ /^(core|autograd|comm|graph|nn)\// || $1 ~ /^ *-$/ { next }
  { lines[file ":" $2 + 0] = file; text[file ":" $2 + 0] = $0; if ($1 !~ /[#=]/) run[file ":" $2 + 0] = 1 }
  END {
    for (line in lines) {
      folder = lines[line]; sub(/\/.*/, "", folder); all[folder]++
      if (line in run) hit[folder]++; else print lines[line] ":" text[line] | ("sort -t: -k1,1 -k3,3n >" missed)
    }
    for (folder in all) {
      printf "%-9s %5d of %5d lines, %.1f %%\n", folder, hit[folder], all[folder], 100 * hit[folder] / all[folder]
      if (hit[folder] < 0.9 * all[folder]) low = 1
    }
    exit low
  }' *.gcov || low=1
python3 "$root/tests/branches.py" "$root/build/coverage" "$root" "$root/build/coverage/missed_branches.txt"
exit "${low:-0}"
