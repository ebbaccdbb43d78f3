#!/usr/bin/env bash
# SPDX-License-Identifier: MIT

# plan.sh TOOLS_DIR CORES LINK RANKS BUDGETS NAME:DATASET...: what sar-plan says beside what train measures, for SAGE and GAT; a row of a Markdown table for each number of
# ranks and budget of halo rows: predicted and measured MB of a rank, and seconds of a training step (the median of the epochs of two runs, one before and one after plan), with their errors.
#     plan.sh build/release/tools 2 100gbit "1 2 4 8" "0 1048576 262144" cora:data/cora
# The rates of the machine are measured with as many ranks as the training has, which is what a user of the plan should do. MPIRUN: the command that starts
# a program on N ranks, "mpirun --bind-to none --oversubscribe -n"; OPTIONS: of train, besides the model.
set -euo pipefail
tools=$(realpath "$1") cores=$2 link=$3 ranks=$4 budgets=$5
shift 5
read -ra mpirun <<<"${MPIRUN:-mpirun --bind-to none --oversubscribe -n}"
read -ra options <<<"${OPTIONS:---hidden 128 --batch-norm --threads 1 --epochs 6 --eval-every 0 --partition random}"
export OMPI_MCA_mpi_yield_when_idle=1  # more ranks than cores
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

number() { sed -n "s/.*\"$1\": *\([0-9.e+-]*\).*/\1/p" "$2" | head -n 1; }
# run N PROGRAM ARG...
run() { "${mpirun[@]}" "$1" "$tools/$2" "${@:3}" >"$scratch/out" 2>&1 || { cat "$scratch/out" >&2; exit 1; }; }
# the median of the epochs after the first of each of these logs
median_seconds() {
  sed -n 's/^{.*"epoch": *\([0-9]*\).*"seconds": *\([0-9.e+-]*\).*/\1 \2/p' "$@" | awk '$1 > 1 { print $2 }' | sort -g |
    awk '{ x[NR] = $1 } END { print x[int((NR + 1) / 2)] }'
}

echo "| graph | model | P | budget, bytes | memory, MB: measured | predicted | | time, s: measured | predicted | |"
echo "|---|---|---|---|---|---|---|---|---|---|"
for graph in "$@"; do
  for model in sage gat; do
    for n in $ranks; do
      for budget in $budgets; do
        [ "$n" -gt 1 ] || [ "$budget" = "${budgets%% *}" ] || continue  # one rank has no halo
        training=(--dataset "${graph#*:}" --model "$model" "${options[@]}" --max-halo-bytes "$budget")
        rm -f "$scratch/log" "$scratch/log2"
        run "$n" train "${training[@]}" --log "$scratch/log"
        run "$n" plan "${training[@]}" --ranks "$n" --link "$link" --cores "$(awk -v c="$cores" -v n="$n" 'BEGIN { print (n > c) ? c / n : 1 }')" \
          --rates "$scratch/${graph%%:*}-$model-$n" --json "$scratch/plan"
        run "$n" train "${training[@]}" --log "$scratch/log2"
        awk -v g="${graph%%:*}" -v m="$model" -v n="$n" -v b="$budget" -v mm="$(sed -n 's/.*"peak_bytes": *\([0-9]*\).*/\1/p' "$scratch/log" | sed -n 3p)" \
          -v pm="$(number peak_bytes "$scratch/plan")" -v mt="$(median_seconds "$scratch/log" "$scratch/log2")" -v pt="$(number seconds "$scratch/plan")" \
          'BEGIN { printf "| %s | %s | %d | %s | %.1f | %.1f | %+.1f %% | %.4f | %.4f | %+.0f %% |\n", g, m, n, b, mm / 1e6, pm / 1e6, 100 * (pm / mm - 1), mt, pt, 100 * (pt / mt - 1) }'
      done
    done
  done
done
