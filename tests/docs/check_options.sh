#!/usr/bin/env bash
# SPDX-License-Identifier: MIT

# check_options.sh TOOLS_DIR FILE.md...: fails when a document names an option, in code, that none of the programs has.
set -euo pipefail
tools=$1
shift
# of other programs: MPI, Slurm, torchrun, TensorBoard, CMake, pip, pkg-config, git, PETSc, and scripts of the repository
others='--all --bind-to --build --cells --cflags --counts --cpu-bind --cpus-per-task --format --full --gate --head --hostfile --install
        --kill-on-bad-exit --library --libs --logdir --map-by --mca --mpi --no-build-isolation --no-kill --nodes --noheader --noise
        --nproc-per-node --ntasks-per-node --oversubscribe --prefix --preset --quick --ranks --requeue --responding --same
        --save-orig-nids --seeds --shape --signal --source-file --structures --target --test-dir --train-forces --with-cc --with-cxx --with-debugging --with-fc
        --with-x'
known=$({
  # shellcheck disable=SC2086
  printf '%s\n' $others
  for program in train partition plan generate; do "$tools/$program" --help-all | grep -oE -- '--[a-z][a-z0-9-]*'; done
})
status=0
for document in "$@"; do
  # code is between backticks, in fences, and in lines that begin with four blanks
  awk -v known="$known" -v document="$document" '
    function check(code,  option) {
      while (match(code, /(^|[^A-Za-z0-9-])--[a-z][a-z0-9-]*/)) {
        option = substr(code, RSTART, RLENGTH)
        sub(/^[^-]/, "", option)
        if (!(option in has)) { print document ":" FNR ": no program has " option; bad = 1 }
        code = substr(code, RSTART + RLENGTH)
      }
    }
    BEGIN { count = split(known, names, "\n"); for (i = 1; i <= count; ++i) has[names[i]] = 1 }
    /^```/ { fenced = !fenced; next }
    fenced || /^    / { check($0); next }
    {
      text = $0
      while (match(text, /`[^`]*`/)) {
        code = substr(text, RSTART, RLENGTH)
        text = substr(text, RSTART + RLENGTH)
        check(code)
      }
    }
    END { exit bad }' "$document" || status=1
done
exit $status
