#!/usr/bin/env bash
# SPDX-License-Identifier: MIT

# train_batches_test.sh MPIRUN_SH MPIEXEC RANKS TOOLS_DIR PRECISION: other mini-batches of train: LABOR, draws anew in each batch, clusters; and
# features that are means of data of the edges. The curve is that of one rank on any number of ranks up to RANKS.
source "$(dirname "$0")/../support/program_test.sh"
mpirun=$1 mpiexec=$2 train=$programs/train
tolerance=1e-4
[ "$5" = single ] || tolerance=1e-9

# on RANKS ARG...: trains.
on() {
  local number=$1
  shift
  timeout 180 "$mpirun" "$mpiexec" "$number" "$train" "$@" </dev/null >out 2>err || fail "train $* on $number ranks ends with $?"
}

# same LOG LOG WHAT: the same losses, scores and rows of an epoch, or what keys says.
same() {
  local read="\"(${keys:-loss|[a-z]+_(acc|auc)|rows_per_seed})\":[^,}]*"
  paste <(grep -oE "$read" "$1") <(grep -oE "$read" "$2") | tr ':\t' '  ' >both
  awk -v t="$tolerance" '$1 != $3 || ($2 != $4 && ($2 - $4) ^ 2 > t ^ 2 * ($2 ^ 2 + 1e-3)) { exit bad = 1 } { ++n } END { exit bad || n < 6 }' both ||
    fail "$3: $(cat both)"
}

sbm=(--graph sbm --nodes 400 --classes 4 --degree 12 --layers 2 --hidden 16 --epochs 2 --dropout 0.2 --batch-norm --partition random)
i=0
while read -r options; do
  i=$((i + 1))
  for number in $(seq "$ranks"); do
    # shellcheck disable=SC2086
    on "$number" "${sbm[@]}" $options --log "log$number.jsonl"
    same log1.jsonl "log$number.jsonl" "'$options' on 1 and on $number ranks"
  done
  cp log1.jsonl "case$i.jsonl"
done <<'END'
--sample 4,3 --batch-size 60
--sample 4,3 --batch-size 60 --sampler labor
--sample 4,3 --batch-size 60 --sample-redraw
--sample 4,3 --batch-size 60 --sampler labor --sample-redraw
--clusters 8 --clusters-per-batch 2
--clusters 5 --cluster-method ldg --model gcn
--sampler saint-node --batch-size 100
--sampler saint-edge --batch-size 60 --saint-coverage 5 --model gcn --gcn-norm in_weights
--sampler saint-walk --batch-size 30 --walk-length 3 --saint-coverage 5 --saint-batches 3 --model gin
--sampler saint-node --batch-size 150 --model gat --heads 2
--sample 4,3 --batch-size 60 --halo-cache-bytes 6000
END
for other in 2 3 4; do
  ! cmp -s <(grep -o '"loss":[^,]*' case1.jsonl) <(grep -o '"loss":[^,]*' case$other.jsonl) || fail "case $other draws as case 1"
done
rows() { sed -n 's/.*"rows_per_seed":\([0-9.]*\).*/\1/p' "$1" | head -n 1; }
awk -v labor="$(rows case2.jsonl)" -v neighbor="$(rows case1.jsonl)" -v clusters="$(rows case5.jsonl)" \
  'BEGIN { exit !(labor > 1 && labor < neighbor && clusters > 400 / 240 - 1e-3 && clusters < 400 / 240 + 1e-3) }' ||
  fail "rows for each seed: neighbor $(rows case1.jsonl), labor $(rows case2.jsonl), clusters $(rows case5.jsonl)"
! grep -q halo_rows_per_seed case1.jsonl || fail "one rank fetches rows: $(cat case1.jsonl)"
grep -q '"batches":4,' case5.jsonl || fail "8 clusters by 2 are not 4 batches: $(cat case5.jsonl)"
# One batch of all clusters is the whole graph.
on 2 "${sbm[@]}" --log log.jsonl
on 2 "${sbm[@]}" --clusters 3 --clusters-per-batch 3 --log log1.jsonl
paste <(grep -o '"loss":[^,]*' log.jsonl) <(grep -o '"loss":[^,]*' log1.jsonl) | tr ':\t' '  ' |
  awk -v t="$tolerance" '{ if (($2 - $4) ^ 2 > t ^ 2 * $2 ^ 2) exit 1; ++n } END { exit n != 2 }' || fail "one batch of all clusters has other losses"

# So is a subgraph of all nodes, whose weights are 1.
for model in "--model sage" "--model gcn" "--model gcn --gcn-norm in_weights" "--model gat"; do
  # shellcheck disable=SC2086
  on 2 "${sbm[@]}" $model --log log.jsonl
  # shellcheck disable=SC2086
  on 2 "${sbm[@]}" $model --sampler saint-node --batch-size 1000000 --log log1.jsonl
  paste <(grep -o '"loss":[^,]*' log.jsonl) <(grep -o '"loss":[^,]*' log1.jsonl) | tr ':\t' '  ' |
    awk -v t="$tolerance" '{ if (($2 - $4) ^ 2 > t ^ 2 * $2 ^ 2) exit 1; ++n } END { exit n != 2 }' || fail "$model: a subgraph of all nodes has other losses"
done
grep -q '"batches":3,' case9.jsonl || fail "--saint-batches 3 makes $(cat case9.jsonl)"

# Batches in which all labels are of classes of weight 0 are skipped; a training of these alone is an error.
while read -r options; do
  for number in $(seq "$ranks"); do
    # shellcheck disable=SC2086
    on "$number" "${sbm[@]}" $options --class-weights 0,0,0,1 --log "log$number.jsonl"
    same log1.jsonl "log$number.jsonl" "'$options' with weights of 0 on 1 and on $number ranks"
  done
  # shellcheck disable=SC2086
  expect 1 "no training node has a label of a class whose weight is above 0" "$train" "${sbm[@]}" $options --class-weights 0,0,0,0
done <<'END'
--sample 4,3 --batch-size 6
--sample 4,3 --batch-size 6 --halo-cache-bytes 6000
--clusters 60
--sampler saint-node --batch-size 6
--sampler saint-edge --batch-size 4 --saint-coverage 5 --label-smoothing 0.1
END
expect 1 "no training node has a label of a class whose weight is above 0" "$train" "${sbm[@]}" --class-weights 0,0,0,0

# Batches in which a batch norm would have one row are skipped.
while read -r options; do
  for number in 1 "$ranks"; do
    # shellcheck disable=SC2086
    on "$number" "${sbm[@]}" $options --log "log$number.jsonl"
    same log1.jsonl "log$number.jsonl" "'$options' with a batch of one node on 1 and on $number ranks"
  done
done <<'END'
--model gin --sample 4,3 --batch-size 239
--sampler saint-node --batch-size 5
END

# Batch norm of message flow graphs is told, and features in bfloat16 round the features alone: those of karate are 0 and 1.
expect 0 "the batch norm inside gin takes the mean and variance of the nodes that the training nodes" "$train" --graph karate --layers 2 --epochs 1 --mfg --model gin
expect 0 "batch norm takes the mean and variance of the nodes that the training nodes" "$train" --graph karate --layers 2 --epochs 1 --mfg --batch-norm
on 1 --graph karate --layers 2 --epochs 1 --mfg
! grep -q "mean and variance" out || fail "batch norm without batch norm"
if [ "$5" = single ]; then
  for model in sage gcn gat gin; do
    on 1 --graph karate --model $model --layers 2 --epochs 6 --log log.jsonl
    on 1 --graph karate --model $model --layers 2 --epochs 6 --bfloat16-features --log log1.jsonl
    keys=loss same log.jsonl log1.jsonl "$model with --bfloat16-features of 0 and 1"
  done
fi

# Rows of other ranks that are kept are not fetched again, and the size of the cache changes no bit.
if [ "$ranks" -gt 1 ]; then
  halo() { sed -n 's/.*"halo_rows_per_seed":\([0-9.]*\).*/\1/p' "$1" | tail -n 1; }
  for bytes in 0 1 6000 1000000; do on "$ranks" "${sbm[@]}" --sample 4,3 --batch-size 30 --halo-cache-bytes $bytes --log "cache$bytes.jsonl"; done
  for bytes in 6000 1000000; do
    cmp -s <(grep -o '"loss":[^,]*' cache1.jsonl) <(grep -o '"loss":[^,]*' cache$bytes.jsonl) || fail "--halo-cache-bytes $bytes changes the losses"
  done
  awk -v none="$(halo cache0.jsonl)" -v one="$(halo cache1.jsonl)" -v some="$(halo cache6000.jsonl)" -v all="$(halo cache1000000.jsonl)" \
    'BEGIN { exit !(none == one && some < one && all < some / 2) }' ||
    fail "halo rows for each seed: $(halo cache0.jsonl), $(halo cache1.jsonl), $(halo cache6000.jsonl), $(halo cache1000000.jsonl)"
fi
on 1 --graph karate --epochs 1 --layers 1 --log log.jsonl
! grep -q rows_per_seed log.jsonl || fail "a full batch has rows for each seed: $(cat log.jsonl)"

# An epoch of subgraphs goes on where it was interrupted.
saint=("${sbm[@]}" --sampler saint-walk --batch-size 20 --saint-coverage 2 --log log.jsonl)
on 1 "${saint[@]}" --checkpoint ck_whole --checkpoint-batches 2 --checkpoint-every 1 --keep-checkpoints 20
cp log.jsonl whole.jsonl
rm -r ck_whole/*00000002* && on 2 "${saint[@]}" --checkpoint ck_whole --resume
keys='loss|[a-z]+_acc' same whole.jsonl log.jsonl "a resumed run of subgraphs"  # which counts the rows of its own batches
expect 1 "made with --sampler saint-walk, expected saint-node as in this run" \
  "$train" "${sbm[@]}" --sampler saint-node --batch-size 20 --checkpoint ck_whole --resume

# The parts of a partition directory, several on a rank.
"$programs/generate" --nodes 300 --classes 3 --degree 8 --out g >out 2>err || fail "generate ends with $?"
"$programs/partition" g --parts 6 --method ldg --out parts >out 2>err || fail "partition ends with $?"
for number in 1 "$ranks"; do
  on "$number" --dataset parts --layers 2 --hidden 8 --epochs 3 --clusters parts --clusters-per-batch 2 --log "log$number.jsonl"
done
same log1.jsonl "log$ranks.jsonl" "--clusters parts on 1 and on $ranks ranks"
grep -q '"batches":3,' log1.jsonl || fail "6 parts by 2 are not 3 batches"
expect 1 "there are 500 clusters, expected 1 to the number of nodes, 400" "$train" "${sbm[@]}" --clusters 500
on 1 "${sbm[@]}" --clusters 8 --checkpoint ck
expect 1 "made with --clusters 8, expected 4 as in this run" \
  "$train" "${sbm[@]}" --clusters 4 --checkpoint ck --resume
for wrong in 0 -1 x 2.5; do refuse "--clusters: '$wrong', expected the number of clusters, from 1 on, or parts" "$train" --graph karate --clusters $wrong; done
refuse "--clusters: parts needs a --dataset that is a partition directory" "$train" --graph karate --clusters parts
refuse "--sample excludes --clusters" "$train" --graph karate --clusters 2 --sample 3
refuse "--clusters: needs --task node" "$train" --graph karate --clusters 2 --task link
refuse "--clusters-per-batch requires --clusters" "$train" --graph karate --clusters-per-batch 2
refuse "--cluster-method: needs a number of --clusters" "$train" --dataset parts --clusters parts --cluster-method ldg
refuse "--sampler: labor needs --sample" "$train" --graph karate --sampler labor
refuse "--sampler: saint-node cannot be combined with --sample" "$train" --graph karate --sampler saint-node --sample 3
refuse "--sampler: saint-node cannot be combined with --clusters" "$train" --graph karate --sampler saint-node --clusters 3
refuse "--sampler: saint-node needs --task node" "$train" --graph karate --sampler saint-node --task link
refuse "--sampler: saint-edge cannot be combined with --model rgcn" "$train" --graph karate --sampler saint-edge --model rgcn
refuse "--walk-length: needs --sampler saint-walk" "$train" --graph karate --sampler saint-edge --walk-length 3
refuse "--saint-coverage: needs --sampler saint-edge or saint-walk" "$train" --graph karate --sampler saint-node --saint-coverage 3
refuse "--saint-batches: needs --sampler saint-node, saint-edge or saint-walk" "$train" --graph karate --saint-batches 3
refuse "--drop-last: needs --sample" "$train" --graph karate --sampler saint-node --drop-last
refuse "--halo-cache-bytes: needs --sample" "$train" --graph karate --halo-cache-bytes 100
refuse "--halo-cache-bytes: cannot be combined with --embedding, whose rows change between batches" "$train" --graph karate --sample 3 --embedding 4 --halo-cache-bytes 100
refuse "--halo-cache-bytes: cannot be combined with --pre-linear" "$train" --graph karate --sample 3 --pre-linear --halo-cache-bytes 100
refuse "--halo-cache-bytes: needs --task node" "$train" --graph karate --sample 3 --task link --halo-cache-bytes 100
[ "$5" != single ] || refuse "--halo-cache-bytes: cannot be combined with --bfloat16-features" "$train" --graph karate --sample 3 --bfloat16-features --halo-cache-bytes 100
[ "$5" != single ] || refuse "--bfloat16-features: cannot be combined with --embedding" "$train" --graph karate --bfloat16-features --embedding 4
[ "$5" != single ] || refuse "--halo-cache-bytes: needs --halo-format exact" "$train" --graph karate --sample 3 --halo-format bf16 --halo-cache-bytes 100
refuse "--sampler: labor cannot be combined with --sample-replace" "$train" --graph karate --sample 3 --sampler labor --sample-replace

# A folder as ogbn-proteins: several labels a node, data of the edges, no features of the nodes.
mkdir -p proteins/raw proteins/split/species
echo 60 >proteins/raw/num-node-list.csv
echo 240 >proteins/raw/num-edge-list.csv
awk 'BEGIN { for (e = 0; e < 240; ++e) print e * 7 % 60 "," (e * e + int(e / 60)) % 60 }' >proteins/raw/edge.csv
awk 'BEGIN { for (e = 0; e < 240; ++e) print (e % 60) / 60 "," (e % 7) / 7 "," e % 3 }' >proteins/raw/edge-feat.csv
awk 'BEGIN { for (v = 0; v < 60; ++v) print v % 2 "," (v % 3 == 0) "," int(v / 30) }' >proteins/raw/node-label.csv
awk 'BEGIN { for (v = 0; v < 60; ++v) print 9606 + v % 4 }' >proteins/raw/node_species.csv
awk 'BEGIN { for (v = 0; v < 60; ++v) print v > "proteins/split/species/" (v % 5 < 3 ? "train" : v % 5 == 3 ? "valid" : "test") ".csv" }'
expect 1 "--edge-means for means of data of the edges, or --embedding" "$train" --dataset proteins --epochs 1
for number in 1 "$ranks"; do
  on "$number" --dataset proteins --add-reverse-edges --edge-means features --layers 2 --hidden 8 --epochs 3 --metric roc-auc --partition random \
    --log "log$number.jsonl" --predict "p$number"
done
grep -q "60 nodes, 480 edges, 3 features, 3 labels a node, loss bce" out || fail "the folder is described as $(cat out)"
same log1.jsonl "log$ranks.jsonl" "--edge-means on 1 and on $ranks ranks"
[ -s p1/logits.npy ] && [ -s p1/labels.npy ] || fail "the predictions are $(ls p1)"
# The same features in the file, by the formula: a reversed edge has the data of its edge, and self loops that are added do not count.
cp -r proteins given
paste -d, proteins/raw/edge.csv proteins/raw/edge-feat.csv | awk -F, -v OFMT=%.9g '
  function add(v) { ++n[v]; for (j = 0; j < 3; ++j) sum[v, j] += $(3 + j) }
  { add($2) } $1 != $2 { add($1) }
  END { for (v = 0; v < 60; ++v) { m = n[v] ? n[v] : 1; print sum[v, 0] / m "," sum[v, 1] / m "," sum[v, 2] / m } }' >given/raw/node-feat.csv
both=(--add-reverse-edges --add-self-loops --layers 2 --hidden 8 --epochs 3 --dropout 0 --metric roc-auc)
on 1 --dataset given "${both[@]}" --log log.jsonl
on 2 --dataset proteins --edge-means features "${both[@]}" --log log2.jsonl
keys='loss|[a-z]+_auc' same log.jsonl log2.jsonl "--edge-means and the means in a file"
expect 1 "expected weight among them for --edge-means" "$train" --dataset proteins --edge-means weight --epochs 1
on 2 --dataset proteins --add-reverse-edges --embedding 4 --layers 2 --hidden 8 --epochs 2 --metric roc-auc
"$programs/partition" proteins --add-reverse-edges --parts 2 --method random --out parted >out 2>err || fail "partition of the folder ends with $?"
on 2 --dataset parted --edge-means features --layers 2 --hidden 8 --epochs 3 --metric roc-auc --log log.jsonl
same log1.jsonl log.jsonl "--edge-means of a folder and of a partition"
refuse "--edge-means: cannot be combined with --embedding" "$train" --dataset proteins --edge-means features --embedding 4
