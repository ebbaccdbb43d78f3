#!/usr/bin/env bash
# SPDX-License-Identifier: MIT

# train_fine_tuning_test.sh MPIRUN_SH MPIEXEC RANKS TOOLS_DIR PRECISION: train --task potential with --init-weights: energies of single atoms and
# scales, new species, frozen layers, watched data; kinds and weights of structures, losses; the same on any number of ranks; what is refused.
source "$(dirname "$0")/../support/program_test.sh"
precision=$5
source "$(dirname "$0")/structures.sh"
structures 1 24 | sed 's/config_type="a b"/config_type=bulk/' >old.xyz
structures 2 6 | sed 's/config_type="a b"/config_type=bulk/' >valid.xyz
# the same energies with another zero: O -3 - 2, Si -5 + 1
moved() { awk '/^8$/ { head = $0; n = 0; next } /energy=/ { line = $0; next } { atom[n++] = $0 }
  n == 8 { e = 0; for (i = 0; i < 8; ++i) { split(atom[i], w, " "); e += w[1] == "O" ? -2 : 1 }
           match(line, /energy=[^ ]*/); energy = substr(line, RSTART + 7, RLENGTH - 7); sub(/energy=[^ ]*/, "energy=" sprintf("%.9f", energy + e), line)
           print head; print line; for (i = 0; i < 8; ++i) print atom[i] }' "$1"; }
lone() { printf '1\nProperties=species:S:1:pos:R:3:forces:R:3 energy=%s config_type=IsolatedAtom pbc="F F F"\n%s 0 0 0 0 0 0\n' "$2" "$1"; }
structures 3 24 | sed 's/config_type="a b"/config_type=surface/' >new.xyz
moved new.xyz >moved.xyz
net=(--cutoff 2.2 --hidden 8 --layers 2 --num-basis 6)
train=("$programs/train" --task potential --threads 1)
tuned=("${train[@]}" --init-weights w.safetensors)
# score LOG LINE NAME: a number of a line of a log
score() { sed -n "$2p" "$1" | sed -n 's/.*"'"$3"'":\([-0-9.e+]*\)[,}].*/\1/p'; }
# near A B SHARE
near() { [[ $1 =~ ^-?[0-9] && $2 =~ ^-?[0-9] ]] && awk -v a="$1" -v b="$2" -v most="$3" 'BEGIN { d = a - b; if (d < 0) d = -d; exit !(d <= most * (b < 0 ? -b : b)) }'; }
rounding=$([ "$precision" = double ] && echo 1e-7 || echo 1e-2)

"${run[@]}" "${train[@]}" "${net[@]}" --dataset old.xyz --valid-file valid.xyz --epochs 8 --log old --save-weights w.safetensors >out 2>err ||
  fail "a training ends with $?"
error=$(score old 8 val_energy_mae)

# Energies with another zero: a warning if they are kept, and the old errors if they are fitted. The forces are those of the file in both.
"${few[@]}" "${tuned[@]}" --dataset moved.xyz --valid-file valid.xyz --epochs 1 --lr 0 --log kept >out 2>err || fail "kept energies end with $?"
grep -q "WARNING: moved.xyz: energies differ by .* eV an atom from those of w.safetensors, .*, or --energy-shifts fit" out || fail "no warning of another zero"
moved valid.xyz >moved_valid.xyz
for n in 1 "$ranks"; do
  "${run[@]:0:2}" "$n" "${tuned[@]}" --dataset moved.xyz --valid-file moved_valid.xyz --energy-shifts fit --watch-file old.xyz --epochs 2 --log fit$n >out 2>err ||
    fail "fitted energies end with $?"
done
[ "$(grep -c WARNING out)" -eq 0 ] || fail "a warning: $(grep WARNING out)"
grep -q "moved.xyz: energies of single atoms: O -[0-9.]* (fitted), Si -[0-9.]* (fitted)" out || fail "no word about energies"
grep -q "^before epoch 1  train forces_mae .*  val .*  watch forces_mae [0-9.]* forces_rmse [0-9.]* energy_mae" out || fail "no scores before the first epoch"
near "$(score fit1 1 val_energy_mae)" "$error" 0.3 || fail "fitted energies have the error $(score fit1 1 val_energy_mae), not $error"
near "$(score kept 1 val_forces_mae)" "$(score fit1 1 val_forces_mae)" $rounding || fail "the first forces are not those of the file"
near "$(score fit1 1 watch_forces_mae)" "$(score old 8 train_forces_mae)" $rounding || fail "watched forces: $(score fit1 1 watch_forces_mae)"
for name in train_forces_mae val_energy_mae watch_energy_mae; do
  near "$(score fit1 3 $name)" "$(score fit$ranks 3 $name)" $([ "$precision" = double ] && echo 1e-7 || echo 3e-2) || fail "$name differs on $ranks ranks"
done
grep -q '"groups":\[{"kind":"bulk","split":"val","structures":6,.*{"kind":"surface","split":"train","structures":24,' fit1 || fail "no groups: $(tail -n 1 fit1)"
grep -q "^surface  train          24 " out && grep -q "^bulk     watch          24 " out || fail "no table of kinds"

# Given energies, those of isolated atoms, and a scale that leaves the results as they are.
"${few[@]}" "${tuned[@]}" --dataset moved.xyz --energy-shifts O=-5.5 --epochs 1 >out 2>err || fail "given energies end with $?"
grep -q "moved.xyz: energies of single atoms: O -5.5 (given), Si -[0-9.]* (fitted)" out || fail "no word about given energies"
{ cat moved.xyz; lone O -4.75; lone Si -4.25; } >isolated.xyz
for first in "" "--init-weights w.safetensors"; do
  # shellcheck disable=SC2086
  "${few[@]}" "${train[@]}" $( [ -n "$first" ] || echo "${net[@]}") $first --dataset isolated.xyz --energy-shifts isolated --epochs 1 >out 2>err ||
    fail "isolated atoms end with $?"
  grep -q "isolated.xyz: energies of single atoms: O -4.75 (of an isolated atom), Si -4.25 (of an isolated atom)" out || fail "no word about isolated atoms"
done
# Two files have isolated atoms of an element: the first file counts, on any number of ranks.
{ cat moved.xyz; lone O -4.75; } >first.xyz
{ lone O -4.7505; lone Si -4.25; cat moved.xyz; } >second.xyz
for n in 1 "$ranks"; do
  "${run[@]:0:2}" "$n" "${train[@]}" "${net[@]}" --reproducible --dataset first.xyz second.xyz --energy-shifts isolated --epochs 1 --save-weights shifts$n.safetensors >out 2>err ||
    fail "isolated atoms of two files end with $?"
  grep -q "energies of single atoms: O -4.75 (of an isolated atom)" out || fail "another isolated atom counts: $(cat out)"
  "${run[@]:0:2}" "$n" "${train[@]}" "${net[@]}" --reproducible --dataset moved.xyz new.xyz old.xyz --epochs 1 --save-weights fitted$n.safetensors >out 2>err ||
    fail "shifts of three files end with $?"
done
cmp shifts1.safetensors "shifts$ranks.safetensors" && cmp fitted1.safetensors "fitted$ranks.safetensors" || fail "shifts depend on the number of ranks"
"${few[@]}" "${tuned[@]}" --dataset new.xyz --valid-file valid.xyz --energy-scale 3 --epochs 1 --lr 0 --log scale >out 2>err || fail "a scale ends with $?"
grep -q "scale 3$" out || fail "no scale"
"${few[@]}" "${tuned[@]}" --dataset new.xyz --valid-file valid.xyz --epochs 1 --lr 0 --log noscale >out 2>err || fail "no scale ends with $?"
near "$(score scale 1 val_forces_rmse)" "$(score noscale 1 val_forces_rmse)" 1e-3 || fail "another scale changes the results: $(cat scale noscale)"

# New species beside old ones: what the file says of these stays, on any number of ranks.
sed 's/^Si /Ge /' moved.xyz >ge.xyz
for n in 1 "$ranks"; do
  "${run[@]:0:2}" "$n" "${tuned[@]}" --dataset ge.xyz --watch-file valid.xyz --new-species Ge=Si --epochs 2 --log ge$n --save-weights ge.safetensors >out 2>err ||
    fail "a new species ends with $?"
done
grep -q "w.safetensors: new species Ge, which begins as Si" out || fail "no word about Ge"
grep -q "ge.xyz: energies of single atoms: O -[0-9.]* (kept), Si -[0-9.]* (kept), Ge -[0-9.]* (fitted)" out || fail "no word about the energy of Ge"
near "$(score ge1 1 watch_forces_mae)" "$(score old 8 val_forces_mae)" $rounding || fail "old species have changed"
near "$(score ge1 3 train_energy_mae)" "$(score ge$ranks 3 train_energy_mae)" $([ "$precision" = double ] && echo 1e-7 || echo 3e-2) || fail "Ge differs on $ranks ranks"
"${few[@]}" "${train[@]}" --init-weights ge.safetensors --dataset ge.xyz --epochs 0 --predict g >out 2>err || fail "Ge in a file ends with $?"
grep -q "ge.safetensors: a potential of O, Si, Ge" out || fail "no Ge in the file"
"${few[@]}" "${tuned[@]}" --dataset ge.xyz --new-species Ge --epochs 1 --log drawn >out 2>err || fail "a drawn species ends with $?"
grep -q "new species Ge, which begins with drawn numbers" out || fail "no word about a drawn species"

# Several files as a committee: predictions with deviations, no training, the same on any number of ranks.
echo '{"sar_model": 1, "type": "committee", "members": ["w.safetensors", "scale.safetensors"]}' >both.json
"${few[@]}" "${tuned[@]}" --dataset new.xyz --lr 0.01 --epochs 1 --save-weights scale.safetensors >out 2>err || fail "a second member ends with $?"
for n in 1 "$ranks"; do
  "${run[@]:0:2}" "$n" "${train[@]}" --init-weights both.json --dataset new.xyz --epochs 0 --predict both$n >out 2>err || fail "a committee of files ends with $?"
  grep -q "both.json: a committee of 2 potentials of O, Si with" out || fail "no word about a committee: $(cat out)"
  grep -q "forces_deviation:R:1" both$n/predictions.xyz || fail "no deviations: $(head -2 both$n/predictions.xyz)"
done
alone expect 1 "both.json: is a committee of 2 files, which is not trained as one" "${train[@]}" --init-weights both.json --dataset new.xyz --epochs 1

# Frozen layers stay, to the bit; a factor of 0 is the same; resuming goes on with them.
tensors() { python3 - "$1" <<'END'
import json, struct, sys
data = open(sys.argv[1], "rb").read()
size = struct.unpack("<Q", data[:8])[0]
for name, about in sorted(json.loads(data[8:8 + size]).items()):
    if name != "__metadata__":
        begin, end = about["data_offsets"]
        print(name, data[8 + size + begin:8 + size + end].hex())
END
}
"${few[@]}" "${tuned[@]}" --dataset new.xyz --freeze embedding,convs.0 --epochs 2 --save-weights frozen.safetensors --log frozen >out 2>err || fail "--freeze ends with $?"
"${few[@]}" "${tuned[@]}" --dataset new.xyz --lr-factors embedding=0,convs.0=0,convs=0.1 --clip-norm 0 --epochs 2 --save-weights slow.safetensors >out 2>err ||
  fail "--lr-factors ends with $?"
if command -v python3 >/dev/null; then
  for file in frozen slow; do
    changed=$(diff <(tensors w.safetensors) <(tensors $file.safetensors) | sed -n 's/^> \([^ ]*\) .*/\1/p' || true)
    [[ $changed == *outnet.0* && $changed == *convs.1.filter_net* ]] || fail "$file: layers that train have not changed: $changed"
    [[ $changed != *embedding* && $changed != *convs.0* ]] || fail "$file: frozen layers have changed: $changed"
  done
fi
"${few[@]}" "${tuned[@]}" --dataset new.xyz --freeze embedding,convs.0 --epochs 1 --checkpoint fr --checkpoint-every 1 --log part >out 2>err || fail "a part ends with $?"
"${few[@]}" "${tuned[@]}" --dataset new.xyz --freeze embedding,convs.0 --epochs 2 --checkpoint fr --resume --log part >out 2>err || fail "the rest ends with $?"
[ -n "$(score part 3 loss)" ] && [ "$(score part 3 loss)" = "$(score frozen 3 loss)" ] || fail "a resumed training differs: $(cat part frozen)"
alone expect 1 "made with --freeze" "${tuned[@]}" --dataset new.xyz --freeze embedding --epochs 3 --checkpoint fr --resume

# Weights of structures and kinds, stages and losses: a weight of 0 is a structure that is not there.
{ sed 's/config_type=bulk/config_type=bulk config_weight=0/' old.xyz; cat new.xyz; } >weights.xyz
{ cat old.xyz new.xyz; } >kinds.xyz
for n in 1 "$ranks"; do
  "${run[@]:0:2}" "$n" "${train[@]}" "${net[@]}" --dataset weights.xyz --epochs 2 --huber-delta 0.05 --energy-error per-root --stages 2:100,10,1 --log weights$n >out 2>err ||
    fail "weights end with $?"
done
grep -q "weights.xyz: weights of 24 structures: config_weight" out || fail "no word about weights"
near "$(score weights1 2 loss)" "$(score weights$ranks 2 loss)" $rounding || fail "weights differ on $ranks ranks"
"${few[@]}" "${train[@]}" "${net[@]}" --dataset kinds.xyz --epochs 2 --huber-delta 0.05 --energy-error per-root --stages 2:100,10,1 --kind-weights bulk=0 --log kinds >out 2>err ||
  fail "weights of kinds end with $?"
near "$(score weights1 2 loss)" "$(score kinds 2 loss)" $rounding || fail "weights of kinds differ from those of structures"
"${few[@]}" "${train[@]}" "${net[@]}" --dataset kinds.xyz --epochs 2 --log plain >out 2>err || fail "a plain training ends with $?"
awk -v a="$(score plain 1 loss)" -v b="$(score kinds 1 loss)" 'BEGIN { exit !(a > 1.2 * b) }' || fail "the loss does not change with weights: $(cat plain kinds)"

# Errors of each structure, with labels beside predictions.
"${run[@]}" "${train[@]}" "${net[@]}" --dataset kinds.xyz --valid-file valid.xyz --epochs 1 --predict p >out 2>err || fail "--predict ends with $?"
[ "$(wc -l <p/errors.csv)" -eq 55 ] || fail "errors.csv has $(wc -l <p/errors.csv) lines"
grep -q "^largest forces-rmse in meV/A, val: valid.xyz: structure [0-5] (bulk) [0-9.]*; " out || fail "no largest errors"
# the mean of the table is the one that is told
awk -F, '$4 == "train" && $3 == "surface" { s += $8 * 3 * $5; n += 3 * $5 } END { printf "%.3f\n", 1e3 * s / n }' p/errors.csv >mean
grep -q "^surface  train .* $(cat mean) " out || fail "the table has not $(cat mean)"
awk -F, 'NR == 2 { exit !($5 == 8 && $8 <= $9 && $9 <= $10) }' p/errors.csv || fail "errors: $(head -n 2 p/errors.csv)"
energy=$(sed -n 2p old.xyz | sed 's/.* energy=\([^ ]*\) .*/\1/')
sed -n 2p p/predictions.xyz | grep -q "label_energy=" && near "$(sed -n 2p p/predictions.xyz | sed 's/.*label_energy=\([^ ]*\) .*/\1/')" "$energy" 1e-12 || fail "no label of the energy"
# Predictions are structures again, also those of predictions.
for of in p pp; do
  "${run[@]}" "${train[@]}" "${net[@]}" --dataset "$of/predictions.xyz" --epochs 1 --predict "p$of" >out 2>err || fail "predictions of $of: $(cat err)"
done
[ "$(sed -n 2p ppp/predictions.xyz | grep -o ' label_energy=' | wc -l)" -eq 1 ] || fail "another number of labels: $(sed -n 2p ppp/predictions.xyz)"

# A committee: the same on any number of ranks, with deviations of predictions that are of the size of the errors of validation structures, in the
# file and from a resumed training.
for n in 1 "$ranks"; do
  "${run[@]:0:2}" "$n" "${train[@]}" "${net[@]}" --committee 3 --dataset kinds.xyz --valid-file valid.xyz --epochs 3 --log heads$n --predict h$n \
    --save-weights h.safetensors --checkpoint hc$n --checkpoint-every 2 >out 2>err || fail "a committee ends with $?"
done
grep -q "a committee of 3 heads; energy shifts" out || fail "no word about the committee"
grep -q "^committee: errors of validation structures are [0-9.]* times its deviations of energies and [0-9.]* times those of forces" out || fail "no word about deviations"
near "$(score heads1 3 loss)" "$(score heads$ranks 3 loss)" $([ "$precision" = double ] && echo 1e-7 || echo 3e-2) || fail "a committee differs on $ranks ranks"
deviations() { awk -F, '$4 == "val" { s += 3 * $5 * $9 ^ 2; d += $5 * $13 ^ 2 } END { print sqrt(s / d) }' "$1"; }
near "$(deviations h1/errors.csv)" 1 1e-3 && near "$(deviations h$ranks/errors.csv)" 1 1e-3 || fail "deviations: $(deviations h1/errors.csv)"
sed -n 2p h1/valid.xyz | grep -q "forces_deviation:R:1 .* energy_deviation=[0-9]" || fail "no deviations: $(sed -n 2p h1/valid.xyz)"
"${few[@]}" "${train[@]}" --init-weights h.safetensors --dataset valid.xyz --epochs 0 --predict hp >out 2>err || fail "a prediction of a committee ends with $?"
near "$(awk -F, 'NR > 1 { d += $13 } END { print d }' hp/errors.csv)" "$(awk -F, '$4 == "val" { d += $13 } END { print d }' h$ranks/errors.csv)" $rounding || fail "the file has other deviations"
"${few[@]}" "${train[@]}" "${net[@]}" --committee 3 --dataset kinds.xyz --valid-file valid.xyz --epochs 0 --checkpoint hc1 --resume --predict hr >out 2>err ||
  fail "a prediction of a checkpoint of a committee ends with $?"
cmp h1/errors.csv hr/errors.csv || fail "a checkpoint has other deviations"
rm -f hc1/checkpoint-00000003*
"${few[@]}" "${train[@]}" "${net[@]}" --committee 3 --dataset kinds.xyz --valid-file valid.xyz --epochs 3 --log heads1 --checkpoint hc1 --resume >out 2>err ||
  fail "a resumed committee ends with $?"
refuse "--committee: cannot be combined with --init-weights" "${tuned[@]}" --dataset new.xyz --committee 2

# What does not go: one sentence.
refuse "--new-species: needs --init-weights" "${train[@]}" --dataset new.xyz --new-species Ge
refuse "--energy-shifts: keep needs --init-weights" "${train[@]}" --dataset new.xyz --energy-shifts keep
refuse "--energy-scale: keep needs --init-weights" "${train[@]}" --dataset new.xyz --energy-scale keep
refuse "--energy-scale: '0', expected fit, keep, or a number above 0" "${train[@]}" --dataset new.xyz --energy-scale 0
refuse "--energy-shifts: 'Cu', expected fit, keep, isolated, or energies of single atoms" "${train[@]}" --dataset new.xyz --energy-shifts Cu
for stages in 1:1,1,1 2:1,1 "2:1,1,1;2:1,1,1" 2:0,0,0 3:-1,1,1 x; do
  refuse "--stages: '" "${train[@]}" --dataset new.xyz --stages "$stages"
done
for weights in bulk bulk=-1 bulk=1,bulk=2 =1; do
  refuse "--kind-weights: '$weights', expected different kinds of structures with weights of 0 or more" "${train[@]}" --dataset new.xyz --kind-weights "$weights"
done
refuse "--freeze: 'a,', expected names of parameters or modules" "$programs/train" --freeze a,
refuse "--lr-factors: 'a', expected different names of parameters or modules" "$programs/train" --lr-factors a
refuse "--huber-delta: needs --task potential" "$programs/train" --huber-delta 1
for n in 1 "$ranks"; do
  (
    if [ "$n" -eq 1 ]; then run=("${single[@]}"); else run=("${run[@]:0:2}" "$n"); fi
    expect 1 "--freeze: the network has no parameter or module 'conv', expected convs, embedding, outnet, or one in them" "${tuned[@]}" --dataset new.xyz --freeze conv
    expect 1 "the potential knows the species 'Si' already" "${tuned[@]}" --dataset new.xyz --new-species Si
    expect 1 "the potential does not know the species 'Sn', expected one of O, Si" "${tuned[@]}" --dataset ge.xyz --new-species Ge=Sn
    expect 1 "--kind-weights: no structure has the kind bulc (key config_type), expected some of surface" "${train[@]}" "${net[@]}" --dataset new.xyz \
      --kind-weights bulc=2
    expect 1 "--kind-key: no structure has the key kind" "${train[@]}" "${net[@]}" --dataset new.xyz --kind-key kind
    expect 1 "moved.xyz: no training structure with an energy is a single atom of O" "${tuned[@]}" --dataset moved.xyz --energy-shifts isolated
    expect 1 "--energy-shifts: there are no atoms of Cu, expected energies of O, Si" "${tuned[@]}" --dataset moved.xyz --energy-shifts Cu=1
    sed '1,/config_weight=0/ s/config_weight=0/config_weight=much/' weights.xyz >much.xyz
    expect 1 "much.xyz: structure 0: config_weight is 'much', expected a number of 0 or more" "${train[@]}" "${net[@]}" --dataset much.xyz
  ) || exit 1
done
{ cat isolated.xyz; lone O -4.5; } >two.xyz
alone expect 1 "structures of one atom of O have the energies -4.75 and -4.5, expected one energy" "${tuned[@]}" --dataset two.xyz --energy-shifts isolated
alone expect 1 "a factor of the learning rate is asked for 'conv', but there is no such parameter" "${tuned[@]}" --dataset new.xyz --lr-factors conv=1
alone expect 1 "ge.xyz: has an atom of Ge, which the potential does not know, expected O, Si, or --new-species" "${tuned[@]}" --dataset ge.xyz
