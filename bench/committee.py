#!/usr/bin/env python3
# SPDX-License-Identifier: MIT

"""committee.py TRAIN PICTURE.svg [EPOCHS]: how the deviations of a committee compare with errors.

Copper and gold of ASE's EMT: a committee of 4 heads is trained on structures at 300 and 600 K and compared with forces at these and at higher
temperatures, at which it extrapolates. The picture has roots of mean squares of tenths of the atoms, by their deviations. Prints a JSON line for each temperature: errors and deviations of forces, in meV/A, and the correlation
of both over the atoms. Needs ase and matplotlib. TRAIN is the program."""
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
import matplotlib
import numpy as np

matplotlib.use("svg")
matplotlib.rcParams["svg.hashsalt"] = "sar"
import matplotlib.pyplot as plt  # noqa: E402

train, picture, epochs = sys.argv[1], sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else "60"
TRAINED, OTHERS = (300, 600), (1000, 1600)


def structures(temperature, count, seed):
    draw = np.random.default_rng(seed)
    atoms = ase.build.bulk("Cu", cubic=True) * (2, 2, 2)
    atoms.symbols[draw.permutation(len(atoms))[:8]] = "Au"
    atoms.set_cell(atoms.cell * 1.03, scale_atoms=True)
    atoms.calc = ase.calculators.emt.EMT()
    motion = ase.md.langevin.Langevin(atoms, 4 * ase.units.fs, temperature_K=temperature, friction=0.02 / ase.units.fs, rng=draw)
    motion.run(100)
    found = []
    for _ in range(count):
        motion.run(20)
        one = atoms.copy()
        one.calc = ase.calculators.singlepoint.SinglePointCalculator(one, energy=atoms.get_potential_energy(), forces=atoms.get_forces())
        one.info["config_type"] = f"{temperature} K"
        found.append(one)
    return found


def main():
    for kind, seed in (("train", 1), ("valid", 2), ("test", 3)):
        count = 60 if kind == "train" else 20
        temperatures = TRAINED if kind != "test" else TRAINED + OTHERS
        ase.io.write(f"{kind}.xyz", [one for t in temperatures for one in structures(t, count, 100 * seed + t)], format="extxyz")
    subprocess.run([train, *"--task potential --dataset train.xyz --valid-file valid.xyz --test-file test.xyz --cutoff 5 --hidden 32 --layers 2".split(),
                    *f"--num-basis 12 --committee 4 --schedule cosine --keep best --epochs {epochs} --predict out".split()], check=True,
                   stdout=subprocess.DEVNULL)
    figure, axes = plt.subplots(figsize=(5, 4))
    for temperature, color in zip(TRAINED + OTHERS, ("#1f77b4", "#2ca02c", "#ff7f0e", "#d62728")):
        of = [one for one in ase.io.read("out/test.xyz", ":") if one.info["config_type"] == f"{temperature} K"]
        errors = 1e3 * np.concatenate([np.linalg.norm(one.get_forces() - one.arrays["label_forces"], axis=1) for one in of])
        deviations = 1e3 * np.concatenate([one.arrays["forces_deviation"] for one in of])
        print(json.dumps({"kind": f"{temperature} K", "trained": temperature in TRAINED, "atoms": len(errors),
                          "force_error": round(float(np.sqrt(np.mean(errors**2))), 1), "deviation": round(float(np.sqrt(np.mean(deviations**2))), 1),
                          "correlation": round(float(np.corrcoef(errors, deviations)[0, 1]), 2)}))
        tenths = np.array_split(np.argsort(deviations), 10)
        axes.loglog(*([np.sqrt(np.mean(x[tenth]**2)) for tenth in tenths] for x in (deviations, errors)), "o-", ms=4, lw=0.8, color=color,
                    label=f"{temperature} K" + ("" if temperature in TRAINED else ", not trained"))
    low, high = 5, 500
    axes.plot([low, high], [low, high], "k-", lw=0.8)
    axes.set(xlabel="deviation of forces, meV/A", ylabel="error of forces, meV/A", xlim=(low, high), ylim=(low, high))
    axes.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(picture, metadata={"Date": None})


with tempfile.TemporaryDirectory() as folder:
    train, picture = os.path.abspath(train), os.path.abspath(picture)
    os.chdir(folder)
    main()
