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
refuse() {
  local run=(env OMPI_MCA_pml=ob1)
  expect 2 "$@"
}
