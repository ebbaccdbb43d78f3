#!/usr/bin/env bash
# SPDX-License-Identifier: MIT

# help_test.sh MPIRUN_SH MPIEXEC RANKS TOOLS_DIR: --help, --help-all and --version of each program, on one rank without mpirun and on RANKS.
source "$(dirname "$0")/../support/program_test.sh"

for program in train partition plan generate; do
  for option in --help --help-all --version; do
    "$programs/$program" "$option" >"${option#--}" 2>err || fail "$program $option ends with $?"
    [ ! -s err ] || fail "$program $option writes to stderr"
    "${run[@]}" "$programs/$program" "$option" >out 2>err || fail "$program $option on $ranks ranks ends with $?"
    cmp "${option#--}" out || fail "$program $option on $ranks ranks prints something else"
  done
  [ "$(wc -l <help)" -le 40 ] || fail "$program --help has more than 40 lines"
  [ "$(wc -l <help-all)" -gt "$(wc -l <help)" ] || fail "$program --help-all is not longer than --help"
  ! grep -Fvxf help-all help || fail "these lines of $program --help are not in --help-all"
  grep -qE "^sar-$program [0-9.]+, (single|double) precision, (Open MPI|MPICH|Intel)" version || fail "$program --version"
done
