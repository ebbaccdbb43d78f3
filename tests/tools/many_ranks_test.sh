#!/usr/bin/env bash
# SPDX-License-Identifier: MIT

# many_ranks_test.sh MPIRUN_SH MPIEXEC RANKS TOOLS_DIR: a training on many more ranks than cores has the bits of one rank, and sends the bytes
# that `plan` predicts.
source "$(dirname "$0")/../support/program_test.sh"

graph=(--graph sbm --nodes 3000 --degree 8 --hidden 16 --layers 2 --partition random)
number() { grep -o "\"$1\": *[0-9.]*" "$2" | tail -n 1 | sed 's/.*: *//'; }
"${run[@]}" "$programs/train" "${graph[@]}" --epochs 2 --threads 1 --eval-every 0 --log log.jsonl >out 2>err || fail "training ends with $?"
"${single[@]}" "$programs/plan" "${graph[@]}" --ranks "$ranks" --link 10gbit --json plan.json >out 2>err || fail "plan ends with $?"
awk -v sent="$(number comm_bytes log.jsonl)" -v planned="$(number sent_bytes plan.json)" 'BEGIN { exit !(sent > 0 && sent / planned > 0.98 && sent / planned < 1.02) }' ||
  fail "$(number comm_bytes log.jsonl) bytes are sent, $(number sent_bytes plan.json) planned"

same=("${graph[@]}" --reproducible --epochs 2 --threads 1 --eval-every 0)
"${single[@]}" "$programs/train" "${same[@]}" --save-weights one >out 2>err || fail "one rank ends with $?"
"${run[@]}" "$programs/train" "${same[@]}" --save-weights many >out 2>err || fail "--reproducible ends with $?"
cmp one many || fail "other weights than one rank"
