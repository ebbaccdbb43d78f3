# SPDX-License-Identifier: MIT

"""mace_cases.py OUT

Writes OUT/mace/<case>/*.npy and args.txt, for pack.py: models of mace-torch with random weights, as sar.convert converts them, and their energies,
forces and virials of small structures; harmonics and tensor products of e3nn. All in double precision."""
import importlib.util
import json
import os
import sys
from pathlib import Path

os.environ["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"] = "1"
import numpy as np
import torch
from ase import Atoms
from ase.build import bulk, fcc111, molecule
from cases import Group, values
from e3nn import o3
from mace import data, modules
from mace.tools import torch_geometric, utils

spec = importlib.util.spec_from_file_location("convert", Path(__file__).parents[3] / "bindings/python/sar/convert.py")
convert = importlib.util.module_from_spec(spec)
spec.loader.exec_module(convert)
save = Group(sys.argv[1], "mace", seed=71).save

vectors = values(6, 3)
product_in, weights = values(6, 2 * 16), values(6, 2 * 23)
harmonics = o3.spherical_harmonics([0, 1, 2, 3], vectors, normalize=True, normalization="component")
irreps = o3.Irreps("2x0e+2x1o+2x2e+2x3o")
paths = [(l1, l2, l3) for l3 in range(4) for l1 in range(4) for l2 in range(4) if abs(l1 - l2) <= l3 <= l1 + l2 and (l1 + l2 + l3) % 2 == 0]
product = o3.TensorProduct(irreps, o3.Irreps.spherical_harmonics(3), o3.Irreps([(2, (l3, (-1) ** l3)) for _, _, l3 in paths]),
                           [(l1, l2, k, "uvu", True) for k, (l1, l2, _) in enumerate(paths)], shared_weights=False, internal_weights=False)
assert len(paths) == 23
save("e3nn", vectors=vectors, harmonics=harmonics, rows=product_in, weights=weights, products=product(product_in, harmonics, weights))

SHAPES = {
    "medium": dict(first="RealAgnosticInteractionBlock", later="RealAgnosticResidualInteractionBlock", hidden="4x0e+4x1o"),
    "density": dict(first="RealAgnosticDensityInteractionBlock", later="RealAgnosticDensityResidualInteractionBlock", hidden="3x0e+3x1o",
                    distance_transform="Agnesi", pair_repulsion=True),
    "large": dict(first="RealAgnosticResidualInteractionBlock", later="RealAgnosticResidualInteractionBlock", hidden="2x0e+2x1o+2x2e", layers=3,
                  distance_transform="Soft", heads=["a", "b"]),
    "scalars": dict(first="RealAgnosticResidualInteractionBlock", later="RealAgnosticResidualInteractionBlock", hidden="3x0e", correlation=2, max_ell=2,
                    plain=True),
}
NUMBERS = [1, 8, 14]


def make_model(first, later, hidden, layers=2, correlation=3, max_ell=3, heads=("Default",), plain=False, **more):
    energies = np.array([[-1.0, -2.5, 0.75]] * len(heads)) + np.arange(len(heads))[:, None]
    common = dict(r_max=3.5, num_bessel=6, num_polynomial_cutoff=5, max_ell=max_ell, interaction_cls=modules.interaction_classes[later],
                  interaction_cls_first=modules.interaction_classes[first], num_interactions=layers, num_elements=3, hidden_irreps=o3.Irreps(hidden),
                  MLP_irreps=o3.Irreps("5x0e"), gate=torch.nn.functional.silu, atomic_energies=energies, avg_num_neighbors=7.5,
                  atomic_numbers=NUMBERS, correlation=correlation, radial_MLP=[6, 6], heads=list(heads), **more)
    if plain:
        return modules.MACE(**common)
    ones = np.ones(len(heads))
    return modules.ScaleShiftMACE(atomic_inter_scale=0.8 * ones, atomic_inter_shift=0.1 * ones, **common)


def structures():
    random = np.random.default_rng(5)

    def rattled(atoms):
        atoms.set_atomic_numbers(random.choice(NUMBERS, len(atoms)))
        atoms.positions += random.normal(0, 0.08, atoms.positions.shape)
        return atoms

    yield "crystal", rattled(bulk("Si", "diamond", a=4.4) * (2, 1, 1))
    water = molecule("CH3CH2OH")
    yield "molecule", rattled(Atoms(water.numbers, water.positions))
    yield "slab", rattled(fcc111("Al", (2, 1, 2), a=3.6, vacuum=4))
    yield "thin", rattled(Atoms("Si2", [[0, 0, 0], [1.3, 1.4, 1.0]], cell=[[1.9, 0, 0], [0.3, 2.8, 0], [0, 0.2, 2.6]], pbc=True))
    yield "lone", Atoms("O", [[0.5, 0.2, 0.1]])


for case, shape in SHAPES.items():
    model = make_model(**shape)
    description, arrays = convert.from_mace(model)
    table = utils.AtomicNumberTable(NUMBERS)
    found = {f"param.{name}": array for name, array in arrays.items()}
    for name, atoms in structures():
        configuration = data.config_from_atoms(atoms)
        heads = list(shape.get("heads", ["Default"]))
        configuration.head = heads[-1]
        batch = torch_geometric.batch.Batch.from_data_list([data.AtomicData.from_config(configuration, z_table=table, cutoff=3.5, heads=heads)])
        result = model(batch.to_dict(), compute_force=True, compute_virials=bool(atoms.pbc.any()))
        found |= {f"{name}.positions": atoms.positions, f"{name}.cell": np.array(atoms.cell), f"{name}.energies": result["node_energy"],
                  f"{name}.periodic": np.array(atoms.pbc, float), f"{name}.forces": result["forces"],
                  f"{name}.species": np.array([NUMBERS.index(z) for z in atoms.numbers], np.int64)}
        if atoms.pbc.any():
            found[f"{name}.virial"] = result["virials"][0]
    save(case, {"description": json.dumps(description)}, **found)
