#!/usr/bin/env bash
# SPDX-License-Identifier: MIT

# train_potential_test.sh MPIRUN_SH MPIEXEC RANKS TOOLS_DIR PRECISION: train --task potential on structures of a pair potential: the same curve
# on one rank and on RANKS, errors that fall, averages of weights, checkpoints, predictions in extended XYZ; what is refused.
source "$(dirname "$0")/../support/program_test.sh"
precision=$5

source "$(dirname "$0")/structures.sh"
structures 1 40 >train.xyz
structures 2 6 >valid.xyz
structures 3 5 >test.xyz
net=(--task potential --cutoff 2.2 --hidden 8 --layers 2 --num-basis 6 --lr 0.005 --threads 1)
files=(--dataset train.xyz --valid-file valid.xyz --test-file test.xyz)
# scores LOG: its losses and metrics
scores() { sed -n 's/.*"loss":\([^,]*\),"lr":[^,]*,\(.*\),"seconds".*/\1,\2/p' "$1" | sed 's/"[a-z_]*"://g'; }
# same LOG LOG DIGITS: the same curve of 6 epochs to rounding
same() {
  [ "$(scores "$1" | wc -l)" -eq 6 ] || fail "$1 has $(scores "$1" | wc -l) epochs"
  paste -d , <(scores "$1") <(scores "$2") | awk -F, -v most="$3" '
    { for (i = 1; i <= NF / 2; ++i) { d = $i - $(i + NF / 2); if (d < 0) d = -d; if (d > most * (1 + ($i < 0 ? -$i : $i))) exit 1 } }' ||
    fail "$1 and $2 differ: $(paste -d ' ' <(scores "$1") <(scores "$2"))"
}
rounding=$([ "$precision" = double ] && echo 1e-8 || echo 2e-2)

"${single[@]}" "$programs/train" "${net[@]}" "${files[@]}" --epochs 6 --ema 0.8 --log one >out 2>err || fail "a training on one rank ends with $?"
"${run[@]}" "$programs/train" "${net[@]}" "${files[@]}" --epochs 6 --ema 0.8 --log all --predict p --save-weights w.safetensors >out 2>err ||
  fail "a training ends with $?"
same one all "$rounding"
for line in "train.xyz: extended XYZ: 40 structures of 320 atoms of O, Si" "train.xyz: energies: energy, in eV" \
  "train.xyz: forces: forces, -dE/dx in eV/A" "train.xyz: stresses: virial, -dE/d strain in eV, divided by -volume" \
  "train.xyz: not used: none" "train.xyz: kinds: config_type: a b 40" "train.xyz: 51 structures, 408 nodes, .* edges, energies, forces, stresses; $ranks ranks" \
  "best validation forces_mae .* in epoch . with test forces_mae"; do
  grep -q "$line" out || fail "no line '$line'"
done
# an average error of 0 forces is 118 meV/A; every error is smaller than in the first epoch
awk 'NR == 1 { split($0, first, /[:,]/) }
     NR == 6 { split($0, last, /[:,]/)
               for (i in first) if (first[i] ~ /val_(forces|stress)_/ && last[i + 1] > 0.8 * first[i + 1]) { print first[i], first[i + 1], last[i + 1]; exit 1 } }' all >out ||
  fail "errors do not fall: $(scores all)"

# A resumed run has the digits of one without a break, with the same weights.
"${run[@]}" "$programs/train" "${net[@]}" "${files[@]}" --epochs 3 --ema 0.8 --log part --checkpoint c --checkpoint-batches 2 --checkpoint-every 1 \
  >out 2>err || fail "a part ends with $?"
"${run[@]}" "$programs/train" "${net[@]}" "${files[@]}" --epochs 6 --ema 0.8 --log part --checkpoint c --resume \
  --save-weights resumed.safetensors >out 2>err || fail "the rest ends with $?"
same part all 0
cmp w.safetensors resumed.safetensors || fail "the weights of the resumed run differ"
expect 1 "made with --forces-weight 10, expected 3 as in this run" "$programs/train" "${net[@]}" "${files[@]}" --forces-weight 3 --epochs 7 --ema 0.8 --checkpoint c --resume
# A potential that goes on is not resumed as another one: other radial functions, other shifts, other data.
"${few[@]}" "$programs/train" "${net[@]/2.2/2}" "${files[@]}" --epochs 0 --save-weights shorter.safetensors >out 2>err || fail "another cutoff ends with $?"
sed 's/energy=-/energy=-9/' train.xyz >lower.xyz
"${few[@]}" "$programs/train" "${net[@]}" --dataset lower.xyz --epochs 0 --save-weights lower.safetensors >out 2>err || fail "other energies end with $?"
tuned=("$programs/train" --task potential --lr 0.005 --threads 1 --checkpoint tuned)
"${run[@]}" "${tuned[@]}" --dataset train.xyz --init-weights w.safetensors --epochs 1 >out 2>err || fail "--init-weights with --checkpoint ends with $?"
alone expect 1 "made with --cutoff 2.2, expected 2 as in this run" "${tuned[@]}" --dataset train.xyz --init-weights shorter.safetensors --epochs 2 --resume
alone expect 1 "made with a potential with energy shifts " "${tuned[@]}" --dataset train.xyz --init-weights lower.safetensors --epochs 2 --resume
alone expect 1 "made with labels and a split whose hash is " "${tuned[@]}" --dataset lower.xyz --init-weights w.safetensors --epochs 2 --resume
expect 0 "resuming from tuned/checkpoint-00000001" "${tuned[@]}" --dataset train.xyz --init-weights w.safetensors --epochs 2 --resume

# Edges that are made for each batch have the bits of those that are kept, all or some of them.
for bytes in 0 30000; do
  "${run[@]}" "$programs/train" "${net[@]}" "${files[@]}" --epochs 6 --ema 0.8 --log made --predict pm --save-weights made.safetensors --graph-memory $bytes \
    >out 2>err || fail "--graph-memory $bytes ends with $?"
  same all made 0
  cmp w.safetensors made.safetensors && cmp p/predictions.xyz pm/predictions.xyz && cmp p/errors.csv pm/errors.csv || fail "--graph-memory $bytes has other bits"
done

# Several files are as one that has all of their structures: the same weights, and results in one file.
sed -n 1,150p train.xyz >part1.xyz
sed -n '151,$p' train.xyz >part2.xyz
sed -n 1,20p valid.xyz >valid1.xyz
sed -n '21,$p' valid.xyz >valid2.xyz
parts=(--dataset part1.xyz part2.xyz --valid-file valid1.xyz --valid-file valid2.xyz --test-file test.xyz)
for word in "${files[*]}" "${parts[*]}"; do
  # shellcheck disable=SC2086
  "${single[@]}" "$programs/train" "${net[@]}" $word --epochs 2 --log one_or_two --predict several --save-weights several.safetensors \
    >out 2>err || fail "$word ends with $?"
  if [ -s one.safetensors ]; then
    cmp one.safetensors several.safetensors && cmp one.predicted several/predictions.xyz && cmp one.valid several/valid.xyz || fail "$word has other bits"
  fi
  mv several.safetensors one.safetensors && mv several/predictions.xyz one.predicted && mv several/valid.xyz one.valid
done
grep -q "part1.xyz, part2.xyz: 51 structures" out || fail "no word about two files"
grep -q "^part2.xyz,24,a b,train," several/errors.csv && grep -q "^valid2.xyz,3,a b,val," several/errors.csv || fail "files and numbers: $(cut -d , -f 1,2 several/errors.csv)"
"${run[@]}" "$programs/train" "${net[@]}" "${parts[@]}" --epochs 6 --ema 0.8 --log parts >out 2>err || fail "several files end with $?"
same one parts "$rounding"
"${few[@]}" "$programs/train" "${net[@]}" "${parts[@]}" --epochs 1 --checkpoint several.c >out 2>err || fail "a checkpoint ends with $?"
sed 's/energy=-/energy=-9/' part2.xyz >lower2.xyz
words=${parts[*]}
for others in "${words/part2/lower2}" "${words/part1.xyz part2.xyz/part2.xyz part1.xyz}"; do
  # shellcheck disable=SC2086
  alone expect 1 "several.c/checkpoint-00000001.safetensors: made with " "$programs/train" "${net[@]}" $others --epochs 2 --checkpoint several.c --resume
done
sed '3s/ / x/' valid2.xyz >bad.xyz
expect 1 "bad.xyz: line 3: " "$programs/train" "${net[@]}" --dataset part1.xyz bad.xyz
refuse "--dataset: a, b, expected one path without --task potential" "$programs/train" --dataset a b

# A learner of each run has the training structures with labels, and is not written over.
"${run[@]}" "$programs/train" "${net[@]}" "${parts[@]}" --epochs 1 --runs 2 --save-learner learned >out 2>err || fail "--save-learner ends with $?"
[ "$(grep -c "a learner with 40 structures" out)" = 2 ] && [ "$(find learned -name 'checkpoint-*' | wc -l)" = 2 ] || fail "learners: $(cat out)"
expect 1 "has a learner already, expected a new directory (--save-learner)" "$programs/train" "${net[@]}" "${parts[@]}" --epochs 1 --runs 2 --save-learner learned
# A run that was killed goes on beside one that has ended, whose learner stays.
"${single[@]}" "$programs/train" "${net[@]}" "${parts[@]}" --epochs 1 --runs 2 --checkpoint runs --save-learner both >out 2>err || fail "runs with learners end with $?"
before=$(cksum both/seed-0/checkpoint-*)
rm -r runs/seed-1 both/seed-1
"${single[@]}" "$programs/train" "${net[@]}" "${parts[@]}" --epochs 1 --runs 2 --checkpoint runs --save-learner both --resume >out 2>err || fail "resumed runs with learners end with $?: $(cat err)"
[ "$(cksum both/seed-0/checkpoint-*)" = "$before" ] && [ "$(find both/seed-1 -name 'checkpoint-*' | wc -l)" = 1 ] || fail "learners of resumed runs: $(find both)"
alone expect 1 "has a learner already, expected a new directory (--save-learner)" "$programs/train" "${net[@]}" "${parts[@]}" --epochs 2 --runs 2 --checkpoint runs --save-learner both --resume
sed '2s/ energy=/ config_weight=2 energy=/' part2.xyz >weighted2.xyz
# shellcheck disable=SC2086
alone expect 1 "several.c/checkpoint-00000001.safetensors: made with labels and a split whose hash is " "$programs/train" "${net[@]}" \
  ${words/part2/weighted2} --epochs 2 --checkpoint several.c --resume

# Predictions are structures with labels: on them, the potential makes no error. On the structures it was trained on, it makes the errors of
# the log.
for file in predictions valid test; do [ -s p/$file.xyz ] || fail "no $file.xyz"; done
[ "$(grep -c Lattice p/predictions.xyz)" -eq 40 ] || fail "not 40 predictions"
"${single[@]}" "$programs/train" --task potential --dataset p/test.xyz --test-file test.xyz --init-weights w.safetensors --epochs 0 --predict q >out 2>err ||
  fail "a prediction ends with $?"
grep -q "w.safetensors: a potential of O, Si with 2 convolutions of 8 channels, cutoff 2.2" out || fail "no word about the potential"
for file in q/predictions.xyz q/test.xyz; do
  paste -d ' ' $file p/test.xyz | awk -v most="$([ "$precision" = double ] && echo 1e-9 || echo 1e-4)" 'NF == 20 {
    for (i = 2; i <= 7; ++i) { d = $i - $(i + 10); if (d < 0) d = -d; if (d > most) exit 1 } ++rows } END { exit rows != 40 }' ||
    fail "$file differs from p/test.xyz"
done
"${few[@]}" "$programs/train" --task potential --dataset p/test.xyz --init-weights w.safetensors --epochs 1 --lr 0 --log none >out 2>err || fail "lr 0 ends with $?"
sed -n 's/.*"train_forces_mae":\([^,]*\),.*/\1/p' none | head -n 1 | awk '{ exit !($1 < 1e-2) }' || fail "errors on predictions: $(cat none)"

# Labels that only some structures have: structures 1 to 10 without forces and virial, 11 to 15 without an energy.
awk '{ s = int((NR - 1) / 10) + 1 }
     s <= 10 && NR % 10 == 2 { sub(/forces:R:3/, "tags:R:3"); sub(/ virial="[^"]*"/, "") }
     s > 10 && s <= 15 { sub(/ energy=[^ ]*/, "") } { print }' train.xyz >some.xyz
for n in 1 "$ranks"; do
  "${run[@]:0:2}" "$n" "$programs/train" "${net[@]}" --dataset some.xyz --valid-file valid.xyz --epochs 6 --log some$n >out 2>err || fail "some labels end with $?"
done
same some1 some$ranks "$rounding"
for line in "energies: energy, in eV; 35 of 40" "forces: forces, -dE/dx in eV/A; 30 of 40" "divided by -volume; 30 of 40 structures have them"; do
  grep -q "some.xyz: .*$line" out || fail "no line '$line'"
done
grep -q nan some1 && fail "a number that is not finite: $(cat some1)"

# ZBL: it is subtracted from the labels and added to the results, so that on predictions the loss is 0.
"${run[@]}" "$programs/train" "${net[@]}" --dataset train.xyz --zbl-inner 0.8 --zbl-outer 2 --epochs 1 --save-weights z.safetensors --predict z >out 2>err ||
  fail "ZBL ends with $?"
grep -q "cutoff 2.2, ZBL from 0.8 to 2;" out || fail "no word about ZBL"
"${run[@]}" "$programs/train" "${net[@]}" --dataset train.xyz --zbl-inner 0.8 --zbl-outer 2 --epochs 1 --save-weights made.safetensors --graph-memory 30000 \
  >out 2>err || fail "ZBL and --graph-memory end with $?"
cmp z.safetensors made.safetensors || fail "ZBL and --graph-memory have other bits"
"${few[@]}" "$programs/train" --task potential --dataset z/predictions.xyz --init-weights z.safetensors --epochs 1 --lr 0 --log zero >out 2>err || fail "lr 0 with ZBL ends with $?"
scores zero | awk -F, -v most="$([ "$precision" = double ] && echo 1e-16 || echo 1e-6)" '{ exit !($1 < most) }' || fail "a loss on predictions: $(cat zero)"

# Large structures, of which a step has one: they are cut, with the same curve and predictions on any number of ranks.
awk -F '"' 'NR > 30 { exit }
     NR % 10 == 2 { split($2, lattice, " "); L = lattice[1]; split($3, words, "energy="); split(words[2], word, " "); e = 27 * word[1]; n = 0
                    count = split($6, w, " "); virial = ""; for (k = 1; k <= count; ++k) virial = virial " " 27 * w[k] }
     NR % 10 > 2 || NR % 10 == 0 { line[n++] = $0 }
     NR % 10 == 0 { printf "216\nLattice=\"%.9f 0 0 0 %.9f 0 0 0 %.9f\" Properties=species:S:1:pos:R:3:forces:R:3 energy=%.9f virial=\"%s\"\n", 3 * L, 3 * L, 3 * L, e, virial
                    for (c = 0; c < 27; ++c) for (i = 0; i < 8; ++i) { split(line[i], x, " ")
                      print x[1], x[2] + L * (c % 3), x[3] + L * (int(c / 3) % 3), x[4] + L * int(c / 9), x[5], x[6], x[7] } }' train.xyz >large.xyz
for n in 1 3 ${SAR_FULL_RUN:+4}; do
  "${run[@]:0:2}" "$n" "$programs/train" "${net[@]}" --dataset large.xyz --valid-file valid.xyz --batch-size 1 --epochs 6 --log large$n --predict l$n >out 2>err ||
    fail "large structures on $n ranks end with $?"
done
grep -q "large.xyz: 9 structures, 696 nodes" out || fail "not the large structures"
for n in 3 ${SAR_FULL_RUN:+4}; do
  same large1 large$n "$rounding"
  paste -d ' ' l1/predictions.xyz l$n/predictions.xyz | awk -v most="$([ "$precision" = double ] && echo 1e-7 || echo 2e-2)" 'NF == 20 {
    for (i = 2; i <= 7; ++i) { d = $i - $(i + 10); if (d < 0) d = -d; if (d > most) exit 1 } ++rows } END { exit rows != 648 }' ||
    fail "predictions of large structures differ on $n ranks"
done

# A word about what is suspicious, once each: neighbors and distances, energies of atoms that the structures do not determine, energies with another zero.
# warned N PROGRAM [ARG...]: so many warnings, into out
warned() {
  local count=$1
  shift
  "${run[@]}" "$@" >out 2>err || fail "$* ends with $?"
  [ "$(grep -c WARNING out)" -eq "$count" ] || fail "$* warns $(grep -c WARNING out) times, expected $count: $(grep WARNING out)"
}
alone warned 0 "$programs/train" "${net[@]}" --dataset train.xyz --epochs 1
grep -q "train.xyz: 2[.0-9]* neighbors an atom within the cutoff 2.2, at most [0-9]*, the least distance is [01][.0-9]*$" out || fail "no neighbors: $(grep neighbors out)"
scaled() { awk -v by="$1" 'NF == 7 { $2 *= by; $3 *= by; $4 *= by } /Lattice/ { split($0, t, "\""); split(t[2], v, " "); L = v[1] * by; sub(/Lattice="[^"]*"/, "Lattice=\"" L " 0 0 0 " L " 0 0 0 " L "\"") } { print }' train.xyz; }
scaled 0.3 | sed -n 1,20p >near.xyz
alone warned 2 "$programs/train" "${net[@]}" --dataset near.xyz --epochs 1
grep -q "WARNING: near.xyz: [0-9.]* neighbors an atom" out && grep -q "WARNING: near.xyz: the least distance of two atoms is 0.3" out || fail "$(grep WARNING out)"
scaled 8 >far.xyz
alone warned 1 "$programs/train" "${net[@]}" --dataset far.xyz --epochs 1
grep -q "far.xyz: no structure has two atoms within the cutoff 2.2" out || fail "$(grep WARNING out)"
awk '/^8$/ { i = 0 } NF == 7 { $1 = i++ % 3 ? "O" : "Si" } { print }' train.xyz >fixed.xyz
alone warned 1 "$programs/train" "${net[@]}" --dataset fixed.xyz --epochs 1
grep -q "WARNING: fixed.xyz: the energies of single atoms of O, Si cannot be told apart" out || fail "$(grep WARNING out)"
awk '/^8$/ { s += 1 } s == 1 { sub(/^O /, "C "); sub(/ energy=[^ ]*/, "") } { print }' train.xyz >forces.xyz
alone warned 1 "$programs/train" "${net[@]}" --dataset forces.xyz --epochs 1
grep -q "WARNING: forces.xyz: no training structure with an energy has atoms of C" out || fail "$(grep WARNING out)"
alone warned 0 "$programs/train" --task potential --dataset valid.xyz --init-weights w.safetensors --epochs 1
awk '/energy=/ { split($0, t, "energy="); split(t[2], e, " "); sub(/energy=[^ ]*/, "energy=" e[1] - 800) } { print }' valid.xyz >zero.xyz
alone warned 1 "$programs/train" --task potential --dataset zero.xyz --init-weights w.safetensors --epochs 1
grep -q "WARNING: zero.xyz: energies differ by \(99\|100\)[.0-9]* eV an atom from those of w.safetensors, whose energies of single atoms (O -3[.0-9]*, Si -5" out || fail "$(grep WARNING out)"

# Predictions keep the keys of the input but the labels, and have stresses where there is a cell.
{ sed -n '1,20p' valid.xyz; sed -n '1,10p' test.xyz | sed 's/Lattice="[^"]*"//; s/virial="[^"]*"/virial="0 0 0 0 0 0" free_energy=3 weight=2/'; } >mixed.xyz
"${run[@]}" "$programs/train" "${net[@]}" --dataset mixed.xyz --valid-file valid.xyz --epochs 1 --predict m >out 2>err || fail "molecules among crystals end with $?"
grep -q "mixed.xyz: zeros as virial of 1 structures that do not repeat are not labels" out || fail "no word about zeros"
[ "$(grep -c 'stress="' m/predictions.xyz)" -eq 2 ] || fail "not two stresses: $(grep energy= m/predictions.xyz)"
[ "$(grep -c 'config_type="a b"' m/predictions.xyz)" -eq 3 ] || fail "config_type is lost: $(grep energy= m/predictions.xyz)"
[ "$(grep -c 'energy=' m/predictions.xyz)" -eq 3 ] || fail "not three energies"
grep -q weight=2 m/predictions.xyz && ! grep -q free_energy m/predictions.xyz || fail "other keys: $(grep energy= m/predictions.xyz)"
gzip -k mixed.xyz
"${run[@]}" "$programs/train" "${net[@]}" --dataset mixed.xyz.gz --valid-file valid.xyz --epochs 1 --predict mz >out 2>err || fail "gzip ends with $?"
cmp m/predictions.xyz mz/predictions.xyz || fail "predictions of a packed file differ"

# Splits by shares, other keys, energies alone, several runs.
sed 's/forces:R:3 energy=/REF_force:R:3 free_energy=/; s/virial=/other=/' train.xyz >named.xyz
"${run[@]}" "$programs/train" "${net[@]}" --dataset named.xyz --split-graphs 30,5,5 --epochs 1 --runs 2 --stop-after 1 >out 2>err || fail "shares end with $?"
grep -q "30 training, 5 validation and 5 test structures" out || fail "no split"
grep -q "named.xyz: not used: other" out || fail "no word about unused keys"
grep -q "^mean " out || fail "no mean of two runs"
"${few[@]}" "$programs/train" "${net[@]}" --dataset train.xyz --forces-key none --stress-key none --metric energy-rmse --epochs 1 --radial-basis gaussian \
  --cutoff-function polynomial >out 2>err || fail "energies alone end with $?"
grep -q "train.xyz: not used: forces, virial" out || fail "forces are used"
grep -q "6 radial functions (gaussian), polynomial cutoff 2.2" out || fail "no word about radial functions"

# MACE from nothing: the same curve on one rank and on all, a resumed run with the same bits, and errors that fall.
mace=(--task potential --model mace --cutoff 2.2 --hidden 8 --max-ell 2 --radial-mlp 8,8 --mlp-width 4 --num-basis 5 --threads 1)
"${single[@]}" "$programs/train" "${mace[@]}" "${files[@]}" --epochs 6 --log one >out 2>err || fail "MACE on one rank ends with $?"
"${run[@]}" "$programs/train" "${mace[@]}" "${files[@]}" --epochs 6 --log all --save-weights mace.safetensors >out 2>err || fail "MACE ends with $?"
same one all "$rounding"
grep -q "MACE: 2 layers of 8 channels, 5 radial functions (bessel), polynomial cutoff 2.2" out || fail "no word about MACE"
sed -n 's/.*"loss":\([^,]*\),.*/\1/p' all | awk 'NR == 1 { first = $1 } { last = $1 } END { exit !(last < 0.7 * first) }' || fail "losses of MACE: $(cat all)"
"${run[@]}" "$programs/train" "${mace[@]}" "${files[@]}" --epochs 3 --checkpoint mace.c --checkpoint-every 1 >out 2>err || fail "a part of MACE ends with $?"
"${run[@]}" "$programs/train" "${mace[@]}" "${files[@]}" --epochs 6 --checkpoint mace.c --resume --save-weights resumed.safetensors >out 2>err ||
  fail "the rest of MACE ends with $?"
cmp mace.safetensors resumed.safetensors || fail "the weights of a resumed MACE differ"
alone expect 1 "made with --hidden-ell 1, expected 2 as in this run" "$programs/train" "${mace[@]/max-ell/hidden-ell}" "${files[@]}" --epochs 7 --checkpoint mace.c --resume
"${run[@]}" "$programs/train" "${mace[@]}" "${files[@]}" --interaction-first RealAgnosticDensityInteractionBlock --distance-transform agnesi --committee 2 --pair-repulsion 6 \
  --epochs 1 --save-weights other.safetensors >out 2>err || fail "another MACE ends with $?"
grep -q "a committee of 2 heads" out || fail "no committee of MACE"
grep -q "ZBL between covalent radii" out || fail "no word about the repulsion of MACE"
"${few[@]}" "$programs/train" --task potential --dataset valid.xyz --init-weights other.safetensors --epochs 0 --predict mp >out 2>err || fail "a prediction of MACE ends with $?"
grep -q "other.safetensors: a potential of O, Si with 2 layers of 8 channels, cutoff 2.2" out || fail "no word about the potential of MACE"

# What does not go: one sentence.
refuse "--task: potential needs a --dataset" "$programs/train" --task potential
refuse "--model: gin cannot be combined with --task potential, expected painn or mace" "$programs/train" --task potential --dataset train.xyz --model gin
refuse "--model: mace needs --task potential" "$programs/train" --model mace
refuse "--max-ell: needs --model mace" "$programs/train" "${net[@]}" --dataset train.xyz --max-ell 2
refuse "--radial-basis: needs --model painn" "$programs/train" "${net[@]}" --model mace --dataset train.xyz --radial-basis sinc
refuse "--interaction-first: 'Residual', expected RealAgnosticResidualInteractionBlock, RealAgnosticInteractionBlock, " "$programs/train" "${net[@]}" \
  --model mace --dataset train.xyz --interaction-first Residual
refuse "--hidden-ell: is 2, expected a number up to --max-ell, 1" "$programs/train" "${net[@]}" --model mace --dataset train.xyz --max-ell 1 --hidden-ell 2
refuse "--pair-repulsion: cannot be combined with --zbl-outer" "$programs/train" "${net[@]}" --model mace --dataset train.xyz --pair-repulsion 5 --zbl-outer 1
refuse "--radial-mlp: '8,4', expected equal widths of the hidden layers, such as 64,64,64" "$programs/train" "${net[@]}" --model mace --dataset train.xyz \
  --radial-mlp 8,4
refuse "--model: cannot be combined with --init-weights" "$programs/train" --task potential --model mace --dataset train.xyz --init-weights w.safetensors
for option in "--sample 3" --mfg "--dropout 0.1" "--partition ldg"; do
  # shellcheck disable=SC2086
  refuse "${option%% *}: cannot be combined with --task potential" "$programs/train" --task potential --dataset train.xyz $option
done
refuse "--cutoff: needs --task potential" "$programs/train" --cutoff 3
refuse "--cutoff: cannot be combined with --init-weights" "$programs/train" "${net[@]}" --dataset train.xyz --init-weights w.safetensors
refuse "--radial-basis: cannot be combined with --init-weights" "$programs/train" --task potential --radial-basis bessel --dataset train.xyz \
  --init-weights w.safetensors
awk 'NR % 10 == 3 { first = $0 } NR % 10 == 4 { print first; next } { print }' test.xyz >same_place.xyz
for n in 1 ${SAR_FULL_RUN:+2} 3; do
  (
    if [ "$n" -eq 1 ]; then run=("${single[@]}"); else run=("${run[@]:0:2}" "$n"); fi
    expect 1 "same_place.xyz: structure 0 (counted from 0): a neighbor list with the atoms 0 and 1 at the same place" \
      "$programs/train" "${net[@]}" --dataset train.xyz --test-file same_place.xyz
    sed 's/^O /C /' test.xyz >carbon.xyz
    expect 1 "carbon.xyz: has atoms of C, which no training structure with a label has, expected such structures among those of train.xyz, or a file without C" \
      "$programs/train" "${net[@]}" --dataset train.xyz --valid-file carbon.xyz
  ) || exit 1
done
alone expect 1 "same_place.xyz: structure 0 (counted from 0): a neighbor list with the atoms 0 and 1 at the same place" \
  "$programs/train" --task potential --dataset same_place.xyz --init-weights w.safetensors --epochs 0 --predict r
# unlabelled structures do not train an element, either
awk '/^8$/ { s += 1 } s == 1 { sub(/^O /, "C "); sub(/forces:R:3/, "tags:R:3"); sub(/ energy=[^ ]*/, ""); sub(/ virial="[^"]*"/, "") } { print }' train.xyz >unlabelled.xyz
alone expect 1 "unlabelled.xyz: has atoms of C, which no training structure with a label has" "$programs/train" "${net[@]}" --dataset unlabelled.xyz
alone expect 1 "train.xyz: the loss has no term: --energy-weight is 0, --forces-weight is 0, --stress-weight is 0, expected a weight above 0" \
  "$programs/train" "${net[@]}" --dataset train.xyz --energy-weight 0 --forces-weight 0 --stress-weight 0
alone expect 1 "train.xyz: the loss has no term: --energy-weight is 0, there are no forces, --stress-weight is 0" \
  "$programs/train" "${net[@]}" --dataset train.xyz --energy-weight 0 --forces-key none --stress-weight 0
refuse "--zbl-inner and --zbl-outer: are 2 and 1, expected two distances up to --cutoff, " "$programs/train" "${net[@]}" --dataset train.xyz --zbl-inner 2 --zbl-outer 1
refuse "--split-graphs: cannot be combined with --valid-file" "$programs/train" "${net[@]}" "${files[@]}" --split-graphs 0.8,0.1,0.1
refuse "--metric: mae is not for --task potential, expected forces-mae, " "$programs/train" "${net[@]}" --dataset train.xyz --metric mae
refuse "--ema: is 1, expected less than 1" "$programs/train" --ema 1
alone expect 1 "train.xyz: there are no energies, expected some to train on" "$programs/train" "${net[@]}" --dataset train.xyz --energy-key none
expect 1 "missing.xyz: cannot open (No such file or directory), expected a file of structures in extended XYZ" "$programs/train" --task potential --dataset missing.xyz
sed 's/^Si /Ge /' test.xyz >other.xyz
expect 1 "other.xyz: has an atom of Ge, which the potential does not know, expected O, Si" \
  "$programs/train" --task potential --dataset other.xyz --init-weights w.safetensors --epochs 0 --predict r
alone expect 1 "c: is a checkpoint" "$programs/train" --task potential --dataset test.xyz --init-weights c --epochs 0 --predict r
sed '5s/^\(..*\) .*/\1 nan/' train.xyz >broken.xyz
expect 1 'broken.xyz: line 5: forces has' "$programs/train" "${net[@]}" --dataset broken.xyz
