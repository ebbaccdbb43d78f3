# SPDX-License-Identifier: MIT

"""mace_speed.py [--cells 6 6 3] [--rounds 5] [--threads 1]: microseconds per atom for energies, forces and stresses of rattled wurtzite AlN by sar, by
mace-torch and, where it is installed, by symmetrix-xl, in turn and in single precision, with random weights in the shape of MACE-MP-0 medium
(128 channels, messages to l = 3, two layers, scalars and vectors). Each line is a JSON object; `force_difference`: largest one to mace-torch in
double precision, in eV/A. PYTHONPATH names the folder of the package sar. Needs mace-torch. Under mpirun only sar runs, on all ranks; give
the folder of a run without mpirun as --work."""
import argparse
import json
import os
import subprocess
import sys
import time
import warnings

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--cells", type=int, nargs=3, default=[6, 6, 3])
parser.add_argument("--rounds", type=int, default=5)
parser.add_argument("--threads", type=int, default=1)
parser.add_argument("--work", default="mace-bench")
options = parser.parse_args()
os.environ.setdefault("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
os.environ["OMP_NUM_THREADS"] = str(options.threads)
warnings.filterwarnings("ignore")

import ase.build  # noqa: E402
import numpy as np  # noqa: E402

import sar  # noqa: E402
from sar.ase import Calculator  # noqa: E402

comm = sar.get_communicator()
model, converted = (os.path.join(options.work, name) for name in ("random.model", "random.safetensors"))


def make():
    """Writes the model of mace-torch and its conversion."""
    import torch
    from e3nn import o3
    from mace import modules
    from sar.convert import from_mace, save
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(0)
    kinds = modules.interaction_classes
    net = modules.ScaleShiftMACE(
        r_max=5.0, num_bessel=8, num_polynomial_cutoff=5, max_ell=3, interaction_cls=kinds["RealAgnosticResidualInteractionBlock"],
        interaction_cls_first=kinds["RealAgnosticInteractionBlock"], num_interactions=2, num_elements=2, hidden_irreps=o3.Irreps("128x0e+128x1o"),
        MLP_irreps=o3.Irreps("16x0e"), gate=torch.nn.functional.silu, atomic_energies=np.array([-2.0, -1.0]), avg_num_neighbors=60,
        atomic_numbers=[7, 13], correlation=3, atomic_inter_scale=1.0, atomic_inter_shift=0.0)
    os.makedirs(options.work, exist_ok=True)
    torch.save(net, model)
    save(converted, *from_mace(net))


def others():
    """The calculators of mace-torch, the first in double precision, and of symmetrix-xl."""
    import torch
    from mace.calculators import MACECalculator
    torch.set_num_threads(options.threads)
    load = lambda: torch.load(model, weights_only=False)  # noqa: E731
    yield "mace-torch double", MACECalculator(models=[load()], device="cpu", default_dtype="float64")
    yield "mace-torch", MACECalculator(models=[load().float()], device="cpu", default_dtype="float32")
    try:
        from symmetrix.calculator import Symmetrix
    except ImportError:
        return
    data = os.path.join(options.work, "random.json")
    subprocess.run([os.path.join(os.path.dirname(sys.executable), "symmetrix_extract_mace"), "-m", model, "--output", data], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    yield "symmetrix-xl", Symmetrix(data, dtype="float32")


def seconds(atoms):
    atoms.positions[0, 0] += 1e-7  # nothing is remembered
    begin = time.perf_counter()
    atoms.calc.calculate(atoms, ["energy", "forces", "stress"], ["positions"])
    return time.perf_counter() - begin


sar.set_num_threads(options.threads)
alone = comm.size == 1
if alone and not os.path.exists(converted):
    make()
lattice = ase.build.bulk("AlN", "wurtzite", a=3.11, c=4.98) * tuple(options.cells)
lattice.rattle(0.05, seed=1)
structures = {}
for name, calculator in [("sar", Calculator(converted)), *(others() if alone else ())]:
    structures[name] = lattice.copy()
    structures[name].calc = calculator
best = {name: np.inf for name in structures}
for k in range(options.rounds + 1):
    for name, atoms in structures.items():
        if name == "mace-torch double" and k > 0:
            continue
        spent = seconds(atoms)
        if k > 0 or name == "mace-torch double":  # the first call makes what later ones keep
            best[name] = min(best[name], spent)
exact = structures["mace-torch double"].calc.results["forces"] if alone else None
for name, atoms in structures.items() if comm.rank == 0 else ():
    line = {"calculator": name, "ranks": comm.size, "threads": options.threads, "atoms": len(lattice), "us_per_atom": round(1e6 * best[name] / len(lattice), 1)}
    if alone:
        line["force_difference"] = float(f"{np.abs(atoms.calc.results['forces'] - exact).max():.2g}")
    print(json.dumps(line), flush=True)
