#!/usr/bin/env bash
# SPDX-License-Identifier: MIT

# train_looking_test.sh MPIRUN_SH MPIEXEC RANKS TOOLS_DIR: learning curves as SVG, event files of TensorBoard, scores of given pairs.
source "$(dirname "$0")/../support/program_test.sh"
train=$programs/train
for python in python3 /usr/bin/python3 none; do "$python" -c '' 2>/dev/null && break; done

# A picture and an event file, of a run that is interrupted and goes on; the picture has the epochs before from the log.
net=(--graph sbm --nodes 300 --classes 4 --degree 8 --layers 2 --hidden 8 --eval-every 2)
looked=("${net[@]}" --curves c.svg --tensorboard tb --log log.jsonl --checkpoint ck)
"${run[@]}" "$train" "${looked[@]}" --epochs 4 >out 2>err || fail "--curves and --tensorboard end with $?"
[ "$(ls tb | wc -l)" -eq 1 ] || fail "not one event file: $(ls tb)"
sleep 1  # the next file has another second in its name
"${run[@]}" "$train" "${looked[@]}" --epochs 7 --resume >out 2>err || fail "--resume ends with $?"
[ "$(ls tb | wc -l)" -eq 2 ] || fail "not a second event file: $(ls tb)"
for text in '>loss<' '>accuracy<' '>train<' '>val<' '>test<' '>best epoch<' '>epoch<' '>sbm<'; do
  grep -q "$text" c.svg || fail "the picture has no $text"
done
[ "$(grep -o 'd="M[^"]*" fill="none" stroke="#35618f" stroke-width="1.5"' c.svg | head -n 1 | grep -o L | wc -l)" -eq 6 ] ||
  fail "the loss does not have 7 points: $(cat c.svg)"

# expect_events: a decoder of a few lines, which knows the format of TFRecord and of protobuf and nothing of our writer.
expect_events() {
  [ "$python" != none ] || return 0
  "$python" - "$@" <<'END' >out 2>err || fail "the event files: $(cat err)"
import glob, json, math, struct, sys
def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff
assert crc32c(b"123456789") == 0xe3069283
def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xa282ead8) & 0xffffffff
def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 128:
            return value, at
def fields(data):
    at, found = 0, []
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        else:
            size, at = (8, at) if key & 7 == 1 else (4, at) if key & 7 == 5 else varint(data, at)
            value, at = data[at:at + size], at + size
        found.append((key >> 3, value))
    return found
values, starts = {}, []
for name in sorted(glob.glob("tb/events.out.tfevents.*")):
    data, at, records = open(name, "rb").read(), 0, []
    while at < len(data):
        length, = struct.unpack_from("<Q", data, at)
        assert struct.unpack_from("<I", data, at + 8)[0] == masked(data[at:at + 8])
        event = data[at + 12:at + 12 + length]
        assert struct.unpack_from("<I", data, at + 12 + length)[0] == masked(event)
        at += length + 16
        records.append(dict(fields(event)))
    assert records[0][3] == b"brain.Event:2" and fields(records[1][7]) == [(1, 1)]
    starts.append(records[1][2])
    for event in records[2:]:
        assert struct.unpack("<d", event[1])[0] > 1.6e9
        for _, value in fields(event[5]):
            value = dict(fields(value))
            values[value[1].decode(), event[2]] = struct.unpack("<f", value[2])[0]
assert starts == [1, 5], starts
lines = [line for line in map(json.loads, open("log.jsonl")) if "epoch" in line]
for line in lines:
    for key in "loss", "lr", "seconds", "train_acc", "val_acc", "test_acc":
        split, _, metric = key.partition("_")
        tag = f"{metric}/{split}" if metric else key
        value = values.pop((tag, line["epoch"]), None)
        assert (value is None) == (line[key] is None), (tag, line)
        assert value is None or math.isclose(value, line[key], rel_tol=1e-6), (tag, value, line)
assert not values and len(lines) == 7, values
END
}
expect_events
[ "$python" = none ] || "$python" -c 'import xml.etree.ElementTree as x; x.parse("c.svg")' || fail "c.svg is no XML"

# Several runs have their own; what cannot be written is refused before the training.
"${run[@]}" "$train" "${net[@]}" --epochs 2 --runs 2 --curves c.svg --tensorboard runs >out 2>err || fail "--runs ends with $?"
[ "$(ls -d c.seed-?.svg runs/seed-?/events* | wc -l)" -eq 4 ] || fail "the files of two runs are $(ls . runs/*)"
expect 1 "train: missing/c.svg: cannot write (No such file or directory)" "$train" "${net[@]}" --curves missing/c.svg
expect 1 "train: log.jsonl/tb: cannot make the directory" "$train" "${net[@]}" --tensorboard log.jsonl/tb
refuse "--describe excludes --curves" "$train" --dataset g --describe --curves c.svg
refuse "did you mean --tensorboard?" "$train" --tensorbord tb
refuse "did you mean --epochs?" "$train" -epochs 3
refuse "did you mean --hidden?" "$train" --hidden-channels 3

# Scores of pairs: of text and of an array, whatever the ranks and the partition; a line or a row for each.
link=(--graph sbm --nodes 300 --classes 4 --degree 8 --task link --layers 2 --hidden 4 --epochs 3)
awk 'BEGIN { print "# pairs\n"; for (i = 0; i < 500; ++i) print i * 7 % 300 "," i * i % 300 }' >pairs.csv
{
  printf '\223NUMPY\1\0\166\0%-117s\n' "{'descr': '<i2', 'fortran_order': False, 'shape': (500, 2), }"
  tail -n +3 pairs.csv | tr , '\n' | awk '{ printf "\\%03o\\%03o", $1 % 256, int($1 / 256) }' | xargs -0 printf '%b'
} >pairs.npy
"$1" "$2" 1 "$train" "${link[@]}" --predict one --predict-pairs pairs.csv >out 2>err || fail "--predict-pairs ends with $?"
"${run[@]}" "$train" "${link[@]}" --predict several --predict-pairs pairs.npy --partition random >out 2>err || fail "--predict-pairs of an array ends with $?"
[ "$(wc -l <one/pair_scores.txt)" -eq 500 ] && [ ! -e several/pair_scores.txt ] || fail "the scores are in $(ls one several)"
number='-td8 -w8' bytes=8
[ "$(stat -c %s one/pair_scores.npy)" -eq $((128 + 500 * 8)) ] || number='-tf4 -w4' bytes=4
[ "$(stat -c %s one/pair_scores.npy)" -eq $((128 + 500 * bytes)) ] || fail "pair_scores.npy has $(stat -c %s one/pair_scores.npy) bytes"
number=${number/td8/tf8}
# shellcheck disable=SC2086
paste one/pair_scores.txt <(od -An -v $number -j128 several/pair_scores.npy) <(od -An -v $number -j128 one/pair_scores.npy) |
  awk '{ for (k = 2; k <= 3; ++k) { d = $1 - $k; if (d < 0) d = -d; if (!(d < 1e-3 * (1 + ($1 < 0 ? -$1 : $1)))) exit 1 } ++n } END { exit n != 500 }' ||
  fail "the scores of text, of an array and of other ranks differ"
# shellcheck disable=SC2086
od -An -v ${number/-w?/} -w$((4 * bytes)) -j128 one/embeddings.npy >rows
tail -n +3 pairs.csv | paste -d' ' - one/pair_scores.txt | awk -F'[ ,]' 'BEGIN { while ((getline line < "rows") > 0) row[n++] = line }
  { split(row[$1], u, " "); split(row[$2], v, " "); s = 0; for (j = 1; j <= 4; ++j) s += u[j] * v[j]; d = s - $3; if (d * d > 1e-6 * (1 + s * s)) exit 1 }' ||
  fail "a score is not the dot product of the two rows"
printf '3 5\n\n7 300\n' >far.txt
expect 1 "far.txt: row 1: there is no node 300, expected 0 to 299" "$train" "${link[@]}" --predict one --predict-pairs far.txt
printf '3 5\n7\n' >short.txt
expect 1 "short.txt: line 2: there are 1 fields, expected 2: two nodes" "$train" "${link[@]}" --predict one --predict-pairs short.txt
printf '#3 5\n7 9\n' >comment.txt
expect 1 "comment.txt: line 1: '#3 5' is a comment by its #" "$train" "${link[@]}" --predict one --predict-pairs comment.txt
printf '3 five\n' >word.txt
expect 1 "word.txt: line 1: there is 'five', expected a number from 0" "$train" "${link[@]}" --predict one --predict-pairs word.txt
expect 1 "pairs.csv: line 3: there are 2 fields, expected 3: two nodes and an edge type" \
  "$train" "${link[@]}" --predictor distmult --predict one --predict-pairs pairs.csv
refuse "--predict-pairs: needs --task link or edge" "$train" --graph karate --predict one --predict-pairs pairs.csv
refuse "--predict-pairs requires --predict" "$train" --graph karate --task link --predict-pairs pairs.csv

# Nodes with names.
printf 'ann bob\nbob cid\ncid ann\ndan bob\nann eve\neve fay\nfay dan\ncid fay\n' >edges.txt
printf 'dan ann\nfay bob\n' >named.txt
expect 0 "3 epochs in" "$train" --dataset edges.txt --task link --embedding 4 --layers 1 --hidden 4 --epochs 3 --predict named --predict-pairs named.txt
[ "$(wc -l <named/pair_scores.txt)" -eq 2 ] || fail "pairs of names have $(wc -l <named/pair_scores.txt) scores"
# shellcheck disable=SC2086
od -An -v ${number/-w?/} -w$((4 * bytes)) -j128 named/embeddings.npy >rows
paste -d' ' named.txt named/pair_scores.txt | awk 'BEGIN { while ((getline line < "rows") > 0) row[n++] = line; while ((getline key < "named/node_keys.txt") > 0) at[key] = m++ }
  { split(row[at[$1]], u, " "); split(row[at[$2]], v, " "); s = 0; for (j = 1; j <= 4; ++j) s += u[j] * v[j]; d = s - $3; if (d * d <= 1e-6 * (1 + s * s)) ++right }
  END { exit m != 6 || n != 6 || right != 2 }' || fail "the score of two names is not the dot product of their rows"
"$programs/partition" edges.txt --parts 2 --method contiguous --out parted >out 2>err || fail "partition ends with $?"
expect 0 "3 epochs in" "$train" --dataset parted --task link --embedding 4 --layers 1 --hidden 4 --epochs 3 --predict again --predict-pairs named.txt
paste named/pair_scores.txt again/pair_scores.txt | awk '{ if (($1 - $2) ^ 2 > 1e-6 * (1 + $1 ^ 2)) exit 1; ++n } END { exit n != 2 }' ||
  fail "pairs of names have other scores on a partition: $(paste named/pair_scores.txt again/pair_scores.txt)"
printf 'fay bob\n#dan ann\n' >named.txt
expect 1 "named.txt: line 2: '#dan ann' is a comment by its #, and has as many fields as the rows" \
  "$train" --dataset edges.txt --task link --embedding 4 --layers 1 --hidden 4 --epochs 3 --predict named --predict-pairs named.txt
printf 'dan ann\nfay gus\n' >named.txt
expect 1 "named.txt: row 1: there is no node 'gus', expected names as in named/node_keys.txt" \
  "$train" --dataset edges.txt --task link --embedding 4 --layers 1 --hidden 4 --epochs 3 --predict named --predict-pairs named.txt
