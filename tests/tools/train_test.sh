#!/usr/bin/env bash
# SPDX-License-Identifier: MIT

# train_test.sh MPIRUN_SH MPIEXEC RANKS TOOLS_DIR: train as a user runs it: output, log, exit codes, and errors that are printed once.
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
  alone expect 0 "1 epochs in" "$programs/train" --graph karate --hidden 8 --epochs 1 --mode $mode
done

for model in gat gatv2; do
  "${few[@]}" "$programs/train" --graph karate --hidden 8 --heads 2 --model $model --batch-norm --residual 1 --epochs 1 >out 2>err ||
    fail "--batch-norm --residual 1 --model $model ends with $?"
done

# What goes wrong: exit code, one sentence, once.
expect 2 "--frobnicate" "$programs/train" --frobnicate
refuse "--epochs" "$programs/train" --epochs none
refuse "--model" "$programs/train" --model transformer
refuse "--num-rels" "$programs/train" --model rgcn --num-rels 0
refuse "--num-bases" "$programs/train" --model rgcn --num-bases -1
expect 1 "train: missing: there is no such file or directory, expected a dataset directory," "$programs/train" --dataset missing
alone expect 1 "train: sbm: 20 nodes, expected at least two for each of the 16 classes" "$programs/train" --nodes 20
expect 1 "train: missing/log: cannot write (No such file or directory)" "$programs/train" --graph karate --log missing/log
refuse "--checkpoint" "$programs/train" --resume
expect 1 "train: missing/w: cannot write (No such file or directory)" "$programs/train" --graph karate --save-weights missing/w
expect 1 "train: missing: cannot open (No such file or directory), expected a .safetensors file" "$programs/train" --graph karate --init-weights missing
expect 0 "no checkpoint in run: starting from the beginning" "$programs/train" --graph karate --hidden 8 --epochs 10 --checkpoint run --resume
expect 1 "train: run/checkpoint-00000010.safetensors exists, expected --resume" "$programs/train" --graph karate --hidden 8 --checkpoint run
alone expect 1 "made with --dropout 0.5, expected 0.4 as in this run" "$programs/train" --graph karate --hidden 8 --dropout 0.4 --checkpoint run --resume
expect 0 "resuming from run/checkpoint-00000010.safetensors, after epoch 10" "$programs/train" --graph karate --hidden 8 --epochs 12 --checkpoint run --resume
expect 0 "continuing with --lr 0.002 instead of 0.01" "$programs/train" --graph karate --hidden 8 --epochs 14 --lr 0.002 --checkpoint run --resume --log lr.jsonl
grep -q '"lr":0.002,' lr.jsonl || fail "the rate of the resumed run: $(cat lr.jsonl)"
alone expect 1 "made with --schedule none, expected step as in this run" "$programs/train" --graph karate --hidden 8 \
  --schedule step --checkpoint run --resume
# Two edges that have changed their sources are other data, though all degrees are the same.
awk 'BEGIN { print "id,label,feat"; for (v = 0; v < 30; ++v) print v "," v % 2 "," v / 30 }' >nodes.csv
awk 'BEGIN { for (v = 0; v < 30; ++v) print v "," (v + 1) % 30 "\n" v "," (v + 7) % 30 }' >edges.csv
sed 's/^3,4$/5,4/; s/^5,6$/3,6/' edges.csv >swapped.csv
ring=("$programs/train" --node-table nodes.csv --node-columns features=feat --split-nodes 0.6,0.2,0.2 --split-seed 1 --hidden 4 --layers 1 --checkpoint ring)
expect 0 "epoch    1/1" "${ring[@]}" --dataset edges.csv --epochs 1
alone expect 1 "made with edges whose hash is " "${ring[@]}" --dataset swapped.csv --epochs 2 --resume
expect 0 "resuming from ring" "${ring[@]}" --dataset edges.csv --epochs 2 --resume
alone expect 0 "resuming from ring" "${ring[@]}" --dataset edges.csv --epochs 3 --resume
refuse "--warm-up: needs --schedule none, step or cosine, not plateau" "$programs/train" --schedule plateau --warm-up 2
refuse "--warm-up: is 5, expected less than --epochs 5" "$programs/train" --schedule cosine --warm-up 5 --epochs 5
refuse "--clip-norm" "$programs/train" --clip-norm -1

# Options that exclude or need others.
for wrong in 4,x 4,,3 4,-2; do
  refuse "'$wrong', expected a fan-out for each layer" "$programs/train" --graph karate --sample $wrong
done
refuse "there are 2 fan-outs, expected one for each of --layers 3" "$programs/train" --graph karate --sample 4,3 --layers 3
refuse "--sample excludes --mfg" "$programs/train" --graph karate --sample 3 --mfg
refuse "--batch-size: needs --sample, --sampler saint-node, saint-edge or saint-walk, or --task graph" "$programs/train" --graph karate --batch-size 9
alone expect 1 "--drop-last leaves no batch" "$programs/train" --graph karate --sample 3 --batch-size 500 --drop-last
alone expect 1 "the model.residual is 'identity', but layer 1 makes rows of 8 values from rows of 34, expected 'linear', or equal widths, which pre_linear and jk give" \
  "$programs/train" --graph karate --hidden 8 --residual identity --post-linear
refuse "--residual: 'conv', expected none, identity, linear or the first layer with a residual connection, 1 to --layers 3" \
  "$programs/train" --graph karate --residual conv
refuse "--residual: '4', expected none" "$programs/train" --graph karate --residual 4
refuse "--heads: there are 2 numbers, expected one for each of --layers 3" "$programs/train" --graph karate --model gat --heads 8,1
refuse "--heads: '8,,1', expected a whole number from 1 on, or one for each layer" "$programs/train" --graph karate --model gat --heads 8,,1
refuse "--hidden: is 64, expected a multiple of --heads 6" "$programs/train" --graph karate --model gat --hidden 64 --heads 8,6,1
refuse "--out-heads: cannot be combined with a list of --heads" "$programs/train" --graph karate --model gat --heads 8,8,1 --out-heads 2
refuse "--out-heads: cannot be combined with --jk sum" "$programs/train" --graph karate --model gat --out-heads 2 --jk sum
refuse "--norm excludes --batch-norm" "$programs/train" --graph karate --norm layer --batch-norm
refuse "--keep: '3', expected last or best (--keep-checkpoints 3 keeps that many checkpoints)" "$programs/train" --keep 3
refuse "--stop-after: needs validation values, expected --eval-every of 1 or more" "$programs/train" --stop-after 3 --eval-every 0
refuse "--runs: needs validation values" "$programs/train" --runs 2 --eval-every 0
for unread in "--step-size 3" "--patience 2 --schedule cosine" "--min-lr 0.1 --schedule step" "--lr-factor 0.5" "--heads 2" \
  "--out-heads 2" "--attn-dropout 0.1" "--num-rels 2" "--num-bases 1 --model gat" "--momentum 0.5"; do
  refuse "${unread%% *}: needs --" "$programs/train" --graph karate --epochs 1 $unread
done
mkdir predictions && touch predictions/{labels,logits}.partition_order.npy
alone expect 0 "WARNING: predictions has files that this run has not written: labels.partition_order.npy, logits.partition_order.npy" \
  "$programs/train" --graph karate --hidden 8 --epochs 1 --predict predictions
[ -e predictions/labels.npy ] || fail "no predictions"
refuse "there is no layer 4" "$programs/train" --predict nowhere --predict-layer 4
refuse "--predict" "$programs/train" --predict-layer 1
alone expect 1 "train: karate: the labels have 2 classes, expected --num-classes" "$programs/train" --graph karate --num-classes 1
mkdir nothing
expect 1 "train: nothing: is a directory, expected a file that can be written" "$programs/train" --graph karate --epochs 1 --save-weights nothing
! grep -q ^epoch out || fail "it trained before"
mkdir -p taken/logits.npy
alone expect 1 "train: taken/logits.npy: is a directory" "$programs/train" --graph karate --epochs 1 --predict taken
alone expect 1 "14 epochs are done, expected --epochs of at least that" "$programs/train" --graph karate --hidden 8 --epochs 5 --checkpoint run --resume
expect 0 "resuming from run/checkpoint-00000014.safetensors" "$programs/train" --graph karate --hidden 8 --epochs 0 --checkpoint run --resume --predict resumed
alone expect 1 "there are no weights to predict with" "$programs/train" --graph karate --epochs 0 --checkpoint new --resume --predict untrained
refuse "--dataset: the path is empty" "$programs/train" --dataset ""
refuse "--node-data: needs a --dataset that is an edge list" "$programs/train" --graph karate --node-data features=x.npy
refuse "--node-data: 'x.npy', expected NAME=FILE.npy" "$programs/train" --dataset edges --node-data x.npy
expect 1 "train: nothing: " "$programs/train" --dataset nothing
expect 1 "train: SAR_TRACE: missing/trace: cannot write (No such file or directory)" env SAR_TRACE=missing/trace "$programs/train"
for program in partition generate; do
  alone expect 1 "$program: SAR_TRACE: missing/trace: cannot write (No such file or directory)" env SAR_TRACE=missing/trace "$programs/$program"
done
refuse "--hidden: is 30, expected a multiple of --heads 4" "$programs/train" --graph karate --model gat --hidden 30
