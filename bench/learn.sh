#!/usr/bin/env bash
# SPDX-License-Identifier: MIT

# bench/learn.sh DIR OUT: a potential of silicon that learns in LAMMPS, beside one of structures that nobody chose. DIR: of bench/silicon.sh.
# 20 structures of DIR/train.xyz train a committee of four heads; it runs crystals that are heated in LAMMPS, of 64 and 216 atoms, and fix sar/learn has at most
# 100 structures labelled by pair_style sw. Then the 20, these with the 20, and all 400 structures of DIR/train.xyz train potentials from scratch, with the same options and as many
# steps. OUT/log has their errors over DIR/test.xyz. Needs $TOOLS (build/release/tools), $LMP_SAR (build/release/bindings/lammps/lmp_sar) and
# Si.sw, or $SI_SW. Takes about 20 minutes on 2 cores.
set -euo pipefail
data=$(realpath "${1:?"DIR is missing; see the head of $0"}") out=${2:?"OUT is missing; see the head of $0"}
tools=$(realpath "${TOOLS:-build/release/tools}") lammps=$(realpath "${LMP_SAR:-build/release/bindings/lammps/lmp_sar}")
mkdir -p "$out" && cd "$out"
printf 'pair_style sw\npair_coeff * * %s Si\n' "${SI_SW:-/usr/share/lammps/potentials/Si.sw}" >labels.in
awk '{ if (left == 0) { left = $1 + 2; use = n++ % 20 == 3 } if (use) print; --left }' "$data/train.xyz" >few.xyz

# train NAME FILE EPOCHS [OPTION...]
train() {
  local name=$1 file=$2 epochs=$3
  shift 3
  "$tools/train" --task potential --dataset "$file" --valid-file "$data/valid.xyz" --test-file "$data/test.xyz" --cutoff 5 --num-basis 8 --zbl-inner 0.6 \
    --zbl-outer 1.4 --lr 0.005 --batch-size 4 --clip-norm 10 --schedule cosine --keep best --epochs "$epochs" --eval-every $((epochs / 15 + 1)) \
    --threads 2 "$@" >"$name.log"
  tail -1 "$name.log" | sed "s/^/$name: /" | tee -a log
  awk -v name="$name" '$2 == "test" { print name ": " $0 }' "$name.log" >>log
}

# run NAME CELLS LATTICE_CONSTANT TEMPERATURE MOST: melts CELLS^3 cubic cells of 8 atoms, and runs the liquid; MOST structures in each of both
run() {
  cat >"in.$1" <<END
units metal
lattice diamond $3
region box block 0 $2 0 $2 0 $2
create_box 1 box
create_atoms 1 box
mass 1 28.0855
pair_style sar
pair_coeff * * few.safetensors Si
neighbor 1.0 bin
neigh_modify every 1 delay 0 check yes
velocity all create 5000 4711 mom yes
fix nvt all nvt temp 2500 $4 0.05
fix learn all sar/learn 5 1.0 learned lammps labels.in steps 80 most $5
thermo_style custom step temp pe f_learn[1] f_learn[2] f_learn[3] f_learn[4]
thermo 100
run 2000
unfix learn
unfix nvt
fix nvt all nvt temp $4 $4 0.05
fix learn all sar/learn 50 0.5 learned lammps labels.in steps 80 most $5
run 4000
END
  "$lammps" -in "in.$1" -log "log.$1" -screen none
  grep '^fix sar/learn' "log.$1" | tail -1 | sed "s/^/$1: /" | tee -a log
}

rm -rf learned log
train few few.xyz 200 --committee 4 --save-weights few.safetensors --save-learner learned
run liquid64a 2 5.43 2000 20
run liquid64b 2 5.30 2500 10
run liquid216a 3 5.35 1800 10
run liquid216b 3 5.25 2400 10
train few-alone few.xyz 600
train learned learned/learned.xyz 100
train all "$data/train.xyz" 30
