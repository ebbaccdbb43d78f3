#!/usr/bin/env bash
# SPDX-License-Identifier: MIT

# samplers.sh TRAIN DATA OUT [RUNS]: the table of mini-batches in RESULTS.md. On the sbm graph and on Cora (DATA/cora), TRAIN trains a SAGE with each
# way to make batches, on RUNS seeds (5), and a line of the table has rows of the input for each seed, seeds a second (the median of the epochs), and
# the test accuracy of the best epoch. Of clusters and saint, a seed is a training node of a batch. The first way of a graph is the reference of the
# ratios. OUT gets the logs; what has its log there is not run again. THREADS (2). GRAPHS (sbm cora): those of the table.
set -euo pipefail
train=$1 data=$2 out=$3 runs=${4:-5}
mkdir -p "$out"

# GRAPH | options of all ways
graphs() {
  echo "sbm|--graph sbm --nodes 20000 --degree 28 --layers 3 --hidden 64 --batch-norm --dropout 0.3 --lr 0.003 --epochs 10"
  echo "cora|--dataset $data/cora --normalize-features --layers 2 --hidden 64 --dropout 0.5 --weight-decay 5e-4 --epochs 30"
}
# WAY | options on sbm | options on Cora
ways() {
  echo "neighbor|--sample 15,10,5 --batch-size 512|--sample 10,5 --batch-size 32"
  echo "neighbor, redraw|--sample 15,10,5 --batch-size 512 --sample-redraw|--sample 10,5 --batch-size 32 --sample-redraw"
  echo "labor|--sample 15,10,5 --batch-size 512 --sampler labor|--sample 10,5 --batch-size 32 --sampler labor"
  echo "labor, redraw|--sample 15,10,5 --batch-size 512 --sampler labor --sample-redraw|--sample 10,5 --batch-size 32 --sampler labor --sample-redraw"
  echo "clusters|--clusters 200 --clusters-per-batch 10|--clusters 50 --clusters-per-batch 5"
  echo "saint-node|--sampler saint-node --batch-size 800|--sampler saint-node --batch-size 600"
  echo "saint-edge|--sampler saint-edge --batch-size 400|--sampler saint-edge --batch-size 300"
  echo "saint-walk|--sampler saint-walk --batch-size 270 --walk-length 2|--sampler saint-walk --batch-size 200 --walk-length 2"
}

echo "| graph | batches | input rows per seed | ratio | seeds per second | ratio | test accuracy |"
echo "|---|---|---|---|---|---|---|"
while IFS='|' read -r graph options; do
  [[ " ${GRAPHS:-sbm cora} " == *" $graph "* ]] || continue
  reference=
  while IFS='|' read -r way on_sbm on_cora; do
    log=$out/$graph-${way//, /-}.jsonl
    how=$on_sbm
    [ "$graph" = sbm ] || how=$on_cora
    if ! { [ -s "$log" ] && tail -n 1 "$log" | grep -q '^{"runs"'; }; then
      # shellcheck disable=SC2086
      "$train" $options $how --runs "$runs" --threads "${THREADS:-2}" --log "$log" >"${log%.jsonl}.out"
    fi
    rates=$(sed -n 's/.*"rows_per_seed":\([0-9.e+]*\),.*"seeds_per_second":\([0-9.e+]*\).*/\1 \2/p' "$log" | sort -k 2 -g |
      awk '{ rows += $1; rate[NR] = $2 } END { print rows / NR, rate[int((NR + 1) / 2)] }')
    reference=${reference:-$rates}
    accuracy=$(tail -n 1 "$log" | sed 's/.*"test_acc":{"mean":\([0-9.e+-]*\),"std":\([0-9.e+-]*\).*/\1 \2/' |
      awk '{ printf "%.1f &plusmn; %.1f", 100 * $1, 100 * $2 }')
    echo "$rates $reference" | awk -v graph="$graph" -v way="$way" -v accuracy="$accuracy" \
      '{ printf "| %s | %s | %.1f | %.2f | %.0f | %.2f | %s |\n", graph, way, $1, $1 / $3, $2, $2 / $4, accuracy }'
  done < <(ways)
done < <(graphs)
