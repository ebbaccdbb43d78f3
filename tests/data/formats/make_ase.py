# SPDX-License-Identifier: MIT

"""Writes atoms/: three structures as ASE writes them, with labels of a calculator (calculator.xyz), with labels of
its own names beside other data (own_names.xyz), as a plain file (plain.xyz), and with labels of a calculator, keys and
data in databases (calculator.db, calculator.aselmdb). Structure s has atoms i, with
energy -3.5 - s, forces 0.1 (i + 1) (c + 1) - s in direction c, and stresses 0.01 (s + 1) (1, 2, 3, 4, 5, 6) in the
order xx, yy, zz, yz, xz, xy. Needs ASE and ase-db-backends: written with 3.29.0 and 0.11.0."""
import pathlib
import sqlite3
import numpy as np
from ase import Atoms
from ase.calculators.singlepoint import SinglePointCalculator
from ase.constraints import FixAtoms
from ase.db import connect
from ase.io import write
from ase.stress import voigt_6_to_full_3x3_stress

out = pathlib.Path(__file__).parent / "atoms"


def structure(s):
    n = s + 2
    positions = np.array([[0.25 * s, i, -1e-3 * i] for i in range(n)])
    return Atoms(["Si", "O"] * (n // 2) + ["H"] * (n % 2), positions=positions, cell=[[4, 0, 0], [1, 5, 0], [0, -0.5, 6]],
                 pbc=[True, True, s == 0])


def labels(s):
    forces = np.array([[0.1 * (i + 1) * (c + 1) - s for c in range(3)] for i in range(s + 2)])
    return -3.5 - s, forces, 0.01 * (s + 1) * np.arange(1, 7)


calculated, own = [], []
for s in range(3):
    energy, forces, stress = labels(s)
    atoms = structure(s)
    atoms.set_tags(range(s + 2))
    atoms.set_momenta(np.ones((s + 2, 3)))
    atoms.calc = SinglePointCalculator(atoms, energy=energy, free_energy=energy - 1, forces=forces, stress=stress)
    calculated.append(atoms)
    atoms = structure(s)
    atoms.info.update(REF_energy=energy, REF_virial=-voigt_6_to_full_3x3_stress(stress) * atoms.get_volume(),
                      config_type='two "words"', relaxed=True, steps=[1, 2], energies={"of": "nothing"})
    atoms.arrays["REF_forces"] = forces
    atoms.arrays["fixed"] = np.arange(s + 2) % 2 == 0
    own.append(atoms)
write(out / "calculator.xyz", calculated, format="extxyz")
write(out / "own_names.xyz", own, format="extxyz")
write(out / "plain.xyz", [structure(s) for s in range(3)], format="xyz")
for name in ("calculator.db", "calculator.aselmdb"):
    (out / name).unlink(missing_ok=True)
    with connect(out / name) as database:
        for atoms in [calculated[0], *calculated]:
            held = atoms.copy()
            held.calc = atoms.calc
            held.set_constraint(FixAtoms([0]))
            database.write(held, config_type='two "words"', relaxed=True, weight=2.5, steps=3,
                           data={"own_energy": 2 * atoms.get_potential_energy(), "own_forces": 2 * atoms.get_forces(),
                                 "own_stress": 2 * atoms.get_stress(), "name": "none", "many": list(range(12))})
        database.delete([1])
    (out / (name + "-lock")).unlink(missing_ok=True)
with sqlite3.connect(out / "calculator.db") as small:
    small.execute("PRAGMA page_size=512")
    small.execute("VACUUM")
