#!/usr/bin/env bash
# overlap.sh HOSTS BENCH RANKS... -- [ARG...]: bench_overlap with RANKS emulated hosts each, first on an unlimited network, then on links that make the
# wire 0.5, 1 and 2 times as long as the computation of forward_backward was. HOSTS is a script that runs a program on N hosts whose links have a rate:
#     HOSTS N RATE PROGRAM [ARG...]        RATE as 800mbit, 0: no limit
set -euo pipefail
export OMPI_MCA_mpi_yield_when_idle=1  # hosts that share cores
hosts=$1 bench=$2
shift 2
ranks=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do ranks+=("$1"); shift; done
[ $# -eq 0 ] || shift
for n in "${ranks[@]}"; do
  lines=$("$hosts" "$n" 0 "$bench" "$@" | grep '^{')
  printf '%s\n' "$lines" | sed 's/^{/{"rate": "unlimited", /'
  field() { printf '%s\n' "$lines" | sed -n "s/.*\"forward_backward\".*\"$1\": \([0-9.e+-]*\).*/\1/p"; }
  for factor in 0.5 1 2; do
    rate=$(awk -v b="$(field bytes)" -v c="$(field compute)" -v f=$factor 'BEGIN { printf "%dmbit", 8 * b / (c * f) / 1e6 }')
    "$hosts" "$n" "$rate" "$bench" "$@" | grep '^{' | sed "s/^{/{\"rate\": \"$rate\", \"wire_of_compute\": $factor, /"
  done
done
