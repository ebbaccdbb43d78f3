#!/usr/bin/env bash
# SPDX-License-Identifier: MIT

# train_runs_test.sh MPIRUN_SH MPIEXEC RANKS TOOLS_DIR: trainings that are interrupted and go on, by batches and by epochs; schedules, the
# best epoch, several runs.
source "$(dirname "$0")/../support/program_test.sh"

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
expect 1 "made with --batch-per-rank on 1 ranks, partition random, expected on $ranks ranks, partition random as in this run" \
  "${sampled[@]}" --batch-per-rank --checkpoint ck --resume
rm -r ck
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
