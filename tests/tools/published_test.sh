#!/usr/bin/env bash
# SPDX-License-Identifier: MIT

# published_test.sh MPIRUN_SH MPIEXEC RANKS TOOLS_DIR: the same small graph in every form in which datasets are published has the same
# training, on one rank and on several; splits are chosen and drawn; partitions keep them.
data=$(cd "$(dirname "$0")/../data/formats/published" && pwd)
source "$(dirname "$0")/../support/program_test.sh"
mpirun=$1 mpiexec=$2
net=(--model gcn --layers 2 --hidden 8 --epochs 3 --dropout 0 --add-reverse-edges --log log)
table=(--node-table "$data/nodes.csv" --node-columns "key=new_id,labels=kind")

# curve RANKS ARG...: the losses and accuracies of a training.
curve() {
  local number=$1
  shift
  "$mpirun" "$mpiexec" "$number" "$programs/train" "${net[@]}" "$@" >out 2>err || fail "train $* on $number ranks ends with $?"
  grep -oE '"(loss|train_acc|val_acc|test_acc)":[-0-9.e]{1,7}' log
}
# same NAME: the last curve is that of the file NAME.
same() {
  cmp -s "$1" found || fail "$1: $(paste "$1" found)"
}

curve 1 --dataset "$data/platonov.npz" >split0
grep -q 'platonov: split 0 of 2 (--split 0 to 1): 20 training, 10 validation and 10 test nodes' out || fail "the split is not named"
grep -q 'no edge has its reverse in the file' out || fail "edges of one direction are not named"
grep -q 'features: node_features (40, 6)' out || fail "the arrays are not named"
curve 1 --dataset "$data/platonov.npz" --split 1 >split1
! cmp -s split0 split1 || fail "both splits are the same"
curve "$ranks" --dataset "$data/platonov.npz" --split 1 >found && same split1
curve "$ranks" --dataset "$data/pyg.npz" >found && same split0

# Runs on several splits are those on one split each; a split that is drawn has the seed of its run.
cat split0 split1 >both
curve "$ranks" --dataset "$data/platonov.npz" --splits all >found && same both
curve 1 --dataset "$data/platonov.npz" --splits 1 >found && same split1
curve 1 --dataset "$data/platonov.npz" --split-nodes 5/class,10,10 --seed 4 --runs 2 >found
{ curve 1 --dataset "$data/platonov.npz" --split-nodes 5/class,10,10 --seed 4 && curve 1 --dataset "$data/platonov.npz" --split-nodes 5/class,10,10 --seed 5; } >both
same both
expect 1 "there is no split 2 for --splits, expected 0 to 1" "$programs/train" "${net[@]}" --dataset "$data/platonov.npz" --splits 2
expect 2 "--split excludes --splits" "$programs/train" "${net[@]}" --dataset "$data/platonov.npz" --splits all --split 1

drawn=(--split-nodes 5/class,10,10 --split-seed 7)
curve 1 --dataset "$data/platonov.npz" "${drawn[@]}" >drawn
grep -q 'split drawn with seed 7: 15 training, 10 validation and 10 test nodes' out || fail "the drawn split is not named"
curve "$ranks" --dataset "$data/shchur.npz" "${drawn[@]}" --predict predictions >found && same drawn
counts=$(tail -c 320 predictions/split.npy | od -An -v -w8 -t d8 | sort -n | uniq -c | awk '{ printf "%s:%s ", $2, $1 }')
[ "$counts" = "-1:5 0:15 1:10 2:10 " ] || fail "the drawn split of the predictions is $counts"
grep -q 'ignored: class_names, attr_text' out || fail "ignored arrays are not named"
curve 1 --dataset "$data/edges.csv" "${table[@]},features=x0,x1,x2,x3,x4,x5" "${drawn[@]}" >found && same drawn
curve 2 --dataset "$data/edges.csv" "${table[@]}" --node-features "$data/lists.json" "${drawn[@]}" --partition random >found && same drawn

"${run[@]}" "$programs/partition" "$data/platonov.npz" --parts 3 --add-reverse-edges --out parts >out 2>err || fail "partition ends with $?"
net=("${net[@]/--add-reverse-edges/--reproducible}")
curve 2 --dataset parts --split 1 >found && same split1

expect 1 "platonov: there are 2 splits, expected split 0 to 1, not 2" "$programs/train" "${net[@]}" --dataset "$data/platonov.npz" --split 2
expect 1 "or --split-nodes 0.6,0.2,0.2" "$programs/train" "${net[@]}" --dataset "$data/shchur.npz"
refuse "--split-nodes: the shares are 1.4 together, expected at most 1" "$programs/train" "${net[@]}" --dataset "$data/shchur.npz" --split-nodes 0.6,0.4,0.4
refuse "--split-nodes: '0,0.5,0.5' has no training nodes, expected some" "$programs/train" "${net[@]}" --dataset "$data/shchur.npz" --split-nodes 0,0.5,0.5
