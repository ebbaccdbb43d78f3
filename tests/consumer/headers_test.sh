#!/usr/bin/env bash
# SPDX-License-Identifier: MIT

# headers_test.sh PREFIX CXX MPICXX: each installed header compiles alone, without a warning and for the plainest processor; they
# define no macro but SAR_..., and include nothing of Eigen, oneTBB or the JSON library.
set -euo pipefail
include=$1/include cxx=$2 mpicxx=$3
flags=$("$mpicxx" -show | tr ' ' '\n' | grep -E '^-(I|D)' | sed 's/^-I/-isystem/' | tr '\n' ' ')
compile=("$cxx" -std=c++20 $flags -I"$include" -x c++)
cd "$include"
[ "$(find sar -name '*.hpp' | wc -l)" -ge 120 ] || { echo "FAILED: there are few headers in $include"; exit 1; }

find sar -name '*.hpp' -print0 | xargs -0 -P 2 -I{} "${compile[@]}" -fsyntax-only -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion \
  -Werror -include {} /dev/null

printf '#include <sar/%s.hpp>\n' sar data models | "${compile[@]}" -E -dD - >"$1/preprocessed"
awk -v include="$include/" '/^# [0-9]+ "/ { ours = index($0, include) || /"sar\// } ours && /^#define / { print $2 }' "$1/preprocessed" |
  grep -v '^SAR_' && { echo "FAILED: these macros are defined by public headers"; exit 1; }
grep -E '^# [0-9]+ ".*/(Eigen|tbb|nlohmann)/' "$1/preprocessed" && { echo "FAILED: included by public headers"; exit 1; }
rm "$1/preprocessed"
