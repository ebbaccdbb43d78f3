#!/usr/bin/env bash
# SPDX-License-Identifier: MIT

# train_link_test.sh MPIRUN_SH MPIEXEC RANKS TOOLS_DIR PRECISION: train --task link and --task edge: the curve of one rank on any number of
# ranks up to RANKS, what datasets say of edges, predictions, and errors.
data=$(cd "$(dirname "$0")/../data" && pwd)
source "$(dirname "$0")/../support/train_curves.sh"
# in float, a pair of scores that rounding swaps changes Hits@K and MRR by more than rounding
keys=$([ "$5" = single ] && echo 'loss|[a-z]+_(auc|acc|rmse)' || echo 'loss|[a-z]+_[a-z@0-9]+') least=3

# A graph with classes of nodes, and edges whose label says whether both ends have the same one, or the difference of the two.
"$programs/generate" --nodes 120 --classes 3 --features 8 --degree 4 --homophily 0.5 --out g >out 2>err || fail "generate ends with $?"
od -An -v -td8 -w8 -j128 g/labels.npy >classes
awk 'BEGIN { while ((getline line < "classes") > 0) class[n++] = line + 0
  for (e = 0; e < 900; ++e) {
    u = (e * 7 + int(e / 120) * 11) % 120; v = (e * 13 + 1 + int(e / 120)) % 120; part = e % 10 < 7 ? "train" : e % 10 < 8 ? "val" : "test"
    print u "," v "," (class[u] == class[v] ? 1 : 0) "," part > "classes.csv"
    print u "," v "," (e % 50 == 3 ? "nan" : (class[u] - class[v]) / 2) "," part > "values.csv"
  } }' /dev/null
for file in classes values; do sed -i '1i src,dst,label,split' $file.csv; done
features=(--node-data features=g/features.npy)
net=(--layers 2 --hidden 16)
three=("${net[@]}" --epochs 3 --dropout 0.2)
sbm=(--graph sbm --nodes 300 --classes 4 --degree 12 --partition random)

# The curve depends neither on ranks, partition and threads nor on what travels.
i=0
while read -r options; do
  i=$((i + 1))
  for number in $(seq "$ranks"); do
    case $options in
      *csv*) on "$number" --dataset $options "${features[@]}" "${three[@]}" --threads $((number % 2 + 1)) --log log$number.jsonl ;;
      *) on "$number" "${sbm[@]}" "${three[@]}" --task link $options --threads $((number % 2 + 1)) --log log$number.jsonl ;;
    esac
    same log1.jsonl log$number.jsonl "'$options' on 1 and on $number ranks"
  done
  cp log1.jsonl case$i.jsonl
done <<'END'
--batch-norm
--mfg --batch-norm --mode sequential
--predictor mlp --link-loss margin --negatives 3 --negatives-from source --model gat --metric mrr --hits-k 5
--predictor distmult --link-loss infonce --sample 4,3 --batch-size 256
classes.csv --task edge --partition random
values.csv --task edge --edge-labels values --sample 4,3 --batch-size 200 --exclude self
classes.csv --task link --add-reverse-edges --mfg --partition random
--predictor rotate --filtered-ranks --metric mrr --hits-k 5
END
same case1.jsonl case2.jsonl "link without and with --mfg"
on 2 "${sbm[@]}" "${three[@]}" --task link --batch-norm --sample -1,-1 --batch-size 100000 --exclude none --log log.jsonl
same case1.jsonl log.jsonl "link full batch, and in one batch of all in-edges"
for key in val_auc test_mrr 'val_hits@50' best_val_auc; do
  grep -q "\"$key\":0" case1.jsonl || fail "no $key in the log"
done
grep -q '"best_val_mrr":' case3.jsonl || fail "--metric mrr does not tell the best epoch"
grep -q '"val_mrr":0\.0.*"val_hits@5":0' case8.jsonl || fail "no ranks among all nodes in the log: $(cat case8.jsonl)"
grep -q '"best_val_rmse":' case6.jsonl || fail "the RMSE does not tell the best epoch"

# Edges that train or partition adds are not predicted.
added=(--add-reverse-edges --add-self-loops)
on 2 "${sbm[@]}" "${added[@]}" "${net[@]}" --epochs 1 --task link
awk 'match($0, /link: [0-9]+ training, [0-9]+ validation and [0-9]+ test/) { split(substr($0, RSTART), n, /[^0-9]+/); sum = n[2] + n[3] + n[4] }
  END { exit sum != 3600 }' out || fail "not 3600 edges: $(grep training out)"
"$programs/partition" classes.csv "${added[@]}" --node-data features=g/features.npy --parts 2 --method random --out added >out 2>err || fail "partition ends with $?"
for task in link edge; do
  on 1 --dataset classes.csv "${features[@]}" "${added[@]}" "${three[@]}" --task $task --log log1.jsonl
  on 2 --dataset added "${three[@]}" --task $task --log log.jsonl
  same log1.jsonl log.jsonl "--task $task with edges that train and that partition adds"
done

# A held-out pair is no training edge, in either direction.
awk -F, 'NR == 1 || $4 == "train" && (n = n + 1) < 9 || $4 == "val" && v == "" && (v = $0) || $4 == "test" && t == "" && (t = $0) { print }
  END { split(v, a); split(t, b); print a[1] "," a[2] ",0,train"; print b[2] "," b[1] ",0,train" }' classes.csv >repeated.csv
on 2 --dataset repeated.csv --node-ids dense "${features[@]}" "${net[@]}" --epochs 1 --task link
grep -q "link: 8 training, 1 validation and 1 test" out || fail "held-out pairs are training edges: $(grep training out)"

# Labels in the only column, by their names; without labels, --epochs 0 predicts. What a task does not want may be anything.
cut -d, -f1-3 classes.csv | tee only.csv | tail -n +2 | tee headless.csv | sed '1i user,item,rating' >ratings.csv
sed '1s/.*/user,item,stars/' ratings.csv >stars.csv
values=("${features[@]}" "${three[@]}" --task edge --edge-labels values)
on 1 --dataset only.csv "${values[@]}" --log log1.jsonl --predict out1
on 2 --dataset ratings.csv "${values[@]}" --log log.jsonl --predict out2 --save-weights labels.safetensors
same log1.jsonl log.jsonl "a column label and a column rating"
on 2 --dataset stars.csv --fields edge_labels=stars "${values[@]}" --log log.jsonl
same log1.jsonl log.jsonl "a column label and one that --fields names"
on 2 --dataset headless.csv --fields edge_labels=weight "${values[@]}" --log log.jsonl
same log1.jsonl log.jsonl "a column label and one without a name"
cut -d, -f1-2 only.csv >bare.csv
on 2 --dataset bare.csv "${features[@]}" "${net[@]}" --task edge --edge-labels values --epochs 0 --init-weights labels.safetensors --predict out3
cmp -s out2/edge_values.npy out3/edge_values.npy || fail "predictions without labels are others"
sed 's/[01]$/-7/; 1s/rating/type/' ratings.csv >types.csv
on 2 --dataset types.csv "${features[@]}" "${three[@]}" --task link
sed 's/[01]$/900/; 1s/rating/type/' ratings.csv >sparse.csv

# Labels of edges are learned; a partition has the same edge data; predictions of every edge.
on 2 --dataset classes.csv --task edge "${features[@]}" "${net[@]}" --epochs 200 --dropout 0 --eval-every 200 --partition random --log log.jsonl --predict p
accuracy=$(sed -n 's/.*"train_acc":\([0-9.]*\),.*/\1/p' log.jsonl)
awk -v a="$accuracy" 'BEGIN { exit !(a > 0.9) }' || fail "training accuracy $accuracy of labels of edges, expected more than 0.9"
[ "$(stat -c %s p/edge_labels.npy)" -eq $((128 + 8 * 900)) ] || fail "edge_labels.npy has $(stat -c %s p/edge_labels.npy) bytes"
od -An -v -td8 -w8 -j128 p/edge_labels.npy | paste - <(tail -n +2 classes.csv | cut -d, -f3) | awk '$1 == $2 { ++n } END { exit n < 0.8 * 900 }' ||
  fail "predictions are not in the order of the edges"
"$programs/partition" classes.csv --node-data features=g/features.npy --parts 2 --method random --out parts >out 2>err || fail "partition ends with $?"
on 2 --dataset parts --task edge "${three[@]}" --log log.jsonl
same case5.jsonl log.jsonl "labels of edges in an edge list and in a partition"
on 1 --dataset parts --task link --add-reverse-edges "${three[@]}" --log log.jsonl --predict p
same case7.jsonl log.jsonl "links of an edge list and of a partition"
[ -s p/embeddings.npy ] || fail "no embeddings"

# A run goes on within an epoch, on another number of ranks; with another task it does not.
sampled=("${sbm[@]}" "${net[@]}" --dropout 0.2 --task link --sample 4,3 --batch-size 500)
on 1 "${sampled[@]}" --epochs 3 --log whole.jsonl
on 2 "${sampled[@]}" --epochs 3 --log log.jsonl --checkpoint ck --checkpoint-batches 2 --save-weights w.safetensors
rm ck/checkpoint-00000003.safetensors
on 3 "${sampled[@]}" --epochs 3 --log log.jsonl --checkpoint ck --resume
grep -q "after epoch 2 and [0-9]* batches of the next" out || fail "does not go on within the epoch: $(grep resuming out)"
same whole.jsonl log.jsonl "a run that goes on within an epoch"
expect 1 "made with --negatives 1, expected 2 as in this run" "$train" "${sampled[@]}" --epochs 3 --negatives 2 \
  --checkpoint ck --resume
on 2 "${sampled[@]}" --epochs 0 --init-weights w.safetensors --predict p2

# Learnable rows in the place of features: the same curve on any number of ranks; a run goes on within an epoch, on another number.
for options in "--task node" "--task link --mfg --batch-norm" "--task link --sample 4,3 --batch-size 500" "--sample 4,3 --batch-size 100 --optimizer sgd"; do
  for number in 1 2 3; do on $number "${sbm[@]}" "${three[@]}" --embedding 8 $options --log log$number.jsonl; done
  for number in 2 3; do same log1.jsonl log$number.jsonl "--embedding 8 $options on 1 and on $number ranks"; done
done
embedded=("${sampled[@]}" --embedding 8)
on 1 "${embedded[@]}" --epochs 3 --log whole.jsonl
grep -o '"loss":[^,]*' whole.jsonl | tr : ' ' | awk 'NR == 1 { first = $2 } { last = $2 } END { exit !(last < 0.8 * first) }' || fail "rows are not learned"
on 2 "${embedded[@]}" --epochs 3 --log log.jsonl --checkpoint rows --checkpoint-every 1 --checkpoint-batches 2 --keep-checkpoints 2
[ "$(ls rows | grep embedding | tr '\n' ' ')" = "embedding-00000002-6 embedding-00000003-0 " ] || fail "rows of checkpoints are $(ls rows)"
rm rows/checkpoint-00000003.safetensors
on 3 "${embedded[@]}" --epochs 3 --log log.jsonl --checkpoint rows --resume
same whole.jsonl log.jsonl "a run with --embedding that goes on within an epoch"
on 2 "${embedded[@]}" --epochs 0 --checkpoint rows --resume --predict p3
rm -r rows/embedding-00000003-0
expect 1 "rows/embedding-00000003-0/state.safetensors: cannot open" "$train" "${embedded[@]}" --epochs 3 --checkpoint rows --resume
for wrong in --normalize-features "--clip-norm 1"; do
  expect 2 "cannot be combined with" "$train" "${embedded[@]}" $wrong
done
# Weights have the rows beside them.
on 2 "${embedded[@]}" --epochs 2 --save-weights rows.safetensors --predict p4
on 2 "${embedded[@]}" --epochs 0 --init-weights rows.safetensors --predict p5
[ "$(stat -c %s rows.safetensors.rows.node.npy)" -gt $((128 + 300 * 8 * 4 - 1)) ] || fail "the rows are not beside the weights: $(ls)"
cmp -s p4/embeddings.npy p5/embeddings.npy || fail "saved rows give other embeddings"
expect 1 "rows.safetensors.rows.node.npy: shape is (300, 8), expected (300, 4), the learnable rows of this run" \
  "$train" "${sampled[@]}" --embedding 4 --epochs 0 --init-weights rows.safetensors --predict p5
rm rows.safetensors.rows.node.npy
expect 1 "rows.safetensors.rows.node.npy" "$train" "${embedded[@]}" --epochs 0 --init-weights rows.safetensors --predict p5
expect 1 "is a checkpoint, expected the file of --save-weights" "$train" "${embedded[@]}" --epochs 0 --init-weights rows --predict p5
on 2 --dataset bare.csv --task link "${three[@]}" --embedding 4
expect 1 "bare: the data of the nodes are none, expected features" "$train" --dataset bare.csv --task link

# OGB's folders: lists of pairs with and without negatives, of all or of each pair, as text and as NumPy's arrays.
mkdir -p ogb/raw ogb/split/time/{train,valid,test}
echo 120 >ogb/raw/num-node-list.csv
grep -c train classes.csv >ogb/raw/num-edge-list.csv
grep train classes.csv | cut -d, -f1,2 | tee ogb/split/time/train/edge.csv >ogb/raw/edge.csv
od -An -v -tf4 -w32 -j128 g/features.npy | sed 's/^ *//;s/  */,/g' >ogb/raw/node-feat.csv
grep val classes.csv | cut -d, -f1,2 >ogb/split/time/valid/edge.csv
awk 'BEGIN { for (i = 0; i < 200; ++i) print i % 120 "," (i * 7 + 3) % 120 }' >ogb/split/time/valid/edge_neg.csv
grep test classes.csv | cut -d, -f1 >ogb/split/time/test/source_node.csv
grep test classes.csv | cut -d, -f2 >ogb/split/time/test/target_node.csv
awk 'BEGIN { for (i = 0; i < 180; ++i) print i % 120 "," (i * 7 + 3) % 120 "," (i * 5 + 1) % 120 }' >ogb/split/time/test/target_node_neg.csv
for number in 1 3; do on $number --dataset ogb --task link "${three[@]}" --eval-negatives 1000 --log log$number.jsonl; done
same log1.jsonl log3.jsonl "an OGB folder on 1 and on 3 ranks"
repeats=$(grep -oE 'WARNING: ogb: [0-9]+ of the 270 validation and test pairs are edges' out | grep -oE '[0-9]+' | head -n 1 || true)
[ "${repeats:-0}" -eq "$(awk -F, '{ u = $1 < $2 ? $1 "," $2 : $2 "," $1 } NR > 1 && $4 == "train" { held[u] } { all[NR] = u; part[NR] = $4 }
  END { for (i = 2; i <= NR; ++i) n += part[i] != "train" && all[i] in held; print n + 0 }' classes.csv)" ] || fail "warns of '$repeats' pairs"
"$programs/partition" ogb --parts 2 --method random --out ogb_parts >out 2>err || fail "partition ends with $?"
grep -q "WARNING: ogb: the split lists pairs of nodes, which a partition directory does not store" out || fail "partition does not warn"
sed 's/.*/1/' ogb/raw/edge.csv >ogb/raw/edge_weight.csv
on 2 --dataset ogb --task link "${three[@]}" --log log.jsonl
grep -q "edges: edge_weight" out || fail "no weights of whole numbers"
rm ogb/raw/edge_weight.csv
mkdir ogb/split/short && cp -r ogb/split/time/{train,valid,test} ogb/split/short && : >ogb/split/short/valid/edge.csv
on 2 --dataset ogb --split short --task link "${three[@]}" --metric hits --log log.jsonl
grep -q '"val_auc":null,"test_auc":0\.' log.jsonl || fail "a list without pairs is evaluated"
rm -r ogb/split/short

grep -q '"val_mrr":null,"test_mrr":0\.' log3.jsonl || fail "MRR only of negatives that belong to a pair"
expect 1 "ogb: the negatives of the split belong to no edge, expected --metric auc or hits, not mrr" "$train" --dataset ogb --task link --metric mrr
expect 1 "ogb: the split lists pairs of nodes" "$train" --dataset ogb --task edge
expect 1 "ogb: the edges have a split, expected no --split-edges" "$train" --dataset ogb --task link --split-edges 0.1,0.1
expect 1 "classes: the edges have a split, expected no --split-edges" "$train" --dataset classes.csv "${features[@]}" --task edge --split-edges 0.1,0.1
# Listed pairs are no negatives: of the pairs of three nodes, one is left, and against equal negatives AUC is 0, a half or 1.
mkdir -p few/raw few/split/all/{train,valid,test}
echo 3 >few/raw/num-node-list.csv && echo 1 >few/raw/num-edge-list.csv && echo 1,2 >few/raw/edge.csv
printf '1,0\n0,1\n2,-1\n' >few/raw/node-feat.csv
printf '1,2\n2,1\n0,2\n' >few/split/all/train/edge.csv
echo 2,0 >few/split/all/valid/edge.csv && echo 1,0 >few/split/all/test/edge.csv
few=(--dataset few --task link "${three[@]}" --link-loss margin --predictor mlp)
on 2 "${few[@]}" --log log.jsonl
grep -qE '"val_auc":(0|0.5|1|0.0|1.0),"test_auc":(0|0.5|1|0.0|1.0),' log.jsonl || fail "negatives are listed pairs: $(cat log.jsonl)"
printf '2,0\n1,0\n' >>few/split/all/train/edge.csv
# Adam would make full steps of gradients that are only rounding.
for k in 1 5; do on 3 "${few[@]}" --optimizer sgd --negatives $k --log log$k.jsonl; done
same log1.jsonl log5.jsonl "1 and 5 negatives where there is one"
on 1 --dataset ogb --task link "${three[@]}" --log log1.jsonl

for python in python3 /usr/bin/python3 none; do "$python" -c 'import numpy' 2>/dev/null && break; done
if [ "$python" = none ]; then
  echo "skipped: arrays of NumPy, which is not there"
else
  "$python" - <<'END'
import numpy as np
read = lambda part, name: np.loadtxt(f"ogb/split/time/{part}/{name}.csv", delimiter=",", dtype=np.int64)
np.savez("train.npz", edge=np.asfortranarray(read("train", "edge")))
np.savez_compressed("valid.npz", edge=np.asfortranarray(read("valid", "edge").astype(np.int32)), edge_neg=read("valid", "edge_neg"))
np.savez("test.npz", **{name: read("test", name) for name in ("source_node", "target_node", "target_node_neg")})
np.savez("three.npz", edge=np.zeros((4, 3), int))
END
  mkdir ogb/split/arrays
  mv {train,valid,test}.npz ogb/split/arrays
  on 2 --dataset ogb --split arrays --task link "${three[@]}" --log log.jsonl
  same log1.jsonl log.jsonl "an OGB folder as text and as arrays"
  mv three.npz ogb/split/arrays/test.npz
  expect 1 "ogb/split/arrays/test.npz: edge: a row has 3 numbers, expected 2" "$train" --dataset ogb --split arrays --task link
fi
mkdir ogb/split/torch
touch ogb/split/torch/{train,valid,test}.pt
expect 1 "ogb/split/torch/train.pt: is a file of torch, expected ogb/split/torch/train.npz" "$train" --dataset ogb --split torch --task link
echo 120 >>ogb/split/time/test/target_node.csv
expect 1 "ogb/split/time/test/target_node.csv: line 181: column 1 is '120', expected 0 to 119" "$train" --dataset ogb --split time --task link

# A DGL partition that does not say the original ids of its edges.
cp -r "$data/dgl/formats" unordered
sed -i 's/orig_id/orig_it/' unordered/part?/edge_feat.dgl
dgl=(--task edge --edge-labels values "${three[@]}" --predict edges_out)
on 2 --dataset unordered --fields edge_labels=orig_it "${dgl[@]}"
grep -q "WARNING: cycle does not say the original ids of its edges: --predict writes rows in the order of the partition, to edges_out/edge_values" out ||
  fail "no warning: $(cat out)"
[ "$(ls edges_out)" = edge_values.partition_order.npy ] || fail "predictions are $(ls edges_out)"
on 2 --dataset "$data/dgl/formats" --fields edge_labels=orig_id "${dgl[@]}"
! grep -q WARNING out || fail "it warns: $(cat out)"
[ "$(ls edges_out)" = edge_values.npy ] || fail "predictions are $(ls edges_out)"

# What goes wrong: one sentence, the same on all ranks.
run=("$1" "$2" 2)
small=(--layers 1 --hidden 4 --epochs 1)
expect 1 "the graph has no edges, expected at least one for --task link" "$train" --graph sbm --nodes 40 --classes 2 --degree 1e-6 --task link "${small[@]}"
expect 1 "sbm: the edges have no labels, expected edge data labels (or label) for --task edge" "$train" --graph sbm --nodes 40 --classes 2 --task edge "${small[@]}"
expect 1 "headless: the edges have no labels, expected edge data labels (or label) for --task edge, or --fields edge_labels=NAME" "$train" --dataset headless.csv --task edge "${features[@]}" "${small[@]}"
expect 1 ", expected a class from 0 or -1 for an unlabelled edge" "$train" --dataset values.csv --task edge "${features[@]}" "${three[@]}"
expect 1 "sparse: the largest type of an edge is 900, and there are 900 edges, expected fewer types than edges" "$train" --dataset sparse.csv --task link \
  --predictor distmult "${features[@]}" "${three[@]}"
sed 's/train\|val/test/' classes.csv >untrained.csv
expect 1 "untrained: no edge is left for training, 0 are for validation and 900 for test" "$train" --dataset untrained.csv --task link "${features[@]}" "${three[@]}"
sed '5s/train/later/' classes.csv >part.csv
expect 1 "part.csv: line 5: the split of the edge is 'later', expected train, val or test" "$train" --dataset part.csv --task link "${features[@]}" "${three[@]}"
cp g/labels.npy g/edge_labels.npy
expect 1 "g/edge_labels.npy: length is 120, expected" "$train" --dataset g --task edge "${small[@]}"
mv g/edge_labels.npy g/edge_val_mask.npy
expect 1 "g/edge_val_mask.npy: length is 120, expected" "$train" --dataset g --task link "${small[@]}"
run=("$1" "$2" 1)
for wrong in "--predictor mlp" "--link-loss bce" "--negatives 2" "--negatives-from source" "--eval-negatives 2" "--hits-k 9"; do
  refuse "${wrong% *}: needs --task link" "$train" --graph karate $wrong
  refuse "${wrong% *}: needs --task link" "$train" --graph karate --task edge $wrong
done
refuse "--metric: mrr is not for --task node" "$train" --graph karate --metric mrr
refuse "--metric: mrr is not for --task edge" "$train" --graph karate --task edge --metric mrr
refuse "--filtered-ranks: needs --task link and --predictor distmult, complex, transe or rotate" "$train" --graph karate --task link --filtered-ranks
expect 1 "RotatEPredictor with 5 features, expected an even number" "$train" --graph karate --task link --predictor rotate --layers 1 --hidden 5
refuse "--edge-labels: needs --task edge" "$train" --graph karate --task link --edge-labels values
refuse "--split-edges: needs --task link or edge" "$train" --graph karate --split-edges 0.1,0.1
refuse "--exclude: needs --sample and --task link or edge" "$train" --graph karate --task link --exclude self
refuse "--sample-eval: needs --task node" "$train" --graph karate --task link --sample 3 --sample-eval
for wrong in 0.5,0.5 0.1 a,b -0.1,0.1 0.1,0.1,0.1; do
  refuse "'$wrong', expected two shares of 0 or more" "$train" --graph karate --task link --split-edges=$wrong
done
