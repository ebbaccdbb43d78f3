#!/usr/bin/env bash
# SPDX-License-Identifier: MIT

# overlap.sh HOSTS BENCH RANKS... -- [ARG...]: bench_overlap with RANKS emulated hosts each, first on an unlimited network, then on links that make the
# wire 0.5, 1 and 2 times as long as the computation of forward_backward was. HOSTS is a script that runs a program on N hosts whose links have a rate:
#     HOSTS N RATE PROGRAM [ARG...]        RATE as 800mbit, 0: no limit
# Emulated hosts share the cores of this machine, which copy what a network card would copy. Without a limit the wire is nothing but this work. So each line
# also says
#     processors      compute + the wire without a limit: the least time for which the cores are busy
#     to_processors   seconds / max(processors, wire)
set -euo pipefail
export OMPI_MCA_mpi_yield_when_idle=1  # hosts that share cores
hosts=$1 bench=$2
shift 2
ranks=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do ranks+=("$1"); shift; done
[ $# -eq 0 ] || shift
free= # the lines without a limit
value() { sed -n "s/.*\"name\": \"$1\".*\"$2\": \([0-9.e+-]*\).*/\1/p"; }
print() { # LINES PREFIX
  local line name
  while IFS= read -r line; do
    name=$(sed 's/.*"name": "\([a-z_]*\)".*/\1/' <<<"$line")
    awk -v line="${line%\}}" -v prefix="$2" -v compute="$(value "$name" compute <<<"$line")" -v wire="$(value "$name" wire <<<"$line")" \
      -v seconds="$(value "$name" seconds <<<"$line")" -v copies="$(value "$name" wire <<<"$free")" 'BEGIN {
        busy = compute + copies
        printf "{%s, %s, \"processors\": %g, \"to_processors\": %g}\n", prefix, substr(line, 2), busy, seconds / (busy > wire ? busy : wire) }'
  done <<<"$1"
}
for n in "${ranks[@]}"; do
  free=$("$hosts" "$n" 0 "$bench" "$@" | grep '^{')
  print "$free" '"rate": "unlimited"'
  for factor in 0.5 1 2; do
    rate=$(awk -v b="$(value forward_backward bytes <<<"$free")" -v c="$(value forward_backward compute <<<"$free")" -v f=$factor 'BEGIN { printf "%dmbit", 8 * b / (c * f) / 1e6 }')
    print "$("$hosts" "$n" "$rate" "$bench" "$@" | grep '^{')" "\"rate\": \"$rate\", \"wire_of_compute\": $factor"
  done
done
