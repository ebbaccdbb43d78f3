#!/usr/bin/env bash
# SPDX-License-Identifier: MIT

# load_model_test.sh MPIRUN_SH MPIEXEC RANKS TOOLS_DIR TEST_DATA PROGRAM: networks that train saves are made again from their files, and give the
# logits that train predicts.
source "$(dirname "$0")/../support/program_test.sh"
data=$5 program=$6

train=("$programs/train" --graph sbm --nodes 40 --classes 4 --features 5 --save-weights model.safetensors --predict predicted)
check() {
  rm -rf predicted model.safetensors
  "${run[@]}" "${train[@]}" "$@" >out 2>err || fail "train $* ends with $?"
  "${run[@]}" "$program" model.safetensors predicted/logits.npy >out 2>err || fail "what train $* has saved is not loaded"
  grep -q "the logits of train" out || fail "train $*: no comparison"
}
trained=(--hidden 8 --epochs 3)
check "${trained[@]}" --model sage --layers 3 --batch-norm
check "${trained[@]}" --model sage --layers 1
check "${trained[@]}" --model gcn --layers 2 --dropout 0.3
check "${trained[@]}" --model gat --layers 3 --heads 2 --out-heads 3 --residual 2
check "${trained[@]}" --model gat --layers 2 --heads 4 --batch-norm
check "${trained[@]}" --model gin --layers 2 --batch-norm
check "${trained[@]}" --model gcn --layers 3 --norm layer --residual linear --jk sum --pre-linear
check "${trained[@]}" --model gatv2 --layers 2 --heads 2,4 --attn-dropout 0.2 --residual 2 --jk max --norm batch --dropout 0.2

# Networks on a graph with types, some of which have learnable rows.
"$programs/generate" --nodes 60 --classes 4 --features 12 --degree 4 --out cites >out 2>err && "$programs/generate" --words cites --out words >out 2>err || fail "generate"
check_typed() {
  rm -rf predicted typed.safetensors*
  "${run[@]}" "$programs/train" --dataset words --category paper --layers 2 --hidden 8 --epochs 3 --save-weights typed.safetensors --predict predicted "$@" >out 2>err ||
    fail "train $* ends with $?"
  "${run[@]}" "$program" typed.safetensors predicted/logits.npy words paper >out 2>err || fail "what train $* has saved is not loaded"
  grep -q "the logits of train" out || fail "train $*: no comparison"
}
check_typed --model rgcn --num-bases 2 --batch-norm
check_typed --model hgt --heads 2 --residual linear
check_typed --model hetero-sage --jk cat
check_typed --model hetero-gat --heads 4 --pre-linear
cp typed.safetensors kept.safetensors && for rows in typed.safetensors.rows.*; do cp "$rows" "kept${rows#typed}"; done
"${run[@]}" "$programs/train" --dataset words --category paper --layers 2 --hidden 8 --epochs 0 --model hetero-gat --heads 4 --pre-linear --init-weights kept.safetensors \
  --predict again >out 2>err || fail "saved weights are not read"
cmp -s predicted/labels.npy again/labels.npy || fail "saved weights give other labels"
expect 1 "a network of type hetero-gat, which reads relations, on one matrix, expected rows of each node type" "$program" kept.safetensors predicted/logits.npy
for rows in kept.safetensors.rows.*; do cp "$rows" "model${rows#kept}"; done
expect 1 "a network of type gatv2 on rows of node types, expected one matrix, because it reads no relations" "$program" model.safetensors predicted/logits.npy words paper

# The names of another program, with the description in the metadata, and beside it.
check --model gcn --layers 2 --hidden 6 --epochs 0 --init-weights "$data/peer/gcn_pyg.safetensors"
tr -c 'a-z0-9._' '\n' <model.safetensors | grep -q '^conv1.lin.weight$' || fail "the names are not those of the other program"
mkdir -p beside && cp "$data/peer/gcn_pyg.safetensors" beside/weights.safetensors
printf '%s' '{"sar_model": 1, "type": "gcn", "in_feats": 5, "hidden": 6, "out_feats": 4, "layers": 2, "weights": "weights.safetensors"}' >beside/model.json
expect 0 "the logits of train" "$program" beside/model.json predicted/logits.npy

# Weights without a description: those of a network that needs more than features.
expect 0 "epoch    1/1" "$programs/train" --graph sbm --nodes 40 --classes 4 --model rgcn --hidden 8 --epochs 1 --save-weights other.safetensors
expect 1 "other.safetensors: the metadata have no key 'sar.model', expected the description" "$program" other.safetensors predicted/logits.npy
