#!/usr/bin/env bash
# SPDX-License-Identifier: MIT

# partition_test.sh MPIRUN_SH MPIEXEC RANKS TOOLS_DIR TYPED_PAPERS: generate and partition as a user runs them: output, report, exit codes,
# what is refused, and what is left when they are killed.
source "$(dirname "$0")/../support/program_test.sh"

"${run[@]}" "$programs/generate" --nodes 3000 --degree 12 --classes 4 --features 8 --out data >out 2>err || fail "generate ends with $?"
grep -q "data: generated graph sbm, 3000 nodes, 36000 edges" out || fail "generate does not say what it made"

# Any number of parts; a line a phase, a line a part, and the same in JSON.
for method in contiguous random; do
  for parts in 1 3 5; do
    "${run[@]}" "$programs/partition" data --parts $parts --method $method --out $method$parts --report report.json >out 2>err ||
      fail "$method into $parts ends with $?"
    [ "$(grep -Ec '^(read edges|assign nodes|number nodes|send edges|sort edges|order nodes|write parts) .* s$' out)" -eq 7 ] || fail "not a line a phase"
    [ "$(ls $method$parts | grep -c part-)" -eq $parts ] || fail "not $parts parts in $method$parts"
    for key in cut_edges halo_nodes balance predicted_peak_bytes predicted_bytes_sent max_rss_bytes parts; do
      grep -q "\"$key\":" report.json || fail "no $key in the report"
    done
    [ "$(grep -c '"in_edges": [0-9]' report.json)" -eq $((parts + 1)) ] || fail "not $parts parts in the report"
  done
done

# Trained from, and what was predicted: bytes sent, and memory, with dense and with sparse features, of several models.
number() { sed -n "s/.*\"$1\": *\([0-9.e+]*\).*/\1/p" "$2" | head -n 1; }
while read -r sparse model; do
  rm -rf parts
  "${run[@]}" "$programs/partition" data --parts "$ranks" --method random --sparse-features "$sparse" --out parts --report report.json --model "$model" --hidden 32 >out 2>err ||
    fail "partition ends with $?"
  "${run[@]}" "$programs/train" --dataset data --partition random --sparse-features "$sparse" --model "$model" --hidden 32 --epochs 2 --eval-every 0 --log log.jsonl >out 2>err ||
    fail "train ends with $?"
  for pair in predicted_peak_bytes:peak_bytes predicted_bytes_sent:comm_bytes; do
    predicted=$(number "${pair%%:*}" report.json) measured=$(number "${pair##*:}" <(sed -n 2p log.jsonl))
    awk -v p="$predicted" -v m="$measured" 'BEGIN { exit !(p <= 1.2 * m && p >= 0.8 * m) }' ||
      fail "${pair%%:*} is $predicted, measured $measured, with --sparse-features $sparse --model $model"
  done
done <<'END'
yes gcn
no gcn
no gin
no gat
no rgcn
END

# An edge list with names, and its keys.
printf 'ann bob\nbob cid\ncid ann\ndan bob\n' >edges.txt
"${run[@]}" "$programs/partition" edges.txt --parts 2 --method contiguous --order original --add-reverse-edges --out named >out 2>err ||
  fail "an edge list ends with $?"
grep -q "of 8 edges" out || fail "the edge list does not have 8 edges"
[ "$(tr '\n' ' ' <named/node_keys.txt)" = "ann bob cid dan " ] || fail "node_keys.txt is $(cat named/node_keys.txt)"

# Several types: divided with a balance for each type, and reported type by type.
"$5" 600 typed
"${run[@]}" "$programs/partition" typed --parts 3 --method ldg --add-reverse-edges --out typed3 --report typed.json >out 2>err ||
  fail "a graph with types ends with $?"
grep -q "^author: 450 nodes, largest / mean 1.0[0-9]*; 0 training nodes" out || fail "no line of the authors"
grep -q "^author:rev_written:paper: 1200 edges" out || fail "no line of the reverse edges"
grep -q '"name": "paper:cites:paper"' typed.json || fail "no edge types in the report"
if grep -q predicted typed.json; then fail "a prediction for a graph with types"; fi
[ -e typed3/part-00002/edges/author:writes:paper/src.npy ] || fail "no edges of a type"
for field in labels=nosuch edge_labels=nosuch; do
  expect 1 "data named nosuch, expected one, which shall be the ${field%=*}" "$programs/partition" typed --parts 2 --method random --out new --fields $field
done

# Edge lists with a type each, and data of a type.
printf '0,1\n2,0\n2,3\n' >writes.csv
printf '0 1 0.5\n1 2 0.25\n4 4 2\n' >cites.txt
"${run[@]}" "$programs/partition" --edges author:writes:paper=writes.csv paper:cites:paper=cites.txt --parts 2 --method random --out lists >out 2>err ||
  fail "edge lists with types end with $?"
grep -q "author 3 nodes, paper 5 nodes; author:writes:paper 3 edges, paper:cites:paper 3 edges (weight)" out || fail "the edge lists are not described"
printf "ann paper1\n" >names.txt
expect 1 "names.txt: line 1" "$programs/partition" --edges author:writes:paper=names.txt --parts 2 --method random --out new
expect 1 "--edges: 'author:writes', expected SOURCE:RELATION:DESTINATION" "$programs/partition" --edges author:writes=writes.csv --parts 2 --method random --out new
expect 1 "typed: the graph has 3 types of nodes and 6 types of edges, expected one of each" "$programs/generate" --words typed --out new

# What goes wrong: exit code, one sentence, once.
expect 2 "--parts" "$programs/partition" data --parts 0 --method random --out new
refuse "--method" "$programs/partition" data --parts 2 --method best --out new
refuse "--out" "$programs/partition" data --parts 2 --method random
expect 1 "partition: parts" "$programs/partition" data --parts 2 --method random --out parts
expect 1 "partition: parts: the graph is partitioned already" "$programs/partition" parts --parts 2 --method random --out new
expect 1 "partition: none/new: cannot write (No such file or directory)" "$programs/partition" missing --parts 2 --method random --out none/new/
refuse "--out: the path is empty" "$programs/partition" data --parts 2 --method random --out ""
expect 1 "partition: none/report.json: cannot write (No such file or directory)" "$programs/partition" data --parts 2 --method random --out new --report none/report.json
expect 1 "data: the directory has node data of its own" "$programs/partition" data --parts 2 --method random --out new --node-data x=x.npy
expect 1 "expected kinds among them, which shall be the labels" "$programs/partition" data --parts 2 --method random --out new --fields labels=kinds
expect 1 "partition: edges: the data are none, expected x among them, which shall be the features" "$programs/partition" edges.txt --parts 2 --method random --out new --fields features=x
refuse "--separator: 'two'" "$programs/partition" data --parts 2 --method random --out new --separator two
expect 1 "missing" "$programs/partition" missing --parts 2 --method random --out new
expect 1 "generate: data: exists already" "$programs/generate" --out data
refuse "--nodes" "$programs/generate" --nodes 0 --out new
[ ! -e new ] || fail "a directory was made"

# A killed program leaves no directory of that name. The bigger graph takes a while.
"${run[@]}" "$programs/generate" --nodes 200000 --degree 20 --features 32 --out big >out 2>err || fail "generate ends with $?"
for delay in 0.1 0.4 0.8; do
  setsid "${run[@]}" "$programs/partition" big --parts 6 --method random --order original --out killed >out 2>err &
  session=$!
  for _ in $(seq 600); do
    ! grep -q "sort edges" out || break
    sleep 0.05
  done
  sleep "$delay"
  for process in $(ps -o pid= -s "$session"); do kill -9 "$process" 2>/dev/null || true; done
  wait "$session" 2>/dev/null || true
  [ ! -e killed ] || [ -e killed/partition.json ] || fail "a directory without a description was left after $delay s"
  rm -rf killed* .killed*
done
