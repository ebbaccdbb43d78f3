# SPDX-License-Identifier: MIT

"""mace_training.py TRAIN [--shape small|medium] [--structures 4] [--cells 2 2 2] [--epochs 10]: trains the same network from the same
weights with `train` (the program at TRAIN) and with mace-torch, on the same rattled wurtzite AlN with energies and forces of a Morse potential: the
same loss, Adam with the same learning rate, all structures in each step. Prints the losses of all epochs and the seconds of a step, as JSON.

medium: the shape of MACE-MP-0 medium. PYTHONPATH names the folder of the package sar, whose
sar/convert.py alone is read. Needs mace-torch."""
import argparse
import importlib.util
import json
import os
import subprocess
import time
import warnings
from pathlib import Path

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("train")
parser.add_argument("--shape", choices=("small", "medium"), default="small")
parser.add_argument("--structures", type=int, default=4)
parser.add_argument("--cells", type=int, nargs=3, default=[2, 2, 1])
parser.add_argument("--epochs", type=int, default=10)
parser.add_argument("--lr", type=float, default=0.01)
parser.add_argument("--work", default="mace-training")
options = parser.parse_args()
os.environ.setdefault("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
os.environ["OMP_NUM_THREADS"] = "1"
warnings.filterwarnings("ignore")

import ase.build  # noqa: E402
import ase.io  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
from ase.calculators.morse import MorsePotential  # noqa: E402
from ase.calculators.singlepoint import SinglePointCalculator  # noqa: E402
from e3nn import o3  # noqa: E402
from mace import data, modules, tools  # noqa: E402
from mace.tools import torch_geometric  # noqa: E402

spec = importlib.util.spec_from_file_location("convert", Path(__file__).parents[1] / "bindings/python/sar/convert.py")
convert = importlib.util.module_from_spec(spec)
spec.loader.exec_module(convert)

work = Path(options.work)
work.mkdir(parents=True, exist_ok=True)
torch.set_num_threads(1)
torch.set_default_dtype(torch.float32)
torch.manual_seed(0)
feats, max_ell, cutoff = (128, 3, 5.0) if options.shape == "medium" else (16, 2, 4.0)

structures = []
for seed in range(options.structures):
    atoms = ase.build.bulk("AlN", "wurtzite", a=3.11, c=4.98) * tuple(options.cells)
    atoms.rattle(0.08, seed=seed)
    atoms.calc = MorsePotential(epsilon=0.5, r0=2.1, rho0=4.0, rcut1=3.2, rcut2=3.9)
    atoms.calc = SinglePointCalculator(atoms, energy=atoms.get_potential_energy(), forces=atoms.get_forces())
    structures.append(atoms)
ase.io.write(work / "train.xyz", structures, format="extxyz")
structures = ase.io.read(work / "train.xyz", ":")

forces = np.concatenate([atoms.get_forces() for atoms in structures])
shift = float(np.mean([atoms.get_potential_energy() / len(atoms) for atoms in structures]))
kinds = modules.interaction_classes
torch.set_default_dtype(torch.float64)
neighbors = data.neighborhood.get_neighborhood(structures[0].positions, cutoff, structures[0].pbc, np.array(structures[0].cell))[0].shape[1] / len(structures[0])
net = modules.ScaleShiftMACE(
    r_max=cutoff, num_bessel=8, num_polynomial_cutoff=5, max_ell=max_ell, interaction_cls=kinds["RealAgnosticResidualInteractionBlock"],
    interaction_cls_first=kinds["RealAgnosticInteractionBlock"], num_interactions=2, num_elements=2,
    hidden_irreps=o3.Irreps(f"{feats}x0e+{feats}x1o"), MLP_irreps=o3.Irreps("16x0e"), gate=torch.nn.functional.silu,
    atomic_energies=np.array([shift, shift]), avg_num_neighbors=neighbors, atomic_numbers=[7, 13], correlation=3,
    atomic_inter_scale=float(np.sqrt(np.mean(forces**2))), atomic_inter_shift=0.0)
convert.save(str(work / "start.safetensors"), *convert.from_mace(net))
torch.set_default_dtype(torch.float32)
net = net.float()

# sar
log = work / "log.jsonl"
log.unlink(missing_ok=True)
subprocess.run([options.train, *"--task potential --energy-shifts keep --energy-scale keep --clip-norm 0 --stress-key none --eval-every 0 --threads 1".split(),
                "--dataset", str(work / "train.xyz"), "--init-weights", str(work / "start.safetensors"), "--lr", str(options.lr), "--epochs",
                str(options.epochs), "--batch-size", str(len(structures)), "--log", str(log)], check=True, stdout=subprocess.DEVNULL)
epochs = [json.loads(line) for line in log.read_text().splitlines()]
epochs = [each for each in epochs if "loss" in each]

# mace-torch
table = tools.AtomicNumberTable([7, 13])
key = data.utils.KeySpecification(info_keys={"energy": "energy"}, arrays_keys={"forces": "forces"})
for atoms in structures:
    atoms.info["energy"], atoms.arrays["forces"] = atoms.get_potential_energy(), atoms.get_forces()
samples = [data.AtomicData.from_config(data.config_from_atoms(atoms, key_specification=key), z_table=table, cutoff=cutoff) for atoms in structures]
batch = torch_geometric.batch.Batch.from_data_list(samples).to_dict()
optimizer = torch.optim.Adam(net.parameters(), lr=options.lr)
sizes = torch.tensor([len(atoms) for atoms in structures])
losses, seconds = [], []
for _ in range(options.epochs):
    begin = time.perf_counter()
    found = net(batch, training=True, compute_force=True)
    loss = 10 * (((found["energy"] - batch["energy"]) / sizes) ** 2).mean() + 10 * ((found["forces"] - batch["forces"]) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    seconds.append(time.perf_counter() - begin)
    losses.append(float(loss.detach()))
atoms_in_step = int(sizes.sum())
ours = min(each["seconds"] for each in epochs)
for each, loss in zip(epochs, losses):
    print(json.dumps({"epoch": each["epoch"], "loss": each["loss"], "loss_of_mace_torch": loss}))
print(json.dumps({"shape": options.shape, "atoms": atoms_in_step, "neighbors": neighbors, "us_per_atom": round(1e6 * ours / atoms_in_step),
                  "us_per_atom_of_mace_torch": round(1e6 * min(seconds) / atoms_in_step), "faster": round(min(seconds) / ours, 2)}))
