#!/usr/bin/env bash
# SPDX-License-Identifier: MIT

# train_predict_test.sh MPIRUN_SH MPIEXEC RANKS TOOLS_DIR: predictions, of own weights and those of DGL and PyG; edge lists and partitions
# with data of their own names.
data=$(cd "$(dirname "$0")/../data" && pwd)
source "$(dirname "$0")/../support/program_test.sh"

for python in python3 /usr/bin/python3 none; do "$python" -c 'import numpy' 2>/dev/null && break; done
# Predictions: of a training, and of its weights without one; the same whatever the partition.
small=(--graph sbm --nodes 500 --classes 4 --degree 6 --layers 2 --hidden 16)
"${run[@]}" "$programs/train" "${small[@]}" --epochs 5 --dropout 0.5 --save-weights w.safetensors --predict trained --predict-layer 1 >out 2>err ||
  fail "--predict ends with $?"
"${run[@]}" "$programs/train" "${small[@]}" --epochs 0 --partition random --init-weights w.safetensors --predict loaded --predict-layer 2 >out 2>err ||
  fail "--epochs 0 ends with $?"
cmp loaded/logits.npy loaded/embeddings.npy || fail "the output of the last layer is not the logits"
for file in trained/logits loaded/logits trained/labels loaded/labels trained/embeddings; do
  [ -s "$file.npy" ] || fail "no $file.npy"
done
if [ "$python" = none ]; then
  echo "skipped: reading predictions with NumPy, which is not there"
else
  "$python" - <<'END' >out 2>err || fail "NumPy and the predictions"
import numpy as np
read = lambda name: np.load(name + ".npy")
a, b = read("trained/logits"), read("loaded/logits")
assert a.dtype == np.float32 and a.shape == (500, 4) and np.abs(a - b).max() < 1e-5 * np.abs(a).max(), np.abs(a - b).max()
labels = read("trained/labels")
assert labels.dtype == np.int64 and labels.shape == (500,) and (labels == a.argmax(1)).all()
assert read("trained/embeddings").shape == (500, 16)
END

  # An edge list with names, and what is known of its nodes in the order in which they appear.
  printf 'from,to,since\nann,bob,May\nbob,cid,June\ncid,ann,July\ndan,bob,May\n' >edges.csv
  "$python" -c 'import numpy as np
np.save("x.npy", np.eye(4)); np.save("y.npy", np.array([0, 1, 0, 1])); np.save("m.npy", np.array([1, 1, 0, 0], bool))'
  printf 'ann\nbob\ncid\ndan\n' >keys.txt
  expect 1 "edges.csv: the nodes are names" "$programs/train" --dataset edges.csv --node-data features=x.npy labels=y.npy train_mask=m.npy
  for number in 1 "$ranks"; do
    "$1" "$2" "$number" "$programs/train" --dataset edges.csv --node-keys keys.txt --node-data features=x.npy labels=y.npy train_mask=m.npy \
      --hidden 4 --epochs 5 --predict named --log named.jsonl >out 2>err || fail "an edge list ends with $?"
    grep -q "^edges.csv: source: column 1 'from', target: column 2 'to', weight: none, ignored: column 3 'since'" out || fail "it does not say which columns it read"
    grep -q "edges.csv: edge list edges: 4 nodes, 4 edges; nodes: features labels train_mask" out || fail "it does not say what it found"
    ! grep -q nan out || fail "accuracies of no nodes are printed"
    [ "$(tr '\n' ' ' <named/node_keys.txt)" = "ann bob cid dan " ] || fail "node_keys.txt is $(cat named/node_keys.txt)"
  done

  # What is in it, without training; what is partitioned, or would be written, is refused.
  "${run[@]}" "$programs/train" --dataset edges.csv --node-keys keys.txt --node-data features=x.npy labels=y.npy train_mask=m.npy --describe \
    >out 2>err || fail "--describe ends with $?"
  for line in "4 nodes, 0 without edges, 1 without in-edges" "nodes: labels: from 0 to 1, 0 nodes without a label" \
    "nodes: train_mask: 2 nodes, 0 of them without a label" "4 edges, 0 duplicates, 0 self loops, 0 have an opposite edge"; do
    grep -qx "$line" out || fail "--describe does not say '$line': $(cat out)"
  done
  ! grep -q "^epoch" out || fail "--describe trains"
  expect 2 "--describe excludes --predict" "$programs/train" --dataset edges.csv --describe --predict described
fi

# A DGL partition: rows by original id where it says those, otherwise a warning and other names. The field orig_id of DGL is renamed.
dgl=$data/dgl/formats
cp -r "$dgl" unordered
sed -i 's/orig_id/orig_it/' unordered/part?/node_feat.dgl
dgl_options=(--epochs 1 --layers 1 --hidden 4 --log dgl.jsonl)
"$1" "$2" 2 "$programs/train" --dataset "$dgl" "${dgl_options[@]}" --predict ordered_out >out 2>err || fail "a DGL partition ends with $?"
! grep -q WARNING out || fail "it warns: $(cat out)"
expect 1 "the graph is partitioned, expected what it was made of for --describe" "$programs/train" --dataset "$dgl" --describe
grep -q '"ids_are_original":true' dgl.jsonl || fail "the log does not say that ids are original"
"$1" "$2" 2 "$programs/train" --dataset unordered "${dgl_options[@]}" --predict unordered_out >out 2>err || fail "a DGL partition ends with $?"
grep -q "WARNING: cycle does not say the original ids of its nodes: --predict writes rows in the order of the partition" out || fail "no warning: $(cat out)"
grep -q '"ids_are_original":false' dgl.jsonl || fail "the log does not say that ids are not original"
[ "$(ls ordered_out unordered_out | tr '\n' ' ')" = \
  "ordered_out: labels.npy logits.npy  unordered_out: labels.partition_order.npy logits.partition_order.npy " ] ||
  fail "predictions are $(ls ordered_out unordered_out)"

# Rows in the other order, of an earlier run, are named.
for dataset in unordered "$dgl"; do
  "$1" "$2" 2 "$programs/train" --dataset "$dataset" "${dgl_options[@]}" --task link --predict linked >out 2>err || fail "link prediction ends with $?"
done
grep -q "WARNING: linked has files that this run has not written: embeddings.partition_order.npy$" out || fail "embeddings in the other order: $(cat out)"

# Weights of another network do not predict.
networks=("$programs/train" --graph karate --hidden 8 --layers 2)
expect 0 "epoch    1/1" "${networks[@]}" --activation elu --add-self-loops --epochs 1 --save-weights elu.safetensors --checkpoint elu.c
expect 1 'elu.safetensors: the network of these weights has activation "elu", here "relu", expected the options' "${networks[@]}" --epochs 0 \
  --init-weights elu.safetensors --predict elu
expect 1 'the network of these weights has activation "elu", here "relu"' "${networks[@]}" --epochs 0 --init-weights elu.c --predict elu
# Two ways to write one network.
expect 0 "epoch    1/1" "${networks[@]}" --model gat --heads 4,1 --epochs 1 --save-weights heads.safetensors --checkpoint heads.c
expect 0 "initial weights" "${networks[@]}" --model gat --heads 4 --residual 0 --epochs 0 --init-weights heads.c --predict heads
expect 0 "epochs" "${networks[@]}" --model gat --heads 4 --residual 0 --epochs 0 --init-weights heads.safetensors --predict heads
expect 0 "these weights were trained with --add-self-loops 1, here 0" "${networks[@]}" --activation elu --epochs 0 --init-weights elu.safetensors --predict elu
expect 0 'WARNING: elu.safetensors: the network of these weights has activation "elu", here "relu"' "${networks[@]}" --epochs 1 --init-weights elu.safetensors
expect 0 "epochs" "${networks[@]}" --split-nodes 0.5,0.25,0.25 --epochs 1 --predict-layer 1 --predict elu
[ -e elu/split.npy ] && [ -e elu/embeddings.npy ] || fail "no split and embeddings"
# Files of an earlier prediction are named; they may be the user's, and stay.
expect 0 "WARNING: elu has files that this run has not written: embeddings.npy, split.npy" "${networks[@]}" --epochs 1 --predict elu
[ -e elu/split.npy ] && [ -e elu/embeddings.npy ] || fail "files of an earlier prediction are gone"
! "${networks[@]}" --split-nodes 0.5,0.25,0.25 --epochs 1 --predict-layer 1 --predict elu | grep WARNING || fail "a file that was written again is named"

# Weights of DGL and PyG: what was taken for what; saved with the names that they came with.
peer=$data/peer
karate=(--graph karate --epochs 0 --predict peer)
expect 1 "the model has no place for 'conv1.lin.weight' [6, 5]" "$programs/train" "${karate[@]}" --model gcn --layers 2 --hidden 6 \
  --init-weights "$peer/gcn_pyg.safetensors"
sized=(--nodes 40 --classes 4 --features 5 --layers 2 --epochs 0 --predict peer)
expect 0 "gcn_pyg.safetensors: conv1.lin.weight is taken for layers.0.weight, transposed" "$programs/train" "${sized[@]}" --model gcn --hidden 6 \
  --init-weights "$peer/gcn_pyg.safetensors" --save-weights again.safetensors
[ "$(tr -c 'a-z0-9._' '\n' <again.safetensors | grep -o '^conv.*[ts]$' | sort | tr '\n' ' ')" = "conv1.bias conv1.lin.weight conv2.bias conv2.lin.weight " ] ||
  fail "the names of the saved weights are not those of the loaded ones"
expect 0 "gat_pyg.safetensors: conv2.bias is taken for layers.1.bias, for each head" "$programs/train" "${sized[@]}" --model gat --heads 2 --out-heads 3 \
  --hidden 6 --init-weights "$peer/gat_pyg.safetensors"
expect 1 "'layers.0.weight' [5, 6]" "$programs/train" "${sized[@]}" --model gcn --hidden 6 --rename conv1=layers.1 --init-weights "$peer/gcn_dgl.safetensors"
expect 0 "conv2.weight is taken for layers.1.weight" "$programs/train" "${sized[@]}" --model gcn --hidden 6 --rename conv1=layers.0 conv2=layers.1 \
  --init-weights "$peer/gcn_dgl.safetensors"
expect 1 "no name in the file is or begins with 'conv3'" "$programs/train" "${sized[@]}" --model gcn --hidden 6 --rename conv3=layers.0 \
  --init-weights "$peer/gcn_dgl.safetensors"
printf 'PK\3\4\0\0\10\10\0\0 of torch' >model.pt
expect 1 "train: model.pt: the file is one of torch.save, expected a .safetensors file" "$programs/train" --graph karate --init-weights model.pt

# Fields of other names.
sed -i 's/labels/answer/' unordered/part?/node_feat.dgl && sed -i 's/orig_it/orig_id/' unordered/part?/node_feat.dgl
run=("$1" "$2" 2)
expect 0 "epoch    1/1" "$programs/train" --dataset unordered "${dgl_options[@]}" --fields labels=answer train_mask=train_mask
expect 1 "cycle: the data are answer, features, orig_id, train_mask, expected y among them, which shall be the labels" "$programs/train" \
  --dataset unordered "${dgl_options[@]}" --fields labels=y
expect 1 "cycle: a field shall be the label, expected features, labels," "$programs/train" --dataset unordered "${dgl_options[@]}" --fields label=y
run=("$1" "$2" "$ranks")

