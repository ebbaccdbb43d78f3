#!/usr/bin/env bash
# SPDX-License-Identifier: MIT

# inputs_test.sh MPIRUN_SH MPIEXEC RANKS TOOLS_DIR PRECISION: inputs of train that mislead silently elsewhere: links of a bipartite graph without structure,
# features whose sum cancels, predictions that are not finite, a node type without nodes, and a checkpoint as initial weights.
data=$(cd "$(dirname "$0")/../data/formats/npy" && pwd)
source "$(dirname "$0")/../support/program_test.sh"
mpirun=$1 mpiexec=$2 train=$programs/train

# on RANKS ARG...: trains, and fails when that fails.
on() {
  local number=$1
  shift
  timeout 180 "$mpirun" "$mpiexec" "$number" "$train" "$@" </dev/null >out 2>err || fail "train $* on $number ranks ends with $?"
}

# Users 0 to 99 and items 100 to 249, joined at random; features tell users from items. mixed.csv has the edges of both.csv with the ids
# 7 v + 3 modulo 250, so that ids do not tell the kind.
awk 'BEGIN { x = 1
  for (u = 0; u < 100; ++u) for (k = 0; k < 10; ++k) { x = (x * 48271) % 2147483647; i = 100 + x % 150; print u "," i > "one.csv"; print u "," i "\n" i "," u > "both.csv"
    print (7 * u + 3) % 250 "," (7 * i + 3) % 250 "\n" (7 * i + 3) % 250 "," (7 * u + 3) % 250 > "mixed.csv" } }'
mkdir kinds
# kinds A B: the features of node w, which is user or item A (w + B) modulo 250.
kinds() {
  printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "{'descr': '|u1', 'fortran_order': False, 'shape': (250, 2), }"
  for w in $(seq 0 249); do if [ $(($1 * (w + $2) % 250)) -lt 100 ]; then printf '\x01\x00'; else printf '\x00\x01'; fi; done
}
kinds 1 0 >x.npy
kinds 143 247 >mixed.npy
for dataset in one both mixed; do
  for from in global source; do
    [ "$dataset" = one ] && reverse=--add-reverse-edges || reverse=
    [ "$dataset" = mixed ] && features=mixed.npy || features=x.npy
    on 2 --dataset $dataset.csv --node-data features=$features --task link --predictor mlp --layers 1 --hidden 8 --epochs 20 --dropout 0 $reverse \
      --negatives-from $from --split-edges 0.1,0.3 --eval-every 20 --log log
    grep -q 'a bipartite graph' out || fail "$dataset is not called bipartite: $(cat out)"
    auc=$(sed -n 's/.*"test_auc":\([0-9.]*\).*/\1/p' log | tail -n 1)
    awk -v a="$auc" 'BEGIN { exit !(a > 0.42 && a < 0.58) }' || fail "AUC $auc of $dataset from $from, expected 0.5"
  done
done

# The model of a checkpoint, and of the last one of a directory.
mkdir d
for name in edge_index features labels train_mask val_mask test_mask; do cp "$data/$name.npy" d; done
net=(--dataset d --layers 2 --hidden 8 --batch-norm --dropout 0.2)
on 2 "${net[@]}" --epochs 4 --checkpoint c --checkpoint-every 2 --predict p
on 1 "${net[@]}" --epochs 0 --init-weights c --predict last
cmp p/labels.npy last/labels.npy || fail "the last checkpoint gives other predictions"
on 2 "${net[@]}" --epochs 0 --init-weights c/checkpoint-00000002.safetensors --predict second --save-weights w.safetensors
on 1 "${net[@]}" --epochs 0 --init-weights w.safetensors --predict again
! cmp -s last/logits.npy second/logits.npy || fail "the last checkpoint is read in place of the one that is named"
cmp second/logits.npy again/logits.npy || cmp second/labels.npy again/labels.npy || fail "the saved weights give other predictions"
expect 1 "of another model" "$train" --dataset d --layers 2 --hidden 8 --epochs 0 --init-weights c --predict p
expect 1 "kinds: the directory has no checkpoint, expected one, or a file of weights" "$train" "${net[@]}" --epochs 0 --init-weights kinds --predict p

# Rows whose sum cancels stay small; predictions that overflow are an error.
header() { printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': (12, 2), }"; }
{
  header
  for v in $(seq 12); do printf '\x00\x00\x80\x3f\xff\xff\x7f\xbf'; done # 1 and almost -1
} >d/features.npy
plain=(--dataset d --layers 2 --hidden 8)
on 2 "${plain[@]}" --normalize-features --epochs 1 --save-weights w.safetensors --log log
loss=$(sed -n 's/.*"loss":\([-0-9.e+]*\),.*/\1/p' log)
awk -v a="$loss" 'BEGIN { exit !(a < 20) }' || fail "the loss is $loss: features are not normalized"
{
  header
  for v in $(seq 12); do printf '\x00\x00\x7f\x7f\x00\x00\x7f\x7f'; done # 3e38
} >d/features.npy
[ "$5" = double ] || expect 1 "q/logits.npy: the prediction of row " "$train" "${plain[@]}" --epochs 0 --init-weights w.safetensors --predict q

# A node type without nodes changes nothing.
for types in some more; do
  mkdir -p $types/nodes/paper "$types/edges/paper:cites:paper"
  for name in features labels train_mask val_mask test_mask; do cp "$data/$name.npy" $types/nodes/paper; done
  cp "$data/edge_index.npy" "$types/edges/paper:cites:paper"
done
paper='{"name": "paper", "num_nodes": 12}' cites='"edge_types": [{"src_type": "paper", "name": "cites", "dst_type": "paper", "num_edges": 24}]'
echo '{"format": "sar-dataset", "version": 1, "node_types": ['"$paper"'], '"$cites"'}' >some/hetero.json
echo '{"format": "sar-dataset", "version": 1, "node_types": [{"name": "author", "num_nodes": 0}, '"$paper"'], '"$cites"'}' >more/hetero.json
for number in 1 "$ranks"; do
  for types in some more; do
    on "$number" --dataset $types --category paper --model rgcn --layers 2 --hidden 8 --epochs 2 --log log --save-weights $types.safetensors
    grep -oE '"(loss|[a-z]+_acc)":[^,]*' log >$types.txt
  done
  cmp some.txt more.txt || fail "a type without nodes changes the training: $(paste some.txt more.txt)"
done
