#!/usr/bin/env bash
# train_test.sh MPIRUN_SH MPIEXEC RANKS TOOLS_DIR: train --reproducible on 1, 2 and RANKS ranks, and resumed on another number.
source "$(dirname "$0")/../support/program_test.sh"

on() { "$mpirun_sh" "$mpiexec" "$@"; }
mpirun_sh=$1 mpiexec=$2
losses() { sed -n 's/.*"loss":\([^,]*\),.*"test_acc":\([^,]*\),.*/\1 \2/p' "$1"; }
for model in "sage --batch-norm" "gcn" "gat --heads 2 --attn-dropout 0.2"; do
  train=("$programs/train" --graph sbm --nodes 500 --classes 4 --degree 8 --hidden 16 --layers 2 --dropout 0.3 --partition random
         --reproducible --eval-every 1 --model $model)
  on 1 "${train[@]}" --epochs 6 --log one.jsonl --save-weights one.safetensors >out 2>err || fail "$model on one rank ends with $?"
  [ "$(losses one.jsonl | wc -l)" -eq 6 ] || fail "no loss in $(cat one.jsonl)"
  for other in 2 "$ranks"; do
    on "$other" "${train[@]}" --epochs 6 --log log.jsonl --save-weights weights.safetensors --mode sequential --max-halo-bytes 3000 >out 2>err ||
      fail "$model on $other ranks ends with $?"
    diff <(losses one.jsonl) <(losses log.jsonl) || fail "$model: losses of $other ranks"
    cmp one.safetensors weights.safetensors || fail "$model: weights of $other ranks"
  done
  rm -rf checkpoints part.jsonl
  on 2 "${train[@]}" --epochs 3 --log part.jsonl --checkpoint checkpoints >out 2>err || fail "--checkpoint ends with $?"
  on "$ranks" "${train[@]}" --epochs 6 --log part.jsonl --checkpoint checkpoints --save-weights weights.safetensors --resume >out 2>err ||
    fail "$model: 2 ranks go on as $ranks, which ends with $?: $(cat err)"
  diff <(losses one.jsonl) <(losses part.jsonl) || fail "$model: losses of a resumed training"
  cmp one.safetensors weights.safetensors || fail "$model: weights of a resumed training"
done
expect 2 "--reproducible: mini-batches depend on the number of ranks" "${train[@]}" --epochs 1 --sample 5,5
expect 2 "--reproducible: needs --task node" "${train[@]}" --epochs 1 --task link
