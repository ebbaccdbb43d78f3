# SPDX-License-Identifier: MIT

# For tests of programs, sourced with MPIRUN_SH MPIEXEC RANKS DIR: the working directory is an empty one that goes away at the end;
# "${run[@]}" starts a program on the ranks, and $programs is the directory of the programs.
set -euo pipefail
run=("$1" "$2" "$3")
ranks=$3 programs=$4
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"

fail() {
  echo "FAILED: $*"
  cat out err
  exit 1
}

# expect CODE SENTENCE PROGRAM [ARG...]: the exit code, and a sentence that is printed once.
expect() {
  local code=$1 sentence=$2 status=0
  shift 2
  timeout 180 "${run[@]}" "$@" >out 2>err || status=$?
  [ "$status" -eq "$code" ] || fail "$* ends with $status, expected $code"
  [ "$(cat out err | sed -E 's/^([a-z_]+: )rank [0-9]+: /\1/' | grep -Fc -- "$sentence")" -eq 1 ] || fail "$* does not say once: $sentence"
}

# refuse SENTENCE PROGRAM [ARG...]: options that end with 2. A process finds them before it speaks with others, so one without mpirun, which
# starts five times as fast, shows them.
single=(env OMPI_MCA_pml=ob1)
refuse() {
  local run=("${single[@]}")
  expect 2 "$@"
}

# alone COMMAND: where several ranks would show little more, "${run[@]}" of the command is one process, but for the full run. Likewise
# "${few[@]}" PROGRAM [ARG...].
few=("${single[@]}")
[ -z "${SAR_FULL_RUN:-}" ] || few=("${run[@]}")
alone() {
  local run=("${few[@]}")
  "$@"
}

# tu_folder GRAPHS: tu/ with so many graphs in the files of TU: rings are of class -1, stars of class 1; nodes have labels.
tu_folder() {
  mkdir tu
  awk -v graphs="$1" 'BEGIN {
    for (g = 1; g <= graphs; ++g) {
      n = 4 + g * 7 % 5
      print g % 2 ? -1 : 1 >"tu/R_graph_labels.txt"
      for (i = 1; i <= n; ++i) {
        print g >"tu/R_graph_indicator.txt"
        print (g + i) % 3 >"tu/R_node_labels.txt"
        j = g % 2 ? i % n + 1 : 1
        if (i != j) print base + i ", " base + j "\n" base + j ", " base + i >"tu/R_A.txt"
      }
      base += n
    }
  }'
}
