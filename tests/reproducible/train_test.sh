#!/usr/bin/env bash
# SPDX-License-Identifier: MIT

# train_test.sh MPIRUN_SH MPIEXEC RANKS TOOLS_DIR: train --reproducible on 1, 2 and RANKS ranks, and resumed on another number;
# of each task, and with batches.
source "$(dirname "$0")/../support/program_test.sh"

on() { "$mpirun_sh" "$mpiexec" "$@"; }
mpirun_sh=$1 mpiexec=$2 sbm="--graph sbm --nodes 150 --classes 3 --degree 8 --partition random"
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

# Other tasks and batches: the weights, the rows of embeddings and the curve of one rank. 12 structures of 8 atoms, 30 graphs that
# are rings or stars, and edges with labels.
awk 'BEGIN {
  srand(1)
  for (s = 0; s < 12; ++s) {
    printf "8\nLattice=\"2.4 0 0 0 2.4 0 0 0 2.4\" Properties=species:S:1:pos:R:3:forces:R:3 energy=%f\n", -30 + rand()
    for (i = 0; i < 8; ++i) {
      printf "%s", rand() < 0.5 ? "Si" : "O"
      for (k = 0; k < 3; ++k) printf " %f", 1.2 * (int(i / 2 ^ k) % 2) + 0.2 * rand()
      for (k = 0; k < 3; ++k) printf " %f%s", rand() - 0.5, k == 2 ? "\n" : ""
    }
  }
}' >atoms.xyz
tu_folder 30
awk 'BEGIN {
  print "src,dst,label,split"
  for (e = 0; e < 400; ++e) print e * 7 % 60 "," e * 13 % 53 "," e % 3 "," (e % 10 < 8 ? "train" : e % 10 < 9 ? "val" : "test")
}' >edges.csv
net=(--reproducible --epochs 2 --eval-every 1)
curve() { grep '"loss"' "$1" | sed 's/"seconds.*//'; }
while read -r options; do
  [[ $options == *--layers* ]] || options="--hidden 8 --layers 2 $options"
  for number in 1 2 "$ranks"; do
    # shellcheck disable=SC2086  # several options
    on "$number" "$programs/train" "${net[@]}" $options --threads $((number % 2 + 1)) --log "log$number" --save-weights "w$number" >out 2>err </dev/null ||
      fail "$options on $number ranks ends with $?: $(cat err)"
    diff <(curve log1) <(curve "log$number") || fail "$options: the curve of $number ranks"
    for file in w1*; do cmp "$file" "w$number${file#w1}" || fail "$options: $file of $number ranks"; done
  done
  [ "$(curve log1 | wc -l)" -eq 2 ] || fail "$options: no curve in $(cat log1)"
  rm -f w* log*
done <<END
--task potential --dataset atoms.xyz --cutoff 2.2 --num-basis 4 --batch-size 5 --split-graphs 8,4,0 --clip-norm 1
--task potential --dataset atoms.xyz --cutoff 2.2 --num-basis 4 --batch-size 5 --split-graphs 8,4,0 --committee 3
--task potential --dataset atoms.xyz --cutoff 2.2 --num-basis 4 --batch-size 5 --split-graphs 8,4,0 --model mace --max-ell 2 --radial-mlp 8
--task graph --dataset tu --model gin --readout mean --split-graphs 20,5,5 --batch-size 6 --norm batch --dropout 0.2
$sbm --task link --predictor distmult --metric average-precision --batch-norm
$sbm --task link --predictor mlp --link-loss margin --negatives 3 --sample 4,3 --batch-size 100
--task edge --dataset edges.csv --embedding 8 --dropout 0.1
$sbm --sample 4,3 --batch-size 40 --model gat --heads 2 --attn-dropout 0.2
$sbm --sample 4,3 --batch-size 40 --embedding 8
$sbm --sampler saint-walk --batch-size 60 --model gcn
$sbm --clusters 8 --clusters-per-batch 3 --dropout 0.2
$sbm --mfg --class-weights balanced --label-smoothing 0.1
--graph karate --mfg --model gat --layers 3 --hidden 64 --heads 4
$sbm --task link --sample 4,3 --batch-size 300 --model gatv2 --heads 2 --sampler labor
END
# A fine-tuned potential, whose energies of single atoms are fitted to what the first one leaves.
on 1 "$programs/train" --reproducible --task potential --dataset atoms.xyz --cutoff 2.2 --hidden 8 --layers 2 --epochs 1 --save-weights start.safetensors >out 2>err ||
  fail "a first potential ends with $?"
sed 's/energy=-/energy=-9/' atoms.xyz >moved.xyz
for number in 1 2 "$ranks"; do
  on "$number" "$programs/train" "${net[@]}" --task potential --dataset moved.xyz --init-weights start.safetensors --energy-shifts fit --batch-size 5 \
    --save-weights "w$number" >out 2>err || fail "fine-tuning on $number ranks ends with $?"
  cmp w1 "w$number" || fail "a fine-tuned potential of $number ranks"
done

# shellcheck disable=SC2086  # several options
expect 2 "--bfloat16-features: " "$programs/train" $sbm "${net[@]}" --bfloat16-features
expect 2 "--reproducible: batches of --batch-per-rank depend on the number of ranks" "$programs/train" $sbm "${net[@]}" --sample 4,3 --batch-per-rank
# shellcheck disable=SC2086  # several options
expect 2 "--reproducible: with --halo-cache-bytes, gradients have a part" "$programs/train" $sbm "${net[@]}" --sample 4,3 --halo-cache-bytes 9999
