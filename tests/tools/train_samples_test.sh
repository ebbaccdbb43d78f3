#!/usr/bin/env bash
# SPDX-License-Identifier: MIT

# train_samples_test.sh MPIRUN_SH MPIEXEC RANKS TOOLS_DIR PRECISION: train --task graph on folders of many graphs: classes, values, several
# labels; the same curve on one rank and on RANKS; runs, checkpoints, predictions; what is refused.
source "$(dirname "$0")/../support/program_test.sh"
precision=$5

# Of each graph a value, several labels, and numbers of nodes and edges.
tu_folder 60
awk 'BEGIN {
  for (g = 1; g <= 60; ++g) {
    n = 4 + g * 7 % 5
    print n / 2 >"values.txt"
    print (g % 2) "," (g % 3 == 0 ? "" : n % 2) "," (n > 5) >"several.txt"
    print n >"nodes.txt"
    print g % 2 ? 2 * n : 2 * (n - 1) >"edges.txt"
  }
}'
mkdir -p ogb/raw ogb/split/scheme values
cp tu/R_A.txt tu/R_graph_indicator.txt tu/R_node_labels.txt values/
cp values.txt values/R_graph_attributes.txt
cp nodes.txt ogb/raw/num-node-list.csv
cp edges.txt ogb/raw/num-edge-list.csv
cp several.txt ogb/raw/graph-label.csv
awk -F, 'NR == FNR { graph[FNR] = $1; if (!($1 in first)) first[$1] = FNR; next }
         { print $1 - first[graph[$1]] "," $2 - first[graph[$1]] }' tu/R_graph_indicator.txt tu/R_A.txt >ogb/raw/edge.csv
awk '{ print $1 "," NR % 2 }' tu/R_node_labels.txt >ogb/raw/node-feat.csv
seq 0 39 >ogb/split/scheme/train.csv
seq 40 49 >ogb/split/scheme/valid.csv
seq 50 59 >ogb/split/scheme/test.csv

net=(--hidden 16 --layers 2 --lr 0.02 --dropout 0.1 --norm batch)
# curve LOG: its losses and scores
curve() { sed -n 's/.*"loss":\([^,]*\),.*"train_\([a-z]*\)":\([^,]*\),"val_[a-z]*":\([^,]*\),.*/\1 \3 \4/p' "$1"; }
# same LOG LOG: the same curve to rounding
same() {
  [ "$(curve "$1" | wc -l)" -eq 8 ] || fail "$1 has $(curve "$1" | wc -l) epochs"
  paste -d ' ' <(curve "$1") <(curve "$2") | awk -v most="$([ "$precision" = double ] && echo 1e-9 || echo 2e-3)" '
    { for (i = 1; i <= NF / 2; ++i) { d = $i - $(i + NF / 2); if (d < 0) d = -d; if (d > most * (1 + $i)) exit 1 } }' ||
    fail "$1 and $2 differ: $(paste -d ' ' <(curve "$1") <(curve "$2"))"
}
# both NAME ARG...: trains on one rank and on all
both() {
  local name=$1
  shift
  "${run[@]:0:2}" 1 "$programs/train" --task graph "${net[@]}" --epochs 8 "$@" --log "$name.1" >out 2>err || fail "$name on one rank ends with $?"
  "${run[@]}" "$programs/train" --task graph "${net[@]}" --epochs 8 "$@" --log "$name.n" >out 2>err || fail "$name ends with $?"
  same "$name.1" "$name.n"
}
both classes --dataset tu --model gin --readout sum --batch-size 16 --split-graphs 0.6,0.2,0.2
grep -q "R: classes 0 to 1 are the graph labels -1, 1" out || fail "no word about the classes"
grep -q "R: 60 graphs, .* nodes, .* edges, 3 features, 2 classes; $ranks ranks" out || fail "no first line"
grep -q "36 training, 12 validation and 12 test graphs" out || fail "no split"
grep -q "3 batches" out || fail "not 3 batches"
tail -n 2 classes.n | head -n 1 | sed 's/.*"test_acc":\([^,]*\),.*/\1/' | awk '{ exit !($1 > 0.8) }' ||
  fail "rings and stars are not told apart: $(cat classes.n)"
both several --dataset ogb --model sage --readout mean --head-layers 2 --loss bce --metric roc-auc,average-precision
grep -q "3 labels a graph, loss bce" out || fail "not several labels"
both numbers --dataset values --model gcn --readout max --jk cat --add-self-loops --split-graphs 40,10,10 --metric mae,rmse
grep -q "1 value a graph, loss mse" out || fail "not values"

awk '{ print NR % 3 }' tu/R_A.txt >values/R_edge_labels.txt
awk '{ print NR % 3 "," NR % 2 }' tu/R_A.txt >ogb/raw/edge-feat.csv
both edges --dataset values --model gin --edge-features --split-graphs 40,10,10
both atoms --dataset ogb --model gin --edge-features --add-reverse-edges --readout mean --loss bce
grep -q "features of the edges are not used" out && fail "features of the edges are used"
expect 0 "features of the edges are not used" "$programs/train" --task graph --dataset ogb "${net[@]}" --epochs 1 --loss bce
expect 1 "R: the edges have no features, expected some for --edge-features" \
  "$programs/train" --task graph --dataset tu --model gin --edge-features --split-graphs 0.6,0.2,0.2
refuse "--edge-features: needs --task graph and --model gin" "$programs/train" --task graph --dataset tu --model gcn --edge-features

# Batches of classes of weight 0 are skipped. Graphs without nodes, one of them the last, are graphs, also alone in a batch.
both weights --dataset tu --model gin --batch-size 2 --split-graphs 0.6,0.2,0.2 --class-weights 0,1
mkdir gaps
cp tu/R_A.txt tu/R_node_labels.txt gaps/
awk '{ print $1 + int(($1 + 9) / 20) }' tu/R_graph_indicator.txt >gaps/R_graph_indicator.txt
awk '{ print } NR % 20 == 10 || NR == 60 { print 1 }' tu/R_graph_labels.txt >gaps/R_graph_labels.txt
both gaps --dataset gaps --model gin --readout mean --batch-size 1 --split-graphs 0.8,0.1,0.1 --predict gaps_out
grep -q "R: 4 graphs have no nodes, the first is graph 11: the readout is 0" out || fail "no word about graphs without nodes"
[ "$(wc -c <gaps_out/labels.npy)" -eq $((128 + 8 * 64)) ] || fail "not 64 predictions"

# A killed run goes on within the epoch; the best weights are kept, and predict.
kept=(--task graph --dataset tu --model gin "${net[@]}" --split-graphs 0.6,0.2,0.2 --split-seed 3 --batch-size 10 --keep best)
"${run[@]}" "$programs/train" "${kept[@]}" --epochs 8 --log whole >out 2>err || fail "the whole run ends with $?"
"${run[@]}" "$programs/train" "${kept[@]}" --epochs 5 --checkpoint c --checkpoint-batches 2 --checkpoint-every 1 --log part >out 2>err || fail "the part ends with $?"
"${run[@]:0:2}" 1 "$programs/train" "${kept[@]}" --epochs 8 --checkpoint c --resume --log part --predict p --save-weights w.safetensors >out 2>err || fail "the rest ends with $?"
same whole part
for file in logits labels split; do [ -s p/$file.npy ] || fail "no $file.npy"; done
expect 0 "initial weights" "$programs/train" "${kept[@]/best/last}" --epochs 0 --init-weights c --predict q
expect 1 "made with --readout sum, expected max as in this run" \
  "$programs/train" "${kept[@]}" --readout max --epochs 9 --checkpoint c --resume
# One edge that joins other nodes, one node of another label.
for change in "edges R_A 1,2s/2/4/" "features R_node_labels 1s/.*/0/"; do
  read -r what file edit <<<"$change"
  cp "tu/$file.txt" kept.txt
  sed -i "$edit" "tu/$file.txt"
  alone expect 1 "made with $what whose hash is " "$programs/train" "${kept[@]}" --epochs 9 --checkpoint c --resume
  mv kept.txt "tu/$file.txt"
done
"${run[@]}" "$programs/train" --task graph --dataset tu --model gat --heads 2 "${net[@]}" --epochs 2 --split-graphs 0.6,0.2,0.2 --runs 2 --stop-after 1 >out 2>err ||
  fail "two runs end with $?"
grep -q "^mean " out || fail "no mean of two runs"

# What does not go: one sentence.
refuse "--task: graph needs a --dataset" "$programs/train" --task graph
for option in "--sample 3" --mfg "--embedding 3" "--category x" "--predict-layer 1 --predict p" --drop-duplicates "--mode one_shot" "--partition ldg"; do
  # shellcheck disable=SC2086
  refuse "${option%% *}: cannot be combined with --task graph" "$programs/train" --task graph --dataset tu $option
done
refuse "--model: rgcn reads types of edges, expected sage, gcn, gat, gatv2 or gin for --task graph" "$programs/train" --task graph --dataset tu --model rgcn
refuse "--readout: needs --task graph" "$programs/train" --readout sum
refuse "--head-layers: needs --task graph" "$programs/train" --head-layers 2
refuse "--split-graphs: needs --task graph" "$programs/train" --split-graphs 0.6,0.2,0.2
refuse "--split-nodes: needs --task node" "$programs/train" --task graph --dataset tu --split-nodes 0.6,0.2,0.2
refuse "--split-graphs: the shares are 1.6 together" "$programs/train" --task graph --dataset tu --split-graphs 0.6,0.5,0.5
refuse "--split-seed: needs --split-nodes or --split-graphs" "$programs/train" --split-seed 3
expect 1 "there is no split: no graph is a training graph, expected split/" "$programs/train" --task graph --dataset tu --epochs 1
expect 1 "the training graphs shall be 100, and there are 60 graphs with a label" "$programs/train" --task graph --dataset tu --split-graphs 100,0,0
expect 1 "tu: is a TU dataset of graph samples, expected --task graph, or a graph" "$programs/train" --dataset tu
expect 1 "there are at least 60 graphs, expected one (a dataset of node properties), or --task graph" "$programs/train" --dataset ogb
expect 1 "missing: there is no such file or directory" "$programs/train" --task graph --dataset missing
printf '1\n2\n1\n' >tu/R_graph_indicator.txt
expect 1 "R_graph_indicator.txt: line 3: the node is of graph 1 and that of the line before of graph 2, expected ascending numbers" \
  "$programs/train" --task graph --dataset tu --split-graphs 0.6,0.2,0.2
