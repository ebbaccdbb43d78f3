#!/usr/bin/env bash
# losses_test.sh PRECISION FORTRAN_PROGRAM C_PROGRAM MPIRUN...: on each number of ranks, the losses of the program in Fortran are those of the one
# in C, to the last digit; and on all numbers of ranks they are the same, to rounding.
set -euo pipefail
precision=$1 fortran=$2 c=$3
shift 3
tolerance=$([ "$precision" = double ] && echo 1e-12 || echo 1e-5)
scratch=$(mktemp -d)
trap 'rm -r "$scratch"' EXIT
[[ $* == *mpich* ]] && counts=(1 2) || counts=(1 2 4)  # MPICH's ranks spin while they wait
for ranks in "${counts[@]}"; do
  "$@" "$ranks" "$fortran" >"$scratch/fortran.$ranks"
  "$@" "$ranks" "$c" >"$scratch/c.$ranks"
  paste "$scratch/fortran.$ranks" "$scratch/c.$ranks" "$scratch/c.1" | awk -v tolerance="$tolerance" -v ranks="$ranks" '
    function distance(a, b) { return a > b ? a - b : b - a }
    NF != 3 || $1 + 0 != $2 + 0 || distance($2, $3) > tolerance * $3 { print ranks " ranks: Fortran, C, C on one rank: " $0; failed = 1 }
    NR > 1 && $1 + 0 == last { print ranks " ranks: the loss stays at " $1; failed = 1 }
    { last = $1 + 0 }
    END { exit failed || NR != 20 }' || { echo "FAILED on $ranks ranks"; exit 1; }
done
