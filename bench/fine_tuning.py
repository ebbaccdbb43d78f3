#!/usr/bin/env python3
# SPDX-License-Identifier: MIT

"""fine_tuning.py TRAIN [STRUCTURES] [EPOCHS]: what a potential of another element is worth.

Copper and gold, silver and nickel of ASE's EMT. A potential is trained on alloys of copper and gold; one of silver and nickel begins from it
(--new-species Ag=Au,Ni=Cu) and from nothing, with the same STRUCTURES (40), EPOCHS (60) and rates. Prints a JSON line for each: the errors of
forces of validation structures after some epochs, in meV/A, and the first epoch in which the fine-tuned one is below the last error of the
other. Needs ase. TRAIN is the program."""
import json
import os
import subprocess
import sys
import tempfile

import ase.build
import ase.calculators.emt
import ase.calculators.singlepoint
import ase.io
import ase.md.langevin
import ase.units
import numpy as np


def structures(names, constant, count, seed):
    """Snapshots of an alloy at 300, 600 and 1000 K."""
    draw = np.random.default_rng(seed)
    found = []
    for temperature in (300, 600, 1000):
        atoms = ase.build.bulk(names[0], "fcc", a=constant, cubic=True) * (2, 2, 2)
        atoms.symbols[draw.permutation(len(atoms))[: len(atoms) // 2]] = names[1]
        atoms.calc = ase.calculators.emt.EMT()
        motion = ase.md.langevin.Langevin(atoms, 4 * ase.units.fs, temperature_K=temperature, friction=0.02 / ase.units.fs, rng=draw)
        motion.run(100)
        for _ in range(-(-count // 3)):
            motion.run(20)
            one = atoms.copy()
            one.calc = ase.calculators.singlepoint.SinglePointCalculator(one, energy=atoms.get_potential_energy(), forces=atoms.get_forces())
            found.append(one)
    return [found[k] for k in draw.permutation(len(found))[:count]]


def main(train, count, epochs):
    old, new = ("Cu", "Au", 3.85), ("Ni", "Ag", 3.85)
    for name, (a, b, constant), number in (("old", old, 300), ("old_valid", old, 60), ("new", new, count), ("new_valid", new, 60)):
        ase.io.write(f"{name}.xyz", structures((a, b), constant, number, seed=len(name) + number), format="extxyz")
    net = "--cutoff 5 --hidden 32 --layers 2 --num-basis 12".split()

    def errors(log, data, rounds, *more):
        subprocess.run([train, "--task", "potential", "--dataset", f"{data}.xyz", "--valid-file", f"{data}_valid.xyz", "--schedule", "cosine",
                        "--epochs", str(rounds), "--log", log, "--save-weights", f"{log}.safetensors", *more], check=True, stdout=subprocess.DEVNULL)
        lines = [json.loads(line) for line in open(log)]
        return [line["val_forces_mae"] for line in lines if "val_forces_mae" in line and line.get("epoch", 0) > 0]

    begin = errors("copper", "old", epochs, *net)
    print(json.dumps({"potential": "Cu, Au from nothing", "structures": 300, "last": round(begin[-1], 1)}))
    found = {"from nothing": errors("nothing", "new", epochs, *net)}
    for lr in ("0.001", "0.003", "0.01"):
        found[f"from Cu, Au, --lr {lr}"] = errors(f"tuned{lr}", "new", epochs, "--init-weights", "copper.safetensors", "--new-species", "Ni=Cu,Ag=Au",
                                                  "--energy-shifts", "fit", "--lr", lr)
    for name, of in found.items():
        below = next((k + 1 for k, error in enumerate(of) if error <= found["from nothing"][-1]), None)
        print(json.dumps({"potential": f"Ni, Ag {name}", "structures": count, "last": round(of[-1], 1), "epoch_below": below,
                          "after": {k: round(of[k - 1], 1) for k in (1, 5, 10, 20, 30, epochs) if k <= len(of)}}))


count, epochs = (int(sys.argv[k]) if len(sys.argv) > k else default for k, default in ((2, 40), (3, 60)))
with tempfile.TemporaryDirectory() as folder:
    program = os.path.abspath(sys.argv[1])
    os.chdir(folder)
    main(program, count, epochs)
