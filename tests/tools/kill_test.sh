#!/usr/bin/env bash
# SPDX-License-Identifier: MIT

# kill_test.sh MPIRUN_SH MPIEXEC TOOLS_DIR PRECISION: a rank of a training that writes a checkpoint every epoch is killed at a
# random moment, SAR_KILLS (4) times; each time the last checkpoint is complete, and the training goes on on 1, 2 or 3 ranks. At the
# end the curve is the one of a training that nobody killed.
set -euo pipefail
mpirun_sh=$1 mpiexec=$2 train=$3/train
accepted=1e-4
[ "$4" = single ] || accepted=1e-9
kills=${SAR_KILLS:-4}
RANDOM=${SAR_KILL_SEED:-$$}
echo "seed $RANDOM"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
mkdir pids
fail() {
  echo "FAILED: $*"
  cat out
  ls -l checkpoints
  exit 1
}

epochs=$((40 + 25 * kills))
options=(--graph sbm --nodes 300 --classes 3 --degree 5 --features 16 --hidden 128 --batch-norm --dropout 0.3 --lr 0.002 --weight-decay 5e-4
  --threads 1 --keep best --epochs "$epochs")
"$mpirun_sh" "$mpiexec" 1 "$train" "${options[@]}" --log whole.jsonl >out 2>&1 || fail "the training that nobody kills"

# each rank leaves its process number
cat >rank.sh <<'END'
#!/usr/bin/env bash
: >"pids/$$"
exec "$@"
END
chmod +x rank.sh

in_time=0 unfinished=0 resumed=0
for ((i = 0; i < kills; ++i)); do
  ranks=$((i % 3 + 1))
  rm -f out pids/*
  "$mpirun_sh" "$mpiexec" $ranks ./rank.sh "$train" "${options[@]}" --log log.jsonl --checkpoint checkpoints --checkpoint-every 1 --resume \
    >out 2>&1 &
  run=$!
  # from the first checkpoint on
  until grep -qs "^epoch" out || ! kill -0 $run 2>/dev/null; do sleep 0.02; done
  sleep "$(awk -v r=$RANDOM 'BEGIN { print 0.4 * r / 32768 }')"
  victims=($(ls pids))
  kill -9 "${victims[$((RANDOM % ranks))]}" 2>/dev/null && in_time=$((in_time + 1))
  wait $run 2>/dev/null || true
  ls checkpoints | grep -q tmp && unfinished=$((unfinished + 1))
  grep -q "^resuming from" out && resumed=$((resumed + 1))
  grep -q "^train: " out && fail "the run that was killed had an error of its own"
done

for ranks in 1 2 3; do
  rm -rf last
  cp -r checkpoints last
  cp log.jsonl last.jsonl
  "$mpirun_sh" "$mpiexec" $ranks "$train" "${options[@]}" --log last.jsonl --checkpoint last --resume >out 2>&1 ||
    fail "resuming on $ranks ranks ends with $?"
  grep -q "^resuming from" out || fail "there is nothing to resume from"
  ls last | grep -q tmp && fail "an unfinished file is left"
  paste whole.jsonl last.jsonl | sed -n 's/.*"epoch":\([0-9]*\),"loss":\([^,]*\),.*"epoch":\([0-9]*\),"loss":\([^,]*\),.*/\1 \2 \3 \4/p' >both
  awk -v accepted=$accepted -v epochs=$epochs '
    { d = ($2 - $4) / $2; if (d < 0) d = -d; if (d > largest) largest = d; if ($1 != NR || $3 != NR || d > accepted) exit 1; ++n }
    END { print "largest relative difference of the losses", largest; exit n != epochs }' both || fail "the curve on $ranks ranks: $(cat both)"
  best() { tail -n 1 "$1" | sed 's/.*\("best_val_acc":[^,]*\),.*\("best_epoch":[^,]*\),.*/\1 \2/'; }
  [ "$(best whole.jsonl)" = "$(best last.jsonl)" ] || fail "best epoch $(best whole.jsonl), after resuming $(best last.jsonl)"
done
echo "$in_time of $kills killed in time, $unfinished of them while a checkpoint was being written; $resumed had resumed from one"
[ "$in_time" -gt 0 ] || fail "no run was killed before it ended"
