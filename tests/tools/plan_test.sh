#!/usr/bin/env bash
# SPDX-License-Identifier: MIT

# plan_test.sh MPIRUN_SH MPIEXEC RANKS TOOLS_DIR: what plan predicts beside what train measures, from a dataset, from parts, from numbers alone;
# rates that are kept; and what is refused.
source "$(dirname "$0")/../support/program_test.sh"

number() { sed -n "s/.*\"$1\": *\([0-9.e+-]*\).*/\1/p" "$2" | head -n 1; }
# within PERCENT PREDICTED MEASURED WHAT
within() { awk -v p="$2" -v m="$3" -v s="$1" 'BEGIN { exit !(p > 0 && m > 0 && p <= (1 + s / 100) * m && p >= (1 - s / 100) * m) }' || fail "$4: $2 is predicted, $3 measured"; }
here=(--threads 1 --ranks "$ranks" --link 10gbit)

"${run[@]}" "$programs/generate" --nodes 24000 --degree 12 --classes 4 --features 24 --out data >out 2>err || fail "generate ends with $?"
"${run[@]}" "$programs/partition" data --parts "$ranks" --method random --out parts >out 2>err || fail "partition ends with $?"

# Memory and bytes, as train measures them.
for model in "sage --batch-norm" "sage --halo-format bf16" "gat" "gat --mode sequential" "gcn --max-halo-bytes 65536" "gcn --sparse-features yes --dropout 0.5" \
  "gin --mode sequential" "gatv2 --heads 2" "rgcn --num-bases 2" "sage --pre-linear --post-linear --dropout 0.5"; do
  # shellcheck disable=SC2206
  options=(--dataset parts --hidden 64 --epochs 3 --eval-every 0 --model $model)
  "${run[@]}" "$programs/train" "${options[@]}" --threads 1 --log log.jsonl >out 2>err || fail "train ends with $?"
  "${run[@]}" "$programs/plan" "${options[@]}" "${here[@]}" --json plan.json >out 2>err || fail "plan ends with $?"
  # the remote shard of edges with types holds more than the local one, which plan measures
  within "$(case $model in rgcn*) echo 15 ;; *) echo 10 ;; esac)" "$(number peak_bytes plan.json)" "$(number peak_bytes <(sed -n 3p log.jsonl))" "memory of $model"
  within 6 "$(number sent_bytes plan.json)" "$(number comm_bytes <(sed -n 3p log.jsonl))" "bytes of $model"
  for key in received_bytes compute_seconds wire_seconds seconds evaluation_seconds stages halo_nodes messages neighbors; do
    [ -n "$(number $key plan.json)" ] || fail "no $key in the plan"
  done
done

# The same parts, counted in the dataset; the rates are measured once, and then read.
model=(--model sage --hidden 64 --batch-norm --rates rates.json)
"${run[@]}" "$programs/plan" parts "${model[@]}" "${here[@]}" --json parts.json >out 2>err || fail "plan of parts ends with $?"
grep -q "peak_bytes of train" out || fail "the plan is not printed"
cp rates.json first.json
"${run[@]}" "$programs/plan" data --partition random "${model[@]}" "${here[@]}" --json data.json >out 2>err || fail "plan of a dataset ends with $?"
cmp -s rates.json first.json || fail "the rates have been measured again"
for key in nodes in_edges cut_edges neighbors; do
  [ "$(number $key parts.json)" = "$(number $key data.json)" ] || fail "$key of the parts is $(number $key parts.json), of the dataset $(number $key data.json)"
done
within 1 "$(number peak_bytes parts.json)" "$(number peak_bytes data.json)" "memory from parts and from the dataset"

# Of parts, the fields that --fields names, and labels with a column for each class.
cp -r parts named
sed -i 's/"features"/"state"/; s/"labels"/"kind"/' named/partition.json
for fields in named/part-*/nodes/_N/data; do mv "$fields/features.npy" "$fields/state.npy" && mv "$fields/labels.npy" "$fields/kind.npy"; done
"${run[@]}" "$programs/plan" named --fields features=state labels=kind "${model[@]}" "${here[@]}" --json named.json >out 2>err || fail "plan with --fields: $(cat err)"
[ "$(number peak_bytes named.json)" = "$(number peak_bytes parts.json)" ] || fail "--fields: $(number peak_bytes named.json) bytes, $(number peak_bytes parts.json) with the usual names"

# What stages add to takes time: the more, the smaller they are.
compute() { # SECONDS_OF_AN_ADDED_BYTE MAX_HALO_BYTES
  sed "s/\"exchange_seconds_per_added_byte\": [^,]*/\"exchange_seconds_per_added_byte\": $1/" first.json >added.json
  "${run[@]}" "$programs/plan" parts "${model[@]/rates.json/added.json}" "${here[@]}" --max-halo-bytes "$2" --json added_plan.json >out 2>err || fail "plan with added bytes ends with $?"
  number compute_seconds added_plan.json
}
awk -v free="$(compute 0 65536)" -v whole="$(compute 1e-6 0)" -v small="$(compute 1e-6 65536)" 'BEGIN { exit !(free > 0 && whole > 1.5 * free && small > 1.5 * whole) }' ||
  fail "small stages take no longer than large ones"

# Numbers alone, and a graph of the same shape: twice the nodes take twice the rows.
"${run[@]}" "$programs/plan" parts "${model[@]}" "${here[@]}" --scale-to-nodes 48000 --json twice.json >out 2>err || fail "plan of a larger graph ends with $?"
within 1 "$(number rows twice.json)" "$(awk -v x="$(number rows parts.json)" 'BEGIN { print 2 * x }')" "rows of twice the nodes"
"${run[@]}" "$programs/plan" --graph sbm --nodes 111000000 --edges 3200000000 --features 24 --classes 4 "${model[@]}" --threads 1 --ranks 128 --cores 36 \
  --link 100gbit --memory 64GB --halo-fraction 2 --json large.json >out 2>err || fail "plan of a large graph ends with $?"
[ "$(number in_edges large.json)" = 25000000.0 ] || fail "$(number in_edges large.json) in-edges of a rank"
[ "$(number halo_nodes large.json)" = 1734375.0 ] || fail "$(number halo_nodes large.json) halo nodes of a rank"
grep -q "fits --memory" large.json || fail "it does not say how many ranks fit"

# Two layers exchange rows forward and backward, with the parts that the halo is in: not with all.
"${run[@]}" "$programs/plan" --graph sbm --nodes 640 --degree 4 --layers 2 --hidden 32 --model sage --ranks 64 --link 100gbit --json small.json >out 2>err ||
  fail "plan of small parts ends with $?: $(cat err)"
awk -v parts="$(number neighbors small.json)" -v messages="$(number messages small.json)" 'BEGIN { exit !(parts > 10 && parts < 63 && messages == 4 * parts) }' ||
  fail "$(number messages small.json) messages with $(number neighbors small.json) parts"

# The steps on a tiny graph take no time that a clock can measure; those that are measured are on a larger one.
"${run[@]}" "$programs/plan" --graph karate "${here[@]}" --rates tiny.json >out 2>err || fail "plan of a tiny graph ends with $?"
[ "$(grep -A 2 '_seconds": {' tiny.json | grep -c '"per_edge": [0-9.]*[1-9]')" -eq 3 ] || fail "an edge takes no time: $(cat tiny.json)"

# Cores divide the arithmetic, the bandwidth of memory the bytes.
seconds_on() { # WHAT OPTION...
  "${run[@]}" "$programs/plan" --graph sbm --nodes 111000000 --edges 3200000000 --features 24 --classes 4 "${model[@]}" --threads 1 --ranks 128 \
    --link 100gbit --halo-fraction 2 "${@:2}" --json machine.json >out 2>err || fail "plan with ${*:2} ends with $?"
  number "$1_seconds" machine.json
}
within 0.01 "$(seconds_on memory --cores 72)" "$(seconds_on memory --cores 2)" "bytes of memory of 72 cores"
within 0.01 "$(seconds_on memory --cores 72 --memory-bandwidth 0.2TB)" "$(awk -v s="$(seconds_on memory --cores 2 --memory-bandwidth 100GB)" 'BEGIN { print s / 2 }')" "twice the bandwidth"
awk -v few="$(seconds_on compute --cores 2)" -v many="$(seconds_on compute --cores 72)" -v memory="$(seconds_on memory --cores 72)" 'BEGIN { exit !(memory > 0 && many >= memory && few > many) }' ||
  fail "72 cores take no less time than 2, or less than their memory"

# Labels that are values have one column, not as many classes as the largest one.
cp -r parts values
for labels in values/part-*/nodes/_N/data/labels.npy; do LC_ALL=C sed -i "1s/'<i8'/'<f8'/" "$labels"; done # the bits of 1, 2, ... are tiny numbers
"${run[@]}" "$programs/plan" values "${here[@]}" --json values.json >out 2>err || fail "plan of values: $(cat err)"
refuse "--loss: a plan trains on classes, expected none, and --num-classes" "$programs/plan" values --ranks 2 --link 1gbit --loss mse

# What goes wrong: exit code, one sentence, once.
expect 2 "--link: '100', expected a rate with its unit: 100gbit, 500mbit, 12.5GB (a second)" "$programs/plan" data --ranks 2 --link 100
refuse "--link: is missing, expected the rate of a rank's network for --ranks 2" "$programs/plan" data --ranks 2
refuse "--sampler: a plan is for steps on the whole graph" "$programs/plan" data --ranks 2 --link 1gbit --sampler saint-node
refuse "--memory: '64', expected a size with its unit" "$programs/plan" data --ranks 2 --link 1gbit --memory 64
refuse "--memory-bandwidth: '200', expected a rate with its unit" "$programs/plan" data --ranks 2 --link 1gbit --memory-bandwidth 200
refuse "--ranks" "$programs/plan" data --link 1gbit
refuse "--category: a plan is for graphs without types" "$programs/plan" data --ranks 2 --link 1gbit --model rgcn --category paper
refuse "--sample: a plan is for steps on the whole graph" "$programs/plan" data --ranks 2 --link 1gbit --layers 1 --sample 5
refuse "--scale-to-edges: expected --scale-to-nodes, too" "$programs/plan" data --ranks 2 --link 1gbit --scale-to-edges 5
expect 1 "there are 24000 nodes for --ranks 24001, expected at least one for each rank" "$programs/plan" data --ranks 24001 --link 1gbit
expect 1 "there are 24000 nodes for --ranks 24001, expected at least one for each rank" "$programs/plan" parts --ranks 24001 --link 1gbit
expect 1 "--max-halo-bytes: 255 bytes hold no row of 64 numbers, expected at least" "$programs/plan" parts "${model[@]}" "${here[@]}" --max-halo-bytes 255
expect 1 "parts: the partition was made without --add-self-loops, expected one made with it, or a plan without it" \
  "$programs/plan" parts "${here[@]}" --add-self-loops
for graph in data parts; do
  expect 1 "expected kinds among them, which shall be the labels" "$programs/plan" $graph "${here[@]}" --fields labels=kinds
done
expect 1 "missing" "$programs/plan" missing "${here[@]}"
expect 1 "rates.json: the rates are of 'sage: 24 -> 64 -> 64 -> 4, batch norm" "$programs/plan" parts "${here[@]}" --model gat --hidden 64 --rates rates.json
echo '{"model": "x"}' >broken.json
expect 1 "broken.json: there is no number 'threads' of 0 or more, expected a file that plan --rates has written" "$programs/plan" parts "${here[@]}" --rates broken.json
sed 's/"edge_passes"/"passes"/' rates.json >broken.json
expect 1 "broken.json: there is no list 'edge_passes', expected a file that plan --rates has written" "$programs/plan" parts "${model[@]/rates.json/broken.json}" "${here[@]}"
echo '{"model": "x",' >broken.json
expect 1 "broken.json: the file is no JSON, expected a file that plan --rates has written" "$programs/plan" parts "${here[@]}" --rates broken.json
expect 1 "none/plan.json: cannot write" "$programs/plan" parts "${here[@]}" --json none/plan.json
