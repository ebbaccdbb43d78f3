#!/usr/bin/env bash
# SPDX-License-Identifier: MIT

# bench/silicon.sh DIR [SNAPSHOTS]: writes structures of silicon with energies, forces and stresses of the Stillinger-Weber potential, which
# LAMMPS computes, to DIR/train.xyz, valid.xyz and test.xyz in extended XYZ, 8, 1 and 1 of 10 structures: crystal and liquid, several densities,
# 64 and 216 atoms. 10 runs with SNAPSHOTS (50) structures each. Needs LAMMPS with pair_style sw: `lmp`, or $LMP; Si.sw, or $SI_SW. Then
#     train --task potential --dataset DIR/train.xyz --valid-file DIR/valid.xyz --test-file DIR/test.xyz
set -euo pipefail
out=${1:?"DIR is missing; see the head of $0"} snapshots=${2:-50}
lmp=${LMP:-lmp} potential=${SI_SW:-/usr/share/lammps/potentials/Si.sw}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# run NAME CELLS LATTICE_CONSTANT TEMPERATURE MELTING_TEMPERATURE: molecular dynamics of CELLS^3 cubic cells of 8 atoms at a constant volume
run() {
  local name=$1 cells=$2 constant=$3 temperature=$4 melting=$5
  cat >"$scratch/in" <<END
units metal
atom_modify map yes sort 0 0
lattice diamond $constant
region box block 0 $cells 0 $cells 0 $cells
create_box 1 box
create_atoms 1 box
mass 1 28.0855
pair_style sw
pair_coeff * * $potential Si
timestep 0.001
velocity all create $((2 * melting)) 4711 mom yes
fix nvt all nvt temp $melting $temperature 0.05
run 4000
unfix nvt
fix nvt all nvt temp $temperature $temperature 0.05
run 2000
compute p all pressure NULL virial
thermo_style custom step pe c_p[1] c_p[2] c_p[3] c_p[4] c_p[5] c_p[6]
thermo 40
thermo_modify format float %.12g
dump all all custom 40 $scratch/dump id xu yu zu fx fy fz
dump_modify all first no format float %.12g sort id
run $((40 * (snapshots - 1)))
END
  "$lmp" -in "$scratch/in" -log "$scratch/log" -screen none
  # energies and virial pressures in bar from the last table of the log, atoms from the dump; the stress is minus the pressure
  awk -v config="$name" '
    NR == FNR && /^ *Step/ { delete energy; table = 1; next }
    NR == FNR && /^Loop/ { table = 0 }
    NR == FNR { if (table) { energy[$1] = $2; for (k = 0; k < 6; ++k) stress[$1, k] = -6.241509074e-7 * $(3 + k) } next }
    /^ITEM: TIMESTEP/ { getline step; next }
    /^ITEM: NUMBER/ { getline atoms; next }
    /^ITEM: BOX/ { for (k = 0; k < 3; ++k) { getline; length_[k] = $2 - $1 } next }
    /^ITEM: ATOMS/ {
      printf "%d\nLattice=\"%.10f 0 0 0 %.10f 0 0 0 %.10f\" Properties=species:S:1:pos:R:3:forces:R:3 energy=%s ", atoms, length_[0], length_[1], length_[2], energy[step]
      # LAMMPS: xx, yy, zz, xy, xz, yz
      printf "stress=\"%.12g %.12g %.12g %.12g %.12g %.12g\" config_type=%s pbc=\"T T T\"\n", stress[step, 0], stress[step, 1], stress[step, 2], stress[step, 5], stress[step, 4], stress[step, 3], config
      for (i = 0; i < atoms; ++i) { getline; print "Si", $2, $3, $4, $5, $6, $7 }
    }' "$scratch/log" "$scratch/dump" >>"$scratch/structures"
}

run crystal64 2 5.30 300 300
run crystal64 2 5.43 600 600
run crystal64 2 5.43 1200 1200
run crystal64 2 5.56 900 900
run crystal216 3 5.43 300 300
run crystal216 3 5.40 1000 1000
run liquid64 2 5.30 2000 5000
run liquid64 2 5.43 2500 5000
run liquid216 3 5.35 1800 5000
run liquid216 3 5.25 2400 5000
mkdir -p "$out"
awk -v out="$out" '
  left == 0 { left = $1 + 2; k = n++ % 10; file = out "/" (k == 4 ? "valid" : k == 9 ? "test" : "train") ".xyz" }
  { print >file; --left }' "$scratch/structures"
