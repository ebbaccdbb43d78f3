#!/usr/bin/env bash
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

# same LOG LOG WHAT: the same losses and scores.
same() {
  paste <(grep -oE '"(loss|[a-z]+_(acc|auc)|rows_per_seed)":[^,}]*' "$1") <(grep -oE '"(loss|[a-z]+_(acc|auc)|rows_per_seed)":[^,}]*' "$2") | tr ':\t' '  ' >both
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
END
for other in 2 3 4; do
  ! cmp -s <(grep -o '"loss":[^,]*' case1.jsonl) <(grep -o '"loss":[^,]*' case$other.jsonl) || fail "case $other draws as case 1"
done
rows() { sed -n 's/.*"rows_per_seed":\([0-9.]*\).*/\1/p' "$1" | head -n 1; }
awk -v labor="$(rows case2.jsonl)" -v neighbor="$(rows case1.jsonl)" -v clusters="$(rows case5.jsonl)" \
  'BEGIN { exit !(labor > 1 && labor < neighbor && clusters > 400 / 240 - 1e-3 && clusters < 400 / 240 + 1e-3) }' ||
  fail "rows for each seed: neighbor $(rows case1.jsonl), labor $(rows case2.jsonl), clusters $(rows case5.jsonl)"
grep -q '"batches":4,' case5.jsonl || fail "8 clusters by 2 are not 4 batches: $(cat case5.jsonl)"
# One batch of all clusters is the whole graph.
on 2 "${sbm[@]}" --log log.jsonl
on 2 "${sbm[@]}" --clusters 3 --clusters-per-batch 3 --log log1.jsonl
paste <(grep -o '"loss":[^,]*' log.jsonl) <(grep -o '"loss":[^,]*' log1.jsonl) | tr ':\t' '  ' |
  awk -v t="$tolerance" '{ if (($2 - $4) ^ 2 > t ^ 2 * $2 ^ 2) exit 1; ++n } END { exit n != 2 }' || fail "one batch of all clusters has other losses"

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
expect 1 "made with --clusters 8 --cluster-method auto --clusters-per-batch 1, expected 4 --cluster-method auto --clusters-per-batch 1 as in this run" \
  "$train" "${sbm[@]}" --clusters 4 --checkpoint ck --resume
for wrong in 0 -1 x 2.5; do refuse "--clusters: '$wrong', expected the number of clusters, from 1 on, or parts" "$train" --graph karate --clusters $wrong; done
refuse "--clusters: parts needs a --dataset that is a partition directory" "$train" --graph karate --clusters parts
refuse "--sample excludes --clusters" "$train" --graph karate --clusters 2 --sample 3
refuse "--clusters: needs --task node" "$train" --graph karate --clusters 2 --task link
refuse "--clusters-per-batch requires --clusters" "$train" --graph karate --clusters-per-batch 2
refuse "--cluster-method: needs a number of --clusters" "$train" --dataset parts --clusters parts --cluster-method ldg
refuse "--sampler requires --sample" "$train" --graph karate --sampler labor
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
expect 1 "expected weight among them for --edge-means" "$train" --dataset proteins --edge-means weight --epochs 1
on 2 --dataset proteins --add-reverse-edges --embedding 4 --layers 2 --hidden 8 --epochs 2 --metric roc-auc
"$programs/partition" proteins --add-reverse-edges --parts 2 --method random --out parted >out 2>err || fail "partition of the folder ends with $?"
on 2 --dataset parted --edge-means features --layers 2 --hidden 8 --epochs 3 --metric roc-auc --log log.jsonl
same log1.jsonl log.jsonl "--edge-means of a folder and of a partition"
refuse "--edge-means: cannot be combined with --embedding" "$train" --dataset proteins --edge-means features --embedding 4
