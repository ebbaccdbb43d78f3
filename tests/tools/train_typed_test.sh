#!/usr/bin/env bash
# SPDX-License-Identifier: MIT

# train_typed_test.sh MPIRUN_SH MPIEXEC RANKS TOOLS_DIR PRECISION TYPED_PAPERS: train --category on graphs with types: the curve of one rank on any number
# of ranks up to RANKS, from a partition, in every mode, from a checkpoint; predictions of each type; errors.
source "$(dirname "$0")/../support/train_curves.sh"
keys='loss|[a-z]+_acc' least=8

generate() { "$programs/generate" "$@" >out 2>err || fail "generate $* ends with $?"; }
"$6" 200 papers
"$6" 200 weighted weights
generate --nodes 90 --classes 3 --features 24 --degree 4 --out cites
generate --words cites --out words
"${run[@]}" "$programs/partition" --parts "$ranks" --method random words --out parts >out 2>err || fail "partition ends with $?"

# The curve depends neither on ranks, partition and mode nor on what travels. Words have no features: learnable rows.
net=(--category paper --layers 2 --hidden 8 --epochs 2 --dropout 0.2 --eval-every 1)
modes=(rematerialize sequential one_shot)
while read -r dataset options; do
  for number in 1 2 "$ranks"; do
    partition=$([ "$number" = 2 ] && echo random || echo ldg)
    on "$number" --dataset "$dataset" --partition "$partition" "${net[@]}" $options --mode "${modes[number % 3]}" --threads $((number % 2 + 1)) --log "log$number.jsonl"
    same log1.jsonl "log$number.jsonl" "$dataset $options on 1 and on $number ranks"
  done
done <<'END'
papers --model rgcn --num-bases 2 --batch-norm --residual linear --jk cat
words --model rgcn --mfg --max-halo-bytes 512
words --model hgt --heads 2,4 --sample 3,2 --batch-size 30 --residual identity --pre-linear --post-linear
papers --model hetero-sage --max-halo-bytes 256
words --model hetero-gat --heads 2
papers --model hetero-sage --mfg --residual 2 --jk max --norm layer
words --model hetero-gat --heads 2 --sample 3,2 --batch-size 30 --sample-eval
papers --model rgcn --sample 2,-1 --sample-relation cites=1,3 --batch-size 40
weighted --model hetero-gat --heads 2
weighted --model hetero-sage --sample 3,2 --batch-size 60 --sample-by-weight
weighted --model rgcn --mfg
END

# Weights of edges count, also in blocks; a model that reads none refuses them, unless they are to be ignored.
for model in rgcn hetero-sage; do
  on 2 --dataset papers "${net[@]}" --model $model --log plain.jsonl
  on 2 --dataset weighted "${net[@]}" --model $model --log log.jsonl
  grep -q "edges with weights" out || fail "the edges have no weights: $(cat out)"
  cmp -s <(grep -o '"loss":[^,]*' plain.jsonl) <(grep -o '"loss":[^,]*' log.jsonl) && fail "$model does not read the weights"
  on 2 --dataset weighted "${net[@]}" --model $model --mfg --log logm.jsonl
  same log.jsonl logm.jsonl "weights with --mfg"
  on 2 --dataset weighted "${net[@]}" --model $model --ignore-edge-weights --log log.jsonl
  same plain.jsonl log.jsonl "--ignore-edge-weights"
done
cp -r weighted renamed
for weights in renamed/edges/*/edge_weight.npy; do mv "$weights" "${weights%weight.npy}rate.npy"; done
on 2 --dataset weighted "${net[@]}" --model rgcn --add-self-loops --log log1.jsonl
on 2 --dataset renamed "${net[@]}" --model rgcn --add-self-loops --fields weight=rate --log log2.jsonl
same log1.jsonl log2.jsonl "weights with another name, and self loops"
on 2 --dataset weighted "${net[@]}" --model hgt --heads 2 --ignore-edge-weights
expect 1 "weighted: the edges of author:writes:paper have weights (weight), which --model hgt (HGTConv) does not read" "$train" --dataset weighted "${net[@]}" --model hgt --heads 2
on 2 --dataset weighted "${net[@]}" --model rgcn --fields weight=weight
expect 1 "weighted: no type of edges has data named rate, expected one, which shall be the weight" "$train" --dataset weighted "${net[@]}" --model rgcn --fields weight=rate
expect 1 "--sample-by-weight: the edges have no weights" "$train" --dataset papers "${net[@]}" --model rgcn --sample 2,2 --sample-by-weight
refuse "--fields: weight cannot be combined with --ignore-edge-weights" "$train" --dataset weighted "${net[@]}" --model rgcn --fields weight=weight --ignore-edge-weights
on 1 --dataset words "${net[@]}" --model hetero-gat --heads 2 --log log1.jsonl
on "$ranks" --dataset parts "${net[@]}" --model hetero-gat --heads 2 --log logp.jsonl
same log1.jsonl logp.jsonl "from a partition"
# With --mfg, a step computes less, by types, too, and gives the same.
on "$ranks" --dataset words "${net[@]}" --model hetero-gat --heads 2 --mfg --log logm.jsonl
same log1.jsonl logm.jsonl "with --mfg"

# A checkpoint goes on on other ranks, with learnable rows; predictions do not depend on ranks.
on 1 "${net[@]}" --model rgcn --dataset words --log log1.jsonl --predict p1 --predict-layer 1
on "$ranks" --category paper --layers 2 --hidden 8 --dropout 0.2 --model rgcn --dataset words --checkpoint c --epochs 1 --log log2.jsonl
on 2 --category paper --layers 2 --hidden 8 --dropout 0.2 --model rgcn --dataset words --checkpoint c --epochs 2 --resume --log log2.jsonl --predict p2 --predict-layer 1
same log1.jsonl log2.jsonl "resumed on other ranks"
for file in logits.npy labels.npy embeddings.paper.npy embeddings.word.npy; do
  [ -s "p2/$file" ] && [ "$(stat -c %s "p1/$file")" = "$(stat -c %s "p2/$file")" ] || fail "$file is not the same on 2 ranks"
done
cmp -s p1/labels.npy p2/labels.npy || fail "other labels on 2 ranks"

# Predictions are the category's rows, also where it is not the first type: those of the training nodes are their labels.
cp -r words swapped
awk '{ line[NR] = $0 } END { for (i = 1; i <= NR; ++i) print line[i == 6 || i == 7 ? i + 4 : i == 10 || i == 11 ? i - 4 : i] }' \
  words/hetero.json >swapped/hetero.json # the names and the numbers of the two types
on 2 --category paper --layers 2 --hidden 16 --dropout 0 --model rgcn --dataset swapped --epochs 60 --predict p3
grep -q "node types (word: 24, paper: 90)" out || fail "the types are not swapped"
numbers() { od -An -v "$1" -w"$2" -j128 "$3"; }
paste <(numbers -td8 8 p3/labels.npy) <(numbers -td8 8 swapped/nodes/paper/labels.npy) <(numbers -tu1 1 swapped/nodes/paper/train_mask.npy) >both
awk '$3 == 1 { ++n; same += $1 == $2 } END { exit n < 10 || same < n }' both || fail "the training nodes have other labels: $(cat both)"

# A split that is drawn is that of the category's ids, whatever the order of the types; each run has its own, or all have one.
drawn=(--category paper --model rgcn --hidden 8 --epochs 1 --split-nodes 0.5,0.25,0.25)
on 2 --dataset swapped "${drawn[@]}" --predict p4
grep -q "split drawn with seed 0: 45 training, " out || fail "no split of 90 papers: $(cat out)"
[ "$(numbers -td8 8 p4/split.npy | grep -cx ' *0')" -eq 45 ] || fail "split.npy is not that of the papers: $(numbers -td8 8 p4/split.npy)"
on 1 --dataset words "${drawn[@]}" --predict p5
cmp -s p4/split.npy p5/split.npy || fail "another split where the papers are the first type"
on 2 --dataset swapped "${drawn[@]}" --runs 2 --predict p6
on 1 --dataset words "${drawn[@]}" --seed 1 --predict p7
cmp -s p6/seed-1/split.npy p7/split.npy || fail "the second run has another split than a run with its seed"
on 2 --dataset swapped "${drawn[@]}" --runs 2 --split-seed 7 --predict p8
cmp -s p8/seed-0/split.npy p8/seed-1/split.npy || fail "--split-seed gives two runs two splits"

# Masks with a column for each split.
cp -r swapped splits
for mask in train:val val:train test:test; do
  first=swapped/nodes/paper/${mask%:*}_mask.npy second=swapped/nodes/paper/${mask#*:}_mask.npy
  head -c 128 "$first" | sed 's/(90,), }  /(90, 2), }/' >"splits/nodes/paper/${mask%:*}_mask.npy"
  paste <(numbers -tu1 1 "$first") <(numbers -tu1 1 "$second") | while read -r a b; do printf '%b' "\\x0$a\\x0$b"; done >>"splits/nodes/paper/${mask%:*}_mask.npy"
done
on 2 --dataset splits --category paper --model rgcn --hidden 8 --epochs 1 --splits all --log log.jsonl
[ "$(grep -c '"best_epoch":' log.jsonl)" -eq 2 ] && grep -q '"splits":\[0,1\]' log.jsonl || fail "--splits all trains $(cat log.jsonl)"
grep -q "split 1 of 2 " out || fail "--splits all does not say the split: $(cat out)"
on 2 --dataset splits --category paper --model rgcn --hidden 8 --epochs 1 --split 1
grep -q "split 1 of 2 " out || fail "--split 1: $(cat out)"

# A graph without types: its weights are used, or refused with the name of the convolution.
awk 'BEGIN { print "source,target,weight"; for (v = 0; v < 40; ++v) for (k = 1; k < 4; ++k) print v "," (v * k + k) % 40 "," (1 + v % 3) / 4 }' >rated.csv
rated=(--dataset rated.csv --embedding 4 --task link --layers 2 --hidden 8 --epochs 2)
on 2 "${rated[@]}" --model gat
grep -q "edges with weights" out || fail "the edges have no weights: $(cat out)"
expect 1 "the edges have weights, which --model gatv2 (GATv2Conv) does not read, expected --model sage, gcn, gat or gin, --sample-by-weight or --ignore-edge-weights" \
  "$train" "${rated[@]}" --model gatv2
on 2 "${rated[@]}" --model gatv2 --ignore-edge-weights
on 2 "${rated[@]}" --model gatv2 --sample 2,2 --sample-by-weight

expect 1 "there is no node type author, expected one of" "$train" --dataset words --category author --model rgcn --epochs 1
expect 1 "expected them for the category word" "$train" --dataset words --category word --model rgcn --epochs 1
expect 2 "words has node and edge types, expected --category" "$train" --dataset words --model rgcn --epochs 1
refuse "--category: is for graphs with node and edge types, expected --model" "$train" --dataset words --category paper --model sage --epochs 1
refuse "--model: hgt needs --category or --relation" "$train" --graph karate --model hgt --epochs 1
refuse "--category: needs --task node; --task link has --relation" "$train" --dataset words --category paper --model rgcn --task link --epochs 1
expect 1 "--sample-relation: there is no edge type 'likes'" "$train" --dataset words --category paper --model rgcn --epochs 1 --sample 3,2 --sample-relation likes=1,2
refuse "--sample-relation: there are 1 fan-outs of cites, expected one for each of --layers 2" "$train" --dataset words --category paper --model rgcn --sample 3,2 --sample-relation cites=1
refuse "'5,x', expected a fan-out for each layer, such as 15,10,5" "$train" --dataset words --category paper --model rgcn --sample 3,2 --sample-relation cites=5,x
refuse "--sample-relation" "$train" --graph karate --sample 3,2 --sample-relation cites=1,2
