# SPDX-License-Identifier: MIT

"""ase_overhead.py BENCH_POTENTIAL [ATOMS]: microseconds per atom and step of a calculator of ASE and of what it is made of, in turn with
the energies and forces of the program bench_potential: 29 neighbors an atom, 64 channels, 3 convolutions, one thread. Each line is a JSON
object. `kept` and `made` are steps whose neighbor list is kept and made anew. PYTHONPATH names the folder of the package."""
import json
import subprocess
import sys
import time

import ase
import numpy as np

import sar
from sar.ase import Calculator

program, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 500
sar.set_num_threads(1)
potential = sar.Potential({"type": "painn", "hidden": 64, "layers": 3, "species": ["Si", "O"], "cutoff": 5})
side = (4 * np.pi / 3 * 5**3 * count / 29) ** (1 / 3)
positions = np.random.default_rng(7).uniform(0, side, (count, 3))
atoms = ase.Atoms(["Si", "O"] * (count // 2) + ["Si"] * (count % 2), positions, cell=[side] * 3, pbc=True)
species = np.arange(count) % 2
cell = atoms.cell.array
neighbors = sar.NeighborList(positions, 5, cell, margin=1e-3)
calculators = {"ase_kept": Calculator(potential, margin=1e-3), "ase_made": Calculator(potential, margin=0)}


def step(calc):
    atoms.positions[0, 0] += 1e-6
    atoms.calc = calc
    atoms.get_forces()


def program_seconds():
    lines = subprocess.run([program, str(count), "1"], capture_output=True, text=True, check=True).stdout
    return next(json.loads(line) for line in lines.splitlines() if '"energies_and_forces"' in line)["seconds"]


calls = {"potential": lambda: potential(neighbors, species), **{name: (lambda calc=calc: step(calc)) for name, calc in calculators.items()}}
best = {name: float("inf") for name in ("bench_potential", *calls)}
for _ in range(3):
    best["bench_potential"] = min(best["bench_potential"], program_seconds())
    for _ in range(5):
        for name, call in calls.items():
            call()
            begin = time.perf_counter()
            call()
            best[name] = min(best[name], time.perf_counter() - begin)
for name, seconds in best.items():
    print(json.dumps({"name": name, "us_per_atom": seconds / count * 1e6, "relative": seconds / best["potential"]}), flush=True)
