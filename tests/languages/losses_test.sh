#!/usr/bin/env bash
# SPDX-License-Identifier: MIT

# losses_test.sh PRECISION RANKS MPIRUN MPIEXEC PROGRAM...: the programs, which are the same in several languages, print the same losses on this
# number of ranks, to the last digit; and the first of them prints the same on one rank, to rounding.
set -euo pipefail
precision=$1 ranks=$2 mpirun=$3 mpiexec=$4
shift 4
[ $# -ge 3 ] || { echo "FAILED: $# programs"; exit 1; }
across_ranks=$([ "$precision" = double ] && echo 1e-12 || echo 1e-5)
scratch=$(mktemp -d)
trap 'rm -r "$scratch"' EXIT
"$mpirun" "$mpiexec" 1 "$1" "$scratch/model.safetensors" >"$scratch/one_rank"
columns=("$scratch/one_rank")
for program; do
  "$mpirun" "$mpiexec" "$ranks" "$program" "$scratch/model.safetensors" >"$scratch/${#columns[@]}"
  columns+=("$scratch/${#columns[@]}")
done
paste "${columns[@]}" | awk -v programs=$# -v across_ranks="$across_ranks" '
  function distance(a, b) { return a > b ? a - b : b - a }
  function fail(what) { print "line " NR ": " what ": " $0; failed = 1 }
  NF != programs + 1 { fail("a number of each program is expected") }
  { for (i = 3; i <= NF; ++i) if ($i + 0 != $2 + 0) fail("program " i - 1 " differs from the first") }
  distance($1, $2) > across_ranks * $2 { fail("one rank differs") }
  NR > 1 && $2 + 0 == last { fail("the loss stays") }
  { last = $2 + 0 }
  END { exit failed || NR != 20 }' || { echo "FAILED on $ranks ranks: $*"; exit 1; }
