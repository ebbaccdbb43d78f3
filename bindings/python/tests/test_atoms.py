# SPDX-License-Identifier: MIT

"""Neighbor lists and potentials."""

import os
import pickle

import numpy as np
import pytest
from test_files import folder  # noqa: F401

import sar

CELL = np.array([[4.1, 0, 0], [1.3, 3.2, 0], [-0.4, 0.9, 5.0]])
PBC = [True, True, False]
CUTOFF = 3.5  # more than the height of the cell


def structure(atoms=10, seed=3):
    draw = np.random.default_rng(seed)
    return draw.uniform(-0.5, 1.5, (atoms, 3)) @ CELL, draw.integers(0, 2, atoms)


def share(rows, comm):
    """The rows of this rank; rank 1 has none."""
    parts = np.array_split(rows, max(comm.size - 1, 1))
    parts.insert(1, rows[:0])
    return parts[comm.rank]


def of_all(rows, comm):
    rows = np.asarray(rows)
    return comm.all_gather(rows).reshape(-1, *rows.shape[1:])


def sorted_rows(rows):
    rows = np.round(rows, 4)
    return rows[np.lexsort(rows.T)]


@pytest.fixture
def potential():
    sar.manual_seed(5)
    return sar.Potential({"type": "painn", "hidden": 8, "layers": 2, "species": ["Si", "O"], "cutoff": CUTOFF, "num_basis": 6,
                          "energy_shifts": [-3.0, 1.0], "energy_scales": [2.0, 2.0]})


def test_all_gather(comm):
    mine = np.arange(comm.rank + 1) + 0.1
    np.testing.assert_array_equal(comm.all_gather(mine), np.concatenate([np.arange(r + 1) + 0.1 for r in range(comm.size)]))
    assert comm.all_gather([[1, 2], [3, 4]]).shape == (4 * comm.size,)
    large = 2 ** 60 + 1 + comm.rank  # no float64
    np.testing.assert_array_equal(comm.all_gather([large] if comm.rank > 0 or comm.size == 1 else []),
                                  [2 ** 60 + 1 + r for r in range(comm.size) if r > 0 or comm.size == 1])
    assert comm.all_reduce(large, "max") == 2 ** 60 + comm.size and isinstance(comm.all_reduce(np.int32(1)), int)
    assert comm.all_gather([1 if comm.rank == 0 else 0.5]).dtype == (np.int64 if comm.size == 1 else np.float64)
    assert comm.all_reduce(np.array(0.5)) == 0.5 * comm.size and comm.all_reduce(np.array(3)) == 3 * comm.size
    assert comm.all_reduce(1 if comm.rank == 0 else 0.5) == 1 + 0.5 * (comm.size - 1)
    with pytest.raises(sar.InputError, match="values of dtype complex128, expected real numbers"):
        comm.all_gather([1j])


def test_a_list_has_all_pairs(comm):
    x, _ = structure()
    steps = [(i, j, 0) for i in range(-9, 10) for j in range(-9, 10)]
    expected = [x[u] + np.dot(n, CELL) - x[v] for u in range(10) for v in range(10) for n in steps if u != v or n != (0, 0, 0)]
    expected = np.array([d for d in expected if d @ d < CUTOFF ** 2])
    for mine in (share(x, comm), np.asfortranarray(share(x, comm)), share(x, comm).tolist() or np.zeros((0, 3), np.float32)):
        neighbors = sar.NeighborList(mine, CUTOFF, CELL, PBC)
        np.testing.assert_allclose(sorted_rows(of_all(neighbors.vectors, comm)), sorted_rows(expected), atol=2e-4)
        assert neighbors.graph.num_nodes() == len(mine) and neighbors.cutoff == CUTOFF
    assert sar.NeighborList(share(x, comm), CUTOFF, CELL).graph.num_global_edges() > len(expected)
    isolated = [sar.NeighborList(share(x, comm), CUTOFF, cell, pbc).graph.num_global_edges() for cell, pbc in ((None, None), (CELL, False))]
    pairs = np.linalg.norm(x[:, None] - x[None], axis=2) < CUTOFF
    assert isolated == [pairs.sum() - 10] * 2


def test_a_list_is_made_anew_when_atoms_have_moved(comm):
    x, _ = structure()
    mine = share(x, comm)
    neighbors = sar.NeighborList(mine, CUTOFF, CELL, PBC, margin=0.4)
    edges = neighbors.graph.num_global_edges()
    moved = x.copy()
    moved[0] += [0.1, 0, 0]
    assert not neighbors.update(share(moved, comm))
    np.testing.assert_allclose(of_all(neighbors.displacements, comm), moved - x, atol=1e-6)
    assert not neighbors.update(share(moved + CELL[1], comm)) and not neighbors.update(share(moved, comm), CELL, PBC)
    moved[0] += [0.11, 0, 0]
    assert neighbors.update(share(moved, comm))
    assert not of_all(neighbors.displacements, comm).any()
    assert neighbors.update(share(moved, comm), 1.001 * CELL) and not neighbors.update(share(moved, comm))
    assert neighbors.update(share(moved, comm), pbc=False) and neighbors.graph.num_global_edges() < edges
    assert neighbors.update(share(moved[:7], comm))
    assert of_all(neighbors.displacements, comm).shape == (7, 3)


def test_values_of_a_potential(comm, potential):
    x, species = structure()
    mine, kinds = share(x, comm), share(species, comm)
    neighbors = sar.NeighborList(mine, CUTOFF, CELL, PBC, margin=0.3)
    values = potential(neighbors, kinds, per_atom_virials=True)
    assert values.forces.shape == (len(mine), 3) and values.energies.dtype == values.virial.dtype == np.float64
    np.testing.assert_allclose(comm.all_reduce(values.energies.sum()), values.energy)
    np.testing.assert_allclose(of_all(values.virials, comm).sum(0).reshape(3, 3), values.virial, atol=1e-4)
    assert potential(neighbors, kinds).virials is None

    alone = sar.Communicator.self()
    whole = potential(sar.NeighborList(x, CUTOFF, CELL, PBC, comm=alone), species)
    np.testing.assert_allclose(values.energy, whole.energy, rtol=1e-6)
    np.testing.assert_allclose(of_all(values.forces, comm), whole.forces.numpy(), atol=1e-4)
    np.testing.assert_allclose(values.virial, whole.virial, atol=1e-3)

    for given in ({"edge_vectors": neighbors.vectors.numpy().astype(np.float64)}, {"edge_vectors": neighbors.vectors},
                  {"positions": neighbors.displacements, "shifts": neighbors.vectors}):
        again = potential(neighbors.graph, kinds, **given)
        assert again.energy == values.energy
        np.testing.assert_array_equal(again.forces.numpy(), values.forces.numpy())


def test_a_file_of_a_potential(comm, potential, folder):  # noqa: F811
    path = os.path.join(folder, "p.safetensors")
    sar.save_potential(potential, path)
    again = sar.load_potential(path)
    assert again.cutoff == potential.cutoff == CUTOFF and again.description == potential.description
    assert again.species("O") == 1 and again.description["species"] == ["Si", "O"]
    x, species = structure()
    neighbors = sar.NeighborList(share(x, comm), CUTOFF, CELL, PBC)
    assert again(neighbors, share(species, comm)).energy == potential(neighbors, share(species, comm)).energy
    with pytest.raises(sar.InputError, match="does not know the species 'Fe', expected one of Si, O"):
        again.species("Fe")
    with pytest.raises(sar.InputError, match="nothing.safetensors"):
        sar.load_potential(os.path.join(folder, "nothing.safetensors"))
    with pytest.raises(sar.InputError, match="type"):
        sar.Potential({"type": "sage", "in_feats": 2, "hidden": 2, "out_feats": 2, "layers": 1})


def test_what_is_refused(comm, potential):
    x, species = (share(each, comm) for each in structure())
    with pytest.raises(sar.InputError, match="positions of dtype complex128, expected real numbers"):
        sar.NeighborList(x * 1j, CUTOFF)
    for wrong in (x.T, x.ravel(), x[None]):
        with pytest.raises(sar.ShapeError, match="positions of shape .*, expected rows of 3 numbers"):
            sar.NeighborList(wrong, CUTOFF)
    with pytest.raises(sar.ShapeError, match="a cell of 2 vectors, expected 3"):
        sar.NeighborList(x, CUTOFF, CELL[:2])
    with pytest.raises(sar.ShapeError, match="pbc of 2 directions, expected 1 or 3"):
        sar.NeighborList(x, CUTOFF, CELL, [True, False])
    with pytest.raises(sar.InputError, match="linearly dependent"):
        sar.NeighborList(x, CUTOFF, pbc=True)
    with pytest.raises(sar.InputError, match="margin of -1"):
        sar.NeighborList(x, CUTOFF, margin=-1)
    neighbors = sar.NeighborList(x, CUTOFF, CELL, PBC)
    before = potential(neighbors, species).energy
    with pytest.raises(sar.InputError, match="nan"):
        neighbors.update(x * np.nan)
    with pytest.raises(sar.InputError, match="linearly dependent"):
        neighbors.update(x, 0 * CELL)
    with pytest.raises(sar.ShapeError):
        potential(neighbors, species[:-1])
    with pytest.raises(sar.InputError, match="2"):
        potential(neighbors, species + 1)
    with pytest.raises(sar.ShapeError, match="either"):
        potential(neighbors.graph, species, neighbors.displacements, edge_vectors=neighbors.vectors)
    with pytest.raises(sar.InputError, match="cutoff"):
        potential(sar.NeighborList(x, CUTOFF - 1, CELL, PBC), species)
    assert not neighbors.update(x) and potential(neighbors, species).energy == before
    for each in (neighbors, potential):
        with pytest.raises(TypeError, match="cannot be pickled"):
            pickle.dumps(each)


def test_docstrings_are_those_of_the_library():
    assert "a + " not in sar.NeighborList.__doc__ and "displacements_u + vectors_uv - displacements_v" in sar.NeighborList.__doc__
    assert "sum over edges of d_uv" in sar._sar.Potential.__doc__ and "minus the derivative" in sar.PotentialValues.__doc__
