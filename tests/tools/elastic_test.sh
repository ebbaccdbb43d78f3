#!/usr/bin/env bash
# SPDX-License-Identifier: MIT

# elastic_test.sh MPIRUN_SH MPIEXEC TOOLS_DIR ELASTIC: a rank of a training under tools/elastic is killed at random moments, SAR_KILLS (2)
# times. It starts again each time with the ranks that are left, and the weights and the curve have the bits of an undisturbed training.
set -euo pipefail
mpirun_sh=$1 mpiexec=$2 train=$3/train elastic=$4
kills=${SAR_KILLS:-2}
RANDOM=${SAR_KILL_SEED:-$$}
echo "seed ${SAR_KILL_SEED:-$$}"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
mkdir pids
fail() {
  echo "FAILED: $*"
  tail -n 60 out
  exit 1
}

options=(--graph sbm --nodes 500 --classes 3 --degree 5 --hidden 16 --dropout 0.3 --threads 1 --reproducible --epochs $((40 + 40 * kills)))
"$mpirun_sh" "$mpiexec" 1 "$train" "${options[@]}" --log whole.jsonl --save-weights whole.safetensors >out 2>&1 || fail "the training that nobody kills"

# each rank leaves its process number; the launcher takes -n RANKS, as mpirun does
printf '#!/usr/bin/env bash\n: >"pids/$$"\nexec "$@"\n' >rank.sh
printf '#!/usr/bin/env bash\nrm -f pids/*\nexec "%s" "%s" "$2" ./rank.sh "${@:3}"\n' "$mpirun_sh" "$mpiexec" >launch.sh
chmod +x rank.sh launch.sh

"$elastic" -n 4 -f 1000 -l ./launch.sh "$train" "${options[@]}" --log log.jsonl --save-weights weights.safetensors --checkpoint checkpoints --checkpoint-every 1 \
  >out 2>&1 &
run=$!
killed=0
while [ "$killed" -lt "$kills" ]; do
  # the next start has written lines of 1 to 20 epochs
  starts=$(grep -c "^elastic: a rank of" out || true)
  epochs=$((RANDOM % 20))
  until [ "$(awk '/^elastic: / { n = 0 } /^epoch/ { ++n } END { print n + 0 }' out)" -gt "$epochs" ]; do
    kill -0 $run 2>/dev/null || break 2
    sleep 0.01
  done
  victims=($(ls pids))
  kill -9 "${victims[$((RANDOM % ${#victims[@]}))]}" 2>/dev/null && killed=$((killed + 1))
  until [ "$(grep -c "^elastic: a rank of" out || true)" -gt "$starts" ]; do
    kill -0 $run 2>/dev/null || break 2
    sleep 0.02
  done
done
wait $run || fail "the training under elastic ends with $?"
said=$(grep -c "^elastic: a rank of" out || true)
[ "$killed" -gt 0 ] || fail "no rank was killed before the training ended"
[ "$said" -ge $((killed - 1)) ] && [ "$said" -le "$killed" ] || fail "$killed ranks were killed, and $said new starts told"  # the last one may come too late
cmp whole.safetensors weights.safetensors || fail "other weights"
curve() { grep '"loss"' "$1" | sed 's/"seconds.*//'; }
diff <(curve whole.jsonl) <(curve log.jsonl) || fail "another curve"

# An error of the training itself is not repeated, and neither is a death without a new checkpoint.
status=0
"$elastic" -n 1 -l ./launch.sh "$train" "${options[@]}" --model none --checkpoint other >out 2>&1 || status=$?
[ $status -eq 2 ] && ! grep -q "^elastic" out || fail "a wrong option ends with $status"
status=0
"$elastic" -n 2 -f 2 -l ./launch.sh bash -c 'kill -9 $$' train --checkpoint other >out 2>&1 || status=$?
[ $status -ne 0 ] && grep -q "^elastic: no new checkpoint in 2 starts, giving up" out || fail "a program that always dies ends with $status"
status=0
"$elastic" -n 2 "$train" >out 2>&1 || status=$?
[ $status -eq 2 ] && grep -q "^elastic: expected a training with --checkpoint DIR" out || fail "a training without checkpoints ends with $status"
echo "$killed kills, $said new starts, the same bits"
