#!/usr/bin/env python3
# SPDX-License-Identifier: MIT

"""many_structures.py COUNT OUT.xyz: writes structures of 60 atoms with 44 neighbors within 5 A, for measurements of time and memory. Energies and
forces are drawn: they mean nothing."""
import random
import sys

draw, side, spacing = random.Random(1), 4, 2.27
sites = [(x, y, z) for x in range(side) for y in range(side) for z in range(side)]
length = side * spacing
with open(sys.argv[2], "w") as out:
    for _ in range(int(sys.argv[1])):
        out.write(f'60\nLattice="{length} 0 0 0 {length} 0 0 0 {length}" Properties=species:S:1:pos:R:3:forces:R:3 energy={draw.gauss(-210, 1):.6f} '
                  f'config_type=drawn pbc="T T T"\n')
        for site in draw.sample(sites, 60):
            numbers = [spacing * k + draw.gauss(0, 0.15) for k in site] + [draw.gauss(0, 1) for _ in range(3)]
            out.write("Cu " + " ".join(f"{x:.6f}" for x in numbers) + "\n")
