# SPDX-License-Identifier: MIT

# For tests of curves of train, sourced with MPIRUN_SH MPIEXEC RANKS TOOLS_DIR PRECISION. `keys` is an expression for the values of a log that are
# compared, `least` the number of them that a log must have; `tolerance` is relative.
source "$(dirname "${BASH_SOURCE[0]}")/program_test.sh"
mpirun=$1 mpiexec=$2 train=$programs/train
if [ "$5" = single ]; then tolerance=1e-4; else tolerance=1e-9; fi

# on RANKS ARG...: trains, and fails when that fails.
on() {
  local number=$1
  shift
  timeout 180 "$mpirun" "$mpiexec" "$number" "$train" "$@" </dev/null >out 2>err || fail "train $* on $number ranks ends with $?"
}

# same LOG LOG WHAT: the same values.
same() {
  paste <(grep -oE "\"($keys)\":[^,}]*" "$1") <(grep -oE "\"($keys)\":[^,}]*" "$2") | tr ':\t' '  ' >both
  awk -v t="$tolerance" -v least="$least" '
    $1 != $3 || ($2 != $4 && ($2 - $4) ^ 2 > t ^ 2 * ($2 ^ 2 + 1e-3)) { exit bad = 1 }
    { ++n }
    END { exit bad || n < least }' both || fail "$3: $(cat both)"
}
