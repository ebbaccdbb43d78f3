#!/usr/bin/env bash
# check_options.sh TOOLS_DIR FILE.md...: fails when a document names an option, in code, that none of the programs has.
set -euo pipefail
tools=$1
shift
# of other programs: MPI, Slurm, CMake, pkg-config, git, and scripts of the repository
others='--all --bind-to --build --cached --cflags --counts --cpu-bind --cpus-per-task --full --gate --hostfile --install --libs --map-by --mca
        --mpi --noise --ntasks-per-node --out --oversubscribe --prefix --preset --quick --save-orig-nids --source-file --target'
{
  printf '%s\n' $others
  for program in train partition plan generate; do "$tools/$program" --help-all | grep -oE -- '--[a-z][a-z0-9-]*'; done
} | sort -u >known_options
for document in "$@"; do
  # code is between backticks, in fences, and in lines that begin with four blanks
  awk '/^```/ { fenced = !fenced; next }
       fenced || /^    / { print FNR ": " $0; next }
       { text = $0; while (match(text, /`[^`]*`/)) { print FNR ": " substr(text, RSTART, RLENGTH); text = substr(text, RSTART + RLENGTH) } }' "$document" |
    while IFS=: read -r line code; do
      for option in $(grep -oE -- '(^|[^a-zA-Z0-9-])--[a-z][a-z0-9-]*' <<<"$code" | grep -oE -- '--[a-z].*'); do
        grep -qx -- "$option" known_options || echo "$document:$line: no program has $option"
      done
    done
done >complaints
cat complaints
[ ! -s complaints ]
