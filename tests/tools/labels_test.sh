#!/usr/bin/env bash
# SPDX-License-Identifier: MIT

# labels_test.sh MPIRUN_SH MPIEXEC RANKS TOOLS_DIR: nodes without a label count nowhere: with them in the masks, train has the loss and the
# accuracy that it has with smaller masks, full batch and sampled, on any number of ranks, and says how many they are.
data=$(cd "$(dirname "$0")/../data/formats/npy" && pwd)
source "$(dirname "$0")/../support/program_test.sh"
mpirun=$1 mpiexec=$2

mkdir all some
for name in edge_index features; do cp "$data/$name.npy" all; done
cp "$data/labels.missing.npy" all/labels.npy
cp all/* some
for mask in train_mask val_mask test_mask; do
  cp "$data/$mask.npy" all
  cp "$data/$mask.labelled.npy" some/$mask.npy
done

# curve DIRECTORY RANKS OPTION...: the losses and accuracies of a training.
curve() {
  local dataset=$1 number=$2
  shift 2
  "$mpirun" "$mpiexec" "$number" "$programs/train" --dataset "$dataset" --layers 2 --hidden 8 --epochs 3 --dropout 0 --log log "$@" >out 2>err ||
    fail "train $dataset $* on $number ranks ends with $?: $(cat err)"
  grep -oE '"(loss|(train|val|test)_[a-z0-9_]*)":[^,]*' log | grep -v unlabelled
}
for options in "" "--sample 3,3 --batch-size 2 --sample-eval" --mfg; do
  for number in 1 "$ranks"; do
    curve some "$number" $options >expected
    ! grep -q 'no label' out || fail "unlabelled nodes in masks without them"
    curve all "$number" $options >found
    cmp -s expected found || fail "'$options' on $number ranks: $(paste expected found)"
    grep -q 'all: train_mask: 1 of the 4 nodes have no label and are left out, such as node 1$' out || fail "the training mask is not named: $(cat out)"
    grep -q 'all: test_mask: 1 of the 4 nodes have no label and are left out, such as node 11$' out || fail "the test mask is not named: $(cat out)"
    tail -n 1 log | grep -q '"train_unlabelled":1,"val_unlabelled":1,"test_unlabelled":1' || fail "no numbers in the log: $(tail -n 1 log)"
  done
done

# Links have no labels of nodes; what labels.npy has does not matter.
cp "$data/features.npy" all/labels.npy
"${run[@]}" "$programs/train" --dataset all --task link --layers 1 --hidden 4 --epochs 1 --split-edges 0.2,0.2 >out 2>err || fail "links end with $?"

# Values and several labels a node: the same curve on any number of ranks, full batch and sampled; predictions of their kind.
# targets FILE LINE OPTION...: LINE is a part of the first lines.
targets() {
  local file=$1 line=$2
  shift 2
  cp "$data/$file.npy" all/labels.npy
  curve all 1 "$@" >expected
  grep -q "$line" out || fail "$file: the labels are not described: $(cat out)"
  [ "$(wc -l <expected)" -ge 12 ] || fail "$file: the log is $(cat expected)"
  curve all "$ranks" "$@" --predict predicted >found
  paste expected found | awk -F'[:\t]' '{ d = $2 - $4; if (d < 0) d = -d; if ($2 != $4 && !(d <= 1e-4 * ($2 < 0 ? -$2 : $2))) exit 1 }' ||
    fail "$file: the curves on 1 and $ranks ranks: $(paste expected found)"
}
targets labels.values "1 value a node, loss mse" --metric rmse,mae,r2
[ -s predicted/values.npy ] && [ ! -e predicted/logits.npy ] || fail "predictions of values: $(ls predicted)"
targets labels.several "3 labels a node, loss bce" --metric f1-micro,f1-macro --sample 3,3 --batch-size 2
[ -s predicted/logits.npy ] && [ -s predicted/labels.npy ] || fail "predictions of several labels: $(ls predicted)"
targets labels.one_hot "3 classes" --class-weights balanced --label-smoothing 0.1 --metric accuracy,f1-macro,roc-auc
targets labels.one_hot "3 labels a node, loss bce" --loss bce --mfg --metric f1-micro
{ head -c -36 "$data/labels.one_hot.npy"; printf '\0\0\0'; tail -c 33 "$data/labels.one_hot.npy"; } >all/labels.npy  # no label for node 0, or none of three
expect 1 "and may be one class or several labels a node, expected to be told (train: --loss cross-entropy, or --loss bce)" \
  "$programs/train" --dataset all --epochs 1
cp "$data/labels.several.npy" all/labels.npy
expect 1 "the labels are several labels a node, expected --metric roc-auc, average-precision, f1, f1-micro, f1-macro, not accuracy" \
  "$programs/train" --dataset all --epochs 1 --metric accuracy
expect 1 "expected no --class-weights, which are for classes" "$programs/train" --dataset all --epochs 1 --class-weights balanced
cp "$data/labels.values.npy" all/labels.npy
expect 1 "all/labels.npy: the label of node 2 is 0.25, expected 0 or 1, or NaN or -1 for a missing label" \
  "$programs/train" --dataset all --epochs 1 --loss bce
expect 2 "--metric: r2 is not for --task node with labels that are classes" "$programs/train" --loss cross-entropy --metric r2
refuse "--metric: 'auk', expected one of accuracy, roc-auc," "$programs/train" --metric auk
refuse "--metric: accuracy is not for --task link, expected roc-auc, average-precision, mrr, hits" "$programs/train" --task link --metric accuracy
refuse "--class-weights: needs --loss cross-entropy" "$programs/train" --loss mse --class-weights 1,2
expect 1 "--metric f1 is of two classes, and there are 16 classes, expected f1-micro or f1-macro" "$programs/train" --nodes 200 --metric f1
expect 1 "karate: there are 2 classes, expected as many --class-weights, not 3" "$programs/train" --graph karate --class-weights 1,2,3

# Labels of -1 and one class: -1 is no class.
printf 'source,target,label\n0,1,-1\n1,2,1\n2,0,-1\n0,2,1\n' >signs.csv
signs=(--dataset signs.csv --task edge --embedding 4 --layers 1 --epochs 1)
expect 1 "signs: the labels of edges are -1 and 1, and -1 is no class" "$programs/train" "${signs[@]}"
