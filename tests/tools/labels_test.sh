#!/usr/bin/env bash
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
  grep -oE '"(loss|train_acc|val_acc|test_acc)":[^,]*' log
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
expect 1 "all/labels.npy: a row has shape (5,), expected one number" "$programs/train" --dataset all --epochs 1
