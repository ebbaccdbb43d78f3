#!/usr/bin/env bash
# SPDX-License-Identifier: MIT

# hashes_test.sh MPIRUN_SH MPIEXEC PROGRAM "ARGUMENTS" RANKS...: PROGRAM prints the same lines on all these numbers of ranks.
set -euo pipefail
mpirun=("$1" "$2") program=$3 arguments=$4
shift 4
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for ranks in "$@"; do
  # shellcheck disable=SC2086  # several arguments
  "${mpirun[@]}" "$ranks" "$program" $arguments >"$scratch/$ranks" || { echo "on $ranks ranks: status $?"; exit 1; }
  [ "$(wc -l <"$scratch/$ranks")" -ge 20 ] || { echo "on $ranks ranks: only $(cat "$scratch/$ranks")"; exit 1; }
  diff "$scratch/$1" "$scratch/$ranks" || { echo "$1 and $ranks ranks differ"; exit 1; }
done
