# SPDX-License-Identifier: MIT

"""mace_and_schnetpack.py mace|schnetpack [--atoms 500]: microseconds per atom of energies and forces, on one thread, in single precision

Atoms at random in a periodic box with 29 neighbors within 5 A, as bench_potential has them; random weights. MACE has the sizes of its "small"
models: 128 invariant channels, 2 interactions, correlation 3. SchNetPack's PaiNN has 64 features and 3 interactions, as bench_potential. Neighbors
are found beforehand. Prints a JSON object, with the median of 9 calls."""
import argparse
import json
import math
import os
import time
import typing

import numpy as np
import torch

os.environ["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"] = "1"  # e3nn 0.4.4 reads its constants by pickle
torch.utils.data.dataloader.T_co = typing.TypeVar("T_co")  # SchNetPack 2.1.1 imports it, newer PyTorch has it no more
p = argparse.ArgumentParser(allow_abbrev=False)
p.add_argument("library", choices=("mace", "schnetpack"))
p.add_argument("--atoms", type=int, default=500)
o = p.parse_args()
torch.set_num_threads(1)
torch.manual_seed(0)
rng = np.random.default_rng(0)
cutoff, neighbors = 5.0, 29
box = (o.atoms * (4 / 3 * math.pi * cutoff**3) / neighbors)**(1 / 3)
x = rng.uniform(0, box, (o.atoms, 3))
apart = x[None] - x[:, None]  # [receiver, sender]
shift = -box * np.round(apart / box)
receiver, sender = np.nonzero((np.linalg.norm(apart + shift, axis=-1) < cutoff) & ~np.eye(o.atoms, dtype=bool))
shifts = torch.tensor(shift[receiver, sender], dtype=torch.float32)
receiver, sender = torch.from_numpy(receiver), torch.from_numpy(sender)
positions = torch.tensor(x, dtype=torch.float32)

if o.library == "mace":
    from e3nn import o3
    from mace import __version__ as version, modules

    model = modules.ScaleShiftMACE(r_max=cutoff, num_bessel=8, num_polynomial_cutoff=5, max_ell=3, num_interactions=2, num_elements=1,
                                   interaction_cls_first=modules.interaction_classes["RealAgnosticResidualInteractionBlock"],
                                   interaction_cls=modules.interaction_classes["RealAgnosticResidualInteractionBlock"],
                                   hidden_irreps=o3.Irreps("128x0e"), MLP_irreps=o3.Irreps("16x0e"), gate=torch.nn.functional.silu,
                                   atomic_energies=np.zeros(1), avg_num_neighbors=neighbors, atomic_numbers=[14], correlation=3,
                                   atomic_inter_scale=1.0, atomic_inter_shift=0.0).float()
    given = dict(positions=positions, node_attrs=torch.ones(o.atoms, 1), edge_index=torch.stack([sender, receiver]), shifts=shifts,
                 unit_shifts=shifts / box, cell=box * torch.eye(3), batch=torch.zeros(o.atoms, dtype=torch.long), ptr=torch.tensor([0, o.atoms]),
                 head=torch.zeros(1, dtype=torch.long))
    step = lambda: model(dict(given), compute_force=True, compute_stress=False, compute_virials=False)["forces"]
else:
    import schnetpack as spk
    from importlib.metadata import version as version_of

    version = version_of("schnetpack")
    K = spk.properties
    model = spk.model.NeuralNetworkPotential(
        spk.representation.PaiNN(64, 3, spk.nn.BesselRBF(20, cutoff), spk.nn.CosineCutoff(cutoff)),
        input_modules=[spk.atomistic.PairwiseDistances()],
        output_modules=[spk.atomistic.Atomwise(64, output_key="energy"), spk.atomistic.Forces()])
    given = {K.Z: torch.full((o.atoms,), 14), K.R: positions, K.idx_i: receiver, K.idx_j: sender, K.offsets: shifts,
             K.idx_m: torch.zeros(o.atoms, dtype=torch.long), K.n_atoms: torch.tensor([o.atoms]), K.cell: box * torch.eye(3)[None]}
    step = lambda: model({key: value.clone() for key, value in given.items()})["forces"]

for parameter in model.parameters():
    parameter.requires_grad_(False)
seconds = []
for _ in range(11):
    begin = time.perf_counter()
    step()
    seconds.append(time.perf_counter() - begin)
print(json.dumps(dict(library=o.library, version=version, torch=torch.__version__, atoms=o.atoms, edges=len(sender),
                      us_per_atom=round(sorted(seconds[2:])[4] / o.atoms * 1e6, 1))))
