#!/usr/bin/env bash
# train_test.sh MPIRUN_SH MPIEXEC RANKS TOOLS_DIR: train as a user runs it: output, log, exit codes, and errors that are printed once.
data=$(cd "$(dirname "$0")/../data" && pwd)
source "$(dirname "$0")/../support/program_test.sh"

# A whole training: a line an epoch, and the log.
"${run[@]}" "$programs/train" --graph sbm --nodes 2000 --classes 4 --degree 12 --hidden 32 --epochs 12 --dropout 0.2 --batch-norm \
  --partition random --mode one_shot --log log.jsonl >out 2>err || fail "training ends with $?"
[ "$(grep -c '^epoch ' out)" -eq 12 ] || fail "not a line an epoch"
[ "$(wc -l <log.jsonl)" -eq 13 ] || fail "not an object an epoch and a summary in the log"
for key in epoch loss train_acc val_acc test_acc seconds forward_seconds backward_seconds comm_seconds comm_bytes peak_bytes; do
  [ "$(grep -c "\"$key\":" <(head -n 12 log.jsonl))" -eq 12 ] || fail "no $key in every epoch of the log"
done
for key in best_val_acc test_acc max_rss_bytes; do
  tail -n 1 log.jsonl | grep -q "\"$key\":" || fail "no $key in the summary"
done
accuracy=$(sed -n 's/.*"best_val_acc":\([0-9.]*\).*/\1/p' log.jsonl)
awk -v a="$accuracy" 'BEGIN { exit !(a > 0.8) }' || fail "validation accuracy $accuracy, expected more than 0.8"
if [ "$ranks" -eq 1 ]; then bytes=0; else bytes='[1-9][0-9]*'; fi
[ "$(grep -Ec "\"comm_bytes\":$bytes,\"peak_bytes\":[1-9]" log.jsonl)" -eq 12 ] || fail "comm_bytes is not $bytes"

# The name of a mode may have a hyphen or an underscore.
for mode in one_shot one-shot; do
  expect 0 "1 epochs in" "$programs/train" --graph karate --hidden 8 --epochs 1 --mode $mode
done

for model in gat gatv2; do
  "${run[@]}" "$programs/train" --graph karate --hidden 8 --heads 2 --model $model --batch-norm --residual 1 --epochs 1 >out 2>err ||
    fail "--batch-norm --residual 1 --model $model ends with $?"
done

# A bias in front of a batch norm has a gradient of zero, and rounding does not move it, although Adam would scale it up.
for python in python3 /usr/bin/python3 none; do "$python" -c 'import numpy' 2>/dev/null && break; done
for model in sage gcn gat rgcn gin; do
  for epochs in 1 4; do
    "${run[@]}" "$programs/train" --graph sbm --nodes 500 --classes 4 --degree 6 --hidden 16 --epochs $epochs --model $model --batch-norm \
      --partition random --eval-every 0 --save-weights bn$epochs.safetensors >out 2>err || fail "--batch-norm --model $model ends with $?"
  done
  [ "$python" = none ] && continue
  "$python" - $model <<'END' >out 2>err || fail "biases of $model in front of a batch norm"
import json, struct, sys
import numpy as np
def moved(name):
    values = []
    for file in "bn1.safetensors", "bn4.safetensors":
        data = open(file, "rb").read()
        size = struct.unpack("<Q", data[:8])[0]
        entry = json.loads(data[8:8 + size])[name]
        values.append(np.frombuffer(data[8 + size:][slice(*entry["data_offsets"])], {"F32": np.float32, "F64": np.float64}[entry["dtype"]]))
    return bool(np.any(values[0] != values[1]))
name = {"sage": "convs.%d.fc_self.bias", "gin": "layers.%d.apply_func.3.bias", "rgcn": "layers.%d.h_bias"}.get(sys.argv[1], "layers.%d.bias")
assert [moved(name % layer) for layer in range(3)] == [False, False, True], [moved(name % layer) for layer in range(3)]
if sys.argv[1] == "gin":
    assert not any(moved("layers.%d.apply_func.0.bias" % layer) for layer in range(3))
END
done

# With --mfg, a step computes less and gives the same losses.
for model in "sage --residual linear --jk cat --pre-linear" gcn gat "gat --attn-dropout 0.3" "gatv2 --attn-dropout 0.3" rgcn "rgcn --num-bases 3"; do
  for mfg in "" --mfg; do
    "${run[@]}" "$programs/train" --graph sbm --nodes 2000 --classes 4 --degree 6 --train-share 0.01 --layers 2 --hidden 32 --epochs 8 \
      --dropout 0.3 --model $model --partition random --eval-every 0 --log log$mfg.jsonl $mfg >out 2>err || fail "--mfg ends with $?"
  done
  paste log.jsonl log--mfg.jsonl | sed -n 's/.*"loss":\([^,]*\),.*"comm_bytes":\([0-9]*\),.*"loss":\([^,]*\),.*"comm_bytes":\([0-9]*\),.*/\1 \2 \3 \4/p' >both
  awk -v ranks="$ranks" '{ if (($1 - $3) ^ 2 > 1e-8 * $1 ^ 2 || (ranks > 1 && $4 > 0.8 * $2)) exit 1; ++n } END { exit n != 8 }' both ||
    fail "$model: loss and comm_bytes without and with --mfg: $(cat both)"
done

# Sparse features give the losses of dense ones, also from a partition directory.
for model in gcn gin; do
  for sparse in no yes; do
    "${run[@]}" "$programs/train" --graph karate --layers 2 --hidden 8 --epochs 4 --dropout 0.5 --model $model --eval-every 0 \
      --sparse-features $sparse --log log-$sparse.jsonl >out-$sparse 2>err || fail "--sparse-features $sparse ends with $?"
  done
  grep -q "34 features (sparse, 2.9 % of the values are not 0)" out-yes || fail "the first lines do not say that features are sparse"
  grep -q "34 features," out-no || fail "the first lines say that dense features are sparse"
  paste log-no.jsonl log-yes.jsonl | sed -n 's/.*"loss":\([^,]*\),.*"loss":\([^,]*\),.*/\1 \2/p' |
    awk '{ if (($1 - $2) ^ 2 > 1e-8 * $1 ^ 2) exit 1; ++n } END { exit n != 4 }' || fail "$model: losses with --sparse-features yes"
done

# Mini-batches: the losses of one rank on any number, with batch norm and dropout; and a run that goes on within an epoch.
sampled=("$programs/train" --graph sbm --nodes 600 --classes 4 --degree 8 --sample 4,3 --batch-size 50 --hidden 16 --epochs 3 --dropout 0.3
  --batch-norm --partition random)
"$1" "$2" 1 "${sampled[@]}" --log log1.jsonl >out 2>err || fail "--sample ends with $?"
"${run[@]}" "${sampled[@]}" --log log.jsonl --checkpoint ck --checkpoint-batches 2 >out 2>err || fail "--sample ends with $?"
grep -q "batches, .* seeds/s" out || fail "no seeds a second"
[ "$(grep -c '"seeds_per_second":[1-9]' log.jsonl)" -eq 3 ] || fail "no seeds_per_second in the log"
paste log1.jsonl log.jsonl | sed -n 's/.*"loss":\([^,]*\),.*"loss":\([^,]*\),.*/\1 \2/p' >both
awk '{ if (($1 - $2) ^ 2 > 1e-6 * $1 ^ 2) exit 1; ++n } END { exit n != 3 }' both || fail "--sample: losses on 1 and on $ranks ranks: $(cat both)"
rm ck/checkpoint-00000003.safetensors
cp log.jsonl whole.jsonl
"${run[@]}" "${sampled[@]}" --log log.jsonl --checkpoint ck --resume >out 2>err || fail "--resume within an epoch ends with $?"
grep -q "after epoch 2 and [0-9]* batches of the next" out || fail "does not go on within the epoch: $(grep resuming out)"
[ "$(grep -o '"loss":[^,]*' whole.jsonl)" = "$(grep -o '"loss":[^,]*' log.jsonl)" ] || fail "other losses after going on within an epoch"
rm -r ck
"${run[@]}" "${sampled[@]}" --sample-eval --drop-last --sample-replace --model gat --heads 2 >out 2>err || fail "--sample-eval ends with $?"
"${run[@]}" "${sampled[@]}" --model rgcn --batch-per-rank >out 2>err || fail "--sample --model rgcn ends with $?"
"$1" "$2" 1 "${sampled[@]}" --batch-per-rank --checkpoint ck >out 2>err || fail "--batch-per-rank --checkpoint ends with $?"
expect 1 "50 --batch-per-rank on 1 ranks, partition random, expected 4,3 --batch-size 50 --batch-per-rank on $ranks ranks" \
  "${sampled[@]}" --batch-per-rank --checkpoint ck --resume
rm -r ck
for wrong in 4,x 4,,3 4,-2; do
  expect 2 "'$wrong', expected a fan-out for each layer" "$programs/train" --graph karate --sample $wrong
done
expect 2 "there are 2 fan-outs, expected one for each of --layers 3" "$programs/train" --graph karate --sample 4,3 --layers 3
expect 2 "--sample excludes --mfg" "$programs/train" --graph karate --sample 3 --mfg
expect 2 "--batch-size requires --sample" "$programs/train" --graph karate --batch-size 9
expect 1 "--drop-last leaves no batch" "$programs/train" --graph karate --sample 3 --batch-size 500 --drop-last

# Relations and GIN: the losses of one rank, on any number, with stages and messages cut; and with --mfg, where all nodes are seeds
# because batch norm takes its statistics over them.
for model in gin rgcn "rgcn --num-bases 2"; do
  train=("$programs/train" --graph sbm --nodes 1000 --classes 4 --degree 8 --train-share 1 --layers 2 --hidden 16 --epochs 6
    --dropout 0.3 --model $model --partition random --eval-every 0)
  "$1" "$2" 1 "${train[@]}" --log log1.jsonl >out 2>err || fail "--model $model ends with $?"
  for options in "" --mfg "--max-halo-bytes 640 --mode sequential"; do
    "${run[@]}" "${train[@]}" --log log.jsonl $options >out 2>err || fail "--model $model $options ends with $?"
    paste log1.jsonl log.jsonl | sed -n 's/.*"loss":\([^,]*\),.*"loss":\([^,]*\),.*/\1 \2/p' >both
    awk '{ if (($1 - $2) ^ 2 > 1e-8 * $1 ^ 2) exit 1; ++n } END { exit n != 6 }' both ||
      fail "--model $model: losses on 1 and on $ranks ranks, with $options: $(cat both)"
  done
done
"${run[@]}" "$programs/train" --graph karate --model rgcn --num-rels 2 --epochs 5 >out 2>err || fail "rgcn on karate ends with $?"

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

# Attention: residual connections, several heads in the last layer; and a run that is resumed with other ones.
attention=(--graph karate --model gat --layers 3 --heads 3 --out-heads 2 --epochs 4)
"${run[@]}" "$programs/train" "${attention[@]}" --residual 2 --hidden 24 --checkpoint gat >out 2>err || fail "residual GAT ends with $?"
grep -Fqx "gat: 34 -> 24 (3 heads of 8) -> 24 (3 heads of 8) + residual -> 2 (the mean of 2 heads) + residual" out || fail "the model is not described"
expect 1 "made with --residual 2, expected 3 as in this run" "$programs/train" "${attention[@]}" --hidden 24 --residual 3 --checkpoint gat --resume

# Residual connections, norms, linear layers before and after, heads of each layer: described, resumed, refused.
layered=(--graph karate --model gat --hidden 24 --epochs 2 --heads 3,8,2 --residual linear --jk sum --pre-linear --norm layer)
expect 0 "gat: 34 -> 24 (linear) -> 24 (3 heads of 8) + linear -> 24 (8 heads of 3) + linear -> 24 (2 heads of 12) + linear -> 2 (linear of the sum of all layers), layer norm" \
  "$programs/train" "${layered[@]}" --checkpoint layered
expect 0 "resuming from layered/checkpoint-00000002.safetensors" "$programs/train" "${layered[@]}" --checkpoint layered --resume
expect 1 "made with --jk sum, expected max as in this run" "$programs/train" "${layered[@]/sum/max}" --checkpoint layered --resume
expect 1 "the model.residual is 'identity', but layer 1 makes rows of 8 values from rows of 34, expected 'linear', or equal widths, which pre_linear and jk give" \
  "$programs/train" --graph karate --hidden 8 --residual identity --post-linear
expect 2 "--residual: 'conv', expected none, identity, linear or the first layer with a residual connection, 1 to --layers 3" \
  "$programs/train" --graph karate --residual conv
expect 2 "--residual: '4', expected none" "$programs/train" --graph karate --residual 4
expect 2 "--heads: there are 2 numbers, expected one for each of --layers 3" "$programs/train" --graph karate --model gat --heads 8,1
expect 2 "--heads: '8,,1', expected a whole number from 1 on, or one for each layer" "$programs/train" --graph karate --model gat --heads 8,,1
expect 2 "--hidden: is 64, expected a multiple of --heads 6" "$programs/train" --graph karate --model gat --hidden 64 --heads 8,6,1
expect 2 "--out-heads: cannot be combined with a list of --heads" "$programs/train" --graph karate --model gat --heads 8,8,1 --out-heads 2
expect 2 "--out-heads: cannot be combined with --jk sum" "$programs/train" --graph karate --model gat --out-heads 2 --jk sum
expect 2 "--norm excludes --batch-norm" "$programs/train" --graph karate --norm layer --batch-norm

# Weights of DGL and PyG: what was taken for what; saved with the names that they came with.
peer=$data/peer
karate=(--graph karate --features 5 --epochs 0 --predict peer)
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

# What goes wrong: exit code, one sentence, once.
expect 2 "--frobnicate" "$programs/train" --frobnicate
expect 2 "--epochs" "$programs/train" --epochs none
expect 2 "--model" "$programs/train" --model transformer
expect 2 "--num-rels" "$programs/train" --model rgcn --num-rels 0
expect 2 "--num-bases" "$programs/train" --model rgcn --num-bases -1
expect 1 "train: missing: there is no such file or directory, expected a dataset directory," "$programs/train" --dataset missing
expect 1 "train: sbm: 20 nodes, expected at least two for each of the 16 classes" "$programs/train" --nodes 20
expect 1 "train: missing/log: cannot write (No such file or directory)" "$programs/train" --graph karate --log missing/log
expect 2 "--checkpoint" "$programs/train" --resume
expect 1 "train: missing/w: cannot write (No such file or directory)" "$programs/train" --graph karate --save-weights missing/w
expect 1 "train: missing: cannot open (No such file or directory), expected a .safetensors file" "$programs/train" --graph karate --init-weights missing
expect 0 "no checkpoint in run: starting from the beginning" "$programs/train" --graph karate --hidden 8 --epochs 10 --checkpoint run --resume
expect 1 "train: run/checkpoint-00000010.safetensors exists, expected --resume" "$programs/train" --graph karate --hidden 8 --checkpoint run
expect 1 "made with --dropout 0.5, expected 0.4 as in this run" "$programs/train" --graph karate --hidden 8 --dropout 0.4 --checkpoint run --resume
expect 0 "resuming from run/checkpoint-00000010.safetensors, after epoch 10" "$programs/train" --graph karate --hidden 8 --epochs 12 --checkpoint run --resume
expect 0 "continuing with --lr 0.002 instead of 0.01" "$programs/train" --graph karate --hidden 8 --epochs 14 --lr 0.002 --checkpoint run --resume --log lr.jsonl
grep -q '"lr":0.002,' lr.jsonl || fail "the rate of the resumed run: $(cat lr.jsonl)"
expect 1 "made with --schedule none, expected step --step-size 30 --lr-factor 0.1 as in this run" "$programs/train" --graph karate --hidden 8 \
  --schedule step --checkpoint run --resume
expect 2 "--warm-up: needs --schedule none, step or cosine, not plateau" "$programs/train" --schedule plateau --warm-up 2
expect 2 "--warm-up: is 5, expected less than --epochs 5" "$programs/train" --schedule cosine --warm-up 5 --epochs 5
expect 2 "--clip-norm" "$programs/train" --clip-norm -1

# A schedule, clipped gradients: interrupted and resumed, the curve is that of the run that was not.
scheduled=(--graph karate --hidden 8 --epochs 12 --eval-every 0 --clip-norm 0.5)
for schedule in "step --step-size 3 --warm-up 2" "cosine --min-lr 0.001" "plateau --patience 0 --lr-factor 0.5"; do
  rm -rf whole part
  "${run[@]}" "$programs/train" "${scheduled[@]}" --schedule $schedule --checkpoint whole --checkpoint-every 5 --keep-checkpoints 9 --log whole.jsonl >out 2>err ||
    fail "--schedule $schedule ends with $?"
  [ "$(grep -o '"lr":[^,]*' whole.jsonl | sort -u | wc -l)" -gt 1 ] || [ "${schedule%% *}" = plateau ] || fail "the rate stays: $(cat whole.jsonl)"
  mkdir part && cp whole/checkpoint-00000005.safetensors part
  "${run[@]}" "$programs/train" "${scheduled[@]}" --schedule $schedule --checkpoint part --resume --log part.jsonl >out 2>err ||
    fail "--schedule $schedule, resumed, ends with $?"
  paste <(tail -n 8 whole.jsonl) <(tail -n 8 part.jsonl) |
    sed -n 's/.*"loss":\([^,]*\),"lr":\([^,]*\),.*"loss":\([^,]*\),"lr":\([^,]*\),.*/\1 \2 \3 \4/p' >both
  awk '{ if ($1 != $3 || $2 != $4) exit 1; ++n } END { exit n != 7 }' both || fail "--schedule $schedule, resumed: $(cat both)"
done

# The best epoch: its weights are saved and predicted with, a run without progress ends, and a resumed run has the same end.
best=(--graph sbm --nodes 300 --classes 3 --degree 5 --hidden 8 --lr 0.05 --dropout 0.3 --metric f1-macro,accuracy)
until=(--epochs 40 --stop-after 6)
"${run[@]}" "$programs/train" "${best[@]}" "${until[@]}" --keep best --checkpoint whole_best --checkpoint-every 3 --keep-checkpoints 99 --log whole.jsonl \
  --save-weights best.safetensors --predict of_best >out 2>err || fail "--keep best ends with $?"
epochs=$(grep -c '^epoch ' out) best_epoch=$(sed -n 's/.*"best_epoch":\([0-9]*\).*/\1/p' whole.jsonl)
[ "$epochs" -eq $((best_epoch + 6)) ] && [ "$epochs" -lt 40 ] || fail "--stop-after 6: the best epoch is $best_epoch, the last $epochs"
grep -q "$epochs epochs in .* (--stop-after 6), best validation f1_macro .* in epoch $best_epoch with" out || fail "no summary: $(tail -n 1 out)"
"${run[@]}" "$programs/train" "${best[@]}" --epochs "$best_epoch" --save-weights last.safetensors >out 2>err ||
  fail "a training to the best epoch ends with $?"
cmp best.safetensors last.safetensors || fail "the weights are not those of the best epoch"
mkdir part_best && cp whole_best/checkpoint-0000000[36].safetensors part_best
"${run[@]}" "$programs/train" "${best[@]}" "${until[@]}" --keep best --checkpoint part_best --resume --log part.jsonl --save-weights resumed.safetensors >out 2>err ||
  fail "--keep best, resumed, ends with $?"
cmp best.safetensors resumed.safetensors || fail "the weights of the best epoch are others after resuming"
summary() { tail -n 1 "$1" | grep -oE '"(epochs|best_val_f1_macro|test_f1_macro|test_acc|last_test_acc|best_epoch)":[^,]*'; }
[ "$(summary whole.jsonl)" = "$(summary part.jsonl)" ] || fail "resumed: $(summary part.jsonl), expected $(summary whole.jsonl)"
expect 0 "$epochs epochs in" "$programs/train" "${best[@]}" "${until[@]}" --keep best --checkpoint part_best --resume --predict again
! grep -q '^epoch' out || fail "a run that has ended goes on: $(cat out)"
cmp of_best/logits.npy again/logits.npy || fail "predictions of the best epoch are others after resuming"
expect 1 "made with --keep best, expected last as in this run" "$programs/train" "${best[@]}" "${until[@]}" --checkpoint part_best --resume
expect 2 "--keep: '3', expected last or best (--keep-checkpoints 3 keeps that many checkpoints)" "$programs/train" --keep 3
expect 2 "--stop-after: needs validation values, expected --eval-every of 1 or more" "$programs/train" --stop-after 3 --eval-every 0
expect 1 "the validation value of accuracy is not defined, expected validation data with labels for --keep best" \
  "$programs/train" --graph sbm --nodes 200 --classes 2 --train-share 1 --epochs 2 --keep best

# Several runs: each is the run of its seed; one that was killed goes on with the others.
several=(--graph sbm --nodes 300 --classes 3 --degree 5 --hidden 8 --epochs 6 --seed 4)
"${run[@]}" "$programs/train" "${several[@]}" --runs 3 --checkpoint runs --predict runs_out --save-weights runs.safetensors --log runs.jsonl >out 2>err ||
  fail "--runs ends with $?"
! grep -q '^epoch' out || fail "several runs print epochs"
[ "$(grep -c '^run [123] of 3, seed-[456]: 6 epochs in .*, best validation accuracy .* in epoch' out)" -eq 3 ] || fail "not a line a run: $(cat out)"
grep -Eq '^ +2 +5 +0 +6 ' out && grep -q '^mean ' out && grep -q '^std ' out || fail "no table: $(cat out)"
[ "$(wc -l <runs.jsonl)" -eq 22 ] || fail "lines of the log: $(wc -l <runs.jsonl)"
tail -n 1 runs.jsonl | grep -q '^{"runs":3,"seeds":\[4,5,6\],"splits":\[0,0,0\],.*"test_acc":{"mean":[0-9.]*,"std":[0-9.e-]*,"values":\[' ||
  fail "the means in the log: $(tail -n 1 runs.jsonl)"
"${run[@]}" "$programs/train" "${several[@]}" --log one.jsonl --predict one_out >out 2>err || fail "a run ends with $?"
losses() { grep -oE '"loss":[^,]*' "$@"; }
[ "$(losses <(grep '"seed":4' runs.jsonl))" = "$(losses one.jsonl)" ] || fail "the first run is not the run of its seed"
cmp one_out/logits.npy runs_out/seed-4/logits.npy || fail "the first run has other predictions"
[ -s runs.seed-5.safetensors ] && [ -s runs_out/seed-6/labels.npy ] || fail "files of runs: $(ls . runs_out)"
cp runs.jsonl whole_runs.jsonl
rm -r runs/seed-6 runs_out
"${run[@]}" "$programs/train" "${several[@]}" --runs 3 --checkpoint runs --resume --log runs.jsonl >out 2>err || fail "--runs --resume ends with $?"
[ "$(losses runs.jsonl)" = "$(losses whole_runs.jsonl)" ] || fail "losses after resuming: $(losses runs.jsonl)"
values() { tail -n 1 "$1" | grep -oE '"(val|test|last_test)_acc":[^}]*'; }
[ "$(values runs.jsonl)" = "$(values whole_runs.jsonl)" ] || fail "the means after resuming: $(values runs.jsonl)"
expect 2 "--runs: needs validation values" "$programs/train" --runs 2 --eval-every 0

for unread in "--step-size 3" "--patience 2 --schedule cosine" "--min-lr 0.1 --schedule step" "--lr-factor 0.5" "--heads 2" \
  "--out-heads 2" "--attn-dropout 0.1" "--num-rels 2" "--num-bases 1 --model gat" "--momentum 0.5"; do
  expect 2 "${unread%% *}: needs --" "$programs/train" --graph karate --epochs 1 $unread
done
mkdir predictions && touch predictions/{labels,logits}.partition_order.npy
expect 0 "1 epochs in" "$programs/train" --graph karate --hidden 8 --epochs 1 --predict predictions
[ -e predictions/labels.npy ] && [ ! -e predictions/labels.partition_order.npy ] || fail "predictions of another order stay beside those of this run"
expect 2 "there is no layer 4" "$programs/train" --predict nowhere --predict-layer 4
expect 2 "--predict" "$programs/train" --predict-layer 1
expect 1 "train: karate: the labels have 2 classes, expected --num-classes" "$programs/train" --graph karate --num-classes 1
mkdir nothing
expect 1 "train: nothing: is a directory, expected a file that can be written" "$programs/train" --graph karate --epochs 1 --save-weights nothing
! grep -q ^epoch out || fail "it trained before"
mkdir -p taken/logits.npy
expect 1 "train: taken/logits.npy: is a directory" "$programs/train" --graph karate --epochs 1 --predict taken
expect 1 "14 epochs are done, expected --epochs of at least that" "$programs/train" --graph karate --hidden 8 --epochs 5 --checkpoint run --resume
expect 0 "resuming from run/checkpoint-00000014.safetensors" "$programs/train" --graph karate --hidden 8 --epochs 0 --checkpoint run --resume --predict resumed
expect 1 "there are no weights to predict with" "$programs/train" --graph karate --epochs 0 --checkpoint new --resume --predict untrained
expect 2 "--dataset: the path is empty" "$programs/train" --dataset ""
expect 2 "--node-data: needs a --dataset that is an edge list" "$programs/train" --graph karate --node-data features=x.npy
expect 2 "--node-data: 'x.npy', expected NAME=FILE.npy" "$programs/train" --dataset edges --node-data x.npy
expect 1 "train: nothing: " "$programs/train" --dataset nothing
for program in train partition generate; do
  expect 1 "$program: SAR_TRACE: missing/trace: cannot write (No such file or directory)" env SAR_TRACE=missing/trace "$programs/$program"
done
expect 2 "--hidden: is 30, expected a multiple of --heads 4" "$programs/train" --graph karate --model gat --hidden 30
