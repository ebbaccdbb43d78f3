#!/usr/bin/env bash
# SPDX-License-Identifier: MIT

# Builds the fuzz targets with clang and runs each for SECONDS_EACH (60) seconds on its seed corpus. Usage: tests/fuzz.sh [TARGET...]
# Exit code 0: nothing found.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
"$root/cmake/install-packages.sh"
# Older ones neither compile ranges of the standard library nor capture structured bindings.
for clang in clang++ clang++-{22,19,18,17,16} ""; do
  if [ -n "$clang" ] && command -v "$clang" >/dev/null && [ "$("$clang" -dumpversion | cut -d. -f1)" -ge 16 ]; then break; fi
done
if [ -z "$clang" ]; then
  echo "fuzzing needs clang 16 or later with libFuzzer (Debian 12: clang-16 and libclang-rt-16-dev; Ubuntu 24.04: clang)" >&2
  exit 1
fi
cd "$root"
[ $# -gt 0 ] || set -- $(sed -n 's/^sar_fuzz(\([a-z_0-9]*\).*/\1/p' tests/fuzz/CMakeLists.txt)
cmake --preset fuzz -DCMAKE_CXX_COMPILER="$clang" >/dev/null
cmake --build --preset fuzz --target "${@/#/fuzz_}"
for target in "$@"; do
  found=build/fuzz/findings/$target seeds=tests/fuzz/corpus/$target grown=build/fuzz/corpus/$target
  mkdir -p "$found" "$grown"
  echo "== $target"
  # A report about the memory that MPI's libraries keep until the end of the process would not be ours.
  if ! ASAN_OPTIONS=detect_leaks=0 build/fuzz/tests/fuzz/fuzz_"$target" -max_total_time="${SECONDS_EACH:-60}" -rss_limit_mb=1024 \
    -malloc_limit_mb=512 -timeout=10 -max_len=65536 -verbosity=0 -print_final_stats=1 -artifact_prefix="$found/" "$grown" "$seeds" \
    >"build/fuzz/$target.log" 2>&1; then
    tail -n 60 "build/fuzz/$target.log"
    exit 1
  fi
  grep -E 'number_of_executed_units' "build/fuzz/$target.log"
done
