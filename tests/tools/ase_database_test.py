#!/usr/bin/env python3
# SPDX-License-Identifier: MIT

"""ase_database_test.py MPIRUN_SH MPIEXEC RANKS TRAIN: a training on databases that ASE writes ends with the weights of one on the same structures in
extended XYZ, with kinds and weights of structures, and with labels among the data. Exit code 77: skipped, without ASE."""
import json
import os
import sqlite3
import subprocess
import sys
import tempfile

try:
    import numpy as np
    from ase import Atoms
    from ase.calculators.singlepoint import SinglePointCalculator
    from ase.db import connect
    from ase.io import write
except ImportError:
    sys.exit(77)
try:
    import ase_db_backends  # noqa: F401
    endings = ["db", "aselmdb"]
except ImportError:
    endings = ["db"]

mpirun, mpiexec, ranks, train = os.path.abspath(sys.argv[1]), sys.argv[2], sys.argv[3], os.path.abspath(sys.argv[4])
draw = np.random.default_rng(1)


def rounded(*shape):
    """Numbers that extended XYZ, which has 8 digits, keeps."""
    return np.round(draw.random(shape), 6)


def structures(count, labels):
    """Crystals, slabs and molecules; some without labels. Their keys, and the data of the databases."""
    for s in range(count):
        periodic = [s % 3 != 2, s % 3 != 2, s % 3 == 0]
        atoms = Atoms(["Si", "O"] * (2 + s % 3), positions=np.array([[1.3 * i, i % 2, 0] for i in range(4 + 2 * (s % 3))]) + 0.2 * rounded(4 + 2 * (s % 3), 3),
                      cell=np.diag([2.5, 2.6, 2.7]) * (s % 3 != 2), pbc=periodic)
        atoms.positions = np.round(atoms.positions, 6)
        n = len(atoms)
        energy, forces, stress = float(-4 * n + rounded()), rounded(n, 3) - 0.5, rounded(6) - 0.5
        keys = {"config_type": ("bulk", "slab", "two words")[s % 3], "config_weight": 1 + s % 2 * 0.5}
        data = {}
        if labels == "own":
            data = {"REF_energy": energy, "REF_forces": forces}
            if s % 3 == 0:
                data["REF_stress"] = stress
        elif s % 5:
            found = {"energy": energy, "forces": forces} | ({"stress": stress} if s % 3 == 0 else {})
            atoms.calc = SinglePointCalculator(atoms, **found)
        yield atoms, keys, data


def files(labels):
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        all_of_them = list(structures(24, labels))
        for ending in endings:
            with connect("some." + ending) as database:
                for atoms, keys, data in all_of_them:
                    database.write(atoms, **keys, data=data)
        if labels == "own":  # as databases that are written while others read
            with sqlite3.connect("some.db") as database:
                database.execute("pragma journal_mode=wal")
            database.close()
        for atoms, keys, data in all_of_them:
            atoms.info.update(keys)
            atoms.info.update({name: value for name, value in data.items() if name != "REF_forces"})
            if data:
                atoms.arrays["REF_forces"] = data["REF_forces"]
        write("some.xyz", [atoms for atoms, _, _ in all_of_them], format="extxyz")
        for ending in ["xyz", *endings]:
            done = subprocess.run([mpirun, mpiexec, ranks, train, "--task", "potential", "--dataset", "some." + ending, "--cutoff", "2.2", "--hidden", "8",
                                   "--layers", "1", "--num-basis", "4", "--epochs", "2", "--threads", "1", "--kind-weights", "slab=2", "--save-weights",
                                   "weights", "--log", "log"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            said = done.stdout.decode()
            assert done.returncode == 0, f"{ending}: {said}"
            assert "kinds: config_type: bulk 8, slab 8, two words 8" in said and "weights of 24 structures" in said, said
            assert f"energies: {'REF_' if labels == 'own' else ''}energy, in eV" in said, said
            with open("weights", "rb") as file:
                weights = file.read()
            with open("log") as file:
                last = [line for line in map(json.loads, file) if "loss" in line][-1]
            if ending == "xyz":
                expected, expected_loss = weights, last["loss"]
            # ranks have other parts of the files: sums are rounded in another way
            assert weights == expected or ranks != "1", f"the weights of a training on some.{ending} differ from those of some.xyz ({labels})"
            assert abs(last["loss"] - expected_loss) <= 1e-4 * expected_loss, f"some.{ending}: loss {last['loss']}, expected {expected_loss} ({labels})"
        os.chdir("/")


files("calculator")
files("own")
