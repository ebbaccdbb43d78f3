#!/usr/bin/env bash
# SPDX-License-Identifier: MIT

# batch_rows.sh TRAIN OUT [NODES|DATASET]: the tables of rows that ranks fetch for mini-batches, in RESULTS.md. TRAIN trains a SAGE on the sbm graph of
# NODES nodes (20000) or on the directory DATASET, random partition, with a batch of 1024 seeds of all ranks. For each number of ranks in RANKS (2 4) a
# line of the first table has
#     together       rows of the input for each seed: all ranks work on one batch, and each row is an input once
#     apart          the same where each rank makes a batch of its own, of 1024 / ranks seeds, and reads all rows of it: a batch of that size on one rank
#     fetched        rows of other ranks for each seed that the first layers fetch
#     apart_fetched  the same where each rank makes a batch of its own: apart, less the share 1 / ranks of its own rows with a random partition
#     kept           fetched, with --halo-cache-bytes of 1/16, 1/4 and all of the rows of other ranks
# in the mean over the epochs after the first, and whether the losses with the three caches are the same text. The second table has the ways to make
# batches: rows of the input and of other ranks for each seed, and seeds a second (the median of the epochs) beside those of neighbor sampling. Of
# clusters and saint, a seed is a training node of a batch. What has its log in OUT is not run again. PARTITION (random). EPOCHS (4). TABLES (cache ways).
# MPIRUN: "mpirun --bind-to none --oversubscribe -n".
set -euo pipefail
train=$1 out=$2 of=${3:-20000}
if [ -d "$of" ]; then
  IFS=', ' read -r nodes features < <(head -c 128 "$of/features.npy" | grep -oaE '\([0-9]+, [0-9]+\)' | tr -d '()')
  graph=(--dataset "$of")
else
  nodes=$of features=100
  graph=(--graph sbm --nodes "$nodes" --degree 28 --features $features)
fi
mkdir -p "$out"
read -ra mpirun <<<"${MPIRUN:-mpirun --bind-to none --oversubscribe -n}"
read -ra ranks <<<"${RANKS:-2 4}"
export OMPI_MCA_mpi_yield_when_idle=1  # more ranks than cores
options=("${graph[@]}" --layers 3 --hidden 64 --batch-norm --epochs "${EPOCHS:-4}" --eval-every 0 --threads 1 --partition "${PARTITION:-random}")
neighbor=(--sample 15,10,5 --batch-size)
number() { sed -n "s/.*\"$1\":\([0-9.e+-]*\).*/\1/p" "$2" | tail -n +2 | awk '{ sum += $1 } END { printf "%.2f", NR ? sum / NR : 0 }'; }
rate() { sed -n 's/.*"seeds_per_second":\([0-9.e+]*\).*/\1/p' "$1" | sort -g | awk '{ rate[NR] = $1 } END { printf "%.0f", rate[int((NR + 1) / 2)] }'; }
# run RANKS NAME ARG...
run() { [ -s "$out/$2.jsonl" ] || "${mpirun[@]}" "$1" "$train" "${options[@]}" "${@:3}" --log "$out/$2.jsonl" >"$out/$2.out"; }
losses() { grep -o '"loss":[^,]*' "$out/$1.jsonl"; }

# The ways to make batches of about as many seeds, half of the nodes being seeds: WAY | options.
ways() {
  local of_all=$((1 + nodes / 2048))
  echo "neighbor|${neighbor[*]} 1024"
  echo "labor|${neighbor[*]} 1024 --sampler labor"
  echo "clusters|--clusters $((20 * of_all)) --clusters-per-batch 20"
  echo "saint-node|--sampler saint-node --batch-size 2048"
  echo "saint-edge|--sampler saint-edge --batch-size 1024 --saint-coverage 10"
  echo "saint-walk|--sampler saint-walk --batch-size 700 --walk-length 2 --saint-coverage 10"
}

if [[ " ${TABLES:-cache ways} " == *" cache "* ]]; then
  echo "| ranks | together | apart | fetched | apart, fetched | kept 1/16 | kept 1/4 | kept all | the same losses |"
  echo "|---|---|---|---|---|---|---|---|---|"
  for n in "${ranks[@]}"; do
    run "$n" "neighbor$n" "${neighbor[@]}" 1024
    run 1 "apart$n" "${neighbor[@]}" $((1024 / n))
    kept=()
    for part in 16 4 1; do
      run "$n" "kept$n-$part" "${neighbor[@]}" 1024 --halo-cache-bytes $((nodes * (n - 1) / n * features * 4 / part))
      kept+=("$(number halo_rows_per_seed "$out/kept$n-$part.jsonl")")
    done
    same=yes
    for part in 4 1; do [ "$(losses "kept$n-16")" = "$(losses "kept$n-$part")" ] || same=no; done
    apart=$(number rows_per_seed "$out/apart$n.jsonl")
    echo "| $n | $(number rows_per_seed "$out/neighbor$n.jsonl") | $apart | $(number halo_rows_per_seed "$out/neighbor$n.jsonl") |" \
      "$(awk -v rows="$apart" -v n="$n" 'BEGIN { printf "%.2f", rows * (n - 1) / n }') | ${kept[0]} | ${kept[1]} | ${kept[2]} | $same |"
  done
fi
if [[ " ${TABLES:-cache ways} " == *" ways "* ]]; then
  echo "| ranks | batches | rows | fetched | seeds a second | ratio |"
  echo "|---|---|---|---|---|---|"
  for n in "${ranks[@]}"; do
    while IFS='|' read -r way how; do
      # shellcheck disable=SC2086
      run "$n" "$way$n" $how </dev/null
      echo "| $n | $way | $(number rows_per_seed "$out/$way$n.jsonl") | $(number halo_rows_per_seed "$out/$way$n.jsonl") | $(rate "$out/$way$n.jsonl") |" \
        "$(awk -v a="$(rate "$out/$way$n.jsonl")" -v b="$(rate "$out/neighbor$n.jsonl")" 'BEGIN { printf "%.2f |", a / b }')"
    done < <(ways)
  done
fi
