#!/usr/bin/env bash
# SPDX-License-Identifier: MIT

# train_format_test.sh MPIRUN_SH MPIEXEC RANKS TOOLS_DIR: train --halo-format: bytes, losses, runs that go on, and what is refused.
source "$(dirname "$0")/../support/program_test.sh"

formats=(bf16 int8)
if "$programs/train" --graph karate --epochs 0 --halo-format int8 2>&1 | grep -q "is int8 in double precision"; then formats=(bf16); fi

# Losses of one rank up to the rounding; a half or a quarter of the bytes of rows, beside which gradients of parameters travel; and the same
# losses when the run was interrupted.
field() { sed -n "s/.*\"$1\":\([^,]*\),.*/\1/p" "$2"; }
for model in "sage --layers 3 --batch-norm" "gat --layers 2 --heads 2" "sage --layers 2 --mfg"; do
  train=("$programs/train" --graph sbm --nodes 600 --classes 4 --degree 8 --hidden 32 --dropout 0.2 --partition random --eval-every 3 --model $model)
  "$1" "$2" 1 "${train[@]}" --epochs 6 --halo-format bf16 --log one.jsonl >out 2>err || fail "$model on one rank ends with $?"
  "${run[@]}" "${train[@]}" --epochs 6 --log exact.jsonl >out 2>err || fail "$model ends with $?"
  grep -q "halo format exact" out || fail "the first line does not tell the format"
  for format in "${formats[@]}"; do
    "${run[@]}" "${train[@]}" --epochs 6 --halo-format "$format" --log log.jsonl >out 2>err || fail "--halo-format $format ends with $?"
    [ "$(grep -c "\"halo_format\":\"$format\"" log.jsonl)" -eq 6 ] || fail "not the format in every epoch of the log"
    paste <(field loss one.jsonl) <(field loss log.jsonl) <(field comm_bytes exact.jsonl) <(field comm_bytes log.jsonl) >both
    most=0.6
    if [ "$format" = int8 ]; then most=0.45; fi
    awk -v ranks="$ranks" -v most=$most '{ if (($1 - $2) ^ 2 > (0.02 * $1) ^ 2 || (ranks > 1 && $4 > most * $3)) exit 1; ++n } END { exit n != 6 }' both ||
      fail "$model, --halo-format $format: losses on 1 and $ranks ranks, bytes of exact rows and of these: $(cat both)"
    rm -rf checkpoints
    "${run[@]}" "${train[@]}" --epochs 3 --halo-format "$format" --log part.jsonl --checkpoint checkpoints >out 2>err || fail "--checkpoint ends with $?"
    "${run[@]}" "${train[@]}" --epochs 6 --halo-format "$format" --log part.jsonl --checkpoint checkpoints --resume >out 2>err || fail "--resume ends with $?"
    paste <(field loss log.jsonl) <(field loss part.jsonl) <(field test_acc log.jsonl | head -n 6) <(field test_acc part.jsonl | head -n 6) >both
    awk '{ if ($1 != $2 || $3 != $4) exit 1; ++n } END { exit n != 6 }' both || fail "$model, --halo-format $format, resumed: $(cat both)"
  done
done
"${train[@]}" --epochs 1 --halo-format bf16 --checkpoint rounded >out 2>err || fail "--checkpoint ends with $?"
expect 1 "made with --halo-format bf16, expected exact as in this run" "${train[@]}" --epochs 2 --checkpoint rounded --resume

expect 2 "--halo-format: 'fp8', expected one of" "$programs/train" --graph karate --halo-format fp8
refuse "--halo-format: is bf16 with --reproducible, expected exact" "$programs/train" --graph karate --halo-format bf16 --reproducible
