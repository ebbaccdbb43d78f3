#!/usr/bin/env bash
# SPDX-License-Identifier: MIT

# bench/silicon_rdf.sh POTENTIAL OUT.svg: the radial distribution function of liquid silicon, of a potential that was trained on
# bench/silicon.sh and of `pair_style sw`: 216 atoms, 2.51 g/cm^3, 2000 K. `sw` melts a crystal; from there each potential makes 0.5 ps
# without and 1.5 ps with averages, at a time step of 1 fs. Needs lmp_sar (bindings/lammps), or $LMP_SAR, and Si.sw, or $SI_SW; python3 draws.
set -euo pipefail
potential=$(realpath "${1:?"POTENTIAL is missing; see the head of $0"}") out=${2:?"OUT.svg is missing"}
lmp=${LMP_SAR:-lmp_sar} sw=${SI_SW:-/usr/share/lammps/potentials/Si.sw} here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

cat >"$scratch/melt" <<END
units metal
lattice diamond 5.30
region box block 0 3 0 3 0 3
create_box 1 box
create_atoms 1 box
mass 1 28.0855
pair_style sw
pair_coeff * * $sw Si
timestep 0.001
velocity all create 10000 4711 mom yes
fix nvt all nvt temp 5000 5000 0.05
run 4000
unfix nvt
fix nvt all nvt temp 5000 2000 0.05
run 4000
unfix nvt
write_data $scratch/liquid
END
"$lmp" -in "$scratch/melt" -log none -screen none

# run NAME PAIR_STYLE PAIR_COEFF
run() {
  cat >"$scratch/in" <<END
units metal
read_data $scratch/liquid
pair_style $2
pair_coeff * * $3 Si
comm_modify cutoff 8.5
neighbor 0.5 bin
timestep 0.001
fix nvt all nvt temp 2000 2000 0.05
run 500
reset_timestep 0
compute rdf all rdf 120 cutoff 8.0
fix rdf all ave/time 10 150 1500 c_rdf[*] mode vector file $scratch/$1
thermo_style custom step temp pe density
thermo 100
neigh_modify delay 0
run 1500
END
  "$lmp" -in "$scratch/in" -log "$scratch/log" -screen none
  awk -v name="$1" '/^ *Step/ { table = 1; next } /^Loop/ { table = 0 } table { t += $2; ++n; d = $4 } END { print name ": " t / n " K, " d " g/cm^3" }' "$scratch/log"
}
run sw sw "$sw"
run sar sar "$potential"
python3 "$here/silicon_rdf.py" "$scratch/sw" "$scratch/sar" "$out"
