#!/usr/bin/env bash
# SPDX-License-Identifier: MIT

# train_checks_test.sh MPIRUN_SH MPIEXEC RANKS TOOLS_DIR: what train --task potential says of suspicious structures, with --describe and in the first
# lines of a training: the same on any number of ranks, and nothing of structures that are as they should be.
source "$(dirname "$0")/../support/program_test.sh"
source "$(dirname "$0")/structures.sh"
structures 1 24 0.05 >good.xyz
structures 2 6 >valid.xyz
describe=("$programs/train" --task potential --cutoff 2.2 --threads 1 --describe)
# told N SENTENCE FILE...: so many warnings, of which one has the sentence; in the described files
told() {
  local count=$1 sentence=$2
  shift 2
  "${few[@]}" "${describe[@]}" --dataset "$@" >out 2>err || fail "--describe of $* ends with $?"
  [ "$(grep -c WARNING out)" -eq "$count" ] || fail "$* has $(grep -c WARNING out) warnings, expected $count: $(grep WARNING out)"
  grep WARNING out | grep -Fq -- "$sentence" || fail "$* does not say: $sentence"
}
# labels SED: the comment lines changed
energies() { awk -v by="$1" -v plus="$2" -v which="${3:-}" '/energy=/ { n += 1; match($0, /energy=[^ ]*/); e = substr($0, RSTART + 7, RLENGTH - 7)
  if (!which || n == which) sub(/energy=[^ ]*/, "energy=" sprintf("%.9f", by * e + plus)) } { print }' good.xyz; }
forces() { awk -v by="$1" 'NF == 7 { $5 *= by; $6 *= by; $7 *= by } { print }' good.xyz; }
virials() { awk -v by="$1" '/virial=/ { match($0, /virial="[^"]*"/); count = split(substr($0, RSTART + 8, RLENGTH - 9), w, " "); text = ""
  for (k = 1; k <= count; ++k) text = text " " sprintf("%.9f", by * w[k]); sub(/virial="[^"]*"/, "virial=\"" text "\"") } { print }' good.xyz; }

"${single[@]}" "${describe[@]}" --dataset good.xyz --valid-file valid.xyz >one 2>err || fail "--describe ends with $?"
"${run[@]}" "${describe[@]}" --dataset good.xyz --valid-file valid.xyz >out 2>err || fail "--describe ends with $?"
cmp one out || fail "--describe differs: $(diff one out)"
! grep WARNING out || fail "warnings of good structures"
for line in "^good.xyz$" "structures  24, of 8 to 8 atoms, 192 together" "neighbors   [0-9.]* an atom, [0-9]* to [0-9]*; 0 atoms have none" \
  "distances   at least [0-9.]* A, in structure [0-9]*" "energies    24 structures; without those of single atoms -[0-9.]* to" \
  "forces      at most [0-9.]* eV/A, in structure" "forces      energies of 11 successive pairs change by \(1.0\|0.9\)[0-9]* times what forces say" \
  "stresses    energies of 12 successive pairs change by \(1.0\|0.9\)[0-9]* times what stresses say" "^valid.xyz$"; do
  grep -q "$line" out || fail "no line '$line'"
done

# Repeated structures, and training structures among those of the validation.
{ cat good.xyz; sed -n 11,20p good.xyz; } >repeated.xyz
told 1 "repeated.xyz: 1 structure is repeated: structure 24 is 1" repeated.xyz
{ cat valid.xyz; sed -n 31,50p good.xyz | sed 's/energy=[^ ]*/energy=0/'; } >leak.xyz
told 2 "leak.xyz: 2 structures are in good.xyz, too: structure 6 is 3, 7 is 4" good.xyz --valid-file leak.xyz

# Labels with another sign or unit, and single ones far from the others.
forces -1 >sign.xyz
told 1 "times what energies say, by 11 pairs of successive structures: they may be gradients, not forces" sign.xyz
forces 0.0194469 >bohr.xyz
told 1 "pairs of successive structures: forces may be in hartree/bohr" bohr.xyz
virials -160.2177 >gpa.xyz
told 1 "12 pairs of successive structures: they may be pressures in GPa" gpa.xyz
energies 0.0367493 0 >hartree.xyz
told 2 "pairs of successive structures: energies or forces may be in hartree" hartree.xyz
energies 1 80 5 >far.xyz
told 1 "far.xyz: 1 structure with energies far from the others, whose median deviation is" far.xyz
grep -q "structure 4 (9\.[0-9]*)" out || fail "not structure 4: $(grep WARNING out)"
awk 'NR == 45 { $5 += 500; $6 += 3 } { print }' good.xyz >force.xyz
told 2 "force.xyz: 1 structure with forces far above the others, of which half are below" force.xyz
grep -q "force.xyz: 1 structure with forces whose sum is not 0, in eV/A: structure 4 (500)" out || fail "no word about the sum"
awk 'NR == 83 { $2 += 30 } { gsub(/pbc="[^"]*"/, "") } NR >= 81 && NR <= 90 { sub(/Lattice="[^"]*"/, "Lattice=\"90 0 0 0 90 0 0 0 90\"") } { print }' good.xyz >lonely.xyz
"${few[@]}" "${describe[@]}" --dataset lonely.xyz >out 2>err || fail "a lonely atom ends with $?"
grep -q "WARNING: lonely.xyz: 1 structure with atoms that have no neighbor: structure 8 (1)" out || fail "no word about a lonely atom: $(grep WARNING out)"

# A training says the same in its first lines, and goes on; predictions are not checked.
"${run[@]}" "$programs/train" --task potential --cutoff 2.2 --hidden 4 --layers 1 --threads 1 --dataset sign.xyz --epochs 1 --save-weights w.safetensors >out 2>err ||
  fail "a training with a warning ends with $?"
[ "$(grep -c "WARNING: sign.xyz: forces are -[01]" out)" -eq 1 ] || fail "no warning in a training"
"${few[@]}" "$programs/train" --task potential --threads 1 --dataset sign.xyz --init-weights w.safetensors --epochs 0 --predict p >out 2>err || fail "a prediction ends with $?"
! grep "WARNING: sign.xyz: forces" out || fail "predictions are checked"
# structures without labels are described, too
sed 's/ energy=[^ ]*//; s/:forces:R:3/:tags:R:3/; s/ virial="[^"]*"//' good.xyz >bare.xyz
"${run[@]}" "${describe[@]}" --dataset bare.xyz >out 2>err || fail "structures without labels end with $?"
grep -q "structures  24, of 8 to 8 atoms" out && ! grep -q "energies    24" out || fail "no table of structures without labels"
refuse "--describe excludes --log" "${describe[@]}" --dataset good.xyz --log log
