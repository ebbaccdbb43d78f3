#!/usr/bin/env bash
# SPDX-License-Identifier: MIT

# train_relation_test.sh MPIRUN_SH MPIEXEC RANKS TOOLS_DIR PRECISION: train --task link --relation on graphs with types, in OGB's layout too: the curve
# of one rank on any number of ranks up to RANKS, which edges carry messages, metrics, predictions, errors.
source "$(dirname "$0")/../support/train_curves.sh"
source "$(dirname "$0")/ogb_folders.sh"
# in float, a pair of scores that rounding swaps changes Hits@K and MRR by more than rounding
keys=$([ "$5" = single ] && echo 'loss|[a-z]+_auc' || echo 'loss|[a-z]+_[a-z@0-9]+') least=3

# edges TYPE: the number of edges of a type that carry messages, as the run says it.
edges() { sed -nE "s/.*[(, ]$1: ([0-9]+)[,)].*/\1/p" out | head -n 1; }
# parts: the numbers of training, validation and test edges.
parts() { sed -nE 's/.*: ([0-9]+) training, ([0-9]+) validation and ([0-9]+) test edges.*/\1 \2 \3/p' out | head -n 1; }

mag_folder mag
biokg_folder biokg
net=(--layers 2 --hidden 8 --epochs 2 --dropout 0.2 --task link --hits-k 5)
modes=(rematerialize sequential one_shot)

# Both folders with one command each; the curve depends neither on ranks, partition, mode and threads nor on what travels.
i=0
while read -r options; do
  i=$((i + 1))
  for number in $(seq "$ranks"); do
    partition=$([ $((number % 2)) = 0 ] && echo random || echo contiguous)
    on "$number" --dataset $options "${net[@]}" --partition "$partition" --mode "${modes[number % 3]}" --threads $((number % 2 + 1)) --log "log$number.jsonl"
    same log1.jsonl "log$number.jsonl" "'$options' on 1 and on $number ranks"
  done
  cp log1.jsonl "case$i.jsonl"
done <<'END'
mag --relation writes --add-reverse-edges --model hetero-sage --predictor mlp
mag --relation author:writes:paper --add-reverse-edges --model rgcn --sample 4,3 --batch-size 100 --link-loss margin --negatives 2
mag --relation cites --model hgt --heads 2 --mfg --predictor distmult --filtered-ranks --metric mrr
biokg --relation drug-protein --model rgcn --predictor complex --metric mrr
biokg --relation protein-protein --add-reverse-edges --model hetero-gat --heads 2 --embedding 6
END
for key in val_auc test_mrr 'val_hits@5' best_val_auc; do
  grep -q "\"$key\":0" case1.jsonl || fail "no $key in the log"
done
# A partition directory, whose reverse edges were made when it was partitioned.
"$programs/partition" mag --add-reverse-edges --parts 2 --method random --out parts >out 2>err || fail "partition ends with $?"
on 2 --dataset parts --relation writes --model hetero-sage --predictor mlp "${net[@]}" --log log.jsonl
same case1.jsonl log.jsonl "from a partition"
# Classes of papers, with one command, too.
for number in 1 "$ranks"; do
  on "$number" --dataset mag --category paper --add-reverse-edges --model rgcn --layers 2 --hidden 8 --epochs 3 --dropout 0.2 --log "log$number.jsonl"
done
least=6 keys='loss|val_acc' same log1.jsonl "log$ranks.jsonl" "mag --category paper on 1 and on $ranks ranks"
grep -q '"test_acc":0' "log$ranks.jsonl" || fail "no accuracy of the papers: $(cat "log$ranks.jsonl")"
grep -q "4 node types (author: 60, field_of_study: 16, institution: 8, paper: 120)" out || fail "another graph: $(cat out)"

# Validation and test edges carry no messages, nor do their reverse edges, of whatever name: made, or in the dataset.
on 2 --dataset mag --relation writes --add-reverse-edges --model rgcn "${net[@]}"
read -r training valid test <<<"$(parts)"
[ $((training + valid + test)) -eq 400 ] && [ "$valid" -gt 0 ] && [ "$test" -gt 0 ] || fail "not 400 edges: $(cat out)"
[ "$(edges author:writes:paper)" = "$training" ] && [ "$(edges paper:rev_writes:author)" = "$training" ] || fail "held-out edges carry messages: $(cat out)"
[ "$(edges paper:cites:paper)" = 1000 ] || fail "edges of other types are gone: $(cat out)"
grep -q "paper:rev_writes:author has the edges of author:writes:paper: $((valid + test)) of its 400 edges are validation and test edges, which carry no messages" out ||
  fail "does not say what it found: $(cat out)"
cp -r mag written
awk -F, '{ print $2 "," $1 }' written/raw/relations/author___writes___paper/edge.csv | ogb_relation written paper written_by author 9
on 2 --dataset written --relation writes --model rgcn "${net[@]}"
[ "$(edges paper:written_by:author)" = "$(edges author:writes:paper)" ] || fail "reverse edges carry messages: $(cat out)"
# Nor do edges of another type in the same direction.
cp -r mag twice
ogb_relation twice author signed paper 9 <mag/raw/relations/author___writes___paper/edge.csv
on 2 --dataset twice --relation writes --add-reverse-edges --model rgcn "${net[@]}"
[ "$(edges author:signed:paper)" = "$(edges author:writes:paper)" ] || fail "edges of the same direction carry messages: $(cat out)"
# In a mini-batch, the edges of the batch carry no messages in any of these types.
for exclude in self reverse; do
  on 2 --dataset mag --relation writes --add-reverse-edges --model rgcn "${net[@]}" --sample -1,-1 --batch-size 100000 --exclude $exclude --log $exclude.jsonl
done
cmp -s <(grep -o '"loss":[^,]*' self.jsonl) <(grep -o '"loss":[^,]*' reverse.jsonl) && fail "--exclude reverse leaves edges of paper:rev_writes:author"
# Where a type has other edges, too, --reverse-relation decides.
cp -r mag partly
{ awk -F, '{ print $2 "," $1 }' mag/raw/relations/author___writes___paper/edge.csv; seq 0 59 | awk '{ print $1 + 60 "," $1 }'; } | sort -u |
  ogb_relation partly paper seen_by author 9
on 2 --dataset partly --relation writes --model rgcn "${net[@]}"
grep -qE "WARNING: [0-9]+ edges of paper:seen_by:author join validation and test pairs and carry messages, expected --reverse-relation paper:seen_by:author" out ||
  fail "does not warn: $(cat out)"
before=$(edges paper:seen_by:author)
on 2 --dataset partly --relation writes --reverse-relation seen_by --model rgcn "${net[@]}"
read -r training valid test <<<"$(parts)"
[ "$(edges paper:seen_by:author)" -eq $((before - valid - test)) ] || fail "--reverse-relation has no effect: $(cat out)"
# A relation between nodes of one type: both directions of a pair are in one part.
on 2 --dataset mag --relation cites --add-reverse-edges --model rgcn "${net[@]}"
read -r training valid test <<<"$(parts)"
[ $((training + valid + test)) -eq 500 ] && [ "$(edges paper:cites:paper)" -le $((2 * training)) ] || fail "citations: $(cat out)"

# OGB's lists: those of the type; each pair against other heads and other tails.
on 2 --dataset biokg --relation drug-protein --model rgcn "${net[@]}"
count() { awk -v part="$1" '$2 == "drug-protein" && $6 == part { ++n } END { print n }' biokg/triples; }
[ "$(parts)" = "$(count train) $((2 * $(count valid))) $((2 * $(count test)))" ] || fail "not the lists of drug-protein: $(parts)"
[ "$(edges drug:drug-protein:protein)" = "$(count train)" ] || fail "messages along other edges: $(cat out)"
grep -q '"val_mrr":0' case4.jsonl || fail "no MRR of the lists"

# Links are learned: groups tell edges from other pairs of the same types.
on 2 --dataset mag --relation writes --add-reverse-edges --model hetero-sage --layers 2 --hidden 16 --epochs 60 --dropout 0 --eval-every 60 --task link \
  --log log.jsonl --predict p --checkpoint c --checkpoint-every 30
auc=$(sed -n 's/.*"test_auc":\([0-9.]*\),.*/\1/p' log.jsonl | head -n 1)
awk -v a="$auc" 'BEGIN { exit !(a > 0.6) }' || fail "test AUC $auc, expected more than 0.6"
size() { echo $(($(stat -c %s "p/embeddings.$1.npy") - 128)); }
[ $((2 * $(size author))) -eq "$(size paper)" ] && [ "$(size author)" -gt 0 ] || fail "embeddings of types: $(ls -l p)"
expect 1 "made with --relation writes, expected cites as in this run" "$train" --dataset mag --relation cites --add-reverse-edges --model hetero-sage --layers 2 --hidden 16 \
  --epochs 61 --dropout 0 --eval-every 60 --task link --checkpoint c --resume

# What goes wrong: one sentence, the same on all ranks.
run=("$1" "$2" 2)
expect 1 "mag: there is no edge type likes, expected one of author:affiliated_with:institution" "$train" --dataset mag --relation likes --model rgcn "${net[@]}"
expect 1 "mag: no edge type ends at author, whose rows --model hetero-sage computes from the in-edges, expected --add-reverse-edges" \
  "$train" --dataset mag --relation writes --model hetero-sage "${net[@]}"
expect 1 "mag: --reverse-relation paper:cites:paper does not join the node types of author:writes:paper" \
  "$train" --dataset mag --relation writes --reverse-relation cites --model rgcn "${net[@]}"
expect 1 "mag: paper:rev_writes:author: no edge is left for training" "$train" --dataset mag --relation rev_writes --add-reverse-edges --model rgcn "${net[@]}"
cp -r biokg bad
echo 60 >>bad/split/random/test/tail.csv && echo 2 >>bad/split/random/test/relation.csv && echo 0 >>bad/split/random/test/head.csv
expect 1 "bad/split/random/test: head_neg has" "$train" --dataset bad --relation drug-protein --model rgcn "${net[@]}"
cp biokg/split/random/test/*.csv bad/split/random/test
sed -i "$(awk '$6 == "test" { ++n } $6 == "test" && $2 == "drug-protein" { print n; exit }' biokg/triples)s/.*/60/" bad/split/random/test/tail.csv
expect 1 "bad/split/random/test: tail has the node 60 of type protein, expected 0 to 59" "$train" --dataset bad --relation drug-protein --model rgcn "${net[@]}"
rm bad/raw/relations/drug___drug-protein___protein/edge_reltype.csv
expect 1 "there is no edge_reltype.csv.gz with a row" "$train" --dataset bad --relation drug-protein --model rgcn "${net[@]}"
refuse "--relation: needs --task link" "$train" --dataset mag --relation writes --model rgcn
refuse "--category: needs --task node; --task link has --relation" "$train" --dataset mag --category paper --model rgcn --task link
refuse "--relation: is for graphs with node and edge types, expected --model" "$train" --dataset mag --relation writes --task link --model sage
refuse "--reverse-relation requires --relation" "$train" --dataset mag --reverse-relation writes --task link --model rgcn
