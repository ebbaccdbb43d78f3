#!/usr/bin/env bash
# batch_rows.sh TRAIN OUT [NODES]: the table of rows that ranks fetch for mini-batches, in RESULTS.md. TRAIN trains a SAGE on the sbm graph of NODES nodes
# (20000), metis or ldg partition, with a batch of 1024 seeds of all ranks. For each number of ranks in RANKS (2 4) a line has
#     together       rows of the input for each seed: all ranks work on one batch, and each row is an input once
#     apart          the same where each rank makes a batch of its own, of 1024 / ranks seeds, and reads all rows of it: a batch of that size on one rank
#     fetched        rows of other ranks for each seed that the first layers fetch
#     apart_fetched  the same where each rank makes a batch of its own: apart, less the share 1 / ranks of its own rows with a random partition
#     kept           fetched, with --halo-cache-bytes of 1/16, 1/4 and all of the rows of other ranks
# in the mean over the epochs after the first, and whether the losses with the three caches are the same text. MPIRUN: "mpirun --bind-to none --oversubscribe -n".
set -euo pipefail
train=$1 out=$2 nodes=${3:-20000}
features=100
mkdir -p "$out"
read -ra mpirun <<<"${MPIRUN:-mpirun --bind-to none --oversubscribe -n}"
read -ra ranks <<<"${RANKS:-2 4}"
export OMPI_MCA_mpi_yield_when_idle=1  # more ranks than cores
options=(--graph sbm --nodes "$nodes" --degree 28 --features $features --layers 3 --hidden 64 --batch-norm --epochs 4 --eval-every 0 --threads 1
  --sample 15,10,5 --partition "${PARTITION:-random}")
number() { sed -n "s/.*\"$1\":\([0-9.e+-]*\).*/\1/p" "$2" | tail -n +2 | awk '{ sum += $1 } END { printf "%.2f", NR ? sum / NR : 0 }'; }
# run RANKS NAME ARG...
run() { [ -s "$out/$2.jsonl" ] || "${mpirun[@]}" "$1" "$train" "${options[@]}" "${@:3}" --log "$out/$2.jsonl" >"$out/$2.out"; }
losses() { grep -o '"loss":[^,]*' "$out/$1.jsonl"; }

echo "| ranks | together | apart | fetched | apart, fetched | kept 1/16 | kept 1/4 | kept all | the same losses |"
echo "|---|---|---|---|---|---|---|---|---|"
for n in "${ranks[@]}"; do
  run "$n" "together$n" --batch-size 1024
  run 1 "apart$n" --batch-size $((1024 / n))
  kept=()
  for part in 16 4 1; do
    run "$n" "kept$n-$part" --batch-size 1024 --halo-cache-bytes $((nodes * (n - 1) / n * features * 4 / part))
    kept+=("$(number halo_rows_per_seed "$out/kept$n-$part.jsonl")")
  done
  same=yes
  for part in 4 1; do [ "$(losses "kept$n-16")" = "$(losses "kept$n-$part")" ] || same=no; done
  apart=$(number rows_per_seed "$out/apart$n.jsonl")
  echo "| $n | $(number rows_per_seed "$out/together$n.jsonl") | $apart | $(number halo_rows_per_seed "$out/together$n.jsonl") |" \
    "$(awk -v rows="$apart" -v n="$n" 'BEGIN { printf "%.2f", rows * (n - 1) / n }') | ${kept[0]} | ${kept[1]} | ${kept[2]} | $same |"
done
